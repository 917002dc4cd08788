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
//!
//! Small conversions ([`Need::is_small`]) do not wait for large ones, not even for those of their
//! own account: they have a queue of their own, by the same rules, as many workers again, and a
//! part of the memory that is kept for them. Nor do large ones wait for small ones: they share no
//! workers, and what is next in the queue of large ones gets its memory, whatever small ones come.

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
    /// Bytes that large conversions leave to small ones.
    kept_for_small: u64,
    /// Bytes that small conversions hold.
    held_by_small: u64,
    small: Class,
    large: Class,
    /// The numbers of those that were granted what they wait for, and have not noticed yet.
    granted: HashSet<u64>,
    arrivals: u64,
}

/// The conversions of one kind, small or large.
#[derive(Debug)]
struct Class {
    running: usize,
    /// Conversions that each account runs; none of them is 0.
    running_by_account: HashMap<u64, usize>,
    queue: FairQueue<u64, Waiting>,
    /// The sum of the squares of all bytes that are reserved or waited for. The larger a
    /// conversion's memory is, the longer it is held, so the time that all of it takes grows with
    /// the squares.
    squares: u128,
    /// Seconds that a reservation lasts, divided by its bytes; an average.
    seconds_per_byte: f64,
    /// Seconds that a conversion has a worker; an average.
    seconds_per_conversion: f64,
}

/// What a conversion needs.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// Bytes of memory.
    pub bytes: u64,
    /// Whether it takes so little time and memory that it should not wait for those that take more.
    pub is_small: bool,
}

/// A conversion that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// Unique; later conversions have higher numbers.
    number: u64,
    bytes: u64,
    is_small: bool,
    /// When others may overtake it no more.
    claims_at: Instant,
}

