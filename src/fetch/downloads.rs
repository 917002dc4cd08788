//! The memory of all watermark pictures that are being downloaded, shared between accounts.

use crate::admission::{AccountShares, Share};
use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes that downloads share.
#[derive(Debug)]
pub(super) struct Downloads(Mutex<AccountShares>);

/// One download, whose bytes are free again when it is dropped.
#[derive(Debug)]
pub(super) struct InProgress<'a> {
    downloads: &'a Downloads,
    share: Cell<Share>,
}

impl Downloads {
    /// A budget of `total` bytes, all of them free.
    pub(super) fn new(total: usize) -> Downloads {
        Downloads(Mutex::new(AccountShares::new(total as u64)))
    }

    /// A download for this account, of no bytes yet.
    pub(super) fn begin(&self, account: u64) -> InProgress<'_> {
        InProgress {
            downloads: self,
            share: Cell::new(Share {
                bytes: 0,
                account: Some(account),
            }),
        }
    }

    fn shares(&self) -> MutexGuard<'_, AccountShares> {
        // Numbers are whole at all times, whoever panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InProgress<'_> {
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
        let mut shares = self.downloads.shares();
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

impl Drop for InProgress<'_> {
    fn drop(&mut self) {
        let mut shares = self.downloads.shares();
        shares.replace(self.share.get(), Share::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_leaves_a_quarter_to_others_and_all_comes_back() {
        let downloads = Downloads::new(100);
        let (first, second) = (downloads.begin(1), downloads.begin(1));
        assert!(first.grow_to(50) && second.grow_to(25));
        assert!(!second.grow_to(26), "more than three quarters");
        let other = downloads.begin(2);
        assert!(other.grow_to(25), "what the account left");
        assert!(!other.grow_to(26), "there is no more");
        drop(first);
        assert!(other.grow_to(75) && second.grow_to(10), "what came back");
        drop((second, other));
        assert!(downloads.shares().is_empty());
    }
}
