//! Who waits for which picture: one fetch for all who want the same URL at the same time, so many fetches at once, and
//! these shared fairly between accounts.
//!
//! A flight is one fetch on a thread of its own. Nobody else waits on a thread for it: whoever asked has a [`Pending`], is
//! woken when the flight ends, and may leave at any time. A flight that nobody waits for ends with the next bytes that
//! arrive, or by its time limit.

use super::cache::Cache;
use super::client::Download;
use super::downloads::Downloads;
use super::{FetchError, Fetched, Settings, Source};
use crate::admission::FairQueue;
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use ureq::http::Uri;

/// Flights to one host at a time, as browsers do it. A slow one leaves room for the others, and none is flooded.
const FLIGHTS_TO_A_HOST: usize = 6;

/// How often [`Flights::fetch`] looks whether its caller waits still.
const LOOK_AROUND: Duration = Duration::from_millis(50);

/// Fetches one URL. The function is called with the bytes held so far, before there are more, and says why to stop.
type Load = dyn Fn(&Uri, &dyn Fn(usize) -> Result<(), FetchError>) -> Result<Download, FetchError>
    + Send
    + Sync;

/// Called once, from another thread, when a flight has ended.
pub type Wake = Box<dyn Fn() + Send + Sync>;

/// All fetches of one set of settings.
pub(super) struct Flights {
    settings: Settings,
    load: Box<Load>,
    downloads: Downloads,
    state: Mutex<State>,
}

struct State {
    cache: Cache,
    /// By URL, those that somebody waits for.
    wanted: HashMap<String, Arc<Flight>>,
    /// Those of them that have not begun, for each account that waits for them.
    queue: FairQueue<u64, Arc<Flight>>,
    /// Those that have begun, wanted or not, each with the account in whose turn it began.
    flying: Vec<(u64, Arc<Flight>)>,
    /// Counts those who asked.
    asked: u64,
}

struct Flight {
    uri: Uri,
    url: String,
    /// How many wait for it. Changed under the lock alone; a flight that has come to 0 is joined no more.
    waiting: AtomicUsize,
    /// Whom to wake, by their number.
    wakes: Mutex<Vec<(u64, Wake)>>,
    outcome: OnceLock<Result<Arc<[u8]>, FetchError>>,
}

impl Flight {
    fn is_to_host_of(&self, other: &Flight) -> bool {
        let host = |flight: &Flight| flight.uri.host().map(str::to_ascii_lowercase);
        host(self) == host(other)
    }

    fn wakes(&self) -> MutexGuard<'_, Vec<(u64, Wake)>> {
        // A Vec of functions is whole at all times, whoever panicked.
        self.wakes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A picture that was asked for. Dropping it leaves the flight.
pub struct Pending(Wait);

enum Wait {
    Cached(Fetched),
    Flight {
        flights: Arc<Flights>,
        flight: Arc<Flight>,
        /// Of whoever asked.
        number: u64,
        source: Source,
        end: Instant,
    },
}

impl Pending {
    /// The picture or why there is none, once that is known.
    pub fn outcome(&self, now: Instant) -> Option<Result<Fetched, FetchError>> {
        match &self.0 {
            Wait::Cached(fetched) => Some(Ok(fetched.clone())),
            Wait::Flight {
                flights,
                flight,
                source,
                end,
                ..
            } => {
                let fetched = |bytes| Fetched {
                    bytes,
                    source: *source,
                };
                if let Some(outcome) = flight.outcome.get() {
                    return Some(outcome.clone().map(fetched));
                }
                (*end <= now).then(|| {
                    Err(if flights.lock().is_flying(flight) {
                        FetchError::Timeout
                    } else {
                        FetchError::Busy
                    })
                })
            }
        }
    }

    /// When [`Pending::outcome`] gives up; `None` if the outcome is there from the start.
    pub fn deadline(&self) -> Option<Instant> {
        match &self.0 {
            Wait::Cached(_) => None,
            Wait::Flight { end, .. } => Some(*end),
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
        if let Wait::Flight {
            flights,
            flight,
            number,
            ..
        } = &self.0
        {
            flight.wakes().retain(|(other, _)| other != number);
            let mut state = flights.lock();
            state.leave(flight);
            // One that waited may have made way for others.
            flights.start_planned(&mut state);
        }
    }
}

impl Flights {
    pub(super) fn new(settings: &Settings, load: Box<Load>) -> Arc<Flights> {
        Arc::new(Flights {
            settings: settings.clone(),
            load,
            downloads: Downloads::new(settings.downloads_bytes()),
            state: Mutex::new(State {
                cache: Cache::new(settings.cache_bytes),
                wanted: HashMap::new(),
                queue: FairQueue::default(),
                flying: Vec::new(),
                asked: 0,
            }),
        })
    }

