//! The sums that the dashboard shows of an account's usage, gathered in one pass over its days.

use crate::store::{
    AccountId, Period, Store, StoreError, TokenNumber, UsageDay, UsageFilter, UsageSum, UsageTotals,
};

/// The most days that are shown one by one.
const DAYS: usize = 31;

/// The most months that are shown one by one.
const MONTHS: usize = 24;

/// Sums over the conversions that pass a filter.
pub struct Usage {
    /// Over all of them.
    pub totals: UsageTotals,
    /// By day: the last 31 days that pass, oldest first. Days without conversions are among them.
    pub days: Vec<UsageSum>,
    /// By month: the last 24 months that pass, as the days.
    pub months: Vec<UsageSum>,
    /// By token, the one with the most conversions first.
    pub tokens: Vec<(TokenNumber, UsageTotals)>,
    /// By input format, the one with the most conversions first.
    pub formats: Vec<(String, UsageTotals)>,
}

impl Usage {
    /// The sums of this account.
    pub fn of(store: &Store, id: AccountId, filter: &UsageFilter) -> Result<Usage, StoreError> {
        let last = filter.days.last.min(UsageFilter::today(store.now()));
        let mut usage = Usage::empty(filter.days.first, last);
        store.usage_days(id, filter, &mut |day| usage.add(day))?;
        usage
            .tokens
            .sort_by_key(|(_, it)| std::cmp::Reverse(it.conversions));
        usage
            .formats
            .sort_by_key(|(_, it)| std::cmp::Reverse(it.conversions));
        Ok(usage)
    }

    /// No conversions from the day `first` to the day `last`.
    fn empty(first: u32, last: u32) -> Usage {
        Usage {
            totals: UsageTotals::default(),
            days: periods(Period::Day, first, last, DAYS),
            months: periods(Period::Month, first, last, MONTHS),
            tokens: Vec::new(),
            formats: Vec::new(),
        }
    }

    fn add(&mut self, day: &UsageDay) {
        self.totals += day.totals;
        for sums in [&mut self.days, &mut self.months] {
            let after = sums.partition_point(|sum| sum.first_day <= day.day);
            if let Some(sum) = after.checked_sub(1).and_then(|index| sums.get_mut(index)) {
                sum.totals += day.totals;
            }
        }
        match self.tokens.iter_mut().find(|(it, _)| *it == day.token) {
            Some((_, totals)) => *totals += day.totals,
            None => self.tokens.push((day.token, day.totals)),
        }
        match self.formats.iter_mut().find(|(it, _)| *it == day.format) {
            Some((_, totals)) => *totals += day.totals,
            None => self.formats.push((day.format.clone(), day.totals)),
        }
    }
}

/// At most so many periods, each without conversions, of which the newest has the day `last` and
/// none ends before the day `first`; oldest first.
fn periods(period: Period, first: u32, last: u32, count: usize) -> Vec<UsageSum> {
    let mut sums = Vec::new();
    let mut day = last;
    while sums.len() < count && day >= first {
        let start = period.days(day).start;
        sums.push(UsageSum {
            first_day: start,
            totals: UsageTotals::default(),
        });
        let Some(before) = start.checked_sub(1) else {
            break;
        };
        day = before;
    }
    sums.reverse();
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::period_text;

    fn texts(period: Period, sums: &[UsageSum]) -> Vec<String> {
        let texts = sums.iter().map(|sum| period_text(period, sum.first_day));
        texts.collect()
    }

    #[test]
    fn days_and_months_without_conversions_are_there() {
        // 2028-02-29 is the day 21,243.
        let mut usage = Usage::empty(0, 21_243);
        let days = texts(Period::Day, &usage.days);
        assert_eq!(days.len(), 31);
        assert_eq!((&*days[0], &*days[30]), ("2028-01-30", "2028-02-29"));
        let months = texts(Period::Month, &usage.months);
        assert_eq!(months.len(), 24);
        assert_eq!((&*months[0], &*months[23]), ("2026-03", "2028-02"));
        for (day, token, format) in [(21_243, 0, "png"), (21_212, 1, "gif"), (9, 0, "png")] {
            usage.add(&UsageDay {
                day,
                token: TokenNumber(token),
                format: format.to_owned(),
                totals: UsageTotals {
                    conversions: 1,
                    input_bytes: 10,
                    output_bytes: 4,
                },
            });
        }
        let conversions = |sums: &[UsageSum]| -> Vec<u64> {
            sums.iter().map(|sum| sum.totals.conversions).collect()
        };
        // The day before the first one that is shown is the last one of January, which is.
        assert_eq!(conversions(&usage.days)[..30], [0; 30]);
        assert_eq!(conversions(&usage.days)[30], 1);
        assert_eq!(conversions(&usage.months)[21..], [0, 1, 1]);
        assert_eq!(usage.totals.conversions, 3);
        assert_eq!(usage.tokens.len(), 2);
        assert_eq!(usage.formats[0].1.input_bytes, 20);
    }

    #[test]
    fn no_period_is_outside_of_the_filter() {
        let usage = Usage::empty(21_240, 21_243);
        assert_eq!(usage.days.len(), 4);
        assert_eq!(texts(Period::Month, &usage.months), ["2028-02"]);
        let nothing = Usage::empty(21_244, 21_243);
        assert!(nothing.days.is_empty() && nothing.months.is_empty());
        assert_eq!(Usage::empty(0, 1).days.len(), 2);
    }
}
