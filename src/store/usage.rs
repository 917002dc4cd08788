//! Tables `usage`, `usage_totals` and `usage_months`.
//!
//! ```text
//! usage         key    0   8  account, u64
//!                      8   8  sequence, u64: 1, 2, 3 ... per account, without gaps
//!               value  0   8  time, u64, milliseconds since the epoch
//!                      8   8  bytes in, u64
//!                     16   8  bytes out, u64
//!                     24   4  width, u32
//!                     28   4  height, u32
//!                     32   4  milliseconds, u32
//!                     36   1  quality, 0 to 100
//!                     37   1  watermark: 0 none, 1 text, 2 picture, 3 both
//!                     38   .  input format, UTF-8, to the end
//!
//! usage_totals  key    0   8  account, u64
//!               value  0   8  conversions, u64: also the last sequence number given
//!                      8   8  bytes in, u64
//!                     16   8  bytes out, u64
//!
//! usage_months  key    0   8  account, u64
//!                      8   8  first millisecond of a month (UTC), u64
//!               value  0   8  conversions with a time in that month, u64
//! ```
//!
//! The history is ordered by its sequence numbers. Its times follow the clock, which may be set back: so the conversions of a
//! month are counted, and not looked for between two times.
//!
//! Numbers have their least significant byte first; redb orders them by value.

use std::time::SystemTime;

use redb::{ReadTransaction, ReadableTable, Table, TableDefinition, WriteTransaction};

use super::clock;
use crate::auth::AccountId;

/// Conversions by account and sequence.
pub const USAGE: TableDefinition<(u64, u64), Value> = TableDefinition::new("usage");
/// Conversions, bytes in and bytes out by account.
pub const USAGE_TOTALS: TableDefinition<u64, (u64, u64, u64)> =
    TableDefinition::new("usage_totals");
/// Conversions by account and month.
pub const USAGE_MONTHS: TableDefinition<(u64, u64), u64> = TableDefinition::new("usage_months");

/// Time, bytes in, bytes out, width, height, milliseconds, quality, watermark, format.
pub type Value = (u64, u64, u64, u32, u32, u32, u8, u8, &'static str);
pub type ValueAt<'a> = (u64, u64, u64, u32, u32, u32, u8, u8, &'a str);

/// What is remembered of one successful conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageEntry {
    /// When it ended; kept to the millisecond.
    pub time: SystemTime,
    /// `png`, `jpeg`, `gif`, `bmp`.
    pub format: String,
    /// Bytes in.
    pub input_bytes: u64,
    /// Bytes out.
    pub output_bytes: u64,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// 0 to 100.
    pub quality: u8,
    /// `none`, `text`, `image`, `both`.
    pub watermark: WatermarkKind,
    /// From the first byte read to the entry being written.
    pub milliseconds: u32,
}

/// Which watermarks a conversion drew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatermarkKind {
    /// None.
    None,
    /// Text only.
    Text,
    /// A picture only.
    Image,
    /// Both.
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

    fn number(self) -> u8 {
        match self {
            WatermarkKind::None => 0,
            WatermarkKind::Text => 1,
            WatermarkKind::Image => 2,
            WatermarkKind::Both => 3,
        }
    }

    fn from_number(number: u8) -> Option<WatermarkKind> {
        [
            WatermarkKind::None,
            WatermarkKind::Text,
            WatermarkKind::Image,
            WatermarkKind::Both,
        ]
        .into_iter()
        .find(|kind| kind.number() == number)
    }
}

/// Sums over an account's whole history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageTotals {
    /// How many.
    pub conversions: u64,
    /// Bytes in.
    pub input_bytes: u64,
    /// Bytes out.
    pub output_bytes: u64,
}

/// A page of history, newest first.
#[derive(Clone, Debug)]
pub struct UsagePage {
    /// The entries with their sequence numbers (1, 2, 3 ... per account).
    pub entries: Vec<(u64, UsageEntry)>,
    /// Pass as `before` to go on, if there is more.
    pub next_before: Option<u64>,
}

/// At most `limit` entries with sequence numbers below `before`, newest first.
///
/// # Errors
/// Those of redb.
pub fn page(
    read: &ReadTransaction,
    account: AccountId,
    before: Option<u64>,
    limit: usize,
) -> Result<UsagePage, redb::Error> {
    let usage = read.open_table(USAGE)?;
    let mut entries = Vec::new();
    for row in usage
        .range((account.0, 0)..(account.0, before.unwrap_or(u64::MAX)))?
        .rev()
        .take(limit)
    {
        let (key, value) = row?;
        entries.push((key.value().1, entry(value.value())?));
    }
    // Sequence numbers have no gaps: there is more unless the page ends with the first.
    let next_before = entries
        .last()
        .map(|(sequence, _)| *sequence)
        .filter(|sequence| *sequence > 1);
    Ok(UsagePage {
        entries,
        next_before,
    })
}

/// The account's sums.
///
/// # Errors
/// Those of redb.
pub fn totals(read: &ReadTransaction, account: AccountId) -> Result<UsageTotals, redb::Error> {
    let totals = read
        .open_table(USAGE_TOTALS)?
        .get(account.0)?
        .map(|value| value.value());
    Ok(totals.map_or_else(UsageTotals::default, sums))
}

/// The account's conversions in the month with this first millisecond.
///
/// # Errors
/// Those of redb.
pub fn in_month(
    read: &ReadTransaction,
    account: AccountId,
    month: u64,
) -> Result<u64, redb::Error> {
    let months = read.open_table(USAGE_MONTHS)?;
    Ok(months
        .get((account.0, month))?
        .map_or(0, |count| count.value()))
}

