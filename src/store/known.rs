//! A cache of the accounts in memory. The server's event loop reads it, because it must not wait
//! for the engine.
//!
//! All accounts are read when the store is opened. After that, the writer reports every change here
//! once its commit has succeeded and before its caller goes on, so a token that was rotated is
//! invalid from then on. After a failed commit the state of the engine is unknown, so the cache is
//! cleared, and callers that may wait fill it again. The result is [`TokenCheck::Unknown`] for an
//! account that is not in memory: because it was cleared, because there are more than
//! [`MAX_ACCOUNTS`], or because the tokens of all accounts take more than [`MAX_ACCESS_BYTES`].
//!
//! If other processes change the engine too ([`Engine::is_shared`]), nothing is read when the store
//! is opened, and every entry is valid for [`VALIDITY`], also one for an account that does not
//! exist. After that the result is [`TokenCheck::Unknown`] again.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use super::clock;
use super::engine::{Command, Engine, Outcome};
use super::error::Result;
use super::monotonic;
use super::token::{AccountAccess, Caller, SerialCheck};
use super::token_number::TokenNumber;
use crate::auth::{AccountId, Token};

/// The most accounts in memory: the capacity of a hash map of 2^17 buckets.
const MAX_ACCOUNTS: usize = (1 << 17) / 8 * 7;

/// The most bytes of tokens and limits: 2,000 accounts with some tokens each, or 18 whose 50 tokens
/// have presets of the greatest length. Those of others are read from the engine, which takes some
/// microseconds.
const MAX_ACCESS_BYTES: usize = 2 << 20;

/// How long an entry read from a shared engine is valid, from before its query. A change is in
/// force in all processes after this time.
pub const VALIDITY: Duration = Duration::from_secs(1);

/// The most bytes of the maps of accounts and months, and of tokens and limits. Each map has 2^17
/// buckets of 1 byte for the map itself, and 16 bytes for an account or 32 bytes for a month. While
/// a map grows, the one of half its size exists too. With a shared engine there are a quarter as
/// many buckets, and two more maps with the times of queries, of 24 and 32 bytes.
pub const MEMORY: usize = (1 << 17) * (17 + 33) * 3 / 2 + MAX_ACCESS_BYTES;

/// The result of looking a token up in memory.
#[derive(Clone, Debug)]
pub enum TokenCheck {
    /// The token is good.
    Valid(Caller),
    /// The token has ended.
    Ended,
    /// The token is malformed or forged, was replaced or deleted, or belongs to a deleted account.
    Invalid,
    /// The token was this account's at some time. Whether it still is must be read from the engine.
    Unknown {
        /// The account.
        account: AccountId,
        /// The caller by the last valid entry in memory, if the token was valid then.
        last_known: Option<Caller>,
    },
}

/// The cache of accounts.
pub struct KnownAccounts {
    state: RwLock<State>,
    /// Whether other processes change accounts, too.
    is_shared: bool,
}

#[derive(Default)]
struct State {
    accounts: HashMap<AccountId, Known>,
    /// Whether `accounts` has all accounts, so that one that is not in it does not exist.
    is_complete: bool,
    /// Tokens and limits of accounts that are [`Known::Elsewhere`]. Missing ones are read from the
    /// engine.
    accesses: HashMap<AccountId, Arc<AccountAccess>>,
    /// The sum of [`AccountAccess::heap_bytes`].
    access_bytes: usize,
    /// The number of changes that can make a concurrent read of the engine outdated.
    changes: u64,
    /// The first millisecond of a month, and the conversions of an account, or by one of its
    /// tokens, in that month.
    months: HashMap<MonthKey, (u64, u64)>,
    /// The times of the queries that gave the entries of `accounts` and `months`, if the engine is
    /// shared.
    queried: Option<QueryTimes>,
}

/// An account, or one of its tokens.
type MonthKey = (AccountId, Option<TokenNumber>);

