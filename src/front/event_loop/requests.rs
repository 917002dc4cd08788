//! Admission of requests by their heads, and early responses.

use super::EventLoop;
use crate::front::admission::Admission;
use crate::front::connection::Stage;
use crate::front::forwarded::client_address;
use crate::front::head::{Framing, Head};
use crate::front::kind::WorkKind;
use crate::front::rejection::Rejection;
use crate::front::response::Response;
use crate::front::slab::Key;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};

impl<A: Admission> EventLoop<A> {
    /// Has a request admitted by its head, and begins to receive its body. Returns whether the
    /// connection can go on.
    pub(super) fn admit(&mut self, key: Key, head: &Head) -> bool {
        let Some(client) = self.client(key, Some(head)) else {
            return false;
        };
        let admit = || self.admission.admit(head, client);
        let admitted = match catch_unwind(AssertUnwindSafe(admit)) {
            Ok(Ok(admitted)) => admitted,
            Ok(Err(response)) => return self.respond(key, response, Some(head)),
            Err(_) => return self.reject(key, Rejection::WorkerFailed, Some(head)),
        };
        let limit = admitted.body_limit;
        if let Framing::Length(length) = head.framing
            && length > limit
        {
            let response = admitted.ticket.reject(Rejection::BodyTooLarge { limit });
            return self.respond(key, response, Some(head));
        }
        let Some(connection) = self.connections.get_mut(key) else {
            return false;
        };
        let step = connection.begin_body(head, admitted, self.now);
        self.apply(key, step)
    }

    /// Answers a request that no worker gets, or ends. Returns whether the connection can go on.
    pub(super) fn reject(&mut self, key: Key, rejection: Rejection, head: Option<&Head>) -> bool {
        let Some(client) = self.client(key, head) else {
            return false;
        };
        let Some(connection) = self.connections.get_mut(key) else {
            return false;
        };
        if connection.is_in_parts() {
            // A part of the response was sent, so it can only break off.
            self.close(key);
            return false;
        }
        let word = || match connection.stage.ticket() {
            Some(ticket) => ticket.reject(rejection),
            None => self.admission.reject(rejection, head, client),
        };
        if let Ok(response) = catch_unwind(AssertUnwindSafe(word)) {
            return self.respond(key, response, head);
        }
        self.close(key);
        false
    }

    /// 503, with the expected time of the waiting requests.
    pub(super) fn busy(&self, kind: WorkKind) -> Rejection {
        let wait = self.queues[kind as usize].expected_wait();
        Rejection::Busy {
            retry_after: wait.as_secs().clamp(1, 60),
        }
    }

    fn respond(&mut self, key: Key, response: Response, head: Option<&Head>) -> bool {
        let Some(connection) = self.connections.get_mut(key) else {
            return false;
        };
        if let (Stage::Queued { .. }, Some((kind, owner))) = (&connection.stage, connection.queue) {
            self.queues[kind as usize].remove(owner, key);
        }
        let step = connection.respond_early(response, head, self.now);
        self.apply(key, step)
    }

    /// The client's address; `None` if the connection has ended.
    fn client(&mut self, key: Key, head: Option<&Head>) -> Option<IpAddr> {
        let peer = self.connections.get_mut(key)?.peer;
        let headers = head.map_or(&[][..], |head| &head.headers);
        let forwarded = headers.iter().filter(|(name, _)| name == "x-forwarded-for");
        let forwarded = forwarded.map(|(_, value)| value.as_str());
        let trusted = &self.settings.trusted_proxies;
        Some(client_address(peer, forwarded, trusted))
    }
}
