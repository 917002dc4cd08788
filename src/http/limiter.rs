//! How often somebody may do something: so many times in a row, and then as often as the window gives back.
//!
//! It is the generic cell rate algorithm: for each key one moment is kept, at which all of its allowance is back. Doing
//! something moves it by one share of the window; what would move it further than a window ahead is refused. A key
//! whose moment has passed is as one never seen, so the memory is bounded by the keys at work, and by [`MOST`].

use std::collections::HashMap;
use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Keys remembered: about 1 MB with addresses as keys.
const MOST: usize = 10_000;

/// So many times in so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Times, which may also be taken all at once.
    pub times: NonZeroU32,
    /// In this time, above zero.
    pub window: Duration,
}

/// What is left of a key's allowance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// So many times, at once.
    pub times: u32,
    /// After this time without another, all are back.
    pub whole_after: Duration,
}

/// The allowance is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// After this time one more is allowed; above zero.
    pub next_after: Duration,
    /// After this time all are.
    pub whole_after: Duration,
}

/// Holds each key to a rate.
pub struct Limiter<K> {
    rate: Rate,
    whole_at: Mutex<HashMap<K, Instant>>,
}

impl<K: Copy + Eq + Hash> Limiter<K> {
    /// Nobody has done anything yet.
    pub fn new(rate: Rate) -> Limiter<K> {
        Limiter {
            rate,
            whole_at: Mutex::new(HashMap::new()),
        }
    }

    /// The rate that every key is held to.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Takes one of the key's allowance.
    ///
    /// # Errors
    /// There is none left; nothing is taken, so that asking too often does not lengthen the wait.
    pub fn take(&self, key: K, now: Instant) -> Result<Left, Wait> {
        let mut all = self.lock();
        let whole_at = self.after_one_more(all.get(&key).copied(), now)?;
        if all.len() >= MOST && !all.contains_key(&key) {
            make_room(&mut all, now);
        }
        all.insert(key, whole_at);
        Ok(self.left(whole_at, now))
    }

    /// What [`Limiter::take`] would say, without taking.
    ///
    /// # Errors
    /// There is none left.
    pub fn look(&self, key: K, now: Instant) -> Result<(), Wait> {
        let whole_at = self.lock().get(&key).copied();
        self.after_one_more(whole_at, now).map(|_| ())
    }

    fn after_one_more(&self, whole_at: Option<Instant>, now: Instant) -> Result<Instant, Wait> {
        let after = whole_at.map_or(now, |at| at.max(now)) + self.share();
        let ahead = after - now;
        // A share is rounded down, so that all of them together never exceed the window.
        match ahead.checked_sub(self.rate.window) {
            None | Some(Duration::ZERO) => Ok(after),
            Some(next_after) => Err(Wait {
                next_after,
                whole_after: ahead.saturating_sub(self.share()),
            }),
        }
    }

    fn left(&self, whole_at: Instant, now: Instant) -> Left {
        let whole_after = whole_at.saturating_duration_since(now);
        let free = self.rate.window.saturating_sub(whole_after);
        let times = free.as_nanos() / self.share().as_nanos();
        Left {
            times: u32::try_from(times).map_or(self.rate.times.get(), |times| {
                times.min(self.rate.times.get())
            }),
            whole_after,
        }
    }

    fn share(&self) -> Duration {
        (self.rate.window / self.rate.times.get()).max(Duration::from_nanos(1))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Instant>> {
        // A map of moments is whole at all times, whoever panicked.
        self.whole_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whole seconds for `Retry-After`: rounded up, at least 1.
pub fn seconds(time: Duration) -> u64 {
    (time.as_secs() + u64::from(time.subsec_nanos() > 0)).max(1)
}

/// Drops the keys that have all of their allowance, or else the one that has most of it: a flood of keys pushes out one
/// another, not the one that is being held back.
fn make_room<K: Copy + Eq + Hash>(all: &mut HashMap<K, Instant>, now: Instant) {
    all.retain(|_, whole_at| *whole_at > now);
    if all.len() < MOST {
        return;
    }
    let least = all.iter().min_by_key(|(_, at)| **at).map(|(key, _)| *key);
    if let Some(key) = least {
        all.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn three_a_minute<K: Copy + Eq + Hash>() -> Limiter<K> {
        Limiter::new(Rate {
            times: NonZeroU32::new(3).unwrap(),
            window: MINUTE,
        })
    }

    #[test]
    fn the_allowance_may_be_taken_at_once_and_comes_back_by_shares() {
        let limiter = three_a_minute();
        let mut now = Instant::now();
        for left in [2, 1, 0] {
            assert_eq!(limiter.take(1, now).unwrap().times, left);
        }
        let wait = limiter.take(1, now).unwrap_err();
        assert_eq!(
            (wait.next_after, wait.whole_after),
            (MINUTE / 3, MINUTE),
            "a third of the window gives one back"
        );
        assert_eq!(limiter.take(1, now), Err(wait), "asking lengthens no wait");
        assert_eq!(limiter.look(1, now), Err(wait));
        now += MINUTE / 3;
        assert_eq!(limiter.look(1, now), Ok(()));
        assert_eq!(limiter.take(1, now).unwrap().times, 0);
        assert!(limiter.take(1, now).is_err(), "only one came back");
        now += MINUTE;
        assert_eq!(limiter.take(1, now).unwrap().times, 2, "all came back");
    }

    #[test]
    fn keys_do_not_wait_for_one_another() {
        let limiter = three_a_minute();
        let now = Instant::now();
        for _ in 0..3 {
            limiter.take(1, now).unwrap();
        }
        assert_eq!(limiter.take(2, now).unwrap().times, 2);
    }

    #[test]
    fn odd_rates_allow_as_many_as_they_say() {
        for times in [1, 7, 60, 1_000_000] {
            let limiter = Limiter::new(Rate {
                times: NonZeroU32::new(times).unwrap(),
                window: MINUTE,
            });
            let now = Instant::now();
            let taken = (0..=times).filter(|_| limiter.take((), now).is_ok());
            assert_eq!(taken.count(), times as usize, "{times} a minute");
        }
    }

    #[test]
    fn a_flood_of_keys_stays_bounded_and_does_not_free_the_one_held_back() {
        let limiter = three_a_minute();
        let now = Instant::now();
        for _ in 0..3 {
            limiter.take(usize::MAX, now).unwrap();
        }
        for key in 0..MOST + 50 {
            limiter.take(key, now).unwrap();
        }
        assert_eq!(limiter.lock().len(), MOST);
        assert!(limiter.take(usize::MAX, now).is_err());
        limiter.take(0, now + MINUTE).unwrap();
        limiter.take(usize::MAX - 1, now + MINUTE).unwrap();
        assert!(
            limiter.lock().len() <= 2,
            "those who are whole are forgotten"
        );
    }

    #[test]
    fn seconds_are_rounded_up() {
        for (milliseconds, expected) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (60_000, 60)] {
            assert_eq!(seconds(Duration::from_millis(milliseconds)), expected);
        }
    }
}
