//! The history of conversions as the rest of the program sees it.

use std::num::NonZeroU64;
use std::ops::Range;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::clock;
use super::request_id::RequestId;
use super::token_number::TokenNumber;

/// One successful conversion, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct UsageEntry {
    /// When the conversion ended; stored to the millisecond.
    pub time: SystemTime,
    /// The token of its request.
    pub token: TokenNumber,
    /// The input format: `png`, `jpeg`, `gif` or `bmp`.
    pub format: String,
    /// The size of the input in bytes.
    pub input_bytes: u64,
    /// The size of the file that was sent in bytes: the WebP, or the input itself.
    pub output_bytes: u64,
    /// The width in pixels.
    pub width: u32,
    /// The height in pixels.
    pub height: u32,
    /// The quality, 0 to 100.
    pub quality: u8,
    /// Which watermarks were drawn.
    pub watermark: WatermarkKind,
    /// How long it took, from the first byte read until the entry was made, in milliseconds.
    pub milliseconds: u32,
    /// Its request, which the response named as well.
    pub request: RequestId,
}

/// Day (UTC) counted from the epoch, token and input format.
pub type DayKey = (u32, TokenNumber, String);

impl UsageEntry {
    /// The key of the sums that count it.
    pub fn day_key(&self) -> DayKey {
        (
            UsageFilter::today(self.time),
            self.token,
            self.format.clone(),
        )
    }

    /// See [`saved_percent`].
    pub fn saved_percent(&self) -> Option<i64> {
        saved_percent(self.input_bytes, self.output_bytes)
    }
}

/// By how many percent the output is smaller than the input, rounded down: it is negative if the
/// output is larger, by however little. `None` without an input.
pub fn saved_percent(input_bytes: u64, output_bytes: u64) -> Option<i64> {
    let (input, output) = (i128::from(input_bytes), i128::from(output_bytes));
    let percent = ((input - output) * 100).checked_div_euclid(input)?;
    i64::try_from(percent).ok()
}

/// Which watermarks a conversion drew. The numbers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub enum WatermarkKind {
    /// No watermark.
    None = 0,
    /// A text only.
    Text = 1,
    /// A picture only.
    Image = 2,
    /// A text and a picture.
    Both = 3,
}

impl WatermarkKind {
    /// The kind of this number, which is its place in the list of kinds.
    pub fn from_number(number: u8) -> Option<WatermarkKind> {
        let all = [Self::None, Self::Text, Self::Image, Self::Both];
        all.get(usize::from(number)).copied()
    }

    /// `none`, `text`, `image` or `both`.
    pub fn name(self) -> &'static str {
        match self {
            WatermarkKind::None => "none",
            WatermarkKind::Text => "text",
            WatermarkKind::Image => "image",
            WatermarkKind::Both => "both",
        }
    }
}

/// Sums over an account's whole history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct UsageTotals {
    /// The number of conversions.
    pub conversions: u64,
    /// The bytes of all inputs.
    pub input_bytes: u64,
    /// The bytes of all files that were sent.
    pub output_bytes: u64,
}

impl std::ops::AddAssign for UsageTotals {
    fn add_assign(&mut self, more: UsageTotals) {
        self.conversions = self.conversions.saturating_add(more.conversions);
        self.input_bytes = self.input_bytes.saturating_add(more.input_bytes);
        self.output_bytes = self.output_bytes.saturating_add(more.output_bytes);
    }
}

impl From<&UsageEntry> for UsageTotals {
    fn from(entry: &UsageEntry) -> UsageTotals {
        UsageTotals {
            conversions: 1,
            input_bytes: entry.input_bytes,
            output_bytes: entry.output_bytes,
        }
    }
}

impl UsageTotals {
    /// See [`saved_percent`].
    pub fn saved_percent(&self) -> Option<i64> {
        saved_percent(self.input_bytes, self.output_bytes)
    }
}

/// A filter of entries of a history; all pass by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageFilter {
    /// The first and the last day (UTC).
    pub days: Days,
    /// The token of their requests.
    pub token: Option<TokenNumber>,
    /// The input format.
    pub format: Option<String>,
}

impl UsageFilter {
    /// The day (UTC) in which `now` lies, counted from the epoch.
    pub fn today(now: SystemTime) -> u32 {
        clock::day(clock::to_milliseconds(now))
    }

    /// Whether all entries pass.
    pub fn is_empty(&self) -> bool {
        *self == UsageFilter::default()
    }

    /// Whether an entry of this day, token and input format passes.
    pub fn passes(&self, day: u32, token: TokenNumber, format: &str) -> bool {
        self.days.contains(day) && self.passes_kind(token, format)
    }

