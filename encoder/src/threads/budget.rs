//! One budget of cores for all encoders of a process: one that is alone gets them all, each of many
//! gets one, small ones go first, and accounts share them in time.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// The time that an account may be ahead of another one before it pauses for that. A pause and its
/// end cost some hundredths of a millisecond, and the caches.
const SLICE: Duration = Duration::from_millis(20);

/// The time that an account gets before others if it has used none for a while: a picture of some
/// megapixels takes as long.
const CREDIT: Duration = Duration::from_millis(100);

/// How long a conversion may pause for small ones when it has just begun: the time of a few small
/// pictures. Later it is half of its time.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// Cores that conversions share. Each conversion occupies one; those left over are lent to encoders
/// for helper threads, item by item of their passes (mostly rows of macroblocks), and return when a
/// conversion that arrives needs one. So no more threads compute than there are cores, but for
/// moments.
///
/// A small conversion waits for nobody: it begins at once
/// ([`CpuBudget::occupy_for`]), and while more
/// conversions run than there are cores, large ones pause for it ([`OccupiedCore::give_way`]), for
/// at most half of their time. Of large ones those go on whose accounts have used the cores least;
/// the others pause until these have had as much.
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
    /// The number of small conversions that occupy a core.
    small: usize,
    /// The large ones.
    large: Vec<Large>,
    /// Microseconds that each account has used, up to the last [`Large::since`] of its conversions.
    /// Those that run nothing are kept as far as they are ahead of others.
    used: HashMap<u64, i64>,
    /// The number of the next large conversion.
    next: u64,
    #[cfg(test)]
    counts: Counts,
}

/// A large conversion that occupies a core.
#[derive(Debug)]
struct Large {
    number: u64,
    account: u64,
    is_paused: bool,
    /// Microseconds that it has used up to `since`.
    used: i64,
    /// When it was counted last.
    since: Instant,
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

    /// Occupies a core for a large conversion where there are no accounts: see
    /// [`CpuBudget::occupy_for`].
    pub fn occupy(&self) -> OccupiedCore<'_> {
        self.occupy_for(0, false)
    }

    /// Occupies a core for a conversion of this account, until the value is dropped. If none is
    /// free but some are lent, a large one waits until a helper thread has finished its row of
    /// macroblocks; if none is lent, it shares a core with another and does not wait. A small one
    /// never waits.
    pub fn occupy_for(&self, account: u64, is_small: bool) -> OccupiedCore<'_> {
        let mut uses = self.uses();
        uses.awaited += 1;
        while !is_small && uses.lent > 0 && uses.occupied + uses.lent >= self.total {
            uses = self.changed.wait(uses).expect(NO_PANIC);
        }
        uses.awaited -= 1;
        uses.occupied += 1;
        #[cfg(test)]
        uses.count(false);
        let since = Instant::now();
        let number = if is_small {
            uses.small += 1;
            None
        } else {
            Some(uses.begin(account, since))
        };
        OccupiedCore {
            budget: self,
            thread: Some(thread::current().id()),
            number,
            since,
            paused: Mutex::default(),
        }
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
    /// The thread that occupies it, the only one that pauses; `None` for any one.
    thread: Option<ThreadId>,
    /// The number of a large conversion; `None` for a small one.
    number: Option<u64>,
    since: Instant,
    /// How long the conversion has paused for small ones; locked while it pauses.
    paused: Mutex<Duration>,
}