/// Memory and a worker taken of a [`MemoryBudget`], given back when dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: MemoryBudget,
    account: u64,
    bytes: u64,
    /// What it was made for.
    need: Need,
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
                kept_for_small: 0,
                held_by_small: 0,
                small: Class::default(),
                large: Class::default(),
                granted: HashSet::new(),
                arrivals: 0,
            }),
            changed: Condvar::new(),
        }))
    }

    /// Keeps this many bytes for small conversions. A large one that needs some of them too gets
    /// what it needs once no other large one runs.
    #[must_use]
    pub fn keep_for_small(self, bytes: u64) -> MemoryBudget {
        self.state().kept_for_small = bytes;
        self
    }

    /// Takes bytes and a worker for this account, as soon as both are free and it is the account's
    /// turn, waiting until `until` at most.
    ///
    /// # Errors
    /// See [`ReserveError`]. It comes at once if there are never so many bytes.
    pub fn reserve(
        &self,
        account: u64,
        need: Need,
        until: Instant,
        cancel: &Cancel<'_>,
    ) -> Result<Reservation, ReserveError> {
        let bytes = need.bytes;
        let mut state = self.state();
        let total = state.shares.total();
        if bytes > total {
            return Err(ReserveError::TooLarge {
                needed: bytes,
                total,
            });
        }
        let number = state.join(account, need, until);
        self.grant(&mut state);
        while !state.granted.remove(&number) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || cancel.is_cancelled() {
                state.leave(account, number, need);
                self.grant(&mut state);
                return Err(if left.is_zero() {
                    ReserveError::Busy {
                        wait: state.expected_wait(need.is_small, self.0.workers),
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
            need,
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
            running: state.small.running + state.large.running,
            waiting: state.small.queue.len() + state.large.queue.len(),
        }
    }

    /// Gives all those that wait what they can have now.
    fn grant(&self, state: &mut State) {
        let now = Instant::now();
        while let Some((account, next)) = state.next(self.0.workers, now) {
            state.resize(account, next.is_small, 0, next.bytes);
            let class = state.class(next.is_small);
            class.running += 1;
            *class.running_by_account.entry(account).or_default() += 1;
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
    fn class(&mut self, is_small: bool) -> &mut Class {
        if is_small {
            &mut self.small
        } else {
            &mut self.large
        }
    }

    /// Adds a conversion to its queue and returns its number.
    fn join(&mut self, account: u64, need: Need, until: Instant) -> u64 {
        self.arrivals += 1;
        let number = self.arrivals;
        let now = Instant::now();
        let waiting = Waiting {
            number,
            bytes: need.bytes,
            is_small: need.is_small,
            claims_at: now + until.saturating_duration_since(now) / 2,
        };
        let class = self.class(need.is_small);
        class.queue.push(account, waiting);
        class.squares += square(need.bytes);
        number
    }

    /// Removes a conversion from its queue.
    fn leave(&mut self, account: u64, number: u64, need: Need) {
        let class = self.class(need.is_small);
        class.queue.remove(account, |other| other.number == number);
        class.squares -= square(need.bytes);
    }

    /// Takes the next conversion that can begin out of its queue: a small one if there is one.
    fn next(&mut self, workers: usize, now: Instant) -> Option<(u64, Waiting)> {
        let State {
            shares,
            kept_for_small,
            held_by_small,
            small,
            large,
            ..
        } = self;
        let total = shares.total();
        let claimed = large.claim(now).map_or(0, |waiting| waiting.bytes);
        let left_to_small =
            (total - shares.held()).min((total - claimed).saturating_sub(*held_by_small));
        let next = small.next(workers, now, |_, _, bytes| bytes <= left_to_small);
        next.or_else(|| {
            let held_by_large = shares.held() - *held_by_small;
            large.next(workers, now, |account, runs, bytes| {
                let for_small = (*kept_for_small).min(total - bytes).max(*held_by_small);
                let own = shares.held_for(account).saturating_add(bytes);
                held_by_large + for_small + bytes <= total && (!runs || own <= shares.limit())
            })
        })
    }

    /// Counts `now` bytes of this account in place of `before`.
    fn resize(&mut self, account: u64, is_small: bool, before: u64, now: u64) {
        let share = |bytes| Share {
            bytes,
            account: Some(account),
        };
        self.shares.replace(share(before), share(now));
        if is_small {
            self.held_by_small = self.held_by_small - before + now;
        }
    }

    /// How long all that is reserved or waited for by conversions of the same kind will take.
    fn expected_wait(&self, is_small: bool, workers: usize) -> Duration {
        let class = if is_small { &self.small } else { &self.large };
        class.expected_wait(self.shares.total(), workers)
    }
}

impl Default for Class {
    fn default() -> Class {
        Class {
            running: 0,
            running_by_account: HashMap::new(),
            queue: FairQueue::default(),
            squares: 0,
            seconds_per_byte: INITIAL_SECONDS_PER_BYTE,
            seconds_per_conversion: 0.0,
        }
    }
}

impl Class {
    /// The conversion that has waited too long, among those whose account runs nothing.
    fn claim(&self, now: Instant) -> Option<Waiting> {
        let waiting = self.queue.iter().filter(|(account, waiting)| {
            waiting.claims_at <= now && !self.running_by_account.contains_key(account)
        });
        waiting
            .map(|(_, waiting)| *waiting)
            .min_by_key(|waiting| waiting.number)
    }

    /// Takes the next conversion that can begin out of the queue. `fits` is asked whether it has
    /// the memory for a conversion of this account, which runs others or not, with so many bytes.
    fn next(
        &mut self,
        workers: usize,
        now: Instant,
        fits: impl Fn(u64, bool, u64) -> bool,
    ) -> Option<(u64, Waiting)> {
        let claim = self.claim(now).map(|waiting| waiting.number);
        let Class {
            running,
            running_by_account,
            queue,
            ..
        } = self;
        let one_has_all = running_by_account.values().any(|&count| count == workers);
        queue.pop(|account, waiting| {
            let runs = running_by_account.contains_key(&account);
            let has_worker = *running < workers || (*running == workers && one_has_all && !runs);
            let is_next = claim.is_none_or(|number| number == waiting.number);
            has_worker && is_next && fits(account, runs, waiting.bytes)
        })
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
    fn expected_wait(&self, total: u64, workers: usize) -> Duration {
        let for_memory = self.squares as f64 * self.seconds_per_byte / total.max(1) as f64;
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
        state.resize(self.account, self.need.is_small, self.bytes, kept);
        self.bytes = kept;
        if std::mem::take(&mut self.has_worker) {
            let class = state.class(self.need.is_small);
            class.free_worker(self.account);
            let seconds = self.since.elapsed().as_secs_f64();
            class.seconds_per_conversion = average(class.seconds_per_conversion, seconds);
        }
        self.budget.grant(&mut state);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut state = self.budget.state();
        state.resize(self.account, self.need.is_small, self.bytes, 0);
        let class = state.class(self.need.is_small);
        class.squares -= square(self.need.bytes);
        let seconds_per_byte = self.since.elapsed().as_secs_f64() / self.need.bytes.max(1) as f64;
        class.seconds_per_byte = average(class.seconds_per_byte, seconds_per_byte);
        if self.has_worker {
            class.free_worker(self.account);
        }
        self.budget.grant(&mut state);
    }
}
