//! The memory and the workers that all conversions of the process share, fairly between accounts.
//!
//! A conversion begins once its memory and a worker are free. Until then it waits in the queue of
//! its account: first in, first out within an account, and accounts take turns. No account stands
//! in the way of another:
//!
//! - An account that runs something leaves a quarter of the memory to others.
//! - While one account has all workers, there is one worker more, for accounts that have none.
//! - A conversion that does not fit may be overtaken by one of another account that does, until
//!   half of its time to wait is over. Then it is next, unless its own account runs something.

#[cfg(test)]
mod tests;

use super::account_shares::{AccountShares, Share};
use super::fair_queue::FairQueue;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use towebp_encoder::Cancel;

/// How often a conversion that waits checks whether it was cancelled.
const CANCEL_INTERVAL: Duration = Duration::from_millis(20);

/// Assumed until conversions have been measured: 12 megapixels take 80 MB for half a second.
const INITIAL_SECONDS_PER_BYTE: f64 = 6e-9;

/// Memory and workers that conversions share. Clones share the same.
#[derive(Clone, Debug)]
pub struct MemoryBudget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    workers: usize,
    state: Mutex<State>,
    /// Notified when something was granted or given back.
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    shares: AccountShares,
    running: usize,
    /// Conversions that each account runs; none of them is 0.
    running_by_account: HashMap<u64, usize>,
    queue: FairQueue<u64, Waiting>,
    /// The numbers of those that were granted what they wait for, and have not noticed yet.
    granted: HashSet<u64>,
    arrivals: u64,
    /// The sum of the squares of all bytes that are reserved or waited for. The larger a
    /// conversion's memory is, the longer it is held, so the time that all of it takes grows with
    /// the squares.
    squares: u128,
    /// Seconds that a reservation lasts, divided by its bytes; an average.
    seconds_per_byte: f64,
    /// Seconds that a conversion has a worker; an average.
    seconds_per_conversion: f64,
}

/// A conversion that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// Unique; later conversions have higher numbers.
    number: u64,
    bytes: u64,
    /// When others may overtake it no more.
    claims_at: Instant,
}

/// Memory and a worker taken of a [`MemoryBudget`], given back when dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: MemoryBudget,
    account: u64,
    bytes: u64,
    /// What `bytes` was at first.
    initial_bytes: u64,
    has_worker: bool,
    since: Instant,
}

/// Why nothing was reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReserveError {
    /// It is more than the whole budget.
    TooLarge {
        /// Bytes that were asked for.
        needed: u64,
        /// Bytes of the budget.
        total: u64,
    },
    /// Others had it for too long.
    Busy {
        /// How long those that have it now, or wait for it, are expected to take.
        wait: Duration,
    },
    /// The conversion was cancelled while it waited.
    Cancelled,
}

/// What a budget is used for at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUsage {
    /// Bytes of the budget.
    pub total: u64,
    /// Bytes that are reserved.
    pub reserved: u64,
    /// Conversions that have a worker.
    pub running: usize,
    /// Conversions that wait.
    pub waiting: usize,
}

impl MemoryBudget {
    /// A budget of `total` bytes and this many workers, all of them free.
    pub fn new(total: u64, workers: usize) -> MemoryBudget {
        MemoryBudget(Arc::new(Shared {
            workers,
            state: Mutex::new(State {
                shares: AccountShares::new(total),
                running: 0,
                running_by_account: HashMap::new(),
                queue: FairQueue::default(),
                granted: HashSet::new(),
                arrivals: 0,
                squares: 0,
                seconds_per_byte: INITIAL_SECONDS_PER_BYTE,
                seconds_per_conversion: 0.0,
            }),
            changed: Condvar::new(),
        }))
    }

    /// Takes bytes and a worker for this account, as soon as both are free and it is the account's
    /// turn, waiting until `until` at most.
    ///
    /// # Errors
    /// See [`ReserveError`]. It comes at once if there are never so many bytes.
    pub fn reserve(
        &self,
        account: u64,
        bytes: u64,
        until: Instant,
        cancel: &Cancel<'_>,
    ) -> Result<Reservation, ReserveError> {
        let mut state = self.state();
        let total = state.shares.total();
        if bytes > total {
            return Err(ReserveError::TooLarge {
                needed: bytes,
                total,
            });
        }
        let number = state.join(account, bytes, until);
        self.grant(&mut state);
        while !state.granted.remove(&number) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || cancel.is_cancelled() {
                state.leave(account, number, bytes);
                self.grant(&mut state);
                return Err(if left.is_zero() {
                    ReserveError::Busy {
                        wait: state.expected_wait(self.0.workers),
                    }
                } else {
                    ReserveError::Cancelled
                });
            }
            let waited = self
                .0
                .changed
                .wait_timeout(state, left.min(CANCEL_INTERVAL));
            state = waited.expect(NO_PANIC).0;
        }
        drop(state);
        Ok(Reservation {
            budget: self.clone(),
            account,
            bytes,
            initial_bytes: bytes,
            has_worker: true,
            since: Instant::now(),
        })
    }

    /// What it is used for now.
    pub fn usage(&self) -> MemoryUsage {
        let state = self.state();
        MemoryUsage {
            total: state.shares.total(),
            reserved: state.shares.held(),
            running: state.running,
            waiting: state.queue.len(),
        }
    }

    /// Gives all those that wait what they can have now.
    fn grant(&self, state: &mut State) {
        let now = Instant::now();
        while let Some((account, next)) = state.next(self.0.workers, now) {
            state.resize(account, 0, next.bytes);
            state.running += 1;
            *state.running_by_account.entry(account).or_default() += 1;
            state.granted.insert(next.number);
        }
        self.0.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect(NO_PANIC)
    }
}

