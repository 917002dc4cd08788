//! How many conversions an account may have, and by one of its tokens: a number a minute, and a
//! number a month (UTC). The account's are off unless the operator sets them, for all accounts or
//! for one, and the token's unless its owner does.
//!
//! The rate counts every conversion that is begun, since each costs the server something. The month
//! counts those in the usage history, and those in progress, so that many at once do not exceed it.

use super::rate_limit::{Rate, RateExceeded, RateLimiter};
use crate::store::{
    AccountId, Caller, Limits, Month, MonthlyQuotas, Store, StoreError, TokenNumber, monotonic,
};
use std::collections::HashMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// Limits the conversions of each account and each token.
pub struct Quotas {
    /// The limits of an account for which the operator has set no others.
    server: Limits,
    rates: RateLimiter<Key>,
    /// Conversions of each account and token that are not in the usage history yet; none of them is
    /// 0.
    in_progress: InProgress,
}

#[derive(Clone, Default)]
struct InProgress(Arc<Mutex<HashMap<Key, u64>>>);

/// The key of a count: an account, or one of its tokens.
type Key = (AccountId, Option<TokenNumber>);

/// A conversion in progress, which ends when this is dropped.
pub struct QuotaGuard {
    in_progress: InProgress,
    keys: [Key; 2],
    limits: Vec<LimitStatus>,
}

/// One limit of an account or a token, and its remaining amount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitStatus {
    /// `rate` or `month` of the account, `token-rate` or `token-month`.
    pub name: &'static str,
    /// Conversions in a window.
    pub quota: u64,
    /// The length of the window.
    pub window: Duration,
    /// The remaining amount; `None` if it was not read.
    pub remaining: Option<RemainingQuota>,
}

/// The remaining amount of a limit.
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
    /// The account or the token.
    pub scope: LimitScope,
    /// The limit.
    pub limit: ExceededLimit,
    /// When another try may succeed.
    pub retry_after: Duration,
    /// All limits that are known of the account and the token.
    pub limits: Vec<LimitStatus>,
}

/// The conversions that a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitScope {
    /// The conversions of the account.
    Account,
    /// The conversions by the token.
    Token,
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

/// The limits of an account or a token, with their known counts.
#[derive(Clone, Copy)]
struct Layer {
    scope: LimitScope,
    key: Key,
    limits: Limits,
    /// The present time by the store's clock.
    now: SystemTime,
    /// Among how many servers the rate is divided.
    replicas: NonZeroU32,
    /// The conversions of the month that are in the history.
    month: Option<Month>,
    /// The conversions that are in progress.
    in_progress: u64,
    /// The remaining amount of the rate.
    rate: Option<RemainingQuota>,
}

impl Layer {
    fn rate(&self) -> Option<Rate> {
        self.limits.per_minute.map(|times| Rate {
            // Rounded up, so that each server has some; it is not 0.
            times: NonZeroU32::new(times.get().div_ceil(self.replicas.get())).unwrap_or(times),
            window: Duration::from_mins(1),
        })
    }

    /// Checks whether the month allows one conversion more.
    fn check_month(&self) -> Option<(ExceededLimit, Duration)> {
        let (quota, month) = self.limits.monthly.zip(self.month)?;
        if month.conversions >= quota.get() {
            Some((ExceededLimit::Month { quota }, self.left_of(month)))
        } else if month.conversions + self.in_progress >= quota.get() {
            let soon = Duration::from_secs(1);
            Some((ExceededLimit::MonthInProgress { quota }, soon))
        } else {
            None
        }
    }

    fn left_of(&self, month: Month) -> Duration {
        month.end.duration_since(self.now).unwrap_or_default()
    }

