//! The memory and the turns that all conversions of the process share, fairly between accounts.
//!
//! A planned conversion begins once its memory is free and it is its turn. Until then it waits in
//! the queue of its account, and no thread waits with it ([`PendingReservation`]). Within an
//! account the first to come is the first; of several accounts the one comes next that has been
//! given the least seconds of work ([`Need::seconds`]). No account stands in the way of another:
//!
//! - An account that runs something has, by all that it runs, at most three quarters of the memory
//!   divided by the number of accounts that run or wait.
//! - An account that runs nothing begins although all workers are taken, up to a number that keeps
//!   the threads few. All that run share the cores in time
//!   ([`CpuBudget`](towebp_encoder::CpuBudget)).
//! - A conversion that does not fit may be overtaken by one of another account that does, until
//!   half of its time to wait is over. Then it is next, unless its own account runs something.
//!
//! Small conversions ([`Need::is_small`]) do not wait for large ones, not even for those of their
//! own account: they have a queue of their own, by the same rules, as many workers again, and a
//! part of the memory that is kept for them. Nor do large ones wait for small ones: they share no
//! workers, and the next large one gets its memory, even if more small ones come.

#[cfg(test)]
mod tests;

use super::account_shares::{AccountShares, Share};
use super::fair_queue::FairQueue;
use crate::store::monotonic;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Assumed until conversions have been measured: 12 megapixels take 80 MB for half a second.
const INITIAL_SECONDS_PER_BYTE: f64 = 6e-9;

/// Memory and workers that conversions share. Clones share the same.
#[derive(Clone, Debug)]
pub struct MemoryBudget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
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
    /// Bytes that each worker beyond the first ones takes by itself.
    per_worker: u64,
    /// The numbers of conversions whose memory was granted and not taken yet, with the bytes that
    /// they have.
    granted: HashMap<u64, u64>,
    arrivals: u64,
}

/// The conversions of one kind, small or large.
#[derive(Debug)]
struct Class {
    /// Conversions that may run, of all accounts together.
    workers: usize,
    /// Conversions that may run if each one beyond `workers` belongs to an account of its own.
    most: usize,
    /// Seconds of work that accounts were given, as far as they are ahead of others.
    given: HashMap<u64, f64>,
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

/// The needs of a conversion.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// Bytes of memory.
    pub bytes: u64,
    /// Whether it takes so little time and memory that it should not wait for large conversions.
    pub is_small: bool,
    /// Seconds of work, estimated.
    pub seconds: f64,
}

/// Notifies a waiting conversion that its turn has come.
type Wake = Box<dyn Fn() + Send>;

/// A conversion that waits.
struct Waiting {
    /// Unique; later conversions have higher numbers.
    number: u64,
    need: Need,
    /// When others may overtake it no more.
    claims_at: Instant,
    wake: Wake,
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting")
            .field("number", &self.number)
            .field("need", &self.need)
            .field("claims_at", &self.claims_at)
            .finish_non_exhaustive()
    }
}

/// A conversion's turn in a [`MemoryBudget`]: it waits, or its turn has come. When dropped, it is
/// given up.
#[derive(Debug)]
pub struct PendingReservation {
    budget: MemoryBudget,
    account: u64,
    number: u64,
    need: Need,
    /// Whether the grant has become a [`Reservation`].
    is_taken: bool,
}

/// Memory and a worker taken of a [`MemoryBudget`], given back when dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: MemoryBudget,
    account: u64,
    bytes: u64,
    /// The needs that it was made for.
    need: Need,
    has_worker: bool,
    since: Instant,
}

/// Why nothing is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReserveError {
    /// It is more than the whole budget.
    TooLarge {
        /// Bytes that were requested.
        needed: u64,
        /// Bytes of the budget.
        total: u64,
    },
    /// Others have had it for too long.
    Busy {
        /// The expected time of the conversions that have it now or wait for it.
        wait: Duration,
    },
}

