//! Background work of the store: it writes failed conversions, and removes rows that are too old.
//!
//! Nobody waits for a failure to be durable. Failures are collected for a second and written
//! together, so that an account with a thousand failures a second costs one commit. A kill of the
//! process loses those of the last second, a graceful end none.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::clock::{Clock, DAY};
use super::engine::{Command, OldRows, Outcome};
use super::error::Result;
use super::failure::{FAILURE_DAYS, Failure};
use super::writer::Writer;
use crate::auth::AccountId;

/// How long failures are collected before they are written.
const COLLECTED: Duration = Duration::from_secs(1);

/// The most failures of one account that are kept of those within [`COLLECTED`], the first ones.
const MAX_OF_ACCOUNT: usize = 100;

/// The most failures that are kept of those within [`COLLECTED`]: some 100 KB.
const MAX_PENDING: usize = 1000;

/// How often rows that are too old are removed, and how long after the start for the first time.
const REMOVAL_INTERVAL: Duration = Duration::from_hours(1);

/// By how much the clock may differ from the time that has passed. After the clock was set, nothing
/// is removed for another [`REMOVAL_INTERVAL`], so that there is time to notice a wrong clock.
const MAX_DEVIATION: Duration = Duration::from_mins(5);

/// The thread, and the state that it shares with the store. Dropping it writes pending failures.
pub struct Janitor {
    shared: Arc<Shared>,
    /// Wakes the thread once there is a failure; `None` when it is to end.
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    writer: Arc<Writer>,
    clock: Arc<Clock>,
    history_keep: Option<NonZeroU32>,
    pending: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    failures: HashMap<AccountId, Vec<Failure>>,
    count: usize,
}

impl Janitor {
    /// Starts the thread. Entries of histories are kept for `history_keep` days, or for ever.
    ///
    /// # Errors
    /// A sentence: the system cannot start a thread.
    pub fn start(
        writer: Arc<Writer>,
        clock: Arc<Clock>,
        history_keep: Option<NonZeroU32>,
    ) -> Result<Janitor, String> {
        let shared = Arc::new(Shared {
            writer,
            clock,
            history_keep,
            pending: Mutex::default(),
        });
        let (wake, woken) = sync_channel(1);
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("store-janitor".into())
            .spawn(move || of_thread.run(&woken))
            .map_err(|error| format!("the store's janitor thread cannot be started: {error}"))?;
        Ok(Janitor {
            shared,
            wake: Some(wake),
            thread: Some(thread),
        })
    }

    /// Has a failure written soon, unless there are too many. The event loop may call this.
    pub fn note(&self, account: AccountId, failure: Failure) {
        let is_first = self.shared.pending().add(account, failure);
        if let (true, Some(wake)) = (is_first, &self.wake) {
            // If the channel is full, the thread is about to wake anyway.
            let _ = wake.try_send(());
        }
    }

    /// Writes the failures of an account that are pending.
    ///
    /// # Errors
    /// The write failed; the failures are lost.
    pub fn write_failures_of(&self, account: AccountId) -> Result<()> {
        let failures = self.shared.pending().take(account);
        match failures {
            Some(failures) => self.shared.write(account, failures),
            None => Ok(()),
        }
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            // Nothing can be done about a panic of the thread.
            let _ = thread.join();
        }
    }
}

impl Pending {
    /// Adds a failure, unless there are too many. Returns whether it is the first one.
    fn add(&mut self, account: AccountId, failure: Failure) -> bool {
        if self.count >= MAX_PENDING {
            return false;
        }
        let of_account = self.failures.entry(account).or_default();
        if of_account.len() >= MAX_OF_ACCOUNT {
            return false;
        }
        of_account.push(failure);
        self.count += 1;
        self.count == 1
    }

    fn take(&mut self, account: AccountId) -> Option<Vec<Failure>> {
        let taken = self.failures.remove(&account)?;
        self.count -= taken.len();
        Some(taken)
    }
}

