//! The end: nobody is let in any more, and what is under way is brought to its end.

use super::{Behind, Watch};

impl<B: Behind> Watch<B> {
    /// Goes on with closing, and says whether nothing is left.
    pub(super) fn is_closed(&mut self) -> bool {
        let closes_at = match self.closes_at {
            Some(at) => at,
            None => self.begin_to_close(),
        };
        if self.now >= closes_at && self.connections.len() > 0 {
            log::warn!(
                "connections cut off because their requests took too long to end: {}",
                self.connections.len()
            );
            return true;
        }
        self.connections.len() == 0
    }

    /// Lets those in who are connected already, closes the listeners, and then all connections that are idle. The others
    /// end with the answer that they wait for.
    fn begin_to_close(&mut self) -> std::time::Instant {
        self.accept();
        self.accept_at = None;
        for mut listener in self.listeners.drain(..) {
            // Closing it would do; whoever shares the socket with us must not keep its events coming.
            self.poll.registry().deregister(&mut listener).ok();
        }
        let keys: Vec<_> = self.connections.iter().map(|(key, _)| key).collect();
        for key in keys {
            // What is in the socket already is a request that was sent in good faith.
            self.drive(key);
            let Some(connection) = self.connections.get_mut(key) else {
                continue;
            };
            connection.is_last = true;
            if connection.is_idle() {
                self.close(key);
            }
        }
        let closes_at = self.now + self.limits.stop_time;
        self.closes_at = Some(closes_at);
        closes_at
    }
}
