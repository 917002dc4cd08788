//! What is decided about a request by its head alone, and what then goes with the request until a
//! worker has it.

use super::byte_queue::ByteQueue;
use super::head::Head;
use super::rejection::Rejection;
use super::response::EarlyResponse;
use super::slab::Key;
use std::any::Any;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// What the event loop asks of the module that answers requests. Both functions run on the event
/// loop's thread, so every connection waits for them.
pub trait Admission: Send + 'static {
    /// Decides by the head whether the request's body is worth being sent.
    ///
    /// # Errors
    /// The response that rejects the request, or that needs no worker.
    fn admit(&self, head: &Head, client: IpAddr) -> Result<Admitted, EarlyResponse>;

    /// Words a rejection. `head` is missing if it could not be read, or a worker had the request.
    fn reject(&self, rejection: Rejection, head: Option<&Head>, client: IpAddr) -> EarlyResponse;
}

/// A request whose body is worth being sent.
pub struct Admitted {
    /// Most bytes that the body may have.
    pub body_limit: u64,
    /// The workers that answer it.
    pub pool: Pool,
    /// Among whose requests it waits, and with whom that owner takes turns.
    pub owner: Owner,
    /// What admission found out, for the worker.
    pub ticket: Option<Box<dyn Ticket>>,
}

/// The most bytes of the body of a small conversion: the pixels of a small picture at two bytes
/// each, which photographs as PNG seldom exceed.
const SMALL_BODY: u64 = 512 << 10;

/// The workers that answer one kind of request. No pool waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// Conversions: seconds of work each.
    Conversions,
    /// Conversions whose body is at most [`SMALL_BODY`] bytes, so that a small picture does not
    /// wait until a worker has time to see that it is one.
    SmallConversions,
    /// Everything else: milliseconds each.
    Pages,
}

impl Pool {
    /// All, in the order of their numbers.
    pub const ALL: [Pool; 3] = [Pool::Conversions, Pool::SmallConversions, Pool::Pages];

    /// The pool for a request of this one, now that the number of bytes of its body is known.
    pub(super) fn for_body(self, length: u64) -> Pool {
        match self {
            Pool::Conversions if length <= SMALL_BODY => Pool::SmallConversions,
            pool => pool,
        }
    }

    /// Whether its requests are conversions.
    pub(super) fn converts(self) -> bool {
        self != Pool::Pages
    }
}

/// Among whom workers and memory are shared fairly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// An account, by its number.
    Account(u64),
    /// The client's IPv4 address or IPv6 /64, for a request without an account.
    Address(IpAddr),
}

impl Owner {
    /// The number of the account, if it is one.
    pub fn account(self) -> Option<u64> {
        match self {
            Owner::Account(number) => Some(number),
            Owner::Address(_) => None,
        }
    }
}

/// What admission found out about a request. The worker takes it from
/// [`Clients`](super::Clients); if the client leaves before that, it is dropped.
pub trait Ticket: Any + Send {
    /// Adds the next bytes of the request's body to `body`, which the worker gets: as they are,
    /// unless the worker wants something that is within them. `to_come` is how many are known to
    /// follow. The event loop calls it while the body arrives; it must not block.
    fn receive(&mut self, bytes: &[u8], to_come: Option<u64>, body: &mut ByteQueue) {
        body.push(bytes, to_come);
    }

    /// Says whether a worker can begin. The event loop calls it once the request is complete, and
    /// again after `waker` was used or the time that it gave is over. It must not block.
    fn prepare(&mut self, waker: &Waker) -> Preparation;

    /// Bytes of memory that it holds.
    fn held(&self) -> usize;
}

/// Whether a worker can begin with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preparation {
    /// A worker can begin.
    Ready,
    /// Something is missing that arrives by itself.
    Pending {
        /// When to ask again at the latest.
        until: Instant,
    },
}

/// Has the event loop ask one request's [`Ticket`] again, from any thread.
#[derive(Clone, Debug)]
pub struct Waker {
    key: Key,
    queue: WakeQueue,
}

impl Waker {
    pub(super) fn new(key: Key, queue: &WakeQueue) -> Waker {
        Waker {
            key,
            queue: queue.clone(),
        }
    }

    /// Says that something may have arrived.
    pub fn wake(&self) {
        self.queue.push(self.key);
    }
}

/// The requests whose tickets are to be asked again.
#[derive(Clone, Debug)]
pub(super) struct WakeQueue {
    keys: Arc<Mutex<Vec<Key>>>,
    waker: Arc<mio::Waker>,
}

impl WakeQueue {
    pub(super) fn new(waker: Arc<mio::Waker>) -> WakeQueue {
        WakeQueue {
            keys: Arc::default(),
            waker,
        }
    }

    /// Takes all that were added since the last call.
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