impl Shared {
    fn run(&self, woken: &Receiver<()>) {
        let mut watch = Watch::start(&self.clock);
        loop {
            let wait = REMOVAL_INTERVAL.saturating_sub(watch.started.elapsed());
            let mut woken_by = woken.recv_timeout(wait);
            if woken_by.is_ok() {
                woken_by = woken.recv_timeout(COLLECTED);
            }
            self.write_all();
            if matches!(woken_by, Err(RecvTimeoutError::Disconnected)) {
                return;
            }
            if watch.started.elapsed() >= REMOVAL_INTERVAL {
                if watch.is_steady(&self.clock) {
                    // The writer has logged why it failed; the next hour tries again.
                    let _ = self.remove_old();
                } else {
                    log::warn!(
                        "the clock was set: old entries are removed in an hour at the earliest"
                    );
                }
                watch = Watch::start(&self.clock);
            }
        }
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_all(&self) {
        let pending = std::mem::take(&mut *self.pending());
        for (account, failures) in pending.failures {
            // The writer has logged why it failed.
            let _ = self.write(account, failures);
        }
    }

    fn write(&self, account: AccountId, failures: Vec<Failure>) -> Result<()> {
        let command = Command::RecordFailures { account, failures };
        self.writer.write(command).map(drop)
    }

    fn remove_old(&self) -> Result<()> {
        let now = self.clock.now();
        let before = |days: NonZeroU32| now.saturating_sub(u64::from(days.get()) * DAY);
        let mut first = Some(AccountId(0));
        while let Some(account) = first {
            let old = OldRows {
                first: account,
                history_before: self.history_keep.map_or(0, before),
                failures_before: now.saturating_sub(u64::from(FAILURE_DAYS) * DAY),
            };
            first = match self.writer.write(Command::RemoveOld(old))? {
                Outcome::Removed { next } => next,
                _ => None,
            };
        }
        Ok(())
    }
}

/// Compares the clock with the time that passes.
struct Watch {
    started: Instant,
    /// The time of the clock then, in milliseconds since the epoch.
    time: u64,
}

impl Watch {
    fn start(clock: &Clock) -> Watch {
        Watch {
            started: Instant::now(),
            time: clock.now(),
        }
    }

    fn is_steady(&self, clock: &Clock) -> bool {
        is_steady(self.time, clock.now(), self.started.elapsed())
    }
}

/// Whether a clock that went from one time to another, in milliseconds, went with the time that
/// passed.
fn is_steady(from: u64, to: u64, passed: Duration) -> bool {
    let expected = u128::from(from) + passed.as_millis();
    u128::from(to).abs_diff(expected) <= MAX_DEVIATION.as_millis()
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Janitor {
        /// Removes all rows that are too old now.
        pub(crate) fn remove_old(&self) -> Result<()> {
            self.shared.remove_old()
        }
    }

    fn failure() -> Failure {
        Failure::example(400, "body_empty")
    }

    #[test]
    fn one_account_does_not_take_the_places_of_others() {
        let mut pending = Pending::default();
        let first: Vec<_> = (0..150)
            .map(|_| pending.add(AccountId(1), failure()))
            .collect();
        assert_eq!(first.iter().position(|is_first| *is_first), Some(0));
        assert_eq!(first.iter().filter(|is_first| **is_first).count(), 1);
        pending.add(AccountId(2), failure());
        pending.add(AccountId(2), failure());
        let lengths = [1, 2].map(|id| pending.failures[&AccountId(id)].len());
        assert_eq!(lengths, [MAX_OF_ACCOUNT, 2]);
        assert_eq!(pending.take(AccountId(1)).map(|it| it.len()), Some(100));
        assert_eq!(pending.take(AccountId(1)), None);
        assert_eq!(pending.count, 2);
    }

    #[test]
    fn what_is_pending_is_bounded() {
        let mut pending = Pending::default();
        for id in 0..2000 {
            pending.add(AccountId(id), failure());
        }
        assert_eq!((pending.count, pending.failures.len()), (1000, 1000));
    }

    #[test]
    fn a_clock_that_was_set_is_not_steady() {
        let hour = Duration::from_hours(1);
        let (start, end) = (1_795_000_000_000, 1_795_003_600_000);
        for (to, steady) in [
            (end, true),
            (end + 300_000, true),
            (end + 300_001, false),
            (end - 300_000, true),
            (end - 300_001, false),
            (start, false),
            (0, false),
            (u64::MAX, false),
        ] {
            assert_eq!(is_steady(start, to, hour), steady, "{to}");
        }
    }
}
