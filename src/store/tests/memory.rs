//! An engine in memory, for tests that need no disk. It keeps nothing when it is dropped.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use crate::auth::{AccountId, CodeHash, Email, FailedAttempts, Wait};
use crate::store::account::{Account, AccountRecord};
use crate::store::clock;
use crate::store::engine::{
    Command, Engine, OldRows, Outcome, SessionRecord, Snapshot, TokenChange,
};
use crate::store::entry_id::EntryId;
use crate::store::error::StoreError;
use crate::store::failure::{Failure, FailureFilter, FailurePage, MAX_FAILURES};
use crate::store::session::{MAX_SESSIONS, SessionId, StoredSession};
use crate::store::token::{
    AccountAccess, ApiToken, MAX_DELETED_TOKENS, MAX_TOKENS, Restrictions, TokenSettings,
    TokenUsage, next_serial,
};
use crate::store::token_number::TokenNumber;
use crate::store::usage::{Days, UsageDay, UsageEntry, UsageFilter, UsagePage, UsageTotals};

/// The engine.
#[derive(Default)]
pub struct MemoryEngine {
    state: Mutex<State>,
    /// Whether it says that other processes use it, too: the other stores on it.
    is_shared: bool,
    /// Whether nothing can be asked.
    pub is_away: AtomicBool,
    /// [`Engine::replicas`], if it is not 0.
    pub replicas: AtomicU32,
    /// [`Engine::clock_offset`]
    pub clock_offset: AtomicI64,
    /// How often the engine was asked for an account's tokens.
    pub asked: AtomicU32,
}

#[derive(Default)]
struct State {
    accounts: BTreeMap<AccountId, AccountRecord>,
    sessions: HashMap<CodeHash, (AccountId, StoredSession)>,
    invites: HashMap<CodeHash, u64>,
    histories: HashMap<AccountId, Vec<UsageEntry>>,
    /// How many of the first entries of each history were removed.
    removed: HashMap<AccountId, usize>,
    /// With their sequence numbers.
    failures: HashMap<AccountId, Vec<(u64, Failure)>>,
    keys: HashMap<AccountId, Keys>,
    last_account: u64,
    secret_mark: Option<u64>,
    attempts: HashMap<[u8; 32], FailedAttempts>,
}

/// The tokens of an account.
#[derive(Default)]
struct Keys {
    last_serial: u32,
    /// With the times at which they were deleted.
    tokens: BTreeMap<TokenNumber, (ApiToken, Option<u64>)>,
    restrictions: Restrictions,
}

impl Keys {
    fn access(&self) -> AccountAccess {
        let tokens = self.tokens.values();
        let living = tokens.filter(|(_, deleted)| deleted.is_none());
        AccountAccess {
            tokens: living.map(|(token, _)| token.clone()).collect(),
            restrictions: self.restrictions,
        }
    }

    fn living(&mut self, token: TokenNumber) -> Option<&mut ApiToken> {
        let (token, deleted) = self.tokens.get_mut(&token)?;
        deleted.is_none().then_some(token)
    }

    fn has_name(&self, name: &str, except: Option<TokenNumber>) -> bool {
        let access = self.access();
        let mut others = access.tokens.iter();
        others.any(|token| token.settings.name == name && Some(token.number) != except)
    }

    fn outcome(&self, token: TokenNumber) -> Outcome {
        Outcome::Token {
            token,
            access: self.access(),
        }
    }

    fn next_serial(&mut self, now: u64) -> u32 {
        self.last_serial = next_serial(self.last_serial, now);
        self.last_serial
    }

    fn apply(&mut self, change: &TokenChange) -> Outcome {
        match change {
            TokenChange::Create { settings, now } => self.create(settings, *now),
            TokenChange::Set { token, settings } => self.change(*token, settings),
            TokenChange::Rotate {
                token,
                overlap_ends,
                now,
            } => self.rotate(*token, *overlap_ends, *now),
            TokenChange::Delete { token, now } => self.delete(*token, *now),
            TokenChange::Restrict(restrictions) => {
                self.restrictions = *restrictions;
                self.outcome(TokenNumber::DEFAULT)
            }
        }
    }

