//! Fills an empty database from the rows of any engine ([`crate::store::rows`]).
//!
//! Rows are collected by table, and sent in groups of [`GROUP`]. All keys follow from the rows, so
//! that a group that is sent again changes nothing: an interrupted copy can be repeated.
//! Until it is complete, the number `copying` in `meta` keeps servers from the database.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::cell::{Columns, cells};
use super::connection::Link;
use super::fault::Fault;
use super::ids::{self, Keys};
use super::pool::{Pool, Purpose};
use super::record::{self, MonthCounts};
use super::row;
use super::schema;
use super::tables::{self, Conflict, Rows, Table};
use crate::auth::AccountId;
use crate::store::clock;
use crate::store::columns;
use crate::store::error::{Result, StoreError};
use crate::store::rows::Row;
use crate::store::usage::{DayKey, UsageDay, UsageEntry};

/// The rows of a statement.
const GROUP: usize = 1000;

/// The timeout for removing the rows, except histories, of an interrupted copy.
const CLEARING: Duration = Duration::from_mins(10);

/// The tables whose rows are few beside those of histories.
const SMALL_TABLES: [&str; 8] = [
    "accounts",
    "tokens",
    "restrictions",
    "invites",
    "usage_days",
    "usage_months",
    "usage_removed",
    "failures",
];

/// Writes rows, in their order, into a database.
pub struct Loader<'a> {
    pool: &'a Pool,
    tables: HashMap<&'static str, Rows>,
    account: Option<Current>,
}

impl Loader<'_> {
    /// Begins to fill this database with the rows of a store that has this mark of its secret.
    ///
    /// # Errors
    /// The database is used by a server, or holds something else than an earlier attempt to copy
    /// the same store; or it is unavailable.
    pub fn begin(pool: &Pool, secret_mark: Option<u64>) -> Result<Loader<'_>> {
        let mark = secret_mark.unwrap_or(0).cast_signed();
        let refused = |sentence: &str| Err(StoreError::Failed(sentence.to_owned()));
        let state = pool.query(Purpose::Write, async |link: &Link| state(link).await)?;
        if state.replicas > 0 {
            return refused("servers run on the database that is copied to: stop them first");
        }
        if state.copying.is_none() && state.has_rows {
            return refused(
                "the database that is copied to has accounts, and a copy needs an empty one",
            );
        }
        if state.copying.is_some_and(|copying| copying != mark) {
            return refused(
                "the database that is copied to holds a part of another store, whose copying was \
                 broken off: go on with that, or take an empty database",
            );
        }
        let deadline = Instant::now() + CLEARING;
        pool.query_until(Purpose::Write, deadline, async |link: &Link| {
            schema::set_number(link, schema::COPYING, mark).await?;
            for table in SMALL_TABLES {
                link.batch(&format!("DELETE FROM {table}")).await?;
            }
            Ok(())
        })?;
        Ok(Loader {
            pool,
            tables: HashMap::new(),
            account: None,
        })
    }

    /// Takes the next row.
    ///
    /// # Errors
    /// The rows are inconsistent, or the database is unavailable for longer than its timeout.
    pub fn add(&mut self, row: Row) -> Result<()> {
        match (row, &mut self.account) {
            (
                Row::Store {
                    last_account,
                    secret_mark,
                },
                _,
            ) => self.set_meta(last_account, secret_mark),
            (Row::Invite { code, end }, _) => self.push(&tables::INVITES, (code, end)),
            (Row::Account(account), _) => {
                self.end_account()?;
                self.account = Some(Current {
                    id: account.id,
                    ..Current::default()
                });
                self.push(&tables::ACCOUNTS, row::account_columns(&account))
            }
            (Row::Token { token, deleted }, Some(Current { id, .. })) => {
                let columns = row::token_columns(*id, &token, deleted);
                self.push(&tables::TOKENS, columns)
            }
            (Row::Restrictions(restrictions), Some(Current { id, .. })) => {
                let columns = row::restrictions_columns(*id, restrictions);
                self.push(&tables::RESTRICTIONS, columns)
            }
            (Row::Removed(totals), Some(current)) => {
                current.sequence = totals.conversions;
                let columns = (current.id, columns::of_totals(totals));
                self.push(&tables::REMOVED, columns)
            }
            (Row::Day { day, last_used }, Some(current)) => {
                record::count(&mut current.months, &day);
                let keys = [u64::MAX, 0];
                current.days.insert(day.key(), (day, last_used, keys));
                Ok(())
            }
            (Row::Entry(entry), Some(current)) => {
                let columns = row::entry_columns(current.id, current.add(&entry), &entry);
                self.push(&tables::USAGE, columns)
            }
            (Row::Failure(failure), Some(current)) => {
                current.failures += 1;
                let time = clock::to_milliseconds(failure.time);
                let key = current.failure_key.next(time, current.failures);
                let columns = row::failure_columns(current.id, key, &failure);
                self.push(&tables::FAILURES, columns)
            }
            (_, None) => {
                let sentence = "rows came before their account";
                Err(StoreError::Failed(sentence.to_owned()))
            }
        }
    }

    /// Writes the remaining rows.
    ///
    /// # Errors
    /// As [`Loader::add`].
    pub fn finish(mut self) -> Result<()> {
        self.end_account()?;
        for rows in self.tables.values_mut() {
            send(self.pool, rows)?;
        }
        Ok(())
    }

    fn set_meta(&self, last_account: u64, secret_mark: Option<u64>) -> Result<()> {
        self.pool.query(Purpose::Write, async |link: &Link| {
            if last_account > 0 {
                schema::set_number(link, "last_account", last_account).await?;
            }
            match secret_mark {
                Some(mark) => schema::set_number(link, "secret", mark.cast_signed()).await,
                None => Ok(()),
            }
        })
    }

    /// Writes the sums by day, whose keys are known now, and those by month, which follow from
    /// them.
    fn end_account(&mut self) -> Result<()> {
        let Some(Current {
            id, days, months, ..
        }) = self.account.take()
        else {
            return Ok(());
        };
        for (day, last_used, [first, last]) in days.into_values() {
            // Keys of removed entries are not known.
            let keys = [first.min(last), last];
            self.push(&tables::DAYS, row::day_columns(id, &day, last_used, keys))?;
        }
        for ((month, token), conversions) in months {
            self.push(&tables::MONTHS, (id, month, token, conversions))?;
        }
        Ok(())
    }

    fn push<'a>(&mut self, table: &'static Table, row: impl Columns<'a>) -> Result<()> {
        let rows = self.tables.entry(table.name);
        let rows = rows.or_insert_with(|| Rows::new(table));
        if let Some(number) = rows.push(row) {
            return Err(StoreError::Failed(format!(
                "the number {number} cannot be copied: PostgreSQL keeps those below 2^63"
            )));
        }
        if rows.len() == GROUP {
            send(self.pool, rows)?;
        }
        Ok(())
    }
}

