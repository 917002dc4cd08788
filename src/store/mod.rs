//! Accounts, tokens, sessions and usage, in one redb file.
//!
//! Whose token it is, memory knows ([`known`]), so that the event loop may ask. All other reads go straight to the
//! database; every write goes through one writer thread, which commits what has
//! queued up in one transaction and answers after the commit ([`writer`]). A token is never stored: it is
//! computed from the server's secret ([`token`], [`secret`]).
//!
//! | table | key | value | drawn in |
//! |---|---|---|---|
//! | `meta` | name | number | [`database`] |
//! | `accounts` | account | e-mail, creation, generation, password hash | [`accounts`] |
//! | `emails` | e-mail | account | [`accounts`] |
//! | `invites` | hash of the code | end | [`invites`] |
//! | `sessions` | hash of the cookie | account, end, latest end | [`sessions`] |
//! | `session_ends` | end, hash of the cookie | nothing | [`sessions`] |
//! | `usage` | account, sequence | one conversion | [`usage`] |
//! | `usage_totals` | account | sums | [`usage`] |
//! | `usage_months` | account, month | conversions | [`usage`] |

mod accounts;
mod availability;
mod backup;
mod check;
mod clock;
mod database;
mod error;
mod folder;
mod invites;
mod known;
mod migration;
mod secret_file;
mod sessions;
mod usage;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

pub use crate::auth::AccountId;
pub use accounts::Account;
pub use backup::{Backup, Snapshot};
pub use check::{Findings, check_file};
pub use error::{
    CreateAccountError, OpenError, OwnerError, SetPasswordError, SignInError, StoreError,
    TokenError,
};
pub(crate) use folder::rename_new;
pub use known::TokenCheck;
pub use sessions::Session;
pub use usage::{UsageEntry, UsagePage, UsageTotals, WatermarkKind};

use crate::auth::{self, Code, Email, Origin, Password, Passwords, Secret, SignInThrottle, Token};
use accounts::Record;
use clock::Clock;
use database::Database;
use known::KnownAccounts;
use writer::{Command, Writer};

/// Most bytes that an open store takes: pages of the database, those of a backup being made, what is known of accounts, and
/// passwords being computed.
pub const MEMORY: u64 =
    (database::CACHE_BYTES + backup::CACHE_BYTES + known::MEMORY + auth::MEMORY) as u64;

/// Where the data lies.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder; made if missing, readable by its owner only.
    pub data: PathBuf,
    /// The server's secret, if not `DIR/secret`; made if missing while there are no accounts.
    pub secret_file: Option<PathBuf>,
    /// Whether group or others may write the folder and the database; else that is refused.
    pub allow_shared_data: bool,
}

/// The open store; share it by reference or `Arc`. Dropping it waits for the writes under way.
pub struct Store {
    // Before the database: the writer must end before the file is closed.
    writer: Writer,
    database: Arc<Database>,
    known: Arc<KnownAccounts>,
    secret: Secret,
    passwords: Passwords,
    throttle: SignInThrottle,
    clock: Clock,
}

impl Store {
    /// Opens the store, making folder, database and secret on first use, and forgets expired sessions. On a full disk
    /// one that exists can be opened, and can be read.
    ///
    /// # Errors
    /// [`OpenError::InUse`] while another process (or another `Store`) has the database open; otherwise a
    /// sentence that names the file: it cannot be read or written, was made by a newer towebp, or the secret
    /// is missing although there are accounts.
    pub fn open(settings: &Settings) -> Result<Store, OpenError> {
        Store::open_with(settings, Clock::new(SystemTime::now))
    }

