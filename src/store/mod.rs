//! Accounts, sessions and usage.
//!
//! [`Store`] is the facade. Below it, an engine stores the rows: `redb/` in one file, `postgres/`
//! in a database that several machines share ([`engine`] defines their interface). Reads go
//! straight to the engine. All writes go through one thread, which commits queued commands together
//! ([`writer`]). The event loop must not wait for a disk, so its data is in memory ([`known`],
//! [`availability`]).
//!
//! Tokens are not stored, but computed from the server's secret ([`crate::auth`], [`secret_file`]).

mod account;
mod apply;
mod availability;
mod check;
mod clock;
mod columns;
#[cfg(feature = "postgres")]
mod copy;
mod engine;
mod entry_id;
mod error;
mod failure;
mod filter;
mod folder;
mod janitor;
mod known;
pub(crate) mod monotonic;
#[cfg(not(feature = "postgres"))]
mod no_postgres;
#[cfg(feature = "postgres")]
mod postgres;
mod problems;
mod redb;
mod request_id;
mod rows;
mod second_factor;
mod secret_file;
mod session;
mod sessions;
mod sign_in;
mod token;
mod token_number;
mod tokens;
mod transfer;
mod usage;
mod writer;

use std::fs::{File, TryLockError};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

#[cfg(not(feature = "postgres"))]
pub use self::no_postgres::{PostgresSettings, open_postgres_snapshot};
#[cfg(feature = "postgres")]
pub use self::postgres::{PostgresEngine, PostgresSettings};
pub use self::redb::{Backup, check_file, database_path};
pub use crate::auth::AccountId;
pub use account::Account;
pub use clock::{from_milliseconds, to_milliseconds};
#[cfg(feature = "postgres")]
pub use copy::{Copied, CopyStep, copy_to_folder, copy_to_postgres};
pub use engine::{Findings, Snapshot};
pub use entry_id::{EntryId, Page};
pub use error::{
    ChangeTokenError, CreateAccountError, OpenError, OwnerError, RecordError, SignInError,
    StoreError, TokenError,
};
pub use failure::{Failure, FailureFilter, StatusFilter};
pub use filter::{FilterError, FilterTexts, USAGE_FORMATS, day_text, period_text};
pub(crate) use folder::rename_new;
pub use known::TokenCheck;
pub use request_id::RequestId;
pub use second_factor::NewSecondFactor;
pub use session::{Browser, ListedSession, MAX_BROWSER_NAME, MAX_SESSIONS, Session, SessionId};
pub use sign_in::SignIn;
pub use token::{
    ApiToken, Caller, Limits, MAX_NAME, MAX_OVERLAP, MAX_PRESET_BYTES, MAX_TOKENS, PreviousText,
    Restrictions, TokenSettings, TokenUsage, end_of_day, token_name,
};
pub use token_number::TokenNumber;
pub use transfer::{fill_backup, receive_backup, send};
pub use usage::{
    Days, Month, MonthlyQuotas, Period, UsageDay, UsageEntry, UsageFilter, UsageSum, UsageTotals,
    WatermarkKind, saved_percent,
};

use self::redb::{FileSnapshot, RedbEngine};
use crate::auth::{self, Code, CodeHash, Email, Password, Passwords, Secret, SignInThrottle};
use availability::Availability;
use clock::Clock;
use engine::{Command, Engine, Outcome, PageRange};
use error::Result;
use janitor::Janitor;
use known::KnownAccounts;
use writer::{Shared, Writer};

/// The most bytes that an open store takes: for the engine, the cache of accounts, and passwords
/// that are being hashed.
pub const MEMORY: u64 = (self::redb::MEMORY + known::MEMORY + auth::MEMORY) as u64;

/// How long an invitation is valid, in milliseconds: 14 days, since it may lie forgotten in a
/// mailbox.
const INVITE_LIFETIME: u64 = 14 * 24 * 60 * 60 * 1000;

