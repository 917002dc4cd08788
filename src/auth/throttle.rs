//! Slows down the guessing of passwords, by e-mail address.
//!
//! After five failures in a row, each further attempt for the address has to wait: 1 s, 2 s, 4 s
//! and so on, up to 15 minutes. Addresses with and without an account are counted alike. The counts
//! are kept in memory, so a restart clears them, or by a storage engine that several processes
//! share.
//!
//! All unknown browsers together have one count for an address, and each browser that has signed in
//! to the account before has a count of its own. So whoever knows an address can make other unknown
//! browsers wait, but not the owner's.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use thiserror::Error;

use super::code::CodeHash;
use super::device_cookie::DeviceId;
use super::email::Email;
use super::secret::Secret;

/// How many failures in a row an address may have before the first wait.
const FREE_FAILURES: u32 = 5;
const LONGEST_WAIT: Duration = Duration::from_mins(15);
/// After this time without a further failure, a count is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_hours(24);
/// The most counts that are kept: about 4 MB with the longest addresses.
const MAX_COUNTS: usize = 10_000;

/// Where an attempt comes from. Each origin has its own count for an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A browser that is not known to have signed in to this account; all of these share one count.
    Unknown,
    /// The browser with this device cookie.
    Device(DeviceId),
    /// The browser that is signed in by the session cookie with this hash.
    Session(CodeHash),
}

impl Origin {
    /// A text of one length for each origin.
    fn bytes(self) -> [u8; 33] {
        let mut bytes = [0; 33];
        let (kind, name) = bytes.split_at_mut(1);
        match self {
            Origin::Unknown => {}
            Origin::Device(id) => {
                kind[0] = 1;
                name[..id.len()].copy_from_slice(&id);
            }
            Origin::Session(hash) => {
                kind[0] = 2;
                name.copy_from_slice(&hash);
            }
        }
        bytes
    }
}

/// Returns the key of an address and an origin in the stored counts: without the secret, nobody
/// learns the address from it.
pub fn attempt_key(secret: &Secret, email: &Email, origin: Origin) -> [u8; 32] {
    let parts = [&origin.bytes()[..], email.as_str().as_bytes()];
    secret.mac("towebp attempts", &parts)
}

/// An attempt that comes too early.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("too many attempts: try again in {seconds} seconds")]
pub struct Wait {
    /// In how many seconds the next attempt is allowed; at least 1.
    pub seconds: u64,
}

/// Counts the failed attempts of each address and origin.
pub struct SignInThrottle {
    failures: Mutex<HashMap<(Email, Origin), FailedAttempts>>,
    /// The times in `failures` are counted from this one.
    start: Instant,
}

/// The stored record of failed attempts in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedAttempts {
    /// Their number, at least 1.
    pub count: u32,
    /// The time of the last one in milliseconds.
    pub last: u64,
}

impl FailedAttempts {
    /// Returns the record from an attempt at the time `now` on, which counts as failed until it has
    /// succeeded. `previous` is the record before.
    ///
    /// # Errors
    /// [`Wait`] if the attempt comes too early; it is not counted then.
    pub fn next(previous: Option<FailedAttempts>, now: u64) -> Result<FailedAttempts, Wait> {
        let previous = previous.filter(|previous| !previous.is_forgotten(now));
        let count = previous.map_or(0, |previous| previous.count);
        if let Some(previous) = previous {
            let since = Duration::from_millis(now.saturating_sub(previous.last));
            let left = previous.wait().saturating_sub(since);
            if !left.is_zero() {
                return Err(Wait {
                    seconds: left.as_secs() + u64::from(left.subsec_nanos() > 0),
                });
            }
        }
        Ok(FailedAttempts {
            count: count.saturating_add(1),
            last: now,
        })
    }

    fn wait(self) -> Duration {
        if self.count < FREE_FAILURES {
            return Duration::ZERO;
        }
        let doublings = (self.count - FREE_FAILURES).min(LONGEST_WAIT.as_secs().ilog2() + 1);
        Duration::from_secs(1 << doublings).min(LONGEST_WAIT)
    }

