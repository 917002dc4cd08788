//! Tables `history`, `history_removed`, `usage_totals`, `usage_months`, `usage_tokens` and
//! `usage_days`.
//!
//! ```text
//! history       key    0   8  account, u64
//!                      8   8  sequence, u64: 1, 2, 3 ... per account, without gaps but for
//!                             the oldest ones, which may be removed
//!               value  0   8  time, u64, milliseconds since the epoch
//!                      8   8  bytes in, u64
//!                     16   8  bytes out, u64
//!                     24   4  width, u32
//!                     28   4  height, u32
//!                     32   4  milliseconds, u32
//!                     36   4  token, u32
//!                     40   1  quality, 0 to 100
//!                     41   1  watermark: 0 none, 1 text, 2 picture, 3 both
//!                     42   .  input format, UTF-8, to the end
//!
//! history_removed
//!               key    0   8  account, u64
//!               value  0   8  entries that were removed, u64: also the last of their numbers
//!                      8   8  their bytes in, u64
//!                     16   8  their bytes out, u64
//!
//! usage_totals  key    0   8  account, u64
//!               value  0   8  conversions, u64: also the last sequence number given
//!                      8   8  bytes in, u64
//!                     16   8  bytes out, u64
//!
//! usage_months  key    0   8  account, u64
//!                      8   8  first millisecond of a month (UTC), u64
//!               value  0   8  conversions with a time in that month, u64
//!
//! usage_tokens  key    0   8  account, u64
//!                      8   4  token, u32
//!               value  0   8  conversions, u64
//!                      8   8  bytes in, u64
//!                     16   8  bytes out, u64
//!                     24   8  time of the last one, u64
//!                     32   8  first millisecond of the month (UTC) of the last one, u64
//!                     40   8  conversions with a time in that month, u64
//!
//! usage_days    key    0   8  account, u64
//!                      8   4  day (UTC) since the epoch, u32
//!                     12   4  token, u32
//!                     16   .  input format, UTF-8, to the end
//!               value  0   8  conversions, u64
//!                      8   8  bytes in, u64
//!                     16   8  bytes out, u64
//! ```
//!
//! A history is ordered by its sequence numbers. Its times follow the clock, which may be set back,
//! so they are not in order, and the conversions of a month could not be found between two times.
//! Therefore they are counted. Sums stay when entries are removed.
//!
//! Numbers have their least significant byte first; redb orders them by value.

use std::collections::BTreeMap;

use redb::{ReadTransaction, ReadableTable, Table, TableDefinition, WriteTransaction};

use super::blocks::{self, BlockTable, HISTORY_BLOCKS};
use crate::auth::AccountId;
use crate::store::clock;
use crate::store::engine::Outcome;
use crate::store::entry_id::EntryId;
use crate::store::token_number::TokenNumber;
use crate::store::usage::{
    Days, MonthlyQuotas, UsageDay, UsageEntry, UsageFilter, UsagePage, UsageTotals, WatermarkKind,
};

/// Conversions by account and sequence number.
pub const HISTORY: TableDefinition<(u64, u64), Value> = TableDefinition::new("history");
/// Entries that were removed, with their bytes in and out, by account.
pub const HISTORY_REMOVED: TableDefinition<u64, Sums> = TableDefinition::new("history_removed");
/// Conversions, bytes in and bytes out by account.
pub const USAGE_TOTALS: TableDefinition<u64, Sums> = TableDefinition::new("usage_totals");
/// Conversions by account and month.
pub const USAGE_MONTHS: TableDefinition<(u64, u64), u64> = TableDefinition::new("usage_months");
/// Sums, last time, and conversions of its month, by account and token.
pub const USAGE_TOKENS: TableDefinition<(u64, u32), TokenValue> =
    TableDefinition::new("usage_tokens");
/// Conversions, bytes in and bytes out by account, day, token and format.
pub const USAGE_DAYS: TableDefinition<DayKey, Sums> = TableDefinition::new("usage_days");

