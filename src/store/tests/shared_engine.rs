//! redb in memory as an engine that several stores share, for tests of what they share.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::time::Instant;

use super::disk::Disk;
use crate::auth::{AccountId, CodeHash, Email, FailedAttempts, Wait};
use crate::store::account::Account;
use crate::store::engine::{Command, Engine, Outcome, PageRange, SessionRecord, Snapshot};
use crate::store::entry_id::Page;
use crate::store::error::StoreError;
use crate::store::failure::{Failure, FailureFilter};
use crate::store::redb::RedbEngine;
use crate::store::rows::AccountRow;
use crate::store::session::StoredSession;
use crate::store::token::{AccountAccess, TokenUsage};
use crate::store::token_number::TokenNumber;
use crate::store::usage::{Days, UsageDay, UsageEntry, UsageFilter, UsageTotals};

/// The engine.
pub struct SharedEngine {
    redb: RedbEngine,
    attempts: Mutex<HashMap<[u8; 32], FailedAttempts>>,
    /// Whether every query fails.
    pub is_away: AtomicBool,
    /// Whether the next commands are carried out, and the answer is lost.
    pub loses_answer: AtomicBool,
    /// [`Engine::replicas`], if it is not 0.
    pub replicas: AtomicU32,
    /// [`Engine::clock_offset`]
    pub clock_offset: AtomicI64,
    /// The number of calls of [`Engine::access`].
    pub asked: AtomicU32,
}

impl Default for SharedEngine {
    fn default() -> SharedEngine {
        SharedEngine {
            redb: Disk::default().engine(),
            attempts: Mutex::default(),
            is_away: AtomicBool::default(),
            loses_answer: AtomicBool::default(),
            replicas: AtomicU32::default(),
            clock_offset: AtomicI64::default(),
            asked: AtomicU32::default(),
        }
    }
}

impl SharedEngine {
    fn redb(&self) -> Result<&RedbEngine, StoreError> {
        if self.is_away.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("it is away".to_owned()));
        }
        Ok(&self.redb)
    }
}

impl Engine for SharedEngine {
    fn account(&self, id: AccountId) -> Result<Option<AccountRow>, StoreError> {
        self.redb()?.account(id)
    }

    fn account_by_email(&self, email: &Email) -> Result<Option<AccountRow>, StoreError> {
        self.redb()?.account_by_email(email)
    }

    fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        self.redb()?.accounts()
    }

    fn access(&self, id: AccountId) -> Result<Option<AccountAccess>, StoreError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.redb()?.access(id)
    }

    fn tokens(&self, account: AccountId) -> Result<Vec<TokenUsage>, StoreError> {
        self.redb()?.tokens(account)
    }

    fn session(&self, cookie: &CodeHash) -> Result<Option<SessionRecord>, StoreError> {
        self.redb()?.session(cookie)
    }

    fn sessions(&self, account: AccountId) -> Result<Vec<(CodeHash, StoredSession)>, StoreError> {
        self.redb()?.sessions(account)
    }

    fn invite_end(&self, code: &CodeHash) -> Result<Option<u64>, StoreError> {
        self.redb()?.invite_end(code)
    }

    fn usage_page(
        &self,
        account: AccountId,
        filter: &UsageFilter,
        range: PageRange,
    ) -> Result<Page<UsageEntry>, StoreError> {
        self.redb()?.usage_page(account, filter, range)
    }

    fn usage_days(
        &self,
        account: AccountId,
        days: Days,
        each: &mut dyn FnMut(UsageDay),
    ) -> Result<(), StoreError> {
        self.redb()?.usage_days(account, days, each)
    }

    fn failures(
        &self,
        account: AccountId,
        filter: &FailureFilter,
        range: PageRange,
    ) -> Result<Page<Failure>, StoreError> {
        self.redb()?.failures(account, filter, range)
    }

    fn usage_totals(&self, account: AccountId) -> Result<UsageTotals, StoreError> {
        self.redb()?.usage_totals(account)
    }

    fn usage_in_month(
        &self,
        account: AccountId,
        token: Option<TokenNumber>,
        month: u64,
    ) -> Result<u64, StoreError> {
        self.redb()?.usage_in_month(account, token, month)
    }

    fn exchange_secret_mark(&self, mark: u64) -> Result<Option<u64>, StoreError> {
        let redb = self.redb()?;
        let last = redb.exchange_secret_mark(mark)?;
        if let Some(first) = last {
            redb.exchange_secret_mark(first)?;
        }
        Ok(last)
    }

    fn apply(&self, commands: &[Command], since: Instant) -> Result<Vec<Outcome>, StoreError> {
        let outcomes = self.redb()?.apply(commands, since)?;
        if self.loses_answer.swap(false, Ordering::SeqCst) {
            return Err(StoreError::Unavailable("its answer was lost".to_owned()));
        }
        Ok(outcomes)
    }

    fn probe(&self) -> Result<(), StoreError> {
        self.redb()?.probe()
    }

    fn snapshot(&self) -> Result<Option<Box<dyn Snapshot>>, StoreError> {
        self.redb()?.snapshot()
    }

    fn begin_attempt(
        &self,
        key: &[u8; 32],
        now: u64,
    ) -> Result<Option<Result<(), Wait>>, StoreError> {
        self.redb()?;
        let mut attempts = self
            .attempts
            .lock()
            .expect("no method panics with the lock");
        let next = FailedAttempts::next(attempts.get(key).copied(), now);
        Ok(Some(next.map(|next| {
            attempts.insert(*key, next);
        })))
    }

    fn forget_attempts(&self, key: &[u8; 32]) -> Result<(), StoreError> {
        self.redb()?;
        let mut attempts = self
            .attempts
            .lock()
            .expect("no method panics with the lock");
        attempts.remove(key);
        Ok(())
    }

    fn clock_offset(&self) -> i64 {
        self.clock_offset.load(Ordering::SeqCst)
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn replicas(&self) -> u32 {
        self.replicas.load(Ordering::SeqCst).max(1)
    }
}