    /// Whether it was long ago. So are times that the clock reaches after the longest wait only:
    /// they were written while a clock was wrong, and must lock nobody out.
    fn is_forgotten(self, now: u64) -> bool {
        let ago = Duration::from_millis(now.saturating_sub(self.last));
        let ahead = Duration::from_millis(self.last.saturating_sub(now));
        ago >= FORGOTTEN_AFTER || ahead > LONGEST_WAIT
    }
}

impl Default for SignInThrottle {
    fn default() -> SignInThrottle {
        SignInThrottle {
            failures: Mutex::default(),
            start: Instant::now(),
        }
    }
}

impl SignInThrottle {
    /// Begins an attempt. It counts as failed until [`SignInThrottle::forget`]: otherwise many
    /// attempts at once would all be allowed before the first was counted.
    ///
    /// # Errors
    /// [`Wait`] if the address has to wait; the attempt is not counted then.
    pub fn begin(&self, email: &Email, origin: Origin, now: Instant) -> Result<(), Wait> {
        let now = now.saturating_duration_since(self.start).as_millis();
        let now = u64::try_from(now).unwrap_or(u64::MAX);
        let key = (email.clone(), origin);
        let mut all = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let previous = all.get(&key).copied();
        let next = FailedAttempts::next(previous, now)?;
        if previous.is_none() && all.len() >= MAX_COUNTS {
            evict(&mut all, now);
        }
        all.insert(key, next);
        Ok(())
    }

    /// Clears the count of this address and origin: the attempt gave the right password, or the
    /// password was replaced.
    pub fn forget(&self, email: &Email, origin: Origin) {
        self.failures
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&(email.clone(), origin));
    }
}