    fn create(&mut self, settings: &TokenSettings, now: u64) -> Outcome {
        if self.has_name(&settings.name, None) {
            return Outcome::NameTaken;
        }
        if self.access().tokens.len() >= MAX_TOKENS {
            return Outcome::TooManyTokens;
        }
        let serial = self.next_serial(now);
        let token = ApiToken {
            number: TokenNumber(serial),
            created: clock::from_milliseconds(now),
            serial,
            previous: None,
            settings: settings.clone(),
        };
        self.tokens.insert(TokenNumber(serial), (token, None));
        self.outcome(TokenNumber(serial))
    }

    fn change(&mut self, token: TokenNumber, settings: &TokenSettings) -> Outcome {
        if self.living(token).is_none() {
            return Outcome::Unchanged;
        }
        if self.has_name(&settings.name, Some(token)) {
            return Outcome::NameTaken;
        }
        if let Some(token) = self.living(token) {
            token.settings = settings.clone();
        }
        self.outcome(token)
    }

    fn rotate(&mut self, token: TokenNumber, overlap_ends: Option<u64>, now: u64) -> Outcome {
        if self.living(token).is_none() {
            return Outcome::Unchanged;
        }
        let serial = self.next_serial(now);
        if let Some(token) = self.living(token) {
            token.rotate(serial, overlap_ends);
        }
        self.outcome(token)
    }

    fn delete(&mut self, number: TokenNumber, now: u64) -> Outcome {
        let Some((token, deleted @ None)) = self.tokens.get_mut(&number) else {
            return Outcome::Unchanged;
        };
        *deleted = Some(now.max(1));
        token.previous = None;
        token.settings = TokenSettings {
            name: token.settings.name.clone(),
            ..TokenSettings::of_default()
        };
        let mut gone: Vec<_> = self
            .tokens
            .iter()
            .filter_map(|(number, (_, deleted))| deleted.map(|deleted| (deleted, *number)))
            .collect();
        gone.sort_unstable();
        for (_, number) in &gone[..gone.len().saturating_sub(MAX_DELETED_TOKENS)] {
            self.tokens.remove(number);
        }
        self.outcome(number)
    }
}

impl MemoryEngine {
    /// An engine for several stores at the same time.
    pub fn shared() -> MemoryEngine {
        MemoryEngine {
            is_shared: true,
            ..MemoryEngine::default()
        }
    }

    fn state(&self) -> Result<MutexGuard<'_, State>, StoreError> {
        if self.is_away.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("it is away".to_owned()));
        }
        Ok(self.state.lock().expect("no method panics with the lock"))
    }
}

impl Engine for MemoryEngine {
    fn account(&self, id: AccountId) -> Result<Option<AccountRecord>, StoreError> {
        Ok(self.state()?.accounts.get(&id).cloned())
    }

    fn account_by_email(&self, email: &Email) -> Result<Option<AccountRecord>, StoreError> {
        Ok(self.state()?.by_email(email).cloned())
    }

    fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        let state = self.state()?;
        let records = state.accounts.values();
        Ok(records.map(|record| record.account.clone()).collect())
    }

    fn access(&self, id: AccountId) -> Result<Option<AccountAccess>, StoreError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Ok(self.state()?.keys.get(&id).map(Keys::access))
    }

    fn each_access(
        &self,
        limit: usize,
        each: &mut dyn FnMut(AccountId, AccountAccess),
    ) -> Result<(), StoreError> {
        let state = self.state()?;
        for id in state.accounts.keys().rev().take(limit) {
            each(*id, state.keys[id].access());
        }
        Ok(())
    }

    fn tokens(&self, account: AccountId) -> Result<Vec<TokenUsage>, StoreError> {
        let state = self.state()?;
        let history = state.histories.get(&account).map_or(&[][..], |all| all);
        let Some(keys) = state.keys.get(&account) else {
            return Ok(Vec::new());
        };
        let tokens = keys.tokens.values().map(|(token, deleted)| {
            let by_it = || history.iter().filter(|entry| entry.token == token.number);
            TokenUsage {
                token: token.clone(),
                deleted: deleted.map(clock::from_milliseconds),
                totals: totals(by_it()),
                last_used: by_it().next_back().map(|entry| entry.time),
            }
        });
        Ok(tokens.collect())
    }

    fn session(&self, cookie: &CodeHash) -> Result<Option<SessionRecord>, StoreError> {
        let state = self.state()?;
        let session = state.sessions.get(cookie);
        Ok(session.and_then(|(id, session)| {
            let record = state.accounts.get(id)?.clone();
            Some(SessionRecord {
                record,
                times: session.times,
            })
        }))
    }

    fn sessions(&self, account: AccountId) -> Result<Vec<(CodeHash, StoredSession)>, StoreError> {
        let state = self.state()?;
        let all = state.sessions.iter();
        let of_it = all.filter(|(_, (owner, _))| *owner == account);
        Ok(of_it
            .map(|(cookie, (_, session))| (*cookie, session.clone()))
            .collect())
    }

    fn invite_end(&self, code: &CodeHash) -> Result<Option<u64>, StoreError> {
        Ok(self.state()?.invites.get(code).copied())
    }

    fn usage_page(
        &self,
        account: AccountId,
        filter: &UsageFilter,
        before: Option<EntryId>,
        limit: usize,
    ) -> Result<UsagePage, StoreError> {
        let state = self.state()?;
        let history = state.histories.get(&account).map_or(&[][..], |all| all);
        let removed = state.removed.get(&account).map_or(0, |count| *count);
        let ids = (1_u64..).map(EntryId::from);
        let kept = ids.zip(history).skip(removed);
        let passing: Vec<_> = kept
            .filter(|(id, _)| before.is_none_or(|before| *id < before))
            .filter(|(_, entry)| filter.passes(day_of(entry), entry.token, &entry.format))
            .map(|(id, entry)| (id, entry.clone()))
            .collect();
        let entries: Vec<_> = passing.into_iter().rev().take(limit).collect();
        // It reads a history to its first entry unless the page is full.
        let last = entries.last().filter(|_| entries.len() == limit);
        let first = EntryId::from(removed as u64 + 1);
        Ok(UsagePage {
            next_before: last.map(|(it, _)| *it).filter(|it| *it > first),
            entries,
        })
    }

    fn usage_days(
        &self,
        account: AccountId,
        days: Days,
        each: &mut dyn FnMut(UsageDay),
    ) -> Result<(), StoreError> {
        let state = self.state()?;
        let history = state.histories.get(&account).into_iter().flatten();
        let mut sums = BTreeMap::new();
        for entry in history.filter(|entry| days.contains(day_of(entry))) {
            let key = (day_of(entry), entry.token, entry.format.clone());
            *sums.entry(key).or_default() += totals(std::iter::once(entry));
        }
        for ((day, token, format), totals) in sums {
            each(UsageDay {
                day,
                token,
                format,
                totals,
            });
        }
        Ok(())
    }

    fn failures(
        &self,
        account: AccountId,
        filter: &FailureFilter,
        before: Option<EntryId>,
        limit: usize,
    ) -> Result<FailurePage, StoreError> {
        let state = self.state()?;
        let all = state.failures.get(&account).into_iter().flatten().rev();
        let mut passing = all
            .map(|(sequence, it)| (EntryId::from(*sequence), it.clone()))
            .filter(|(id, _)| before.is_none_or(|before| *id < before))
            .filter(|(_, it)| {
                let day = clock::day(clock::to_milliseconds(it.time));
                filter.passes(day, it.token, it.status)
            });
        let failures: Vec<_> = passing.by_ref().take(limit).collect();
        let next = passing.next().and(failures.last());
        Ok(FailurePage {
            next_before: next.map(|(id, _)| *id),
            failures,
        })
    }

    fn usage_totals(&self, account: AccountId) -> Result<UsageTotals, StoreError> {
        Ok(totals(
            self.state()?.histories.get(&account).into_iter().flatten(),
        ))
    }

    fn usage_in_month(
        &self,
        account: AccountId,
        token: Option<TokenNumber>,
        month: u64,
    ) -> Result<u64, StoreError> {
        Ok(self.state()?.in_month(account, token, month))
    }

    fn exchange_secret_mark(&self, mark: u64) -> Result<Option<u64>, StoreError> {
        let mut state = self.state()?;
        let last = state.secret_mark;
        if !self.is_shared || last.is_none() {
            state.secret_mark = Some(mark);
        }
        Ok(last)
    }

    fn apply(&self, commands: &[Command], _since: Instant) -> Result<Vec<Outcome>, StoreError> {
        let mut state = self.state()?;
        Ok(commands
            .iter()
            .map(|command| state.apply(command))
            .collect())
    }

    fn probe(&self) -> Result<(), StoreError> {
        self.state().map(drop)
    }

    fn begin_attempt(
        &self,
        key: &[u8; 32],
        now: u64,
    ) -> Result<Option<Result<(), Wait>>, StoreError> {
        if !self.is_shared {
            return Ok(None);
        }
        let mut state = self.state()?;
        let next = FailedAttempts::next(state.attempts.get(key).copied(), now);
        Ok(Some(next.map(|next| {
            state.attempts.insert(*key, next);
        })))
    }

    fn forget_attempts(&self, key: &[u8; 32]) -> Result<(), StoreError> {
        self.state()?.attempts.remove(key);
        Ok(())
    }

    fn clock_offset(&self) -> i64 {
        self.clock_offset.load(Ordering::SeqCst)
    }

    fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn replicas(&self) -> u32 {
        self.replicas.load(Ordering::SeqCst).max(1)
    }

    fn snapshot(&self) -> Result<Option<Box<dyn Snapshot>>, StoreError> {
        Ok(None)
    }
}

