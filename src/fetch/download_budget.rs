//! The memory of all watermark pictures that are being downloaded, shared between accounts.

use crate::admission::{AccountShares, Share};
use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The bytes that all downloads share.
#[derive(Debug)]
pub(super) struct DownloadBudget(Mutex<AccountShares>);

/// The bytes of one download; they are free again when it is dropped.
#[derive(Debug)]
pub(super) struct Reservation<'a> {
    budget: &'a DownloadBudget,
    share: Cell<Share>,
}

impl DownloadBudget {
    /// A budget of `total` bytes, all of them free.
    pub(super) fn new(total: usize) -> DownloadBudget {
        DownloadBudget(Mutex::new(AccountShares::new(total as u64)))
    }

    /// An empty reservation for a download of this account.
    pub(super) fn begin(&self, account: u64) -> Reservation<'_> {
        Reservation {
            budget: self,
            share: Cell::new(Share {
                bytes: 0,
                account: Some(account),
            }),
        }
    }

    fn shares(&self) -> MutexGuard<'_, AccountShares> {
        // Nothing between the changes of the numbers can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation<'_> {
    /// Takes what this download lacks of `bytes`. `false`, with nothing taken, if the budget or the
    /// account's part of it has too few.
    pub(super) fn grow_to(&self, bytes: usize) -> bool {
        let before = self.share.get();
        let now = Share {
            bytes: before.bytes.max(bytes as u64),
            ..before
        };
        let more = now.bytes - before.bytes;
        if more == 0 {
            return true;
        }
        let mut shares = self.budget.shares();
        let own = before.account.map_or(0, |account| shares.held_for(account));
        if shares.held().saturating_add(more) > shares.total()
            || own.saturating_add(more) > shares.limit()
        {
            return false;
        }
        shares.replace(before, now);
        self.share.set(now);
        true
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut shares = self.budget.shares();
        shares.replace(self.share.get(), Share::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_leaves_a_quarter_to_others_and_all_comes_back() {
        let budget = DownloadBudget::new(100);
        let (first, second) = (budget.begin(1), budget.begin(1));
        assert!(first.grow_to(50) && second.grow_to(25));
        assert!(!second.grow_to(26), "more than three quarters");
        let other = budget.begin(2);
        assert!(other.grow_to(25), "what the account left");
        assert!(!other.grow_to(26), "there is no more");
        drop(first);
        assert!(other.grow_to(75) && second.grow_to(10), "what came back");
        drop((second, other));
        assert!(budget.shares().is_empty());
    }
}
