//! What a worker is told of the request that it has, beside the request itself: whether its client
//! is still there, and its ticket.

use super::admission::Ticket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Says whether a client has gone away. A clone says the same.
#[derive(Clone, Debug)]
pub struct Gone {
    flag: Arc<AtomicBool>,
    whole_since: Instant,
}

impl Default for Gone {
    /// Of a request that is whole now.
    fn default() -> Gone {
        Gone::since(Instant::now())
    }
}

impl Gone {
    /// Whether nobody waits for the answer any more: the client closed its connection, or its sending side.
    pub fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// When the request began to wait for a worker: once it was whole, and what it needs beside was there.
    pub fn whole_since(&self) -> Instant {
        self.whole_since
    }

    /// The flag itself, for those who know of no clients.
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.flag
    }

    pub(super) fn set(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    fn since(whole_since: Instant) -> Gone {
        Gone {
            flag: Arc::default(),
            whole_since,
        }
    }
}

/// The client of each upstream connection's request, by the connection's number.
#[derive(Default)]
pub struct Clients(Mutex<Vec<Client>>);

#[derive(Default)]
struct Client {
    gone: Gone,
    ticket: Option<Box<dyn Ticket>>,
}

impl Clients {
    /// Whether the client of this upstream connection's request is still there.
    pub fn gone(&self, upstream: usize) -> Gone {
        self.with(upstream, |client| client.gone.clone())
    }

    /// Takes the ticket of this upstream connection's request.
    pub fn take_ticket(&self, upstream: usize) -> Option<Box<dyn Ticket>> {
        self.with(upstream, |client| client.ticket.take())
    }

    /// The upstream connection has a new request, which waits for a worker since that time.
    pub(super) fn begin(
        &self,
        upstream: usize,
        whole_since: Instant,
        ticket: Option<Box<dyn Ticket>>,
    ) {
        let gone = Gone::since(whole_since);
        self.with(upstream, |client| *client = Client { gone, ticket });
    }

    /// The client of this upstream connection's request has gone.
    pub(super) fn disconnect(&self, upstream: usize) {
        self.with(upstream, |client| client.gone.set());
    }

    fn with<T>(&self, upstream: usize, access: impl FnOnce(&mut Client) -> T) -> T {
        // A Vec of these is whole at all times, whoever panicked.
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.len() <= upstream {
            clients.resize_with(upstream + 1, Client::default);
        }
        access(&mut clients[upstream])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_request_of_an_upstream_has_its_own_flag() {
        let clients = Clients::default();
        let now = Instant::now();
        clients.begin(3, now, None);
        let first = clients.gone(3);
        clients.disconnect(3);
        clients.begin(3, now, None);
        let second = clients.gone(3);
        assert!(first.is_set() && !second.is_set());
        assert_eq!(second.whole_since(), now);
        clients.disconnect(0);
        assert!(!second.is_set(), "another upstream's");
    }
}
