//! The engine that keeps everything in a PostgreSQL database, which several machines share.
//!
//! | file | contents |
//! |---|---|
//! | [`settings`] | the URL and the flags |
//! | [`connection`] | one connection: TLS, password, the state of a host |
//! | [`pool`] | queries: which host, which connection, timeouts, retries |
//! | [`fault`] | classes of errors |
//! | [`tables`], [`row`], [`cell`] | the tables with their columns, and rows as the program's
//! types | | [`schema`] | makes and checks the tables |
//! | [`record`] | conversions, in groups |
//! | [`transaction`], [`removal`] | the rows of all other changes |
//! | [`history`], [`tokens`] | pages and sums |
//! | [`heartbeat`] | which replicas live, and the clock |
//! | [`snapshot`] | all rows, at one moment |
//! | [`load`] | all rows of another store into an empty database |
//! | [`check`] | whether all rows fit together |
//!
//! Processes on this engine store nothing themselves. Every change is correct whatever other
//! processes do meanwhile: conversions are inserted with keys that are made before the first
//! attempt, and every other command is a serializable transaction. The engine uses no LISTEN, no
//! NOTIFY and no table locks, and its one prepared statement is optional, so it works through
//! poolers that give each transaction another connection.

mod cell;
mod check;
mod connection;
mod fault;
mod heartbeat;
mod history;
mod ids;
mod load;
mod pages;
mod pool;
mod record;
mod removal;
mod row;
mod schema;
mod settings;
mod snapshot;
mod tables;
mod tokens;
mod transaction;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use uuid::Uuid;

pub use settings::PostgresSettings;

use super::account::Account;
use super::apply::Transaction;
use super::clock;
use super::engine::{Command, Engine, Outcome, PageRange, SessionRecord, Snapshot};
use super::entry_id::Page;
use super::error::{OpenError, Result};
use super::failure::{Failure, FailureFilter};
use super::rows::AccountRow;
use super::session::StoredSession;
use super::token::{AccountAccess, TokenUsage};
use super::token_number::TokenNumber;
use super::usage::{Days, UsageDay, UsageEntry, UsageFilter, UsageTotals};
use crate::auth::{AccountId, CodeHash, Email, FailedAttempts, Wait};
use cell::{Fields, cells};
use connection::{Connector, Link};
use fault::{Class, Fault};
use ids::Ids;
use load::Loader;
use pool::{Pool, Purpose};
use record::Recorded;
use snapshot::PostgresSnapshot;
use transaction::SqlRows;

/// The least time for a group of commands, however long it has waited already.
const LEAST_TIME: Duration = Duration::from_millis(100);

/// The engine.
pub struct PostgresEngine {
    pool: Pool,
    ids: Ids,
    /// Identifies this process among those that share the database.
    replica: Uuid,
    replicas: Arc<AtomicU32>,
}

impl PostgresEngine {
    /// Connects, and makes the tables if there are none.
    ///
    /// # Errors
    /// A sentence for the operator: the settings contradict each other, nothing that takes writes
    /// answers within the timeout, the role, the password or a certificate is not accepted, or the
    /// tables are of another version.
    pub fn open(settings: &PostgresSettings) -> Result<PostgresEngine, OpenError> {
        PostgresEngine::open_at(settings, SystemTime::now)
    }

