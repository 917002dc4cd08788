//! What memory knows about accounts. The server's event loop asks here, because it must not wait
//! for the engine.
//!
//! All accounts are read when the store is opened. After that, the writer reports every change here
//! once its commit has succeeded and before its caller goes on, so a token that was replaced is
//! invalid from then on. After a commit that failed, what the engine holds is in doubt: everything
//! is forgotten, and read again by callers that may wait. For an account that is not in memory,
//! because it was forgotten or because there are more than [`MAX_ACCOUNTS`], the result is
//! [`TokenCheck::Unknown`].

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{PoisonError, RwLock};

use super::engine::{Command, Engine, Outcome};
use super::error::StoreError;
use crate::auth::{AccountId, Token};

/// The most accounts in memory: as many as a hash map of 2^17 places takes.
const MAX_ACCOUNTS: usize = (1 << 17) / 8 * 7;

/// The most bytes of both maps. Each has 2^17 places of 1 byte for the map itself and 16 bytes for
/// a generation or 24 bytes for a month. While a map grows, the one of half its size exists too.
pub const MEMORY: usize = (1 << 17) * (17 + 25) * 3 / 2;

/// What memory alone tells about a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenCheck {
    /// The token is this account's present one.
    Valid(AccountId),
    /// The token is malformed or forged, was replaced, or belongs to a deleted account.
    Invalid,
    /// The token was this account's at some time; only the engine can tell whether it still is.
    Unknown(AccountId),
}

/// What is known about the accounts.
pub struct KnownAccounts(RwLock<State>);

struct State {
    /// The token generation of each account; `None` for an account that does not exist.
    generations: HashMap<AccountId, Option<u32>>,
    /// Whether `generations` has all accounts, so that one that is not in it does not exist.
    is_complete: bool,
    /// Counts the changes that can make what was just read from the engine outdated.
    changes: u64,
    /// The first millisecond of a month and the account's conversions in that month.
    months: HashMap<AccountId, (u64, u64)>,
}

impl KnownAccounts {
    /// Reads all accounts, or the youngest ones if there are too many.
    ///
    /// # Errors
    /// The engine cannot be read.
    pub fn load(engine: &dyn Engine) -> Result<KnownAccounts, StoreError> {
        let mut generations = engine.token_generations(MAX_ACCOUNTS + 1)?;
        let is_complete = generations.len() <= MAX_ACCOUNTS;
        generations.truncate(MAX_ACCOUNTS);
        let generations = generations
            .into_iter()
            .map(|(id, generation)| (id, Some(generation)));
        Ok(KnownAccounts(RwLock::new(State {
            generations: generations.collect(),
            is_complete,
            changes: 0,
            months: HashMap::new(),
        })))
    }

    /// What is known about a token whose HMAC was found right.
    pub fn check(&self, token: Token) -> TokenCheck {
        let state = self.read();
        match state.generations.get(&token.account) {
            Some(generation) if *generation == Some(token.generation) => {
                TokenCheck::Valid(token.account)
            }
            Some(_) => TokenCheck::Invalid,
            None if state.is_complete => TokenCheck::Invalid,
            None => TokenCheck::Unknown(token.account),
        }
    }

    /// The number of changes so far: what [`KnownAccounts::learn`] needs from before the engine was
    /// read.
    pub fn changes(&self) -> u64 {
        self.read().changes
    }

    /// Stores what was read from the engine, unless a change since `changes_before` may have made
    /// it outdated.
    pub fn learn(&self, account: AccountId, generation: Option<u32>, changes_before: u64) {
        self.write(|state| {
            if state.changes == changes_before {
                state.put(account, generation);
            }
        });
    }

    /// Takes over what a command that is durable now has changed.
    pub fn update(&self, command: &Command, outcome: &Outcome) {
        match (command, outcome) {
            (
                Command::CreateAccount { .. } | Command::RotateToken(_),
                Outcome::Account(account),
            ) => self.changed(account.id, account.token_generation),
            (Command::DeleteAccount(account), Outcome::Changed) => self.deleted(*account),
            (Command::RecordUsage { account, .. }, Outcome::Recorded { month, conversions }) => {
                self.counted(*account, *month, *conversions);
            }
            _ => {}
        }
    }

    /// Forgets what is in doubt after a command that failed.
    pub fn forget(&self, command: &Command) {
        match command {
            Command::CreateAccount { .. } | Command::RotateToken(_) | Command::DeleteAccount(_) => {
                self.forget_all();
            }
            Command::RecordUsage { account, .. } => self.forget_month(*account),
            Command::AddInvite { .. }
            | Command::SetPassword { .. }
            | Command::StartSession { .. }
            | Command::RenewSession { .. }
            | Command::EndSession { .. }
            | Command::EndSessionsOf(_)
            | Command::SweepSessions { .. } => {}
        }
    }

    /// The account's conversions in the month with this first millisecond.
    pub fn month(&self, account: AccountId, month: u64) -> Option<u64> {
        let (known, conversions) = *self.read().months.get(&account)?;
        (known == month).then_some(conversions)
    }

