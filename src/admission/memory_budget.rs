//! One budget of memory and workers for all conversions of the process, shared fairly between accounts.
//!
//! A conversion begins once its memory is free and a worker is. Whoever waits does so in the queue of its account: first
//! come, first served within an account, and accounts take turns. No account stands in the way of another:
//!
//! - An account that runs something leaves a quarter of the memory to others.
//! - While one account has all workers, there is one worker more, for those that have none.
//! - What does not fit is overtaken by what does, but only by other accounts, and only until half of its time to wait is
//!   over. Then it is next, unless its own account has something running.

use super::fair_queue::FairQueue;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How long it takes at most until somebody who has left the queue is noticed.
const LOOK: Duration = Duration::from_millis(20);

/// Until conversions have been measured: 12 megapixels take 80 MB for half a second.
const FIRST_PACE: f64 = 6e-9;

/// Memory and workers that conversions share. A clone shares the same.
#[derive(Clone, Debug)]
pub struct MemoryBudget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    total: u64,
    workers: usize,
    uses: Mutex<Uses>,
    changed: Condvar,
}

#[derive(Debug)]
struct Uses {
    reserved: u64,
    running: usize,
    /// What each account has of both.
    accounts: HashMap<u64, Held>,
    queue: FairQueue<u64, Waiting>,
    /// The numbers of those that have theirs, and have not noticed yet.
    granted: HashSet<u64>,
    arrivals: u64,
    /// The squares of all that is reserved or waited for: work is done in a time that grows with its bytes.
    squares: u128,
    /// Seconds that a byte's reservation lasts for each byte of it, on average.
    pace: f64,
    /// Seconds that a conversion has a worker, on average.
    time: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Held {
    bytes: u64,
    running: usize,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// Nobody else's; those who come later have higher ones.
    number: u64,
    bytes: u64,
    /// When others may overtake it no more.
    claims_at: Instant,
}

/// Memory and a worker, taken of a [`MemoryBudget`] and given back when dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: MemoryBudget,
    account: u64,
    bytes: u64,
    /// What it was at first.
    asked: u64,
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
        /// Bytes that there are.
        total: u64,
    },
    /// Others had it all for too long.
    Busy {
        /// How long those who have it now, or wait for it, will take.
        wait: Duration,
    },
    /// Whoever asked waits no more.
    Cancelled,
}

/// What a budget is used for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUsage {
    /// Bytes in all.
    pub total: u64,
    /// Bytes that are taken.
    pub reserved: u64,
    /// How many have a worker.
    pub running: usize,
    /// How many wait.
    pub waiting: usize,
}

impl MemoryBudget {
    /// All free: so many bytes, and so many workers.
    pub fn new(total: u64, workers: usize) -> MemoryBudget {
        MemoryBudget(Arc::new(Shared {
            total,
            workers,
            uses: Mutex::new(Uses {
                reserved: 0,
                running: 0,
                accounts: HashMap::new(),
                queue: FairQueue::default(),
                granted: HashSet::new(),
                arrivals: 0,
                squares: 0,
                pace: FIRST_PACE,
                time: 0.0,
            }),
            changed: Condvar::new(),
        }))
    }