    /// As [`PostgresEngine::open`], on a machine with this clock.
    pub(super) fn open_at(
        settings: &PostgresSettings,
        now: fn() -> SystemTime,
    ) -> Result<PostgresEngine, OpenError> {
        let connector = Connector::new(settings.clone()).map_err(OpenError::Failed)?;
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|error| OpenError::Failed(format!("no randomness: {error}")))?;
        let replica = ids::key(0, 0, u64::from_be_bytes(random));
        let replicas = Arc::new(AtomicU32::new(1));
        let counted = Arc::clone(&replicas);
        let pool = Pool::open(connector, now, move |shared| {
            heartbeat::run(shared, replica, counted)
        })?;
        prepare(&pool, true)?;
        pool.query_at_start(schema::reject_copying)?;
        let living = pool.query(Purpose::Read, async |link: &Link| {
            heartbeat::beat(pool.shared(), link, replica).await
        })?;
        replicas.store(living, Ordering::Relaxed);
        Ok(PostgresEngine {
            pool,
            ids: Ids::default(),
            replica,
            replicas,
        })
    }

    fn read<T>(&self, query: impl AsyncFn(&Link) -> Result<T, Fault>) -> Result<T> {
        self.pool.query(Purpose::Read, query)
    }

    /// Records conversions, and returns their outcomes in the same order.
    fn record(&self, commands: &[Command], deadline: Instant) -> Result<Vec<Outcome>> {
        let mut group = Vec::with_capacity(commands.len());
        for command in commands {
            if let Command::RecordUsage {
                account,
                entry,
                quotas,
            } = command
            {
                group.push(Recorded {
                    // Made once, so that retries have the same key.
                    id: self.ids.next(clock::to_milliseconds(entry.time))?,
                    account: *account,
                    entry,
                    quotas: *quotas,
                });
            }
        }
        self.pool
            .query_until(Purpose::Write, deadline, async |link: &Link| {
                record::record(link, self.replica, &group).await
            })
    }

    /// Carries out another command.
    fn carry_out(&self, command: &Command, deadline: Instant) -> Result<Outcome> {
        let mut keys = Vec::new();
        if let Command::RecordFailures { failures, .. } = command {
            for failure in failures {
                keys.push(self.ids.next(clock::to_milliseconds(failure.time))?);
            }
        }
        self.pool
            .query_until(Purpose::Write, deadline, async |link: &Link| {
                transaction::carry_out(link, command, &keys).await
            })
    }
}

/// Checks the tables, and makes them in an empty database if `may_make`.
fn prepare(pool: &Pool, may_make: bool) -> Result<()> {
    pool.query_at_start(async |link: &Link| schema::prepare(link, may_make).await)
}

/// The state of a database, for a tool that changes nothing.
///
/// # Errors
/// As [`PostgresEngine::open`], or the database has no tables.
pub fn open_snapshot(settings: &PostgresSettings) -> Result<Box<dyn Snapshot>, OpenError> {
    let pool = open_for_tool(settings, false)?;
    pool.query_at_start(schema::reject_copying)?;
    Ok(Box::new(PostgresSnapshot::on(pool)?))
}

/// As [`open_snapshot`], of a database that no server uses.
///
/// # Errors
/// As [`open_snapshot`], or a server uses it.
pub fn open_unused_snapshot(settings: &PostgresSettings) -> Result<Box<dyn Snapshot>, OpenError> {
    let pool = open_for_tool(settings, false)?;
    pool.query_at_start(schema::reject_copying)?;
    if load::is_in_use(&pool)? {
        let text = "servers run on the database that is copied from: stop them first";
        return Err(OpenError::Failed(text.to_owned()));
    }
    Ok(Box::new(PostgresSnapshot::on(pool)?))
}

/// A database that all rows of another store are written to.
pub struct CopyTarget(Pool);

impl CopyTarget {
    /// Connects, and makes the tables.
    ///
    /// # Errors
    /// As [`PostgresEngine::open`].
    pub fn open(settings: &PostgresSettings) -> Result<CopyTarget, OpenError> {
        open_for_tool(settings, true).map(CopyTarget)
    }

    /// Begins to write, or goes on with it. See [`Loader::begin`].
    ///
    /// # Errors
    /// As [`Loader::begin`].
    pub fn begin(&self, secret_mark: Option<u64>) -> Result<Loader<'_>> {
        Loader::begin(&self.0, secret_mark)
    }

    /// The present state.
    pub fn snapshot(&self) -> Result<Box<dyn Snapshot>> {
        Ok(Box::new(PostgresSnapshot::of(&self.0)?))
    }

    /// Lets servers use the database.
    pub fn complete(&self) -> Result<()> {
        load::complete(&self.0)
    }
}

