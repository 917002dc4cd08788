//! The history of conversions as the rest of the program sees it.

use std::time::SystemTime;

use super::clock;
use super::token_number::TokenNumber;

/// What is stored of one successful conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageEntry {
    /// When the conversion ended; stored to the millisecond.
    pub time: SystemTime,
    /// The token that it was sent with.
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
}

impl UsageEntry {
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

#[cfg(test)]
impl UsageEntry {
    /// A small conversion for tests, whose details do not matter.
    pub(crate) fn example(time: SystemTime) -> UsageEntry {
        UsageEntry {
            time,
            token: TokenNumber::DEFAULT,
            format: "png".to_owned(),
            input_bytes: 2,
            output_bytes: 1,
            width: 1,
            height: 1,
            quality: 85,
            watermark: WatermarkKind::None,
            milliseconds: 1,
        }
    }
}

/// Which watermarks a conversion drew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatermarkKind {
    /// No watermark.
    None,
    /// A text only.
    Text,
    /// A picture only.
    Image,
    /// A text and a picture.
    Both,
}

impl WatermarkKind {
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageTotals {
    /// The number of conversions.
    pub conversions: u64,
    /// The bytes of all inputs.
    pub input_bytes: u64,
    /// The bytes of all files that were sent.
    pub output_bytes: u64,
}

impl UsageTotals {
    /// See [`saved_percent`].
    pub fn saved_percent(&self) -> Option<i64> {
        saved_percent(self.input_bytes, self.output_bytes)
    }
}

/// A page of an account's history, newest entry first.
#[derive(Clone, Debug)]
pub struct UsagePage {
    /// The entries with their sequence numbers, which count 1, 2, 3 ... for each account.
    pub entries: Vec<(u64, UsageEntry)>,
    /// The value of `before` that gives the next page; `None` if there is no older entry.
    pub next_before: Option<u64>,
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
        }
    }
}