    /// From the cache, from a flight that is under way, or from a new one. Does not wait; `wake` is called when
    /// [`Pending::outcome`] is there, unless it is there at once.
    ///
    /// # Errors
    /// [`FetchError::Busy`]: too many wait for their turn already, of this account or in all.
    pub(super) fn begin(
        self: &Arc<Flights>,
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
        let (flight, source) = match state.wanted.get(&url) {
            Some(flight) => (Arc::clone(flight), Source::Shared),
            None => (state.plan(uri, url), Source::Host),
        };
        if !state.is_flying(&flight) {
            // Whoever joins a flight waits for it in their own turn too.
            state.queue.push(account, Arc::clone(&flight));
        }
        state.asked += 1;
        let number = state.asked;
        flight.waiting.fetch_add(1, Ordering::Relaxed);
        flight.wakes().push((number, wake));
        self.start_planned(&mut state);
        let (all, own) = (state.queue.len(), state.queue.len_of(account));
        let is_too_many = all > self.settings.queue || own > self.settings.queue_per_account;
        let is_refused = is_too_many && !state.is_flying(&flight);
        drop(state);
        let pending = Pending(Wait::Flight {
            flights: Arc::clone(self),
            flight,
            number,
            source,
            end: now + self.settings.timeout,
        });
        if is_refused {
            return Err(FetchError::Busy);
        }
        Ok(pending)
    }

    /// As [`Flights::begin`], and waits for as long as `is_waiting` says so.
    pub(super) fn fetch(
        self: &Arc<Flights>,
        uri: Uri,
        is_waiting: &dyn Fn() -> bool,
    ) -> Result<Fetched, FetchError> {
        let (sender, ended) = mpsc::channel();
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
            let left = pending.deadline().map_or(LOOK_AROUND, |end| end - now);
            ended.recv_timeout(left.min(LOOK_AROUND)).ok();
        }
    }

    /// Begins what there is room for.
    fn start_planned(self: &Arc<Flights>, state: &mut State) {
        while let Some((account, flight)) = state.next(&self.settings) {
            state.flying.push((account, Arc::clone(&flight)));
            let (flights, taken) = (Arc::clone(self), Arc::clone(&flight));
            let started = thread::Builder::new()
                .name("fetch".to_owned())
                .spawn(move || flights.fly(account, &taken));
            if let Err(error) = started {
                log::warn!("a thread for fetching did not start: {error}");
                state.land(&flight, Err(FetchError::Busy));
            }
        }
    }

    fn fly(self: &Arc<Flights>, account: u64, flight: &Arc<Flight>) {
        let download = self.downloads.begin(account);
        let may_go_on = |held: usize| {
            if flight.waiting.load(Ordering::Relaxed) == 0 {
                return Err(FetchError::Abandoned);
            }
            if !download.grow_to(held) {
                return Err(FetchError::Busy);
            }
            Ok(())
        };
        let load = AssertUnwindSafe(|| (self.load)(&flight.uri, &may_go_on));
        let outcome = catch_unwind(load).unwrap_or(Err(FetchError::Failed));
        let mut state = self.lock();
        state.land(flight, outcome);
        self.start_planned(&mut state);
    }

    /// How many are under way, and how many wait for their turn.
    pub(super) fn load(&self) -> (usize, usize) {
        let state = self.lock();
        (state.flying.len(), state.queue.len())
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
            wakes: Mutex::default(),
            outcome: OnceLock::new(),
        });
        self.wanted.insert(url, Arc::clone(&flight));
        flight
    }

    /// The next in turn that has room: in all, of its account, and at its host.
    fn next(&mut self, settings: &Settings) -> Option<(u64, Arc<Flight>)> {
        if self.flying.len() >= settings.fetches {
            return None;
        }
        let flying = &self.flying;
        let has_room = |account, flight: &Arc<Flight>| {
            let of_account = flying.iter().filter(|(other, _)| *other == account);
            let to_host = flying
                .iter()
                .filter(|(_, other)| other.is_to_host_of(flight));
            of_account.count() < settings.fetches_per_account && to_host.count() < FLIGHTS_TO_A_HOST
        };
        let (account, flight) = self.queue.pop_any(has_room)?;
        self.dequeue(&flight);
        Some((account, flight))
    }

    /// Takes it out of the turns of all who wait for it.
    fn dequeue(&mut self, flight: &Arc<Flight>) {
        self.queue.retain(|other| !Arc::ptr_eq(other, flight));
    }

    fn land(&mut self, flight: &Arc<Flight>, outcome: Result<Download, FetchError>) {
        self.flying.retain(|(_, other)| !Arc::ptr_eq(other, flight));
        self.forget(flight);
        let outcome = outcome.map(|Download { bytes, lifetime }| {
            self.cache
                .keep(&flight.url, &bytes, lifetime, Instant::now());
            bytes
        });
        flight.outcome.get_or_init(|| outcome);
        for (_, wake) in flight.wakes().drain(..) {
            wake();
        }
    }

    fn leave(&mut self, flight: &Arc<Flight>) {
        if flight.waiting.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.dequeue(flight);
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
        self.flying
            .iter()
            .any(|(_, other)| Arc::ptr_eq(other, flight))
    }
}

#[cfg(test)]
mod tests;
