//! The threads that work on a picture: the one that called the encoder, and helpers as far as the
//! caller allows.
//!
//! Helpers start and end between the items of a pass (mostly rows), as the [`CpuBudget`] allows.
//! The file is the same with any number of them.

mod budget;

pub use budget::{CpuBudget, OccupiedCore};

use crate::cancel::Cancel;
use crate::error::EncodeError;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};

/// The threads that a pass over a picture may use, and the [`Cancel`] that may stop it. Decoders
/// and others that work beside the encoder share its cores by it.
///
/// ```
/// use towebp_encoder::{Cancel, Workers};
///
/// let cancel = Cancel::never();
/// let squares = Workers::new(4, None, &cancel).run(5, |number| number * number)?;
/// assert_eq!(squares, [0, 1, 4, 9, 16]);
/// # Ok::<(), towebp_encoder::EncodeError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Workers<'a> {
    threads: usize,
    budget: Option<&'a CpuBudget>,
    cancel: &'a Cancel<'a>,
}

impl<'a> Workers<'a> {
    /// At most `threads` at a time (0 counts as 1), each but the first with a core of `budget` if
    /// there is one.
    pub fn new(
        threads: usize,
        budget: Option<&'a CpuBudget>,
        cancel: &'a Cancel<'a>,
    ) -> Workers<'a> {
        Workers {
            threads: threads.max(1),
            budget,
            cancel,
        }
    }

    /// At most `threads` at a time, without a budget, for work that is never cancelled.
    #[cfg(test)]
    pub(crate) fn unlimited(threads: usize) -> Workers<'static> {
        Workers::new(threads, None, &crate::cancel::NEVER)
    }

    /// These workers, but at most `threads` at a time.
    pub(crate) fn at_most(self, threads: usize) -> Workers<'a> {
        Workers::new(self.threads.min(threads), self.budget, self.cancel)
    }

    /// Checks whether the work is still wanted.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`] if not.
    pub fn check(self) -> Result<(), EncodeError> {
        Ok(self.cancel.check()?)
    }

    /// Copies `items`, with checks in between: a few megabytes of new memory take a millisecond.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`].
    pub(crate) fn copy<T: Copy>(self, items: &[T]) -> Result<Vec<T>, EncodeError> {
        const BYTES: usize = 1 << 20;
        let mut copied = Vec::with_capacity(items.len());
        for part in items.chunks(BYTES / size_of::<T>()) {
            self.check()?;
            copied.extend_from_slice(part);
        }
        Ok(copied)
    }

    /// Frees the memory of `items`, from the last one on, with checks in between: the system takes
    /// a millisecond for some ten megabytes.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`].
    pub(crate) fn release<T>(self, mut items: Vec<T>) -> Result<(), EncodeError> {
        const BYTES: usize = 1 << 24;
        let most = BYTES / size_of::<T>();
        while items.len() > most {
            self.check()?;
            items.truncate(items.len() - most);
            items.shrink_to_fit();
        }
        Ok(())
    }

    /// The flag by which the caller stops the work.
    pub fn cancel(self) -> &'a Cancel<'a> {
        self.cancel
    }

    /// Returns the permit of one more thread beside the calling one, if there may be several and a
    /// core is free. The caller starts the thread, and counts how many it has started.
    pub fn try_helper(self) -> Option<Helper<'a>> {
        if self.threads <= 1 {
            return None;
        }
        let Some(budget) = self.budget else {
            return Some(Helper(Place::Unlimited));
        };
        Core::try_acquire(budget).map(|core| Helper(Place::WithCore(core)))
    }

    /// Calls `work` for every number below `count`, and returns the results in that order. Calls
    /// also begin in that order, and each that began is finished, so it may wait for calls with
    /// lower numbers.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`], which is checked before each call.
    pub fn run<T: Send>(
        self,
        count: usize,
        work: impl Fn(usize) -> T + Sync,
    ) -> Result<Vec<T>, EncodeError> {
        self.run_checked(count, |index| Ok(work(index)))
    }

    /// [`Workers::run`] for long work that checks by itself ([`Workers::check`]) and for which no
    /// other call waits.
    ///
    /// # Errors
    /// The first error of `work`, or [`EncodeError::Cancelled`].
    pub(crate) fn run_checked<T: Send>(
        self,
        count: usize,
        work: impl Fn(usize) -> Result<T, EncodeError> + Sync,
    ) -> Result<Vec<T>, EncodeError> {
        let next = AtomicUsize::new(0);
        let is_stopped = AtomicBool::new(false);
        let failure = OnceLock::new();
        let has_more = |than: usize| {
            next.load(Ordering::Relaxed) + than < count && !is_stopped.load(Ordering::Relaxed)
        };
        let do_next = || {
            // This is checked before a number is taken: other calls may wait for one that was
            // taken.
            if !has_more(0) {
                return None;
            }
            if self.cancel.is_cancelled() {
                is_stopped.store(true, Ordering::Relaxed);
                return None;
            }
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return None;
            }
            match work(index) {
                Ok(item) => Some((index, item)),
                Err(error) => {
                    failure.get_or_init(|| error);
                    is_stopped.store(true, Ordering::Relaxed);
                    None
                }
            }
        };
        let help = &|mut helper: Helper<'a>| {
            let mut done = Vec::new();
            while let Some(item) = do_next() {
                done.push(item);
                if !helper.may_go_on() {
                    break;
                }
            }
            done
        };

        let mut done = thread::scope(|scope| {
            let mut done = Vec::with_capacity(count);
            let mut helpers: Vec<ScopedJoinHandle<'_, Vec<_>>> = Vec::new();
            loop {
                let helping = helpers
                    .iter()
                    .filter(|helper| !helper.is_finished())
                    .count();
                for _ in helping + 1..self.threads {
                    // One item is for the thread that starts the helpers.
                    if !has_more(1) {
                        break;
                    }
                    let Some(helper) = self.try_helper() else {
                        break;
                    };
                    let thread = thread::Builder::new().name("encoder".to_owned());
                    // If the system has no more threads, the running ones do all the work.
                    helpers.extend(thread.spawn_scoped(scope, move || help(helper)));
                }
                match do_next() {
                    Some(item) => done.push(item),
                    None => break,
                }
            }
            for helper in helpers {
                match helper.join() {
                    Ok(more) => done.extend(more),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            done
        });
        if done.len() < count {
            return Err(failure.into_inner().unwrap_or(EncodeError::Cancelled));
        }
        done.sort_unstable_by_key(|(index, _)| *index);
        Ok(done.into_iter().map(|(_, item)| item).collect())
    }
}