impl OccupiedCore<'_> {
    /// Pauses the calling thread while others need its core: small conversions, for at most half of
    /// the time since it was occupied, and accounts that have used the cores less. Then it goes on
    /// when it is its turn, or when `is_unwanted`, which is called some fifty times a second,
    /// returns true. A large conversion calls this every few milliseconds, best from the function
    /// of its [`Cancel`](crate::Cancel). Only the thread that has occupied the core pauses, since
    /// helper threads end when their core is needed. A small conversion never pauses.
    pub fn give_way(&self, is_unwanted: &dyn Fn() -> bool) {
        let total = self.budget.total;
        if self.thread.is_some_and(|it| it != thread::current().id()) {
            return;
        }
        let mut uses = self.budget.uses();
        let Some(number) = self.number.filter(|_| uses.occupied + uses.lent > total) else {
            return;
        };
        if uses.turn(number, total) == Turn::Own {
            return;
        }
        let Ok(mut paused) = self.paused.try_lock() else {
            return;
        };
        uses.count_time(number, true);
        self.budget.changed.notify_all();
        loop {
            let now = Instant::now();
            let left = match uses.turn(number, total) {
                Turn::Own => break,
                Turn::OfAccounts => SLICE,
                Turn::OfSmall => {
                    let allowed = FIRST_PAUSE + (now - self.since);
                    allowed.saturating_sub(*paused * 2).min(SLICE)
                }
            };
            if left.is_zero() || is_unwanted() {
                break;
            }
            let is_for_small = uses.turn(number, total) == Turn::OfSmall;
            uses = (self.budget.changed.wait_timeout(uses, left))
                .expect(NO_PANIC)
                .0;
            if is_for_small {
                *paused += now.elapsed();
            }
        }
        uses.count_time(number, false);
    }

    /// How long it has computed so far, without its pauses.
    pub fn busy(&self) -> Duration {
        let mut uses = self.budget.uses();
        let Some(number) = self.number else {
            return self.since.elapsed();
        };
        uses.count_time(number, false);
        let used = uses.large(number).map_or(0, |large| large.used);
        Duration::from_micros(used.unsigned_abs())
    }
}

/// The conversion that has the turn on the core of a large one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// The turn of this conversion.
    Own,
    /// The turn of small conversions.
    OfSmall,
    /// The turn of large conversions of accounts that have used less.
    OfAccounts,
}

