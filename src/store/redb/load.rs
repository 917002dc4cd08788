//! Fills a new database from the rows of any engine ([`crate::store::rows`]).
//!
//! Rows are collected and written in commits of some megabytes, so that the memory does not grow
//! with the histories. The blocks of histories follow from the rows and are made again. The number
//! of the format is written with the last commit; without it, no towebp opens the file.

use super::meta::{self, FORMAT};
use super::tables::{Tables, ready};
use crate::auth::AccountId;
use crate::store::apply::Transaction;
use crate::store::columns;
use crate::store::error::StoreError;
use crate::store::rows::Row;
use crate::store::usage::UsageTotals;

/// From this many bytes of rows on, a commit is made. It bounds the memory.
pub const BATCH_BYTES: usize = 4 << 20;

/// Writes rows, in their order, into a new database.
pub struct Loader {
    redb: redb::Database,
    rows: Vec<Row>,
    bytes: usize,
    batch_bytes: usize,
    state: State,
}

impl Loader {
    /// Fills this database, which has no tables, in commits of this many bytes.
    pub fn new(redb: redb::Database, batch_bytes: usize) -> Loader {
        Loader {
            redb,
            rows: Vec::new(),
            bytes: 0,
            batch_bytes,
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
        if self.bytes >= self.batch_bytes {
            self.write(false)?;
        }
        Ok(())
    }

    /// Writes the remaining rows. The database is complete then.
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
        let mut tables = Tables::open(&write)?;
        for row in rows {
            self.state.write(row, &mut tables)?;
        }
        if is_end {
            self.state.end()?;
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

/// The error of rows that are not written.
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

/// The state after the rows that were written.
#[derive(Default)]
struct State {
    secret_mark: Option<u64>,
    account: Option<Current>,
}

/// The account whose rows are being written.
#[derive(Default)]
struct Current {
    id: AccountId,
    /// The last sequence number given in its history.
    sequence: u64,
    /// The sums over the entries, with those that were removed.
    history: UsageTotals,
    /// The sums over all days.
    totals: UsageTotals,
    /// The last sequence number given of a failure.
    failures: u64,
}

impl Current {
    /// Compares the account's history with its sums by day.
    fn end(self) -> Result<(), Fault> {
        let Current {
            id,
            history,
            totals,
            ..
        } = self;
        if history != totals {
            return Err(Fault::Rows(format!(
                "the history of account {} and its sums by day differ ({history:?} and {totals:?}): \
                 towebp check tells more",
                id.0
            )));
        }
        Ok(())
    }
}

impl State {
    fn write(&mut self, row: Row, tables: &mut Tables<'_>) -> Result<(), Fault> {
        match (row, &mut self.account) {
            (
                Row::Store {
                    last_account,
                    secret_mark,
                },
                _,
            ) => {
                self.secret_mark = secret_mark;
                if last_account > 0 {
                    ready(tables.set_last_account(last_account))?;
                }
            }
            (Row::Invite { code, end }, _) => ready(tables.put_invite(&code, end))?,
            (Row::Account(account), _) => {
                self.end()?;
                if ready(tables.account(account.id))?.is_some()
                    || ready(tables.account_of(&account.email))?.is_some()
                {
                    return Err(Fault::Rows(format!(
                        "there are two accounts {} or {}",
                        account.id.0, account.email
                    )));
                }
                self.account = Some(Current {
                    id: account.id,
                    ..Current::default()
                });
                ready(tables.put_account(&account))?;
            }
            (Row::Token { token, deleted }, Some(Current { id, .. })) => {
                ready(tables.put_token(*id, &token, deleted))?;
            }
            (Row::Restrictions(restrictions), Some(Current { id, .. })) => {
                ready(tables.put_restrictions(*id, restrictions))?;
            }
            (Row::Removed(removed), Some(current)) => {
                current.history = removed;
                current.sequence = removed.conversions;
                tables.usage.load_removed(current.id, removed)?;
            }
            (Row::Day { day, last_used }, Some(current)) => {
                current.totals += day.totals;
                tables.usage.load_day(current.id, &day, last_used)?;
            }
            (Row::Entry(entry), Some(current)) => {
                current.history += UsageTotals::from(&entry);
                current.sequence += 1;
                tables.usage.insert(current.id, current.sequence, &entry)?;
            }
            (Row::Failure(failure), Some(current)) => {
                current.failures += 1;
                let key = (current.id.0, current.failures);
                let value = columns::of_failure(&failure);
                tables
                    .failures
                    .insert(key, value)
                    .map_err(redb::Error::from)?;
            }
            (_, None) => return Err(Fault::Rows("rows came before their account".to_owned())),
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Fault> {
        self.account.take().map_or(Ok(()), Current::end)
    }
}