/// Connects for a tool, which is no replica and takes no part in what they share.
fn open_for_tool(settings: &PostgresSettings, may_make: bool) -> Result<Pool, OpenError> {
    let connector = Connector::new(settings.clone()).map_err(OpenError::Failed)?;
    let pool = Pool::open(connector, SystemTime::now, async |_| ())?;
    prepare(&pool, may_make)?;
    Ok(pool)
}

impl Drop for PostgresEngine {
    fn drop(&mut self) {
        // Otherwise the other replicas count this one for half a minute more.
        let soon = Instant::now() + Duration::from_secs(1);
        let _ = self
            .pool
            .query_until(Purpose::Write, soon, async |link: &Link| {
                heartbeat::sign_off(link, self.replica).await
            });
    }
}

impl Engine for PostgresEngine {
    fn account(&self, id: AccountId) -> Result<Option<AccountRow>> {
        self.read(async |link: &Link| SqlRows::of(link).account(id).await)
    }

    fn account_by_email(&self, email: &Email) -> Result<Option<AccountRow>> {
        let sql = tables::ACCOUNTS.select("t.email = $1");
        self.read(async |link: &Link| link.first(&sql, cells![email.as_str()], row::account).await)
    }

    fn accounts(&self) -> Result<Vec<Account>> {
        let sql = tables::ACCOUNTS.select("TRUE ORDER BY t.id");
        let account = |row: &mut Fields<'_>| row::account(row).map(Account::from);
        self.read(async |link: &Link| link.all(&sql, &[], account).await)
    }

    fn access(&self, id: AccountId) -> Result<Option<AccountAccess>> {
        let access = self.read(async |link: &Link| SqlRows::of(link).access(id).await)?;
        // Each account has the token `default`, which cannot be deleted.
        Ok(Some(access).filter(|access| !access.tokens.is_empty()))
    }

    fn tokens(&self, account: AccountId) -> Result<Vec<TokenUsage>> {
        self.read(async |link: &Link| tokens::usage(link, account).await)
    }