/// The tables, open to write.
pub struct Tables<'t> {
    usage: Table<'t, (u64, u64), Value>,
    totals: Table<'t, u64, (u64, u64, u64)>,
    months: Table<'t, (u64, u64), u64>,
}

impl<'t> Tables<'t> {
    /// Opens them, making them if missing.
    ///
    /// # Errors
    /// Those of redb.
    pub fn open(write: &'t WriteTransaction) -> Result<Tables<'t>, redb::Error> {
        Ok(Tables {
            usage: write.open_table(USAGE)?,
            totals: write.open_table(USAGE_TOTALS)?,
            months: write.open_table(USAGE_MONTHS)?,
        })
    }

    /// Adds an entry and counts it; gives the first millisecond of its month, and the conversions in that. The account must
    /// exist.
    ///
    /// # Errors
    /// Those of redb.
    pub fn record(
        &mut self,
        account: AccountId,
        entry: &UsageEntry,
    ) -> Result<(u64, u64), redb::Error> {
        let before = self
            .totals
            .get(account.0)?
            .map_or_else(UsageTotals::default, |value| sums(value.value()));
        let sequence = before.conversions + 1;
        let input_bytes = before.input_bytes.saturating_add(entry.input_bytes);
        let output_bytes = before.output_bytes.saturating_add(entry.output_bytes);
        self.usage.insert((account.0, sequence), value(entry))?;
        self.totals
            .insert(account.0, (sequence, input_bytes, output_bytes))?;
        let (month, _) = clock::month(clock::to_milliseconds(entry.time));
        let conversions = count(&mut self.months, (account.0, month), 1)?;
        Ok((month, conversions))
    }

    /// Counts the whole history by months, of which nothing may have been counted yet.
    ///
    /// # Errors
    /// Those of redb.
    pub fn count_months(&mut self) -> Result<(), redb::Error> {
        let (mut last, mut times) = ((0, 0), 0);
        for row in self.usage.iter()? {
            let (key, value) = row?;
            let month = (key.value().0, clock::month(value.value().0).0);
            if month != last {
                count(&mut self.months, last, times)?;
                (last, times) = (month, 0);
            }
            times += 1;
        }
        count(&mut self.months, last, times).map(drop)
    }

    /// Removes all of an account.
    ///
    /// # Errors
    /// Those of redb.
    pub fn delete_all_of(&mut self, account: AccountId) -> Result<(), redb::Error> {
        self.usage
            .retain_in((account.0, 0)..=(account.0, u64::MAX), |_, _| false)?;
        self.totals.remove(account.0)?;
        self.months
            .retain_in((account.0, 0)..=(account.0, u64::MAX), |_, _| false)?;
        Ok(())
    }
}

fn count(
    months: &mut Table<'_, (u64, u64), u64>,
    month: (u64, u64),
    more: u64,
) -> Result<u64, redb::Error> {
    let before = months.get(month)?.map_or(0, |count| count.value());
    let count = before.saturating_add(more);
    if more > 0 {
        months.insert(month, count)?;
    }
    Ok(count)
}

fn sums((conversions, input_bytes, output_bytes): (u64, u64, u64)) -> UsageTotals {
    UsageTotals {
        conversions,
        input_bytes,
        output_bytes,
    }
}

fn value(entry: &UsageEntry) -> ValueAt<'_> {
    (
        clock::to_milliseconds(entry.time),
        entry.input_bytes,
        entry.output_bytes,
        entry.width,
        entry.height,
        entry.milliseconds,
        entry.quality,
        entry.watermark.number(),
        &entry.format,
    )
}

pub fn entry(value: ValueAt) -> Result<UsageEntry, redb::Error> {
    let (time, input_bytes, output_bytes, width, height, milliseconds, quality, watermark, format) =
        value;
    let watermark = WatermarkKind::from_number(watermark)
        .ok_or_else(|| redb::Error::Corrupted(format!("there is no watermark kind {watermark}")))?;
    Ok(UsageEntry {
        time: clock::from_milliseconds(time),
        format: format.to_owned(),
        input_bytes,
        output_bytes,
        width,
        height,
        quality,
        watermark,
        milliseconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_is_as_drawn() {
        let drawn = [
            &[1, 0, 0, 0, 0, 0, 0, 0][..], // time
            &[2, 0, 0, 0, 0, 0, 0, 0],     // bytes in
            &[3, 0, 0, 0, 0, 0, 0, 0],     // bytes out
            &[4, 0, 0, 0],                 // width
            &[5, 0, 0, 0],                 // height
            &[6, 0, 0, 0],                 // milliseconds
            &[7],                          // quality
            &[3],                          // watermark
            b"png",                        // input format
        ];
        let entry = UsageEntry {
            time: clock::from_milliseconds(1),
            format: "png".into(),
            input_bytes: 2,
            output_bytes: 3,
            width: 4,
            height: 5,
            quality: 7,
            watermark: WatermarkKind::Both,
            milliseconds: 6,
        };
        assert_eq!(
            <Value as redb::Value>::as_bytes(&value(&entry)),
            drawn.concat()
        );
        assert_eq!(super::entry(value(&entry)).unwrap(), entry);
    }

    #[test]
    fn every_watermark_kind_comes_back_from_its_number() {
        for kind in [
            WatermarkKind::None,
            WatermarkKind::Text,
            WatermarkKind::Image,
            WatermarkKind::Both,
        ] {
            assert_eq!(WatermarkKind::from_number(kind.number()), Some(kind));
        }
        assert_eq!(WatermarkKind::from_number(4), None);
    }
}