    /// The limits that are set; the month's only if the month is known.
    fn statuses(&self) -> impl Iterator<Item = LimitStatus> {
        let [of_rate, of_month] = match self.scope {
            LimitScope::Account => ["rate", "month"],
            LimitScope::Token => ["token-rate", "token-month"],
        };
        let rate = self.rate().map(|rate| LimitStatus {
            name: of_rate,
            quota: rate.times.get().into(),
            window: rate.window,
            remaining: self.rate,
        });
        let monthly = self.limits.monthly.zip(self.month);
        let month = monthly.map(|(quota, month)| LimitStatus {
            name: of_month,
            quota: quota.get(),
            window: month.end.duration_since(month.start).unwrap_or_default(),
            remaining: Some(RemainingQuota {
                conversions: quota
                    .get()
                    .saturating_sub(month.conversions + self.in_progress),
                resets_in: self.left_of(month),
            }),
        });
        rate.into_iter().chain(month)
    }
}

impl Quotas {
    /// Limits accounts to these, unless the operator has set others for one.
    pub fn new(server: Limits) -> Quotas {
        Quotas {
            server,
            rates: RateLimiter::default(),
            in_progress: InProgress::default(),
        }
    }

    /// The limits of the caller's account.
    pub fn account_limits(&self, caller: &Caller) -> Limits {
        caller.restrictions().limits(self.server)
    }

    /// The conversions that the caller's account and token may have in a month.
    pub fn monthly(&self, caller: &Caller) -> MonthlyQuotas {
        MonthlyQuotas {
            account: self.account_limits(caller).monthly,
            token: caller.token_limits().monthly,
        }
    }

    /// The error for a conversion that was not recorded because the month is full by now.
    pub fn exceeded(&self, store: &Store, caller: &Caller, of_token: bool) -> QuotaExceeded {
        let mut layers = self.layers(store, caller);
        for layer in &mut layers {
            let (account, token) = layer.key;
            if layer.limits.monthly.is_some() {
                layer.month = store.known_usage_in_month(account, token, layer.now);
            }
        }
        let layer = &layers[usize::from(of_token)];
        QuotaExceeded {
            scope: layer.scope,
            limit: ExceededLimit::Month {
                quota: layer.limits.monthly.unwrap_or(NonZeroU64::MIN),
            },
            retry_after: layer
                .month
                .map_or(Duration::from_secs(1), |month| layer.left_of(month)),
            limits: statuses(&layers),
        }
    }

    /// Checks whether the caller may have one conversion more, before its body is read. The event
    /// loop calls it, so it reads memory alone: a month that is not known there passes, and
    /// [`Quotas::take`] reads the disk.
    ///
    /// # Errors
    /// A limit is used up.
    pub fn check(&self, store: &Store, caller: &Caller) -> Result<(), QuotaExceeded> {
        let mut layers = self.layers(store, caller);
        for layer in &mut layers {
            let (account, token) = layer.key;
            let (now, monthly) = (layer.now, layer.limits.monthly);
            layer.month = monthly.and_then(|_| store.known_usage_in_month(account, token, now));
            layer.in_progress = self.count(layer.key);
        }
        let (limited, rates) = rates(&layers);
        let checked = self.rates.check(&rates, monotonic::now());
        checked.map_err(|(index, wait)| rate_exceeded(&mut layers, limited[index], wait))?;
        check_months(&layers)
    }

    /// Takes one conversion.
    ///
    /// # Errors
    /// See [`QuotaError`].
    pub fn take(&self, store: &Store, caller: &Caller) -> Result<QuotaGuard, QuotaError> {
        let mut layers = self.layers(store, caller);
        // It counts from now on, before further checks, so that of two at the same time neither
        // overlooks the other.
        let mut guard = self.begin(&mut layers);
        for layer in &mut layers {
            let (account, token) = layer.key;
            if layer.limits.monthly.is_some() {
                layer.month = Some(store.usage_in_month(account, token, layer.now)?);
            }
        }
        check_months(&layers)?;
        let (limited, rates) = rates(&layers);
        let taken = self.rates.take(&rates, monotonic::now());
        let taken =
            taken.map_err(|(index, wait)| rate_exceeded(&mut layers, limited[index], wait))?;
        for (index, left) in limited.into_iter().zip(taken) {
            layers[index].rate = Some(RemainingQuota {
                conversions: left.times.into(),
                resets_in: left.full_after,
            });
        }
        for layer in &mut layers {
            layer.in_progress += 1;
        }
        guard.limits = statuses(&layers);
        Ok(guard)
    }

