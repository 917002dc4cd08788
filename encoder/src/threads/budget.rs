//! One budget of cores for all encoders of a process: one that is alone gets them all, each of many
//! gets one, and small ones go first.

use std::num::NonZeroUsize;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The longest pause of a conversion for small ones, after which it checks again whether it is
/// cancelled; and how long it may pause when it has just begun. It is the time of a few small
/// pictures.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// Cores that conversions share. Each conversion occupies one; those left over are lent to encoders
/// for helper threads, item by item of their passes (mostly rows of macroblocks), and return when a
/// conversion that arrives needs one. So no more threads compute than there are cores, unless there
/// are more conversions than that.
///
/// A small conversion waits for nobody: it begins at once ([`CpuBudget::occupy_first`]), and while
/// more conversions run than there are cores, large ones pause for it ([`OccupiedCore::give_way`]),
/// for at most half of their time.
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
    /// Of those that occupy a core, the small ones.
    first: usize,
    /// Of those that occupy a core, the ones that pause.
    paused: usize,
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
        OccupiedCore::new(self, false)
    }

    /// Occupies a core for a small conversion, until the value is dropped. This does not wait: if
    /// no core is free, helper threads end and large conversions pause at their next check.
    pub fn occupy_first(&self) -> OccupiedCore<'_> {
        let mut uses = self.uses();
        uses.occupied += 1;
        uses.first += 1;
        OccupiedCore::new(self, true)
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
pub struct OccupiedCore<'a> {
    budget: &'a CpuBudget,
    is_first: bool,
    since: Instant,
    /// How long the conversion has paused so far; locked by the thread that pauses.
    paused: Mutex<Duration>,
}

impl<'a> OccupiedCore<'a> {
    fn new(budget: &'a CpuBudget, is_first: bool) -> OccupiedCore<'a> {
        OccupiedCore {
            budget,
            is_first,
            since: Instant::now(),
            paused: Mutex::default(),
        }
    }

    /// Pauses the calling thread while small conversions need its core, which is while they run and
    /// more threads compute than there are cores. Of all the time since the core was occupied, this
    /// takes at most a half, so that a conversion makes progress however many small ones come. All
    /// threads of a large conversion call it every few milliseconds, best from the question of its
    /// [`Cancel`](crate::Cancel); one of them pauses at a time. For a small one it does nothing.
    pub fn give_way(&self) {
        self.give_way_for(LONGEST_PAUSE);
    }

    fn give_way_for(&self, longest: Duration) {
        let mut uses = self.budget.uses();
        if self.is_first || !uses.has_to_give_way(self.budget.total) {
            return;
        }
        let Ok(mut paused) = self.paused.try_lock() else {
            return;
        };
        let began = Instant::now();
        let allowed = (LONGEST_PAUSE + (began - self.since)).saturating_sub(*paused * 2);
        let longest = longest.min(allowed);
        uses.paused += 1;
        loop {
            let left = longest.saturating_sub(began.elapsed());
            uses.paused -= 1;
            if left.is_zero() || !uses.has_to_give_way(self.budget.total) {
                break;
            }
            uses.paused += 1;
            let waited = self.budget.changed.wait_timeout(uses, left);
            uses = waited.expect(NO_PANIC).0;
        }
        *paused += began.elapsed();
    }
}

impl Uses {
    /// Whether small conversions run, and one more of the others than may compute beside them.
    fn has_to_give_way(&self, total: usize) -> bool {
        self.first > 0 && self.occupied + self.lent - self.paused > total
    }
}

impl Drop for OccupiedCore<'_> {
    fn drop(&mut self) {
        let mut uses = self.budget.uses();
        uses.occupied -= 1;
        uses.first -= usize::from(self.is_first);
        drop(uses);
        self.budget.changed.notify_all();
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

    /// A pause that ends by itself only if the test fails.
    const MINUTES: Duration = Duration::from_mins(5);

    /// A core that was occupied long ago, so that it may pause for as long.
    fn occupied_long_ago(budget: &CpuBudget) -> OccupiedCore<'_> {
        let since = Instant::now().checked_sub(MINUTES);
        let mut core = budget.occupy();
        core.since = since.expect("the clock began before");
        core
    }

    fn until_paused(budget: &CpuBudget, count: usize) {
        while budget.uses().paused != count {
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn large_conversions_give_way_to_small_ones_and_go_on_after_them() {
        let budget = &budget(2);
        let large = [(); 2].map(|()| occupied_long_ago(budget));
        for core in &large {
            core.give_way(); // nobody needs it
        }
        thread::scope(|scope| {
            let small = [(); 2].map(|()| budget.occupy_first());
            let give_way = |core| OccupiedCore::give_way_for(core, MINUTES);
            let pausing = large
                .each_ref()
                .map(|core| scope.spawn(move || give_way(core)));
            until_paused(budget, 2);
            large[0].give_way(); // another thread of the conversion that pauses
            for core in &small {
                core.give_way(); // small ones do not
            }
            assert!(pausing.iter().all(|pausing| !pausing.is_finished()));
            let [first, second] = small;
            drop(first);
            until_paused(budget, 1);
            drop(second);
            until_paused(budget, 0);
        });
        drop(large);
        let uses = budget.uses();
        assert_eq!((uses.occupied, uses.first, uses.paused), (0, 0, 0));
    }

    #[test]
    fn only_as_many_give_way_as_small_ones_need() {
        let budget = &budget(3);
        let large = [(); 2].map(|()| occupied_long_ago(budget));
        let small = budget.occupy_first();
        large[0].give_way(); // there is a core for each
        let second = budget.occupy_first();
        thread::scope(|scope| {
            scope.spawn(|| large[0].give_way_for(MINUTES));
            until_paused(budget, 1);
            large[1].give_way(); // one core was enough
            drop((small, second));
        });
    }

    #[test]
    fn a_large_conversion_goes_on_although_small_ones_never_end() {
        let budget = budget(1);
        let _small = budget.occupy_first();
        let large = budget.occupy();
        // The failure would be a hang.
        for _ in 0..20 {
            large.give_way();
        }
        assert_eq!(budget.uses().paused, 0);
        let paused = *large.paused.lock().expect("nobody panics");
        assert!(paused >= LONGEST_PAUSE, "it gave way for {paused:?}");
    }

    #[test]
    fn a_small_conversion_does_not_wait_for_a_core_that_is_lent() {
        let budget = budget(2);
        let _large = budget.occupy();
        assert!(budget.try_acquire());
        let _small = budget.occupy_first();
        assert!(budget.release_if_needed(), "the helper ends");
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