/// The use of a budget at one moment.
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
    /// A budget of `total` bytes, and this many workers for small and for large conversions.
    pub fn new(total: u64, workers: usize) -> MemoryBudget {
        let [small, large] = MemoryBudget::most_running(workers);
        MemoryBudget(Arc::new(Shared {
            state: Mutex::new(State {
                shares: AccountShares::new(total),
                kept_for_small: 0,
                held_by_small: 0,
                small: Class::new(workers, small),
                large: Class::new(workers, large),
                per_worker: 0,
                granted: HashMap::new(),
                arrivals: 0,
            }),
        }))
    }

    /// The most small and large conversions that run at a time with this many workers. Small ones
    /// end soon. Of large ones, those beyond the workers belong to accounts that run nothing else:
    /// with ten at a time on two cores, somebody who comes eleventh is rare, and memory mostly ends
    /// before.
    pub fn most_running(workers: usize) -> [usize; 2] {
        [workers + 1, 2 * workers + 6]
    }

    /// Keeps this many bytes for small conversions. A large one that needs some of them too gets
    /// its memory once no other large one runs.
    #[must_use]
    pub fn keep_for_small(self, bytes: u64) -> MemoryBudget {
        self.state().kept_for_small = bytes;
        self
    }

    /// Counts this many bytes for each large conversion that runs beyond the workers and one more,
    /// for which nobody has set memory aside.
    #[must_use]
    pub fn count_workers(self, bytes: u64) -> MemoryBudget {
        self.state().per_worker = bytes;
        self
    }

    /// Makes a conversion of this account wait for its needs, until `until` at most. `wake` is
    /// called if its turn comes later than at once.
    ///
    /// # Errors
    /// [`ReserveError::TooLarge`] if there are never so many bytes.
    pub fn join(
        &self,
        account: u64,
        need: Need,
        until: Instant,
        wake: impl Fn() + Send + 'static,
    ) -> Result<PendingReservation, ReserveError> {
        let mut state = self.state();
        let total = state.shares.total();
        if need.bytes > total {
            return Err(ReserveError::TooLarge {
                needed: need.bytes,
                total,
            });
        }
        let number = state.join(account, need, until, Box::new(wake));
        state.grant();
        Ok(PendingReservation {
            budget: self.clone(),
            account,
            number,
            need,
            is_taken: false,
        })
    }

    /// The present use.
    pub fn usage(&self) -> MemoryUsage {
        let state = self.state();
        MemoryUsage {
            total: state.shares.total(),
            reserved: state.shares.held(),
            running: state.small.running + state.large.running,
            waiting: state.small.queue.len() + state.large.queue.len(),
        }
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

    /// Grants waiting conversions the memory that is free now.
    fn grant(&mut self) {
        let now = monotonic::now();
        while let Some((account, next)) = self.next(now) {
            let need = next.need;
            let bytes = need.bytes + self.beside(need.is_small);
            self.resize(account, need.is_small, 0, bytes);
            let class = self.class(need.is_small);
            class.running += 1;
            *class.running_by_account.entry(account).or_default() += 1;
            *class.given.entry(account).or_default() += need.seconds;
            self.granted.insert(next.number, bytes);
            (next.wake)();
        }
    }

    /// Bytes that the next conversion takes beside its own.
    fn beside(&self, is_small: bool) -> u64 {
        if is_small || self.large.running <= self.large.workers {
            0
        } else {
            self.per_worker
        }
    }

    /// Adds a conversion to its queue and returns its number.
    fn join(&mut self, account: u64, need: Need, until: Instant, wake: Wake) -> u64 {
        self.arrivals += 1;
        let number = self.arrivals;
        let now = monotonic::now();
        let waiting = Waiting {
            number,
            need,
            wake,
            claims_at: now + until.saturating_duration_since(now) / 2,
        };
        let class = self.class(need.is_small);
        class.begin_turns(account);
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
    fn next(&mut self, now: Instant) -> Option<(u64, Waiting)> {
        let beside = self.beside(false);
        let State {
            shares,
            kept_for_small,
            held_by_small,
            small,
            large,
            ..
        } = self;
        let total = shares.total();
        let claimed = large.claim(now).map_or(0, |waiting| waiting.need.bytes);
        let left_to_small =
            (total - shares.held()).min((total - claimed).saturating_sub(*held_by_small));
        let next = small.next(now, |_, _, bytes| bytes <= left_to_small);
        next.or_else(|| {
            let held_by_large = shares.held() - *held_by_small;
            let own_limit = shares.limit() / large.accounts().max(1) as u64;
            large.next(now, |account, runs, bytes| {
                let bytes = bytes + beside;
                if bytes > total {
                    return false;
                }
                let for_small = (*kept_for_small).min(total - bytes).max(*held_by_small);
                let own = shares.held_for(account).saturating_add(bytes);
                held_by_large + for_small + bytes <= total && (!runs || own <= own_limit)
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

    /// How long all that is reserved or waited for by conversions of the same kind as this one,
    /// which waits itself, will take.
    fn expected_wait(&self, need: Need) -> Duration {
        let class = if need.is_small {
            &self.small
        } else {
            &self.large
        };
        class.expected_wait(self.shares.total(), need)
    }
}

impl Class {
    fn new(workers: usize, most: usize) -> Class {
        Class {
            workers,
            most,
            given: HashMap::new(),
            running: 0,
            running_by_account: HashMap::new(),
            queue: FairQueue::default(),
            squares: 0,
            seconds_per_byte: INITIAL_SECONDS_PER_BYTE,
            seconds_per_conversion: 0.0,
        }
    }

    /// The number of accounts that run or wait for something.
    fn accounts(&self) -> usize {
        let runs = |account| self.running_by_account.contains_key(account);
        let waiting = self.queue.owners().filter(|account| !runs(account));
        self.running_by_account.len() + waiting.count()
    }

    /// Moves a returning account to the position of the accounts that have got least: unused time
    /// before earns it nothing. If it is ahead of them, it stays ahead.
    fn begin_turns(&mut self, account: u64) {
        let active = |other: &u64| {
            self.running_by_account.contains_key(other) || self.queue.len_of(*other) > 0
        };
        let given = self.given.iter();
        let least = given
            .filter(|(other, _)| active(other))
            .map(|(_, given)| *given)
            .fold(f64::INFINITY, f64::min);
        if least.is_infinite() {
            self.given.clear();
        } else {
            let kept: Vec<u64> = self.given.keys().copied().filter(active).collect();
            (self.given).retain(|other, given| kept.contains(other) || *given > least);
            let own = self.given.entry(account).or_insert(least);
            *own = own.max(least);
        }
    }

    /// The conversion that has waited too long, among the first ones of accounts that run nothing.
    /// One behind them cannot be next, and would only be in the way.
    fn claim(&self, now: Instant) -> Option<&Waiting> {
        let waiting = self.queue.firsts().filter(|(account, waiting)| {
            waiting.claims_at <= now && !self.running_by_account.contains_key(account)
        });
        waiting
            .map(|(_, waiting)| waiting)
            .min_by_key(|waiting| waiting.number)
    }

    /// Takes the next conversion that can begin out of the queue. `fits` decides whether it has the
    /// memory for a conversion of this account, which runs others or not, with so many bytes.
    fn next(
        &mut self,
        now: Instant,
        fits: impl Fn(u64, bool, u64) -> bool,
    ) -> Option<(u64, Waiting)> {
        let claim = self.claim(now).map(|waiting| waiting.number);
        let Class {
            workers,
            most,
            given,
            running,
            running_by_account,
            queue,
            ..
        } = self;
        let given = |account| given.get(&account).copied().unwrap_or(0.0);
        queue.pop_least(given, |account, waiting| {
            let runs = running_by_account.contains_key(&account);
            let has_worker = *running < *workers || (!runs && *running < *most);
            let is_next = claim.is_none_or(|number| number == waiting.number);
            has_worker && is_next && fits(account, runs, waiting.need.bytes)
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

    /// How long all that is reserved or waited for will take, but for `own`, which waits: side by
    /// side as far as it fits.
    fn expected_wait(&self, total: u64, own: Need) -> Duration {
        let squares = self.squares - square(own.bytes);
        let for_memory = squares as f64 * self.seconds_per_byte / total.max(1) as f64;
        let rounds = self.queue.len().saturating_sub(1) as f64 / self.workers.max(1) as f64;
        let for_worker = rounds * self.seconds_per_conversion;
        Duration::try_from_secs_f64(for_memory.max(for_worker)).unwrap_or(Duration::MAX)
    }
}

impl PendingReservation {
    /// Whether its turn has come.
    pub fn is_granted(&self) -> bool {
        self.budget.state().granted.contains_key(&self.number)
    }

    /// The reservation, if its turn has come.
    ///
    /// # Errors
    /// It still waits.
    pub fn take(mut self) -> Result<Reservation, PendingReservation> {
        let granted = self.budget.state().granted.remove(&self.number);
        let Some(bytes) = granted else {
            return Err(self);
        };
        self.is_taken = true;
        Ok(self.reservation(bytes))
    }

    /// The error of one that has waited for too long.
    pub fn busy(&self) -> ReserveError {
        let state = self.budget.state();
        let wait = if state.granted.contains_key(&self.number) {
            Duration::ZERO
        } else {
            state.expected_wait(self.need)
        };
        ReserveError::Busy { wait }
    }

    fn reservation(&self, bytes: u64) -> Reservation {
        Reservation {
            budget: self.budget.clone(),
            account: self.account,
            bytes,
            need: self.need,
            has_worker: true,
            since: monotonic::now(),
        }
    }
}

impl Drop for PendingReservation {
    fn drop(&mut self) {
        if self.is_taken {
            return;
        }
        let mut state = self.budget.state();
        if let Some(bytes) = state.granted.remove(&self.number) {
            drop(state);
            drop(self.reservation(bytes));
        } else {
            state.leave(self.account, self.number, self.need);
            state.grant();
        }
    }
}

impl Reservation {
    /// Takes as much memory more as the conversion needs for `bytes` in all, at once or not at all:
    /// it has to fit as the memory of a new conversion does, but waiting conversions are ignored.
    ///
    /// # Errors
    /// [`ReserveError::TooLarge`] or [`ReserveError::Busy`].
    pub fn grow_to(&mut self, bytes: u64) -> Result<(), ReserveError> {
        let Some(more) = bytes.checked_sub(self.need.bytes) else {
            return Ok(());
        };
        let mut state = self.budget.state();
        let (total, held) = (state.shares.total(), self.bytes.saturating_add(more));
        if held > total {
            let needed = held;
            return Err(ReserveError::TooLarge { needed, total });
        }
        let Need { is_small, .. } = self.need;
        let others = state.shares.held_for(self.account) - self.bytes;
        let kept = if is_small { 0 } else { state.kept_for_small };
        let idle = kept.min(total - held).saturating_sub(state.held_by_small);
        let fits = state.shares.held() + more + idle <= total
            && (others == 0 || others + held <= state.shares.limit());
        if !fits {
            let wait = state.expected_wait(self.need);
            return Err(ReserveError::Busy { wait });
        }
        state.resize(self.account, is_small, self.bytes, held);
        let class = state.class(is_small);
        class.squares += square(bytes);
        class.squares -= square(self.need.bytes);
        (self.bytes, self.need.bytes) = (held, bytes);
        Ok(())
    }

    /// Counts the measured seconds of work, in place of the estimated ones.
    pub fn charge(&mut self, seconds: f64) {
        let seconds = monotonic::measured(seconds);
        let mut state = self.budget.state();
        let class = state.class(self.need.is_small);
        if let Some(given) = class.given.get_mut(&self.account) {
            *given += seconds - self.need.seconds;
        }
        self.need.seconds = seconds;
    }

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
            let seconds = monotonic::elapsed(self.since).as_secs_f64();
            class.seconds_per_conversion = average(class.seconds_per_conversion, seconds);
        }
        state.grant();
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut state = self.budget.state();
        state.resize(self.account, self.need.is_small, self.bytes, 0);
        let class = state.class(self.need.is_small);
        class.squares -= square(self.need.bytes);
        let seconds_per_byte =
            monotonic::elapsed(self.since).as_secs_f64() / self.need.bytes.max(1) as f64;
        class.seconds_per_byte = average(class.seconds_per_byte, seconds_per_byte);
        if self.has_worker {
            class.free_worker(self.account);
        }
        state.grant();
    }
}
