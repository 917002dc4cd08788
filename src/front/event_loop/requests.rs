//! Admission of requests by their heads, and early responses.

use super::EventLoop;
use crate::front::admission::{Admission, Pool};
use crate::front::connection::Stage;
use crate::front::forwarded::client_address;
use crate::front::head::{Framing, Head};
use crate::front::rejection::Rejection;
use crate::front::response::EarlyResponse;
use crate::front::slab::Key;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};

impl<A: Admission> EventLoop<A> {
    /// Has a request admitted by its head, and begins to receive its body. Says whether the
    /// connection can go on.
    pub(super) fn admit(&mut self, key: Key, head: Head) -> bool {
        let Some(client) = self.client(key, Some(&head)) else {
            return false;
        };
        let admit = || self.admission.admit(&head, client);
        let admitted = match catch_unwind(AssertUnwindSafe(admit)) {
            Ok(Ok(admitted)) => admitted,
            Ok(Err(response)) => return self.respond(key, &response, Some(&head)),
            Err(_) => return self.reject(key, Rejection::UpstreamFailed, Some(&head)),
        };
        let limit = admitted.body_limit;
        if let Framing::Length(length) = head.framing
            && length > limit
        {
            return self.reject(key, Rejection::BodyTooLarge { limit }, Some(&head));
        }
        let Some(connection) = self.connections.get_mut(key) else {
            return false;
        };
        let step = connection.begin_body(head, client, admitted, &self.settings, self.now);
        self.apply(key, step)
    }

    /// Answers a request that no worker gets. Says whether the connection can go on.
    pub(super) fn reject(&mut self, key: Key, rejection: Rejection, head: Option<&Head>) -> bool {
        let connection = self.connections.get_mut(key);
        if connection.is_some_and(|connection| connection.is_in_parts()) {
            // A part of the response was sent: all that can still be said is that it breaks off.
            self.close(key);
            return false;
        }
        let Some(client) = self.client(key, head) else {
            return false;
        };
        // A rejection may come long after the head.
        let connection = self.connections.get_mut(key);
        let request = connection.and_then(|connection| connection.stage.request());
        let (known, client) = match request {
            Some(request) => (Some(&request.head), request.client),
            None => (head, client),
        };
        let word = || self.admission.reject(rejection, known, client);
        if let Ok(response) = catch_unwind(AssertUnwindSafe(word)) {
            return self.respond(key, &response, head);
        }
        self.close(key);
        false
    }

    /// 503, with the time that those who wait for these workers already will take.
    pub(super) fn busy(&self, pool: Pool) -> Rejection {
        let upstreams = self.upstreams.iter();
        let workers = upstreams.filter(|one| one.pool == pool && !one.is_lost);
        let wait = self.queues[pool as usize].expected_wait(workers.count());
        Rejection::Busy {
            retry_after: wait.as_secs().clamp(1, 60),
        }
    }

    fn respond(&mut self, key: Key, response: &EarlyResponse, head: Option<&Head>) -> bool {
        let Some(connection) = self.connections.get_mut(key) else {
            return false;
        };
        if let Stage::Queued { request, .. } = &connection.stage {
            let admitted = &request.admitted;
            self.queues[admitted.pool as usize].remove(admitted.owner, key);
        }
        let step = connection.respond_early(response, head, &self.settings, self.now);
        self.apply(key, step)
    }

    /// Whose connection or request it is; `None` if the connection has ended.
    fn client(&mut self, key: Key, head: Option<&Head>) -> Option<IpAddr> {
        let peer = self.connections.get_mut(key)?.peer;
        let headers = head.map_or(&[][..], |head| &head.headers);
        let forwarded = headers.iter().filter(|(name, _)| name == "x-forwarded-for");
        let forwarded = forwarded.map(|(_, value)| value.as_str());
        let trusted = &self.settings.trusted_proxies;
        Some(client_address(peer, forwarded, trusted))
    }
}
