//! Complete requests on their way to workers, and responses on their way back.

use super::EventLoop;
use crate::front::admission::{Admission, Pool, Preparation, Waker};
use crate::front::connection::{Preparing, Stage};
use crate::front::rejection::Rejection;
use crate::front::slab::Key;
use crate::front::upstream::{Exchange, Output};
use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};

impl<A: Admission> EventLoop<A> {
    /// Has a complete request wait for what its ticket needs, and then for a worker of its pool.
    /// Says whether the connection can go on.
    pub(super) fn prepare(&mut self, key: Key) -> bool {
        let Some(connection) = self.connections.get_mut(key) else {
            return false;
        };
        let Stage::Queued {
            request,
            since,
            preparing,
        } = &mut connection.stage
        else {
            return false;
        };
        request.admitted.pool = request.admitted.pool.for_body(request.length);
        let (pool, owner) = (request.admitted.pool, request.admitted.owner);
        if pool.converts() && connection.input_closed {
            return self.reject(key, Rejection::ClientDisconnected, None);
        }
        let began = preparing.map_or(self.now, |preparing| preparing.began);
        let waker = Waker::new(key, &self.wake_queue);
        let ticket = request.admitted.ticket.as_mut();
        let prepare = || ticket.map_or(Preparation::Ready, |ticket| ticket.prepare(&waker));
        match catch_unwind(AssertUnwindSafe(prepare)) {
            Ok(Preparation::Pending { until }) => *preparing = Some(Preparing { began, until }),
            Ok(Preparation::Ready) => {
                *preparing = None;
                *since += self.now - began;
                self.queues[pool as usize].push(owner, key);
                self.dispatch(pool);
            }
            Err(_) => return self.reject(key, Rejection::UpstreamFailed, None),
        }
        false
    }

    /// Asks the ticket of a request again, if the request still waits for it.
    pub(super) fn prepare_again(&mut self, key: Key) {
        let connection = self.connections.get_mut(key);
        let Some(Stage::Queued {
            preparing: Some(_), ..
        }) = connection.map(|connection| &connection.stage)
        else {
            return;
        };
        if self.prepare(key) {
            self.drive(key);
        } else {
            self.update_connection(key);
        }
    }

    /// Hands queued requests to free workers of this pool, owners taking turns.
    fn dispatch(&mut self, pool: Pool) {
        loop {
            let upstreams = self.upstreams.iter().enumerate();
            let mut free = upstreams.filter(|(_, upstream)| upstream.is_free_for(pool));
            let Some((number, _)) = free.next() else {
                return;
            };
            let count = 1 + free.count();
            let Some(key) = self.queues[pool as usize].pop(count) else {
                return;
            };
            let Some(connection) = self.connections.get_mut(key) else {
                continue;
            };
            let Some((mut request, since)) = connection.take_request(number) else {
                continue;
            };
            self.queues[pool as usize].begin(request.admitted.owner);
            let ticket = request.admitted.ticket.take();
            let ticket_bytes = ticket.as_ref().map_or(0, |ticket| ticket.held());
            let body = std::mem::take(&mut request.body);
            self.clients.begin(number, since, ticket, body);
            if connection.input_closed {
                self.clients.disconnect(number);
            }
            self.upstreams[number].begin(*request, ticket_bytes, number, key, self.now);
            self.update_connection(key);
            self.drive_upstream(number);
        }
    }

    /// Writes as much of a request as its upstream connection takes, and passes on what that has of
    /// the response.
    pub(super) fn drive_upstream(&mut self, number: usize) {
        let was_busy = self.upstreams[number].exchange.is_some();
        loop {
            let error = match self.upstreams[number].step(&mut self.scratch) {
                Output::Wait => break,
                Output::Bytes(count) => self.forward(number, count).err(),
                Output::Broken(error) => Some(error),
            };
            if let Some(error) = error {
                self.lose_upstream(number, &error);
                break;
            }
        }
        self.update_upstream(number);
        if was_busy && self.upstreams[number].is_free() {
            self.dispatch(self.upstreams[number].pool);
        }
    }

    /// Passes `count` bytes of a response on to its client.
    fn forward(&mut self, number: usize, count: usize) -> io::Result<()> {
        let exchange = self.upstreams[number]
            .exchange
            .as_mut()
            .ok_or(ErrorKind::InvalidData)?;
        let portion = exchange.read(&self.scratch[..count])?;
        let Some(key) = exchange.client else {
            return Ok(());
        };
        let Some(connection) = self.connections.get_mut(key) else {
            return Ok(());
        };
        let (settings, now) = (&self.settings, self.now);
        exchange.has_begun = true;
        let mut sent = match portion.head {
            Some(head) => connection.send_head(head, settings, now),
            None => Ok(()),
        };
        sent = sent.and_then(|()| connection.send_body(portion.body, settings, now));
        let is_answered = exchange.is_answered();
        if is_answered && sent.is_ok() {
            exchange.client = None;
            sent = connection.end_response(exchange.next_request(), settings, now);
        }
        if sent.is_err() {
            self.close(key);
        } else if is_answered {
            self.drive(key);
        } else {
            self.update_connection(key);
            self.bound_memory();
        }
        Ok(())
    }

    /// Ends the exchange if it is complete, and brings its share of the memory up to date.
    fn update_upstream(&mut self, number: usize) {
        let upstream = &self.upstreams[number];
        if upstream.exchange.as_ref().is_some_and(Exchange::is_done) {
            self.end_exchange(number);
        }
        let upstream = &mut self.upstreams[number];
        let share = upstream.share();
        self.shares.replace(upstream.counted, share);
        upstream.counted = share;
    }

    /// Takes the exchange from an upstream connection, if it has one.
    fn end_exchange(&mut self, number: usize) -> Option<Exchange> {
        let upstream = &mut self.upstreams[number];
        let exchange = upstream.exchange.take()?;
        let spent = self.now - exchange.since;
        self.queues[upstream.pool as usize].end(exchange.owner, spent);
        Some(exchange)
    }

    /// Gives up an upstream connection that broke, which should never happen. The requests go on by
    /// the others.
    fn lose_upstream(&mut self, number: usize, error: &io::Error) {
        log::error!("a connection to the workers is lost: {error}");
        let upstream = &mut self.upstreams[number];
        if upstream.is_lost {
            return;
        }
        upstream.is_lost = true;
        self.lost += 1;
        self.poll.registry().deregister(upstream.stream()).ok();
        let Some(exchange) = self.end_exchange(number) else {
            return;
        };
        let Some(key) = exchange.client else {
            return;
        };
        if exchange.has_begun {
            self.close(key);
        } else if self.reject(key, Rejection::UpstreamFailed, None) {
            self.drive(key);
        }
    }
}
