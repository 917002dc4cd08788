//! Single-flight: all callers who want the same URL at the same time share one fetch. The number of
//! fetches at a time is bounded, and accounts take turns to begin theirs.
//!
//! A fetch runs on a thread of its own, and no other thread is blocked by it: a caller holds a
//! [`Pending`], is woken when the fetch ends, and leaves by dropping it. A fetch that every caller
//! has left ends with the next bytes that arrive, or by its time limit.

use super::cache::Cache;
use super::client::Download;
use super::download_budget::DownloadBudget;
use super::error::FetchError;
use super::settings::Settings;
use crate::admission::FairQueue;
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use ureq::http::Uri;

/// Most fetches from one host at a time, the same as browsers have. A slow host does not take all
/// fetches, and no host is flooded.
const FETCHES_PER_HOST: usize = 6;

/// The interval at which [`SingleFlight::fetch`] checks whether its caller still waits.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Fetches one URL. Before it reads more bytes it calls the function that it is given with the
/// number of bytes read so far; an error of that function ends the fetch with the same error.
type LoadFn = dyn Fn(&Uri, &dyn Fn(usize) -> Result<(), FetchError>) -> Result<Download, FetchError>
    + Send
    + Sync;

/// Called once, from another thread, when a fetch has ended.
pub type Wake = Box<dyn Fn() + Send + Sync>;

/// A picture's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The whole file.
    pub bytes: Arc<[u8]>,
    /// How it was obtained.
    pub source: Source,
}

/// How a picture was obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// It was fetched from its host for this caller.
    Host,
    /// Another caller's fetch of the same URL was under way already, and this caller joined it.
    Shared,
    /// It was in the cache.
    Cache,
}

/// All fetches by one set of settings.
pub(super) struct SingleFlight {
    settings: Settings,
    load: Box<LoadFn>,
    download_budget: DownloadBudget,
    state: Mutex<State>,
}

struct State {
    cache: Cache,
    /// The fetches that a new caller can join, by URL: somebody waits for them, and they have not
    /// ended.
    by_url: HashMap<String, Arc<SharedFetch>>,
    /// The fetches that have not begun. Each is in the queue once for every caller, under the
    /// caller's account, and begins at the first of these turns.
    queue: FairQueue<u64, Arc<SharedFetch>>,
    /// The fetches that have begun and not ended, also those that every caller has left; each with
    /// the account in whose turn it began.
    running: Vec<(u64, Arc<SharedFetch>)>,
    /// The number of the latest caller; numbers are given in ascending order.
    last_caller: u64,
}

/// One fetch, which may have many callers.
struct SharedFetch {
    uri: Uri,
    url: String,
    /// How many callers have not left. Changed only while the state is locked; a fetch whose count
    /// has come to 0 cannot be joined any more.
    callers: AtomicUsize,
    /// The functions to call when it ends, each with its caller's number.
    wakes: Mutex<Vec<(u64, Wake)>>,
    outcome: OnceLock<Result<Arc<[u8]>, FetchError>>,
}

impl SharedFetch {
    fn is_to_host_of(&self, other: &SharedFetch) -> bool {
        let host = |fetch: &SharedFetch| fetch.uri.host().map(str::to_ascii_lowercase);
        host(self) == host(other)
    }

    fn wakes(&self) -> MutexGuard<'_, Vec<(u64, Wake)>> {
        // Each change of the Vec is a single step, so that a panic cannot leave it half changed.
        self.wakes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One caller's wait for a picture. Dropping it leaves the fetch.
pub struct Pending(Wait);

enum Wait {
    Cached(Fetched),
    Fetch {
        single_flight: Arc<SingleFlight>,
        fetch: Arc<SharedFetch>,
        caller: u64,
        source: Source,
        deadline: Instant,
    },
}

impl Pending {
    /// The picture, or why it could not be fetched; `None` while that is not known and the deadline
    /// has not passed.
    pub fn outcome(&self, now: Instant) -> Option<Result<Fetched, FetchError>> {
        match &self.0 {
            Wait::Cached(fetched) => Some(Ok(fetched.clone())),
            Wait::Fetch {
                single_flight,
                fetch,
                source,
                deadline,
                ..
            } => {
                let fetched = |bytes| Fetched {
                    bytes,
                    source: *source,
                };
                if let Some(outcome) = fetch.outcome.get() {
                    return Some(outcome.clone().map(fetched));
                }
                (*deadline <= now).then(|| {
                    Err(if single_flight.lock().is_running(fetch) {
                        FetchError::Timeout
                    } else {
                        FetchError::Busy
                    })
                })
            }
        }
    }

