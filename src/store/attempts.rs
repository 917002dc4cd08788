//! Slows down guessing of passwords, by e-mail address.
//!
//! Five failures in a row are free; then the address has to wait 1 s, 2 s, 4 s ... up to 15 minutes after each.
//! Known and unknown addresses are counted alike. It lives in memory: a restart forgives.
//!
//! All strangers together have one count for an address, and each browser that has signed in to it has its own: whoever
//! knows an address can make strangers wait, and not its owner.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::device::Device;
use super::email::Email;

/// Failures before the first wait.
const FREE: u32 = 5;
const LONGEST_WAIT: Duration = Duration::from_mins(15);
/// Without a further failure for so long an address starts anew.
const FORGOTTEN_AFTER: Duration = Duration::from_hours(24);
/// Counts remembered: about 4 MB with the longest addresses.
const MOST: usize = 10_000;

/// Where attempts come from: each has its own count for an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// All browsers that are not known to have signed in to this account.
    Stranger,
    /// The browser with this device cookie.
    Device(Device),
    /// The browser that is signed in by the cookie with this hash.
    Session([u8; 32]),
}

/// The address has to wait.
#[derive(Debug, PartialEq, Eq)]
pub struct Wait {
    /// So many seconds, at least 1.
    pub seconds: u64,
}

/// The failures of each address, by where they came from.
pub struct Attempts {
    failures: Mutex<HashMap<(Email, Origin), Failures>>,
}

struct Failures {
    count: u32,
    last: Instant,
}

impl Attempts {
    /// Nobody has failed yet.
    pub fn new() -> Attempts {
        Attempts {
            failures: Mutex::new(HashMap::new()),
        }
    }

    /// Begins an attempt, which counts as failed until [`Attempts::forget`]: else many at once would all pass
    /// before the first was counted.
    ///
    /// # Errors
    /// The address has to wait; the attempt is not counted.
    pub fn begin(&self, email: &Email, origin: Origin, now: Instant) -> Result<(), Wait> {
        let key = (email.clone(), origin);
        let mut all = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(failures) = all.get_mut(&key) {
            let left = failures
                .wait()
                .saturating_sub(now.saturating_duration_since(failures.last));
            if !left.is_zero() {
                return Err(Wait {
                    seconds: left.as_secs() + u64::from(left.subsec_nanos() > 0),
                });
            }
            let count = if failures.is_forgotten(now) {
                0
            } else {
                failures.count
            };
            *failures = Failures {
                count: count.saturating_add(1),
                last: now,
            };
            return Ok(());
        }
        if all.len() >= MOST {
            make_room(&mut all, now);
        }
        all.insert(
            key,
            Failures {
                count: 1,
                last: now,
            },
        );
        Ok(())
    }

    /// The attempt under way gave the right password, or the password is another now: the address starts anew, for
    /// attempts from there.
    pub fn forget(&self, email: &Email, origin: Origin) {
        self.failures
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&(email.clone(), origin));
    }
}

impl Failures {
    fn wait(&self) -> Duration {
        if self.count < FREE {
            return Duration::ZERO;
        }
        let doublings = (self.count - FREE).min(LONGEST_WAIT.as_secs().ilog2() + 1);
        Duration::from_secs(1 << doublings).min(LONGEST_WAIT)
    }

    fn is_forgotten(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last) >= FORGOTTEN_AFTER
    }
}

/// Drops what is forgotten, or else the address with the fewest and oldest failures: a flood of made-up addresses
/// pushes out one another, not the one that is being guessed at.
fn make_room(all: &mut HashMap<(Email, Origin), Failures>, now: Instant) {
    all.retain(|_, failures| !failures.is_forgotten(now));
    if all.len() < MOST {
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
        let attempts = Attempts::new();
        let owner = email("owner@example.org");
        let mut now = Instant::now();
        for attempt in 1..=5 {
            assert_eq!(
                attempts.begin(&owner, Origin::Stranger, now),
                Ok(()),
                "attempt {attempt} is free"
            );
        }
        for seconds in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900] {
            assert_eq!(
                attempts.begin(&owner, Origin::Stranger, now),
                Err(Wait { seconds })
            );
            assert_eq!(
                attempts.begin(&owner, Origin::Stranger, now),
                Err(Wait { seconds }),
                "a refused attempt lengthens the wait"
            );
            now += Duration::from_secs(seconds);
            assert_eq!(
                attempts.begin(&owner, Origin::Stranger, now),
                Ok(()),
                "the wait of {seconds} s is over"
            );
        }
    }

    #[test]
    fn addresses_do_not_wait_for_one_another() {
        let attempts = Attempts::new();
        let now = Instant::now();
        fail_five_times(&attempts, &email("owner@example.org"), now);
        assert_eq!(
            attempts.begin(&email("other@example.org"), Origin::Stranger, now),
            Ok(())
        );
    }

    #[test]
    fn a_known_browser_does_not_wait_for_strangers_nor_they_for_it() {
        let attempts = Attempts::new();
        let owner = email("owner@example.org");
        let now = Instant::now();
        let origins = [
            Origin::Stranger,
            Origin::Device([1; 16]),
            Origin::Device([2; 16]),
            Origin::Session([1; 32]),
        ];
        for (at, origin) in origins.into_iter().enumerate() {
            for other in &origins[at..] {
                assert_eq!(attempts.begin(&owner, *other, now), Ok(()), "{other:?}");
                attempts.forget(&owner, *other);
            }
            for _ in 0..5 {
                assert_eq!(attempts.begin(&owner, origin, now), Ok(()));
            }
            assert_eq!(
                attempts.begin(&owner, origin, now),
                Err(Wait { seconds: 1 })
            );
        }
        attempts.forget(&owner, origins[1]);
        assert_eq!(attempts.begin(&owner, origins[1], now), Ok(()));
        assert!(
            attempts.begin(&owner, Origin::Stranger, now).is_err(),
            "the owner's success lets strangers go on guessing"
        );
    }

    #[test]
    fn success_and_a_day_start_anew() {
        let attempts = Attempts::new();
        let owner = email("owner@example.org");
        let now = Instant::now();
        fail_five_times(&attempts, &owner, now);
        attempts.forget(&owner, Origin::Stranger);
        fail_five_times(&attempts, &owner, now);
        fail_five_times(&attempts, &owner, now + FORGOTTEN_AFTER);
    }

    #[test]
    fn a_flood_of_addresses_stays_bounded_and_does_not_free_the_guessed_one() {
        let attempts = Attempts::new();
        let owner = email("owner@example.org");
        let now = Instant::now();
        fail_five_times(&attempts, &owner, now);
        for i in 0..MOST + 50 {
            attempts
                .begin(&email(&format!("{i}@example.org")), Origin::Stranger, now)
                .unwrap();
        }
        assert_eq!(attempts.failures.lock().unwrap().len(), MOST);
        assert_eq!(
            attempts.begin(&owner, Origin::Stranger, now),
            Err(Wait { seconds: 1 })
        );
    }

    fn fail_five_times(attempts: &Attempts, email: &Email, now: Instant) {
        for attempt in 1..=5 {
            assert_eq!(
                attempts.begin(email, Origin::Stranger, now),
                Ok(()),
                "attempt {attempt} is free"
            );
        }
    }

    fn email(text: &str) -> Email {
        Email::parse(text).unwrap()
    }
}
