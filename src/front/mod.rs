//! The front door: the one room that the network touches.
//!
//! `tiny_http` has no bound on connections, headers, queues or waiting, and reads requests more leniently than is safe, so
//! the public socket belongs to this room. One thread ([`watch`]) waits for all sockets at once; what it reads is held
//! to [`Limits`]: heads by [`head`], bodies by [`chunked`] and [`pace`], memory by a budget. What is wrong is
//! refused here ([`Refusal`]), in the words of the rooms behind ([`Behind`]), who also decide by the head alone whether a
//! body is worth being sent. Only a whole request, written anew in one plain form, is passed on to
//! `tiny_http`, over a private connection ([`backend`]); the answer comes back the same way. Until then it waits here for
//! what its [`Ticket`] needs, and for a thread of its [`Pool`] in the turn of its [`Owner`].

mod admitted;
mod answer;
mod backend;
mod blocks;
mod chunked;
mod clients;
mod connection;
mod crowd;
mod forwarded;
mod head;
mod held;
mod lane;
mod limits;
mod pace;
mod pulse;
mod reason;
mod refusal;
mod slab;
mod stop;
mod watch;

pub use admitted::{Admitted, Owner, Pool, Preparation, Ticket, Wake};
pub use answer::{Answer, NEXT_PART};
pub use backend::Hatch;
pub use chunked::Chunked;
pub use clients::{Clients, Gone};
pub use crowd::{Crowd, Load};
pub use head::{Framing, Head, HeadLimits, read as read_head};
pub use limits::Limits;
pub use pulse::Pulse;
pub use reason::reason;
pub use refusal::Refusal;
pub use stop::Stop;

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};
use std::thread;

/// What the door asks of the rooms behind it. Both are called on the door's only thread: every connection waits for them.
pub trait Behind: Send + 'static {
    /// Decides by the head alone whether this is worth going on with, and how.
    ///
    /// # Errors
    /// The answer that refuses it, or that needs no worker.
    fn admit(&self, head: &Head, client: IpAddr) -> Result<Admitted, Answer>;

    /// Puts a refusal into words. `head` is there if it could be read.
    fn refuse(&self, refusal: Refusal, head: Option<&Head>, client: IpAddr) -> Answer;
}

/// A door that is closed still: its addresses are taken, and nobody is let in.
pub struct Door {
    listeners: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    limits: Limits,
    clients: Arc<Clients>,
}

impl Door {
    /// Takes these addresses; port 0 takes a free port.
    ///
    /// # Errors
    /// A sentence for the operator: an address cannot be had.
    pub fn new(addresses: &[SocketAddr], limits: Limits) -> Result<Door, String> {
        let listen = |address: &SocketAddr| {
            let cannot = |error| format!("--listen {address}: cannot listen there: {error}");
            let listener = TcpListener::bind(address)
                .and_then(sending_at_once)
                .and_then(with_long_queue)
                .map_err(cannot)?;
            let address = listener.local_addr().map_err(cannot)?;
            Ok((listener, address))
        };
        let (listeners, addresses) = addresses
            .iter()
            .map(listen)
            .collect::<Result<Vec<_>, String>>()?
            .into_iter()
            .unzip();
        Ok(Door {
            listeners,
            addresses,
            limits,
            clients: Arc::default(),
        })
    }

    /// Takes a listening socket that somebody else has made.
    ///
    /// # Errors
    /// A sentence for the operator: it cannot be used.
    pub fn add(&mut self, listener: TcpListener) -> Result<(), String> {
        let cannot = |error| format!("the listening socket cannot be used: {error}");
        let listener = sending_at_once(listener)
            .and_then(with_long_queue)
            .map_err(cannot)?;
        self.addresses.push(listener.local_addr().map_err(cannot)?);
        self.listeners.push(listener);
        Ok(())
    }

    /// Where it stands, with the ports that it really got.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Who waits for an answer.
    pub fn clients(&self) -> Arc<Clients> {
        Arc::clone(&self.clients)
    }

