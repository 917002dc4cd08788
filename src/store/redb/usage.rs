//! Tables `history`, `history_removed` and `usage_days`.
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
//!                     42  16  request, u128
//!                     58   .  input format, UTF-8, to the end
//!
//! history_removed
//!               key    0   8  account, u64
//!               value  0   8  entries that were removed, u64: also the last of their numbers
//!                      8   8  their bytes in, u64
//!                     16   8  their bytes out, u64
//!
//! usage_days    key    0   8  account, u64
//!                      8   4  day (UTC) since the epoch, u32
//!                     12   4  token, u32
//!                     16   .  input format, UTF-8, to the end
//!               value  0   8  conversions, u64
//!                      8   8  bytes in, u64
//!                     16   8  bytes out, u64
//!                     24   8  latest time of one of them, u64
//! ```
//!
//! A history is ordered by its sequence numbers. Its times follow the clock, which may be set back,
//! so they are not in order, and the conversions of a month could not be found between two times.
//! Therefore they are counted by day. All other sums follow from those by day: an account has some
//! rows for each day on which it converts. Sums stay when entries are removed.
//!
//! Numbers have their least significant byte first; redb orders them by value.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use redb::{ReadTransaction, ReadableTable, Table, TableDefinition, WriteTransaction};

use super::blocks::{self, HISTORY_BLOCKS};
use super::result::Result;
use crate::auth::AccountId;
use crate::store::clock;
use crate::store::columns::{self, EntryColumns, TotalColumns};
use crate::store::engine::{Outcome, PageRange};
use crate::store::entry_id::{EntryId, Page};
use crate::store::token_number::TokenNumber;
use crate::store::usage::{
    Days, MonthlyQuotas, Period, UsageDay, UsageEntry, UsageFilter, UsageTotals,
};

/// Conversions by account and sequence number.
pub const HISTORY: TableDefinition<(u64, u64), Value> = TableDefinition::new("history");
/// Entries that were removed, with their bytes in and out, by account.
pub const HISTORY_REMOVED: TableDefinition<u64, TotalColumns> =
    TableDefinition::new("history_removed");
/// Sums and latest time by account, day, token and format.
pub const USAGE_DAYS: TableDefinition<DayKey, DayValue> = TableDefinition::new("usage_days");