/// When the engine was queried for each entry.
#[derive(Default)]
struct QueryTimes {
    accounts: HashMap<AccountId, Instant>,
    months: HashMap<MonthKey, Instant>,
}

/// The entry of an account.
enum Known {
    /// There is no such account.
    Absent,
    /// It has only its first token, with this serial number and without limits or preset.
    Plain(u32),
    /// It has other tokens, limits or presets: see [`State::accesses`].
    Elsewhere,
}

impl KnownAccounts {
    /// Reads all accounts, or the youngest ones if there are too many. Reads none if the engine is
    /// shared.
    pub fn load(engine: &dyn Engine) -> Result<KnownAccounts> {
        let is_shared = engine.is_shared();
        let mut state = State {
            is_complete: !is_shared,
            queried: is_shared.then(QueryTimes::default),
            ..State::default()
        };
        if is_shared {
            return Ok(KnownAccounts::new(state));
        }
        let now = Instant::now();
        engine.each_access(MAX_ACCOUNTS + 1, &mut |account, access| {
            if state.accounts.len() < MAX_ACCOUNTS {
                state.put(account, Some(access), now);
            } else {
                state.is_complete = false;
            }
        })?;
        Ok(KnownAccounts::new(state))
    }

    fn new(state: State) -> KnownAccounts {
        KnownAccounts {
            is_shared: state.queried.is_some(),
            state: RwLock::new(state),
        }
    }

    /// Looks up a token whose HMAC is right, at the time `now`.
    pub fn check(&self, token: Token, now: u64) -> TokenCheck {
        let state = self.read();
        let last = state.check(token, now);
        let is_valid = state.queried.as_ref().is_none_or(|times| {
            let queried = times.accounts.get(&token.account);
            queried.is_some_and(|queried| monotonic::elapsed(*queried) < VALIDITY)
        });
        if is_valid {
            return last;
        }
        TokenCheck::Unknown {
            account: token.account,
            last_known: match last {
                TokenCheck::Valid(caller) => Some(caller),
                _ => None,
            },
        }
    }

    /// The number of changes so far, which [`KnownAccounts::learn`] needs from before the query.
    pub fn changes(&self) -> u64 {
        self.read().changes
    }

    /// Stores the result of a query that began at the time `queried`, unless a change since
    /// `changes_before` may have made it outdated.
    pub fn learn(
        &self,
        account: AccountId,
        access: Option<AccountAccess>,
        changes_before: u64,
        queried: Instant,
    ) {
        self.write(|state| {
            if state.changes == changes_before {
                state.put(account, access, queried);
            }
        });
    }

    /// Takes over the change of a durable command, which was sent to the engine at the time
    /// `queried`.
    pub fn update(&self, command: &Command, outcome: &Outcome, queried: Instant) {
        match (command, outcome) {
            (Command::CreateAccount { created, .. }, Outcome::Account(account)) => {
                self.changed(account.id, AccountAccess::of_new_account(*created), queried);
            }
            (Command::ChangeTokens { account, .. }, Outcome::Token { access, .. }) => {
                self.changed(*account, access.clone(), queried);
            }
            (Command::DeleteAccount(account), Outcome::Changed) => self.deleted(*account, queried),
            (
                Command::RecordUsage { account, entry, .. },
                Outcome::Recorded {
                    month,
                    conversions,
                    by_token,
                },
            ) => {
                self.counted(*account, None, *month, *conversions, queried);
                self.counted(*account, Some(entry.token), *month, *by_token, queried);
            }
            (
                Command::RecordUsage {
                    account,
                    entry,
                    quotas,
                },
                Outcome::QuotaExceeded { of_token },
            ) => {
                let (month, _) = clock::month(clock::to_milliseconds(entry.time));
                let (token, quota) = if *of_token {
                    (Some(entry.token), quotas.token)
                } else {
                    (None, quotas.account)
                };
                if let Some(quota) = quota {
                    self.counted(*account, token, month, quota.get(), queried);
                }
            }
            _ => {}
        }
    }

