//! One budget of memory for all conversions of the process. What does not fit now waits in line: first come, first served,
//! so that a large picture is not overtaken by small ones for ever.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How long it takes at most until somebody who left the line is noticed.
const LOOK: Duration = Duration::from_millis(20);

/// Until conversions have been measured: 12 megapixels take 80 MB for half a second.
const FIRST_PACE: f64 = 6e-9;

/// Bytes that conversions share. A clone shares the same.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    total: u64,
    uses: Mutex<Uses>,
    changed: Condvar,
}

#[derive(Debug)]
struct Uses {
    reserved: u64,
    /// Who waits: a number that is nobody else's, and bytes. The first one is next.
    line: VecDeque<(u64, u64)>,
    arrivals: u64,
    /// The squares of all that is reserved or waited for: work is done in a time that grows with its bytes.
    squares: u128,
    /// Seconds that a byte's reservation lasts for each byte of it, on average.
    pace: f64,
}

/// What is taken of a [`Budget`], given back when dropped.
#[derive(Debug)]
pub struct Reserved {
    budget: Budget,
    bytes: u64,
    /// What it was at first.
    asked: u64,
    since: Instant,
}

/// Why nothing was reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreserved {
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
    Left,
}

/// What a budget is used for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Bytes in all.
    pub total: u64,
    /// Bytes that are taken.
    pub reserved: u64,
    /// How many wait.
    pub waiting: usize,
}

impl Budget {
    /// All free.
    pub fn new(total: u64) -> Budget {
        Budget(Arc::new(Shared {
            total,
            uses: Mutex::new(Uses {
                reserved: 0,
                line: VecDeque::new(),
                arrivals: 0,
                squares: 0,
                pace: FIRST_PACE,
            }),
            changed: Condvar::new(),
        }))
    }

