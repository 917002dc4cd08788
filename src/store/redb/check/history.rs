//! Histories and failures: each history against the sums in the other tables.

use std::collections::BTreeMap;

use redb::{ReadableTable, ReadableTableMetadata};

use super::Check;
use crate::auth::AccountId;
use crate::store::clock;
use crate::store::redb::accounts::ACCOUNTS;
use crate::store::redb::blocks::{self, HISTORY_BLOCKS};
use crate::store::redb::failures::FAILURES;
use crate::store::redb::usage::{
    self, HISTORY, HISTORY_REMOVED, Sums, USAGE_DAYS, USAGE_MONTHS, USAGE_TOKENS, USAGE_TOTALS,
    ValueRef,
};
use crate::store::token_number::TokenNumber;

/// What the entries of one account's history add up to.
#[derive(Default)]
struct History {
    account: u64,
    /// The number of the last entry that was read.
    last: u64,
    /// The entries that were removed.
    removed: Sums,
    /// Over all entries, with those that were removed.
    totals: Sums,
    /// Over the entries that are there.
    months: BTreeMap<u64, u64>,
    /// Sums over the entries that are there, and the time of the last one, by token.
    tokens: BTreeMap<u32, (Sums, u64)>,
    /// Sums over the entries that are there by day, token and format.
    days: BTreeMap<(u32, u32, String), Sums>,
}

impl History {
    fn begin(account: u64, removed: Sums) -> History {
        History {
            account,
            last: removed.0,
            removed,
            totals: removed,
            ..History::default()
        }
    }

    fn add(&mut self, value: ValueRef<'_>) {
        let (time, input, output, _, _, _, token, _, _, format) = value;
        let one = (1, input, output);
        add(&mut self.totals, one);
        *self.months.entry(clock::month(time).0).or_default() += 1;
        let (by_token, last) = self.tokens.entry(token).or_default();
        add(by_token, one);
        *last = time;
        let key = (clock::day(time), token, format.to_owned());
        add(self.days.entry(key).or_default(), one);
    }

    /// Whether stored sums are right: the same as those of the entries, or, if some of them were
    /// removed, at least the same.
    fn agrees<K: Ord, V: PartialOrd>(
        &self,
        stored: &BTreeMap<K, V>,
        counted: &BTreeMap<K, V>,
    ) -> bool {
        if self.removed.0 == 0 {
            return stored == counted;
        }
        counted
            .iter()
            .all(|(key, counted)| stored.get(key).is_some_and(|stored| stored >= counted))
    }
}

fn add(sums: &mut Sums, more: Sums) {
    sums.0 = sums.0.saturating_add(more.0);
    sums.1 = sums.1.saturating_add(more.1);
    sums.2 = sums.2.saturating_add(more.2);
}

