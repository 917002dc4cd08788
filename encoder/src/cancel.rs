//! Stops work whose result is no longer wanted.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that stops long work: it is set by [`Cancel::cancel`] from any thread, or by a function
/// that returns true.
///
/// Everything that takes a `Cancel` checks it every few milliseconds of work, from each of its
/// threads; once it is set, the work ends with its error for that, and what was done so far is
/// void. It is never unset.
pub struct Cancel<'a> {
    is_set: AtomicBool,
    is_unwanted: Option<&'a (dyn Fn() -> bool + Sync)>,
}

/// The work was stopped by its [`Cancel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

/// The value for work that is never cancelled.
pub(crate) static NEVER: Cancel<'static> = Cancel::new();

impl<'a> Cancel<'a> {
    /// A value that [`Cancel::cancel`] sets.
    pub const fn new() -> Cancel<'static> {
        Cancel {
            is_set: AtomicBool::new(false),
            is_unwanted: None,
        }
    }

    /// A value for work that is always finished.
    pub const fn never() -> Cancel<'static> {
        Cancel::new()
    }

    /// A value that is also set once `is_unwanted` returns true. Each check calls it until then, so
    /// it should return within microseconds, unless the work is to pause meanwhile
    /// ([`OccupiedCore::give_way`](crate::OccupiedCore::give_way)).
    pub const fn when(is_unwanted: &'a (dyn Fn() -> bool + Sync)) -> Cancel<'a> {
        Cancel {
            is_set: AtomicBool::new(false),
            is_unwanted: Some(is_unwanted),
        }
    }

    /// Stops the work at its next check.
    pub fn cancel(&self) {
        self.is_set.store(true, Ordering::Relaxed);
    }

    /// Whether the work is to stop. This calls the function of [`Cancel::when`], if there is one
    /// and it has not returned true before.
    pub fn is_cancelled(&self) -> bool {
        if self.is_set() {
            return true;
        }
        let is_cancelled = self.is_unwanted.is_some_and(|is_unwanted| is_unwanted());
        if is_cancelled {
            self.cancel();
        }
        is_cancelled
    }

    /// [`Cancel::is_cancelled`] for use with `?`.
    ///
    /// # Errors
    /// [`Cancelled`] if the work is to stop.
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.is_cancelled() {
            return Err(Cancelled);
        }
        Ok(())
    }

    /// Whether an earlier check or [`Cancel::cancel`] has set it. This calls no function.
    pub fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }
}

impl Default for Cancel<'_> {
    fn default() -> Self {
        Cancel::new()
    }
}

impl fmt::Debug for Cancel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancel")
            .field("is_set", &self.is_set)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    /// A function for [`Cancel::when`] that returns true after a number of calls.
    #[derive(Debug)]
    pub(crate) struct Checks {
        allowed: usize,
        /// The number of calls so far.
        pub(crate) calls: AtomicUsize,
    }

    impl Checks {
        /// The answer is no for the first `allowed` checks.
        pub(crate) fn new(allowed: usize) -> Checks {
            Checks {
                allowed,
                calls: AtomicUsize::new(0),
            }
        }

        pub(crate) fn are_used_up(&self) -> bool {
            self.calls.fetch_add(1, Ordering::Relaxed) >= self.allowed
        }
    }

    #[test]
    fn it_stays_set_and_asks_no_more() {
        let checks = Checks::new(1);
        let is_unwanted = || checks.are_used_up();
        let cancel = Cancel::when(&is_unwanted);
        assert_eq!(cancel.check(), Ok(()));
        assert!(!cancel.is_set());
        assert_eq!(cancel.check(), Err(Cancelled));
        assert_eq!(cancel.check(), Err(Cancelled));
        assert!(cancel.is_set() && cancel.is_cancelled());
        assert_eq!(
            checks.calls.into_inner(),
            2,
            "no call follows the first true"
        );
    }

    #[test]
    fn another_thread_sets_it() {
        let cancel = Cancel::new();
        assert!(!cancel.is_cancelled());
        std::thread::scope(|scope| {
            scope.spawn(|| cancel.cancel());
        });
        assert!(cancel.is_cancelled());
    }
}
