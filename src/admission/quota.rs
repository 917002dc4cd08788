//! How many conversions an account may have: a number a minute, and a number a month (UTC). Both
//! are off unless the operator sets them.
//!
//! The rate counts every conversion that is begun, since each costs the server something. The month
//! counts those in the usage history, and those in progress, so that many at once do not exceed it.

use super::rate_limit::{Rate, RateLimiter};
use crate::store::{AccountId, Month, Store, StoreError};
use std::collections::HashMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Limits the conversions of each account.
pub struct Quotas {
    rate: Option<RateLimiter<AccountId>>,
    monthly: Option<NonZeroU64>,
    /// Conversions of each account that are not in the usage history yet; none of them is 0.
    in_progress: Mutex<HashMap<AccountId, u64>>,
}

/// A conversion in progress, which ends when this is dropped.
pub struct QuotaGuard<'a> {
    quotas: &'a Quotas,
    account: AccountId,
    limits: Vec<LimitStatus>,
}

/// One limit of an account, and what is left of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitStatus {
    /// `rate` or `month`.
    pub name: &'static str,
    /// Conversions in a window.
    pub quota: u64,
    /// The length of the window.
    pub window: Duration,
    /// What is left; `None` where it was not asked for.
    pub remaining: Option<RemainingQuota>,
}

/// What is left of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemainingQuota {
    /// Conversions.
    pub conversions: u64,
    /// When all are back; if none is left of the rate, when the next one is.
    pub resets_in: Duration,
}

/// Why an account may not convert now.
#[derive(Debug)]
pub enum QuotaError {
    /// A limit is used up.
    Exceeded(QuotaExceeded),
    /// The usage history cannot be read.
    Store(StoreError),
}

/// A limit that is used up.
#[derive(Debug, PartialEq, Eq)]
pub struct QuotaExceeded {
    /// Which one.
    pub limit: ExceededLimit,
    /// When another try may succeed.
    pub retry_after: Duration,
    /// All limits that are known of the account.
    pub limits: Vec<LimitStatus>,
}

/// A limit that is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceededLimit {
    /// Conversions a minute.
    Rate {
        /// Their number.
        times: u32,
    },
    /// Conversions a month, all of which are in the history.
    Month {
        /// Their number.
        quota: NonZeroU64,
    },
    /// Conversions a month, the last of which are in progress. One that fails leaves its place.
    MonthInProgress {
        /// Their number.
        quota: NonZeroU64,
    },
}

impl Quotas {
    /// Limits conversions a minute and a month; `None` is no limit.
    pub fn new(per_minute: Option<NonZeroU32>, monthly: Option<NonZeroU64>) -> Quotas {
        let minute = |times| Rate {
            times,
            window: Duration::from_mins(1),
        };
        Quotas {
            rate: per_minute.map(minute).map(RateLimiter::new),
            monthly,
            in_progress: Mutex::new(HashMap::new()),
        }
    }

    /// Checks whether the account may have one conversion more, before its body is read. The event
    /// loop calls it, so it goes by what is in memory: an account that is not known there passes,
    /// and [`Quotas::take`] asks the disk.
    ///
    /// # Errors
    /// A limit is used up.
    pub fn check(&self, store: &Store, account: AccountId) -> Result<(), QuotaExceeded> {
        let month = self
            .monthly
            .and_then(|_| store.known_usage_in_month(account, SystemTime::now()));
        if let Some(limiter) = &self.rate {
            limiter
                .check(account, Instant::now())
                .map_err(|exceeded| self.rate_exceeded(exceeded.next_after, month))?;
        }
        self.check_month(month, self.count(account))
    }

    /// Takes one conversion.
    ///
    /// # Errors
    /// See [`QuotaError`].
    pub fn take(&self, store: &Store, account: AccountId) -> Result<QuotaGuard<'_>, QuotaError> {
        // It counts from now on, whatever else is checked, so that of two at the same time neither
        // overlooks the other.
        let (mut guard, others) = self.begin(account);
        let month = match self.monthly {
            Some(_) => Some(store.usage_in_month(account, SystemTime::now())?),
            None => None,
        };
        self.check_month(month, others)?;
        let mut rate = None;
        if let Some(limiter) = &self.rate {
            let left = limiter
                .take(account, Instant::now())
                .map_err(|exceeded| self.rate_exceeded(exceeded.next_after, month))?;
            rate = Some(RemainingQuota {
                conversions: left.times.into(),
                resets_in: left.full_after,
            });
        }
        guard.limits = self.limits(rate, month, others + 1);
        Ok(guard)
    }

    fn begin(&self, account: AccountId) -> (QuotaGuard<'_>, u64) {
        let mut all = self.lock();
        let count = all.entry(account).or_default();
        *count += 1;
        let guard = QuotaGuard {
            quotas: self,
            account,
            limits: Vec::new(),
        };
        (guard, *count - 1)
    }

    fn count(&self, account: AccountId) -> u64 {
        self.lock().get(&account).copied().unwrap_or(0)
    }

    fn check_month(&self, month: Option<Month>, in_progress: u64) -> Result<(), QuotaExceeded> {
        let (Some(quota), Some(month)) = (self.monthly, month) else {
            return Ok(());
        };
        let (limit, retry_after) = if month.conversions >= quota.get() {
            (ExceededLimit::Month { quota }, left_of(month))
        } else if month.conversions + in_progress >= quota.get() {
            let soon = Duration::from_secs(1);
            (ExceededLimit::MonthInProgress { quota }, soon)
        } else {
            return Ok(());
        };
        Err(QuotaExceeded {
            limit,
            retry_after,
            limits: self.limits(None, Some(month), in_progress),
        })
    }

    fn rate_exceeded(&self, next_after: Duration, month: Option<Month>) -> QuotaExceeded {
        let none = RemainingQuota {
            conversions: 0,
            resets_in: next_after,
        };
        QuotaExceeded {
            limit: ExceededLimit::Rate {
                times: self.rate.as_ref().map_or(0, |l| l.rate().times.get()),
            },
            retry_after: next_after,
            limits: self.limits(Some(none), month, 0),
        }
    }

    /// The limits that are set; the month's only if `month` is known.
    fn limits(
        &self,
        rate: Option<RemainingQuota>,
        month: Option<Month>,
        in_progress: u64,
    ) -> Vec<LimitStatus> {
        let of_rate = self.rate.as_ref().map(|limiter| LimitStatus {
            name: "rate",
            quota: limiter.rate().times.get().into(),
            window: limiter.rate().window,
            remaining: rate,
        });
        let of_month = self.monthly.zip(month).map(|(quota, month)| LimitStatus {
            name: "month",
            quota: quota.get(),
            window: month.end.duration_since(month.start).unwrap_or_default(),
            remaining: Some(RemainingQuota {
                conversions: quota.get().saturating_sub(month.conversions + in_progress),
                resets_in: left_of(month),
            }),
        });
        of_rate.into_iter().chain(of_month).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<AccountId, u64>> {
        // A map of counts is whole at all times, whoever panicked.
        self.in_progress
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl QuotaGuard<'_> {
    /// The limits of the account, with this conversion taken.
    pub fn limits(&self) -> &[LimitStatus] {
        &self.limits
    }
}

impl Drop for QuotaGuard<'_> {
    fn drop(&mut self) {
        let mut all = self.quotas.lock();
        if let Some(count) = all.get_mut(&self.account) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.account);
            }
        }
    }
}

