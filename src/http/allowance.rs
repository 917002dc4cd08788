//! How many conversions an account may have: so many a minute, and so many a month (UTC). Both are off unless the
//! operator sets them.
//!
//! The rate counts every conversion that is begun, since each costs the server something. The month counts those in the
//! usage history, and those under way, so that many at once do not get past it.
//!
//! The headers are those of the IETF's draft "`RateLimit` header fields for HTTP" (draft-ietf-httpapi-ratelimit-headers).

use super::problem::{Kind, Problem};
use crate::admission::{Rate, RateLimiter, seconds};
use crate::dashboard::duration;
use crate::store::{AccountId, Month, Store};
use std::collections::HashMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// What the conversions of each account are held to.
pub struct Allowance {
    rate: Option<RateLimiter<AccountId>>,
    monthly: Option<NonZeroU64>,
    /// Conversions that are not in the history yet.
    under_way: Mutex<HashMap<AccountId, u64>>,
}

/// One conversion under way; ends when dropped.
pub struct Taken<'a> {
    allowance: &'a Allowance,
    account: AccountId,
    headers: Headers,
}

/// Names and values.
type Headers = Vec<(&'static str, String)>;

impl Allowance {
    /// So many a minute and so many a month; `None` is no limit.
    pub fn new(per_minute: Option<NonZeroU32>, monthly: Option<NonZeroU64>) -> Allowance {
        let minute = |times| Rate {
            times,
            window: Duration::from_mins(1),
        };
        Allowance {
            rate: per_minute.map(minute).map(RateLimiter::new),
            monthly,
            under_way: Mutex::new(HashMap::new()),
        }
    }

    /// Whether the account may have one more now, without taking it: before its body is read. It is called by the event
    /// loop, so it goes by what is in memory: whoever is not known there passes, and [`Allowance::take`] asks the disk.
    ///
    /// # Errors
    /// 429, as [`Allowance::take`].
    pub fn look(&self, store: &Store, account: AccountId) -> Result<(), Problem> {
        let month = self
            .monthly
            .and_then(|_| store.known_usage_in_month(account, SystemTime::now()));
        if let Some(limiter) = &self.rate {
            let looked = limiter.look(account, Instant::now());
            looked.map_err(|wait| self.rate_limited(wait.next_after, month))?;
        }
        self.check_month(month, self.count(account))
    }

    /// Takes one.
    ///
    /// # Errors
    /// 429: there were too many in the last minute, or there is none left in this month; 500: the store failed.
    pub fn take(&self, store: &Store, account: AccountId) -> Result<Taken<'_>, Problem> {
        // From now on it counts, whatever else is checked: of two at the same time none overlooks the other.
        let (mut taken, others) = self.begin(account);
        let month = self.month(store, account)?;
        self.check_month(month, others)?;
        let mut left = Vec::new();
        if let Some(limiter) = &self.rate {
            let rate = limiter
                .take(account, Instant::now())
                .map_err(|wait| self.rate_limited(wait.next_after, month))?;
            left.push(item("rate", rate.times.into(), rate.whole_after));
        }
        left.extend(self.month_left(month, others + 1));
        taken.headers = self.headers(month, left);
        Ok(taken)
    }

    fn begin(&self, account: AccountId) -> (Taken<'_>, u64) {
        let mut all = self.lock();
        let count = all.entry(account).or_default();
        *count += 1;
        let taken = Taken {
            allowance: self,
            account,
            headers: Vec::new(),
        };
        (taken, *count - 1)
    }

    fn count(&self, account: AccountId) -> u64 {
        self.lock().get(&account).copied().unwrap_or(0)
    }

    fn month(&self, store: &Store, account: AccountId) -> Result<Option<Month>, Problem> {
        if self.monthly.is_none() {
            return Ok(None);
        }
        Ok(Some(store.usage_in_month(account, SystemTime::now())?))
    }

    fn check_month(&self, month: Option<Month>, under_way: u64) -> Result<(), Problem> {
        let (Some(quota), Some(month)) = (self.monthly, month) else {
            return Ok(());
        };
        let problem = |retry_after, detail| Problem {
            retry_after: Some(retry_after),
            headers: self.headers(Some(month), self.month_left(Some(month), under_way)),
            ..Problem::new(Kind::QuotaExceeded, detail)
        };
        if month.conversions >= quota.get() {
            let detail = format!(
                "This account may have {quota} conversions a month (UTC) and has had them; the next month begins in {}.",
                duration(seconds(left_of(month)))
            );
            return Err(problem(seconds(left_of(month)), detail));
        }
        if month.conversions + under_way >= quota.get() {
            let detail = format!(
                "This account may have {quota} conversions a month (UTC), and the last of them are under way; one \
                 that fails leaves its place."
            );
            return Err(problem(1, detail));
        }
        Ok(())
    }

    fn rate_limited(&self, next_after: Duration, month: Option<Month>) -> Problem {
        let times = self.rate.as_ref().map_or(0, |l| l.rate().times.get());
        let retry_after = seconds(next_after);
        let detail = format!(
            "This account may have {times} conversions a minute; the next is allowed in {}.",
            duration(retry_after)
        );
        let mut left = vec![item("rate", 0, next_after)];
        left.extend(self.month_left(month, 0));
        Problem {
            retry_after: Some(retry_after),
            headers: self.headers(month, left),
            ..Problem::new(Kind::RateLimited, detail)
        }
    }

    fn month_left(&self, month: Option<Month>, under_way: u64) -> Option<String> {
        let (quota, month) = self.monthly.zip(month)?;
        let left = quota.get().saturating_sub(month.conversions + under_way);
        Some(item("month", left, left_of(month)))
    }

    fn headers(&self, month: Option<Month>, left: impl IntoIterator<Item = String>) -> Headers {
        let rate = self.rate.as_ref().map(RateLimiter::rate);
        let rate =
            rate.map(|rate| format!("\"rate\";q={};w={}", rate.times, rate.window.as_secs()));
        let monthly = self.monthly.zip(month).map(|(quota, month)| {
            let length = month.end.duration_since(month.start).unwrap_or_default();
            format!("\"month\";q={quota};w={}", length.as_secs())
        });
        let policies: Vec<String> = rate.into_iter().chain(monthly).collect();
        let left: Vec<String> = left.into_iter().collect();
        [("RateLimit-Policy", policies), ("RateLimit", left)]
            .into_iter()
            .filter(|(_, items)| !items.is_empty())
            .map(|(name, items)| (name, items.join(", ")))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<AccountId, u64>> {
        // A map of counts is whole at all times, whoever panicked.
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken<'_> {
    /// What to tell the caller.
    pub fn headers(&self) -> &[(&'static str, String)] {
        &self.headers
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut all = self.allowance.lock();
        if let Some(count) = all.get_mut(&self.account) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.account);
            }
        }
    }
}