    /// The limits of the account and the token.
    fn layers(&self, store: &Store, caller: &Caller) -> [Layer; 2] {
        let (now, replicas) = (store.now(), store.replicas());
        let layer = |scope, token, limits| Layer {
            scope,
            key: (caller.account, token),
            limits,
            now,
            replicas,
            month: None,
            in_progress: 0,
            rate: None,
        };
        [
            layer(LimitScope::Account, None, self.account_limits(caller)),
            layer(LimitScope::Token, Some(caller.token), caller.token_limits()),
        ]
    }

    /// Counts a conversion as in progress, and gives each layer the number of the others.
    fn begin(&self, layers: &mut [Layer; 2]) -> QuotaGuard {
        let mut all = self.in_progress.lock();
        for layer in &mut *layers {
            let count = all.entry(layer.key).or_default();
            layer.in_progress = *count;
            *count += 1;
        }
        QuotaGuard {
            in_progress: self.in_progress.clone(),
            keys: layers.map(|layer| layer.key),
            limits: Vec::new(),
        }
    }

    fn count(&self, key: Key) -> u64 {
        self.in_progress.lock().get(&key).copied().unwrap_or(0)
    }
}

impl InProgress {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, u64>> {
        // A map of counts is whole at all times, even after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The indices of the layers that have a rate, and their rates.
fn rates(layers: &[Layer]) -> (Vec<usize>, Vec<(Key, Rate)>) {
    let layers = layers.iter().enumerate();
    layers
        .filter_map(|(index, layer)| Some((index, (layer.key, layer.rate()?))))
        .unzip()
}

fn statuses(layers: &[Layer]) -> Vec<LimitStatus> {
    layers.iter().flat_map(Layer::statuses).collect()
}

fn check_months(layers: &[Layer]) -> Result<(), QuotaExceeded> {
    for layer in layers {
        if let Some((limit, retry_after)) = layer.check_month() {
            return Err(QuotaExceeded {
                scope: layer.scope,
                limit,
                retry_after,
                limits: statuses(layers),
            });
        }
    }
    Ok(())
}

fn rate_exceeded(layers: &mut [Layer], index: usize, wait: RateExceeded) -> QuotaExceeded {
    let layer = &mut layers[index];
    layer.rate = Some(RemainingQuota {
        conversions: 0,
        resets_in: wait.next_after,
    });
    let times = layer.limits.per_minute.map_or(0, NonZeroU32::get);
    QuotaExceeded {
        scope: layer.scope,
        limit: ExceededLimit::Rate { times },
        retry_after: wait.next_after,
        limits: statuses(layers),
    }
}

impl QuotaGuard {
    /// The limits of the account and the token, with this conversion taken.
    pub fn limits(&self) -> &[LimitStatus] {
        &self.limits
    }
}

impl Drop for QuotaGuard {
    fn drop(&mut self) {
        let mut all = self.in_progress.lock();
        for key in self.keys {
            if let Some(count) = all.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    all.remove(&key);
                }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::Folder;
    use crate::store::tests::shared::two;
    use crate::store::{RecordError, TokenSettings, UsageEntry};
    use std::sync::atomic::Ordering;

    fn limits(per_minute: u32, monthly: u64) -> Limits {
        Limits {
            per_minute: NonZeroU32::new(per_minute),
            monthly: NonZeroU64::new(monthly),
        }
    }

    #[test]
    fn without_limits_there_are_none_to_tell() {
        let folder = Folder::new();
        let (store, account) = account(&folder);
        let caller = &Caller::plain(account);
        let quotas = Quotas::new(limits(0, 0));
        for _ in 0..100 {
            quotas.check(&store, caller).unwrap();
            assert_eq!(quotas.take(&store, caller).unwrap().limits(), []);
        }
    }

    #[test]
    fn the_rate_is_told_and_kept() {
        let folder = Folder::new();
        let (store, account) = account(&folder);
        let caller = &Caller::plain(account);
        let quotas = Quotas::new(limits(2, 0));
        let first = quotas.take(&store, caller).unwrap();
        let [limit] = first.limits() else {
            panic!("{:?}", first.limits());
        };
        let remaining = limit.remaining.unwrap();
        assert_eq!((limit.name, limit.quota), ("rate", 2));
        assert_eq!(remaining.conversions, 1);
        assert_eq!(remaining.resets_in, Duration::from_secs(30));
        quotas.take(&store, caller).unwrap();
        let exceeded = exceeded(&quotas, &store, caller);
        assert_eq!(exceeded.limit, ExceededLimit::Rate { times: 2 });
        assert!(exceeded.retry_after <= Duration::from_secs(30));
        assert_eq!(exceeded.limits[0].remaining.unwrap().conversions, 0);
        let checked = quotas.check(&store, caller).unwrap_err();
        assert_eq!(checked.limit, exceeded.limit);
    }

    #[test]
    fn the_month_counts_the_history_and_what_is_in_progress() {
        let folder = Folder::new();
        let (store, account) = account(&folder);
        let caller = &Caller::plain(account);
        let quotas = Quotas::new(limits(0, 2));
        let quota = NonZeroU64::new(2).unwrap();
        store.record_usage(account, &entry()).unwrap();
        let failing = quotas.take(&store, caller).unwrap();
        assert_eq!(failing.limits()[0].remaining.unwrap().conversions, 0);
        let third = exceeded(&quotas, &store, caller);
        assert_eq!(
            (third.limit, third.retry_after),
            (
                ExceededLimit::MonthInProgress { quota },
                Duration::from_secs(1)
            ),
            "the second may fail"
        );
        let before_its_body = quotas.check(&store, caller).unwrap_err();
        assert_eq!(before_its_body.limit, third.limit);
        drop(failing);

        let succeeding = quotas.take(&store, caller).unwrap();
        store.record_usage(account, &entry()).unwrap();
        drop(succeeding);
        let third = exceeded(&quotas, &store, caller);
        assert_eq!(third.limit, ExceededLimit::Month { quota });
        let month = store
            .usage_in_month(account, None, SystemTime::now())
            .unwrap();
        let left = month.end.duration_since(SystemTime::now()).unwrap();
        let wait = third.retry_after.as_secs();
        assert!(
            wait.abs_diff(left.as_secs()) <= 2,
            "until the next month: {wait}"
        );
        assert!(quotas.check(&store, caller).is_err());
        assert!(
            quotas.in_progress.lock().is_empty(),
            "a rejected one is in progress"
        );
    }

    #[test]
    fn a_month_that_others_have_filled_meanwhile_is_told() {
        let folder = Folder::new();
        let (store, account) = account(&folder);
        let caller = &Caller::plain(account);
        let quotas = Quotas::new(limits(0, 2));
        let guard = quotas.take(&store, caller).unwrap();
        for _ in 0..2 {
            store.record_usage(account, &entry()).unwrap();
        }
        let monthly = quotas.monthly(caller);
        assert_eq!((monthly.account, monthly.token), (NonZeroU64::new(2), None));
        let refused = store.record_usage_within(account, &entry(), monthly);
        assert!(matches!(
            refused,
            Err(RecordError::QuotaExceeded { of_token: false })
        ));
        let exceeded = quotas.exceeded(&store, caller, false);
        let quota = NonZeroU64::new(2).unwrap();
        assert_eq!(exceeded.limit, ExceededLimit::Month { quota });
        assert_eq!(exceeded.scope, LimitScope::Account);
        assert!(exceeded.retry_after > Duration::ZERO);
        assert_eq!(exceeded.limits[0].remaining.unwrap().conversions, 0);
        drop(guard);
        assert_eq!(store.usage_totals(account).unwrap().conversions, 2);
    }

    #[test]
    fn each_of_several_servers_allows_its_part_of_a_rate() {
        let (engine, store, _other) = two();
        let account = store.create_account("owner@example.org", None).unwrap().id;
        let caller = &Caller::plain(account);
        for (replicas, allowed) in [(1, 10), (2, 5), (3, 4), (10, 1), (99, 1)] {
            engine.replicas.store(replicas, Ordering::SeqCst);
            let quotas = Quotas::new(limits(10, 0));
            let first = quotas.take(&store, caller).unwrap();
            assert_eq!(first.limits()[0].quota, allowed);
            let more = (1..20).filter(|_| quotas.take(&store, caller).is_ok());
            assert_eq!(more.count() as u64 + 1, allowed, "{replicas}");
            // The set limit is reported.
            let exceeded = exceeded(&quotas, &store, caller);
            assert_eq!(exceeded.limit, ExceededLimit::Rate { times: 10 });
        }
    }

    #[test]
    fn a_token_s_limits_hold_beside_the_account_s() {
        let folder = Folder::new();
        let (store, account) = account(&folder);
        let shop = TokenSettings {
            name: "shop".to_owned(),
            ends: None,
            limits: limits(2, 3),
            preset: String::new(),
        };
        let token = store.create_token(account, shop).unwrap();
        let shop = &store
            .authenticate(&store.token_text(account, &token))
            .unwrap();
        let plain = &Caller::plain(account);
        let quotas = Quotas::new(limits(5, 0));
        let first = quotas.take(&store, shop).unwrap();
        let told: Vec<_> = first
            .limits()
            .iter()
            .map(|it| (it.name, it.quota, it.remaining.map(|left| left.conversions)))
            .collect();
        assert_eq!(
            told,
            [
                ("rate", 5, Some(4)),
                ("token-rate", 2, Some(1)),
                ("token-month", 3, Some(2))
            ]
        );
        quotas.take(&store, shop).unwrap();
        let third = exceeded(&quotas, &store, shop);
        assert_eq!(third.scope, LimitScope::Token);
        assert_eq!(third.limit, ExceededLimit::Rate { times: 2 });
        for _ in 0..3 {
            quotas.take(&store, plain).unwrap();
        }
        let sixth = exceeded(&quotas, &store, plain);
        assert_eq!(sixth.scope, LimitScope::Account, "refusals take nothing");
        assert_eq!(sixth.limit, ExceededLimit::Rate { times: 5 });
    }

    #[test]
    fn a_token_s_month_is_never_exceeded_by_many_at_once() {
        let folder = Folder::new();
        let (store, account) = account(&folder);
        let settings = TokenSettings {
            name: "shop".to_owned(),
            ends: None,
            limits: limits(0, 10),
            preset: String::new(),
        };
        let token = store.create_token(account, settings).unwrap();
        let shop = &store
            .authenticate(&store.token_text(account, &token))
            .unwrap();
        let quotas = Quotas::new(limits(0, 0));
        let converted = std::thread::scope(|scope| {
            let convert = || {
                let mut converted = 0;
                for _ in 0..10 {
                    let Ok(guard) = quotas.take(&store, shop) else {
                        continue;
                    };
                    let entry = UsageEntry {
                        token: shop.token,
                        ..entry()
                    };
                    store.record_usage(account, &entry).unwrap();
                    drop(guard);
                    converted += 1;
                }
                converted
            };
            let threads: Vec<_> = (0..64).map(|_| scope.spawn(convert)).collect();
            let counts = threads.into_iter().map(|thread| thread.join().unwrap());
            counts.sum::<u64>()
        });
        assert_eq!(converted, 10);
        let now = SystemTime::now();
        let month = store.usage_in_month(account, Some(shop.token), now);
        assert_eq!(month.unwrap().conversions, 10);
        assert!(quotas.take(&store, &Caller::plain(account)).is_ok());
    }

    fn exceeded(quotas: &Quotas, store: &Store, caller: &Caller) -> QuotaExceeded {
        match quotas.take(store, caller).err() {
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