impl State {
    fn by_email(&self, email: &Email) -> Option<&AccountRecord> {
        let mut records = self.accounts.values();
        records.find(|record| record.account.email == email.as_str())
    }

    fn in_month(&self, account: AccountId, token: Option<TokenNumber>, month: u64) -> u64 {
        let history = self.histories.get(&account).into_iter().flatten();
        let by_it = history.filter(|entry| token.is_none_or(|token| entry.token == token));
        by_it.filter(|entry| month_of(entry) == month).count() as u64
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each command")]
    fn apply(&mut self, command: &Command) -> Outcome {
        match command {
            Command::CreateAccount {
                email,
                password_hash,
                created,
                invite,
            } => {
                let is_good = |code| self.invites.get(code).is_some_and(|end| end > created);
                if !invite.as_ref().is_none_or(is_good) || self.by_email(email).is_some() {
                    return Outcome::Unchanged;
                }
                if let Some(code) = invite {
                    self.invites.remove(code);
                }
                self.last_account = (*created).max(self.last_account + 1);
                let account = Account {
                    id: AccountId(self.last_account),
                    email: email.as_str().to_owned(),
                    created: clock::from_milliseconds(*created),
                    has_password: password_hash.is_some(),
                };
                let record = AccountRecord {
                    account: account.clone(),
                    password_hash: password_hash.clone(),
                };
                let first = ApiToken::default_token(*created, 0);
                let keys = self.keys.entry(account.id).or_default();
                keys.tokens.insert(first.number, (first, None));
                self.accounts.insert(account.id, record);
                Outcome::Account(account)
            }
            Command::AddInvite { code, end, now } => {
                self.invites.retain(|_, end| *end > *now);
                self.invites.insert(*code, *end);
                Outcome::Changed
            }
            Command::DeleteAccount(id) => {
                self.sessions.retain(|_, (owner, _)| owner != id);
                self.histories.remove(id);
                self.removed.remove(id);
                self.failures.remove(id);
                self.keys.remove(id);
                Outcome::of_change(self.accounts.remove(id).is_some())
            }
            Command::ChangeTokens { account, change } => {
                let keys = self.keys.get_mut(account);
                keys.map_or(Outcome::Unchanged, |keys| keys.apply(change))
            }
            Command::SetPassword {
                account,
                password_hash,
                verified,
                kept_session,
            } => {
                let Some(record) = self.accounts.get_mut(account) else {
                    return Outcome::Unchanged;
                };
                if verified.is_some() && *verified != record.password_hash {
                    return Outcome::Unchanged;
                }
                record.password_hash = Some(password_hash.clone());
                record.account.has_password = true;
                self.sessions.retain(|cookie, (owner, _)| {
                    owner != account || kept_session.as_ref() == Some(cookie)
                });
                Outcome::Account(record.account.clone())
            }
            Command::SetEmail {
                account,
                email,
                verified,
            } => {
                let owner = self.by_email(email).map(|record| record.account.id);
                let Some(record) = self.accounts.get_mut(account) else {
                    return Outcome::Unchanged;
                };
                if verified.is_some() && *verified != record.password_hash {
                    return Outcome::Unchanged;
                }
                if owner.is_some_and(|owner| owner != *account) {
                    return Outcome::EmailTaken;
                }
                email.as_str().clone_into(&mut record.account.email);
                Outcome::Account(record.account.clone())
            }
            Command::StartSession {
                cookie,
                account,
                session,
                now,
            } => {
                self.sweep(*now);
                if !self.accounts.contains_key(account) {
                    return Outcome::Unchanged;
                }
                self.make_room(*account);
                self.sessions.insert(*cookie, (*account, session.clone()));
                Outcome::Changed
            }
            Command::RenewSession {
                cookie,
                times,
                browser,
            } => {
                if let Some((_, stored)) = self.sessions.get_mut(cookie) {
                    stored.times = *times;
                    stored.browser = browser.clone().unwrap_or(stored.browser.clone());
                }
                Outcome::Changed
            }
            Command::EndSessionOf { account, session } => {
                let before = self.sessions.len();
                self.sessions.retain(|cookie, (owner, _)| {
                    owner != account || SessionId::of(cookie) != *session
                });
                Outcome::of_change(self.sessions.len() < before)
            }
            Command::EndSession { cookie } => {
                Outcome::of_change(self.sessions.remove(cookie).is_some())
            }
            Command::EndSessionsOf(account) => {
                self.sessions.retain(|_, (owner, _)| owner != account);
                Outcome::Changed
            }
            Command::SweepSessions { now } => Outcome::of_change(self.sweep(*now)),
            Command::RecordFailures { account, failures } => {
                if !self.accounts.contains_key(account) {
                    return Outcome::Unchanged;
                }
                let all = self.failures.entry(*account).or_default();
                for failure in failures {
                    let sequence = all.last().map_or(1, |(last, _)| last + 1);
                    all.push((sequence, failure.clone()));
                }
                all.drain(..all.len().saturating_sub(MAX_FAILURES as usize));
                Outcome::Changed
            }
            Command::RemoveOld(old) => {
                self.remove_old(*old);
                Outcome::Removed { next: None }
            }
            Command::RecordUsage {
                account,
                entry,
                quotas,
            } => {
                if !self.accounts.contains_key(account) {
                    return Outcome::Unchanged;
                }
                let month = month_of(entry);
                for (of_token, most) in [(false, quotas.account), (true, quotas.token)] {
                    let token = of_token.then_some(entry.token);
                    let count = self.in_month(*account, token, month);
                    if most.is_some_and(|most| count >= most.get()) {
                        return Outcome::QuotaExceeded { of_token };
                    }
                }
                let history = self.histories.entry(*account).or_default();
                history.push(entry.clone());
                Outcome::Recorded {
                    month,
                    conversions: self.in_month(*account, None, month),
                    by_token: self.in_month(*account, Some(entry.token), month),
                }
            }
        }
    }

    fn remove_old(&mut self, old: OldRows) {
        for (account, history) in &self.histories {
            let is_old =
                |entry: &UsageEntry| clock::to_milliseconds(entry.time) < old.history_before;
            let removed = self.removed.entry(*account).or_default();
            *removed += history[*removed..]
                .iter()
                .take_while(|it| is_old(it))
                .count();
        }
        for failures in self.failures.values_mut() {
            failures.retain(|(_, it)| clock::to_milliseconds(it.time) >= old.failures_before);
        }
    }

    fn sweep(&mut self, now: u64) -> bool {
        let before = self.sessions.len();
        self.sessions
            .retain(|_, (_, session)| !session.times.is_over(now));
        self.sessions.len() < before
    }

    fn make_room(&mut self, account: AccountId) {
        let of_it = self.sessions.iter().filter(|(_, (it, _))| *it == account);
        let mut by_use: Vec<_> = of_it
            .map(|(cookie, (_, session))| (session.times.used, *cookie))
            .collect();
        by_use.sort_unstable();
        let ended = (by_use.len() + 1).saturating_sub(MAX_SESSIONS);
        for (_, cookie) in &by_use[..ended] {
            self.sessions.remove(cookie);
        }
    }
}

fn day_of(entry: &UsageEntry) -> u32 {
    clock::day(clock::to_milliseconds(entry.time))
}

fn month_of(entry: &UsageEntry) -> u64 {
    clock::month(clock::to_milliseconds(entry.time)).0
}

fn totals<'a>(history: impl Iterator<Item = &'a UsageEntry>) -> UsageTotals {
    let mut totals = UsageTotals::default();
    for entry in history {
        totals.conversions += 1;
        totals.input_bytes += entry.input_bytes;
        totals.output_bytes += entry.output_bytes;
    }
    totals
}