const NO_PANIC: &str = "nothing panics while it counts";

fn square(bytes: u64) -> u128 {
    u128::from(bytes).pow(2)
}

/// The average over about the last ten values, with one value more.
fn average(before: f64, value: f64) -> f64 {
    before + (value - before) / 8.0
}

impl State {
    /// Adds a conversion to the queue and returns its number.
    fn join(&mut self, account: u64, bytes: u64, until: Instant) -> u64 {
        self.arrivals += 1;
        let now = Instant::now();
        let waiting = Waiting {
            number: self.arrivals,
            bytes,
            claims_at: now + until.saturating_duration_since(now) / 2,
        };
        self.queue.push(account, waiting);
        self.squares += square(bytes);
        self.arrivals
    }

    /// Removes a conversion from the queue.
    fn leave(&mut self, account: u64, number: u64, bytes: u64) {
        self.queue.remove(account, |other| other.number == number);
        self.squares -= square(bytes);
    }

    /// Takes the next conversion that can begin out of the queue.
    fn next(&mut self, workers: usize, now: Instant) -> Option<(u64, Waiting)> {
        let State {
            shares,
            running,
            running_by_account,
            queue,
            ..
        } = self;
        let runs = |account| running_by_account.contains_key(&account);
        // The conversion that has waited too long, among those whose account runs nothing.
        let claim = queue
            .iter()
            .filter(|(account, waiting)| waiting.claims_at <= now && !runs(*account))
            .map(|(_, waiting)| waiting.number)
            .min();
        let one_has_all = running_by_account.values().any(|&count| count == workers);
        let free = shares.total() - shares.held();
        queue.pop(|account, waiting| {
            let runs = runs(account);
            let has_worker = *running < workers || (*running == workers && one_has_all && !runs);
            let own = shares.held_for(account).saturating_add(waiting.bytes);
            let fits = waiting.bytes <= free && (!runs || own <= shares.limit());
            let is_next = claim.is_none_or(|number| number == waiting.number);
            has_worker && fits && is_next
        })
    }

    /// Counts `now` bytes of this account in place of `before`.
    fn resize(&mut self, account: u64, before: u64, now: u64) {
        let share = |bytes| Share {
            bytes,
            account: Some(account),
        };
        self.shares.replace(share(before), share(now));
    }

    /// Takes a worker back from this account.
    fn free_worker(&mut self, account: u64) {
        self.running -= 1;
        if let Some(count) = self.running_by_account.get_mut(&account) {
            *count -= 1;
            if *count == 0 {
                self.running_by_account.remove(&account);
            }
        }
    }

    /// How long all that is reserved or waited for will take, side by side as far as it fits.
    fn expected_wait(&self, workers: usize) -> Duration {
        let total = self.shares.total().max(1) as f64;
        let for_memory = self.squares as f64 * self.seconds_per_byte / total;
        let rounds = self.queue.len() as f64 / workers.max(1) as f64;
        let for_worker = rounds * self.seconds_per_conversion;
        Duration::try_from_secs_f64(for_memory.max(for_worker)).unwrap_or(Duration::MAX)
    }
}

impl Reservation {
    /// The work is done: gives back the worker, and all memory but `bytes`. If `bytes` are more
    /// than are reserved, no memory is given back.
    pub fn finish(&mut self, bytes: u64) {
        let mut state = self.budget.state();
        let kept = self.bytes.min(bytes);
        state.resize(self.account, self.bytes, kept);
        self.bytes = kept;
        if std::mem::take(&mut self.has_worker) {
            state.free_worker(self.account);
            let seconds = self.since.elapsed().as_secs_f64();
            state.seconds_per_conversion = average(state.seconds_per_conversion, seconds);
        }
        self.budget.grant(&mut state);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut state = self.budget.state();
        state.squares -= square(self.initial_bytes);
        let seconds_per_byte =
            self.since.elapsed().as_secs_f64() / self.initial_bytes.max(1) as f64;
        state.seconds_per_byte = average(state.seconds_per_byte, seconds_per_byte);
        state.resize(self.account, self.bytes, 0);
        if self.has_worker {
            state.free_worker(self.account);
        }
        self.budget.grant(&mut state);
    }
}