impl From<QuotaExceeded> for QuotaError {
    fn from(exceeded: QuotaExceeded) -> QuotaError {
        QuotaError::Exceeded(exceeded)
    }
}

impl From<StoreError> for QuotaError {
    fn from(error: StoreError) -> QuotaError {
        QuotaError::Store(error)
    }
}

fn left_of(month: Month) -> Duration {
    let left = month.end.duration_since(SystemTime::now());
    left.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::UsageEntry;
    use crate::store::tests::Folder;

    #[test]
    fn without_limits_there_are_none_to_tell() {
        let folder = Folder::new();
        let (store, account) = account(&folder);
        let quotas = Quotas::new(None, None);
        for _ in 0..100 {
            quotas.check(&store, account).unwrap();
            assert_eq!(quotas.take(&store, account).unwrap().limits(), []);
        }
    }

    #[test]
    fn the_rate_is_told_and_kept() {
        let folder = Folder::new();
        let (store, account) = account(&folder);
        let quotas = Quotas::new(NonZeroU32::new(2), None);
        let first = quotas.take(&store, account).unwrap();
        let [limit] = first.limits() else {
            panic!("{:?}", first.limits());
        };
        let remaining = limit.remaining.unwrap();
        assert_eq!((limit.name, limit.quota), ("rate", 2));
        assert_eq!(remaining.conversions, 1);
        assert_eq!(remaining.resets_in, Duration::from_secs(30));
        quotas.take(&store, account).unwrap();
        let exceeded = exceeded(&quotas, &store, account);
        assert_eq!(exceeded.limit, ExceededLimit::Rate { times: 2 });
        assert!(exceeded.retry_after <= Duration::from_secs(30));
        assert_eq!(exceeded.limits[0].remaining.unwrap().conversions, 0);
        let checked = quotas.check(&store, account).unwrap_err();
        assert_eq!(checked.limit, exceeded.limit);
    }

    #[test]
    fn the_month_counts_the_history_and_what_is_in_progress() {
        let folder = Folder::new();
        let (store, account) = account(&folder);
        let quotas = Quotas::new(None, NonZeroU64::new(2));
        let quota = NonZeroU64::new(2).unwrap();
        store.record_usage(account, &entry()).unwrap();
        let failing = quotas.take(&store, account).unwrap();
        assert_eq!(failing.limits()[0].remaining.unwrap().conversions, 0);
        let third = exceeded(&quotas, &store, account);
        assert_eq!(
            (third.limit, third.retry_after),
            (
                ExceededLimit::MonthInProgress { quota },
                Duration::from_secs(1)
            ),
            "the second may fail"
        );
        drop(failing);

        let succeeding = quotas.take(&store, account).unwrap();
        store.record_usage(account, &entry()).unwrap();
        drop(succeeding);
        let third = exceeded(&quotas, &store, account);
        assert_eq!(third.limit, ExceededLimit::Month { quota });
        let month = store.usage_in_month(account, SystemTime::now()).unwrap();
        let wait = third.retry_after.as_secs();
        assert!(
            wait.abs_diff(left_of(month).as_secs()) <= 2,
            "until the next month: {wait}"
        );
        assert!(quotas.check(&store, account).is_err());
        assert!(quotas.lock().is_empty(), "a rejected one is in progress");
    }

    fn exceeded(quotas: &Quotas, store: &Store, account: AccountId) -> QuotaExceeded {
        match quotas.take(store, account).err() {
            Some(QuotaError::Exceeded(exceeded)) => exceeded,
            other => panic!("{other:?}"),
        }
    }

    fn account(folder: &Folder) -> (Store, AccountId) {
        let store = folder.store();
        let account = store.create_account("owner@example.org", None).unwrap();
        (store, account.id)
    }

    fn entry() -> UsageEntry {
        UsageEntry::example(SystemTime::now())
    }
}