    /// When [`Pending::outcome`] becomes an error if the fetch has not ended by then; `None` if the
    /// outcome has been known from the start.
    pub fn deadline(&self) -> Option<Instant> {
        match &self.0 {
            Wait::Cached(_) => None,
            Wait::Fetch { deadline, .. } => Some(*deadline),
        }
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // URLs may hold secrets.
        f.write_str("Pending")
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Wait::Fetch {
            single_flight,
            fetch,
            caller,
            ..
        } = &self.0
        {
            fetch.wakes().retain(|(other, _)| other != caller);
            let mut state = single_flight.lock();
            state.leave(fetch);
            // The fetch may have left the queue, and another one may begin now.
            single_flight.start_queued(&mut state);
        }
    }
}

impl SingleFlight {
    pub(super) fn new(settings: &Settings, load: Box<LoadFn>) -> Arc<SingleFlight> {
        Arc::new(SingleFlight {
            settings: settings.clone(),
            load,
            download_budget: DownloadBudget::new(settings.downloads_bytes()),
            state: Mutex::new(State {
                cache: Cache::new(settings.cache_bytes),
                by_url: HashMap::new(),
                queue: FairQueue::default(),
                running: Vec::new(),
                last_caller: 0,
            }),
        })
    }

    /// Takes the picture from the cache, joins a fetch that is under way, or queues a new one.
    /// Returns at once; `wake` is called when [`Pending::outcome`] is known, unless that is so
    /// already.
    ///
    /// # Errors
    /// [`FetchError::Busy`] if the queue is full, for this account or in all.
    pub(super) fn begin(
        self: &Arc<SingleFlight>,
        account: u64,
        uri: Uri,
        wake: Wake,
    ) -> Result<Pending, FetchError> {
        let now = Instant::now();
        let mut state = self.lock();
        let url = uri.to_string();
        if let Some(bytes) = state.cache.find(&url, now) {
            let source = Source::Cache;
            return Ok(Pending(Wait::Cached(Fetched { bytes, source })));
        }
        let (fetch, source) = match state.by_url.get(&url) {
            Some(fetch) => (Arc::clone(fetch), Source::Shared),
            None => (state.add(uri, url), Source::Host),
        };
        if !state.is_running(&fetch) {
            // A caller who joins a queued fetch waits for it in the turns of their own account too.
            state.queue.push(account, Arc::clone(&fetch));
        }
        state.last_caller += 1;
        let caller = state.last_caller;
        fetch.callers.fetch_add(1, Ordering::Relaxed);
        fetch.wakes().push((caller, wake));
        self.start_queued(&mut state);
        let (all, own) = (state.queue.len(), state.queue.len_of(account));
        let is_full = all > self.settings.queue || own > self.settings.queue_per_account;
        let is_rejected = is_full && !state.is_running(&fetch);
        drop(state);
        let pending = Pending(Wait::Fetch {
            single_flight: Arc::clone(self),
            fetch,
            caller,
            source,
            deadline: now + self.settings.timeout,
        });
        if is_rejected {
            return Err(FetchError::Busy);
        }
        Ok(pending)
    }

    /// Does the same as [`SingleFlight::begin`], but blocks until the outcome is known or
    /// `is_waiting` returns false.
    pub(super) fn fetch(
        self: &Arc<SingleFlight>,
        uri: Uri,
        is_waiting: &dyn Fn() -> bool,
    ) -> Result<Fetched, FetchError> {
        let (sender, woken) = mpsc::channel();
        let wake = move || {
            sender.send(()).ok();
        };
        let pending = self.begin(0, uri, Box::new(wake))?;
        loop {
            let now = Instant::now();
            let outcome = pending.outcome(now);
            if let Some(Ok(fetched)) = outcome {
                return Ok(fetched);
            }
            if !is_waiting() {
                return Err(FetchError::Abandoned);
            }
            if let Some(outcome) = outcome {
                return outcome;
            }
            let left = pending
                .deadline()
                .map_or(POLL_INTERVAL, |deadline| deadline - now);
            woken.recv_timeout(left.min(POLL_INTERVAL)).ok();
        }
    }