impl Check<'_> {
    pub(super) fn history(&mut self) -> Result<(), redb::Error> {
        let table = self.read.open_table(HISTORY)?;
        let block_rows = self.read.open_table(HISTORY_BLOCKS)?;
        self.findings.entries = table.len()?;
        let mut history = History::default();
        let mut block = None;
        for row in table.iter()? {
            let (key, value) = row?;
            let ((account, sequence), value) = (key.value(), value.value());
            if account != history.account {
                let removed = usage::removed(self.read, AccountId(account))?;
                let next = History::begin(account, removed);
                self.compare(&std::mem::replace(&mut history, next))?;
            }
            if sequence != history.last + 1 {
                let gap = format!("account {account}: {sequence} after {}", history.last);
                self.fault("gaps in a history", gap);
            }
            history.last = sequence;
            history.add(value);
            let entry = || format!("account {account}: {sequence}");
            if usage::entry(value).is_err() {
                self.fault("history entries that cannot be read", entry());
            }
            let key = (account, blocks::block_of(sequence));
            if block.as_ref().is_none_or(|(of, _)| *of != key) {
                block = Some((key, block_rows.get(key)?));
            }
            let row = block.as_ref().and_then(|(_, row)| row.as_ref());
            let (day, token, format) = (clock::day(value.0), TokenNumber(value.6), value.9);
            if !row.is_some_and(|row| blocks::tells_of(row.value(), day, token, format)) {
                self.fault("history entries that no block tells of", entry());
            }
        }
        self.compare(&history)
    }

    /// Compares an account's history, if it has one, with its sums in the other tables.
    fn compare(&mut self, history: &History) -> Result<(), redb::Error> {
        let id = history.account;
        if history.last == 0 {
            return Ok(());
        }
        if self.read.open_table(ACCOUNTS)?.get(id)?.is_none() {
            self.fault("histories without an account", id.to_string());
        }
        let totals = self.read.open_table(USAGE_TOTALS)?.get(id)?;
        let totals = totals.map_or_else(Default::default, |row| row.value());
        if totals != history.totals {
            let differ = format!("account {id}: {totals:?} for {:?}", history.totals);
            self.fault("totals that differ from the history", differ);
        }
        let months = self.stored_months(id)?;
        if !history.agrees(&months, &history.months) {
            let differ = format!("account {id}: {months:?} for {:?}", history.months);
            self.fault("monthly counts that differ from the history", differ);
        }
        let tokens = self.stored_tokens(id)?;
        if !history.agrees(&tokens, &history.tokens) {
            self.fault("sums by token that differ from the history", id.to_string());
        }
        let days = self.stored_days(id)?;
        if !history.agrees(&days, &history.days) {
            self.fault("sums by day that differ from the history", id.to_string());
        }
        if history.removed.0 > 0 {
            self.compare_sums(id, totals, &months, &tokens, &days);
        }
        Ok(())
    }

    /// Compares the sums of an account with each other.
    fn compare_sums(
        &mut self,
        id: u64,
        totals: Sums,
        months: &BTreeMap<u64, u64>,
        tokens: &BTreeMap<u32, (Sums, u64)>,
        days: &BTreeMap<(u32, u32, String), Sums>,
    ) {
        let (mut of_days, mut of_months) = (Sums::default(), BTreeMap::<u64, u64>::new());
        let mut of_tokens = BTreeMap::<u32, Sums>::new();
        for ((day, token, _), sums) in days {
            add(&mut of_days, *sums);
            let month = clock::month(u64::from(*day) * clock::DAY).0;
            *of_months.entry(month).or_default() += sums.0;
            add(of_tokens.entry(*token).or_default(), *sums);
        }
        let mut by_token = tokens.iter().map(|(token, (sums, _))| (token, sums));
        if of_days != totals || of_months != *months || !by_token.by_ref().eq(&of_tokens) {
            self.fault("sums that differ from each other", id.to_string());
        }
    }

    fn stored_months(&self, id: u64) -> Result<BTreeMap<u64, u64>, redb::Error> {
        let table = self.read.open_table(USAGE_MONTHS)?;
        let rows = table.range((id, 0)..=(id, u64::MAX))?;
        rows.map(|row| {
            let (key, count) = row?;
            Ok((key.value().1, count.value()))
        })
        .collect()
    }

    fn stored_tokens(&self, id: u64) -> Result<BTreeMap<u32, (Sums, u64)>, redb::Error> {
        let table = self.read.open_table(USAGE_TOKENS)?;
        let rows = table.range((id, 0)..=(id, u32::MAX))?;
        rows.map(|row| {
            let (key, value) = row?;
            let (conversions, input, output, last, ..) = value.value();
            Ok((key.value().1, ((conversions, input, output), last)))
        })
        .collect()
    }

    fn stored_days(&self, id: u64) -> Result<BTreeMap<(u32, u32, String), Sums>, redb::Error> {
        let table = self.read.open_table(USAGE_DAYS)?;
        let mut days = BTreeMap::new();
        for row in table.range((id, 0, 0, "")..)? {
            let (key, value) = row?;
            let (account, day, token, format) = key.value();
            if account != id {
                break;
            }
            days.insert((day, token, format.to_owned()), value.value());
        }
        Ok(days)
    }

    /// Sums, and rows about histories, of accounts that have none. A history of which all entries
    /// were removed is compared here.
    pub(super) fn sums_without_history(&mut self) -> Result<(), redb::Error> {
        let history = self.read.open_table(HISTORY)?;
        let has_history = |id: u64| -> Result<bool, redb::Error> {
            Ok(history.range((id, 0)..=(id, u64::MAX))?.next().is_some())
        };
        for row in self.read.open_table(HISTORY_REMOVED)?.iter()? {
            let (id, removed) = row?;
            let (id, removed) = (id.value(), removed.value());
            if !has_history(id)? {
                self.compare(&History::begin(id, removed))?;
            }
        }
        let had_history = |id: u64| -> Result<bool, redb::Error> {
            Ok(has_history(id)? || usage::removed(self.read, AccountId(id))?.0 > 0)
        };
        for row in self.read.open_table(USAGE_TOTALS)?.iter()? {
            let id = row?.0.value();
            if !had_history(id)? {
                self.fault("totals without a history", id.to_string());
            }
        }
        for row in self.read.open_table(USAGE_MONTHS)?.iter()? {
            let (id, month) = row?.0.value();
            if !had_history(id)? {
                let name = format!("account {id}: {month}");
                self.fault("monthly counts without a history", name);
            }
        }
        for row in self.read.open_table(USAGE_TOKENS)?.iter()? {
            let (id, token) = row?.0.value();
            if !had_history(id)? {
                let name = format!("account {id}: {token}");
                self.fault("sums by token without a history", name);
            }
        }
        for row in self.read.open_table(USAGE_DAYS)?.iter()? {
            let row = row?;
            let (id, day, ..) = row.0.value();
            if !had_history(id)? {
                let name = format!("account {id}: {day}");
                self.fault("sums by day without a history", name);
            }
        }
        for row in self.read.open_table(HISTORY_BLOCKS)?.iter()? {
            let (id, block) = row?.0.value();
            let last = blocks::first_of(block + 1) - 1;
            let entries = (id, blocks::first_of(block))..=(id, last);
            if history.range(entries)?.next().is_some() {
                continue;
            }
            // The block in which the next entry will be keeps its row when all before it are
            // removed.
            let (removed, ..) = usage::removed(self.read, AccountId(id))?;
            if removed == 0 || block != blocks::block_of(removed + 1) {
                let name = format!("account {id}: {block}");
                self.fault("blocks without entries", name);
            }
        }
        Ok(())
    }

    pub(super) fn failures(&mut self) -> Result<(), redb::Error> {
        let accounts = self.read.open_table(ACCOUNTS)?;
        for row in self.read.open_table(FAILURES)?.iter()? {
            let (id, sequence) = row?.0.value();
            if accounts.get(id)?.is_none() {
                let name = format!("account {id}: {sequence}");
                self.fault("failures without an account", name);
            }
        }
        Ok(())
    }
}
