//! Accounts, sessions and usage.
//!
//! [`Store`] is the one facade. Below it, an engine keeps the rows ([`engine`] says what it must
//! do); the program runs on the one in [`self::redb`]. Reads go straight to the engine. All writes
//! go through one thread, which has the engine commit what has queued up together ([`writer`]).
//! What the event loop asks, which must not wait for a disk, is kept in memory ([`known`],
//! [`availability`]).
//!
//! A token is never stored: it is computed from the server's secret ([`crate::auth`],
//! [`secret_file`]).

mod account;
mod availability;
mod clock;
mod engine;
mod error;
mod failure;
mod filter;
mod folder;
mod janitor;
mod known;
mod redb;
mod secret_file;
mod session;
mod sessions;
mod token;
mod token_number;
mod tokens;
mod usage;
mod writer;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

pub use self::redb::{Backup, check_file, database_path};
pub use crate::auth::AccountId;
pub use account::Account;
pub use clock::{from_milliseconds, to_milliseconds};
pub use engine::{Findings, Snapshot};
pub use error::{
    ChangeTokenError, CreateAccountError, OpenError, OwnerError, SetEmailError, SetPasswordError,
    SignInError, StoreError, TokenError,
};
pub use failure::{Failure, FailureFilter, FailurePage, StatusFilter};
pub use filter::{FilterError, FilterTexts, USAGE_FORMATS, period_text};
pub(crate) use folder::rename_new;
pub use known::TokenCheck;
pub use session::{Browser, ListedSession, MAX_BROWSER_NAME, MAX_SESSIONS, Session, SessionId};
pub use token::{
    ApiToken, Caller, Limits, MAX_NAME, MAX_OVERLAP, MAX_PRESET_BYTES, MAX_TOKENS, PreviousText,
    Restrictions, TokenSettings, TokenUsage, end_of_day, token_name,
};
pub use token_number::TokenNumber;
pub use usage::{
    Days, Month, Period, UsageEntry, UsageFilter, UsagePage, UsageSum, UsageTotals, WatermarkKind,
    saved_percent,
};

use self::redb::{FileSnapshot, RedbEngine};
use crate::auth::{
    self, Code, CodeHash, Email, Origin, Password, Passwords, Secret, SignInThrottle,
};
use account::AccountRecord;
use availability::Availability;
use clock::Clock;
use engine::{Command, Engine, Outcome};
use janitor::Janitor;
use known::KnownAccounts;
use writer::{Shared, Writer};

/// The most bytes that an open store takes: the engine's, what is known about accounts, and
/// passwords that are being hashed.
pub const MEMORY: u64 = (self::redb::MEMORY + known::MEMORY + auth::MEMORY) as u64;

/// How long an invitation is good, in milliseconds: 14 days, so that one that is forgotten in a
/// mailbox does not open an account forever.
const INVITE_LIFETIME: u64 = 14 * 24 * 60 * 60 * 1000;

/// Where the data is.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The data folder. It is made if it is missing, readable by its owner only.
    pub data: PathBuf,
    /// The file of the server's secret, if not `DIR/secret`. It is made if it is missing while
    /// there are no accounts.
    pub secret_file: Option<PathBuf>,
    /// Whether the folder and the database may be writable by others than their owner. If not, such
    /// a folder is an error.
    pub allow_shared_data: bool,
    /// For how many days entries of histories are kept; `None`, the default, for ever. Sums are
    /// kept for ever.
    pub history_keep: Option<NonZeroU32>,
}

/// The open store; share it by reference or `Arc`. Dropping it waits for the writes under way.
pub struct Store {
    // Declared in this order so that the janitor's last write is carried out, and the writer's
    // thread ends before the file is closed.
    janitor: Janitor,
    writer: Arc<Writer>,
    engine: Arc<dyn Engine>,
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

