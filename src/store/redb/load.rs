//! Fills a new database from rows that belong to no engine ([`crate::store::rows`]).
//!
//! Rows are collected and written in commits of some megabytes, so that memory stays flat however
//! long the histories are. What follows from the rows (totals, counts by month, sums by token,
//! blocks of histories) is made anew. The format's number is written with the last commit: without
//! it, no towebp opens the file.

use std::collections::BTreeMap;

use redb::WriteTransaction;

use super::accounts::AccountTables;
use super::failures::FailureTable;
use super::invites::InviteTable;
use super::meta::{self, FORMAT};
use super::sessions::SessionTables;
use super::tokens::TokenTables;
use super::usage::UsageTables;
use crate::auth::AccountId;
use crate::store::clock;
use crate::store::error::StoreError;
use crate::store::rows::Row;
use crate::store::token_number::TokenNumber;
use crate::store::usage::{UsageDay, UsageEntry, UsageTotals};

/// From this many bytes of rows on, a commit is made. It bounds the memory.
const BATCH_BYTES: usize = 4 << 20;

/// Writes rows, in their order, into a new database.
pub struct Loader {
    redb: redb::Database,
    rows: Vec<Row>,
    bytes: usize,
    state: State,
}

impl Loader {
    /// Fills this database, which has no tables.
    pub fn new(redb: redb::Database) -> Loader {
        Loader {
            redb,
            rows: Vec::new(),
            bytes: 0,
            state: State::default(),
        }
    }

    /// Takes the next row.
    ///
    /// # Errors
    /// The rows do not fit together, or the database cannot be written.
    pub fn add(&mut self, row: Row) -> Result<(), StoreError> {
        self.bytes += row.memory();
        self.rows.push(row);
        if self.bytes >= BATCH_BYTES {
            self.write(false)?;
        }
        Ok(())
    }

    /// Writes what is left. The database is complete then.
    ///
    /// # Errors
    /// As [`Loader::add`].
    pub fn finish(mut self) -> Result<(), StoreError> {
        self.write(true)
    }

    fn write(&mut self, is_end: bool) -> Result<(), StoreError> {
        self.bytes = 0;
        let rows = std::mem::take(&mut self.rows);
        let written = self.commit(rows, is_end);
        written.map_err(|fault| {
            StoreError::Failed(match fault {
                Fault::Database(error) => format!("the new database failed: {error}"),
                Fault::Rows(sentence) => sentence,
            })
        })
    }

    fn commit(&mut self, rows: Vec<Row>, is_end: bool) -> Result<(), Fault> {
        let write = self.redb.begin_write().map_err(redb::Error::from)?;
        let mut tables = LoadTables::open(&write)?;
        for row in rows {
            self.state.write(row, &mut tables)?;
        }
        if is_end {
            self.state.end(&mut tables)?;
        }
        drop(tables);
        if is_end {
            meta::set_format(&write, FORMAT)?;
            if let Some(mark) = self.state.secret_mark {
                meta::set_secret_mark(&write, mark)?;
            }
        }
        Ok(write.commit().map_err(redb::Error::from)?)
    }
}

/// Why rows are not written.
enum Fault {
    Database(redb::Error),
    /// They do not fit together: a sentence.
    Rows(String),
}

impl From<redb::Error> for Fault {
    fn from(error: redb::Error) -> Fault {
        Fault::Database(error)
    }
}

/// The tables that rows go to, open for writing.
struct LoadTables<'t> {
    accounts: AccountTables<'t>,
    tokens: TokenTables<'t>,
    usage: UsageTables<'t>,
    failures: FailureTable<'t>,
    invites: InviteTable<'t>,
}

impl<'t> LoadTables<'t> {
    /// Opens the tables, and makes all that a database has.
    fn open(write: &'t WriteTransaction) -> Result<LoadTables<'t>, redb::Error> {
        drop(SessionTables::open(write)?);
        Ok(LoadTables {
            accounts: AccountTables::open(write)?,
            tokens: TokenTables::open(write)?,
            usage: UsageTables::open(write)?,
            failures: FailureTable::open(write)?,
            invites: InviteTable::open(write)?,
        })
    }
}

/// What is known of the rows that were written.
#[derive(Default)]
struct State {
    secret_mark: Option<u64>,
    account: Option<Current>,
}

/// The account whose rows are being written.
struct Current {
    id: AccountId,
    /// The last sequence number given in its history.
    sequence: u64,
    /// The sums over the entries, with those that were removed.
    history: UsageTotals,
    /// The sums over all days.
    totals: UsageTotals,
    /// The conversions by month.
    months: BTreeMap<u64, u64>,
    /// The sums and the time of the last conversion by token.
    tokens: BTreeMap<TokenNumber, (UsageTotals, u64)>,
    /// The last sequence number given of a failure.
    failures: u64,
}

impl Current {
    fn new(id: AccountId) -> Current {
        Current {
            id,
            sequence: 0,
            history: UsageTotals::default(),
            totals: UsageTotals::default(),
            months: BTreeMap::new(),
            tokens: BTreeMap::new(),
            failures: 0,
        }
    }

