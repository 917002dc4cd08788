//! The graceful end: no new connections, and the requests in progress are brought to their end.

use super::EventLoop;
use crate::front::admission::Admission;
use std::time::Instant;

impl<A: Admission> EventLoop<A> {
    /// Goes on with the shutdown; `true` once no connection is left, or the time for it is over.
    pub(super) fn is_shut_down(&mut self) -> bool {
        let ends_at = match self.ends_at {
            Some(at) => at,
            None => self.begin_shutdown(),
        };
        if self.now >= ends_at && self.connections.len() > 0 {
            log::warn!(
                "connections cut off because their requests took too long to end: {}",
                self.connections.len()
            );
            return true;
        }
        self.connections.len() == 0
    }

    /// Accepts the connections that wait in the backlogs, closes the listeners, and then all
    /// connections that are idle. The others end with the response that they wait for. Returns when
    /// they must have ended.
    fn begin_shutdown(&mut self) -> Instant {
        self.accept();
        self.accept_at = None;
        for mut listener in self.listeners.drain(..) {
            // Closing it would do, but another process may share the socket, whose events would
            // keep coming.
            self.poll.registry().deregister(&mut listener).ok();
        }
        let keys: Vec<_> = self.connections.iter().map(|(key, _)| key).collect();
        for key in keys {
            // A request that is in the socket already was sent in good faith.
            self.drive(key);
            let Some(connection) = self.connections.get_mut(key) else {
                continue;
            };
            connection.is_last = true;
            if connection.is_idle() {
                self.close(key);
            }
        }
        *self.ends_at.insert(self.now + self.settings.stop_time)
    }
}
