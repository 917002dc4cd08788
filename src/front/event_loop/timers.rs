//! Deadlines of connections.

use super::EventLoop;
use crate::front::admission::Admission;
use crate::front::connection::Stage;
use crate::front::kind::WorkKind;
use crate::front::rejection::Rejection;
use crate::front::slab::Key;

impl<A: Admission> EventLoop<A> {
    /// Brings the connection's timer and its share of the memory up to date.
    pub(super) fn update_connection(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        let share = connection.share();
        self.shares.replace(connection.counted, share);
        connection.counted = share;
        let deadline = connection.next_deadline(&self.settings);
        if deadline != connection.deadline {
            if let Some(before) = connection.deadline {
                self.timers.remove(&(before, key));
            }
            if let Some(deadline) = deadline {
                self.timers.insert((deadline, key));
            }
            connection.deadline = deadline;
        }
    }

    /// Deals with the connections whose deadline has passed.
    pub(super) fn expire_timers(&mut self) {
        while let Some(&(at, key)) = self.timers.first() {
            if at > self.now {
                return;
            }
            self.timers.pop_first();
            let Some(connection) = self.connections.get_mut(key) else {
                continue;
            };
            connection.deadline = None;
            let rejection = match &connection.stage {
                Stage::Queued {
                    preparing: Some(preparing),
                    ..
                } if preparing.until.is_some() => {
                    self.prepare_again(key);
                    continue;
                }
                Stage::Due { .. } => {
                    self.send_due(key);
                    continue;
                }
                Stage::Head { .. } if !connection.is_idle() => Rejection::HeadTimeout,
                Stage::Body(_) => Rejection::BodyTimeout,
                Stage::Queued { .. } => {
                    let queue = connection.queue;
                    self.busy(queue.map_or(WorkKind::Page, |(kind, _)| kind))
                }
                _ => {
                    self.close(key);
                    continue;
                }
            };
            if self.reject(key, rejection, None) {
                self.drive(key);
            } else {
                self.update_connection(key);
            }
        }
    }
}