    /// A store on this engine.
    fn start(
        engine: Arc<dyn Engine>,
        secret: Secret,
        clock: Clock,
        history_keep: Option<NonZeroU32>,
    ) -> Result<Store, OpenError> {
        let known = Arc::new(KnownAccounts::load(&*engine)?);
        let availability = Arc::new(Availability::default());
        let writer = Writer::start(Shared {
            engine: Arc::clone(&engine),
            known: Arc::clone(&known),
            availability: Arc::clone(&availability),
        })
        .map_err(OpenError::Failed)?;
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

    /// Makes an account for somebody who was invited, and uses the invitation up. The invitation is
    /// checked first, so nobody learns without one which accounts exist.
    ///
    /// # Errors
    /// As [`Store::create_account`], or the invitation is not good. After any other error the
    /// invitation is still good.
    pub fn create_invited_account(
        &self,
        email: &str,
        password: &str,
        invite: &str,
    ) -> Result<Account, CreateAccountError> {
        let invite = Code::parse(invite.trim()).ok_or(CreateAccountError::Invite)?;
        self.make_account(email, Some(password), Some(invite.hash()))
    }

    /// Makes an invitation for one account, which is good for 14 days. Returns its code: 43 letters
    /// and digits.
    ///
    /// # Errors
    /// The store failed.
    pub fn invite(&self) -> Result<String, StoreError> {
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
        let password_hash = password
            .map(|password| self.passwords.hash(&password))
            .transpose()?;
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
    ///
    /// # Errors
    /// The store failed.
    pub fn account_by_email(&self, email: &str) -> Result<Option<Account>, StoreError> {
        let Ok(email) = Email::parse(email) else {
            return Ok(None);
        };
        Ok(self
            .read(|engine| engine.account_by_email(&email))?
            .map(|record| record.account))
    }

    /// All accounts, oldest first.
    ///
    /// # Errors
    /// The store failed.
    pub fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        self.read(|engine| engine.accounts())
    }

    /// Gives the account a password, whether it had one or not, and ends all its sessions. It is
    /// meant for the operator, who has to know that the account's owner is the one who asks. The
    /// wait after wrong passwords ends for unknown browsers.
    ///
    /// # Errors
    /// The password is not acceptable, there is no such account, or the store failed.
    pub fn set_password(&self, id: AccountId, password: &str) -> Result<Account, SetPasswordError> {
        let password = Password::parse(password).map_err(SetPasswordError::Password)?;
        let account = self
            .writer
            .write(Command::SetPassword {
                account: id,
                password_hash: self.passwords.hash(&password)?,
                verified: None,
                kept_session: None,
            })?
            .account()
            .ok_or(SetPasswordError::NoAccount)?;
        if let Ok(email) = Email::parse(&account.email) {
            self.throttle.forget(&email, Origin::Unknown);
        }
        Ok(account)
    }

    /// Gives the account another e-mail address. It is meant for the operator; sessions and tokens
    /// go on.
    ///
    /// # Errors
    /// The address is not acceptable or taken, there is no such account, or the store failed.
    pub fn set_email(&self, id: AccountId, email: &str) -> Result<Account, SetEmailError> {
        let email = Email::parse(email).map_err(SetEmailError::Email)?;
        let verified = None;
        match self.writer.write(Command::SetEmail {
            account: id,
            email,
            verified,
        })? {
            Outcome::EmailTaken => Err(SetEmailError::Taken),
            outcome => outcome.account().ok_or(SetEmailError::NoAccount),
        }
    }

    /// Deletes the account with its sessions and its history. Returns false if there is no such
    /// account.
    ///
    /// # Errors
    /// The store failed.
    pub fn delete_account(&self, id: AccountId) -> Result<bool, StoreError> {
        Ok(self.writer.write(Command::DeleteAccount(id))?.changed())
    }

    /// [`Store::sign_in_from`] with a browser that has no device cookie.
    ///
    /// # Errors
    /// As [`Store::sign_in_from`].
    pub fn sign_in(&self, email: &str, password: &str) -> Result<Account, SignInError> {
        self.sign_in_from(None, email, password)
    }

    /// The account with this e-mail address and this password.
    ///
    /// After five failures in a row, an address has to wait, longer each time and up to 15 minutes,
    /// whether there is such an account or not. Meanwhile even the right password is not accepted.
    /// A browser with a valid device cookie of the account ([`Store::device_cookie`]) has its own
    /// count of failures; all other browsers share one.
    ///
    /// # Errors
    /// The e-mail address or the password is wrong, there were too many attempts, or the store
    /// failed.
    pub fn sign_in_from(
        &self,
        device_cookie: Option<&str>,
        email: &str,
        password: &str,
    ) -> Result<Account, SignInError> {
        // No account can have such an address, so a quick answer reveals nothing.
        let email = Email::parse(email).map_err(|_| SignInError::Wrong)?;
        let record = self.read(|engine| engine.account_by_email(&email))?;
        let device = device_cookie
            .zip(record.as_ref())
            .and_then(|(cookie, record)| {
                let hash = record.password_hash.as_deref()?;
                auth::verify_device_cookie(cookie, &self.secret, record.account.id, hash)
            });
        let origin = device.map_or(Origin::Unknown, Origin::Device);
        self.throttle
            .begin(&email, origin, Instant::now())
            .map_err(|wait| SignInError::TooMany {
                retry_after: wait.seconds,
            })?;
        let hash = record
            .as_ref()
            .and_then(|record| record.password_hash.as_deref());
        if !self.passwords.verify(password, hash)? {
            return Err(SignInError::Wrong);
        }
        self.throttle.forget(&email, origin);
        record
            .map(|record| record.account)
            .ok_or(SignInError::Wrong)
    }

    /// The value of a device cookie for a browser that has just signed in to the account: 43
    /// letters and digits, valid until the password changes. `None` if there is no such account, or
    /// if it has no password.
    ///
    /// # Errors
    /// The store failed.
    pub fn device_cookie(&self, id: AccountId) -> Result<Option<String>, StoreError> {
        let record = self.read(|engine| engine.account(id))?;
        let hash = record.and_then(|record| record.password_hash);
        let cookie = hash.map(|hash| auth::issue_device_cookie(&self.secret, id, &hash));
        Ok(cookie.transpose()?)
    }

    /// Replaces the password of the account that is signed in by this session cookie, and ends all
    /// its other sessions. Wrong passwords are slowed down as at sign-in; the session has its own
    /// count.
    ///
    /// # Errors
    /// See [`OwnerError`].
    pub fn change_password(
        &self,
        cookie: &str,
        present: &str,
        new: &str,
    ) -> Result<Account, OwnerError> {
        let new = Password::parse(new).map_err(OwnerError::NewPassword)?;
        let (record, session) = self.verify_owner(cookie, present)?;
        self.writer
            .write(Command::SetPassword {
                account: record.account.id,
                password_hash: self.passwords.hash(&new)?,
                verified: record.password_hash,
                kept_session: Some(session),
            })?
            .account()
            // Another browser has replaced the password meanwhile, which has ended this session.
            .ok_or(OwnerError::SignedOut)
    }

    /// Replaces the e-mail address of the account that is signed in by this session cookie. The
    /// password stays the same, and so all sessions, tokens and device cookies go on. Wrong
    /// passwords are slowed down as in [`Store::change_password`]; whether the address is taken is
    /// told only with the right one.
    ///
    /// # Errors
    /// See [`OwnerError`].
    pub fn change_email(
        &self,
        cookie: &str,
        password: &str,
        new: &str,
    ) -> Result<Account, OwnerError> {
        let email = Email::parse(new).map_err(OwnerError::NewEmail)?;
        let (record, _) = self.verify_owner(cookie, password)?;
        match self.writer.write(Command::SetEmail {
            account: record.account.id,
            email,
            verified: record.password_hash,
        })? {
            Outcome::EmailTaken => Err(OwnerError::EmailTaken),
            // Another browser has replaced the password meanwhile, which has ended this session.
            outcome => outcome.account().ok_or(OwnerError::SignedOut),
        }
    }

    /// Deletes the account that is signed in by this session cookie, as [`Store::delete_account`]
    /// does. Wrong passwords are slowed down as in [`Store::change_password`].
    ///
    /// # Errors
    /// See [`OwnerError`].
    pub fn delete_own_account(&self, cookie: &str, password: &str) -> Result<(), OwnerError> {
        let (record, _) = self.verify_owner(cookie, password)?;
        self.delete_account(record.account.id)?;
        Ok(())
    }

    /// The account that is signed in by this cookie and has this password, and the cookie's hash.
    fn verify_owner(
        &self,
        cookie: &str,
        password: &str,
    ) -> Result<(AccountRecord, CodeHash), OwnerError> {
        let session = Code::parse(cookie).ok_or(OwnerError::SignedOut)?.hash();
        let now = self.clock.now();
        let record = self
            .read(|engine| engine.session(&session))?
            .filter(|found| !found.times.is_over(now))
            .ok_or(OwnerError::SignedOut)?
            .record;
        // An address that is stored was parsed before, so this cannot fail unless the file is
        // damaged.
        let email = Email::parse(&record.account.email).map_err(StoreError::Failed)?;
        let origin = Origin::Session(session);
        self.throttle
            .begin(&email, origin, Instant::now())
            .map_err(|wait| OwnerError::TooMany {
                retry_after: wait.seconds,
            })?;
        if !self
            .passwords
            .verify(password, record.password_hash.as_deref())?
        {
            return Err(OwnerError::Wrong);
        }
        self.throttle.forget(&email, origin);
        Ok((record, session))
    }

    /// Whether the storage can be written, as far as memory knows. The event loop may call this.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] from a failed write on, until the storage can be written again.
    pub fn check_available(&self) -> Result<(), StoreError> {
        self.availability.check()
    }

    /// Finds out whether the storage can be written, by a commit that removes sessions that have
    /// ended.
    ///
    /// # Errors
    /// The storage cannot be written.
    pub fn check_writable(&self) -> Result<(), StoreError> {
        self.check_available()?;
        let now = self.clock.now();
        self.writer.write(Command::SweepSessions { now }).map(drop)
    }

    /// All that is stored, at one moment.
    ///
    /// # Errors
    /// The store failed.
    pub fn snapshot(&self) -> Result<Box<dyn Snapshot>, StoreError> {
        let snapshot = self.engine.snapshot()?;
        let none = || StoreError::Failed("the storage engine has tools of its own for this".into());
        snapshot.ok_or_else(none)
    }

    /// Adds an entry to the account's history. Returns once the entry is durable.
    ///
    /// # Errors
    /// There is no such account, or the store failed.
    pub fn record_usage(&self, id: AccountId, entry: &UsageEntry) -> Result<(), StoreError> {
        let recorded = self.writer.write(Command::RecordUsage {
            account: id,
            entry: entry.clone(),
        })?;
        if !recorded.changed() {
            return Err(StoreError::Failed(format!(
                "no usage recorded: account {} does not exist",
                id.0
            )));
        }
        Ok(())
    }

    /// At most `limit` entries of the account's history that pass the filter, newest first, of
    /// those whose sequence number is below `before`. However long the history is, this takes no
    /// longer: a page may have fewer entries than there are, or none, and yet be followed by
    /// another.
    ///
    /// # Errors
    /// The store failed.
    pub fn usage(
        &self,
        id: AccountId,
        filter: &UsageFilter,
        before: Option<u64>,
        limit: usize,
    ) -> Result<UsagePage, StoreError> {
        self.read(|engine| engine.usage_page(id, filter, before, limit))
    }

    /// The sums over the conversions that pass the filter by day or by month, oldest first; those
    /// without conversions are left out. Sums are kept even when entries are removed.
    ///
    /// # Errors
    /// The store failed.
    pub fn usage_sums(
        &self,
        id: AccountId,
        filter: &UsageFilter,
        period: Period,
    ) -> Result<Vec<UsageSum>, StoreError> {
        let (mut sums, mut days) = (Vec::<UsageSum>::new(), 0..0);
        self.read(|engine| {
            engine.usage_days(id, filter.days, &mut |day| {
                if !filter.passes_kind(day.token, &day.format) {
                    return;
                }
                match sums.last_mut() {
                    Some(sum) if days.contains(&day.day) => sum.totals += day.totals,
                    _ => {
                        days = period.days(day.day);
                        sums.push(UsageSum {
                            first_day: days.start,
                            totals: day.totals,
                        });
                    }
                }
            })
        })?;
        Ok(sums)
    }

    /// Keeps a conversion that failed for a while. It is written within a second, unless the
    /// account or all accounts together have too many in it. The event loop may call this.
    pub fn record_failure(&self, id: AccountId, failure: Failure) {
        self.janitor.note(id, failure);
    }

    /// At most `limit` failed conversions of the account that pass the filter, newest first, of
    /// those whose sequence number is below `before`.
    ///
    /// # Errors
    /// The store failed.
    pub fn failures(
        &self,
        id: AccountId,
        filter: &FailureFilter,
        before: Option<u64>,
        limit: usize,
    ) -> Result<FailurePage, StoreError> {
        // What cannot be written now is missing; the rest can be read all the same.
        let _ = self.janitor.write_failures_of(id);
        self.read(|engine| engine.failures(id, filter, before, limit))
    }

    /// The conversions of the account, or by one of its tokens, in the month in which `now` lies.
    ///
    /// # Errors
    /// The store failed.
    pub fn usage_in_month(
        &self,
        id: AccountId,
        token: Option<TokenNumber>,
        now: SystemTime,
    ) -> Result<Month, StoreError> {
        if let Some(month) = self.known_usage_in_month(id, token, now) {
            return Ok(month);
        }
        let (start, end) = clock::month(clock::to_milliseconds(now));
        let conversions = self.read(|engine| engine.usage_in_month(id, token, start))?;
        self.known.counted(id, token, start, conversions);
        Ok(Month::new(start, end, conversions))
    }

    /// As [`Store::usage_in_month`], but `None` if memory does not know it. The event loop may call
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
    ///
    /// # Errors
    /// The store failed.
    pub fn usage_totals(&self, id: AccountId) -> Result<UsageTotals, StoreError> {
        self.read(|engine| engine.usage_totals(id))
    }

    /// Asks the engine.
    fn read<T>(
        &self,
        query: impl FnOnce(&dyn Engine) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        query(&*self.engine).map_err(|error| match (error, self.availability.check()) {
            // No write has failed yet, so nothing is in the log: the caller has to log this.
            (StoreError::Unavailable(cause), Ok(())) => StoreError::Failed(cause),
            (error, _) => error,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