    /// Takes so many bytes and a worker for this account, as soon as both are free and it is the account's turn.
    ///
    /// # Errors
    /// See [`ReserveError`]: at once if the bytes can never be had, at `until` if others have them still, and within
    /// [`LOOK`] once `is_waiting` says no.
    pub fn reserve(
        &self,
        account: u64,
        bytes: u64,
        until: Instant,
        is_waiting: impl Fn() -> bool,
    ) -> Result<Reservation, ReserveError> {
        let Shared { total, workers, .. } = *self.0;
        if bytes > total {
            return Err(ReserveError::TooLarge {
                needed: bytes,
                total,
            });
        }
        let mut uses = self.uses();
        let number = uses.join(account, bytes, until);
        self.grant(&mut uses);
        loop {
            if uses.granted.remove(&number) {
                break;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || !is_waiting() {
                uses.queue.remove(account, |other| other.number == number);
                uses.squares -= square(bytes);
                self.grant(&mut uses);
                let wait = uses.wait(total, workers);
                return Err(if left.is_zero() {
                    ReserveError::Busy { wait }
                } else {
                    ReserveError::Cancelled
                });
            }
            let waited = self.0.changed.wait_timeout(uses, left.min(LOOK));
            uses = waited.expect(NO_PANIC).0;
        }
        drop(uses);
        Ok(Reservation {
            budget: self.clone(),
            account,
            bytes,
            asked: bytes,
            has_worker: true,
            since: Instant::now(),
        })
    }

    /// What it is used for now.
    pub fn usage(&self) -> MemoryUsage {
        let uses = self.uses();
        MemoryUsage {
            total: self.0.total,
            reserved: uses.reserved,
            running: uses.running,
            waiting: uses.queue.len(),
        }
    }

    /// Gives all those who wait what they can have now.
    fn grant(&self, uses: &mut Uses) {
        let Shared { total, workers, .. } = *self.0;
        let now = Instant::now();
        while let Some((account, next)) = uses.next(total, workers, now) {
            let held = uses.accounts.entry(account).or_default();
            held.bytes += next.bytes;
            held.running += 1;
            uses.reserved += next.bytes;
            uses.running += 1;
            uses.granted.insert(next.number);
        }
        self.0.changed.notify_all();
    }

    /// Takes back so many bytes of this account, and its worker.
    fn release(&self, account: u64, bytes: u64, has_worker: bool) {
        let mut uses = self.uses();
        let workers = usize::from(has_worker);
        uses.reserved -= bytes;
        uses.running -= workers;
        if let Some(held) = uses.accounts.get_mut(&account) {
            held.bytes -= bytes;
            held.running -= workers;
            if held.bytes == 0 && held.running == 0 {
                uses.accounts.remove(&account);
            }
        }
        self.grant(&mut uses);
    }

    fn uses(&self) -> MutexGuard<'_, Uses> {
        self.0.uses.lock().expect(NO_PANIC)
    }
}

const NO_PANIC: &str = "nothing panics while it counts";

fn square(bytes: u64) -> u128 {
    u128::from(bytes).pow(2)
}

impl Uses {
    /// Begins to wait, and gives the own number.
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

    /// Takes the next one that can begin out of the queue.
    fn next(&mut self, total: u64, workers: usize, now: Instant) -> Option<(u64, Waiting)> {
        let Uses {
            reserved,
            running,
            accounts,
            queue,
            ..
        } = self;
        let held = |account| accounts.get(&account).copied().unwrap_or_default();
        // Whoever has waited too long, of those whose account has nothing.
        let claim = queue
            .iter()
            .filter(|(account, waiting)| waiting.claims_at <= now && held(*account).running == 0)
            .map(|(_, waiting)| waiting.number)
            .min();
        let one_has_all = accounts.values().any(|held| held.running == workers);
        let free = total - *reserved;
        let share = total - total / 4;
        queue.pop(|account, waiting| {
            let own = held(account);
            let has_worker =
                *running < workers || (*running == workers && one_has_all && own.running == 0);
            let fits = waiting.bytes <= free
                && (own.running == 0 || own.bytes.saturating_add(waiting.bytes) <= share);
            let is_next = claim.is_none_or(|number| number == waiting.number);
            has_worker && fits && is_next
        })
    }

    /// How long all that is reserved or waited for will take, side by side as far as it fits.
    fn wait(&self, total: u64, workers: usize) -> Duration {
        let for_memory = self.squares as f64 * self.pace / total.max(1) as f64;
        let for_worker = self.queue.len() as f64 * self.time / workers.max(1) as f64;
        Duration::try_from_secs_f64(for_memory.max(for_worker)).unwrap_or(Duration::MAX)
    }
}

