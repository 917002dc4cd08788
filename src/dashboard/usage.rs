//! The sums that the dashboard shows of an account's usage, gathered in one pass over its days.

use crate::store::{
    AccountId, Days, Period, Store, StoreError, TokenNumber, UsageDay, UsageFilter, UsageSum,
    UsageTotals,
};

/// The most days that are shown one by one; more are shown by month.
const DAYS: u32 = 90;

/// The fewest days that are shown if the filter names no first one.
const FEWEST_DAYS: u32 = 31;

/// The most months that are shown one by one.
const MONTHS: usize = 120;

/// Sums over the conversions that pass a filter.
pub struct Usage {
    /// Over all of them.
    pub totals: UsageTotals,
    /// The number of the filter's days, and the sums over as many days before them; `None` if the
    /// filter names no first day.
    pub before: Option<(u32, UsageTotals)>,
    /// Whether `sums` are by day or by month.
    pub period: Period,
    /// By day or by month, oldest first. Those without conversions are among them.
    pub sums: Vec<UsageSum>,
    /// By token, the one with the most conversions first.
    pub tokens: Vec<(TokenNumber, UsageTotals)>,
    /// By input format, the one with the most conversions first.
    pub formats: Vec<(String, UsageTotals)>,
}

impl Usage {
    /// The sums of this account.
    pub fn of(store: &Store, id: AccountId, filter: &UsageFilter) -> Result<Usage, StoreError> {
        let last = filter.days.last.min(UsageFilter::today(store.now()));
        let mut days = Vec::new();
        store.usage_days(id, filter, &mut |day| days.push(day.clone()))?;
        let mut usage = Usage::over(filter.days.first, last, &days);
        let count = (last + 1).saturating_sub(filter.days.first);
        if let Some(first) = filter
            .days
            .first
            .checked_sub(count)
            .filter(|first| *first > 0)
        {
            let last = filter.days.first - 1;
            let earlier = UsageFilter {
                days: Days { first, last },
                ..filter.clone()
            };
            let mut before = UsageTotals::default();
            store.usage_days(id, &earlier, &mut |day| before += day.totals)?;
            usage.before = Some((count, before));
        }
        Ok(usage)
    }

    /// The sums over these days, from the day `first` to the day `last`; if `first` is 0, from the
    /// first one that is used.
    fn over(first: u32, last: u32, days: &[UsageDay]) -> Usage {
        let used = days.iter().map(|day| day.day).min().unwrap_or(last);
        let first = match first {
            0 => used.min(last.saturating_sub(FEWEST_DAYS - 1)),
            first => first,
        };
        let (period, most) = match (last + 1).saturating_sub(first) {
            0..=DAYS => (Period::Day, DAYS as usize),
            _ => (Period::Month, MONTHS),
        };
        let mut usage = Usage {
            totals: UsageTotals::default(),
            before: None,
            period,
            sums: periods(period, first, last, most),
            tokens: Vec::new(),
            formats: Vec::new(),
        };
        for day in days {
            usage.add(day);
        }
        let by_conversions = |totals: &UsageTotals| std::cmp::Reverse(totals.conversions);
        usage.tokens.sort_by_key(|(_, it)| by_conversions(it));
        usage.formats.sort_by_key(|(_, it)| by_conversions(it));
        usage
    }

    fn add(&mut self, day: &UsageDay) {
        self.totals += day.totals;
        let after = self.sums.partition_point(|sum| sum.first_day <= day.day);
        if let Some(sum) = after
            .checked_sub(1)
            .and_then(|index| self.sums.get_mut(index))
        {
            sum.totals += day.totals;
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

    fn day(day: u32, token: u32, format: &str) -> UsageDay {
        UsageDay {
            day,
            token: TokenNumber(token),
            format: format.to_owned(),
            totals: UsageTotals {
                conversions: 1,
                input_bytes: 10,
                output_bytes: 4,
            },
        }
    }

    /// The number of periods, and the first and the last one.
    fn shown(usage: &Usage) -> (usize, String, String) {
        let text = |sum: Option<&UsageSum>| {
            sum.map_or_else(String::new, |sum| period_text(usage.period, sum.first_day))
        };
        let sums = &usage.sums;
        (sums.len(), text(sums.first()), text(sums.last()))
    }

    #[test]
    fn up_to_90_days_are_shown_by_day_and_more_by_month() {
        // 2028-02-29 is the day 21,243.
        let days = |first, days: &[UsageDay]| {
            let usage = Usage::over(first, 21_243, days);
            (usage.period, shown(&usage))
        };
        let texts = |count, first: &str, last: &str| (count, first.to_owned(), last.to_owned());
        let expected = (Period::Day, texts(31, "2028-01-30", "2028-02-29"));
        assert_eq!(days(0, &[]), expected);
        assert_eq!(days(0, &[day(21_243, 0, "png")]), expected);
        let expected = (Period::Day, texts(90, "2027-12-02", "2028-02-29"));
        assert_eq!(days(21_154, &[]), expected);
        assert_eq!(days(0, &[day(21_154, 0, "png")]), expected);
        let expected = (Period::Month, texts(4, "2027-11", "2028-02"));
        assert_eq!(days(21_123, &[]), expected);
        assert_eq!(days(0, &[day(21_123, 0, "png")]), expected);
        let expected = (Period::Day, texts(4, "2028-02-26", "2028-02-29"));
        assert_eq!(days(21_240, &[]), expected);
        assert_eq!(days(21_244, &[]).1.0, 0, "no period is outside");
        assert_eq!(Usage::over(0, 1, &[]).sums.len(), 2);
    }

    #[test]
    fn sums_are_over_days_tokens_and_formats() {
        let days = [(21_243, 0, "png"), (21_212, 1, "gif"), (21_243, 0, "png")];
        let days = days.map(|(number, token, format)| day(number, token, format));
        let usage = Usage::over(0, 21_243, &days);
        let conversions: Vec<u64> = usage
            .sums
            .iter()
            .map(|sum| sum.totals.conversions)
            .collect();
        assert_eq!(
            (conversions.len(), conversions[0], conversions[31]),
            (32, 1, 2)
        );
        assert_eq!(conversions[1..31], [0; 30]);
        assert_eq!(usage.totals.conversions, 3);
        assert_eq!(usage.tokens[0], (TokenNumber(0), usage.formats[0].1));
        assert_eq!(usage.formats[0].1.input_bytes, 20);
    }
}
