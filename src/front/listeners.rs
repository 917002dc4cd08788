//! The public addresses, from taking them to serving them.

use super::admission::Admission;
use super::event_loop::EventLoop;
use super::heartbeat::Heartbeat;
use super::kind::WorkKind;
use super::load::LoadGauge;
use super::settings::Settings;
use super::shutdown::ShutdownHandle;
use super::workers::Workers;
use rustix::net::sockopt::set_tcp_nodelay;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;
use std::thread;

/// Connections that the system holds until they are accepted. The standard library sets 128;
/// connections of a burst beyond that are dropped, and their clients retry only after a second.
const BACKLOG: i32 = 4096;

/// Sockets that listen. Connections wait in their backlogs until [`Listeners::serve`].
pub struct Listeners {
    sockets: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    settings: Settings,
}

impl Listeners {
    /// Listens on these addresses; port 0 takes a free port.
    ///
    /// # Errors
    /// A sentence for the operator: an address cannot be had.
    pub fn bind(addresses: &[SocketAddr], settings: Settings) -> Result<Listeners, String> {
        let mut listeners = Listeners {
            sockets: Vec::new(),
            addresses: Vec::new(),
            settings,
        };
        for address in addresses {
            TcpListener::bind(address)
                .and_then(|listener| listeners.push(listener))
                .map_err(|error| format!("--listen {address}: cannot listen there: {error}"))?;
        }
        Ok(listeners)
    }

    /// Adds a listening socket that another process made, such as systemd.
    ///
    /// # Errors
    /// A sentence for the operator: it cannot be used.
    pub fn add(&mut self, listener: TcpListener) -> Result<(), String> {
        self.push(listener)
            .map_err(|error| format!("the listening socket cannot be used: {error}"))
    }

    fn push(&mut self, listener: TcpListener) -> io::Result<()> {
        // A response is written in pieces. Without TCP_NODELAY the last one waits until the client
        // acknowledges those before, for which clients in turn wait 40 ms: more than most
        // conversions take. Connections inherit the option from their listener.
        set_tcp_nodelay(&listener, true)?;
        rustix::net::listen(&listener, BACKLOG)?;
        self.addresses.push(listener.local_addr()?);
        self.sockets.push(listener);
        Ok(())
    }

    /// The addresses, with the ports that the system chose.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Starts the workers, and the event loop on a thread of its own. `workers` is how many each
    /// kind of work may have, by its number.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn serve(
        self,
        workers: [usize; WorkKind::ALL.len()],
        admission: impl Admission,
    ) -> Result<FrontHandle, String> {
        let (threads, jobs) = Workers::start(workers.iter().sum())?;
        let event_loop = EventLoop::new(self.sockets, workers, jobs, self.settings, admission)
            .map_err(|error| format!("the event loop cannot be set up: {error}"))?;
        let (shutdown, heartbeat) = (event_loop.shutdown_handle(), event_loop.heartbeat());
        let load = event_loop.load_gauge();
        let (sender, ended) = mpsc::channel();
        thread::Builder::new()
            .name("event-loop".to_owned())
            .spawn(move || sender.send(event_loop.run()).ok())
            .map_err(|error| format!("the event loop's thread did not start: {error}"))?;
        Ok(FrontHandle {
            addresses: self.addresses,
            shutdown,
            heartbeat,
            load,
            ended,
            workers: threads,
        })
    }
}

/// A running event loop and its workers.
pub struct FrontHandle {
    /// The addresses that it listens on, with the ports that the system chose.
    pub addresses: Vec<SocketAddr>,
    /// Shuts it down.
    pub shutdown: ShutdownHandle,
    /// Shows whether its thread still runs.
    pub heartbeat: Heartbeat,
    /// Shows how busy it is.
    pub load: LoadGauge,
    /// Receives its result.
    ended: mpsc::Receiver<Result<(), String>>,
    workers: Workers,
}

impl FrontHandle {
    /// Waits until the event loop was shut down and all workers have ended.
    ///
    /// # Errors
    /// A sentence for the operator: why the event loop ended by itself, which should never happen.
    pub fn wait(self) -> Result<(), String> {
        let ended = self.ended.recv();
        ended.unwrap_or_else(|_| Err("the event loop has ended".to_owned()))?;
        self.workers.join()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    #[test]
    fn connections_send_at_once() {
        let address = "127.0.0.1:0".parse().unwrap();
        let listeners = Listeners::bind(&[address], Settings::default()).expect("a free port");
        let _client = TcpStream::connect(listeners.addresses()[0]).unwrap();
        let (connection, _) = listeners.sockets[0].accept().unwrap();
        assert!(connection.nodelay().unwrap(), "the option is inherited");
    }

    #[test]
    fn takes_its_addresses_and_says_when_a_port_is_taken() {
        let two = ["127.0.0.1:0", "127.0.0.1:0"].map(|address| address.parse().unwrap());
        let first = Listeners::bind(&two, Settings::default()).expect("two free ports");
        let taken = first.addresses()[1];
        let error = Listeners::bind(&[taken], Settings::default())
            .err()
            .expect("the port is taken");
        assert!(error.contains(&taken.to_string()), "{error}");
    }
}