    /// Connects to the servers behind and begins to let requests through. `upstreams` has each pool's hatch and its number of
    /// worker threads: as many connections are made, so that a request that was handed over is with a thread.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn open(
        self,
        upstreams: Vec<(Pool, Hatch, usize)>,
        behind: impl Behind,
    ) -> Result<OpenDoor, String> {
        let slots = upstreams
            .into_iter()
            .map(|(pool, hatch, workers)| hatch.connect(pool, workers))
            .collect::<Result<Vec<_>, String>>()?
            .into_iter()
            .flatten()
            .collect();
        let watch = watch::Watch::new(self, slots, behind)
            .map_err(|error| format!("the front door cannot be opened: {error}"))?;
        let (stop, pulse, crowd) = (watch.stop(), watch.pulse(), watch.crowd());
        let (sender, ended) = mpsc::channel();
        thread::Builder::new()
            .name("front-door".to_owned())
            .spawn(move || sender.send(watch.run()).ok())
            .map_err(|error| format!("the front door's thread did not start: {error}"))?;
        Ok(OpenDoor {
            stop,
            pulse,
            crowd,
            ended,
        })
    }
}

/// A door that lets requests through.
pub struct OpenDoor {
    /// Closes it.
    pub stop: Stop,
    /// Tells whether its thread goes round still.
    pub pulse: Pulse,
    /// Tells how busy it is.
    pub crowd: Crowd,
    /// Hears when it has ended: because it was closed, or why it had to, which it should never come to.
    pub ended: mpsc::Receiver<Result<(), String>>,
}

/// Has accepted connections send what is written to them at once.
///
/// An answer is written in pieces. By default the last waits until the client acknowledges those before, for which
/// clients in turn wait 40 ms: more than most conversions take. Connections inherit the option from their listener, and
/// `TcpStream` is the type that can set it.
fn sending_at_once(listener: TcpListener) -> io::Result<TcpListener> {
    let socket = TcpStream::from(OwnedFd::from(listener));
    socket.set_nodelay(true)?;
    Ok(TcpListener::from(OwnedFd::from(socket)))
}

/// Reads what the door says of a request to the rooms behind, from the request's headers: the slot that names it in
/// [`Clients`], and the client's address. `None` for a request that is the door's own.
pub fn internal<'h>(headers: impl Iterator<Item = (&'h str, &'h str)>) -> Option<(usize, IpAddr)> {
    let (mut slot, mut client) = (None, None);
    for (name, value) in headers {
        match name.strip_prefix(head::INTERNAL) {
            Some("slot") => slot = value.parse().ok(),
            Some("client") => client = value.parse().ok(),
            _ => {}
        }
    }
    slot.zip(client)
}

/// Connections that the system holds until they are accepted.
const QUEUE: i32 = 4096;

/// Has the system hold more connections than the standard library's 128. What does not fit in a burst is dropped, and its
/// client tries again after a second only.
fn with_long_queue(listener: TcpListener) -> io::Result<TcpListener> {
    rustix::net::listen(&listener, QUEUE)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_send_at_once() {
        let door =
            Door::new(&["127.0.0.1:0".parse().unwrap()], Limits::default()).expect("a free port");
        let _client = TcpStream::connect(door.addresses()[0]).unwrap();
        let (connection, _) = door.listeners[0].accept().unwrap();
        assert!(connection.nodelay().unwrap(), "the option is inherited");
    }

    #[test]
    fn takes_its_addresses_and_says_when_a_port_is_taken() {
        let two = ["127.0.0.1:0", "127.0.0.1:0"].map(|address| address.parse().unwrap());
        let first = Door::new(&two, Limits::default()).expect("two free ports");
        let taken = first.addresses()[1];
        let refused = Door::new(&[taken], Limits::default())
            .err()
            .expect("the port is taken");
        assert!(refused.contains(&taken.to_string()), "{refused}");
    }
}
