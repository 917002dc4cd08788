//! How often something may be done for a key, such as a client's address: a number of times at
//! once, and then as often as they come back.
//!
//! This is the generic cell rate algorithm. For each key one moment is kept: when it is full, which
//! means that all of its times are back. Each time taken moves it by one share of the window; a
//! time that would move it further ahead than a window is not allowed. A key whose moment has
//! passed is like one never seen, so memory is bounded by the keys in use, and by [`MAX_KEYS`].

use super::client_networks::{CLIENT_FACTORS, Network, client_networks};
use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Most keys that are remembered: about 1 MB with addresses as keys.
const MAX_KEYS: usize = 10_000;

/// A number of times in a window of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How many times; they may also be taken all at once.
    pub times: NonZeroU32,
    /// The length of the window, above zero.
    pub window: Duration,
}

/// The remaining times of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remaining {
    /// How many times may be taken at once.
    pub times: u32,
    /// When all are back, if none is taken.
    pub full_after: Duration,
}

/// The key has no time left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateExceeded {
    /// When the next one is back; above zero.
    pub next_after: Duration,
    /// When all are back.
    pub full_after: Duration,
}

/// Limits each key to a rate of its own.
pub struct RateLimiter<K>(Mutex<FullTimes<K>>);

impl<K> Default for RateLimiter<K> {
    /// A limiter of which nothing has been taken.
    fn default() -> RateLimiter<K> {
        RateLimiter(Mutex::new(FullTimes(HashMap::new())))
    }
}

impl<K: Copy + Eq + Hash> RateLimiter<K> {
    /// Takes one of the times of each of these keys, and returns the remaining times of each.
    ///
    /// # Errors
    /// The index of the first key that has none left. No key loses a time then, so trying too often
    /// does not lengthen the wait.
    pub fn take(
        &self,
        keys: &[(K, Rate)],
        now: Instant,
    ) -> Result<Vec<Remaining>, (usize, RateExceeded)> {
        let mut full_times = self.lock();
        let mut full_at = Vec::with_capacity(keys.len());
        for (index, (key, rate)) in keys.iter().enumerate() {
            let after = full_times.after_one_more(*key, *rate, now);
            full_at.push(after.map_err(|exceeded| (index, exceeded))?);
        }
        let mut left = Vec::with_capacity(keys.len());
        for ((key, rate), full_at) in keys.iter().zip(full_at) {
            full_times.put(*key, full_at, now);
            left.push(rate.left(full_at, now));
        }
        Ok(left)
    }

