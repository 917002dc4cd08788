//! Workers: whole requests on their way to them, and answers on their way back.

use super::super::admitted::{Preparation, Wake};
use super::super::backend::{Output, Work};
use super::super::connection::Preparing;
use super::{Behind, Key, Pool, Refusal, Stage, Watch};
use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};

impl<B: Behind> Watch<B> {
    /// Has a whole request wait for what its ticket needs, and then for the workers of its pool. Says whether the
    /// connection can go on.
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
        let (pool, owner) = (request.admitted.pool, request.admitted.owner);
        if pool == Pool::Conversions && connection.input_closed {
            return self.refuse(key, Refusal::ClientGone, None);
        }
        let began = preparing.map_or(self.now, |preparing| preparing.began);
        let wake = Wake::new(key, &self.woken);
        let ticket = request.admitted.ticket.as_mut();
        let prepare = || ticket.map_or(Preparation::Ready, |ticket| ticket.prepare(&wake));
        match catch_unwind(AssertUnwindSafe(prepare)) {
            Ok(Preparation::Waits { until }) => *preparing = Some(Preparing { began, until }),
            Ok(Preparation::Ready) => {
                *preparing = None;
                *since += self.now - began;
                self.lanes[pool as usize].push(owner, key);
                self.dispatch(pool);
            }
            Err(_) => return self.refuse(key, Refusal::Broken, None),
        }
        false
    }

    /// Asks the ticket of a request again, if it waits for something still.
    pub(super) fn prepare_again(&mut self, key: Key) {
        let stage = self
            .connections
            .get_mut(key)
            .map(|connection| &connection.stage);
        let Some(Stage::Queued {
            preparing: Some(_), ..
        }) = stage
        else {
            return;
        };
        if self.prepare(key) {
            self.drive(key);
        } else {
            self.settle(key);
        }
    }

    /// Gives whole requests to free slots, in their owners' turns.
    pub(super) fn dispatch(&mut self, pool: Pool) {
        loop {
            let mut slots = self.slots.iter().enumerate();
            let mut free = slots.by_ref().filter(|(_, slot)| slot.is_free_for(pool));
            let Some((number, _)) = free.next() else {
                return;
            };
            let count = 1 + free.count();
            let Some(key) = self.lanes[pool as usize].pop(count) else {
                return;
            };
            let Some(connection) = self.connections.get_mut(key) else {
                continue;
            };
            let Some((mut request, since)) = connection.take_request(number) else {
                continue;
            };
            self.lanes[pool as usize].begin(request.admitted.owner);
            let ticket = request.admitted.ticket.take();
            let beside = ticket.as_ref().map_or(0, |ticket| ticket.held());
            self.clients.renew(number, since, ticket);
            if connection.input_closed {
                self.clients.leave(number);
            }
            self.slots[number].begin(*request, beside, number, key, self.now);
            self.settle(key);
            self.drive_slot(number);
        }
    }

    /// Lets a slot write of its request and read of its answer as far as it can.
    pub(super) fn drive_slot(&mut self, number: usize) {
        let was_busy = self.slots[number].work.is_some();
        loop {
            let output = self.slots[number].step(&mut self.scratch);
            let broken = match output {
                Output::Wait => break,
                Output::Bytes(count) => self.forward(number, count).err(),
                Output::Broken(error) => Some(error),
            };
            if let Some(error) = broken {
                self.lose_slot(number, &error);
                break;
            }
        }
        self.settle_slot(number);
        if was_busy && self.slots[number].is_free() {
            self.dispatch(self.slots[number].pool);
        }
    }

    /// Passes bytes of an answer on to its client.
    fn forward(&mut self, number: usize, count: usize) -> io::Result<()> {
        let work = self.slots[number]
            .work
            .as_mut()
            .ok_or(ErrorKind::InvalidData)?;
        let portion = work.read(&self.scratch[..count])?;
        let Some(key) = work.client else {
            return Ok(());
        };
        let Some(connection) = self.connections.get_mut(key) else {
            return Ok(());
        };
        let (limits, now) = (&self.limits, self.now);
        work.begun = true;
        let mut sent = Ok(());
        if let Some(head) = portion.head {
            sent = match (connection.is_in_parts(), head.next_part) {
                (false, None) => connection.send_head(head.bytes, limits, now),
                (false, Some(_)) => connection.begin_parts(head.bytes, limits, now),
                (true, _) if head.status == 200 => Ok(()),
                // Its head was sent long ago: that the answer breaks off is all that can be said.
                (true, _) => Err(ErrorKind::InvalidData.into()),
            };
        }
        sent = sent.and_then(|()| connection.send_body(portion.body, limits, now));
        let is_answered = work.is_answered();
        if is_answered && sent.is_ok() {
            work.client = None;
            match work.next_request() {
                Some(request) if connection.is_in_parts() => connection.part_sent(request),
                _ => {
                    if connection.is_in_parts() {
                        sent = connection.end_parts(limits, now);
                    }
                    connection.answered();
                }
            }
        }
        if sent.is_err() {
            self.close(key);
        } else if is_answered {
            self.drive(key);
        } else {
            self.settle(key);
            if self.held.all() >= self.limits.buffer {
                self.make_room(None);
            }
        }
        Ok(())
    }

    fn settle_slot(&mut self, number: usize) {
        let slot = &mut self.slots[number];
        if slot.work.as_ref().is_some_and(Work::is_done) {
            self.take_work(number);
        }
        let slot = &mut self.slots[number];
        let held = slot.held();
        self.held.replace(slot.counted, held);
        slot.counted = held;
    }

    /// The slot's request has been dealt with; gives what it was, if there was one.
    fn take_work(&mut self, number: usize) -> Option<Work> {
        let slot = &mut self.slots[number];
        let work = slot.work.take()?;
        self.lanes[slot.pool as usize].done(work.owner, self.now - work.since);
        Some(work)
    }

    /// Should never happen. The requests go on by the other slots.
    fn lose_slot(&mut self, number: usize, error: &io::Error) {
        log::error!("a connection to the HTTP server behind the door is lost: {error}");
        let slot = &mut self.slots[number];
        if slot.is_lost {
            return;
        }
        slot.is_lost = true;
        self.lost += 1;
        self.poll.registry().deregister(slot.stream()).ok();
        let work = self.take_work(number);
        let Some((key, begun)) = work.and_then(|work| Some((work.client?, work.begun))) else {
            return;
        };
        if begun {
            self.close(key);
        } else if self.refuse(key, Refusal::Broken, None) {
            self.drive(key);
        }
    }
}