impl Reservation {
    /// The work is done: gives back the worker, and all but `bytes`; with more than there are, no memory.
    pub fn finish(&mut self, bytes: u64) {
        let spare = self.bytes.saturating_sub(bytes);
        self.bytes -= spare;
        let had_worker = std::mem::take(&mut self.has_worker);
        if had_worker {
            let time = self.since.elapsed().as_secs_f64();
            let mut uses = self.budget.uses();
            uses.time += (time - uses.time) / 8.0;
        }
        self.budget.release(self.account, spare, had_worker);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut uses = self.budget.uses();
        uses.squares -= square(self.asked);
        let pace = self.since.elapsed().as_secs_f64() / self.asked.max(1) as f64;
        // An average over about the last ten.
        uses.pace += (pace - uses.pace) / 8.0;
        drop(uses);
        self.budget
            .release(self.account, self.bytes, self.has_worker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::thread;

    /// Long enough for a busy machine.
    const PATIENCE: Duration = Duration::from_mins(1);

    /// Accounts.
    const A: u64 = 1;
    const B: u64 = 2;
    const C: u64 = 3;

    fn later() -> Instant {
        Instant::now() + PATIENCE
    }

    /// Takes what has to be free.
    #[track_caller]
    fn take(budget: &MemoryBudget, account: u64, bytes: u64) -> Reservation {
        budget
            .reserve(account, bytes, Instant::now(), || true)
            .unwrap_or_else(|error| panic!("{error:?}: {:?}", budget.usage()))
    }

    /// Whether so much could be had at once; it is not kept.
    fn is_free(budget: &MemoryBudget, account: u64, bytes: u64) -> bool {
        let taken = budget.reserve(account, bytes, Instant::now(), || true);
        taken.is_ok()
    }

    fn until_waiting(budget: &MemoryBudget, count: usize) {
        let start = Instant::now();
        while budget.usage().waiting != count {
            assert!(start.elapsed() < PATIENCE, "{:?}", budget.usage());
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn what_fits_is_had_at_once_and_comes_back() {
        let budget = MemoryBudget::new(100, 4);
        let first = take(&budget, A, 60);
        let mut second = take(&budget, B, 40);
        assert_eq!(budget.usage().reserved, 100);
        assert!(!is_free(&budget, C, 1), "nothing is left");
        second.finish(10);
        second.finish(20);
        let usage = budget.usage();
        assert_eq!(
            (usage.reserved, usage.running),
            (70, 1),
            "none comes back by growing"
        );
        drop((first, second));
        let nothing = MemoryUsage {
            total: 100,
            reserved: 0,
            running: 0,
            waiting: 0,
        };
        assert_eq!(budget.usage(), nothing);
        assert_eq!(budget.uses().squares, 0);
        assert!(budget.uses().accounts.is_empty());
        take(&budget, A, 100);
    }

    #[test]
    fn what_can_never_fit_is_refused_without_waiting() {
        let budget = MemoryBudget::new(100, 4);
        let _all = take(&budget, A, 100);
        let refused = budget.reserve(B, 101, later(), || panic!("nobody waits"));
        assert_eq!(
            refused.expect_err("it is too large"),
            ReserveError::TooLarge {
                needed: 101,
                total: 100
            }
        );
    }

    #[test]
    fn so_many_run_at_a_time_and_one_more_while_one_account_has_all() {
        let budget = MemoryBudget::new(100, 2);
        let mut all = vec![take(&budget, A, 1), take(&budget, A, 1)];
        assert!(!is_free(&budget, A, 1), "no third one of the same account");
        all.push(take(&budget, B, 1));
        assert!(!is_free(&budget, C, 1), "there is one more worker only");
        // Of two accounts, neither has all: the additional worker is for nobody.
        all.remove(0);
        assert!(!is_free(&budget, A, 1) && !is_free(&budget, C, 1));
        all.remove(0);
        drop(take(&budget, A, 1));
        drop(take(&budget, C, 1));
        assert_eq!(budget.usage().running, 1);
    }

    #[test]
    fn an_account_that_runs_something_leaves_a_quarter_of_the_memory() {
        let budget = MemoryBudget::new(100, 4);
        let large = take(&budget, A, 70);
        assert!(is_free(&budget, A, 5) && !is_free(&budget, A, 6));
        assert!(is_free(&budget, B, 30), "others may have all that is left");
        drop(large);
        assert!(is_free(&budget, A, 100), "alone it may have all");
    }

    #[test]
    fn an_account_is_served_in_order_whatever_the_sizes() {
        let budget = MemoryBudget::new(100, 4);
        let held = take(&budget, A, 60);
        let (sender, order) = mpsc::channel();
        thread::scope(|scope| {
            // The first does not fit beside what is held; the others would.
            for (number, bytes) in [90, 15, 10].into_iter().enumerate() {
                let (own, sender) = (budget.clone(), sender.clone());
                scope.spawn(move || {
                    let _taken = own.reserve(A, bytes, later(), || true).expect("its turn");
                    sender.send(bytes).expect("somebody listens");
                });
                until_waiting(&budget, number + 1);
            }
            order
                .recv_timeout(Duration::from_millis(50))
                .expect_err("none overtakes");
            drop(held);
            assert_eq!(order.recv_timeout(PATIENCE), Ok(90), "the first to come");
            let mut others = [(); 2].map(|()| order.recv_timeout(PATIENCE).expect("both"));
            others.sort_unstable();
            assert_eq!(others, [10, 15]);
        });
    }

    #[test]
    fn accounts_take_turns_however_many_one_has_waiting() {
        let budget = MemoryBudget::new(100, 1);
        let (sender, order) = mpsc::channel();
        thread::scope(|scope| {
            // Two accounts, so that nobody has the one worker more.
            let held = [take(&budget, A, 1), take(&budget, B, 1)];
            let arrivals = [A, A, A, A, B, B, C];
            for (number, account) in arrivals.into_iter().enumerate() {
                let (own, sender) = (budget.clone(), sender.clone());
                scope.spawn(move || {
                    let taken = own.reserve(account, 1, later(), || true).expect("its turn");
                    sender.send((account, taken)).expect("somebody listens");
                });
                until_waiting(&budget, number + 1);
            }
            let mut running: Vec<Reservation> = held.into();
            let mut served = Vec::new();
            while served.len() < arrivals.len() {
                running.remove(0);
                while let Ok((account, taken)) = order.recv_timeout(Duration::from_millis(100)) {
                    served.push(account);
                    running.push(taken);
                }
            }
            let last = served.iter().rposition(|account| *account != A);
            assert!(
                last < Some(5),
                "others wait for one turn of A each: {served:?}"
            );
        });
    }

    #[test]
    fn what_waits_for_memory_is_overtaken_by_others_until_half_its_time() {
        let budget = MemoryBudget::new(100, 4);
        let own = take(&budget, A, 60);
        let soon = Instant::now() + Duration::from_millis(400);
        let is_waiting = AtomicBool::new(true);
        let waits = || is_waiting.load(Ordering::SeqCst);
        thread::scope(|scope| {
            let of_same = scope.spawn(|| budget.reserve(A, 90, soon, || true).map(drop));
            until_waiting(&budget, 1);
            assert!(is_free(&budget, B, 30), "it fits beside");
            of_same
                .join()
                .expect("no panic")
                .expect_err("its time is over");
            // An account with something running has no claim, however long it waits.
            budget.uses().queue.push(
                A,
                Waiting {
                    number: u64::MAX - 1,
                    bytes: 90,
                    claims_at: Instant::now(),
                },
            );
            assert!(is_free(&budget, B, 30));
            budget.uses().queue.remove(A, |_| true);
            let of_other = scope.spawn(|| budget.reserve(C, 90, later(), waits).map(drop));
            until_waiting(&budget, 1);
            assert!(is_free(&budget, B, 30), "half of its time is not over");
            is_waiting.store(false, Ordering::SeqCst);
            of_other.join().expect("no panic").expect_err("it left");
            // One whose time is half over is next.
            budget.uses().queue.push(
                C,
                Waiting {
                    number: 0,
                    bytes: 90,
                    claims_at: Instant::now(),
                },
            );
            assert!(!is_free(&budget, B, 30), "it is not overtaken any more");
            drop(own);
            assert!(budget.uses().granted.contains(&0), "it is next");
        });
    }

    #[test]
    fn who_leaves_frees_the_place_for_the_next() {
        let budget = MemoryBudget::new(100, 4);
        let _held = take(&budget, A, 30);
        let is_waiting = AtomicBool::new(true);
        thread::scope(|scope| {
            let large = scope
                .spawn(|| budget.reserve(A, 90, later(), || is_waiting.load(Ordering::SeqCst)));
            until_waiting(&budget, 1);
            let small = scope.spawn(|| budget.reserve(A, 40, later(), || true).map(drop));
            until_waiting(&budget, 2);
            is_waiting.store(false, Ordering::SeqCst);
            let large = large.join().expect("no panic");
            assert_eq!(large.expect_err("it has left"), ReserveError::Cancelled);
            small.join().expect("no panic").expect("it fits now");
        });
        assert_eq!(budget.usage().reserved, 30);
    }

    #[test]
    fn waiting_ends_in_time_with_what_stands_before() {
        let budget = MemoryBudget::new(100, 4);
        budget.uses().pace = 0.01;
        let held = take(&budget, A, 100);
        let wait = |bytes| {
            let until = Instant::now() + Duration::from_millis(30);
            let refused = budget.reserve(B, bytes, until, || true);
            match refused.expect_err("there is no room") {
                ReserveError::Busy { wait } => wait.as_secs_f64(),
                other => panic!("{other:?}"),
            }
        };
        // 100 bytes are held for a second.
        assert!((wait(50) - 1.0).abs() < 1e-9, "{}", wait(50));
        thread::scope(|scope| {
            scope.spawn(|| budget.reserve(B, 50, later(), || true));
            until_waiting(&budget, 1);
            // Then 50 for half a second, which leaves room for as much beside them.
            assert!((wait(50) - 1.25).abs() < 1e-9, "{}", wait(50));
            drop(held);
        });
    }
}
