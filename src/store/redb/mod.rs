//! The engine that stores everything in one redb file.
//!
//! | table | key | value | layout in |
//! |---|---|---|---|
//! | `meta` | name | number | [`meta`] |
//! | `accounts` | account | e-mail, creation, last serial number, password hash | [`accounts`] |
//! | `emails` | e-mail | account | [`accounts`] |
//! | `invites` | hash of the code | end | [`invites`] |
//! | `sessions` | hash of the cookie | account, times, browser, network | [`sessions`] |
//! | `session_ends` | end, hash of the cookie | nothing | [`sessions`] |
//! | `account_sessions` | account, hash of the cookie | nothing | [`sessions`] |
//! | `tokens` | account, number | serial numbers, name, limits, preset | [`tokens`] |
//! | `restrictions` | account | limits set by the operator | [`tokens`] |
//! | `history` | account, sequence | one conversion | [`usage`] |
//! | `history_blocks` | account, block | days and kinds of 1024 entries | [`blocks`] |
//! | `history_removed` | account | sums of entries that were removed | [`usage`] |
//! | `failures` | account, sequence | one conversion that failed | [`failures`] |
//! | `usage_days` | account, day, token, format | sums, latest time | [`usage`] |
//!
//! Functions below this module that return a [`result::Result`] pass on redb's own errors.

mod accounts;
mod backup;
mod blocks;
mod check;
mod database;
mod failures;
mod invites;
mod load;
mod meta;
mod result;
mod rows;
mod sessions;
mod snapshot;
mod tables;
mod tokens;
mod usage;

use std::path::{Path, PathBuf};
use std::time::Instant;

use redb::TableDefinition;

pub use backup::Backup;
pub use database::Database;
pub use snapshot::{FileSnapshot, check_file};

use super::account::Account;
use super::clock;
use super::engine::{Command, Engine, Outcome, PageRange, SessionRecord, Snapshot};
use super::entry_id::{EntryId, Page};
use super::error::{OpenError, Result, StoreError};
use super::failure::{Failure, FailureFilter};
use super::rows::AccountRow;
use super::session::StoredSession;
use super::token::{AccountAccess, TokenUsage};
use super::token_number::TokenNumber;
use super::usage::{Days, UsageDay, UsageEntry, UsageFilter, UsageTotals};
use crate::auth::{AccountId, CodeHash, Email};
use accounts::{ACCOUNTS, EMAILS};
use invites::INVITES;
use sessions::{ACCOUNT_SESSIONS, SESSIONS};
use tables::Tables;

/// The most bytes that the engine takes: pages of the database, and those of a backup being made.
pub const MEMORY: usize = database::CACHE_BYTES + backup::CACHE_BYTES;

/// The bytes that [`Engine::probe`] writes: the size of some commits, so that the very next one
/// does not find the disk full again. With the pages around it, this takes 256 KiB of the file,
/// which keeps them.
const PROBE_BYTES: usize = 252 << 10;

/// The table that a probe makes and removes.
const PROBE: TableDefinition<(), &[u8]> = TableDefinition::new("room");

/// The path of the database in a data folder.
pub fn database_path(data: &Path) -> PathBuf {
    data.join("towebp.redb")
}

/// The engine.
pub struct RedbEngine {
    database: Database,
}

impl RedbEngine {
    /// Opens the database file, and makes it with its tables if it is missing.
    ///
    /// # Errors
    /// Another process has the file open, or a sentence that names it.
    pub fn open(path: &Path) -> Result<RedbEngine, OpenError> {
        Database::open(path).map(RedbEngine::on)
    }

    /// The engine on an open database.
    pub fn on(database: Database) -> RedbEngine {
        RedbEngine { database }
    }
}

impl Engine for RedbEngine {
    fn account(&self, id: AccountId) -> Result<Option<AccountRow>> {
        self.database
            .read(|read| accounts::by_id(&read.open_table(ACCOUNTS)?, id))
    }

    fn account_by_email(&self, email: &Email) -> Result<Option<AccountRow>> {
        self.database.read(|read| {
            let Some(id) = read.open_table(EMAILS)?.get(email.as_str())? else {
                return Ok(None);
            };
            accounts::by_id(&read.open_table(ACCOUNTS)?, AccountId(id.value()))
        })
    }

    fn accounts(&self) -> Result<Vec<Account>> {
        self.database.read(accounts::all)
    }

