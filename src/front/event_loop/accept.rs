//! Accepting connections, and how many there may be.

use super::EventLoop;
use crate::front::admission::Admission;
use crate::front::connection::Connection;
use crate::front::descriptors::MAX_SURPLUS;
use crate::front::rejection::Rejection;
use crate::front::socket::Socket;
use mio::{Interest, Registry, Token};
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::time::Duration;

/// Connections accepted from one listener before others have their turn.
const MAX_ACCEPTS: usize = 64;

/// How long to wait when nothing can be accepted for lack of descriptors or memory.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

impl<A: Admission> EventLoop<A> {
    /// Accepts waiting connections, listener by listener.
    pub(super) fn accept(&mut self) {
        for index in 0..self.listeners.len() {
            let mut turns = MAX_ACCEPTS;
            loop {
                match self.listeners[index].accept() {
                    Ok((mut stream, address)) => {
                        let peer = address.ip().to_canonical();
                        self.add_connection(peer, |registry, token| {
                            let interest = Interest::READABLE | Interest::WRITABLE;
                            registry.register(&mut stream, token, interest)?;
                            Ok(Box::new(stream))
                        });
                    }
                    Err(error) => match error.kind() {
                        ErrorKind::WouldBlock => {
                            self.accept_failed = false;
                            break;
                        }
                        ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {}
                        // Most likely there are no more descriptors or there is no more memory. The
                        // client waits in the backlog.
                        _ => {
                            if !std::mem::replace(&mut self.accept_failed, true) {
                                log::warn!("connections cannot be accepted now: {error}");
                            }
                            if !self.close_idlest() {
                                self.accept_at = Some(self.now + RETRY_INTERVAL);
                                return;
                            }
                        }
                    },
                }
                turns -= 1;
                if turns == 0 {
                    self.accept_at = Some(self.now);
                    break;
                }
            }
        }
    }

    /// Adds a connection of this client, unless there are too many to tell it even that. `watch`
    /// has the events of its socket reported by this token.
    pub(super) fn add_connection(
        &mut self,
        peer: IpAddr,
        watch: impl FnOnce(&Registry, Token) -> io::Result<Box<dyn Socket>>,
    ) {
        let proxies = &self.settings.trusted_proxies;
        let is_proxy = proxies.iter().any(|network| network.contains(peer));
        let most = self.settings.connections_per_address;
        let has_too_many = !is_proxy && !self.counts.allows(peer, most);
        let is_full = !has_too_many
            && self.connections.len() - self.surplus >= self.settings.connections
            && !self.close_idlest();
        let is_surplus = has_too_many || is_full;
        if is_surplus && self.surplus == MAX_SURPLUS {
            return;
        }
        let (registry, now) = (self.poll.registry(), self.now);
        let least_rate = self.settings.rate;
        let key = self.connections.insert_with(|key| {
            let socket = watch(registry, key.token())?;
            Ok::<_, io::Error>(Connection::new(socket, peer, is_surplus, least_rate, now))
        });
        let key = match key {
            Ok(key) => key,
            Err(error) => return log::warn!("a connection cannot be watched: {error}"),
        };
        if is_surplus {
            self.surplus += 1;
            self.reject(key, Rejection::TooManyConnections, None);
        } else {
            self.counts.add(peer);
        }
        self.drive(key);
    }

    /// Closes the connection that has been idle for longest. If none is idle, closes the one that
    /// has been sending a head for longest, since clients normally send theirs in one go. `false`
    /// if there is neither.
    fn close_idlest(&mut self) -> bool {
        let without_request = self
            .connections
            .iter()
            .filter_map(|(key, connection)| Some((connection.without_request()?, key)));
        let Some((_, key)) = without_request.min() else {
            return false;
        };
        self.close(key);
        true
    }
}