/// Removes the counts that are forgotten, or else the one with the fewest and oldest failures. So a
/// flood of made-up addresses removes its own counts, and not the count of an address that is being
/// guessed at.
fn evict(all: &mut HashMap<(Email, Origin), FailedAttempts>, now: u64) {
    all.retain(|_, failures| !failures.is_forgotten(now));
    if all.len() < MAX_COUNTS {
        return;
    }
    let least = all
        .iter()
        .min_by_key(|(_, failures)| (failures.count, failures.last))
        .map(|(key, _)| key.clone());
    if let Some(key) = least {
        all.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_from_the_fifth_failure_up_to_fifteen_minutes() {
        let throttle = SignInThrottle::default();
        let owner = email("owner@example.org");
        let mut now = Instant::now();
        for attempt in 1..=5 {
            assert_eq!(
                throttle.begin(&owner, Origin::Unknown, now),
                Ok(()),
                "attempt {attempt} is free"
            );
        }
        for seconds in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900] {
            assert_eq!(
                throttle.begin(&owner, Origin::Unknown, now),
                Err(Wait { seconds })
            );
            assert_eq!(
                throttle.begin(&owner, Origin::Unknown, now),
                Err(Wait { seconds }),
                "an attempt during the wait lengthens it"
            );
            now += Duration::from_secs(seconds);
            assert_eq!(
                throttle.begin(&owner, Origin::Unknown, now),
                Ok(()),
                "the wait of {seconds} s is over"
            );
        }
    }

    #[test]
    fn addresses_do_not_wait_for_one_another() {
        let throttle = SignInThrottle::default();
        let now = Instant::now();
        fail_five_times(&throttle, &email("owner@example.org"), now);
        assert_eq!(
            throttle.begin(&email("other@example.org"), Origin::Unknown, now),
            Ok(())
        );
    }

    #[test]
    fn known_and_unknown_browsers_do_not_make_each_other_wait() {
        let throttle = SignInThrottle::default();
        let owner = email("owner@example.org");
        let now = Instant::now();
        let origins = [
            Origin::Unknown,
            Origin::Device([1; 16]),
            Origin::Device([2; 16]),
            Origin::Session([1; 32]),
        ];
        for (at, origin) in origins.into_iter().enumerate() {
            for other in &origins[at..] {
                assert_eq!(throttle.begin(&owner, *other, now), Ok(()), "{other:?}");
                throttle.forget(&owner, *other);
            }
            for _ in 0..5 {
                assert_eq!(throttle.begin(&owner, origin, now), Ok(()));
            }
            assert_eq!(
                throttle.begin(&owner, origin, now),
                Err(Wait { seconds: 1 })
            );
        }
        throttle.forget(&owner, origins[1]);
        assert_eq!(throttle.begin(&owner, origins[1], now), Ok(()));
        assert!(
            throttle.begin(&owner, Origin::Unknown, now).is_err(),
            "the owner's success cleared the count of unknown browsers"
        );
    }

    #[test]
    fn a_success_and_a_day_without_failures_clear_the_count() {
        let throttle = SignInThrottle::default();
        let owner = email("owner@example.org");
        let now = Instant::now();
        fail_five_times(&throttle, &owner, now);
        throttle.forget(&owner, Origin::Unknown);
        fail_five_times(&throttle, &owner, now);
        fail_five_times(&throttle, &owner, now + FORGOTTEN_AFTER);
    }

    #[test]
    fn a_flood_of_addresses_is_bounded_and_keeps_the_count_of_the_guessed_one() {
        let throttle = SignInThrottle::default();
        let owner = email("owner@example.org");
        let now = Instant::now();
        fail_five_times(&throttle, &owner, now);
        for i in 0..MAX_COUNTS + 50 {
            throttle
                .begin(&email(&format!("{i}@example.org")), Origin::Unknown, now)
                .unwrap();
        }
        assert_eq!(throttle.failures.lock().unwrap().len(), MAX_COUNTS);
        assert_eq!(
            throttle.begin(&owner, Origin::Unknown, now),
            Err(Wait { seconds: 1 })
        );
    }

    #[test]
    fn a_full_table_loses_what_is_forgotten_and_nothing_for_an_address_that_is_in_it() {
        let throttle = SignInThrottle::default();
        let begin = |address: &str, hours| {
            let now = throttle.start + Duration::from_hours(hours);
            throttle
                .begin(&email(address), Origin::Unknown, now)
                .unwrap();
            throttle.failures.lock().unwrap().len()
        };
        for i in 1..MAX_COUNTS {
            begin(&format!("{i}@example.org"), 0);
        }
        assert_eq!(begin("owner@example.org", 20), MAX_COUNTS);
        assert_eq!(begin("owner@example.org", 20), MAX_COUNTS);
        assert_eq!(
            begin("new@example.org", 25),
            2,
            "the owner's and the new one"
        );
    }

    #[test]
    fn keys_differ_by_address_origin_and_secret() {
        let secret = Secret::random().unwrap();
        let origins = [
            Origin::Unknown,
            Origin::Device([0; 16]),
            Origin::Device([1; 16]),
            Origin::Session([0; 32]),
        ];
        let mut keys = Vec::new();
        for secret in [&secret, &Secret::random().unwrap()] {
            for address in ["owner@example.org", "other@example.org"] {
                keys.extend(origins.map(|it| attempt_key(secret, &email(address), it)));
            }
        }
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 16);
        let again = attempt_key(&secret, &email("owner@example.org"), Origin::Unknown);
        assert!(keys.contains(&again));
    }

    #[test]
    fn times_far_ahead_lock_nobody_out() {
        let (now, count) = (1_000_000_000, 20);
        let longest = LONGEST_WAIT.as_millis() as u64;
        for (last, expected) in [
            (now, Err(Wait { seconds: 900 })),
            (now + longest, Err(Wait { seconds: 900 })),
            (now + longest + 1, Ok(1)),
            (u64::MAX, Ok(1)),
        ] {
            let next = FailedAttempts::next(Some(FailedAttempts { count, last }), now);
            assert_eq!(next.map(|next| next.count), expected, "{last}");
        }
    }

    fn fail_five_times(throttle: &SignInThrottle, email: &Email, now: Instant) {
        for attempt in 1..=5 {
            assert_eq!(
                throttle.begin(email, Origin::Unknown, now),
                Ok(()),
                "attempt {attempt} is free"
            );
        }
    }

    fn email(text: &str) -> Email {
        Email::parse(text).unwrap()
    }
}