    /// Removes the entries that a failed command may have changed.
    pub fn forget(&self, command: &Command) {
        match command {
            // Entries of other accounts expire soon.
            Command::ChangeTokens { account, .. } | Command::DeleteAccount(account)
                if self.is_shared =>
            {
                self.write(|state| {
                    state.changes += 1;
                    state.remove(*account);
                });
            }
            Command::CreateAccount { .. } if self.is_shared => {}
            Command::CreateAccount { .. }
            | Command::ChangeTokens { .. }
            | Command::DeleteAccount(_) => self.forget_all(),
            Command::RecordUsage { account, entry, .. } => self.forget_month(*account, entry.token),
            Command::AddInvite { .. }
            | Command::ChangeAccount { .. }
            | Command::StartSession { .. }
            | Command::RenewSession { .. }
            | Command::EndSession { .. }
            | Command::EndSessionOf { .. }
            | Command::EndSessionsOf(_)
            | Command::SweepSessions { .. }
            | Command::RecordFailures { .. }
            | Command::RemoveOld(_) => {}
        }
    }

    /// The conversions of the account, or by one of its tokens, in the month with this first
    /// millisecond.
    pub fn month(&self, account: AccountId, token: Option<TokenNumber>, month: u64) -> Option<u64> {
        let (state, key) = (self.read(), (account, token));
        if let Some(times) = &state.queried
            && monotonic::elapsed(*times.months.get(&key)?) >= VALIDITY
        {
            return None;
        }
        let (known, conversions) = *state.months.get(&key)?;
        (known == month).then_some(conversions)
    }

    /// Stores that the account, or its token, has had at least this many conversions in the month.
    /// Counts only grow, so a lower count that arrives late changes nothing.
    pub fn counted(
        &self,
        account: AccountId,
        token: Option<TokenNumber>,
        month: u64,
        conversions: u64,
        queried: Instant,
    ) {
        self.write(|state| {
            let key = (account, token);
            let most = state.max_accounts() - 1;
            if !state.months.contains_key(&key) {
                evict(&mut state.months, most);
            }
            if let Some(times) = &mut state.queried {
                if !times.months.contains_key(&key) {
                    evict(&mut times.months, most);
                }
                let last = times.months.entry(key).or_insert(queried);
                *last = queried.max(*last);
            }
            let known = state.months.entry(key).or_insert((month, 0));
            *known = match *known {
                (same, more) if same == month => (month, conversions.max(more)),
                _ => (month, conversions),
            };
        });
    }

    /// Stores the tokens and limits of an account after a change.
    fn changed(&self, account: AccountId, access: AccountAccess, queried: Instant) {
        self.write(|state| {
            state.changes += 1;
            state.put(account, Some(access), queried);
        });
    }

    fn deleted(&self, account: AccountId, queried: Instant) {
        self.write(|state| {
            state.changes += 1;
            state.months.retain(|(owner, _), _| *owner != account);
            if state.is_complete {
                state.remove(account);
            } else {
                state.put(account, None, queried);
            }
        });
    }

    fn forget_all(&self) {
        self.write(|state| {
            state.changes += 1;
            state.is_complete = false;
            state.access_bytes = 0;
            state.accesses.clear();
            state.accounts.clear();
            state.months.clear();
            state.queried = state.queried.take().map(|_| QueryTimes::default());
        });
    }

