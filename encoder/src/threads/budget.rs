//! One budget of cores for all encoders of a process: one that is alone gets them all, and each of
//! many gets one.

use std::num::NonZeroUsize;
use std::sync::{Condvar, Mutex, MutexGuard};

/// Cores that conversions share. Each conversion occupies one; those left over are lent to encoders
/// for helper threads, item by item of their passes (mostly rows of macroblocks), and return when a
/// conversion that arrives needs one. So no more threads compute than there are cores, unless there
/// are more conversions than that.
#[derive(Debug)]
pub struct CpuBudget {
    total: usize,
    uses: Mutex<Uses>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Uses {
    /// Cores that conversions occupy, one each.
    occupied: usize,
    /// Cores that are lent to helper threads.
    lent: usize,
    /// Conversions that wait for a core that is lent.
    awaited: usize,
    #[cfg(test)]
    counts: Counts,
}

impl CpuBudget {
    /// A budget of `total` cores, all of them free.
    pub fn new(total: NonZeroUsize) -> CpuBudget {
        CpuBudget {
            total: total.get(),
            uses: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// The number of cores.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Occupies a core for a conversion, until the value is dropped. If none is free but some are
    /// lent, this waits until a helper thread has finished its row of macroblocks; if none is lent,
    /// the conversion shares a core with another and does not wait.
    pub fn occupy(&self) -> OccupiedCore<'_> {
        let mut uses = self.uses();
        uses.awaited += 1;
        while uses.lent > 0 && uses.occupied + uses.lent >= self.total {
            uses = self.changed.wait(uses).expect(NO_PANIC);
        }
        uses.awaited -= 1;
        uses.occupied += 1;
        #[cfg(test)]
        uses.count(false);
        OccupiedCore(self)
    }

    /// Takes a core for a helper thread, if one is free.
    pub(super) fn try_acquire(&self) -> bool {
        let mut uses = self.uses();
        let is_free = uses.occupied + uses.lent + uses.awaited < self.total;
        uses.lent += usize::from(is_free);
        #[cfg(test)]
        uses.count(is_free);
        is_free
    }

    /// Releases the core of a helper thread if a conversion needs it.
    pub(super) fn release_if_needed(&self) -> bool {
        let mut uses = self.uses();
        let is_needed = uses.occupied + uses.lent + uses.awaited > self.total;
        if is_needed {
            uses.lent -= 1;
            self.changed.notify_all();
        }
        is_needed
    }

    /// Releases the core of a helper thread.
    pub(super) fn release(&self) {
        self.uses().lent -= 1;
        self.changed.notify_all();
    }

    fn uses(&self) -> MutexGuard<'_, Uses> {
        self.uses.lock().expect(NO_PANIC)
    }
}

const NO_PANIC: &str = "nothing panics while it counts";

/// A core that a conversion occupies.
#[derive(Debug)]
pub struct OccupiedCore<'a>(&'a CpuBudget);

impl Drop for OccupiedCore<'_> {
    fn drop(&mut self) {
        self.0.uses().occupied -= 1;
        self.0.changed.notify_all();
    }
}

/// Figures that tests look at afterwards.
#[cfg(test)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// The most cores that were lent at a time.
    pub most_lent: usize,
    /// The most cores that were in use at a time.
    pub most_used: usize,
    /// How often a core was lent.
    pub acquired: usize,
}

#[cfg(test)]
impl Uses {
    fn count(&mut self, is_lent: bool) {
        let Uses { occupied, lent, .. } = *self;
        self.counts.most_lent = self.counts.most_lent.max(lent);
        self.counts.most_used = self.counts.most_used.max(occupied + lent);
        self.counts.acquired += usize::from(is_lent);
    }
}

#[cfg(test)]
impl CpuBudget {
    pub(crate) fn lent(&self) -> usize {
        self.uses().lent
    }

    pub(super) fn counts(&self) -> Counts {
        self.uses().counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ColorType, Encoder, Picture};
    use std::thread;
    use std::time::Duration;

    fn budget(total: usize) -> CpuBudget {
        CpuBudget::new(NonZeroUsize::new(total).expect("not zero"))
    }

    #[test]
    fn cores_that_are_left_over_are_lent() {
        let budget = budget(3);
        let own = budget.occupy();
        assert!(
            budget.try_acquire() && budget.try_acquire(),
            "two are left over"
        );
        assert!(!budget.try_acquire(), "there is no third");
        assert!(!budget.release_if_needed(), "no conversion waits");
        budget.release();
        assert!(budget.try_acquire(), "one was released");
        budget.release();
        budget.release();
        drop(own);
        let lent = (0..4).filter(|_| budget.try_acquire()).count();
        assert_eq!(lent, 3, "all were released");
    }

    #[test]
    fn more_conversions_than_cores_share_them_without_waiting() {
        let budget = budget(2);
        let occupied: Vec<OccupiedCore<'_>> = (0..5).map(|_| budget.occupy()).collect();
        assert!(!budget.try_acquire(), "nothing is left over");
        drop(occupied);
        assert!(
            budget.try_acquire() && budget.try_acquire(),
            "all were released"
        );
    }

    #[test]
    fn each_conversion_that_arrives_takes_one_lent_core_back() {
        let budget = budget(4);
        let _own = budget.occupy();
        assert!((0..3).all(|_| budget.try_acquire()));
        thread::scope(|scope| {
            let arriving = scope.spawn(|| drop(budget.occupy()));
            while budget.uses().awaited == 0 {
                thread::sleep(Duration::from_millis(1));
            }
            assert!(!arriving.is_finished(), "all cores are in use");
            assert!(budget.release_if_needed(), "the first core is needed");
            assert!(!budget.release_if_needed(), "the others are not");
        });
        assert!(budget.try_acquire(), "it is free again");
    }

    #[test]
    fn encoders_never_use_more_cores_than_there_are() {
        let (width, height) = (200, 400);
        let pixels: Vec<u8> = (0..width * height * 3)
            .map(|i: u32| (i.wrapping_mul(i) >> 7) as u8)
            .collect();
        let picture = Picture::new(width, height, ColorType::Rgb8, &pixels).expect("good");
        let alone = Encoder::lossy(75)
            .encode(&picture)
            .expect("a small picture");
        for (conversions, total) in [(1, 4), (2, 2), (3, 4), (5, 3)] {
            let budget = budget(total);
            thread::scope(|scope| {
                for number in 0..conversions {
                    let (budget, picture, alone) = (&budget, &picture, &alone);
                    scope.spawn(move || {
                        for _ in 0..5 {
                            let _own = budget.occupy();
                            let encoder = Encoder::lossy(75).threads(budget.total());
                            let webp = encoder.cpu_budget(budget).encode(picture);
                            let webp = webp.expect("a small picture");
                            assert!(webp == *alone, "conversion {number} gave other bytes");
                        }
                    });
                }
            });
            let counts = budget.counts();
            assert!(
                counts.most_used <= total.max(conversions),
                "{counts:?} for {conversions} conversions on {total} cores"
            );
            assert_eq!((budget.lent(), budget.uses().occupied), (0, 0));
            if conversions == 1 {
                assert!(counts.acquired > 0, "a lone conversion got no help");
            }
        }
    }
}