/// Writes rows that are not there yet.
fn send(pool: &Pool, rows: &mut Rows) -> Result<()> {
    if rows.len() > 0 {
        pool.query(Purpose::Write, async |link: &Link| {
            rows.send(link, Conflict::Keep).await?;
            link.confirm()
        })?;
        rows.clear();
    }
    Ok(())
}

/// Lets servers use a database whose rows were compared with those that were copied.
pub fn complete(pool: &Pool) -> Result<()> {
    let sql = "DELETE FROM meta WHERE name = $1";
    pool.query(Purpose::Write, async |link: &Link| {
        link.execute(sql, cells![schema::COPYING]).await.map(drop)
    })
}

/// Whether servers have used the database within the last half minute.
pub fn is_in_use(pool: &Pool) -> Result<bool> {
    let state = pool.query(Purpose::Write, async |link: &Link| state(link).await)?;
    Ok(state.replicas > 0)
}

/// The state of the database that is the target of a copy.
struct State {
    /// The mark of the secret of the store whose copying was begun.
    copying: Option<i64>,
    has_rows: bool,
    /// The processes that have used it within the last half minute.
    replicas: i64,
}

async fn state(link: &Link) -> Result<State, Fault> {
    let sql = "SELECT EXISTS (SELECT 1 FROM accounts) OR EXISTS (SELECT 1 FROM usage)
                   OR EXISTS (SELECT 1 FROM invites),
                   (SELECT count(*) FROM replicas
                    WHERE seen > (extract(epoch FROM clock_timestamp()) * 1000)::INT8 - 30000)";
    let state = link.first(sql, &[], |row| Ok((row.get()?, row.read()?)));
    let (has_rows, replicas) = state.await?.unwrap_or((true, 0));
    Ok(State {
        copying: schema::number(link, schema::COPYING).await?,
        has_rows,
        replicas,
    })
}

/// The account whose rows are being written.
#[derive(Default)]
struct Current {
    id: AccountId,
    /// The last sequence number of its history, which counts removed entries too.
    sequence: u64,
    history_key: Keys,
    failures: u64,
    failure_key: Keys,
    /// The sums, the latest time, and the milliseconds in the first and in the last key, by day.
    days: BTreeMap<DayKey, (UsageDay, u64, [u64; 2])>,
    months: MonthCounts,
}

impl Current {
    /// Counts an entry of the history, and returns its key, which follows from the times and the
    /// numbers of the entries alone.
    fn add(&mut self, entry: &UsageEntry) -> Uuid {
        self.sequence += 1;
        let time = clock::to_milliseconds(entry.time);
        let key = self.history_key.next(time, self.sequence);
        if let Some((.., [first, last])) = self.days.get_mut(&entry.day_key()) {
            let milliseconds = ids::milliseconds(key);
            *first = milliseconds.min(*first);
            *last = milliseconds.max(*last);
        }
        key
    }
}
