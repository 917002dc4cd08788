//! What admission decides of a request by its head, and what goes with the request until a worker has it.

use super::slab::Key;
use mio::Waker;
use std::any::Any;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// A request that is worth its body.
pub struct Admitted {
    /// Most bytes that the body may have.
    pub body_limit: u64,
    /// The workers that answer it.
    pub pool: Pool,
    /// With whose requests it waits in one queue, and with whose it takes turns.
    pub owner: Owner,
    /// What is known of it already, for the worker.
    pub ticket: Option<Box<dyn Ticket>>,
}

/// Workers that answer one kind of request. No pool waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// Conversions: seconds of work each.
    Conversions,
    /// Everything else: milliseconds each.
    Pages,
}

impl Pool {
    /// All of them, in the order of their numbers.
    pub const ALL: [Pool; 2] = [Pool::Conversions, Pool::Pages];
}

/// Among whom workers are shared fairly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// An account, by its number.
    Account(u64),
    /// Whoever sends from this address, or from this IPv6 network, where nobody has signed in.
    Address(IpAddr),
}

/// What admission has found out about a request. The worker that has the request takes it from
/// [`Clients`](super::Clients). If the client leaves before, it is dropped.
pub trait Ticket: Any + Send {
    /// Whether a worker can begin. Called on the event loop once the request is whole, and again when `wake` was used or
    /// the time that it gave is over. It never waits.
    fn prepare(&mut self, wake: &Wake) -> Preparation;

    /// Bytes of memory that it holds.
    fn held(&self) -> usize;
}

/// Whether a worker can begin with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preparation {
    /// It can.
    Ready,
    /// Something has to be waited for, until then at most.
    Waits {
        /// From the system's monotonic clock.
        until: Instant,
    },
}

/// Has the event loop ask a request's [`Ticket`] again, from any thread.
#[derive(Clone, Debug)]
pub struct Wake {
    key: Key,
    woken: Woken,
}

impl Wake {
    pub(super) fn new(key: Key, woken: &Woken) -> Wake {
        Wake {
            key,
            woken: woken.clone(),
        }
    }

    /// Says that there may be news.
    pub fn wake(&self) {
        self.woken.push(self.key);
    }
}

/// The requests whose tickets are to be asked again.
#[derive(Clone, Debug)]
pub(super) struct Woken {
    keys: Arc<Mutex<Vec<Key>>>,
    waker: Arc<Waker>,
}

impl Woken {
    pub(super) fn new(waker: Arc<Waker>) -> Woken {
        Woken {
            keys: Arc::default(),
            waker,
        }
    }

    /// All since the last call.
    pub(super) fn take(&self) -> Vec<Key> {
        // A Vec of keys is whole at all times, whoever panicked.
        std::mem::take(&mut *self.keys.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn push(&self, key: Key) {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.push(key);
        drop(keys);
        if let Err(error) = self.waker.wake() {
            // The request goes on when its time is over.
            log::error!("the event loop cannot be woken: {error}");
        }
    }
}