/// The place of a helper thread, with a core of the [`CpuBudget`] if there is one. Dropping it
/// releases the core.
#[derive(Debug)]
pub struct Helper<'a>(Place<'a>);

#[derive(Debug)]
enum Place<'a> {
    /// There is no budget.
    Unlimited,
    WithCore(Core<'a>),
    /// The core went to another conversion.
    Ended,
}

impl Helper<'_> {
    /// Whether the thread may go on. Once it may not, another conversion has got its core: the
    /// thread leaves the remaining work to the one that started it, and ends. Helper threads call
    /// this every few milliseconds of work.
    pub fn may_go_on(&mut self) -> bool {
        self.0 = match std::mem::replace(&mut self.0, Place::Ended) {
            Place::WithCore(core) => core.keep().map_or(Place::Ended, Place::WithCore),
            other => other,
        };
        !matches!(self.0, Place::Ended)
    }
}

/// A core of the budget that a helper uses. It is released when the value is dropped.
#[derive(Debug)]
struct Core<'a>(&'a CpuBudget);

impl<'a> Core<'a> {
    fn try_acquire(budget: &'a CpuBudget) -> Option<Core<'a>> {
        budget.try_acquire().then(|| Core(budget))
    }

    /// The core itself, unless another conversion needs it, in which case it is released.
    fn keep(self) -> Option<Core<'a>> {
        if self.0.release_if_needed() {
            std::mem::forget(self);
            return None;
        }
        Some(self)
    }
}

