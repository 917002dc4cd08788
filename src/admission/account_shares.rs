//! The bytes that accounts hold of one budget, and how much of it one account may hold.

use std::collections::HashMap;

/// The bytes of a budget that each account holds.
///
/// An account that already holds something may hold three quarters of the budget
/// ([`AccountShares::limit`]), so that a quarter is left for others.
#[derive(Debug, Default)]
pub struct AccountShares {
    total: u64,
    held: u64,
    by_account: HashMap<u64, u64>,
}

/// The share of one connection, download or conversion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Bytes.
    pub bytes: u64,
    /// The account that they are held for, if it is known.
    pub account: Option<u64>,
}

impl AccountShares {
    /// A budget of `total` bytes, of which nothing is held.
    pub fn new(total: u64) -> AccountShares {
        AccountShares {
            total,
            ..AccountShares::default()
        }
    }

    /// Bytes of the budget.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Bytes that are held, by accounts and others.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Bytes that are held for this account.
    pub fn held_for(&self, account: u64) -> u64 {
        self.by_account.get(&account).copied().unwrap_or(0)
    }

    /// Most bytes that one account may hold in several shares: three quarters of the budget.
    pub fn limit(&self) -> u64 {
        self.total - self.total / 4
    }

    /// Whether the account of this share has reached its limit by several shares. One share alone
    /// may be as large as the budget.
    pub fn is_over_limit(&self, share: Share) -> bool {
        let held = share.account.map_or(0, |account| self.held_for(account));
        held >= self.limit() && held > share.bytes
    }

    /// Counts `now` in place of `before`.
    pub fn replace(&mut self, before: Share, now: Share) {
        if before == now {
            return;
        }
        self.held = self.held - before.bytes + now.bytes;
        if let Some(account) = now.account {
            *self.by_account.entry(account).or_default() += now.bytes;
        }
        if let Some(account) = before.account
            && let Some(bytes) = self.by_account.get_mut(&account)
        {
            *bytes -= before.bytes;
            if *bytes == 0 {
                self.by_account.remove(&account);
            }
        }
    }

    /// Whether nothing is held or remembered.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.held == 0 && self.by_account.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_has_three_quarters_unless_it_is_one_share() {
        let share = |bytes, account| Share {
            bytes,
            account: Some(account),
        };
        let nothing = Share::default();
        let mut shares = AccountShares::new(100);
        shares.replace(nothing, share(80, 1));
        assert!(!shares.is_over_limit(share(80, 1)), "one share alone");
        shares.replace(share(80, 1), share(50, 1));
        shares.replace(nothing, share(24, 1));
        assert!(!shares.is_over_limit(share(24, 1)), "74 of 100");
        shares.replace(share(24, 1), share(25, 1));
        assert!(shares.is_over_limit(share(25, 1)), "75 of 100");
        shares.replace(nothing, share(10, 2));
        assert!(!shares.is_over_limit(share(10, 2)), "another account");
        let anonymous = Share {
            bytes: 10,
            account: None,
        };
        shares.replace(share(10, 2), anonymous);
        assert!(!shares.is_over_limit(anonymous));
        assert_eq!((shares.held(), shares.held_for(1)), (85, 75));
        for before in [anonymous, share(50, 1), share(25, 1)] {
            shares.replace(before, nothing);
        }
        assert!(shares.is_empty(), "{shares:?}");
    }
}