    /// Whether an entry of this token and input format passes, on a day that passes.
    pub fn passes_kind(&self, token: TokenNumber, format: &str) -> bool {
        self.token.is_none_or(|wanted| wanted == token)
            && self.format.as_deref().is_none_or(|wanted| wanted == format)
    }
}

/// A range of days (UTC), each counted from the epoch, both ends included; all days by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Days {
    /// The first day.
    pub first: u32,
    /// The last day.
    pub last: u32,
}

impl Days {
    /// Whether the day is one of them.
    pub fn contains(self, day: u32) -> bool {
        (self.first..=self.last).contains(&day)
    }
}

impl Default for Days {
    fn default() -> Days {
        Days {
            first: 0,
            last: u32::MAX,
        }
    }
}

/// The most conversions of a calendar month (UTC); any number by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MonthlyQuotas {
    /// The quota of the account.
    pub account: Option<NonZeroU64>,
    /// The quota of the token.
    pub token: Option<NonZeroU64>,
}

impl MonthlyQuotas {
    /// If the account's conversions of a month or those by the token exceed their quota, whether
    /// only those by the token do.
    pub fn exceeded(&self, [of_account, by_token]: [u64; 2]) -> Option<bool> {
        let exceeds = |count, quota: Option<NonZeroU64>| quota.is_some_and(|it| count > it.get());
        if exceeds(of_account, self.account) {
            return Some(false);
        }
        exceeds(by_token, self.token).then_some(true)
    }
}

/// Sums over the conversions of one day by one token from one input format.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct UsageDay {
    /// The day (UTC), counted from the epoch.
    pub day: u32,
    /// The token.
    pub token: TokenNumber,
    /// The input format.
    pub format: String,
    /// The sums.
    pub totals: UsageTotals,
}

impl UsageDay {
    /// Day, token and format.
    pub fn key(&self) -> DayKey {
        (self.day, self.token, self.format.clone())
    }
}

/// Sums over the conversions of a day or a month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageSum {
    /// The day, or the first day of the month (UTC), counted from the epoch.
    pub first_day: u32,
    /// The sums.
    pub totals: UsageTotals,
}

/// Whether sums are over days or over months.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// A day (UTC).
    Day,
    /// A calendar month (UTC).
    Month,
}

impl Period {
    /// The days of the period in which a day lies.
    pub fn days(self, day: u32) -> Range<u32> {
        match self {
            Period::Day => day..day.saturating_add(1),
            Period::Month => {
                let (start, end) = clock::month(u64::from(day) * clock::DAY);
                clock::day(start)..clock::day(end)
            }
        }
    }
}

/// An account's conversions in one calendar month (UTC).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Month {
    /// The number of conversions.
    pub conversions: u64,
    /// The first moment of the month.
    pub start: SystemTime,
    /// The first moment of the next month.
    pub end: SystemTime,
}

impl Month {
    /// A month that lasts from `start` up to `end`, both in milliseconds since the epoch.
    pub(super) fn new(start: u64, end: u64, conversions: u64) -> Month {
        Month {
            conversions,
            start: clock::from_milliseconds(start),
            end: clock::from_milliseconds(end),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn savings_are_rounded_down_and_may_be_losses() {
        for (input, output, expected) in [
            (1000, 250, Some(75)),
            (1000, 1000, Some(0)),
            (1000, 991, Some(0)),
            (1000, 990, Some(1)),
            (1000, 1001, Some(-1)),
            (1000, 1500, Some(-50)),
            (1000, 0, Some(100)),
            (0, 0, None),
            (0, 7, None),
            (1, u64::MAX, None),
            (u64::MAX, 1, Some(99)),
        ] {
            assert_eq!(saved_percent(input, output), expected, "{input} {output}");
            let entry = UsageEntry {
                input_bytes: input,
                output_bytes: output,
                ..UsageEntry::example(SystemTime::UNIX_EPOCH)
            };
            assert_eq!(entry.saved_percent(), expected, "{input} {output}");
        }
    }

    #[test]
    fn a_filter_that_names_anything_is_not_empty() {
        let all = UsageFilter::default;
        assert!(all().is_empty());
        let one_day = Days {
            first: 1,
            ..all().days
        };
        let token = Some(TokenNumber::DEFAULT);
        let format = Some("png".to_owned());
        assert!(
            !UsageFilter {
                days: one_day,
                ..all()
            }
            .is_empty()
        );
        assert!(!UsageFilter { token, ..all() }.is_empty());
        assert!(!UsageFilter { format, ..all() }.is_empty());
    }
}
