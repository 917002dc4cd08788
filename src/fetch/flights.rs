//! Who waits for which picture: one fetch for all who want the same URL at the same time, and so many fetches at once.
//!
//! A flight is one fetch on a thread of its own, so that whoever waits for it may leave at any time: when its time is
//! over, or its own client has gone. One that nobody waits for ends with the next bytes that arrive, or by its time limit.

use super::cache::Cache;
use super::client::Download;
use super::{FetchError, Fetched, Source};
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use ureq::http::Uri;

/// Flights at a time. Each is a thread and at most 8 MiB; those who wait for a watermark are workers, one for each core.
const FLIGHTS: usize = 16;

/// Of these to one host, as browsers do it. A slow one leaves room for the others, and none is flooded.
const FLIGHTS_TO_A_HOST: usize = 6;

/// How often those who wait look whether their client is there still.
const LOOK_AROUND: Duration = Duration::from_millis(50);

/// Fetches one URL, for as long as the function says that somebody waits for it.
type Load = dyn Fn(&Uri, &dyn Fn() -> bool) -> Result<Download, FetchError> + Send + Sync;

/// All fetches of one set of settings.
pub(super) struct Flights {
    /// Of each who waits.
    timeout: Duration,
    load: Box<Load>,
    state: Mutex<State>,
    /// A flight has begun or ended.
    moved: Condvar,
}

struct State {
    cache: Cache,
    /// By URL, those that somebody waits for.
    wanted: HashMap<String, Arc<Flight>>,
    /// Those of them that have not begun, first come first.
    queue: VecDeque<Arc<Flight>>,
    /// Those that have begun, wanted or not.
    flying: Vec<Arc<Flight>>,
}

struct Flight {
    uri: Uri,
    url: String,
    /// How many wait for it. Changed under the lock alone; a flight that has come to 0 is joined no more.
    waiting: AtomicUsize,
    outcome: OnceLock<Result<Arc<[u8]>, FetchError>>,
}

impl Flight {
    fn is_to_host_of(&self, other: &Flight) -> bool {
        let host = |flight: &Flight| flight.uri.host().map(str::to_ascii_lowercase);
        host(self) == host(other)
    }
}

impl Flights {
    pub(super) fn new(timeout: Duration, cache_bytes: usize, load: Box<Load>) -> Arc<Flights> {
        Arc::new(Flights {
            timeout,
            load,
            state: Mutex::new(State {
                cache: Cache::new(cache_bytes),
                wanted: HashMap::new(),
                queue: VecDeque::new(),
                flying: Vec::new(),
            }),
            moved: Condvar::new(),
        })
    }

    /// From the cache, from a flight that is under way, or from a new one.
    pub(super) fn fetch(
        self: &Arc<Flights>,
        uri: Uri,
        is_waiting: &dyn Fn() -> bool,
    ) -> Result<Fetched, FetchError> {
        let end = Instant::now() + self.timeout;
        let mut state = self.lock();
        let url = uri.to_string();
        if let Some(bytes) = state.cache.find(&url, Instant::now()) {
            let source = Source::Cache;
            return Ok(Fetched { bytes, source });
        }
        let (flight, source) = match state.wanted.get(&url) {
            Some(flight) => (Arc::clone(flight), Source::Shared),
            None => (state.plan(uri, url), Source::Host),
        };
        flight.waiting.fetch_add(1, Ordering::Relaxed);
        self.start_planned(&mut state);
        let (mut state, outcome) = self.wait(state, &flight, end, is_waiting);
        state.leave(&flight);
        outcome.map(|bytes| Fetched { bytes, source })
    }

    fn wait<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        flight: &Arc<Flight>,
        end: Instant,
        is_waiting: &dyn Fn() -> bool,
    ) -> (MutexGuard<'s, State>, Result<Arc<[u8]>, FetchError>) {
        let outcome = loop {
            if let Some(outcome) = flight.outcome.get() {
                break outcome.clone();
            }
            if !is_waiting() {
                break Err(FetchError::Abandoned);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break Err(if state.is_flying(flight) {
                    FetchError::Timeout
                } else {
                    FetchError::Busy
                });
            }
            let waited = self.moved.wait_timeout(state, left.min(LOOK_AROUND));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        };
        (state, outcome)
    }

    /// Begins what there is room for.
    fn start_planned(self: &Arc<Flights>, state: &mut State) {
        while let Some(flight) = state.next() {
            state.flying.push(Arc::clone(&flight));
            let (flights, taken) = (Arc::clone(self), Arc::clone(&flight));
            let started = thread::Builder::new()
                .name("fetch".to_owned())
                .spawn(move || flights.fly(&taken));
            if let Err(error) = started {
                log::warn!("a thread for fetching did not start: {error}");
                state.land(&flight, Err(FetchError::Busy));
            }
        }
        self.moved.notify_all();
    }

    fn fly(self: &Arc<Flights>, flight: &Arc<Flight>) {
        let is_wanted = || flight.waiting.load(Ordering::Relaxed) > 0;
        let load = AssertUnwindSafe(|| (self.load)(&flight.uri, &is_wanted));
        let outcome = catch_unwind(load).unwrap_or(Err(FetchError::Failed));
        let mut state = self.lock();
        state.land(flight, outcome);
        self.start_planned(&mut state);
    }

    /// Whether threads are at work still.
    #[cfg(test)]
    pub(super) fn has_flights(&self) -> bool {
        !self.lock().flying.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that runs under the lock panics half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn plan(&mut self, uri: Uri, url: String) -> Arc<Flight> {
        let flight = Arc::new(Flight {
            uri,
            url: url.clone(),
            waiting: AtomicUsize::new(0),
            outcome: OnceLock::new(),
        });
        self.wanted.insert(url, Arc::clone(&flight));
        self.queue.push_back(Arc::clone(&flight));
        flight
    }

    /// The first of the queue that has room, here and at its host.
    fn next(&mut self) -> Option<Arc<Flight>> {
        if self.flying.len() >= FLIGHTS {
            return None;
        }
        let flying = &self.flying;
        let has_room = |flight: &Arc<Flight>| {
            let same_host = |other: &&Arc<Flight>| other.is_to_host_of(flight);
            flying.iter().filter(same_host).count() < FLIGHTS_TO_A_HOST
        };
        let index = self.queue.iter().position(has_room)?;
        self.queue.remove(index)
    }

    fn land(&mut self, flight: &Arc<Flight>, outcome: Result<Download, FetchError>) {
        self.flying.retain(|other| !Arc::ptr_eq(other, flight));
        self.forget(flight);
        let outcome = outcome.map(|Download { bytes, lifetime }| {
            self.cache
                .keep(&flight.url, &bytes, lifetime, Instant::now());
            bytes
        });
        flight.outcome.get_or_init(|| outcome);
    }

    fn leave(&mut self, flight: &Arc<Flight>) {
        if flight.waiting.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.queue.retain(|other| !Arc::ptr_eq(other, flight));
            self.forget(flight);
        }
    }

    /// Nobody joins it any more.
    fn forget(&mut self, flight: &Arc<Flight>) {
        let joined = self.wanted.get(&flight.url);
        if joined.is_some_and(|other| Arc::ptr_eq(other, flight)) {
            self.wanted.remove(&flight.url);
        }
    }

    fn is_flying(&self, flight: &Arc<Flight>) -> bool {
        self.flying.iter().any(|other| Arc::ptr_eq(other, flight))
    }
}

#[cfg(test)]
mod tests;