    fn access(&self, id: AccountId) -> Result<Option<AccountAccess>> {
        let access = self
            .database
            .read(|read| tokens::access_reader(read)?(id))?;
        // Each account has the token `default`, which cannot be deleted.
        Ok(Some(access).filter(|access| !access.tokens.is_empty()))
    }

    fn each_access(
        &self,
        limit: usize,
        each: &mut dyn FnMut(AccountId, AccountAccess),
    ) -> Result<()> {
        self.database.read(|read| {
            let access = tokens::access_reader(read)?;
            for id in accounts::youngest(read, limit)? {
                each(id, access(id)?);
            }
            Ok(())
        })
    }

    fn tokens(&self, account: AccountId) -> Result<Vec<TokenUsage>> {
        self.database.read(|read| {
            let usage = usage::by_token(read, account)?;
            let tokens = tokens::all(read, account)?.into_iter();
            let tokens = tokens.map(|(token, deleted)| {
                let usage = usage.get(&token.number);
                TokenUsage {
                    deleted: deleted.map(clock::from_milliseconds),
                    totals: usage.map_or_else(UsageTotals::default, |(totals, _)| *totals),
                    last_used: usage.map(|(_, last)| clock::from_milliseconds(*last)),
                    token,
                }
            });
            Ok(tokens.collect())
        })
    }

    fn session(&self, cookie: &CodeHash) -> Result<Option<SessionRecord>> {
        self.database.read(|read| sessions::find(read, cookie))
    }

    fn sessions(&self, account: AccountId) -> Result<Vec<(CodeHash, StoredSession)>> {
        self.database.read(|read| {
            let index = read.open_table(ACCOUNT_SESSIONS)?;
            sessions::all_of(&index, &read.open_table(SESSIONS)?, account)
        })
    }

    fn invite_end(&self, code: &CodeHash) -> Result<Option<u64>> {
        self.database
            .read(|read| invites::end(&read.open_table(INVITES)?, code))
    }

    fn usage_page(
        &self,
        account: AccountId,
        filter: &UsageFilter,
        range: PageRange,
    ) -> Result<Page<UsageEntry>> {
        self.database
            .read(|read| usage::page(read, account, filter, range))
    }

    fn usage_days(
        &self,
        account: AccountId,
        days: Days,
        each: &mut dyn FnMut(UsageDay),
    ) -> Result<()> {
        self.database.read(|read| {
            usage::each_day(read, account, days, &mut |day, _| {
                each(day);
                Ok(())
            })
        })
    }

    fn failures(
        &self,
        account: AccountId,
        filter: &FailureFilter,
        range: PageRange,
    ) -> Result<Page<Failure>> {
        self.database
            .read(|read| failures::page(read, account, filter, range))
    }

    fn usage_totals(&self, account: AccountId) -> Result<UsageTotals> {
        self.database.read(|read| usage::totals(read, account))
    }

    fn usage_in_month(
        &self,
        account: AccountId,
        token: Option<TokenNumber>,
        month: u64,
    ) -> Result<u64> {
        self.database
            .read(|read| usage::in_month(read, account, token, month))
    }

    fn exchange_secret_mark(&self, mark: u64) -> Result<Option<u64>> {
        let last = self.database.read(meta::secret_mark)?;
        // A full disk must not keep a store from being opened whose secret is the same as before.
        if last != Some(mark) {
            self.database
                .write(|write| meta::set_secret_mark(write, mark))?;
        }
        Ok(last)
    }

    fn apply(&self, commands: &[Command], _since: Instant) -> Result<Vec<Outcome>> {
        self.database.write(|write| {
            let mut tables = Tables::open(write)?;
            commands
                .iter()
                .map(|command| tables.apply(command))
                .collect()
        })
    }

    fn probe(&self) -> Result<()> {
        // Random bytes, since some file systems have space for any number of zeros.
        let mut bytes = vec![0; PROBE_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| StoreError::Failed(error.to_string()))?;
        self.database
            .write(|write| Ok(write.open_table(PROBE)?.insert((), &bytes[..]).map(drop)?))?;
        self.database
            .write(|write| Ok(write.delete_table(PROBE).map(drop)?))
    }

    fn snapshot(&self) -> Result<Option<Box<dyn Snapshot>>> {
        Ok(Some(Box::new(FileSnapshot::of(&self.database)?)))
    }
}

impl PageRange {
    /// The bound of sequence numbers on the page.
    fn end(self) -> u64 {
        self.before.and_then(EntryId::sequence).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests;