/// Time, bytes in, bytes out, width, height, milliseconds, token, quality, watermark, format.
pub type Value = (u64, u64, u64, u32, u32, u32, u32, u8, u8, &'static str);
pub type ValueRef<'a> = (u64, u64, u64, u32, u32, u32, u32, u8, u8, &'a str);
/// Conversions, bytes in, bytes out.
pub type Sums = (u64, u64, u64);
/// Conversions, bytes in, bytes out, time of the last one, its month, conversions in that month.
pub type TokenValue = (u64, u64, u64, u64, u64, u64);
/// Account, day, token, format.
pub type DayKey = (u64, u32, u32, &'static str);

/// No format comes after it.
const LAST: &str = "\u{10ffff}";

/// The most rows of entries and blocks that are read for one page: some 20 ms. Who asks for entries
/// that are rare in a history of many millions gets short pages.
const MAX_READ: u64 = 50_000;

/// At most `limit` entries that pass the filter, with sequence numbers below `before`, newest
/// first.
pub fn page(
    read: &ReadTransaction,
    account: AccountId,
    filter: &UsageFilter,
    before: Option<u64>,
    limit: usize,
) -> Result<UsagePage, redb::Error> {
    let id = account.0;
    let (removed, ..) = removed(read, account)?;
    let (last, ..) = read
        .open_table(USAGE_TOTALS)?
        .get(id)?
        .map_or_else(Default::default, |value| value.value());
    // All entries from here on are either on the page or do not pass.
    let mut reached = before.map_or(last + 1, |before| before.min(last + 1));
    let history = read.open_table(HISTORY)?;
    let mut entries = Vec::new();
    if filter.is_empty() {
        for row in history.range((id, 0)..(id, reached))?.rev().take(limit) {
            let (key, value) = row?;
            reached = key.value().1;
            entries.push((reached.into(), entry(value.value())?));
        }
    } else {
        let mut rows_read = 0;
        let table = read.open_table(HISTORY_BLOCKS)?;
        let candidates =
            table.range((id, 0)..=(id, blocks::block_of(reached.saturating_sub(1))))?;
        'blocks: for row in candidates.rev() {
            let (key, value) = row?;
            let first = blocks::first_of(key.value().1).max(1);
            rows_read += 1;
            if blocks::may_pass(value.value(), filter) {
                for row in history.range((id, first)..(id, reached))?.rev() {
                    if entries.len() == limit {
                        break 'blocks;
                    }
                    let (key, value) = row?;
                    reached = key.value().1;
                    rows_read += 1;
                    let value = value.value();
                    if filter.passes(clock::day(value.0), TokenNumber(value.6), value.9) {
                        entries.push((reached.into(), entry(value)?));
                    }
                }
            }
            reached = reached.min(first);
            if rows_read >= MAX_READ || entries.len() == limit {
                break;
            }
        }
    }
    Ok(UsagePage {
        entries,
        // Sequence numbers have no gaps: there is an older entry unless the first one was reached.
        next_before: (reached > removed + 1).then(|| EntryId::from(reached)),
    })
}

/// How many entries were removed from the account's history, with their bytes in and out.
pub fn removed(read: &ReadTransaction, account: AccountId) -> Result<Sums, redb::Error> {
    let row = read.open_table(HISTORY_REMOVED)?.get(account.0)?;
    Ok(row.map_or_else(Default::default, |row| row.value()))
}

/// Calls `each` with the sums of the account by day, token and format, in order.
pub fn each_day(
    read: &ReadTransaction,
    account: AccountId,
    days: Days,
    each: &mut dyn FnMut(UsageDay) -> Result<(), redb::Error>,
) -> Result<(), redb::Error> {
    let Days { first, last } = days;
    let table = read.open_table(USAGE_DAYS)?;
    for row in table.range((account.0, first, 0, "")..=(account.0, last, u32::MAX, LAST))? {
        let (key, value) = row?;
        let (_, day, token, format) = key.value();
        each(UsageDay {
            day,
            token: TokenNumber(token),
            format: format.to_owned(),
            totals: sums(value.value()),
        })?;
    }
    Ok(())
}

