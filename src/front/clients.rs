//! What a worker gets beside the request itself, by the upstream connection that it came over.

use super::admission::Ticket;
use super::byte_queue::ByteQueue;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use towebp_encoder::Cancel;

/// What a worker gets beside the request itself.
pub struct Handover {
    /// Set once nobody waits for the response any more: the client closed its connection, or its
    /// sending side.
    pub cancel: Arc<Cancel<'static>>,
    /// When the request began to wait for a worker: it was complete, and its ticket ready.
    pub queued_since: Instant,
    /// What admission found out.
    pub ticket: Option<Box<dyn Ticket>>,
    /// The whole body of the request.
    pub body: ByteQueue,
}

impl Handover {
    fn new(queued_since: Instant, ticket: Option<Box<dyn Ticket>>, body: ByteQueue) -> Handover {
        Handover {
            cancel: Arc::default(),
            queued_since,
            ticket,
            body,
        }
    }
}

/// The requests that workers have, by the numbers of their upstream connections.
#[derive(Default)]
pub struct Clients(Mutex<Vec<Option<Handover>>>);

impl Clients {
    /// What belongs to this upstream connection's request. The ticket and the body are
    /// given once.
    pub fn take(&self, upstream: usize) -> Handover {
        self.with(upstream, |entry| {
            let nothing = || Handover::new(Instant::now(), None, ByteQueue::default());
            let handover = entry.get_or_insert_with(nothing);
            Handover {
                cancel: Arc::clone(&handover.cancel),
                queued_since: handover.queued_since,
                ticket: handover.ticket.take(),
                body: std::mem::take(&mut handover.body),
            }
        })
    }

    /// The upstream connection gets a new request.
    pub(super) fn begin(
        &self,
        upstream: usize,
        queued_since: Instant,
        ticket: Option<Box<dyn Ticket>>,
        body: ByteQueue,
    ) {
        let handover = Handover::new(queued_since, ticket, body);
        self.with(upstream, |entry| *entry = Some(handover));
    }

    /// The client of this upstream connection's request has gone.
    pub(super) fn disconnect(&self, upstream: usize) {
        self.with(upstream, |entry| {
            if let Some(handover) = entry {
                handover.cancel.cancel();
            }
        });
    }

    fn with<T>(&self, upstream: usize, access: impl FnOnce(&mut Option<Handover>) -> T) -> T {
        // A Vec of these is whole at all times, whoever panicked.
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() <= upstream {
            entries.resize_with(upstream + 1, || None);
        }
        access(&mut entries[upstream])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_request_of_an_upstream_is_not_cancelled() {
        let clients = Clients::default();
        let now = Instant::now();
        let body = |bytes: &[u8]| {
            let mut body = ByteQueue::default();
            body.push(bytes, None);
            body
        };
        clients.begin(3, now, None, body(b"first"));
        let first = clients.take(3);
        clients.disconnect(3);
        clients.begin(3, now, None, body(b"second"));
        let second = clients.take(3);
        assert_eq!(first.body.into_vec(), b"first");
        assert_eq!(second.body.into_vec(), b"second");
        assert!(first.cancel.is_cancelled() && !second.cancel.is_cancelled());
        assert_eq!(second.queued_since, now);
        clients.disconnect(0);
        assert!(!second.cancel.is_cancelled(), "another upstream's");
    }
}
