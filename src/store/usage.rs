//! The history of conversions as the rest of the program sees it.

use std::time::SystemTime;

use super::clock;

/// What is stored of one successful conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageEntry {
    /// When the conversion ended; stored to the millisecond.
    pub time: SystemTime,
    /// The input format: `png`, `jpeg`, `gif` or `bmp`.
    pub format: String,
    /// The size of the input in bytes.
    pub input_bytes: u64,
    /// The size of the WebP file in bytes.
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

#[cfg(test)]
impl UsageEntry {
    /// A small conversion for tests, whose details do not matter.
    pub(crate) fn example(time: SystemTime) -> UsageEntry {
        UsageEntry {
            time,
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
    /// The bytes of all WebP files.
    pub output_bytes: u64,
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