    /// Begins as many queued fetches as the limits allow.
    fn start_queued(self: &Arc<SingleFlight>, state: &mut State) {
        while let Some((account, fetch)) = state.next(&self.settings) {
            state.running.push((account, Arc::clone(&fetch)));
            let (single_flight, taken) = (Arc::clone(self), Arc::clone(&fetch));
            let started = thread::Builder::new()
                .name("fetch".to_owned())
                .spawn(move || single_flight.run(account, &taken));
            if let Err(error) = started {
                log::warn!("a thread for fetching did not start: {error}");
                state.finish(&fetch, Err(FetchError::Busy));
            }
        }
    }

    fn run(self: &Arc<SingleFlight>, account: u64, fetch: &Arc<SharedFetch>) {
        let reserved = self.download_budget.begin(account);
        let may_go_on = |held: usize| {
            if fetch.callers.load(Ordering::Relaxed) == 0 {
                return Err(FetchError::Abandoned);
            }
            if !reserved.grow_to(held) {
                return Err(FetchError::Busy);
            }
            Ok(())
        };
        let load = AssertUnwindSafe(|| (self.load)(&fetch.uri, &may_go_on));
        let outcome = catch_unwind(load).unwrap_or(Err(FetchError::Failed));
        let mut state = self.lock();
        state.finish(fetch, outcome);
        self.start_queued(&mut state);
    }

    /// The number of fetches under way, and the number of callers in the queue.
    pub(super) fn load(&self) -> (usize, usize) {
        let state = self.lock();
        (state.running.len(), state.queue.len())
    }

    /// Whether any fetch has not ended.
    #[cfg(test)]
    pub(super) fn has_running(&self) -> bool {
        !self.lock().running.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that runs under the lock panics in the middle of a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn add(&mut self, uri: Uri, url: String) -> Arc<SharedFetch> {
        let fetch = Arc::new(SharedFetch {
            uri,
            url: url.clone(),
            callers: AtomicUsize::new(0),
            wakes: Mutex::default(),
            outcome: OnceLock::new(),
        });
        self.by_url.insert(url, Arc::clone(&fetch));
        fetch
    }

    /// Takes the next fetch in turn that the limits allow: in all, of its account, and from its
    /// host.
    fn next(&mut self, settings: &Settings) -> Option<(u64, Arc<SharedFetch>)> {
        if self.running.len() >= settings.fetches {
            return None;
        }
        let running = &self.running;
        let is_allowed = |account, fetch: &Arc<SharedFetch>| {
            let of_account = running.iter().filter(|(other, _)| *other == account);
            let to_host = running
                .iter()
                .filter(|(_, other)| other.is_to_host_of(fetch));
            of_account.count() < settings.fetches_per_account && to_host.count() < FETCHES_PER_HOST
        };
        let (account, fetch) = self.queue.pop_any(is_allowed)?;
        self.dequeue(&fetch);
        Some((account, fetch))
    }

    /// Removes the fetch from the queue, from the turns of all of its callers.
    fn dequeue(&mut self, fetch: &Arc<SharedFetch>) {
        self.queue.retain(|other| !Arc::ptr_eq(other, fetch));
    }

    /// Publishes the outcome, keeps the picture in the cache, and wakes the callers.
    fn finish(&mut self, fetch: &Arc<SharedFetch>, outcome: Result<Download, FetchError>) {
        self.running.retain(|(_, other)| !Arc::ptr_eq(other, fetch));
        self.forget(fetch);
        let outcome = outcome.map(|Download { bytes, lifetime }| {
            self.cache
                .keep(&fetch.url, &bytes, lifetime, Instant::now());
            bytes
        });
        fetch.outcome.get_or_init(|| outcome);
        for (_, wake) in fetch.wakes().drain(..) {
            wake();
        }
    }

    /// Counts a caller less; a fetch without callers is not begun and not joined any more.
    fn leave(&mut self, fetch: &Arc<SharedFetch>) {
        if fetch.callers.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.dequeue(fetch);
            self.forget(fetch);
        }
    }

    /// From now on no caller can join the fetch.
    fn forget(&mut self, fetch: &Arc<SharedFetch>) {
        let joined = self.by_url.get(&fetch.url);
        if joined.is_some_and(|other| Arc::ptr_eq(other, fetch)) {
            self.by_url.remove(&fetch.url);
        }
    }

    fn is_running(&self, fetch: &Arc<SharedFetch>) -> bool {
        self.running
            .iter()
            .any(|(_, other)| Arc::ptr_eq(other, fetch))
    }
}

#[cfg(test)]
mod tests;