fn microseconds(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

impl Uses {
    /// Adds a large conversion, and returns its number.
    fn begin(&mut self, account: u64, now: Instant) -> u64 {
        let active = |other: &u64| self.large.iter().any(|large| large.account == *other);
        let used = |other: &u64| self.used_by(*other, now);
        match self.used.keys().filter(|it| active(it)).map(used).min() {
            None => self.used.clear(),
            Some(least) => {
                let least = least - microseconds(CREDIT);
                let kept: Vec<u64> = self.used.keys().copied().filter(active).collect();
                (self.used).retain(|other, used| kept.contains(other) || *used > least);
                let own = self.used.entry(account).or_insert(least);
                *own = (*own).max(least);
            }
        }
        self.used.entry(account).or_default();
        self.next += 1;
        self.large.push(Large {
            number: self.next,
            account,
            is_paused: false,
            used: 0,
            since: now,
        });
        self.next
    }

    fn large(&mut self, number: u64) -> Option<&mut Large> {
        self.large.iter_mut().find(|large| large.number == number)
    }

    /// Counts the time of a large conversion up to now; from now on it pauses or goes on.
    fn count_time(&mut self, number: u64, pauses: bool) {
        let Some(large) = self.large(number) else {
            return;
        };
        let now = Instant::now();
        let time = large.unpaused(now);
        large.used += time;
        large.since = now;
        large.is_paused = pauses;
        let account = large.account;
        *self.used.entry(account).or_default() += time;
    }

    /// Microseconds that the account has used up to now.
    fn used_by(&self, account: u64, now: Instant) -> i64 {
        let own = self.large.iter().filter(|large| large.account == account);
        let running: i64 = own.map(|large| large.unpaused(now)).sum();
        self.used.get(&account).copied().unwrap_or(0) + running
    }

    /// Returns which conversion has the turn on the core of this large one.
    fn turn(&self, number: u64, total: usize) -> Turn {
        let now = Instant::now();
        let rank = |large: &Large| {
            // One that goes on is not paused for a small difference.
            let ahead = if large.is_paused {
                0
            } else {
                microseconds(SLICE)
            };
            let by_account = self.used_by(large.account, now) - ahead;
            let own = large.used + large.unpaused(now) - ahead;
            (by_account, own, large.number)
        };
        let Some(own) = self.large.iter().find(|large| large.number == number) else {
            return Turn::Own;
        };
        let own = rank(own);
        let before = self.large.iter().filter(|other| rank(other) < own).count();
        if before >= total {
            Turn::OfAccounts
        } else if before + self.small >= total {
            Turn::OfSmall
        } else {
            Turn::Own
        }
    }
}

impl Large {
    /// Microseconds since it was counted last, if it does not pause.
    fn unpaused(&self, now: Instant) -> i64 {
        if self.is_paused {
            return 0;
        }
        microseconds(now.saturating_duration_since(self.since))
    }
}

impl Drop for OccupiedCore<'_> {
    fn drop(&mut self) {
        let mut uses = self.budget.uses();
        uses.occupied -= 1;
        match self.number {
            None => uses.small -= 1,
            Some(number) => {
                uses.count_time(number, false);
                uses.large.retain(|large| large.number != number);
            }
        }
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
    use std::sync::atomic::{AtomicBool, Ordering};

    fn budget(total: usize) -> CpuBudget {
        CpuBudget::new(NonZeroUsize::new(total).expect("not zero"))
    }

    /// Accounts.
    const A: u64 = 1;
    const B: u64 = 2;
    const C: u64 = 3;

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

    const MINUTES: Duration = Duration::from_mins(5);

    /// A core that was occupied long ago, so that it may pause for as long.
    fn occupied_long_ago(budget: &CpuBudget, account: u64) -> OccupiedCore<'_> {
        let since = Instant::now().checked_sub(MINUTES);
        let mut core = budget.occupy_for(account, false);
        core.since = since.expect("the clock began before");
        core.thread = None;
        core
    }

    fn paused(budget: &CpuBudget) -> Vec<u64> {
        let uses = budget.uses();
        let paused = uses.large.iter().filter(|large| large.is_paused);
        paused.map(|large| large.account).collect()
    }

    fn until_paused(budget: &CpuBudget, accounts: &[u64]) {
        let began = Instant::now();
        while paused(budget) != accounts {
            assert!(began.elapsed() < MINUTES, "{:?}", budget.uses());
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Gives an account time that it has not used.
    fn charge(budget: &CpuBudget, account: u64, time: Duration) {
        *budget.uses().used.entry(account).or_default() += microseconds(time);
    }

    /// Never unwanted.
    fn wanted() -> bool {
        false
    }

    #[test]
    fn large_conversions_give_way_to_small_ones_and_go_on_after_them() {
        let budget = &budget(2);
        let large = [A, B].map(|account| occupied_long_ago(budget, account));
        for core in &large {
            core.give_way(&wanted); // nobody needs it
        }
        thread::scope(|scope| {
            let small = [(); 2].map(|()| budget.occupy_for(A, true));
            let pausing = large
                .each_ref()
                .map(|core| scope.spawn(move || core.give_way(&wanted)));
            until_paused(budget, &[A, B]);
            large[0].give_way(&wanted); // another thread of the conversion that pauses
            for core in &small {
                core.give_way(&wanted); // small ones do not
            }
            assert!(pausing.iter().all(|pausing| !pausing.is_finished()));
            let [first, second] = small;
            drop(first);
            while paused(budget).len() != 1 {
                thread::sleep(Duration::from_millis(1));
            }
            drop(second);
            until_paused(budget, &[]);
        });
        drop(large);
        let uses = budget.uses();
        assert_eq!((uses.occupied, uses.small, uses.large.len()), (0, 0, 0));
    }

    #[test]
    fn only_as_many_give_way_as_small_ones_need() {
        let budget = &budget(3);
        let large = [A, B].map(|account| occupied_long_ago(budget, account));
        charge(budget, B, MINUTES);
        let small = budget.occupy_for(A, true);
        large[1].give_way(&wanted); // there is a core for each
        let second = budget.occupy_for(A, true);
        thread::scope(|scope| {
            scope.spawn(|| large[1].give_way(&wanted));
            until_paused(budget, &[B]);
            large[0].give_way(&wanted); // one core was enough
            drop((small, second));
        });
    }

    #[test]
    fn a_large_conversion_goes_on_although_small_ones_never_end() {
        let budget = budget(1);
        let _small = budget.occupy_for(A, true);
        let large = budget.occupy_for(B, false);
        // The failure would be a hang.
        for _ in 0..20 {
            large.give_way(&wanted);
        }
        assert_eq!(paused(&budget), []);
        let paused = *large.paused.lock().expect("nobody panics");
        assert!(paused >= FIRST_PAUSE, "it gave way for {paused:?}");
    }

    #[test]
    fn accounts_have_turns_by_the_time_that_they_have_used() {
        let budget = &budget(2);
        let of_a = [(); 2].map(|()| occupied_long_ago(budget, A));
        let of_b = [(); 2].map(|()| occupied_long_ago(budget, B));
        charge(budget, A, MINUTES);
        charge(budget, B, MINUTES * 2);
        let is_over = &AtomicBool::new(false);
        thread::scope(|scope| {
            let pausing = of_b
                .each_ref()
                .map(|core| scope.spawn(move || core.give_way(&wanted)));
            until_paused(budget, &[B, B]);
            for core in &of_a {
                core.give_way(&wanted); // they have used less
            }
            // One that comes is next, so of the first account's one has to pause.
            let of_c = budget.occupy_for(C, false);
            // It computes until it is dropped, however long this takes on a busy machine.
            budget.uses().used.insert(C, 0);
            of_c.give_way(&wanted);
            // Either of them may be the one that has used a microsecond more when it checks.
            let cores = &of_a;
            let pausing_too = scope.spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    for core in cores {
                        core.give_way(&wanted);
                    }
                }
            });
            until_paused(budget, &[A, B, B]);
            is_over.store(true, Ordering::SeqCst);
            drop(of_c);
            until_paused(budget, &[B, B]);
            pausing_too.join().expect("no panic");
            // Now the second account has used less.
            charge(budget, A, MINUTES * 2);
            until_paused(budget, &[]);
            for pausing in pausing {
                pausing.join().expect("no panic");
            }
        });
    }

    #[test]
    fn one_that_pauses_for_others_ends_when_it_is_unwanted() {
        let budget = budget(1);
        let (first, second) = (budget.occupy_for(A, false), budget.occupy_for(B, false));
        charge(&budget, A, MINUTES);
        second.give_way(&wanted);
        let calls = std::sync::atomic::AtomicUsize::new(0);
        first.give_way(&|| calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 3);
        assert_eq!(calls.into_inner(), 4);
        assert!(first.busy() < MINUTES, "what it did itself");
    }

    #[test]
    fn what_an_account_has_not_used_earns_it_little_and_what_it_has_is_remembered() {
        let budget = budget(1);
        let long = budget.occupy_for(A, false);
        charge(&budget, A, MINUTES);
        drop(budget.occupy_for(B, false));
        let least = microseconds(MINUTES) - microseconds(CREDIT);
        assert!(budget.uses().used[&B] >= least, "{:?}", budget.uses());
        charge(&budget, B, MINUTES);
        drop(budget.occupy_for(C, false));
        let second = budget.occupy_for(B, false);
        assert!(budget.uses().used[&B] >= least + microseconds(MINUTES));
        drop((long, second));
        drop(budget.occupy_for(C, false));
        assert!(budget.uses().used.len() == 1, "nobody else runs");
    }

    #[test]
    fn a_small_conversion_does_not_wait_for_a_core_that_is_lent() {
        let budget = budget(2);
        let _large = budget.occupy();
        assert!(budget.try_acquire());
        let _small = budget.occupy_for(A, true);
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

    /// A large conversion that used some minutes, and has gone on for further ones since; one that
    /// pauses has `None`.
    fn large(number: u64, account: u64, used: i64, going_on: Option<u64>) -> Large {
        let now = Instant::now();
        let since = match going_on {
            // Nothing is used yet however late the test goes on.
            Some(0) => now.checked_add(Duration::from_mins(60)),
            _ => now.checked_sub(Duration::from_mins(going_on.unwrap_or(50))),
        };
        Large {
            number,
            account,
            is_paused: going_on.is_none(),
            used: used * MINUTE,
            since: since.expect("a moment"),
        }
    }

    /// A minute in microseconds.
    const MINUTE: i64 = 60_000_000;

    /// The whole minutes of a time in microseconds.
    fn minutes(time: i64) -> i64 {
        time.div_euclid(MINUTE)
    }

    #[test]
    fn an_account_has_used_what_was_counted_and_what_runs() {
        let mut uses = Uses {
            large: vec![
                large(1, A, 0, Some(2)),
                large(2, A, 0, Some(3)),
                large(3, A, 0, None),
                large(4, B, 0, Some(9)),
            ],
            used: HashMap::from([(A, 10 * MINUTE)]),
            ..Uses::default()
        };
        let used = |uses: &Uses, account| minutes(uses.used_by(account, Instant::now()));
        assert_eq!([A, B, C].map(|it| used(&uses, it)), [15, 9, 0]);
        uses.count_time(1, true);
        uses.count_time(3, false);
        let counted: Vec<_> = uses.large.iter().map(|large| minutes(large.used)).collect();
        assert_eq!(counted, [2, 0, 0, 0]);
        assert_eq!(minutes(uses.used[&A]), 12);
        let paused: Vec<_> = uses.large.iter().map(|large| large.is_paused).collect();
        assert_eq!(paused, [true, false, false, false]);
        assert_eq!([A, B, C].map(|it| used(&uses, it)), [15, 9, 0]);
        uses.count_time(5, true);
        assert_eq!(uses.large.len(), 4, "there is no fifth");
    }

    #[test]
    fn the_turn_is_that_of_who_has_used_least() {
        use Turn::{OfAccounts, OfSmall, Own};
        // The conversions, what their accounts used before, and the turn of each on one core.
        for (large, used, turns) in [
            (
                [large(1, A, 0, None), large(2, B, 0, None)],
                [5, 4],
                [OfAccounts, Own],
            ),
            // The time counts that a conversion has run since it was counted last.
            (
                [large(1, A, 0, Some(3)), large(2, B, 0, None)],
                [2, 4],
                [OfAccounts, Own],
            ),
            // Two conversions of one account have the turn by what each has used itself.
            (
                [large(1, A, 3, None), large(2, A, 1, None)],
                [5, 5],
                [OfAccounts, Own],
            ),
            // The one that goes on keeps the turn until it is ahead by a slice.
            (
                [large(1, A, 0, Some(0)), large(2, B, 0, None)],
                [4, 4],
                [Own, OfAccounts],
            ),
        ] {
            let described = format!("{large:?}");
            let mut uses = Uses {
                used: HashMap::from([(A, used[0] * MINUTE), (B, used[1] * MINUTE)]),
                large: large.into(),
                ..Uses::default()
            };
            assert_eq!([1, 2].map(|it| uses.turn(it, 1)), turns, "{described}");
            assert_eq!([1, 2].map(|it| uses.turn(it, 2)), [Own; 2], "{described}");
            uses.small = 1;
            let second = turns.map(|turn| if turn == Own { Own } else { OfSmall });
            assert_eq!([1, 2].map(|it| uses.turn(it, 2)), second, "{described}");
        }
    }

    #[test]
    fn an_account_that_was_away_is_ahead_by_its_credit_at_most() {
        let credit = microseconds(CREDIT);
        let mut uses = Uses {
            large: vec![large(1, A, 0, None)],
            used: HashMap::from([(A, 9 * MINUTE), (B, MINUTE), (C, 9 * MINUTE)]),
            ..Uses::default()
        };
        uses.begin(B, Instant::now());
        assert_eq!(uses.used[&B], 9 * MINUTE - credit);
        assert_eq!(uses.used[&C], 9 * MINUTE, "it is not as far behind");
        uses.large.clear();
        uses.begin(A, Instant::now());
        assert_eq!(uses.used, HashMap::from([(A, 0)]), "all begin again");
    }
}