    fn add_day(&mut self, day: &UsageDay) {
        self.totals += day.totals;
        let time = u64::from(day.day) * clock::DAY;
        let month = self.months.entry(clock::month(time).0).or_default();
        *month = month.saturating_add(day.totals.conversions);
        let (totals, last) = self.tokens.entry(day.token).or_default();
        *totals += day.totals;
        *last = time;
    }

    fn add_entry(&mut self, entry: &UsageEntry) {
        self.history += UsageTotals {
            conversions: 1,
            input_bytes: entry.input_bytes,
            output_bytes: entry.output_bytes,
        };
        self.set_last_use(entry.token, clock::to_milliseconds(entry.time));
    }

    /// The last conversion is the last one of the history, or what a row tells if that one was
    /// removed.
    fn set_last_use(&mut self, token: TokenNumber, time: u64) {
        if let Some((_, last)) = self.tokens.get_mut(&token) {
            *last = time;
        }
    }

    /// Writes what follows from the account's rows.
    fn end(self, tables: &mut LoadTables<'_>) -> Result<(), Fault> {
        let Current {
            id,
            history,
            totals,
            months,
            tokens,
            ..
        } = self;
        if history != totals {
            return Err(Fault::Rows(format!(
                "the history of account {} and its sums by day differ ({history:?} and {totals:?}): \
                 towebp check tells more",
                id.0
            )));
        }
        if totals != UsageTotals::default() {
            tables.usage.load_sums(id, totals, &months, &tokens)?;
        }
        Ok(())
    }
}

impl State {
    fn write(&mut self, row: Row, tables: &mut LoadTables<'_>) -> Result<(), Fault> {
        match row {
            Row::Store {
                last_account,
                secret_mark,
            } => {
                self.secret_mark = secret_mark;
                if last_account > 0 {
                    tables.accounts.load_last(last_account)?;
                }
                return Ok(());
            }
            Row::Invite { code, end } => return Ok(tables.invites.load(&code, end)?),
            Row::Account(account) => {
                self.end(tables)?;
                if !tables.accounts.load(&account)? {
                    return Err(Fault::Rows(format!(
                        "there are two accounts {} or {}",
                        account.id.0, account.email
                    )));
                }
                self.account = Some(Current::new(account.id));
                return Ok(());
            }
            _ => {}
        }
        let Some(current) = &mut self.account else {
            return Err(Fault::Rows("rows came before their account".to_owned()));
        };
        let id = current.id;
        match row {
            Row::Token { token, deleted } => {
                tables.tokens.put_with(id, &token, deleted.unwrap_or(0))?;
            }
            Row::Restrictions(restrictions) => tables.tokens.restrict(id, restrictions)?,
            Row::Removed(removed) => {
                current.history = removed;
                current.sequence = removed.conversions;
                tables.usage.load_removed(id, removed)?;
            }
            Row::Day(day) => {
                current.add_day(&day);
                tables.usage.load_day(id, &day)?;
            }
            Row::LastUse { token, time } => current.set_last_use(token, time),
            Row::Entry(entry) => {
                current.add_entry(&entry);
                current.sequence += 1;
                tables.usage.insert(id, current.sequence, &entry)?;
            }
            Row::Failure(failure) => {
                current.failures += 1;
                tables.failures.load(id, current.failures, &failure)?;
            }
            Row::Store { .. } | Row::Invite { .. } | Row::Account(_) => {
                unreachable!("it was written above")
            }
        }
        Ok(())
    }

    fn end(&mut self, tables: &mut LoadTables<'_>) -> Result<(), Fault> {
        self.account.take().map_or(Ok(()), |it| it.end(tables))
    }
}
