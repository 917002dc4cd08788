//! What a worker gets beside the request itself, by the upstream connection that it came over.

use super::admission::Ticket;
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
}

impl Handover {
    fn new(queued_since: Instant, ticket: Option<Box<dyn Ticket>>) -> Handover {
        Handover {
            cancel: Arc::default(),
            queued_since,
            ticket,
        }
    }
}

/// The requests that workers have, by the numbers of their upstream connections.
#[derive(Default)]
pub struct Clients(Mutex<Vec<Option<Handover>>>);

impl Clients {
    /// What belongs to this upstream connection's request. The ticket is given once.
    pub fn take(&self, upstream: usize) -> Handover {
        self.with(upstream, |entry| {
            let handover = entry.get_or_insert_with(|| Handover::new(Instant::now(), None));
            Handover {
                cancel: Arc::clone(&handover.cancel),
                queued_since: handover.queued_since,
                ticket: handover.ticket.take(),
            }
        })
    }

    /// The upstream connection gets a new request.
    pub(super) fn begin(
        &self,
        upstream: usize,
        queued_since: Instant,
        ticket: Option<Box<dyn Ticket>>,
    ) {
        let handover = Handover::new(queued_since, ticket);
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
        clients.begin(3, now, None);
        let first = clients.take(3);
        clients.disconnect(3);
        clients.begin(3, now, None);
        let second = clients.take(3);
        assert!(first.cancel.is_cancelled() && !second.cancel.is_cancelled());
        assert_eq!(second.queued_since, now);
        clients.disconnect(0);
        assert!(!second.cancel.is_cancelled(), "another upstream's");
    }
}