/// The sums over the account's history.
pub fn totals(read: &ReadTransaction, account: AccountId) -> Result<UsageTotals, redb::Error> {
    let totals = read.open_table(USAGE_TOTALS)?.get(account.0)?;
    Ok(totals.map_or_else(UsageTotals::default, |value| sums(value.value())))
}

/// The account's conversions, or those by one of its tokens, in the month with this first
/// millisecond.
pub fn in_month(
    read: &ReadTransaction,
    account: AccountId,
    token: Option<TokenNumber>,
    month: u64,
) -> Result<u64, redb::Error> {
    let Some(token) = token else {
        let count = read.open_table(USAGE_MONTHS)?.get((account.0, month))?;
        return Ok(count.map_or(0, |count| count.value()));
    };
    let (tokens, days) = (read.open_table(USAGE_TOKENS)?, read.open_table(USAGE_DAYS)?);
    in_month_of_token(&tokens, &days, account, token, month)
}

fn in_month_of_token(
    tokens: &impl ReadableTable<(u64, u32), TokenValue>,
    days: &impl ReadableTable<DayKey, Sums>,
    account: AccountId,
    token: TokenNumber,
    month: u64,
) -> Result<u64, redb::Error> {
    let last = tokens.get((account.0, token.0))?;
    match last.map(|value| value.value()) {
        Some((_, _, _, _, last_month, count)) if last_month == month => Ok(count),
        _ => sum_of_days(days, account, token, month),
    }
}

/// The sums and the time of the last conversion by a token of the account.
pub fn by_token(
    read: &ReadTransaction,
    account: AccountId,
    token: TokenNumber,
) -> Result<(UsageTotals, Option<u64>), redb::Error> {
    let row = read.open_table(USAGE_TOKENS)?.get((account.0, token.0))?;
    Ok(row.map_or_else(Default::default, |row| {
        let (conversions, input_bytes, output_bytes, last, ..) = row.value();
        (sums((conversions, input_bytes, output_bytes)), Some(last))
    }))
}

/// The conversions by a token in the days of a month.
fn sum_of_days(
    days: &impl ReadableTable<DayKey, Sums>,
    account: AccountId,
    token: TokenNumber,
    month: u64,
) -> Result<u64, redb::Error> {
    let (start, end) = clock::month(month);
    let mut sum: u64 = 0;
    for row in
        days.range((account.0, clock::day(start), 0, "")..(account.0, clock::day(end), 0, ""))?
    {
        let (key, value) = row?;
        if key.value().2 == token.0 {
            sum = sum.saturating_add(value.value().0);
        }
    }
    Ok(sum)
}

/// The tables of histories and sums, open for writing.
pub struct UsageTables<'t> {
    history: Table<'t, (u64, u64), Value>,
    blocks: BlockTable<'t>,
    removed: Table<'t, u64, Sums>,
    totals: Table<'t, u64, Sums>,
    months: Table<'t, (u64, u64), u64>,
    tokens: Table<'t, (u64, u32), TokenValue>,
    days: Table<'t, DayKey, Sums>,
}