impl Drop for Core<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::tests::Checks;
    use std::num::NonZeroUsize;

    fn budget(cores: usize) -> CpuBudget {
        CpuBudget::new(NonZeroUsize::new(cores).expect("not zero"))
    }

    #[test]
    fn everything_is_done_once_and_returned_in_order() {
        for threads in [0, 1, 2, 7] {
            for count in [0, 1, 2, 100] {
                let done = Workers::unlimited(threads).run(count, |i| i * 3);
                let expected: Vec<usize> = (0..count).map(|i| i * 3).collect();
                assert_eq!(done, Ok(expected), "{count} by {threads}");
            }
        }
    }

    #[test]
    fn work_may_wait_for_what_comes_before_it() {
        let run = |workers: Workers<'_>| {
            let done: Vec<OnceLock<()>> = (0..100).map(|_| OnceLock::new()).collect();
            // The failure would be a hang.
            let _ = workers.run(100, |i| {
                if i > 0 {
                    done[i - 1].wait();
                }
                done[i].set(()).expect("done once");
            });
        };
        for threads in [1, 2, 8] {
            run(Workers::unlimited(threads));
            let checks = Checks::new(50);
            let is_unwanted = || checks.are_used_up();
            run(Workers::new(threads, None, &Cancel::when(&is_unwanted)));
            run(Workers::new(threads, Some(&budget(2)), &Cancel::never()));
        }
    }

    #[test]
    fn nothing_begins_once_it_is_cancelled() {
        for threads in [1, 2, 8] {
            for allowed in [0, 1, 30, 99] {
                let begun = AtomicUsize::new(0);
                let checks = Checks::new(allowed);
                let is_unwanted = || checks.are_used_up();
                let cancel = Cancel::when(&is_unwanted);
                let outcome = Workers::new(threads, None, &cancel)
                    .run(100, |_| begun.fetch_add(1, Ordering::Relaxed));
                assert_eq!(
                    outcome,
                    Err(EncodeError::Cancelled),
                    "{threads} threads, {allowed}"
                );
                assert_eq!(begun.into_inner(), allowed, "{threads} threads");
            }
        }
    }

    #[test]
    fn nothing_begins_after_work_that_failed() {
        let begun = AtomicUsize::new(0);
        let outcome = Workers::unlimited(1).run_checked(100, |i| {
            begun.fetch_add(1, Ordering::Relaxed);
            if i < 30 {
                return Ok(i);
            }
            Err(EncodeError::TooLarge)
        });
        assert_eq!(outcome, Err(EncodeError::TooLarge));
        assert_eq!(begun.into_inner(), 31);
    }

    #[test]
    fn helpers_end_when_their_core_is_needed_and_start_when_one_is_free() {
        let budget = budget(3);
        let pause = std::time::Duration::from_micros(200);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let own = budget.occupy();
            // Conversions that come and go.
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    drop((budget.occupy(), budget.occupy()));
                    thread::sleep(pause * 5);
                }
            });
            let done = Workers::new(8, Some(&budget), &Cancel::never()).run(400, |i| {
                thread::sleep(pause);
                i
            });
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(done.map(|done| done.len()), Ok(400));
            drop(own);
        });
        assert_eq!(budget.lent(), 0, "every core is released once");
        let counts = budget.counts();
        assert!(
            counts.most_lent <= 2,
            "{counts:?}: one core is this conversion's"
        );
        assert!(
            counts.acquired > 2,
            "{counts:?}: helpers ended, and no new ones started"
        );
    }

    #[test]
    fn much_memory_is_copied_and_freed_with_checks_in_between() {
        let count = |work: &dyn Fn(Workers<'_>) -> bool| {
            let checks = Checks::new(usize::MAX);
            let is_unwanted = || checks.are_used_up();
            assert!(work(Workers::new(1, None, &Cancel::when(&is_unwanted))));
            checks.calls.into_inner()
        };
        let mebibytes = |count: usize| vec![7u32; count << 18];
        let three = mebibytes(3);
        let copies = |workers: Workers<'_>| workers.copy(&three).as_ref() == Ok(&three);
        assert_eq!(count(&copies), 3);
        for (size, checks) in [(16, 0), (17, 1), (40, 2)] {
            let frees = |workers: Workers<'_>| workers.release(mebibytes(size)).is_ok();
            assert_eq!(count(&frees), checks, "{size} MiB");
        }
    }

    #[test]
    fn helpers_keep_their_cores_as_long_as_no_other_conversion_needs_them() {
        let budget = budget(3);
        let _own = budget.occupy();
        let done = Workers::new(3, Some(&budget), &Cancel::never()).run(400, |i| {
            thread::yield_now();
            i
        });
        assert_eq!(done.map(|done| done.len()), Ok(400));
        let counts = budget.counts();
        assert!(counts.acquired <= 2, "{counts:?}: helpers ended early");
    }

    #[test]
    fn a_panic_is_passed_on_and_the_cores_are_released() {
        let budget = budget(3);
        let panic = std::panic::catch_unwind(|| {
            Workers::new(3, Some(&budget), &Cancel::never())
                .run(20, |i| assert!(i != 7, "a fault in {i}"))
        });
        assert!(panic.is_err());
        assert_eq!(budget.lent(), 0, "cores that are still lent");
    }
}
