//! The interface of a storage engine.
//!
//! [`super::Store`] is the facade that the rest of the program uses. It holds one engine, and adds
//! all that does not depend on how rows are stored: tokens, passwords, lifetimes, the grouping of
//! writes ([`super::writer`]), and the cache that the event loop reads ([`super::known`]). There
//! are two engines: `redb/` stores everything in one file of the data folder, and `postgres/` in a
//! database that several servers share. Tests run redb in memory.
//!
//! # Guarantees
//!
//! - **Time.** Every method may wait for a disk or a network, so none is called on the event loop.
//!   An engine has no clock: the caller passes times, in milliseconds since the epoch. They may go
//!   back.
//! - **Reads.** A query sees one committed state, which includes every [`Engine::apply`] that
//!   returned before the query began. Two queries may see different states.
//! - **Durability.** When [`Engine::apply`] returns, its changes survive the end of the process and
//!   of the machine.
//! - **Order.** Commands take effect in the order in which they are given, each on the state that
//!   the earlier ones left. Only one thread calls [`Engine::apply`].
//! - **Atomicity.** A command takes effect as a whole or not at all.
//! - **Errors.** If [`Engine::apply`] fails, none of the outcomes is known: each command may have
//!   taken effect or not. A query that fails has changed nothing. [`StoreError::Unavailable`] means
//!   that the storage cannot be written at present, for instance because the disk is full, and that
//!   the engine will work again by itself once the cause is gone: the writer then calls
//!   [`Engine::probe`] every second. [`StoreError::Failed`] is every other error, such as damaged
//!   rows.
//! - **Panics.** An engine that panics on damaged rows stays usable.
//!
//! [`StoreError::Failed`]: super::error::StoreError::Failed
//! [`StoreError::Unavailable`]: super::error::StoreError::Unavailable

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::account::Account;
use super::entry_id::{EntryId, Page};
use super::error::Result;
use super::failure::{Failure, FailureFilter};
use super::rows::{AccountRow, Row};
use super::session::{Browser, SessionId, SessionTimes, StoredSession};
use super::token::{AccountAccess, Restrictions, TokenSettings, TokenUsage};
use super::token_number::TokenNumber;
use super::usage::{Days, MonthlyQuotas, UsageDay, UsageEntry, UsageFilter, UsageTotals};
use crate::auth::{AccountId, CodeHash, Email, Proof, SecondFactor, Wait};

/// A storage engine. See the module's guarantees, which hold for every method.
pub trait Engine: Send + Sync {
    /// The account with this number.
    fn account(&self, id: AccountId) -> Result<Option<AccountRow>>;

    /// The account with this e-mail address.
    fn account_by_email(&self, email: &Email) -> Result<Option<AccountRow>>;

    /// All accounts, oldest first.
    fn accounts(&self) -> Result<Vec<Account>>;

    /// The tokens and limits of this account; `None` if there is no such account.
    fn access(&self, id: AccountId) -> Result<Option<AccountAccess>>;

    /// Calls `each` with the tokens and limits of the youngest accounts, at most `limit` of them,
    /// youngest first. A shared engine has none to give: its accounts are not loaded at the start,
    /// since others may change them.
    fn each_access(
        &self,
        _limit: usize,
        _each: &mut dyn FnMut(AccountId, AccountAccess),
    ) -> Result<()> {
        Ok(())
    }

    /// The tokens of an account by number, with those that are deleted; none if there is no such
    /// account.
    fn tokens(&self, account: AccountId) -> Result<Vec<TokenUsage>>;

    /// The session of the cookie with this hash, with its account. It may have ended already: the
    /// caller compares. `None` if there is no such session, or its account is deleted.
    fn session(&self, cookie: &CodeHash) -> Result<Option<SessionRecord>>;

    /// The sessions of an account with the hashes of their cookies, in no order; also those that
    /// have ended and were not removed yet.
    fn sessions(&self, account: AccountId) -> Result<Vec<(CodeHash, StoredSession)>>;

    /// When the invitation with this hash ends; `None` if it is used or unknown.
    fn invite_end(&self, code: &CodeHash) -> Result<Option<u64>>;

    /// Entries of an account's history that pass the filter, newest first. Memory and time do not
    /// depend on the length of the history: a page may have fewer entries than there are.
    fn usage_page(
        &self,
        account: AccountId,
        filter: &UsageFilter,
        range: PageRange,
    ) -> Result<Page<UsageEntry>>;

