//! The threads that work on a picture: the one that the encoder was called on, and helpers for which its caller lends
//! cores.
//!
//! Helpers come and go between the items of a pass (rows, mostly), as the caller's cores allow. The file is the
//! same with any number of them.

use super::EncodeError;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};

/// What the encoder asks whoever called it while it works: from each of its threads, about once a row of macroblocks. So
/// answers should take no more than microseconds.
pub trait Caller: Sync + fmt::Debug {
    /// Whether the file is still waited for. Once it is not, the encoder ends with [`EncodeError::Cancelled`].
    fn is_waiting(&self) -> bool {
        true
    }

    /// Lends a core for one more thread, if one is free now.
    fn lend_core(&self) -> bool {
        true
    }

    /// Takes a lent core back, if it is needed elsewhere. The thread that asks ends if so.
    fn reclaim_core(&self) -> bool {
        false
    }

    /// Takes back a lent core that the encoder has no more work for.
    fn return_core(&self) {}
}

/// A caller who waits for ever, and has a core for every thread.
#[derive(Clone, Copy, Debug)]
pub struct Patient;

impl Caller for Patient {}

/// Who works on a picture.
#[derive(Clone, Copy, Debug)]
pub struct Crew<'a> {
    threads: usize,
    caller: &'a dyn Caller,
}

impl<'a> Crew<'a> {
    /// Up to `threads` at a time, as far as `caller` has cores for them; 0 counts as 1.
    pub fn new(threads: usize, caller: &'a dyn Caller) -> Crew<'a> {
        Crew {
            threads: threads.max(1),
            caller,
        }
    }

    /// The same, for work that occupies no more than `threads`.
    pub fn at_most(self, threads: usize) -> Crew<'a> {
        Crew::new(self.threads.min(threads), self.caller)
    }

    /// Asks whether the caller waits still.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`] if not.
    pub fn check(self) -> Result<(), EncodeError> {
        if self.caller.is_waiting() {
            return Ok(());
        }
        Err(EncodeError::Cancelled)
    }

    /// Copies `items`, and asks in between: new memory takes a millisecond for a few megabytes.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`] if the caller waits no more.
    pub fn copy<T: Copy>(self, items: &[T]) -> Result<Vec<T>, EncodeError> {
        const BYTES: usize = 1 << 20;
        let mut copied = Vec::with_capacity(items.len());
        for part in items.chunks(BYTES / size_of::<T>()) {
            self.check()?;
            copied.extend_from_slice(part);
        }
        Ok(copied)
    }

    /// Gives the memory of `items` back, from the last one on, and asks in between: the system takes a millisecond for some ten
    /// megabytes.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`] if the caller waits no more.
    pub fn release<T>(self, mut items: Vec<T>) -> Result<(), EncodeError> {
        const BYTES: usize = 1 << 24;
        let most = BYTES / size_of::<T>();
        while items.len() > most {
            self.check()?;
            items.truncate(items.len() - most);
            items.shrink_to_fit();
        }
        Ok(())
    }

    /// Does `work` for every number below `count`, and gives what it gave in that order. Work is begun in that order
    /// too, and what is begun is finished: so it may wait for work with a lower number.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`] if the caller waits no more, which is asked before each.
    pub fn run<T: Send>(
        self,
        count: usize,
        work: impl Fn(usize) -> T + Sync,
    ) -> Result<Vec<T>, EncodeError> {
        self.run_checked(count, |index| Ok(work(index)))
    }