/// With a shared engine, a change of tokens is in force after this time: then the cache entries of
/// all other processes have expired. The margin is for clocks: while they are being adjusted, those
/// of two machines differ by a thousandth, and timers of virtual machines may be late by some
/// milliseconds.
const IN_FORCE_AFTER: Duration = known::VALIDITY.saturating_add(Duration::from_millis(50));

/// Where the data is stored.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The data folder. It is made if it is missing, readable by its owner only. [`Store::open`]
    /// ignores it with `postgres`.
    pub data: PathBuf,
    /// The file of the server's secret, if not `DIR/secret`. If it is missing, it is made while
    /// there are no accounts. With `postgres` it must exist, since all servers have the same.
    pub secret_file: Option<PathBuf>,
    /// Whether the folder and the database may be writable by others than their owner. Otherwise
    /// such a folder is an error.
    pub allow_shared_data: bool,
    /// For how many days entries of histories are kept; `None`, the default, for ever. Sums are
    /// kept for ever.
    pub history_keep: Option<NonZeroU32>,
    /// The database that several servers share, instead of a file in the data folder.
    pub postgres: Option<PostgresSettings>,
}

/// Metrics of a store.
#[derive(Clone, Debug)]
pub struct StoreMetrics {
    /// Whether the storage can be used, as far as memory knows.
    pub is_up: bool,
    /// The number of groups of commands sent to the engine since the start.
    pub groups: u64,
    /// The number of commands in them.
    pub commands: u64,
    /// [`Store::replicas`]
    pub replicas: u32,
    /// By how many milliseconds the store's clock is ahead of this machine's.
    pub clock_offset: i64,
    /// The faults that the engine has met, by class.
    pub faults: Vec<(&'static str, u64)>,
}

/// The lock of a data folder without a database file, which would have a lock of its own.
pub struct FolderLock {
    _file: File,
}

/// Makes and locks the data folder of a server whose store is elsewhere, since the server's sockets
/// are in the folder. Dropping the result unlocks it.
///
/// # Errors
/// [`OpenError::InUse`] if another server has it, or a sentence that names the folder.
pub fn lock_folder(settings: &Settings) -> Result<FolderLock, OpenError> {
    folder::create_private(&settings.data).map_err(OpenError::Failed)?;
    if !settings.allow_shared_data {
        folder::reject_shared(&settings.data, "data folder").map_err(OpenError::Failed)?;
    }
    let path = settings.data.join("lock");
    let failed = |error| OpenError::Failed(format!("{}: {error}", path.display()));
    let file = folder::open_private(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(FolderLock { _file: file }),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse(path)),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// The open store; share it by reference or `Arc`. Dropping it waits for the writes under way.
pub struct Store {
    // Declared in this order so that the janitor's last write is carried out, and the writer's
    // thread ends before the file is closed.
    janitor: Janitor,
    writer: Arc<Writer>,
    engine: Arc<dyn Engine>,
    /// [`Engine::is_shared`]
    is_shared: bool,
    /// [`Store::in_force_at`]
    in_force_at: Mutex<Option<Instant>>,
    known: Arc<KnownAccounts>,
    availability: Arc<Availability>,
    secret: Secret,
    passwords: Passwords,
    throttle: SignInThrottle,
    clock: Arc<Clock>,
}

/// The state of the database file of a data folder that no process has open.
///
/// # Errors
/// As [`Store::open`].
pub fn open_snapshot(data: &Path) -> Result<Box<dyn Snapshot>, OpenError> {
    Ok(Box::new(FileSnapshot::open(&database_path(data))?))
}

/// The state of a PostgreSQL, whatever servers use it.
///
/// # Errors
/// A sentence for the operator.
#[cfg(feature = "postgres")]
pub fn open_postgres_snapshot(settings: &PostgresSettings) -> Result<Box<dyn Snapshot>, OpenError> {
    postgres::open_snapshot(settings)
}

impl Store {
    /// Opens the store, and makes folder, database and secret on first use. Sessions that have
    /// ended are removed. A store that exists can be opened and read even if the disk is full.
    ///
    /// # Errors
    /// [`OpenError::InUse`] while another process (or another `Store`) has the database open.
    /// Otherwise a sentence that names the file: it cannot be read or written, another version of
    /// towebp made it, or the secret is missing although there are accounts.
    pub fn open(settings: &Settings) -> Result<Store, OpenError> {
        Store::open_with(settings, Clock::new(SystemTime::now))
    }

    fn open_with(settings: &Settings, clock: Clock) -> Result<Store, OpenError> {
        #[cfg(feature = "postgres")]
        if let Some(postgres) = &settings.postgres {
            let secret = shared_secret(settings)?;
            let engine = PostgresEngine::open(postgres)?;
            return Store::start_shared(Arc::new(engine), secret, clock, settings.history_keep);
        }
        folder::create_private(&settings.data).map_err(OpenError::Failed)?;
        let database = database_path(&settings.data);
        if !settings.allow_shared_data {
            folder::reject_shared(&settings.data, "data folder").map_err(OpenError::Failed)?;
            folder::reject_shared(&database, "database").map_err(OpenError::Failed)?;
        }
        let engine = RedbEngine::open(&database)?;
        let mut has_accounts = false;
        engine.each_access(1, &mut |_, _| has_accounts = true)?;
        let secret_file = settings
            .secret_file
            .clone()
            .unwrap_or_else(|| settings.data.join("secret"));
        let secret = secret_file::open(&secret_file, has_accounts).map_err(OpenError::Failed)?;
        let last_mark = engine.exchange_secret_mark(secret.mark())?;
        if has_accounts && last_mark.is_some_and(|last| last != secret.mark()) {
            log::warn!(
                "the secret in {} is not the one of the last time: tokens issued with that one are \
                 invalid",
                secret_file.display()
            );
        }
        Store::start(Arc::new(engine), secret, clock, settings.history_keep)
    }

    /// A store on an engine that other processes use, too, all of them with the same secret.
    #[cfg(any(test, feature = "postgres"))]
    fn start_shared(
        engine: Arc<dyn Engine>,
        secret: Secret,
        clock: Clock,
        history_keep: Option<NonZeroU32>,
    ) -> Result<Store, OpenError> {
        let first = engine.exchange_secret_mark(secret.mark())?;
        if first.is_some_and(|first| first != secret.mark()) {
            return Err(OpenError::Failed(
                "the secret of --secret-file is not the one that the other servers on this store \
                 have: take a copy of theirs"
                    .to_owned(),
            ));
        }
        Store::start(engine, secret, clock, history_keep)
    }

    /// A store on this engine.
    fn start(
        engine: Arc<dyn Engine>,
        secret: Secret,
        clock: Clock,
        history_keep: Option<NonZeroU32>,
    ) -> Result<Store, OpenError> {
        let known = Arc::new(KnownAccounts::load(&*engine)?);
        let availability = Arc::new(Availability::default());
        let is_shared = engine.is_shared();
        let writer = Writer::start(Shared {
            engine: Arc::clone(&engine),
            has_others: is_shared,
            known: Arc::clone(&known),
            availability: Arc::clone(&availability),
        })
        .map_err(OpenError::Failed)?;
        let clock = if is_shared {
            let engine = Arc::clone(&engine);
            clock.with_offset(move || engine.clock_offset())
        } else {
            clock
        };
        let (writer, clock) = (Arc::new(writer), Arc::new(clock));
        match writer.write(Command::SweepSessions { now: clock.now() }) {
            // The writer has logged it: a store that can only be read is useful too, and it may
            // become writable again.
            Ok(_) | Err(StoreError::Unavailable(_)) => {}
            Err(error) => return Err(OpenError::from(error)),
        }
        let janitor = Janitor::start(Arc::clone(&writer), Arc::clone(&clock), history_keep)
            .map_err(OpenError::Failed)?;
        Ok(Store {
            janitor,
            writer,
            engine,
            is_shared,
            in_force_at: Mutex::default(),
            known,
            availability,
            secret,
            passwords: Passwords::default(),
            throttle: SignInThrottle::default(),
            clock,
        })
    }

    /// Makes an account. `password: None` makes one that cannot sign in to the dashboard.
    ///
    /// # Errors
    /// The e-mail or the password is not acceptable, the e-mail is taken, or the store failed.
    pub fn create_account(
        &self,
        email: &str,
        password: Option<&str>,
    ) -> Result<Account, CreateAccountError> {
        self.make_account(email, password, None)
    }

    /// Makes an account by an invitation, which is used up. The invitation is checked first, so
    /// that nobody without one learns which accounts exist.
    ///
    /// # Errors
    /// As [`Store::create_account`], or the invitation is invalid. It stays valid after other
    /// errors.
    pub fn create_invited_account(
        &self,
        email: &str,
        password: &str,
        invite: &str,
    ) -> Result<Account, CreateAccountError> {
        let invite = Code::parse(invite.trim()).ok_or(CreateAccountError::Invite)?;
        self.make_account(email, Some(password), Some(invite.hash()))
    }

    /// Makes an invitation for one account, which is valid for 14 days. Returns its code: 43
    /// letters and digits.
    pub fn invite(&self) -> Result<String> {
        let code = Code::random()?;
        let now = self.clock.now();
        self.writer.write(Command::AddInvite {
            code: code.hash(),
            end: now.saturating_add(INVITE_LIFETIME),
            now,
        })?;
        Ok(code.as_str().to_owned())
    }

    fn make_account(
        &self,
        email: &str,
        password: Option<&str>,
        invite: Option<CodeHash>,
    ) -> Result<Account, CreateAccountError> {
        let email = Email::parse(email).map_err(CreateAccountError::Email)?;
        let password = password
            .map(Password::parse)
            .transpose()
            .map_err(CreateAccountError::Password)?;
        let created = self.clock.now();
        if let Some(code) = invite
            && self
                .read(|engine| engine.invite_end(&code))?
                .is_none_or(|end| end <= created)
        {
            return Err(CreateAccountError::Invite);
        }
        if self
            .read(|engine| engine.account_by_email(&email))?
            .is_some()
        {
            return Err(CreateAccountError::Exists);
        }
        let password_hash = password.map(|password| self.hash(&password)).transpose()?;
        self.writer
            .write(Command::CreateAccount {
                email,
                password_hash,
                created,
                invite,
            })?
            .account()
            .ok_or(CreateAccountError::Exists)
    }

    /// The account with this e-mail address, in any capitalization and with any blanks around it.
    /// `None` if there is none, or if the text is no e-mail address.
    pub fn account_by_email(&self, email: &str) -> Result<Option<Account>> {
        let Ok(email) = Email::parse(email) else {
            return Ok(None);
        };
        let account = self.read(|engine| engine.account_by_email(&email))?;
        Ok(account.map(Account::from))
    }

    /// All accounts, oldest first.
    pub fn accounts(&self) -> Result<Vec<Account>> {
        self.read(|engine| engine.accounts())
    }

    /// Deletes the account with its sessions and its history. Returns false if there is no such
    /// account.
    pub fn delete_account(&self, id: AccountId) -> Result<bool> {
        let deleted = self.write_in_force(Command::DeleteAccount(id))?;
        Ok(deleted.changed())
    }

    /// Whether the storage can be written, as far as memory knows. The event loop may call this.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] from a failed write on, until the storage can be written again.
    pub fn check_available(&self) -> Result<()> {
        self.availability.check()
    }

    /// Finds out whether the storage can be written, by a commit that removes sessions that have
    /// ended, or as the engine does if it is shared.
    ///
    /// # Errors
    /// The storage cannot be written.
    pub fn check_writable(&self) -> Result<()> {
        self.check_available()?;
        if self.is_shared {
            return self.read(|engine| engine.probe());
        }
        let now = self.clock.now();
        self.writer.write(Command::SweepSessions { now }).map(drop)
    }

    /// All rows at one moment.
    pub fn snapshot(&self) -> Result<Box<dyn Snapshot>> {
        let snapshot = self.engine.snapshot()?;
        let none = || StoreError::Failed("the storage engine has tools of its own for this".into());
        snapshot.ok_or_else(none)
    }

    /// [`Store::record_usage_within`] without quotas.
    ///
    /// # Errors
    /// There is no such account, or the store failed.
    pub fn record_usage(&self, id: AccountId, entry: &UsageEntry) -> Result<()> {
        let recorded = self.record_usage_within(id, entry, MonthlyQuotas::default());
        recorded.map_err(|error| match error {
            RecordError::Store(error) => error,
            RecordError::QuotaExceeded { .. } => StoreError::Failed(error.to_string()),
        })
    }

    /// Adds an entry to the account's history, unless the month of its time is full. Returns once
    /// the entry is durable.
    ///
    /// # Errors
    /// A quota is used up, there is no such account, or the store failed.
    pub fn record_usage_within(
        &self,
        id: AccountId,
        entry: &UsageEntry,
        quotas: MonthlyQuotas,
    ) -> Result<(), RecordError> {
        let outcome = self.writer.write(Command::RecordUsage {
            account: id,
            entry: entry.clone(),
            quotas,
        })?;
        match outcome {
            Outcome::QuotaExceeded { of_token } => Err(RecordError::QuotaExceeded { of_token }),
            outcome if outcome.changed() => Ok(()),
            _ => Err(RecordError::Store(StoreError::Failed(format!(
                "no usage recorded: account {} does not exist",
                id.0
            )))),
        }
    }

    /// At most `limit` entries of the account's history that pass the filter and have ids below
    /// `before`, newest first. The time does not depend on the length of the history: a page may
    /// have fewer entries, or none, and yet be followed by another.
    pub fn usage(
        &self,
        id: AccountId,
        filter: &UsageFilter,
        before: Option<EntryId>,
        limit: usize,
    ) -> Result<Page<UsageEntry>> {
        self.read(|engine| engine.usage_page(id, filter, PageRange { before, limit }))
    }

    /// Calls `each` with the sums over the conversions that pass the filter, by day, token and
    /// input format, oldest day first. Sums are kept even when entries are removed.
    pub fn usage_days(
        &self,
        id: AccountId,
        filter: &UsageFilter,
        each: &mut dyn FnMut(&UsageDay),
    ) -> Result<()> {
        self.read(|engine| {
            engine.usage_days(id, filter.days, &mut |day| {
                if filter.passes_kind(day.token, &day.format) {
                    each(&day);
                }
            })
        })
    }

    /// The sums over the conversions that pass the filter by day or by month, oldest first; those
    /// without conversions are left out. Sums are kept even when entries are removed.
    pub fn usage_sums(
        &self,
        id: AccountId,
        filter: &UsageFilter,
        period: Period,
    ) -> Result<Vec<UsageSum>> {
        let (mut sums, mut days) = (Vec::<UsageSum>::new(), 0..0);
        self.usage_days(id, filter, &mut |day| match sums.last_mut() {
            Some(sum) if days.contains(&day.day) => sum.totals += day.totals,
            _ => {
                days = period.days(day.day);
                sums.push(UsageSum {
                    first_day: days.start,
                    totals: day.totals,
                });
            }
        })?;
        Ok(sums)
    }

    /// Keeps a conversion that failed for a while. It is written within a second, unless the
    /// account or all accounts together have too many in it. The event loop may call this.
    pub fn record_failure(&self, id: AccountId, failure: Failure) {
        self.janitor.note(id, failure);
    }

    /// At most `limit` failed conversions of the account that pass the filter and have ids below
    /// `before`, newest first.
    pub fn failures(
        &self,
        id: AccountId,
        filter: &FailureFilter,
        before: Option<EntryId>,
        limit: usize,
    ) -> Result<Page<Failure>> {
        // Failures that cannot be written now are missing from the result.
        let _ = self.janitor.write_failures_of(id);
        self.read(|engine| engine.failures(id, filter, PageRange { before, limit }))
    }

    /// The conversions of the account, or by one of its tokens, in the month in which `now` lies.
    pub fn usage_in_month(
        &self,
        id: AccountId,
        token: Option<TokenNumber>,
        now: SystemTime,
    ) -> Result<Month> {
        if let Some(month) = self.known_usage_in_month(id, token, now) {
            return Ok(month);
        }
        let (start, end) = clock::month(clock::to_milliseconds(now));
        let queried = monotonic::now();
        let conversions = self.read(|engine| engine.usage_in_month(id, token, start))?;
        self.known.counted(id, token, start, conversions, queried);
        Ok(Month::new(start, end, conversions))
    }

    /// As [`Store::usage_in_month`], but `None` if it is not in memory. The event loop may call
    /// this.
    pub fn known_usage_in_month(
        &self,
        id: AccountId,
        token: Option<TokenNumber>,
        now: SystemTime,
    ) -> Option<Month> {
        let (start, end) = clock::month(clock::to_milliseconds(now));
        let conversions = self.known.month(id, token, start)?;
        Some(Month::new(start, end, conversions))
    }

    /// The sums over the account's whole history; zeros if there is no such account.
    pub fn usage_totals(&self, id: AccountId) -> Result<UsageTotals> {
        self.read(|engine| engine.usage_totals(id))
    }

    /// The store's metrics.
    pub fn metrics(&self) -> StoreMetrics {
        let (groups, commands) = self.writer.counts();
        StoreMetrics {
            is_up: self.check_available().is_ok(),
            groups,
            commands,
            replicas: self.replicas().get(),
            clock_offset: self.engine.clock_offset(),
            faults: self.engine.faults(),
        }
    }

    /// The present time, which is nearly the same for all processes on an engine that is shared.
    /// The event loop may call this.
    pub fn now(&self) -> SystemTime {
        self.clock.time()
    }

    /// How many processes serve from the engine, this one included. The event loop may call this.
    pub fn replicas(&self) -> NonZeroU32 {
        NonZeroU32::new(self.engine.replicas()).unwrap_or(NonZeroU32::MIN)
    }

    /// When the last change of tokens, or removal of an account, is in force in all processes that
    /// share the engine. Its caller is answered then. `None` if there was none, or if the engine is
    /// not shared.
    pub fn in_force_at(&self) -> Option<Instant> {
        // An instant is valid even if a thread has panicked.
        *self
            .in_force_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until [`Store::in_force_at`].
    pub fn wait_until_in_force(&self) {
        if let Some(at) = self.in_force_at() {
            thread::sleep(at.saturating_duration_since(monotonic::now()));
        }
    }

    /// Writes a command that changes data in the caches of other processes.
    fn write_in_force(&self, command: Command) -> Result<Outcome> {
        let outcome = self.writer.write(command)?;
        if self.is_shared && outcome.changed() {
            let at = monotonic::now() + IN_FORCE_AFTER;
            *self
                .in_force_at
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = Some(at);
        }
        Ok(outcome)
    }

    /// Queries the engine.
    fn read<T>(&self, query: impl FnOnce(&dyn Engine) -> Result<T>) -> Result<T> {
        query(&*self.engine).map_err(|error| match (error, self.availability.check()) {
            (StoreError::Unavailable(cause), Ok(())) if self.is_shared => {
                self.availability.failed(&cause);
                StoreError::Unavailable(cause)
            }
            // No write has failed yet, so this is not in the log, and the caller has to log it.
            (StoreError::Unavailable(cause), Ok(())) => StoreError::Failed(cause),
            (error, _) => error,
        })
    }
}

/// The secret that all servers of a shared store have.
#[cfg(feature = "postgres")]
fn shared_secret(settings: &Settings) -> Result<Secret, OpenError> {
    let file = settings.secret_file.as_ref().ok_or_else(|| {
        OpenError::Failed(
            "--store needs --secret-file, with a secret that is the same for all servers: towebp \
             secret >FILE makes one"
                .to_owned(),
        )
    })?;
    secret_file::read(file).map_err(OpenError::Failed)
}

#[cfg(test)]
pub(crate) mod tests;