    /// Takes so many bytes, as soon as they are free and everybody who came earlier has theirs.
    ///
    /// # Errors
    /// See [`Unreserved`]: at once if the bytes can never be had, at `until` if others have them still, and within
    /// [`LOOK`] once `is_waiting` says no.
    pub fn reserve(
        &self,
        bytes: u64,
        until: Instant,
        is_waiting: impl Fn() -> bool,
    ) -> Result<Reserved, Unreserved> {
        let total = self.0.total;
        if bytes > total {
            return Err(Unreserved::TooLarge {
                needed: bytes,
                total,
            });
        }
        let mut uses = self.uses();
        let own = uses.join(bytes);
        loop {
            let is_first = uses.line.front().is_some_and(|(number, _)| *number == own);
            if is_first && bytes <= total - uses.reserved {
                uses.line.pop_front();
                uses.reserved += bytes;
                break;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || !is_waiting() {
                uses.line.retain(|(number, _)| *number != own);
                uses.squares -= square(bytes);
                self.0.changed.notify_all();
                let wait = uses.wait(total);
                return Err(if left.is_zero() {
                    Unreserved::Busy { wait }
                } else {
                    Unreserved::Left
                });
            }
            let waited = self.0.changed.wait_timeout(uses, left.min(LOOK));
            uses = waited.expect(NO_PANIC).0;
        }
        drop(uses);
        // The next one may fit too.
        self.0.changed.notify_all();
        Ok(Reserved {
            budget: self.clone(),
            bytes,
            asked: bytes,
            since: Instant::now(),
        })
    }

    /// What it is used for now.
    pub fn usage(&self) -> Usage {
        let uses = self.uses();
        Usage {
            total: self.0.total,
            reserved: uses.reserved,
            waiting: uses.line.len(),
        }
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
    /// At the end of the line.
    fn join(&mut self, bytes: u64) -> u64 {
        self.arrivals += 1;
        self.line.push_back((self.arrivals, bytes));
        self.squares += square(bytes);
        self.arrivals
    }

    /// How long all that is reserved or waited for will take, side by side as far as it fits.
    fn wait(&self, total: u64) -> Duration {
        let seconds = self.squares as f64 * self.pace / total.max(1) as f64;
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

impl Reserved {
    /// Gives back all but `bytes`; with more than there are, nothing.
    pub fn shrink(&mut self, bytes: u64) {
        let spare = self.bytes.saturating_sub(bytes);
        self.bytes -= spare;
        self.budget.uses().reserved -= spare;
        self.budget.0.changed.notify_all();
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut uses = self.budget.uses();
        uses.reserved -= self.bytes;
        uses.squares -= square(self.asked);
        let pace = self.since.elapsed().as_secs_f64() / self.asked.max(1) as f64;
        // The last some ten count.
        uses.pace += (pace - uses.pace) / 8.0;
        drop(uses);
        self.budget.0.changed.notify_all();
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

    fn later() -> Instant {
        Instant::now() + PATIENCE
    }

    fn until_waiting(budget: &Budget, count: usize) {
        let start = Instant::now();
        while budget.usage().waiting != count {
            assert!(start.elapsed() < PATIENCE, "{:?}", budget.usage());
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn what_fits_is_had_at_once_and_comes_back() {
        let budget = Budget::new(100);
        let first = budget.reserve(60, Instant::now(), || true).expect("free");
        let mut second = budget.reserve(40, Instant::now(), || true).expect("free");
        assert_eq!(budget.usage().reserved, 100);
        budget
            .reserve(1, Instant::now(), || true)
            .expect_err("nothing is left");
        second.shrink(10);
        second.shrink(20);
        assert_eq!(budget.usage().reserved, 70, "none comes back by growing");
        drop((first, second));
        let nothing = Usage {
            total: 100,
            reserved: 0,
            waiting: 0,
        };
        assert_eq!(budget.usage(), nothing);
        assert_eq!(budget.uses().squares, 0);
        budget
            .reserve(100, Instant::now(), || true)
            .expect("the whole budget is free");
    }

    #[test]
    fn what_can_never_fit_is_refused_without_waiting() {
        let budget = Budget::new(100);
        let _all = budget.reserve(100, later(), || true).expect("free");
        let refused = budget.reserve(101, later(), || panic!("nobody waits"));
        assert_eq!(
            refused.expect_err("it is too large"),
            Unreserved::TooLarge {
                needed: 101,
                total: 100
            }
        );
    }

    #[test]
    fn the_line_is_served_in_its_order_whatever_the_sizes() {
        let budget = Budget::new(100);
        let held = budget.reserve(60, later(), || true).expect("free");
        let (sender, order) = mpsc::channel();
        thread::scope(|scope| {
            // The first does not fit beside what is held; the others would.
            for (number, bytes) in [90, 40, 30].into_iter().enumerate() {
                let (own, sender) = (budget.clone(), sender.clone());
                scope.spawn(move || {
                    let _taken = own.reserve(bytes, later(), || true).expect("its turn");
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
            assert_eq!(others, [30, 40]);
        });
    }

    #[test]
    fn who_leaves_the_line_frees_the_place_for_the_next() {
        let budget = Budget::new(100);
        let _held = budget.reserve(60, later(), || true).expect("free");
        let is_waiting = AtomicBool::new(true);
        thread::scope(|scope| {
            let large =
                scope.spawn(|| budget.reserve(90, later(), || is_waiting.load(Ordering::SeqCst)));
            until_waiting(&budget, 1);
            let small = scope.spawn(|| budget.reserve(40, later(), || true).map(drop));
            until_waiting(&budget, 2);
            is_waiting.store(false, Ordering::SeqCst);
            let large = large.join().expect("no panic");
            assert_eq!(large.expect_err("it has left"), Unreserved::Left);
            small.join().expect("no panic").expect("it fits now");
        });
        assert_eq!(budget.usage().reserved, 60);
    }

    #[test]
    fn waiting_ends_in_time_with_what_stands_before() {
        let budget = Budget::new(100);
        budget.uses().pace = 0.01;
        let held = budget.reserve(100, later(), || true).expect("free");
        let wait = |bytes| {
            let refused =
                budget.reserve(bytes, Instant::now() + Duration::from_millis(30), || true);
            match refused.expect_err("there is no room") {
                Unreserved::Busy { wait } => wait.as_secs_f64(),
                other => panic!("{other:?}"),
            }
        };
        // 100 bytes are held for a second.
        assert!((wait(50) - 1.0).abs() < 1e-9, "{}", wait(50));
        thread::scope(|scope| {
            scope.spawn(|| budget.reserve(50, later(), || true));
            until_waiting(&budget, 1);
            // Then 50 for half a second, which leaves room for as much beside them.
            assert!((wait(50) - 1.25).abs() < 1e-9, "{}", wait(50));
            drop(held);
        });
    }
}