/// All columns but the account and the sequence number.
pub type Value = EntryColumns<'static>;
/// Account, day, token, format.
pub type DayKey = (u64, u32, u32, &'static str);
/// Conversions, bytes in, bytes out, latest time of one of them.
pub type DayValue = (u64, u64, u64, u64);

/// No format comes after it.
const LAST: &str = "\u{10ffff}";

/// The most rows of entries and blocks that are read for one page: some 20 ms. A filter that few of
/// many million entries pass gives short pages.
const MAX_READ: u64 = 50_000;

/// Entries that pass the filter, newest first.
pub fn page(
    read: &ReadTransaction,
    account: AccountId,
    filter: &UsageFilter,
    range: PageRange,
) -> Result<Page<UsageEntry>> {
    let limit = range.limit;
    let id = account.0;
    let (removed, ..) = removed(read, account)?;
    let history = read.open_table(HISTORY)?;
    let next = last_sequence(&history, account, removed)? + 1;
    // All entries from here on are either on the page or do not pass.
    let mut reached = range.end().min(next);
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
                    if filter.passes(clock::day(value.0), TokenNumber(value.6), value.10) {
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
    Ok(Page {
        entries,
        // Sequence numbers have no gaps: there is an older entry unless the first one was reached.
        next_before: (reached > removed + 1).then(|| EntryId::from(reached)),
    })
}

/// How many entries were removed from the account's history, with their bytes in and out.
pub fn removed(read: &ReadTransaction, account: AccountId) -> Result<TotalColumns> {
    let row = read.open_table(HISTORY_REMOVED)?.get(account.0)?;
    Ok(row.map_or_else(Default::default, |row| row.value()))
}

/// The last sequence number given in a history of which so many entries were removed.
fn last_sequence(
    history: &impl ReadableTable<(u64, u64), Value>,
    account: AccountId,
    removed: u64,
) -> Result<u64> {
    let mut all = history.range((account.0, 0)..=(account.0, u64::MAX))?;
    let last = all.next_back().transpose()?;
    Ok(last.map_or(removed, |(key, _)| key.value().1))
}

/// Calls `each` with the rows of `usage_days` of the account, in order: day, token, format and
/// value.
fn each_row(
    table: &impl ReadableTable<DayKey, DayValue>,
    account: AccountId,
    Days { first, last }: Days,
    mut each: impl FnMut(u32, TokenNumber, &str, DayValue) -> Result<()>,
) -> Result<()> {
    for row in table.range((account.0, first, 0, "")..=(account.0, last, u32::MAX, LAST))? {
        let (key, value) = row?;
        let (_, day, token, format) = key.value();
        each(day, TokenNumber(token), format, value.value())?;
    }
    Ok(())
}

/// Calls `each` with the sums of the account by day, token and format, in order, and with the
/// latest time of a conversion in them.
pub fn each_day(
    read: &ReadTransaction,
    account: AccountId,
    days: Days,
    each: &mut dyn FnMut(UsageDay, u64) -> Result<()>,
) -> Result<()> {
    let table = read.open_table(USAGE_DAYS)?;
    each_row(&table, account, days, |day, token, format, value| {
        let format = format.to_owned();
        let totals = day_sums(value);
        let day = UsageDay {
            day,
            token,
            format,
            totals,
        };
        each(day, value.3)
    })
}

/// The sums over the account's history.
pub fn totals(read: &ReadTransaction, account: AccountId) -> Result<UsageTotals> {
    let table = read.open_table(USAGE_DAYS)?;
    let mut totals = UsageTotals::default();
    each_row(&table, account, Days::default(), |_, _, _, value| {
        totals += day_sums(value);
        Ok(())
    })?;
    Ok(totals)
}

/// The sums and the latest time of a conversion by each token of the account that has any.
pub fn by_token(
    read: &ReadTransaction,
    account: AccountId,
) -> Result<HashMap<TokenNumber, (UsageTotals, u64)>> {
    let table = read.open_table(USAGE_DAYS)?;
    let mut tokens = HashMap::<_, (UsageTotals, u64)>::new();
    each_row(&table, account, Days::default(), |_, token, _, value| {
        let (totals, last) = tokens.entry(token).or_default();
        *totals += day_sums(value);
        *last = value.3.max(*last);
        Ok(())
    })?;
    Ok(tokens)
}

/// The conversions of a month, of the account (`None`) and by each of its tokens that has any.
type MonthCounts = HashMap<Option<TokenNumber>, u64>;

/// The account's conversions, or those by one of its tokens, in the month with this first
/// millisecond.
pub fn in_month(
    read: &ReadTransaction,
    account: AccountId,
    token: Option<TokenNumber>,
    month: u64,
) -> Result<u64> {
    let counts = month_counts(&read.open_table(USAGE_DAYS)?, account, month)?;
    Ok(counts.get(&token).copied().unwrap_or(0))
}

fn month_counts(
    table: &impl ReadableTable<DayKey, DayValue>,
    account: AccountId,
    month: u64,
) -> Result<MonthCounts> {
    let days = Period::Month.days(clock::day(month));
    let days = Days {
        first: days.start,
        last: days.end.saturating_sub(1),
    };
    let mut counts = MonthCounts::new();
    each_row(table, account, days, |_, token, _, (conversions, ..)| {
        for token in [None, Some(token)] {
            let count = counts.entry(token).or_default();
            *count = conversions.saturating_add(*count);
        }
        Ok(())
    })?;
    Ok(counts)
}

fn day_sums((conversions, input_bytes, output_bytes, _): DayValue) -> UsageTotals {
    columns::totals((conversions, input_bytes, output_bytes))
}

/// The tables of histories and sums, open for writing.
pub struct UsageTables<'t> {
    history: Table<'t, (u64, u64), Value>,
    blocks: Table<'t, (u64, u64), blocks::Value>,
    removed: Table<'t, u64, TotalColumns>,
    days: Table<'t, DayKey, DayValue>,
    /// The conversions by account and month, as far as this transaction has needed them: the days
    /// of a month are read once, however many of its conversions one transaction records.
    months: HashMap<(AccountId, u64), MonthCounts>,
}

impl<'t> UsageTables<'t> {
    /// Opens the tables, and makes them if they are missing.
    pub fn open(write: &'t WriteTransaction) -> Result<UsageTables<'t>> {
        Ok(UsageTables {
            history: write.open_table(HISTORY)?,
            blocks: write.open_table(HISTORY_BLOCKS)?,
            removed: write.open_table(HISTORY_REMOVED)?,
            days: write.open_table(USAGE_DAYS)?,
            months: HashMap::new(),
        })
    }

    /// Adds an entry to the history of an account, which must exist, unless the month of its time
    /// is full. Returns the outcome of [`crate::store::engine::Command::RecordUsage`].
    pub fn record(
        &mut self,
        account: AccountId,
        entry: &UsageEntry,
        quotas: MonthlyQuotas,
    ) -> Result<Outcome> {
        let time = clock::to_milliseconds(entry.time);
        let (month, _) = clock::month(time);
        let counts = match self.months.entry((account, month)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(month_counts(&self.days, account, month)?),
        };
        let [of_account, by_token] = [None, Some(entry.token)].map(|token| {
            counts
                .get(&token)
                .map_or(1, |count| count.saturating_add(1))
        });
        if let Some(of_token) = quotas.exceeded([of_account, by_token]) {
            return Ok(Outcome::QuotaExceeded { of_token });
        }
        counts.extend([(None, of_account), (Some(entry.token), by_token)]);
        let (removed, ..) = self.removed_of(account)?;
        let last = last_sequence(&self.history, account, removed)?;
        self.insert(account, last + 1, entry)?;
        let key = (account.0, clock::day(time), entry.token.0, &*entry.format);
        let day = self.days.get(key)?.map(|value| value.value());
        let (conversions, input, output, last_used) = day.unwrap_or_default();
        let (conversions, input, output) = with((conversions, input, output), entry);
        let day = (conversions, input, output, time.max(last_used));
        self.days.insert(key, day)?;
        Ok(Outcome::Recorded {
            month,
            conversions: of_account,
            by_token,
        })
    }

    fn removed_of(&self, account: AccountId) -> Result<TotalColumns> {
        let row = self.removed.get(account.0)?;
        Ok(row.map_or_else(Default::default, |row| row.value()))
    }

    /// Writes an entry of a history, and counts nothing.
    pub fn insert(&mut self, account: AccountId, sequence: u64, entry: &UsageEntry) -> Result<()> {
        self.history
            .insert((account.0, sequence), columns::of_entry(entry))?;
        blocks::add(&mut self.blocks, account, sequence, entry)
    }

    /// Removes entries of an account from before this time, the oldest first, at most `limit`, up
    /// to the first one that is not from before it. Sums stay. Returns the number of entries that
    /// were removed.
    pub fn remove_before(&mut self, account: AccountId, time: u64, limit: usize) -> Result<usize> {
        let id = account.0;
        let mut removed = self.removed_of(account)?;
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
            removed = with(removed, &entry);
            debug_assert_eq!(removed.0, key.value().1, "a gap");
            count += 1;
        }
        if count > 0 {
            let (last, ..) = removed;
            self.history.retain_in((id, 0)..=(id, last), |_, _| false)?;
            let ended = (id, 0)..(id, blocks::block_of(last + 1));
            self.blocks.retain_in(ended, |_, _| false)?;
            self.removed.insert(id, removed)?;
        }
        Ok(count)
    }

    /// Writes the sums over the entries that were removed from an account's history.
    pub fn load_removed(&mut self, account: AccountId, removed: UsageTotals) -> Result<()> {
        self.removed
            .insert(account.0, columns::of_totals(removed))?;
        Ok(())
    }

    /// Writes sums of an account by day, token and format, with the latest time of a conversion.
    pub fn load_day(&mut self, account: AccountId, day: &UsageDay, last_used: u64) -> Result<()> {
        let key = (account.0, day.day, day.token.0, &*day.format);
        let (conversions, input, output) = columns::of_totals(day.totals);
        self.days
            .insert(key, (conversions, input, output, last_used))?;
        Ok(())
    }

    /// Removes an account's history.
    pub fn delete_all_of(&mut self, account: AccountId) -> Result<()> {
        let id = account.0;
        let all = (id, 0)..=(id, u64::MAX);
        self.history.retain_in(all.clone(), |_, _| false)?;
        self.blocks.retain_in(all, |_, _| false)?;
        self.removed.remove(id)?;
        self.months.retain(|(owner, _), _| *owner != account);
        self.days
            .retain_in((id, 0, 0, "")..=(id, u32::MAX, u32::MAX, LAST), |_, _| {
                false
            })?;
        Ok(())
    }
}

/// The entry of a row of `history`.
pub fn entry(value: EntryColumns<'_>) -> Result<UsageEntry> {
    let missing = || redb::Error::Corrupted(format!("there is no watermark kind {}", value.8));
    columns::entry(value).ok_or_else(missing)
}

/// The sums with an entry more.
fn with(
    (conversions, input_bytes, output_bytes): TotalColumns,
    entry: &UsageEntry,
) -> TotalColumns {
    (
        conversions.saturating_add(1),
        input_bytes.saturating_add(entry.input_bytes),
        output_bytes.saturating_add(entry.output_bytes),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::redb::Database;
    use crate::store::request_id::RequestId;
    use crate::store::tests::{self, Folder};
    use crate::store::usage::WatermarkKind;
    use redb::ReadableTableMetadata;

    #[test]
    fn a_block_leaves_with_its_last_entry() {
        let folder = Folder::new();
        let database = Database::open(&folder.path().join("towebp.redb")).unwrap();
        let account = AccountId(1);
        let left = database
            .write(|write| {
                let mut tables = UsageTables::open(write)?;
                for sequence in 1..=1030 {
                    tables.insert(account, sequence, &tests::entry(sequence))?;
                }
                let mut left = Vec::new();
                for sequence in [1, 1023, 1024, 1025] {
                    let time = clock::to_milliseconds(tests::entry(sequence).time);
                    let removed = tables.remove_before(account, time, usize::MAX)?;
                    left.push((removed, tables.blocks.len()?));
                }
                Ok(left)
            })
            .unwrap();
        assert_eq!(left, [(0, 2), (1022, 2), (1, 1), (1, 1)]);
    }

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
            &9_u128.to_le_bytes(),         // request
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
            request: RequestId(9),
        };
        let value = columns::of_entry(&entry);
        assert_eq!(<Value as redb::Value>::as_bytes(&value), drawn.concat());
        assert_eq!(super::entry(value).unwrap(), entry);
    }
}