    fn open_with(settings: &Settings, clock: Clock) -> Result<Store, OpenError> {
        folder::create_private(&settings.data).map_err(OpenError::Failed)?;
        let database_path = database_path(&settings.data);
        if !settings.allow_shared_data {
            folder::refuse_shared(&settings.data, "data folder").map_err(OpenError::Failed)?;
            folder::refuse_shared(&database_path, "database").map_err(OpenError::Failed)?;
        }
        let database = Arc::new(Database::open(&database_path)?);
        let has_accounts = database.read(accounts::any).map_err(OpenError::from)?;
        let secret_file = settings
            .secret_file
            .clone()
            .unwrap_or_else(|| settings.data.join("secret"));
        let secret = secret_file::open(&secret_file, has_accounts).map_err(OpenError::Failed)?;
        if database.exchange_secret(&secret)? && has_accounts {
            log::warn!(
                "the secret in {} is another than the last time: tokens issued with that one are refused",
                secret_file.display()
            );
        }
        Store::start(database, secret, clock)
    }

    fn start(database: Arc<Database>, secret: Secret, clock: Clock) -> Result<Store, OpenError> {
        let known = Arc::new(database.read(KnownAccounts::load)?);
        let writer =
            Writer::start(Arc::clone(&database), Arc::clone(&known)).map_err(OpenError::Failed)?;
        match writer.write(Command::SweepSessions { now: clock.now() }) {
            // The log has it: what can only be read is of use too, and there may be room again.
            Ok(_) | Err(StoreError::Unavailable(_)) => {}
            Err(error) => return Err(OpenError::from(error)),
        }
        Ok(Store {
            writer,
            database,
            known,
            secret,
            passwords: Passwords::new(),
            throttle: SignInThrottle::new(),
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

    /// Makes an account for somebody who was invited, and uses the invitation up. Without a good one nothing is told
    /// of who has an account.
    ///
    /// # Errors
    /// As [`Store::create_account`], or the invitation is not good; it stays good if it is anything else.
    pub fn create_invited_account(
        &self,
        email: &str,
        password: &str,
        invite: &str,
    ) -> Result<Account, CreateAccountError> {
        let invite = Code::parse(invite.trim()).ok_or(CreateAccountError::Invite)?;
        self.make_account(email, Some(password), Some(invite.hash()))
    }

    /// Makes an invitation for one account, good for 14 days, and returns its code: 43 letters and digits.
    ///
    /// # Errors
    /// The store failed.
    pub fn invite(&self) -> Result<String, StoreError> {
        let code = Code::random()?;
        self.writer.write(Command::Invite {
            code: code.hash(),
            now: self.clock.now(),
        })?;
        Ok(code.as_str().to_owned())
    }

    fn make_account(
        &self,
        email: &str,
        password: Option<&str>,
        invite: Option<[u8; 32]>,
    ) -> Result<Account, CreateAccountError> {
        let email = Email::parse(email).map_err(CreateAccountError::Email)?;
        let password = password
            .map(Password::parse)
            .transpose()
            .map_err(CreateAccountError::Password)?;
        let created = self.clock.now();
        if let Some(code) = invite
            && !self
                .database
                .read(|read| invites::is_good(read, &code, created))?
        {
            return Err(CreateAccountError::Invite);
        }
        if self
            .database
            .read(|read| accounts::by_email(read, &email))?
            .is_some()
        {
            return Err(CreateAccountError::Exists);
        }
        let password_hash = password
            .map(|password| self.passwords.hash(&password))
            .transpose()
            .map_err(StoreError::from)?;
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

    /// The account with this e-mail, however it is spaced and capitalised; `None` if there is none, or if it
    /// is no e-mail address.
    ///
    /// # Errors
    /// The store failed.
    pub fn account_by_email(&self, email: &str) -> Result<Option<Account>, StoreError> {
        let Ok(email) = Email::parse(email) else {
            return Ok(None);
        };
        Ok(self
            .database
            .read(|read| accounts::by_email(read, &email))?
            .map(|record| record.account))
    }

    /// All accounts, oldest first.
    ///
    /// # Errors
    /// The store failed.
    pub fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        self.database.read(accounts::all)
    }

    /// Gives the account a password, whether it had one or not, and ends all its sessions: for the operator, who has
    /// to know that it is the owner who asks. Whoever had to wait after wrong passwords need not any more.
    ///
    /// # Errors
    /// The password is not acceptable, there is no such account, or the store failed; the old password stays then.
    pub fn set_password(&self, id: AccountId, password: &str) -> Result<Account, SetPasswordError> {
        let password = Password::parse(password).map_err(SetPasswordError::Password)?;
        let account = self
            .writer
            .write(Command::SetPassword {
                account: id,
                password_hash: self.passwords.hash(&password).map_err(StoreError::from)?,
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

    /// Deletes the account; its sessions and history go with it. False if there is none.
    ///
    /// # Errors
    /// The store failed; nothing is deleted then.
    pub fn delete_account(&self, id: AccountId) -> Result<bool, StoreError> {
        Ok(self.writer.write(Command::DeleteAccount(id))?.changed())
    }

    /// The text of the account's present token: 53 characters that need no escaping in a URL.
    pub fn token(&self, account: &Account) -> String {
        Token {
            account: account.id,
            generation: account.token_generation,
        }
        .text(&self.secret)
    }

    /// Makes a new token; the old one is refused at once. The account as it now is; `None` if there is none.
    ///
    /// # Errors
    /// The store failed; the old token stays good then.
    pub fn rotate_token(&self, id: AccountId) -> Result<Option<Account>, StoreError> {
        Ok(self.writer.write(Command::RotateToken(id))?.account())
    }

    /// What is known of a token without waiting for a disk, or for a lock that somebody holds who does: fit for the event
    /// loop. Compares in constant time.
    pub fn check_token(&self, token: &str) -> TokenCheck {
        Token::parse(token, &self.secret)
            .map_or(TokenCheck::Invalid, |token| self.known.check(token))
    }

    /// Whose token this is, as [`Store::check_token`], and from the disk if memory does not know. A mistyped or forged
    /// one never reaches the disk.
    ///
    /// # Errors
    /// The token is refused, or the store failed.
    pub fn authenticate(&self, token: &str) -> Result<AccountId, TokenError> {
        let token = Token::parse(token, &self.secret).ok_or(TokenError::Invalid)?;
        let id = match self.known.check(token) {
            TokenCheck::Valid(id) => return Ok(id),
            TokenCheck::Invalid => return Err(TokenError::Invalid),
            TokenCheck::Unknown(id) => id,
        };
        let changes = self.known.changes();
        let record = self.database.read(|read| accounts::by_id(read, id))?;
        let generation = record.map(|record| record.account.token_generation);
        self.known.learn(id, generation, changes);
        if generation == Some(token.generation) {
            Ok(id)
        } else {
            Err(TokenError::Invalid)
        }
    }

    /// [`Store::sign_in_from`] a browser that has no device cookie.
    ///
    /// # Errors
    /// As there.
    pub fn sign_in(&self, email: &str, password: &str) -> Result<Account, SignInError> {
        self.sign_in_from(None, email, password)
    }

    /// Whose e-mail and password these are. After five failures in a row an e-mail has to wait, longer each
    /// time up to 15 minutes, whether there is such an account or not; even the right password is refused
    /// meanwhile. A browser with a good device cookie of the account ([`Store::device_cookie`]) has its own count of
    /// failures, and all others have one together.
    ///
    /// # Errors
    /// The e-mail or password is wrong, there were too many attempts, or the store failed.
    pub fn sign_in_from(
        &self,
        device_cookie: Option<&str>,
        email: &str,
        password: &str,
    ) -> Result<Account, SignInError> {
        // No account can have such an address, so a quick answer tells nothing.
        let email = Email::parse(email).map_err(|_| SignInError::Wrong)?;
        let record = self
            .database
            .read(|read| accounts::by_email(read, &email))?;
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
        if !self
            .passwords
            .verify(password, hash)
            .map_err(StoreError::from)?
        {
            return Err(SignInError::Wrong);
        }
        self.throttle.forget(&email, origin);
        record
            .map(|record| record.account)
            .ok_or(SignInError::Wrong)
    }

    /// The value of a cookie by which a browser is known that has just signed in to the account: 43 letters and digits,
    /// good until the password is changed. `None` if there is no such account, or it has no password.
    ///
    /// # Errors
    /// The store failed.
    pub fn device_cookie(&self, id: AccountId) -> Result<Option<String>, StoreError> {
        let record = self.database.read(|read| accounts::by_id(read, id))?;
        let hash = record.and_then(|record| record.password_hash);
        let cookie = hash.map(|hash| auth::issue_device_cookie(&self.secret, id, &hash));
        Ok(cookie.transpose()?)
    }

    /// Replaces the password of the account that is signed in by this session's cookie, and ends all its other sessions. Wrong
    /// passwords are slowed down as at sign-in, with a count of the session's own.
    ///
    /// # Errors
    /// See [`OwnerError`]; the old password stays then.
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
                password_hash: self.passwords.hash(&new).map_err(StoreError::from)?,
                verified: record.password_hash,
                kept_session: Some(session),
            })?
            .account()
            // Somebody else has replaced it since, which has ended this session.
            .ok_or(OwnerError::SignedOut)
    }

    /// Deletes the account that is signed in by this session's cookie, as [`Store::delete_account`]. Wrong passwords are
    /// slowed down as by [`Store::change_password`].
    ///
    /// # Errors
    /// See [`OwnerError`]; nothing is deleted then.
    pub fn delete_own_account(&self, cookie: &str, password: &str) -> Result<(), OwnerError> {
        let (record, _) = self.verify_owner(cookie, password)?;
        self.delete_account(record.account.id)?;
        Ok(())
    }

    /// The account that is signed in by this cookie, and the cookie's hash, if the password is the account's.
    fn verify_owner(&self, cookie: &str, password: &str) -> Result<(Record, [u8; 32]), OwnerError> {
        let session = Code::parse(cookie).ok_or(OwnerError::SignedOut)?.hash();
        let now = self.clock.now();
        let record = self.database.read(|read| {
            let found = sessions::find(read, &session, now)?;
            found.map_or(Ok(None), |(account, _)| accounts::by_id(read, account.id))
        })?;
        let record = record.ok_or(OwnerError::SignedOut)?;
        // What is stored was parsed once.
        let email = Email::parse(&record.account.email).map_err(StoreError::Failed)?;
        let origin = Origin::Session(session);
        self.throttle
            .begin(&email, origin, Instant::now())
            .map_err(|wait| OwnerError::TooMany {
                retry_after: wait.seconds,
            })?;
        if !self
            .passwords
            .verify(password, record.password_hash.as_deref())
            .map_err(StoreError::from)?
        {
            return Err(OwnerError::Wrong);
        }
        self.throttle.forget(&email, origin);
        Ok((record, session))
    }

    /// Starts a session and returns the cookie's value: 43 letters and digits. It ends after 7 days without use, and after 30
    /// days at the latest.
    ///
    /// # Errors
    /// There is no such account (any more), or the store failed.
    pub fn start_session(&self, id: AccountId) -> Result<String, StoreError> {
        let cookie = Code::random()?;
        let started = self.writer.write(Command::StartSession {
            cookie: cookie.hash(),
            account: id,
            now: self.clock.now(),
        })?;
        if !started.changed() {
            return Err(StoreError::Failed(format!(
                "no session started: account {} does not exist",
                id.0
            )));
        }
        Ok(cookie.as_str().to_owned())
    }

    /// The session of this cookie, which is used by that; `None` if it is unknown, ended or expired.
    ///
    /// # Errors
    /// The store failed.
    pub fn session(&self, cookie: &str) -> Result<Option<Session>, StoreError> {
        let Some(cookie) = Code::parse(cookie) else {
            return Ok(None);
        };
        let (hash, now) = (cookie.hash(), self.clock.now());
        let found = self
            .database
            .read(|read| sessions::find(read, &hash, now))?;
        let Some((account, is_worth_writing)) = found else {
            return Ok(None);
        };
        if is_worth_writing {
            let renewed = self
                .writer
                .write(Command::RenewSession { cookie: hash, now });
            match renewed {
                // A session does not end because the disk is full.
                Ok(_) | Err(StoreError::Unavailable(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Some(Session {
            account,
            csrf: cookie.csrf(&self.secret),
        }))
    }

    /// Ends the session of this cookie, if there is one.
    ///
    /// # Errors
    /// The store failed.
    pub fn end_session(&self, cookie: &str) -> Result<(), StoreError> {
        let Some(cookie) = Code::parse(cookie) else {
            return Ok(());
        };
        self.writer.write(Command::EndSession {
            cookie: cookie.hash(),
        })?;
        Ok(())
    }

    /// Ends all sessions of the account, in whatever browser.
    ///
    /// # Errors
    /// The store failed; the sessions go on then.
    pub fn end_all_sessions(&self, id: AccountId) -> Result<(), StoreError> {
        self.writer.write(Command::EndSessionsOf(id))?;
        Ok(())
    }

    /// Whether the disk takes writes, as far as the store knows without asking it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], from a write that failed until there is room again.
    pub fn check_available(&self) -> Result<(), StoreError> {
        self.database.availability.check()
    }

    /// Commits a change that keeps everything but expired sessions: whether the disk takes writes.
    ///
    /// # Errors
    /// It does not.
    pub fn check_writable(&self) -> Result<(), StoreError> {
        self.check_available()?;
        let now = self.clock.now();
        self.writer.write(Command::SweepSessions { now }).map(drop)
    }

    /// All that is stored, at one moment.
    ///
    /// # Errors
    /// The store failed.
    pub fn snapshot(&self) -> Result<Snapshot, StoreError> {
        Snapshot::of(&self.database)
    }

    /// Adds to the account's history. Returns once the entry is on disk.
    ///
    /// # Errors
    /// There is no such account (any more), or the store failed; nothing is recorded then.
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

    /// At most `limit` entries of the history, newest first, of those older than the sequence number `before`.
    ///
    /// # Errors
    /// The store failed.
    pub fn usage(
        &self,
        id: AccountId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<UsagePage, StoreError> {
        self.database
            .read(|read| usage::page(read, id, before, limit))
    }

    /// The account's conversions in the month in which `now` lies.
    ///
    /// # Errors
    /// The store failed.
    pub fn usage_in_month(&self, id: AccountId, now: SystemTime) -> Result<Month, StoreError> {
        if let Some(month) = self.known_usage_in_month(id, now) {
            return Ok(month);
        }
        let (start, end) = clock::month(clock::to_milliseconds(now));
        let conversions = self
            .database
            .read(|read| usage::in_month(read, id, start))?;
        self.known.counted(id, start, conversions);
        Ok(Month::new(start, end, conversions))
    }

    /// As [`Store::usage_in_month`], if it is known without waiting for a disk, or for a lock that somebody holds who does: fit
    /// for the event loop.
    pub fn known_usage_in_month(&self, id: AccountId, now: SystemTime) -> Option<Month> {
        let (start, end) = clock::month(clock::to_milliseconds(now));
        let conversions = self.known.month(id, start)?;
        Some(Month::new(start, end, conversions))
    }

    /// The sums over the account's whole history; zeros if there is no such account.
    ///
    /// # Errors
    /// The store failed.
    pub fn usage_totals(&self, id: AccountId) -> Result<UsageTotals, StoreError> {
        self.database.read(|read| usage::totals(read, id))
    }
}

/// An account's conversions in a calendar month (UTC).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Month {
    /// How many.
    pub conversions: u64,
    /// Its first moment.
    pub start: SystemTime,
    /// The first moment of the next month.
    pub end: SystemTime,
}

impl Month {
    fn new(start: u64, end: u64, conversions: u64) -> Month {
        Month {
            conversions,
            start: clock::from_milliseconds(start),
            end: clock::from_milliseconds(end),
        }
    }
}

/// Where the data folder's database lies.
pub fn database_path(data: &Path) -> PathBuf {
    data.join("towebp.redb")
}

#[cfg(test)]
pub(crate) mod tests;
