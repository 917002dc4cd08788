//! The memory of all pictures on their way in, of which no account gets more than three quarters.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes that downloads share.
#[derive(Debug)]
pub(super) struct Downloads {
    total: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    all: usize,
    by_account: HashMap<u64, usize>,
}

/// One download, whose bytes are free again when it is dropped.
#[derive(Debug)]
pub(super) struct InProgress<'a> {
    downloads: &'a Downloads,
    account: u64,
    bytes: Cell<usize>,
}

impl Downloads {
    /// All free.
    pub(super) fn new(total: usize) -> Downloads {
        Downloads {
            total,
            held: Mutex::default(),
        }
    }

    /// A download for this account, of no bytes yet.
    pub(super) fn begin(&self, account: u64) -> InProgress<'_> {
        InProgress {
            downloads: self,
            account,
            bytes: Cell::new(0),
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        // Numbers are whole at all times, whoever panicked.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InProgress<'_> {
    /// Takes what is missing to so many bytes; says whether there was room.
    pub(super) fn grow_to(&self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes.get());
        if more == 0 {
            return true;
        }
        let total = self.downloads.total;
        let mut held = self.downloads.held();
        let all = held.all.saturating_add(more);
        let own = held.by_account.entry(self.account).or_default();
        if all > total || own.saturating_add(more) > total - total / 4 {
            return false;
        }
        *own += more;
        held.all = all;
        self.bytes.set(bytes);
        true
    }
}

impl Drop for InProgress<'_> {
    fn drop(&mut self) {
        let mut held = self.downloads.held();
        held.all -= self.bytes.get();
        if let Some(own) = held.by_account.get_mut(&self.account) {
            *own -= self.bytes.get();
            if *own == 0 {
                held.by_account.remove(&self.account);
            }
        }
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
        assert_eq!(downloads.held().all, 0);
        assert!(downloads.held().by_account.is_empty());
    }
}
