//! What is known of accounts without asking the disk, for the server's event loop, which must not wait for one.
//!
//! All accounts are read when the store is opened, and the writer brings every change here when its commit has
//! succeeded and before the change is answered: a token that was rotated away is refused from then on. After a commit
//! that failed nobody knows what the disk has, so everything is forgotten and looked up anew, by whoever may wait.
//! What is not known, because it was forgotten or because there are more accounts than [`MOST`], is
//! [`TokenCheck::Unknown`]: never good, and never bad.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{PoisonError, RwLock};

use redb::ReadTransaction;

use super::accounts;
use crate::auth::{AccountId, Token};

/// Accounts remembered: as many as a hash map of 2^17 places takes.
const MOST: usize = (1 << 17) / 8 * 7;

/// Most bytes of both maps: 2^17 places, each with a byte of the map's own, of 16 bytes for the generations and of 24 for
/// the months. While a map grows, the one of half its size is there too.
pub const MEMORY: usize = (1 << 17) * (17 + 25) * 3 / 2;

/// What memory alone tells of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenCheck {
    /// It is this account's present token.
    Valid(AccountId),
    /// It is malformed, forged, rotated away, or of a deleted account.
    Invalid,
    /// It was this account's at some time; only the disk knows whether it is still.
    Unknown(AccountId),
}

/// The accounts known.
pub struct KnownAccounts(RwLock<State>);

struct State {
    /// How often each account's token was rotated; `None` for an account that does not exist.
    generations: HashMap<AccountId, Option<u32>>,
    /// Whether an account that is not in `generations` does not exist.
    is_complete: bool,
    /// Counts what could make a look at the disk outdated.
    changes: u64,
    /// The first millisecond of a month, and the conversions in it.
    months: HashMap<AccountId, (u64, u64)>,
}

impl KnownAccounts {
    /// All accounts, or the youngest of them.
    ///
    /// # Errors
    /// Those of redb.
    pub fn load(read: &ReadTransaction) -> Result<KnownAccounts, redb::Error> {
        let mut generations: HashMap<_, _> = accounts::generations(read)?
            .take(MOST + 1)
            .map(|row| row.map(|(id, generation)| (id, Some(generation))))
            .collect::<Result<_, _>>()?;
        let is_complete = generations.len() <= MOST;
        make_room(&mut generations, MOST);
        Ok(KnownAccounts(RwLock::new(State {
            generations,
            is_complete,
            changes: 0,
            months: HashMap::new(),
        })))
    }

    /// What is known of a genuine token.
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

    /// Begins a look at the disk: what [`KnownAccounts::learn`] has to know.
    pub fn changes(&self) -> u64 {
        self.read().changes
    }

    /// Remembers what a look at the disk has found, unless it may be outdated by now.
    pub fn learn(&self, account: AccountId, generation: Option<u32>, changes_before: u64) {
        self.write(|state| {
            if state.changes == changes_before {
                state.put(account, generation);
            }
        });
    }

    /// An account was made, or its token rotated.
    pub fn changed(&self, account: AccountId, generation: u32) {
        self.write(|state| {
            state.changes += 1;
            state.put(account, Some(generation));
        });
    }

    /// An account was deleted.
    pub fn deleted(&self, account: AccountId) {
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

    /// A change of accounts failed, and may be on the disk or not.
    pub fn forget_all(&self) {
        self.write(|state| {
            state.changes += 1;
            state.is_complete = false;
            state.generations.clear();
            state.months.clear();
        });
    }

    /// The account's conversions in the month with this first millisecond.
    pub fn month(&self, account: AccountId, month: u64) -> Option<u64> {
        let (known, conversions) = *self.read().months.get(&account)?;
        (known == month).then_some(conversions)
    }

    /// The account has had so many conversions in the month. They only grow, so that a look at the disk that was
    /// overtaken by a conversion changes nothing.
    pub fn counted(&self, account: AccountId, month: u64, conversions: u64) {
        self.write(|state| {
            if !state.months.contains_key(&account) {
                make_room(&mut state.months, MOST - 1);
            }
            let known = state.months.entry(account).or_insert((month, 0));
            *known = match *known {
                (same, more) if same == month => (month, conversions.max(more)),
                _ => (month, conversions),
            };
        });
    }

    /// A conversion could not be recorded, and may be on the disk or not.
    pub fn forget_month(&self, account: AccountId) {
        self.write(|state| {
            state.months.remove(&account);
        });
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, State> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// `change` must wait for nothing: the event loop waits for it.
    fn write(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner));
    }
}

impl State {
    fn put(&mut self, account: AccountId, generation: Option<u32>) {
        if self.generations.len() >= MOST && !self.generations.contains_key(&account) {
            self.is_complete = false;
            make_room(&mut self.generations, MOST - 1);
        }
        self.generations.insert(account, generation);
    }
}

/// Forgets any until there are at most so many. Which ones is random: so are the places in a hash map.
fn make_room<K: Copy + Eq + Hash, V>(map: &mut HashMap<K, V>, most: usize) {
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
    fn what_is_not_known_is_bad_only_if_everything_is_known() {
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
    fn a_look_at_the_disk_that_a_change_has_overtaken_is_not_believed() {
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
    fn more_accounts_than_fit_are_unknown_and_not_bad() {
        let known = known(true);
        for account in 2..=MOST as u64 {
            known.changed(AccountId(account), 0);
        }
        assert!(known.read().is_complete, "all of them fit");
        known.changed(AccountId(u64::MAX), 0);
        assert_eq!(known.read().generations.len(), MOST);
        let unknown = (1..=MOST as u64).filter(|account| {
            known.check(token(*account, 0)) == TokenCheck::Unknown(AccountId(*account))
        });
        assert_eq!(unknown.count(), 1, "one had to make room");
        for account in 0..=MOST as u64 {
            known.counted(AccountId(account), 0, 1);
        }
        assert_eq!(known.read().months.len(), MOST);
    }

    #[test]
    fn a_month_s_count_never_goes_back_and_ends_with_the_month() {
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
