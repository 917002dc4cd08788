//! Who comes in: accepting, and the bounds on connections.

use super::{Behind, Connection, Refusal, Watch};
use mio::Interest;
use mio::net::TcpStream;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::time::Duration;

/// Connections accepted before others have their turn.
const ACCEPTS: usize = 64;

/// How long to wait when nothing can be accepted for lack of descriptors or memory.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Connections over the limit that are told so at the same time; more are closed without a word.
const TOLD: usize = 64;

/// Descriptors for everything else: the database, standard streams, watermarks being fetched, the command line's socket.
const OTHER_DESCRIPTORS: usize = 64;

/// Descriptors of a slot: its end here, two of `tiny_http`'s, and a watermark being fetched.
const DESCRIPTORS_OF_A_SLOT: usize = 4;

impl<B: Behind> Watch<B> {
    /// Accepts what is there, listener by listener.
    pub(super) fn accept(&mut self) {
        for index in 0..self.listeners.len() {
            let mut turns = ACCEPTS;
            loop {
                match self.listeners[index].accept() {
                    Ok((stream, address)) => self.let_in(stream, address.ip().to_canonical()),
                    Err(error) => match error.kind() {
                        ErrorKind::WouldBlock => {
                            self.is_starved = false;
                            break;
                        }
                        ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {}
                        // No more descriptors or memory, most likely. The client waits in the listener's queue.
                        _ => {
                            if !std::mem::replace(&mut self.is_starved, true) {
                                log::warn!("connections cannot be accepted now: {error}");
                            }
                            if !self.close_the_idlest() {
                                self.accept_at = Some(self.now + ACCEPT_AGAIN);
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

    fn let_in(&mut self, mut stream: TcpStream, peer: IpAddr) {
        let is_proxy = self
            .limits
            .trusted_proxies
            .iter()
            .any(|network| network.contains(peer));
        let too_many_of_it = !is_proxy
            && !self
                .addresses
                .has_room(peer, self.limits.connections_per_address);
        let is_full = !too_many_of_it
            && self.connections.len() - self.told >= self.limits.connections
            && !self.close_the_idlest();
        let is_refused = too_many_of_it || is_full;
        if is_refused && self.told == TOLD {
            return;
        }
        let interest = Interest::READABLE | Interest::WRITABLE;
        let connection = |stream| Connection::new(stream, peer, !is_refused, self.now);
        let key = self.connections.insert_with(|key| {
            let registered = self
                .poll
                .registry()
                .register(&mut stream, key.token(), interest);
            registered.map(|()| connection(stream))
        });
        let key = match key {
            Ok(key) => key,
            Err(error) => return log::warn!("a connection cannot be watched: {error}"),
        };
        if is_refused {
            self.told += 1;
            self.refuse(key, Refusal::TooManyConnections, None);
        } else {
            self.addresses.add(peer);
        }
        self.drive(key);
    }

    /// Makes room by closing the connection that has been idle for the longest time; if none is, the one that has been
    /// sending a head for the longest time, since others send theirs in one go.
    fn close_the_idlest(&mut self) -> bool {
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

/// Of the connections wanted, as many as the limit of open files leaves room for, after raising it as far as is allowed.
pub fn within_descriptors(wanted: usize, slots: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let others = OTHER_DESCRIPTORS + slots * DESCRIPTORS_OF_A_SLOT;
    let needed = (wanted + TOLD + others) as u64;
    let limit = getrlimit(Resource::Nofile);
    // None is no limit.
    let (Some(current), maximum) = (limit.current, limit.maximum) else {
        return wanted;
    };
    if current >= needed {
        return wanted;
    }
    let raised = maximum.map_or(needed, |maximum| maximum.min(needed));
    let raise = Rlimit {
        current: Some(raised),
        maximum,
    };
    let allowed = if setrlimit(Resource::Nofile, raise).is_ok() {
        raised
    } else {
        current
    };
    let connections = (allowed as usize)
        .saturating_sub(others + TOLD)
        .clamp(16, wanted.max(16))
        .min(wanted);
    if connections < wanted {
        log::warn!(
            "{allowed} files may be open, so at most {connections} connections are held, not {wanted}"
        );
    }
    connections
}
