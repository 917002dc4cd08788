//! Stops work whose result is no longer wanted.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tells long work to stop: it is set by [`Cancel::cancel`] from any thread, or by a question whose
/// answer is yes.
///
/// Everything that takes a `Cancel` checks it every few milliseconds of work, from each of its
/// threads; once it is set, the work ends with its error for that, and what was done so far is
/// void. It is never unset.
pub struct Cancel<'a> {
    is_set: AtomicBool,
    question: Option<&'a (dyn Fn() -> bool + Sync)>,
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
            question: None,
        }
    }

    /// A value for work that is always finished.
    pub const fn never() -> Cancel<'static> {
        Cancel::new()
    }

    /// A value that is also set once `question` returns true. It is asked at each check until then,
    /// so it should answer within microseconds, unless the work is to pause meanwhile
    /// ([`OccupiedCore::give_way`](crate::OccupiedCore::give_way)).
    pub const fn when(question: &'a (dyn Fn() -> bool + Sync)) -> Cancel<'a> {
        Cancel {
            is_set: AtomicBool::new(false),
            question: Some(question),
        }
    }

    /// Stops the work at its next check.
    pub fn cancel(&self) {
        self.is_set.store(true, Ordering::Relaxed);
    }

    /// Whether the work is to stop. This asks the question, if there is one and its answer has not
    /// been yes before.
    pub fn is_cancelled(&self) -> bool {
        if self.is_set() {
            return true;
        }
        let is_cancelled = self.question.is_some_and(|question| question());
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

    /// Whether an earlier check or [`Cancel::cancel`] has set it. This asks nothing.
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

    /// A question whose answer becomes yes after a number of checks.
    #[derive(Debug)]
    pub(crate) struct Checks {
        allowed: usize,
        /// How often it was asked.
        pub(crate) asked: AtomicUsize,
    }

    impl Checks {
        /// The answer is no for the first `allowed` checks.
        pub(crate) fn new(allowed: usize) -> Checks {
            Checks {
                allowed,
                asked: AtomicUsize::new(0),
            }
        }

        pub(crate) fn are_used_up(&self) -> bool {
            self.asked.fetch_add(1, Ordering::Relaxed) >= self.allowed
        }
    }

    #[test]
    fn it_stays_set_and_asks_no_more() {
        let checks = Checks::new(1);
        let question = || checks.are_used_up();
        let cancel = Cancel::when(&question);
        assert_eq!(cancel.check(), Ok(()));
        assert!(!cancel.is_set());
        assert_eq!(cancel.check(), Err(Cancelled));
        assert_eq!(cancel.check(), Err(Cancelled));
        assert!(cancel.is_set() && cancel.is_cancelled());
        assert_eq!(checks.asked.into_inner(), 2, "no question follows a yes");
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