fn item(name: &str, left: u64, whole_after: Duration) -> String {
    format!("\"{name}\";r={left};t={}", seconds(whole_after))
}

fn left_of(month: Month) -> Duration {
    let left = month.end.duration_since(SystemTime::now());
    left.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::Folder;
    use crate::store::{UsageEntry, WatermarkKind};

    #[test]
    fn without_limits_nothing_is_said_and_nothing_refused() {
        let folder = Folder::new();
        let (store, account) = account(&folder);
        let allowance = Allowance::new(None, None);
        for _ in 0..100 {
            allowance.look(&store, account).unwrap();
            assert_eq!(allowance.take(&store, account).unwrap().headers(), []);
        }
    }

    #[test]
    fn the_rate_is_told_and_kept() {
        let folder = Folder::new();
        let (store, account) = account(&folder);
        let allowance = Allowance::new(NonZeroU32::new(2), None);
        let first = allowance.take(&store, account).unwrap();
        let policy = ("RateLimit-Policy", "\"rate\";q=2;w=60".to_owned());
        assert_eq!(
            first.headers(),
            [
                policy.clone(),
                ("RateLimit", "\"rate\";r=1;t=30".to_owned())
            ]
        );
        allowance.take(&store, account).unwrap();
        let refused = allowance.take(&store, account).err().expect("a third");
        assert_eq!(
            allowance.look(&store, account).unwrap_err().kind,
            refused.kind
        );
        assert_eq!(
            (refused.kind, refused.retry_after),
            (Kind::RateLimited, Some(30))
        );
        assert_eq!(
            refused.headers,
            [policy, ("RateLimit", "\"rate\";r=0;t=30".to_owned())]
        );
    }

    #[test]
    fn the_month_counts_the_history_and_what_is_under_way() {
        let folder = Folder::new();
        let (store, account) = account(&folder);
        let allowance = Allowance::new(None, NonZeroU64::new(2));
        store.record_usage(account, &entry()).unwrap();
        let failing = allowance.take(&store, account).unwrap();
        assert!(
            failing.headers()[1].1.starts_with("\"month\";r=0;t="),
            "{:?}",
            failing.headers()
        );
        let refused = allowance.take(&store, account).err().expect("a third");
        assert_eq!(
            (refused.kind, refused.retry_after),
            (Kind::QuotaExceeded, Some(1)),
            "the second may fail"
        );
        drop(failing);

        let succeeding = allowance.take(&store, account).unwrap();
        store.record_usage(account, &entry()).unwrap();
        drop(succeeding);
        let refused = allowance.take(&store, account).err().expect("a third");
        assert_eq!(refused.kind, Kind::QuotaExceeded);
        let month = store.usage_in_month(account, SystemTime::now()).unwrap();
        let wait = refused.retry_after.unwrap();
        assert!(
            wait.abs_diff(left_of(month).as_secs()) <= 2,
            "until the next month: {wait}"
        );
        assert!(allowance.look(&store, account).is_err());
        assert!(allowance.lock().is_empty(), "what was refused is under way");
    }

    fn account(folder: &Folder) -> (Store, AccountId) {
        let store = folder.store();
        let account = store.create_account("owner@example.org", None).unwrap();
        (store, account.id)
    }

    fn entry() -> UsageEntry {
        UsageEntry {
            time: SystemTime::now(),
            format: "png".to_owned(),
            input_bytes: 2,
            output_bytes: 1,
            width: 1,
            height: 1,
            quality: 85,
            watermark: WatermarkKind::None,
            milliseconds: 1,
        }
    }
}
