//! The budget of bytes for all requests and answers on their way, of which no account gets more than three quarters.

use super::admitted::Owner;
use std::collections::HashMap;

/// Bytes that are held now, in all and by each account.
#[derive(Debug, Default)]
pub struct Held {
    all: usize,
    by_owner: HashMap<Owner, usize>,
}

/// What one connection or one slot holds, as [`Held`] knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Bytes.
    pub bytes: usize,
    /// For whom, if a request was admitted.
    pub owner: Option<Owner>,
}

impl Held {
    /// Bytes in all.
    pub fn all(&self) -> usize {
        self.all
    }

    /// Counts `now` in place of `before`.
    pub fn replace(&mut self, before: Share, now: Share) {
        if before == now {
            return;
        }
        self.all = self.all - before.bytes + now.bytes;
        if let Some(owner) = now.owner {
            *self.by_owner.entry(owner).or_default() += now.bytes;
        }
        if let Some(owner) = before.owner
            && let Some(bytes) = self.by_owner.get_mut(&owner)
        {
            *bytes -= before.bytes;
            if *bytes == 0 {
                self.by_owner.remove(&owner);
            }
        }
    }

    /// Whether the account that this is held for holds more than its part of the budget. One request alone may hold all.
    pub fn is_over_its_part(&self, share: Share, budget: usize) -> bool {
        let Some(owner @ Owner::Account(_)) = share.owner else {
            return false;
        };
        let own = self.by_owner.get(&owner).copied().unwrap_or(0);
        own >= budget - budget / 4 && own > share.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_has_three_quarters_unless_it_is_one_request() {
        let share = |bytes, account| Share {
            bytes,
            owner: Some(Owner::Account(account)),
        };
        let nothing = Share::default();
        let mut held = Held::default();
        held.replace(nothing, share(80, 1));
        assert!(
            !held.is_over_its_part(share(80, 1), 100),
            "one request alone"
        );
        held.replace(share(80, 1), share(50, 1));
        held.replace(nothing, share(24, 1));
        assert!(!held.is_over_its_part(share(24, 1), 100), "74 of 100");
        held.replace(share(24, 1), share(25, 1));
        assert!(held.is_over_its_part(share(25, 1), 100), "75 of 100");
        held.replace(nothing, share(10, 2));
        assert!(!held.is_over_its_part(share(10, 2), 100), "another account");
        let anonymous = Share {
            bytes: 10,
            owner: None,
        };
        held.replace(share(10, 2), anonymous);
        assert_eq!(held.all(), 85);
        for (before, now) in [
            (anonymous, nothing),
            (share(50, 1), nothing),
            (share(25, 1), nothing),
        ] {
            held.replace(before, now);
        }
        assert!(held.all() == 0 && held.by_owner.is_empty(), "{held:?}");
    }
}