    /// The account has had at least this many conversions in the month. Counts only grow, so a
    /// count that was read from the engine and overtaken by a conversion changes nothing.
    pub fn counted(&self, account: AccountId, month: u64, conversions: u64) {
        self.write(|state| {
            if !state.months.contains_key(&account) {
                evict(&mut state.months, MAX_ACCOUNTS - 1);
            }
            let known = state.months.entry(account).or_insert((month, 0));
            *known = match *known {
                (same, more) if same == month => (month, conversions.max(more)),
                _ => (month, conversions),
            };
        });
    }

    /// An account was made, or its token replaced.
    fn changed(&self, account: AccountId, generation: u32) {
        self.write(|state| {
            state.changes += 1;
            state.put(account, Some(generation));
        });
    }

    fn deleted(&self, account: AccountId) {
        self.write(|state| {
            state.changes += 1;
            state.months.remove(&account);
            if state.is_complete {
                state.generations.remove(&account);
            } else {
                state.put(account, None);
            }
        });
    }

    fn forget_all(&self) {
        self.write(|state| {
            state.changes += 1;
            state.is_complete = false;
            state.generations.clear();
            state.months.clear();
        });
    }

    fn forget_month(&self, account: AccountId) {
        self.write(|state| {
            state.months.remove(&account);
        });
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, State> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// `change` must not wait for anything, because the event loop waits for it.
    fn write(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner));
    }
}

impl State {
    fn put(&mut self, account: AccountId, generation: Option<u32>) {
        if self.generations.len() >= MAX_ACCOUNTS && !self.generations.contains_key(&account) {
            self.is_complete = false;
            evict(&mut self.generations, MAX_ACCOUNTS - 1);
        }
        self.generations.insert(account, generation);
    }
}

/// Removes entries until there are at most `most`. Which ones go is random, as their places in a
/// hash map are.
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

    fn known(is_complete: bool) -> KnownAccounts {
        KnownAccounts(RwLock::new(State {
            generations: HashMap::from([(AccountId(1), Some(7))]),
            is_complete,
            changes: 0,
            months: HashMap::new(),
        }))
    }

    fn token(account: u64, generation: u32) -> Token {
        Token {
            account: AccountId(account),
            generation,
        }
    }

    #[test]
    fn an_unknown_token_is_invalid_only_if_all_accounts_are_known() {
        for (is_complete, absent) in [
            (true, TokenCheck::Invalid),
            (false, TokenCheck::Unknown(AccountId(2))),
        ] {
            let known = known(is_complete);
            assert_eq!(known.check(token(1, 7)), TokenCheck::Valid(AccountId(1)));
            assert_eq!(known.check(token(1, 6)), TokenCheck::Invalid);
            assert_eq!(known.check(token(2, 0)), absent);
            known.deleted(AccountId(1));
            assert_eq!(known.check(token(1, 7)), TokenCheck::Invalid);
        }
    }

    #[test]
    fn a_read_that_a_change_has_overtaken_is_not_stored() {
        let known = known(true);
        known.forget_all();
        let before = known.changes();
        known.changed(AccountId(1), 8);
        known.deleted(AccountId(2));
        known.learn(AccountId(1), Some(7), before);
        known.learn(AccountId(2), Some(0), before);
        assert_eq!(known.check(token(1, 7)), TokenCheck::Invalid);
        assert_eq!(known.check(token(1, 8)), TokenCheck::Valid(AccountId(1)));
        assert_eq!(known.check(token(2, 0)), TokenCheck::Invalid);
        let before = known.changes();
        known.learn(AccountId(3), Some(0), before);
        assert_eq!(known.check(token(3, 0)), TokenCheck::Valid(AccountId(3)));
    }

    #[test]
    fn accounts_that_do_not_fit_are_unknown_and_not_invalid() {
        let known = known(true);
        for account in 2..=MAX_ACCOUNTS as u64 {
            known.changed(AccountId(account), 0);
        }
        assert!(known.read().is_complete, "all of them fit");
        known.changed(AccountId(u64::MAX), 0);
        assert_eq!(known.read().generations.len(), MAX_ACCOUNTS);
        let unknown = (1..=MAX_ACCOUNTS as u64).filter(|account| {
            known.check(token(*account, 0)) == TokenCheck::Unknown(AccountId(*account))
        });
        assert_eq!(unknown.count(), 1, "one was evicted");
        for account in 0..=MAX_ACCOUNTS as u64 {
            known.counted(AccountId(account), 0, 1);
        }
        assert_eq!(known.read().months.len(), MAX_ACCOUNTS);
    }

    #[test]
    fn a_monthly_count_never_goes_back_and_ends_with_the_month() {
        let (known, account) = (known(true), AccountId(1));
        assert_eq!(known.month(account, 100), None);
        known.counted(account, 100, 6);
        known.counted(account, 100, 5);
        assert_eq!(known.month(account, 100), Some(6));
        assert_eq!(known.month(account, 200), None);
        known.counted(account, 200, 1);
        assert_eq!(known.month(account, 200), Some(1));
        assert_eq!(known.month(account, 100), None);
        known.forget_month(account);
        assert_eq!(known.month(account, 200), None);
    }
}