    /// Checks whether [`RateLimiter::take`] would succeed.
    ///
    /// # Errors
    /// As [`RateLimiter::take`].
    pub fn check(&self, keys: &[(K, Rate)], now: Instant) -> Result<(), (usize, RateExceeded)> {
        let full_times = self.lock();
        for (index, (key, rate)) in keys.iter().enumerate() {
            let after = full_times.after_one_more(*key, *rate, now);
            after.map_err(|exceeded| (index, exceeded))?;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, FullTimes<K>> {
        // A map of moments is whole at all times, even after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Limits each client to a rate: an IPv4 address or an IPv6 /64. The networks around a /64 are
/// limited to multiples of the rate ([`CLIENT_FACTORS`]), since one customer may have all of them.
pub struct ClientRateLimiter(Mutex<[Level; CLIENT_FACTORS.len()]>);

/// The networks of one size, and their rate.
struct Level {
    rate: Rate,
    full_times: FullTimes<Network>,
}

impl ClientRateLimiter {
    /// A limiter of which nothing has been taken.
    pub fn new(rate: Rate) -> ClientRateLimiter {
        ClientRateLimiter(Mutex::new(CLIENT_FACTORS.map(|factor| {
            let factor = NonZeroU32::new(factor).expect("no factor is 0");
            Level {
                rate: Rate {
                    times: rate.times.saturating_mul(factor),
                    ..rate
                },
                full_times: FullTimes(HashMap::new()),
            }
        })))
    }

    /// Takes one of the times of each network for which the address counts.
    ///
    /// # Errors
    /// One of them has none left; nothing is taken from the others either.
    pub fn take(&self, address: IpAddr, now: Instant) -> Result<(), RateExceeded> {
        // As in `RateLimiter`.
        let mut levels = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut full_at = Vec::with_capacity(levels.len());
        for (network, level) in client_networks(address).zip(&*levels) {
            let after = level.full_times.after_one_more(network, level.rate, now);
            full_at.push(after?);
        }
        for ((network, level), full_at) in client_networks(address).zip(&mut *levels).zip(full_at) {
            level.full_times.put(network, full_at, now);
        }
        Ok(())
    }
}

/// When all times of each key are back.
struct FullTimes<K>(HashMap<K, Instant>);

impl<K: Copy + Eq + Hash> FullTimes<K> {
    fn put(&mut self, key: K, full_at: Instant, now: Instant) {
        if self.0.len() >= MAX_KEYS && !self.0.contains_key(&key) {
            evict(&mut self.0, now);
        }
        self.0.insert(key, full_at);
    }

    /// When all of the key's times are back, if one more is taken now.
    fn after_one_more(&self, key: K, rate: Rate, now: Instant) -> Result<Instant, RateExceeded> {
        let full_at = self.0.get(&key).copied();
        let after = full_at.map_or(now, |at| at.max(now)) + rate.share();
        let ahead = after - now;
        // A share is rounded down, so that all of them together never exceed the window.
        match ahead.checked_sub(rate.window) {
            None | Some(Duration::ZERO) => Ok(after),
            Some(next_after) => Err(RateExceeded {
                next_after,
                full_after: ahead.saturating_sub(rate.share()),
            }),
        }
    }
}

impl Rate {
    /// The remaining times until all are back at `full_at`.
    fn left(self, full_at: Instant, now: Instant) -> Remaining {
        let full_after = full_at.saturating_duration_since(now);
        let free = self.window.saturating_sub(full_after);
        let times = free.as_nanos() / self.share().as_nanos();
        Remaining {
            times: u32::try_from(times)
                .map_or(self.times.get(), |times| times.min(self.times.get())),
            full_after,
        }
    }

    fn share(self) -> Duration {
        (self.window / self.times.get()).max(Duration::from_nanos(1))
    }
}

/// A time in whole seconds for `Retry-After`: rounded up, at least 1.
pub fn seconds(time: Duration) -> u64 {
    (time.as_secs() + u64::from(time.subsec_nanos() > 0)).max(1)
}

/// Drops the keys whose times are all back, or else the key that is nearest to that. So the keys of
/// a flood push out one another, not the key that is being limited.
fn evict<K: Copy + Eq + Hash>(all: &mut HashMap<K, Instant>, now: Instant) {
    all.retain(|_, full_at| *full_at > now);
    if all.len() < MAX_KEYS {
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

    const THREE_A_MINUTE: Rate = Rate {
        times: NonZeroU32::new(3).unwrap(),
        window: MINUTE,
    };

    /// Takes one of three a minute, and returns how many are left.
    fn take<K: Copy + Eq + Hash>(
        limiter: &RateLimiter<K>,
        key: K,
        now: Instant,
    ) -> Result<u32, RateExceeded> {
        let left = limiter.take(&[(key, THREE_A_MINUTE)], now);
        left.map(|left| left[0].times).map_err(|(_, wait)| wait)
    }

    #[test]
    fn the_allowance_may_be_taken_at_once_and_comes_back_by_shares() {
        let limiter = RateLimiter::default();
        let check = |now| limiter.check(&[(1, THREE_A_MINUTE)], now);
        let mut now = Instant::now();
        for left in [2, 1, 0] {
            assert_eq!(take(&limiter, 1, now), Ok(left));
        }
        let wait = take(&limiter, 1, now).unwrap_err();
        assert_eq!(
            (wait.next_after, wait.full_after),
            (MINUTE / 3, MINUTE),
            "a third of the window gives one back"
        );
        assert_eq!(
            take(&limiter, 1, now),
            Err(wait),
            "asking lengthens no wait"
        );
        assert_eq!(check(now), Err((0, wait)));
        now += MINUTE / 3;
        assert_eq!(check(now), Ok(()));
        assert_eq!(take(&limiter, 1, now), Ok(0));
        assert!(take(&limiter, 1, now).is_err(), "only one came back");
        now += MINUTE;
        assert_eq!(take(&limiter, 1, now), Ok(2), "all came back");
    }

    #[test]
    fn keys_do_not_wait_for_one_another() {
        let limiter = RateLimiter::default();
        let now = Instant::now();
        for _ in 0..3 {
            take(&limiter, 1, now).unwrap();
        }
        assert_eq!(take(&limiter, 2, now), Ok(2));
    }

    #[test]
    fn of_several_keys_either_all_are_taken_or_none() {
        let limiter = RateLimiter::default();
        let now = Instant::now();
        let one = Rate {
            times: NonZeroU32::MIN,
            window: MINUTE,
        };
        let both = [(1, THREE_A_MINUTE), (2, one)];
        let left = limiter.take(&both, now).unwrap();
        assert_eq!((left[0].times, left[1].times), (2, 0));
        for _ in 0..9 {
            let (index, wait) = limiter.take(&both, now).unwrap_err();
            assert_eq!((index, wait.next_after), (1, MINUTE));
        }
        assert_eq!(take(&limiter, 1, now), Ok(1), "nothing was taken of it");
    }

    #[test]
    fn odd_rates_allow_as_many_as_they_say() {
        for times in [1, 7, 60, 1_000_000] {
            let limiter = RateLimiter::default();
            let rate = Rate {
                times: NonZeroU32::new(times).unwrap(),
                window: MINUTE,
            };
            let now = Instant::now();
            let taken = (0..=times).filter(|_| limiter.take(&[((), rate)], now).is_ok());
            assert_eq!(taken.count(), times as usize, "{times} a minute");
        }
    }

    #[test]
    fn a_flood_of_keys_stays_bounded_and_does_not_free_the_one_held_back() {
        let limiter = RateLimiter::default();
        let now = Instant::now();
        for _ in 0..3 {
            take(&limiter, usize::MAX, now).unwrap();
        }
        for key in 0..MAX_KEYS + 50 {
            take(&limiter, key, now).unwrap();
        }
        assert_eq!(limiter.lock().0.len(), MAX_KEYS);
        assert!(take(&limiter, usize::MAX, now).is_err());
        take(&limiter, 0, now + MINUTE).unwrap();
        take(&limiter, usize::MAX - 1, now + MINUTE).unwrap();
        assert!(
            limiter.lock().0.len() <= 2,
            "those who are full are forgotten"
        );
    }

    #[test]
    fn who_is_still_held_back_stays_so_while_others_are_forgotten() {
        let limiter = RateLimiter::default();
        let (now, later) = (Instant::now(), Instant::now() + MINUTE / 2);
        for key in 0..MAX_KEYS - 1 {
            take(&limiter, key, now).unwrap();
        }
        for _ in 0..3 {
            take(&limiter, usize::MAX, later).unwrap();
        }
        take(&limiter, usize::MAX - 1, later).unwrap();
        assert_eq!(limiter.lock().0.len(), 2);
        assert!(take(&limiter, usize::MAX, later).is_err());
    }

    #[test]
    fn a_customer_s_v6_prefix_multiplies_its_rate_by_4_or_16_and_no_more() {
        for (prefix, subnets, expected) in [("a /56", 256, 12), ("a /48", 65_536, 48)] {
            let limiter = ClientRateLimiter::new(THREE_A_MINUTE);
            let now = Instant::now();
            let take = |text: &str, now| limiter.take(text.parse().expect(text), now);
            // Spread over the prefix as widely as possible.
            let taken = (0..subnets)
                .step_by(subnets / 64)
                .flat_map(|subnet| [(); 3].map(|()| format!("2001:db8:7:{subnet:x}::1")))
                .filter(|address| take(address, now).is_ok())
                .count();
            assert_eq!(taken, expected, "{prefix}");
            let unused = "2001:db8:7:1::1";
            let wait = take(unused, now).expect_err(prefix);
            assert_eq!(wait.next_after, MINUTE / expected as u32, "{prefix}");
            for _ in 0..3 {
                take("2001:db8:8::1", now).expect("a neighbor does not wait");
            }
            assert!(take("2001:db8:8::2", now).is_err(), "the same /64");
            let later = now + wait.next_after;
            take(unused, later).expect("what was rejected took nothing of the /64");
            assert!(take(unused, later).is_err(), "one came back");
        }
        let limiter = ClientRateLimiter::new(THREE_A_MINUTE);
        let now = Instant::now();
        for host in 0..100 {
            for address in [
                format!("192.0.2.{host}"),
                format!("::ffff:198.51.100.{host}"),
            ] {
                let address = address.parse().expect("an address");
                for _ in 0..3 {
                    assert!(limiter.take(address, now).is_ok(), "{address}");
                }
                assert!(limiter.take(address, now).is_err(), "{address}");
            }
        }
    }

    #[test]
    fn seconds_are_rounded_up() {
        for (milliseconds, expected) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (60_000, 60)] {
            assert_eq!(seconds(Duration::from_millis(milliseconds)), expected);
        }
    }
}
