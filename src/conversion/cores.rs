//! One budget of cores for all conversions of the process: one that is alone gets them all, and each of many gets one.

use super::Caller;
use std::num::NonZeroUsize;
use std::sync::{Condvar, Mutex, MutexGuard};

/// Cores that conversions share. Each conversion occupies one; those left over are lent to encoders, row by
/// row, and come back when a conversion that arrives needs one. So there are never more threads at work than cores, unless
/// there are more conversions than that.
///
/// As a [`Caller`] it waits for ever.
#[derive(Debug)]
pub struct Cores {
    total: usize,
    uses: Mutex<Uses>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Uses {
    /// By conversions, one each.
    occupied: usize,
    /// To their encoders.
    lent: usize,
    /// Conversions that wait for one that is lent.
    awaited: usize,
}

impl Cores {
    /// All free.
    pub fn new(total: NonZeroUsize) -> Cores {
        Cores {
            total: total.get(),
            uses: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// How many there are.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Occupies a core for a conversion, until the value is dropped. If none is free but some are lent, waits until an
    /// encoder has finished a row of macroblocks; else the conversion has to share a core with another, and does not wait.
    pub fn occupy(&self) -> Occupied<'_> {
        let mut uses = self.uses();
        uses.awaited += 1;
        while uses.lent > 0 && uses.occupied + uses.lent >= self.total {
            uses = self.changed.wait(uses).expect(NO_PANIC);
        }
        uses.awaited -= 1;
        uses.occupied += 1;
        Occupied(self)
    }

    fn uses(&self) -> MutexGuard<'_, Uses> {
        self.uses.lock().expect(NO_PANIC)
    }
}

const NO_PANIC: &str = "nothing panics while it counts";

impl Caller for Cores {
    fn lend_core(&self) -> bool {
        let mut uses = self.uses();
        let is_free = uses.occupied + uses.lent + uses.awaited < self.total;
        uses.lent += usize::from(is_free);
        is_free
    }

    fn reclaim_core(&self) -> bool {
        let mut uses = self.uses();
        let is_needed = uses.occupied + uses.lent + uses.awaited > self.total;
        if is_needed {
            uses.lent -= 1;
            self.changed.notify_all();
        }
        is_needed
    }

    fn return_core(&self) {
        self.uses().lent -= 1;
        self.changed.notify_all();
    }
}

/// A core in use by a conversion.
#[derive(Debug)]
pub struct Occupied<'a>(&'a Cores);

impl Drop for Occupied<'_> {
    fn drop(&mut self) {
        self.0.uses().occupied -= 1;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;
    use towebp_encoder::{Layout, Options, Picture, encode};

    fn cores(total: usize) -> Cores {
        Cores::new(NonZeroUsize::new(total).expect("not zero"))
    }

    #[test]
    fn what_is_left_over_is_lent() {
        let cores = cores(3);
        let own = cores.occupy();
        assert!(cores.lend_core() && cores.lend_core(), "two are left over");
        assert!(!cores.lend_core(), "no third one");
        assert!(!cores.reclaim_core(), "nobody waits for them");
        cores.return_core();
        assert!(cores.lend_core(), "one came back");
        cores.return_core();
        cores.return_core();
        drop(own);
        let lent = (0..4).filter(|_| cores.lend_core()).count();
        assert_eq!(lent, 3, "all came back");
    }

    #[test]
    fn more_conversions_than_cores_share_them_without_waiting() {
        let cores = cores(2);
        let occupied: Vec<Occupied<'_>> = (0..5).map(|_| cores.occupy()).collect();
        assert!(!cores.lend_core(), "nothing is left over");
        drop(occupied);
        assert!(cores.lend_core() && cores.lend_core(), "all came back");
    }

    #[test]
    fn each_conversion_that_arrives_reclaims_one_lent_core() {
        let cores = cores(4);
        let _own = cores.occupy();
        assert!((0..3).all(|_| cores.lend_core()));
        thread::scope(|scope| {
            let arriving = scope.spawn(|| drop(cores.occupy()));
            while cores.uses().awaited == 0 {
                thread::sleep(Duration::from_millis(1));
            }
            assert!(!arriving.is_finished(), "all cores are in use");
            assert!(cores.reclaim_core(), "the first that is asked is needed");
            assert!(!cores.reclaim_core(), "the others may go on");
        });
        assert!(cores.lend_core(), "it is free again");
    }

    /// Counts the threads that are at work, and the most there ever were beyond what is allowed.
    #[derive(Debug)]
    struct Counted<'a> {
        cores: &'a Cores,
        at_work: &'a AtomicUsize,
        most: &'a AtomicUsize,
        helpers: &'a AtomicUsize,
    }

    impl Counted<'_> {
        fn begin(&self) {
            let at_work = 1 + self.at_work.fetch_add(1, Ordering::SeqCst);
            self.most.fetch_max(at_work, Ordering::SeqCst);
        }

        fn end(&self) {
            self.at_work.fetch_sub(1, Ordering::SeqCst);
        }
    }

    impl Caller for Counted<'_> {
        fn lend_core(&self) -> bool {
            let is_lent = self.cores.lend_core();
            if is_lent {
                self.helpers.fetch_add(1, Ordering::SeqCst);
                self.begin();
            }
            is_lent
        }

        fn reclaim_core(&self) -> bool {
            // Before, since whoever gets it may begin at once.
            self.end();
            let is_reclaimed = self.cores.reclaim_core();
            if !is_reclaimed {
                self.at_work.fetch_add(1, Ordering::SeqCst);
            }
            is_reclaimed
        }

        fn return_core(&self) {
            self.end();
            self.cores.return_core();
        }
    }

    #[test]
    fn encoders_never_use_more_cores_than_there_are() {
        let (width, height) = (200, 400);
        let pixels: Vec<u8> = (0..width * height * 3)
            .map(|i: u32| (i.wrapping_mul(i) >> 7) as u8)
            .collect();
        let picture = Picture {
            width,
            height,
            layout: Layout::Rgb,
            pixels: &pixels,
        };
        let alone = encode(&picture, &Options::lossy(75)).expect("a small picture");
        for (conversions, total) in [(1, 4), (2, 2), (3, 4), (5, 3)] {
            let cores = cores(total);
            let [at_work, most, helpers] = [(); 3].map(|()| AtomicUsize::new(0));
            thread::scope(|scope| {
                for number in 0..conversions {
                    let (cores, picture, alone) = (&cores, &picture, &alone);
                    let caller = Counted {
                        cores,
                        at_work: &at_work,
                        most: &most,
                        helpers: &helpers,
                    };
                    scope.spawn(move || {
                        for _ in 0..5 {
                            let _own = cores.occupy();
                            caller.begin();
                            let options = Options {
                                threads: cores.total(),
                                caller: &caller,
                                ..Options::lossy(75)
                            };
                            let webp = encode(picture, &options).expect("a small picture");
                            caller.end();
                            assert!(webp == *alone, "conversion {number} gave other bytes");
                        }
                    });
                }
            });
            let (most, helpers) = (most.into_inner(), helpers.into_inner());
            assert!(
                most <= total.max(conversions),
                "{most} threads for {conversions} conversions on {total} cores"
            );
            assert_eq!(at_work.into_inner(), 0);
            if conversions == 1 {
                assert!(helpers > 0, "a lone conversion got no help");
            }
        }
    }
}