    /// Calls `each` with the sums of an account by day, token and format, in this order, over all
    /// entries that there have ever been.
    fn usage_days(
        &self,
        account: AccountId,
        days: Days,
        each: &mut dyn FnMut(UsageDay),
    ) -> Result<()>;

    /// Failed conversions of an account that pass the filter, newest first.
    fn failures(
        &self,
        account: AccountId,
        filter: &FailureFilter,
        range: PageRange,
    ) -> Result<Page<Failure>>;

    /// The sums over all entries that an account's history has ever had; zeros if there is no such
    /// account.
    fn usage_totals(&self, account: AccountId) -> Result<UsageTotals>;

    /// The account's conversions, or those by one of its tokens, in the month whose first
    /// millisecond is `month`.
    fn usage_in_month(
        &self,
        account: AccountId,
        token: Option<TokenNumber>,
        month: u64,
    ) -> Result<u64>;

    /// Stores the mark of the secret in use, and returns the former one. A shared engine stores
    /// only the first one.
    fn exchange_secret_mark(&self, mark: u64) -> Result<Option<u64>>;

    /// Carries out the commands, and returns their outcomes in the same order once they are
    /// durable. `since` is the time at which the first of them was queued: an engine that waits for
    /// its storage gives up if that was too long ago.
    fn apply(&self, commands: &[Command], since: Instant) -> Result<Vec<Outcome>>;

    /// Checks whether the storage can be written, without changing data. It writes more than a
    /// small command does, which may still find space on a full disk.
    fn probe(&self) -> Result<()>;

    /// All rows at one moment; `None` if the engine is backed up and checked by its own tools.
    fn snapshot(&self) -> Result<Option<Box<dyn Snapshot>>>;

    /// Begins an attempt to sign in at the time `now`, which counts as failed until
    /// [`Engine::forget_attempts`], by the rule of [`crate::auth::FailedAttempts`]. `key`
    /// identifies an address and an origin. `None`, the default, if the engine does not count
    /// attempts, so that the process does.
    fn begin_attempt(&self, _key: &[u8; 32], _now: u64) -> Result<Option<Result<(), Wait>>> {
        Ok(None)
    }

    /// Clears the count of this key.
    fn forget_attempts(&self, _key: &[u8; 32]) -> Result<()> {
        Ok(())
    }

    /// The milliseconds to add to this machine's clock, so that the times of all processes on one
    /// engine are close to each other.
    fn clock_offset(&self) -> i64 {
        0
    }

    /// Whether other processes change the data too, so that cache entries expire after a second.
    fn is_shared(&self) -> bool {
        false
    }

    /// The faults that the engine has met since it was opened, by class.
    fn faults(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// How many processes serve from the engine, this one included; at least 1.
    fn replicas(&self) -> u32 {
        1
    }
}

/// The entries that may be on a page.
#[derive(Clone, Copy, Debug)]
pub struct PageRange {
    /// Their ids are below this one.
    pub before: Option<EntryId>,
    /// The most entries.
    pub limit: usize,
}

/// All rows at one moment. While it lives, the engine may keep deleted data.
pub trait Snapshot: Send {
    /// Reads all rows and compares them with each other. The memory that this takes does not grow
    /// with the history.
    ///
    /// # Errors
    /// The storage failed meanwhile. Damaged rows are no error but a finding.
    fn check(&self) -> Result<Findings>;