    fn session(&self, cookie: &CodeHash) -> Result<Option<SessionRecord>> {
        let sql = format!(
            "SELECT {}, {} FROM sessions s JOIN accounts a ON a.id = s.account WHERE s.cookie = $1",
            tables::ACCOUNTS.columns("a"),
            tables::SESSIONS.columns("s")
        );
        let session = |row: &mut Fields<'_>| {
            Ok(SessionRecord {
                account: row::account(row)?,
                times: row::session(row)?.2.times,
            })
        };
        self.read(async |link: &Link| link.first(&sql, cells![*cookie], session).await)
    }

    fn sessions(&self, account: AccountId) -> Result<Vec<(CodeHash, StoredSession)>> {
        self.read(async |link: &Link| SqlRows::of(link).sessions(account).await)
    }

    fn invite_end(&self, code: &CodeHash) -> Result<Option<u64>> {
        self.read(async |link: &Link| SqlRows::of(link).invite_end(code).await)
    }

    fn usage_page(
        &self,
        account: AccountId,
        filter: &UsageFilter,
        range: PageRange,
    ) -> Result<Page<UsageEntry>> {
        self.read(async |link: &Link| history::page(link, account, filter, range).await)
    }

    fn usage_days(
        &self,
        account: AccountId,
        days: Days,
        each: &mut dyn FnMut(UsageDay),
    ) -> Result<()> {
        let days = self.read(async |link: &Link| history::days(link, account, days).await)?;
        days.into_iter().for_each(each);
        Ok(())
    }

    fn failures(
        &self,
        account: AccountId,
        filter: &FailureFilter,
        range: PageRange,
    ) -> Result<Page<Failure>> {
        self.read(async |link: &Link| history::failures(link, account, filter, range).await)
    }

    fn usage_totals(&self, account: AccountId) -> Result<UsageTotals> {
        self.read(async |link: &Link| history::totals(link, account).await)
    }

    fn usage_in_month(
        &self,
        account: AccountId,
        token: Option<TokenNumber>,
        month: u64,
    ) -> Result<u64> {
        self.read(async |link: &Link| record::usage_in_month(link, account, token, month).await)
    }

    fn exchange_secret_mark(&self, mark: u64) -> Result<Option<u64>> {
        // The column has 64 bits with a sign, so none is lost.
        let new = mark.cast_signed();
        let last = self.pool.query(Purpose::Write, async |link: &Link| {
            if schema::keep_number(link, "secret", new).await? {
                return Ok(None);
            }
            schema::number(link, "secret").await
        })?;
        Ok(last.map(i64::cast_unsigned))
    }

    fn apply(&self, commands: &[Command], since: Instant) -> Result<Vec<Outcome>> {
        let timeout = self.pool.settings().timeout;
        let deadline = (since + timeout).max(Instant::now() + LEAST_TIME);
        let is_usage = |command: &Command| matches!(command, Command::RecordUsage { .. });
        let mut outcomes = Vec::with_capacity(commands.len());
        for run in commands.chunk_by(|first, second| is_usage(first) && is_usage(second)) {
            match run {
                [command] if !is_usage(command) => {
                    outcomes.push(self.carry_out(command, deadline)?);
                }
                _ => outcomes.extend(self.record(run, deadline)?),
            }
        }
        Ok(outcomes)
    }

    fn probe(&self) -> Result<()> {
        let soon = Instant::now() + Duration::from_secs(1);
        self.pool
            .query_until(Purpose::Write, soon, async |link: &Link| {
                heartbeat::sign(link, self.replica).await
            })
    }

    fn snapshot(&self) -> Result<Option<Box<dyn Snapshot>>> {
        Ok(Some(Box::new(PostgresSnapshot::of(&self.pool)?)))
    }

    fn begin_attempt(&self, key: &[u8; 32], now: u64) -> Result<Option<Result<(), Wait>>> {
        let sql = "SELECT failures, last FROM attempts WHERE key = $1";
        let store = "INSERT INTO attempts (key, failures, last) VALUES ($1, $2, $3)
                     ON CONFLICT (key) DO UPDATE SET failures = excluded.failures,
                         last = excluded.last";
        self.read(async |link: &Link| {
            link.batch("BEGIN ISOLATION LEVEL SERIALIZABLE").await?;
            let attempts = |row: &mut Fields<'_>| {
                let (count, last) = row.read()?;
                Ok(FailedAttempts { count, last })
            };
            let attempts = link.first(sql, cells![*key], attempts).await?;
            let begun = FailedAttempts::next(attempts, now);
            if let Ok(next) = &begun {
                link.execute(store, cells![*key, next.count, next.last])
                    .await?;
            }
            // A retry would count one attempt more, which does no harm.
            link.batch("COMMIT").await?;
            Ok(Some(begun.map(drop)))
        })
    }

    fn forget_attempts(&self, key: &[u8; 32]) -> Result<()> {
        let sql = "DELETE FROM attempts WHERE key = $1";
        self.read(async |link: &Link| link.execute(sql, cells![*key]).await.map(drop))
    }

    fn clock_offset(&self) -> i64 {
        self.pool.shared().clock_offset.load(Ordering::Relaxed)
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn faults(&self) -> Vec<(&'static str, u64)> {
        let faults = Class::NAMES.into_iter().zip(&self.pool.shared().faults);
        let count = |(name, count): (_, &AtomicU64)| (name, count.load(Ordering::Relaxed));
        faults.map(count).collect()
    }

    fn replicas(&self) -> u32 {
        self.replicas.load(Ordering::Relaxed)
    }
}