    /// The same for work that takes so long that it asks by itself ([`Crew::check`]), and for which no other waits.
    ///
    /// # Errors
    /// The first of `work`; [`EncodeError::Cancelled`] if the caller waits no more.
    pub fn run_checked<T: Send>(
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
            // Asked before a number is taken: one that was taken is waited for.
            if !has_more(0) {
                return None;
            }
            if !self.caller.is_waiting() {
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
        let help = &|mut core: Core<'a>| {
            let mut done = Vec::new();
            while let Some(item) = do_next() {
                done.push(item);
                match core.keep() {
                    Some(kept) => core = kept,
                    None => break,
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
                    // One is for the thread that looks for helpers.
                    if !has_more(1) {
                        break;
                    }
                    let Some(core) = Core::borrow(self.caller) else {
                        break;
                    };
                    let thread = thread::Builder::new().name("encoder".to_owned());
                    // Where the system has no more threads, those at work do it alone.
                    helpers.extend(thread.spawn_scoped(scope, move || help(core)));
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

/// A core on loan, given back at the end.
struct Core<'a>(&'a dyn Caller);

impl<'a> Core<'a> {
    fn borrow(caller: &'a dyn Caller) -> Option<Core<'a>> {
        caller.lend_core().then(|| Core(caller))
    }

    /// Itself, unless it is needed elsewhere.
    fn keep(self) -> Option<Core<'a>> {
        if self.0.reclaim_core() {
            std::mem::forget(self); // it is back already
            return None;
        }
        Some(self)
    }
}

impl Drop for Core<'_> {
    fn drop(&mut self) {
        self.0.return_core();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Waits for so many questions.
    #[derive(Debug)]
    pub(crate) struct Impatient {
        patience: usize,
        /// How many it was asked.
        pub(crate) asked: AtomicUsize,
    }

    impl Impatient {
        pub(crate) fn new(patience: usize) -> Impatient {
            Impatient {
                patience,
                asked: AtomicUsize::new(0),
            }
        }
    }

    impl Caller for Impatient {
        fn is_waiting(&self) -> bool {
            self.asked.fetch_add(1, Ordering::Relaxed) < self.patience
        }
    }

    /// Lends up to two cores, and takes one back after each piece of work.
    #[derive(Debug, Default)]
    struct Moody {
        lent: AtomicUsize,
        most_lent: AtomicUsize,
        reclaimed: AtomicUsize,
    }

    impl Caller for Moody {
        fn lend_core(&self) -> bool {
            let more = |lent: usize| (lent < 2).then_some(lent + 1);
            let lent = self
                .lent
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
            self.most_lent
                .fetch_max(self.lent.load(Ordering::SeqCst), Ordering::SeqCst);
            lent.is_ok()
        }

        fn reclaim_core(&self) -> bool {
            self.reclaimed.fetch_add(1, Ordering::SeqCst);
            self.return_core();
            true
        }

        fn return_core(&self) {
            self.lent.fetch_sub(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn everything_is_done_once_and_given_in_order() {
        for threads in [0, 1, 2, 7] {
            for count in [0, 1, 2, 100] {
                let done = Crew::new(threads, &Patient).run(count, |i| i * 3);
                let expected: Vec<usize> = (0..count).map(|i| i * 3).collect();
                assert_eq!(done, Ok(expected), "{count} by {threads}");
            }
        }
    }

    #[test]
    fn work_may_wait_for_what_comes_before_it() {
        for threads in [1, 2, 8] {
            for caller in [
                &Patient as &dyn Caller,
                &Impatient::new(50),
                &Moody::default(),
            ] {
                let done: Vec<OnceLock<()>> = (0..100).map(|_| OnceLock::new()).collect();
                // A hang is what would fail.
                let _ = Crew::new(threads, caller).run(100, |i| {
                    if i > 0 {
                        done[i - 1].wait();
                    }
                    done[i].set(()).expect("done once");
                });
            }
        }
    }

    #[test]
    fn nothing_is_begun_for_a_caller_who_waits_no_more() {
        for threads in [1, 2, 8] {
            for patience in [0, 1, 30, 99] {
                let begun = AtomicUsize::new(0);
                let caller = Impatient::new(patience);
                let outcome =
                    Crew::new(threads, &caller).run(100, |_| begun.fetch_add(1, Ordering::Relaxed));
                assert_eq!(
                    outcome,
                    Err(EncodeError::Cancelled),
                    "{threads} threads, {patience}"
                );
                assert_eq!(begun.into_inner(), patience, "{threads} threads");
            }
        }
    }

    #[test]
    fn nothing_is_begun_after_work_that_failed() {
        let begun = AtomicUsize::new(0);
        let outcome = Crew::new(1, &Patient).run_checked(100, |i| {
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
    fn helpers_leave_when_their_core_is_needed_and_new_ones_come_when_it_is_free() {
        let caller = Moody::default();
        let pause = std::time::Duration::from_micros(200);
        let done = Crew::new(8, &caller).run(200, |i| {
            thread::sleep(pause);
            i
        });
        assert_eq!(done.map(|done| done.len()), Ok(200));
        assert_eq!(caller.most_lent.into_inner(), 2, "cores lent at a time");
        assert_eq!(caller.lent.into_inner(), 0, "every core is given back once");
        let reclaimed = caller.reclaimed.into_inner();
        assert!(
            reclaimed > 2,
            "{reclaimed} helpers left, so no new ones came"
        );
    }

    #[test]
    fn a_panic_is_passed_on_and_the_cores_are_given_back() {
        let caller = Moody::default();
        let panic = std::panic::catch_unwind(|| {
            Crew::new(3, &caller).run(20, |i| assert!(i != 7, "a fault in {i}"))
        });
        assert!(panic.is_err());
        assert_eq!(caller.lent.into_inner(), 0, "cores still lent");
    }
}