    /// Calls `each` with all rows but sessions, in the order of [`super::rows`]. The memory that
    /// this takes does not grow with the history.
    ///
    /// # Errors
    /// The first error of `each`; or the rows cannot be read, or are damaged.
    fn rows(&self, each: &mut EachRow<'_>) -> Result<()>;

    /// The number of entries in all histories, quickly: the progress of [`Snapshot::rows`] is
    /// reported by it.
    fn entries(&self) -> Result<u64>;
}

/// The function that takes each row of a snapshot.
pub type EachRow<'a> = dyn FnMut(Row) -> Result<()> + 'a;

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Findings {
    /// The number of accounts.
    pub accounts: u64,
    /// The number of sessions, including those that have ended.
    pub sessions: u64,
    /// The number of entries in all histories.
    pub entries: u64,
    /// One sentence for each kind of problem, with a count and the first rows concerned.
    pub problems: Vec<String>,
}

/// A stored session and the account that is signed in by it.
pub struct SessionRecord {
    /// The account.
    pub account: AccountRow,
    /// When the session was used and ends.
    pub times: SessionTimes,
}

/// One change.
pub enum Command {
    /// Makes an account, whose number is the greater of `created` and the last number given plus
    /// one.
    ///
    /// Outcome: the account, or [`Outcome::Unchanged`] if the e-mail address is taken or the
    /// invitation has ended or is unknown. Only an account that is made uses the invitation up.
    CreateAccount {
        /// The address.
        email: Email,
        /// The password's PHC string.
        password_hash: Option<String>,
        /// The present time.
        created: u64,
        /// The hash of the invitation's code, if the account needs one.
        invite: Option<CodeHash>,
    },
    /// Adds an invitation, and removes those that have ended.
    AddInvite {
        /// The hash of the code.
        code: CodeHash,
        /// When the invitation ends.
        end: u64,
        /// The present time.
        now: u64,
    },
    /// Deletes an account with its sessions and its history.
    ///
    /// Outcome: [`Outcome::Unchanged`] if there is no such account.
    DeleteAccount(AccountId),
    /// Changes the tokens of an account, or the limits that the operator has set for it.
    ///
    /// Outcome: [`Outcome::Token`], [`Outcome::Unchanged`] if there is no such account or no such
    /// token, or [`Outcome::NameTaken`] or [`Outcome::TooManyTokens`].
    ChangeTokens {
        /// The account.
        account: AccountId,
        /// The change.
        change: TokenChange,
    },
    /// Changes an account.
    ///
    /// Outcome: the account; [`Outcome::EmailTaken`]; or [`Outcome::Unchanged`] if there is none,
    /// if its password is no longer the one that was verified, or if the code is unknown or was
    /// spent before.
    ChangeAccount {
        /// The account.
        account: AccountId,
        /// The change.
        change: AccountChange,
        /// The PHC string that must still be stored, if one must.
        verified: Option<String>,
    },
    /// Starts a session, and removes some of those that have ended. If the account has
    /// [`super::session::MAX_SESSIONS`] already, the least recently used one ends.
    ///
    /// Outcome: [`Outcome::Unchanged`] if there is no such account.
    StartSession {
        /// The hash of the cookie.
        cookie: CodeHash,
        /// The account.
        account: AccountId,
        /// Its times and its browser.
        session: StoredSession,
        /// The present time.
        now: u64,
    },
    /// Writes the use of a session, which moves its end; nothing happens if there is none.
    RenewSession {
        /// The hash of the cookie.
        cookie: CodeHash,
        /// The session's times from now on.
        times: SessionTimes,
        /// The browser that uses it, if it is to be written.
        browser: Option<Browser>,
    },
    /// Ends a session.
    ///
    /// Outcome: [`Outcome::Unchanged`] if there is no such session.
    EndSession {
        /// The hash of the cookie.
        cookie: CodeHash,
    },
    /// Ends the session of this name, if it is one of the account.
    ///
    /// Outcome: [`Outcome::Unchanged`] if the account has no such session.
    EndSessionOf {
        /// The account.
        account: AccountId,
        /// The session.
        session: SessionId,
    },
    /// Ends all sessions of an account.
    EndSessionsOf(AccountId),
    /// Removes some of the sessions that have ended.
    ///
    /// Outcome: [`Outcome::Unchanged`] if there was none.
    SweepSessions {
        /// The present time.
        now: u64,
    },
    /// Adds an entry to an account's history, with a greater id than any before, and counts it in
    /// the totals and in the month and the day (UTC) of its time, of the account and of the token.
    ///
    /// Outcome: [`Outcome::Recorded`]; [`Outcome::Unchanged`] if there is no such account; or
    /// [`Outcome::QuotaExceeded`] if the month has as many conversions as it may have already.
    RecordUsage {
        /// The account.
        account: AccountId,
        /// The entry.
        entry: UsageEntry,
        /// The most conversions of the month of the entry's time.
        quotas: MonthlyQuotas,
    },
    /// Adds failed conversions to those of an account, and removes the oldest of more than
    /// [`super::failure::MAX_FAILURES`].
    ///
    /// Outcome: [`Outcome::Unchanged`] if there is no such account.
    RecordFailures {
        /// The account.
        account: AccountId,
        /// The failures, oldest first.
        failures: Vec<Failure>,
    },
    /// Removes some of the rows that are too old. Sums over histories stay.
    ///
    /// Outcome: [`Outcome::Removed`].
    RemoveOld(OldRows),
}

/// Which rows are too old.
#[derive(Clone, Copy, Debug)]
pub struct OldRows {
    /// The account to begin with; those with smaller numbers have no such row any more.
    pub first: AccountId,
    /// Entries of histories from before this time go, up to the first one of an account that is not
    /// from before it.
    pub history_before: u64,
    /// Failed conversions from before this time go.
    pub failures_before: u64,
}

/// A change of an account's own row.
pub enum AccountChange {
    /// Replaces the password, and ends the sessions.
    Password {
        /// The new password's PHC string.
        hash: String,
        /// The hash of the cookie whose session does not end.
        kept_session: Option<CodeHash>,
    },
    /// Replaces the e-mail address. The sessions stay open.
    Email(Email),
    /// Turns the second factor on, or off with `None`.
    SecondFactor(Option<SecondFactor>),
    /// Spends a code of the second factor, and perhaps replaces the password, which ends all
    /// sessions.
    SpendCode {
        /// The code.
        proof: Proof,
        /// The new password's PHC string, if there is one.
        password_hash: Option<String>,
    },
}

/// A change of an account's tokens.
pub enum TokenChange {
    /// Makes a token, whose number and serial number are the next serial number
    /// ([`super::token::next_serial`]).
    Create {
        /// Its settings.
        settings: TokenSettings,
        /// The present time.
        now: u64,
    },
    /// Replaces the settings of a token.
    Set {
        /// The token.
        token: TokenNumber,
        /// Its new settings.
        settings: TokenSettings,
    },
    /// Gives a token the next serial number.
    Rotate {
        /// The token.
        token: TokenNumber,
        /// The time until which the present serial number stays valid, if it does.
        overlap_ends: Option<u64>,
        /// The present time.
        now: u64,
    },
    /// Deletes a token. Its name is kept for the history, as are those of
    /// [`super::token::MAX_DELETED_TOKENS`] tokens.
    Delete {
        /// The token.
        token: TokenNumber,
        /// The present time.
        now: u64,
    },
    /// Replaces the limits that the operator has set. The outcome has the token `default`.
    Restrict(Restrictions),
}

impl TokenChange {
    /// The token to change; `None` for a new one.
    pub fn token(&self) -> Option<TokenNumber> {
        match self {
            TokenChange::Create { .. } => None,
            TokenChange::Set { token, .. }
            | TokenChange::Rotate { token, .. }
            | TokenChange::Delete { token, .. } => Some(*token),
            TokenChange::Restrict(_) => Some(TokenNumber::DEFAULT),
        }
    }
}

/// The result of a command.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The account that was made or changed.
    Account(Account),
    /// A token that was made, changed or deleted, or whose account was restricted.
    Token {
        /// The token.
        token: TokenNumber,
        /// The tokens and limits of its account from now on.
        access: AccountAccess,
    },
    /// Nothing was changed: another account has the e-mail address.
    EmailTaken,
    /// Nothing was changed: another token of the account has the name.
    NameTaken,
    /// Nothing was changed: the account has [`super::token::MAX_TOKENS`] tokens.
    TooManyTokens,
    /// Something was changed.
    Changed,
    /// A conversion was recorded.
    Recorded {
        /// The first millisecond of its month.
        month: u64,
        /// The account's conversions in that month, this one included.
        conversions: u64,
        /// The conversions by the same token among them.
        by_token: u64,
    },
    /// Nothing was recorded: the month of the entry is full. If both quotas are used up, it is the
    /// account's.
    QuotaExceeded {
        /// Whether it is the token's quota, and not the account's.
        of_token: bool,
    },
    /// Old rows were removed.
    Removed {
        /// The account to go on with; `None` if no row is too old any more.
        next: Option<AccountId>,
    },
    /// Nothing was changed.
    Unchanged,
}

impl Outcome {
    /// [`Outcome::Changed`] if something was changed, else [`Outcome::Unchanged`].
    pub fn of_change(changed: bool) -> Outcome {
        if changed {
            Outcome::Changed
        } else {
            Outcome::Unchanged
        }
    }

    /// The account that was made or changed, if the command was about one.
    pub fn account(self) -> Option<Account> {
        match self {
            Outcome::Account(account) => Some(account),
            _ => None,
        }
    }

    /// Whether anything was changed.
    pub fn changed(&self) -> bool {
        !matches!(
            self,
            Outcome::Unchanged
                | Outcome::EmailTaken
                | Outcome::NameTaken
                | Outcome::TooManyTokens
                | Outcome::QuotaExceeded { .. }
        )
    }
}