impl<'t> UsageTables<'t> {
    /// Opens the tables, and makes them if they are missing.
    pub fn open(write: &'t WriteTransaction) -> Result<UsageTables<'t>, redb::Error> {
        Ok(UsageTables {
            history: write.open_table(HISTORY)?,
            blocks: BlockTable::open(write)?,
            removed: write.open_table(HISTORY_REMOVED)?,
            totals: write.open_table(USAGE_TOTALS)?,
            months: write.open_table(USAGE_MONTHS)?,
            tokens: write.open_table(USAGE_TOKENS)?,
            days: write.open_table(USAGE_DAYS)?,
        })
    }

    /// Adds an entry to the history of an account, which must exist, unless the month of its time
    /// is full. Returns the outcome of [`crate::store::engine::Command::RecordUsage`].
    pub fn record(
        &mut self,
        account: AccountId,
        entry: &UsageEntry,
        quotas: MonthlyQuotas,
    ) -> Result<Outcome, redb::Error> {
        let (month, _) = clock::month(clock::to_milliseconds(entry.time));
        let key = (account.0, month);
        let conversions = self.months.get(key)?.map_or(0, |count| count.value());
        if quotas.account.is_some_and(|most| conversions >= most.get()) {
            return Ok(Outcome::QuotaExceeded { of_token: false });
        }
        if let Some(most) = quotas.token
            && in_month_of_token(&self.tokens, &self.days, account, entry.token, month)?
                >= most.get()
        {
            return Ok(Outcome::QuotaExceeded { of_token: true });
        }
        let before = self.totals.get(account.0)?.map(|value| value.value());
        let (last, ..) = before.unwrap_or_default();
        self.insert(account, last + 1, entry)?;
        self.totals.insert(account.0, with(before, entry))?;
        let conversions = conversions.saturating_add(1);
        self.months.insert(key, conversions)?;
        let by_token = self.count_for_token(account, entry, month)?;
        Ok(Outcome::Recorded {
            month,
            conversions,
            by_token,
        })
    }

    /// Writes an entry of a history, and counts nothing.
    pub fn insert(
        &mut self,
        account: AccountId,
        sequence: u64,
        entry: &UsageEntry,
    ) -> Result<(), redb::Error> {
        self.history.insert((account.0, sequence), value(entry))?;
        self.blocks.add(account, sequence, entry)
    }

    /// Removes entries of an account from before this time, the oldest first, at most `limit`, up
    /// to the first one that is not from before it. Sums stay. Returns the number of entries that
    /// were removed.
    pub fn remove_before(
        &mut self,
        account: AccountId,
        time: u64,
        limit: usize,
    ) -> Result<usize, redb::Error> {
        let id = account.0;
        let before = self.removed.get(id)?.map(|row| row.value());
        let mut removed = before.unwrap_or_default();
        let (first, ..) = removed;
        let mut count = 0;
        for row in self
            .history
            .range((id, first)..=(id, u64::MAX))?
            .take(limit)
        {
            let (key, value) = row?;
            let entry = entry(value.value())?;
            if clock::to_milliseconds(entry.time) >= time {
                break;
            }
            removed = with(Some(removed), &entry);
            debug_assert_eq!(removed.0, key.value().1, "a gap");
            count += 1;
        }
        if count > 0 {
            let (last, ..) = removed;
            self.history.retain_in((id, 0)..=(id, last), |_, _| false)?;
            self.blocks.remove_before(account, last + 1)?;
            self.removed.insert(id, removed)?;
        }
        Ok(count)
    }

    /// Counts an entry of a history for its token and its day. Returns the token's conversions in
    /// the entry's month.
    pub fn count_for_token(
        &mut self,
        account: AccountId,
        entry: &UsageEntry,
        month: u64,
    ) -> Result<u64, redb::Error> {
        let time = clock::to_milliseconds(entry.time);
        let key = (account.0, clock::day(time), entry.token.0, &*entry.format);
        let before = self.days.get(key)?.map(|value| value.value());
        self.days.insert(key, with(before, entry))?;
        let key = (account.0, entry.token.0);
        let before = self.tokens.get(key)?.map(|value| value.value());
        let (conversions, input, output, _, last_month, in_last_month) = before.unwrap_or_default();
        let in_month = if before.is_some() && last_month == month {
            in_last_month.saturating_add(1)
        } else {
            sum_of_days(&self.days, account, entry.token, month)?
        };
        let (conversions, input, output) = with(Some((conversions, input, output)), entry);
        let value = (conversions, input, output, time, month, in_month);
        self.tokens.insert(key, value)?;
        Ok(in_month)
    }

    /// Writes the sums over the entries that were removed from an account's history.
    pub fn load_removed(
        &mut self,
        account: AccountId,
        removed: UsageTotals,
    ) -> Result<(), redb::Error> {
        self.removed.insert(account.0, stored_sums(removed))?;
        Ok(())
    }

    /// Writes sums of an account by day, token and format.
    pub fn load_day(&mut self, account: AccountId, day: &UsageDay) -> Result<(), redb::Error> {
        let key = (account.0, day.day, day.token.0, &*day.format);
        self.days.insert(key, stored_sums(day.totals))?;
        Ok(())
    }

    /// Writes what follows from an account's sums by day, all of which have been written: the
    /// totals, the conversions by month, and by token the sums and the time of the last conversion.
    pub fn load_sums(
        &mut self,
        account: AccountId,
        totals: UsageTotals,
        months: &BTreeMap<u64, u64>,
        tokens: &BTreeMap<TokenNumber, (UsageTotals, u64)>,
    ) -> Result<(), redb::Error> {
        self.totals.insert(account.0, stored_sums(totals))?;
        for (month, conversions) in months {
            self.months.insert((account.0, *month), *conversions)?;
        }
        for (token, (totals, last)) in tokens {
            let (month, _) = clock::month(*last);
            let in_month = sum_of_days(&self.days, account, *token, month)?;
            let (conversions, input, output) = stored_sums(*totals);
            let value = (conversions, input, output, *last, month, in_month);
            self.tokens.insert((account.0, token.0), value)?;
        }
        Ok(())
    }

    /// Removes an account's history.
    pub fn delete_all_of(&mut self, account: AccountId) -> Result<(), redb::Error> {
        let id = account.0;
        self.history
            .retain_in((id, 0)..=(id, u64::MAX), |_, _| false)?;
        self.blocks.delete_all_of(account)?;
        self.removed.remove(id)?;
        self.totals.remove(id)?;
        self.months
            .retain_in((id, 0)..=(id, u64::MAX), |_, _| false)?;
        self.tokens
            .retain_in((id, 0)..=(id, u32::MAX), |_, _| false)?;
        self.days
            .retain_in((id, 0, 0, "")..=(id, u32::MAX, u32::MAX, LAST), |_, _| {
                false
            })?;
        Ok(())
    }
}

/// The entry of a row of `history`.
pub fn entry(value: ValueRef) -> Result<UsageEntry, redb::Error> {
    let (
        time,
        input_bytes,
        output_bytes,
        width,
        height,
        milliseconds,
        token,
        quality,
        watermark,
        format,
    ) = value;
    let watermark = watermark_from_number(watermark)
        .ok_or_else(|| redb::Error::Corrupted(format!("there is no watermark kind {watermark}")))?;
    Ok(UsageEntry {
        time: clock::from_milliseconds(time),
        token: TokenNumber(token),
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
        entry.token.0,
        entry.quality,
        watermark_number(entry.watermark),
        &entry.format,
    )
}

/// The sums with an entry more.
fn with(before: Option<Sums>, entry: &UsageEntry) -> Sums {
    let (conversions, input_bytes, output_bytes) = before.unwrap_or_default();
    (
        conversions.saturating_add(1),
        input_bytes.saturating_add(entry.input_bytes),
        output_bytes.saturating_add(entry.output_bytes),
    )
}

/// Sums as the rest of the program sees them.
pub fn sums((conversions, input_bytes, output_bytes): (u64, u64, u64)) -> UsageTotals {
    UsageTotals {
        conversions,
        input_bytes,
        output_bytes,
    }
}

fn stored_sums(totals: UsageTotals) -> Sums {
    (totals.conversions, totals.input_bytes, totals.output_bytes)
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
            &[8, 0, 0, 0],                 // token
            &[7],                          // quality
            &[3],                          // watermark
            b"png",                        // input format
        ];
        let entry = UsageEntry {
            time: clock::from_milliseconds(1),
            token: TokenNumber(8),
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