    fn forget_month(&self, account: AccountId, token: TokenNumber) {
        self.write(|state| {
            state.months.remove(&(account, None));
            state.months.remove(&(account, Some(token)));
        });
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state. `change` must not wait for anything, because the event loop waits for it.
    fn write(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.write().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Looks up a token among those of its account.
pub fn check(token: Token, access: &Arc<AccountAccess>, now: u64) -> TokenCheck {
    match access.check(token.serial, now) {
        SerialCheck::Valid(index) => {
            TokenCheck::Valid(Caller::new(token.account, Arc::clone(access), index))
        }
        SerialCheck::Ended => TokenCheck::Ended,
        SerialCheck::Unknown => TokenCheck::Invalid,
    }
}

impl State {
    /// The result by the last query, however old.
    fn check(&self, token: Token, now: u64) -> TokenCheck {
        let unknown = || TokenCheck::Unknown {
            account: token.account,
            last_known: None,
        };
        match self.accounts.get(&token.account) {
            Some(Known::Plain(serial)) if *serial == token.serial => {
                TokenCheck::Valid(Caller::plain(token.account))
            }
            Some(Known::Plain(_) | Known::Absent) => TokenCheck::Invalid,
            Some(Known::Elsewhere) => match self.accesses.get(&token.account) {
                Some(access) => check(token, access, now),
                None => unknown(),
            },
            None if self.is_complete => TokenCheck::Invalid,
            None => unknown(),
        }
    }

    fn max_accounts(&self) -> usize {
        match self.queried {
            None => MAX_ACCOUNTS,
            Some(_) => MAX_ACCOUNTS / 4,
        }
    }

    fn put(&mut self, account: AccountId, access: Option<AccountAccess>, queried: Instant) {
        self.remove(account);
        let most = self.max_accounts();
        if self.accounts.len() >= most {
            self.is_complete = false;
            while self.accounts.len() >= most {
                let Some(evicted) = self.accounts.keys().next().copied() else {
                    break;
                };
                self.remove(evicted);
            }
        }
        let serial = access.as_ref().and_then(AccountAccess::plain_serial);
        let known = match (access, serial) {
            (None, _) => Known::Absent,
            (_, Some(serial)) => Known::Plain(serial),
            (Some(access), None) => {
                self.keep(account, access);
                Known::Elsewhere
            }
        };
        self.accounts.insert(account, known);
        if let Some(times) = &mut self.queried {
            times.accounts.insert(account, queried);
        }
    }

    /// Stores the tokens and limits of an account. To make room, random other ones are removed.
    fn keep(&mut self, account: AccountId, access: AccountAccess) {
        let bytes = access.heap_bytes();
        while self.access_bytes + bytes > MAX_ACCESS_BYTES {
            let Some(evicted) = self.accesses.keys().next().copied() else {
                return;
            };
            self.forget_access(evicted);
        }
        self.access_bytes += bytes;
        self.accesses.insert(account, Arc::new(access));
    }

    fn remove(&mut self, account: AccountId) {
        self.accounts.remove(&account);
        if let Some(times) = &mut self.queried {
            times.accounts.remove(&account);
        }
        self.forget_access(account);
    }

    fn forget_access(&mut self, account: AccountId) {
        if let Some(access) = self.accesses.remove(&account) {
            self.access_bytes -= access.heap_bytes();
        }
    }
}

/// Removes random entries until there are at most `most`: the first ones in the order of the map.
fn evict<K: Copy + Eq + Hash, V>(map: &mut HashMap<K, V>, most: usize) {
    while map.len() > most {
        let Some(key) = map.keys().next().copied() else {
            return;
        };
        map.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Email;
    use crate::store::token::{ApiToken, TokenSettings};

    fn known(is_complete: bool) -> KnownAccounts {
        KnownAccounts::new(State {
            accounts: HashMap::from([(AccountId(1), Known::Plain(7))]),
            is_complete,
            ..State::default()
        })
    }

    /// The cache of an engine that other processes change, too.
    fn shared() -> KnownAccounts {
        KnownAccounts::new(State {
            queried: Some(QueryTimes::default()),
            ..State::default()
        })
    }

    fn plain(serial: u32) -> AccountAccess {
        let mut access = AccountAccess::of_new_account(0);
        access.tokens[0].serial = serial;
        access
    }

    /// Two tokens, of which the second has a preset of so many bytes.
    fn with_preset(bytes: usize) -> AccountAccess {
        let mut access = plain(7);
        access.tokens.push(ApiToken {
            number: TokenNumber(8),
            serial: 8,
            settings: TokenSettings {
                name: "shop".to_owned(),
                preset: "x".repeat(bytes),
                ..TokenSettings::of_default()
            },
            ..access.tokens[0].clone()
        });
        access
    }

    /// `Ok` with the account and the token's number, or the other results by name.
    fn result(
        known: &KnownAccounts,
        account: u64,
        serial: u32,
    ) -> Result<(u64, u32), &'static str> {
        let token = Token {
            account: AccountId(account),
            serial,
        };
        match known.check(token, 1000) {
            TokenCheck::Valid(caller) => Ok((caller.account.0, caller.token.0)),
            TokenCheck::Ended => Err("ended"),
            TokenCheck::Invalid => Err("invalid"),
            TokenCheck::Unknown { .. } => Err("unknown"),
        }
    }

    #[test]
    fn an_unknown_token_is_invalid_only_if_all_accounts_are_known() {
        for (is_complete, absent) in [(true, "invalid"), (false, "unknown")] {
            let known = known(is_complete);
            assert_eq!(result(&known, 1, 7), Ok((1, 0)));
            assert_eq!(result(&known, 1, 6), Err("invalid"));
            assert_eq!(result(&known, 2, 0), Err(absent));
            known.deleted(AccountId(1), Instant::now());
            assert_eq!(result(&known, 1, 7), Err("invalid"));
        }
    }

    #[test]
    fn a_read_that_a_change_has_overtaken_is_not_stored() {
        let known = known(true);
        known.forget_all();
        let before = known.changes();
        known.changed(AccountId(1), plain(8), Instant::now());
        known.deleted(AccountId(2), Instant::now());
        known.learn(AccountId(1), Some(plain(7)), before, Instant::now());
        known.learn(AccountId(2), Some(plain(0)), before, Instant::now());
        assert_eq!(result(&known, 1, 7), Err("invalid"));
        assert_eq!(result(&known, 1, 8), Ok((1, 0)));
        assert_eq!(result(&known, 2, 0), Err("invalid"));
        let before = known.changes();
        known.learn(AccountId(3), Some(plain(0)), before, Instant::now());
        assert_eq!(result(&known, 3, 0), Ok((3, 0)));
    }

    #[test]
    fn each_change_that_may_overtake_a_read_keeps_it_from_being_stored() {
        type Change = fn(&KnownAccounts, AccountId);
        let changes: [(&str, Change); 4] = [
            ("a change", |known, account| {
                known.changed(account, plain(0), Instant::now());
            }),
            ("a removal", |known, account| {
                known.deleted(account, Instant::now());
            }),
            ("a failed removal", |known, account| {
                known.forget(&Command::DeleteAccount(account));
            }),
            ("a failure", |known, _| known.forget_all()),
        ];
        for (name, change) in changes {
            for known in [KnownAccounts::new(State::default()), shared()] {
                let before = known.changes();
                change(&known, AccountId(2));
                known.learn(AccountId(1), Some(plain(7)), before, Instant::now());
                assert_eq!(result(&known, 1, 7), Err("unknown"), "after {name}");
            }
        }
    }

    #[test]
    fn a_failed_change_makes_others_unknown_only_if_nobody_else_would_tell() {
        let commands = [
            Command::DeleteAccount(AccountId(1)),
            Command::CreateAccount {
                email: Email::parse("owner@example.org").unwrap(),
                password_hash: None,
                created: 0,
                invite: None,
            },
        ];
        let unknown = Err("unknown");
        for (known, of_first, of_other) in [
            (KnownAccounts::new(State::default()), [unknown; 2], unknown),
            (shared(), [unknown, Ok((1, 0))], Ok((2, 0))),
        ] {
            for (command, of_first) in commands.iter().zip(of_first) {
                for account in [1, 2] {
                    known.changed(AccountId(account), with_preset(10), Instant::now());
                }
                known.forget(command);
                assert_eq!(result(&known, 1, 7), of_first);
                assert_eq!(result(&known, 2, 7), of_other);
            }
        }
    }

    #[test]
    fn the_months_of_a_deleted_account_leave_with_it() {
        let known = known(true);
        for account in [1, 2] {
            known.counted(AccountId(account), None, 100, 6, Instant::now());
        }
        known.deleted(AccountId(1), Instant::now());
        assert_eq!(known.month(AccountId(1), None, 100), None);
        assert_eq!(known.month(AccountId(2), None, 100), Some(6));
    }

    #[test]
    fn accounts_that_do_not_fit_are_unknown_and_not_invalid() {
        let known = known(true);
        for account in 2..=MAX_ACCOUNTS as u64 {
            known.changed(AccountId(account), plain(0), Instant::now());
        }
        assert!(known.read().is_complete, "all of them fit");
        known.changed(AccountId(u64::MAX), plain(0), Instant::now());
        assert_eq!(known.read().accounts.len(), MAX_ACCOUNTS);
        let unknown = (1..=MAX_ACCOUNTS as u64).filter(|account| {
            let serial = if *account == 1 { 7 } else { 0 };
            result(&known, *account, serial) == Err("unknown")
        });
        assert_eq!(unknown.count(), 1, "one was evicted");
        for account in 0..=MAX_ACCOUNTS as u64 {
            known.counted(AccountId(account), None, 0, 1, Instant::now());
        }
        assert_eq!(known.read().months.len(), MAX_ACCOUNTS);
    }

    #[test]
    fn what_is_set_for_accounts_is_bounded_and_never_makes_a_token_invalid() {
        let known = known(true);
        let many = 2 * MAX_ACCESS_BYTES as u64 / 100_000;
        let result = |account| result(&known, account, 8);
        for account in 2..2 + many {
            known.changed(AccountId(account), with_preset(100_000), Instant::now());
            assert_eq!(result(account), Ok((account, 8)));
            let state = known.read();
            let all = state.accesses.values().map(|access| access.heap_bytes());
            assert_eq!(state.access_bytes, all.sum::<usize>());
            assert!(state.access_bytes <= MAX_ACCESS_BYTES);
        }
        let unknown = (2..2 + many).filter(|account| result(*account) == Err("unknown"));
        let unknown = unknown.count() as u64;
        assert!(unknown > many / 3 && unknown < many * 2 / 3, "{unknown}");
        let too_much = AccountId(1_000_000);
        known.changed(too_much, with_preset(MAX_ACCESS_BYTES), Instant::now());
        assert_eq!(result(too_much.0), Err("unknown"));
        for account in 2..2 + many {
            known.deleted(AccountId(account), Instant::now());
        }
        assert_eq!(known.read().access_bytes, 0);
    }

    #[test]
    fn a_monthly_count_never_goes_back_and_ends_with_the_month() {
        let (known, account) = (known(true), AccountId(1));
        for token in [None, Some(TokenNumber::DEFAULT)] {
            assert_eq!(known.month(account, token, 100), None);
            known.counted(account, token, 100, 6, Instant::now());
            known.counted(account, token, 100, 5, Instant::now());
            assert_eq!(known.month(account, token, 100), Some(6));
            assert_eq!(known.month(account, token, 200), None);
            known.counted(account, token, 200, 1, Instant::now());
            assert_eq!(known.month(account, token, 200), Some(1));
            assert_eq!(known.month(account, token, 100), None);
        }
        known.forget_month(account, TokenNumber::DEFAULT);
        assert_eq!(known.month(account, None, 200), None);
        assert_eq!(known.month(account, Some(TokenNumber::DEFAULT), 200), None);
    }
}
