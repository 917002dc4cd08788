//! Workers: whole requests on their way to them, and answers on their way back.

use super::super::backend::{Output, Slot, Work};
use super::{Behind, Refusal, Watch};
use std::io::{self, ErrorKind};
use std::time::Duration;

impl<B: Behind> Watch<B> {
    /// Gives whole requests to free slots, first come, first served.
    pub(super) fn dispatch(&mut self) {
        while let Some(number) = self.slots.iter().position(Slot::is_free) {
            let Some(key) = self.queue.pop_front() else {
                return;
            };
            // Those that were refused or went away while they waited are in the queue still.
            let Some(connection) = self.connections.get_mut(key) else {
                continue;
            };
            let Some((request, since)) = connection.take_request(number) else {
                continue;
            };
            self.clients.renew(number, since);
            if connection.input_closed {
                self.clients.leave(number);
            }
            self.slots[number].begin(*request, number, key, self.now);
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
            self.dispatch();
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
            sent = connection.send_head(head, limits, now);
        }
        sent = sent.and_then(|()| connection.send(portion.body, limits, now));
        if sent.is_err() {
            self.close(key);
        } else if work.is_answered() {
            work.client = None;
            connection.answered();
            self.drive(key);
        } else {
            self.settle(key);
            if self.held >= self.limits.buffer {
                self.make_room();
            }
        }
        Ok(())
    }

    fn settle_slot(&mut self, number: usize) {
        let slot = &mut self.slots[number];
        if slot.work.as_ref().is_some_and(Work::is_done) {
            let spent = slot
                .work
                .take()
                .map_or(Duration::ZERO, |work| self.now - work.since);
            // The last some ten requests count.
            self.service_time = (self.service_time * 7 + spent) / 8;
        }
        let held = slot.held();
        self.held = self.held - slot.counted + held;
        slot.counted = held;
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
        let Some((key, begun)) = slot
            .work
            .take()
            .and_then(|work| Some((work.client?, work.begun)))
        else {
            return;
        };
        if begun {
            self.close(key);
        } else if self.refuse(key, Refusal::Broken, None) {
            self.drive(key);
        }
    }
}
