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
//! A history is ordered by its sequence numbers. Its times follow the clock, which may be set back,
//! so they are not in order, and the conversions of a month could not be found between two times.
//! Therefore they are counted.
//!
//! Numbers have their least significant byte first; redb orders them by value.

use redb::{ReadTransaction, ReadableTable, Table, TableDefinition, WriteTransaction};

use crate::auth::AccountId;
use crate::store::clock;
use crate::store::usage::{UsageEntry, UsagePage, UsageTotals, WatermarkKind};

/// Conversions by account and sequence number.
pub const USAGE: TableDefinition<(u64, u64), Value> = TableDefinition::new("usage");
/// Conversions, bytes in and bytes out by account.
pub const USAGE_TOTALS: TableDefinition<u64, (u64, u64, u64)> =
    TableDefinition::new("usage_totals");
/// Conversions by account and month.
pub const USAGE_MONTHS: TableDefinition<(u64, u64), u64> = TableDefinition::new("usage_months");

/// Time, bytes in, bytes out, width, height, milliseconds, quality, watermark, format.
pub type Value = (u64, u64, u64, u32, u32, u32, u8, u8, &'static str);
pub type ValueRef<'a> = (u64, u64, u64, u32, u32, u32, u8, u8, &'a str);

/// At most `limit` entries with sequence numbers below `before`, newest first.
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
    // Sequence numbers have no gaps: there is an older entry unless the page ends with the first
    // one.
    let next_before = entries
        .last()
        .map(|(sequence, _)| *sequence)
        .filter(|sequence| *sequence > 1);
    Ok(UsagePage {
        entries,
        next_before,
    })
}

/// The sums over the account's history.
pub fn totals(read: &ReadTransaction, account: AccountId) -> Result<UsageTotals, redb::Error> {
    let totals = read.open_table(USAGE_TOTALS)?.get(account.0)?;
    Ok(totals.map_or_else(UsageTotals::default, |value| sums(value.value())))
}

/// The account's conversions in the month with this first millisecond.
pub fn in_month(
    read: &ReadTransaction,
    account: AccountId,
    month: u64,
) -> Result<u64, redb::Error> {
    let count = read.open_table(USAGE_MONTHS)?.get((account.0, month))?;
    Ok(count.map_or(0, |count| count.value()))
}

/// The three tables, open for writing.
pub struct UsageTables<'t> {
    usage: Table<'t, (u64, u64), Value>,
    totals: Table<'t, u64, (u64, u64, u64)>,
    months: Table<'t, (u64, u64), u64>,
}

impl<'t> UsageTables<'t> {
    /// Opens the tables, and makes them if they are missing.
    pub fn open(write: &'t WriteTransaction) -> Result<UsageTables<'t>, redb::Error> {
        Ok(UsageTables {
            usage: write.open_table(USAGE)?,
            totals: write.open_table(USAGE_TOTALS)?,
            months: write.open_table(USAGE_MONTHS)?,
        })
    }

    /// Adds an entry to the history of an account, which must exist. Returns the first millisecond
    /// of the entry's month and the account's conversions in that month.
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
        let key = (account.0, month);
        let conversions = self.months.get(key)?.map_or(0, |count| count.value());
        let conversions = conversions.saturating_add(1);
        self.months.insert(key, conversions)?;
        Ok((month, conversions))
    }

    /// Removes an account's history.
    pub fn delete_all_of(&mut self, account: AccountId) -> Result<(), redb::Error> {
        self.usage
            .retain_in((account.0, 0)..=(account.0, u64::MAX), |_, _| false)?;
        self.totals.remove(account.0)?;
        self.months
            .retain_in((account.0, 0)..=(account.0, u64::MAX), |_, _| false)?;
        Ok(())
    }
}

/// The entry of a row of `usage`.
pub fn entry(value: ValueRef) -> Result<UsageEntry, redb::Error> {
    let (time, input_bytes, output_bytes, width, height, milliseconds, quality, watermark, format) =
        value;
    let watermark = watermark_from_number(watermark)
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

fn value(entry: &UsageEntry) -> ValueRef<'_> {
    (
        clock::to_milliseconds(entry.time),
        entry.input_bytes,
        entry.output_bytes,
        entry.width,
        entry.height,
        entry.milliseconds,
        entry.quality,
        watermark_number(entry.watermark),
        &entry.format,
    )
}

fn sums((conversions, input_bytes, output_bytes): (u64, u64, u64)) -> UsageTotals {
    UsageTotals {
        conversions,
        input_bytes,
        output_bytes,
    }
}

fn watermark_number(kind: WatermarkKind) -> u8 {
    match kind {
        WatermarkKind::None => 0,
        WatermarkKind::Text => 1,
        WatermarkKind::Image => 2,
        WatermarkKind::Both => 3,
    }
}

fn watermark_from_number(number: u8) -> Option<WatermarkKind> {
    match number {
        0 => Some(WatermarkKind::None),
        1 => Some(WatermarkKind::Text),
        2 => Some(WatermarkKind::Image),
        3 => Some(WatermarkKind::Both),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_has_the_layout_that_is_drawn() {
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
        for number in 0..4 {
            assert_eq!(
                watermark_from_number(number).map(watermark_number),
                Some(number)
            );
        }
        assert_eq!(watermark_from_number(4), None);
    }
}
