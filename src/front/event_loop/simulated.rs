//! An event loop whose sockets, time and workers are simulated: whoever has it decides when
//! anything happens. All of it runs on one thread.

use super::{EventLoop, SocketChange};
use crate::front::admission::Admission;
use crate::front::job::Job;
use crate::front::kind::WorkKind;
use crate::front::settings::Settings;
use crate::front::slab::Key;
use crate::front::socket::Socket;
use crate::front::workers::Jobs;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

/// The event loop, and the queue of its workers.
pub struct SimulatedFront<A> {
    event_loop: EventLoop<A>,
    next_job: Box<dyn Fn() -> Option<Job>>,
    jobs: VecDeque<Job>,
}

/// A client's end of a simulated connection. A clone is the same end.
#[derive(Clone)]
pub struct ClientEnd {
    wire: Arc<Mutex<Wire>>,
    /// `None` if the event loop did not take the connection.
    key: Option<Key>,
}

/// A connection between a client and the event loop.
#[derive(Debug, Default)]
struct Wire {
    to_server: VecDeque<u8>,
    to_client: Vec<u8>,
    /// How many bytes more the network takes for the client.
    window: usize,
    client: End,
    server: End,
}

/// The state of one side of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum End {
    #[default]
    Open,
    /// It sends no more.
    Done,
    /// The socket is gone: that of the client by a reset.
    Gone,
}

/// The server's end.
struct ServerEnd(Arc<Mutex<Wire>>);

impl<A: Admission> SimulatedFront<A> {
    /// An event loop that has listened nowhere yet. `workers` is how many each kind of work may
    /// have, by its number.
    pub fn new(
        workers: [usize; WorkKind::ALL.len()],
        settings: Settings,
        admission: A,
        now: Instant,
    ) -> SimulatedFront<A> {
        let jobs = Jobs::new();
        let next_job = Box::new(jobs.taker());
        let event_loop = EventLoop::new(Vec::new(), workers, jobs, settings, admission);
        let mut event_loop = event_loop.expect("there are descriptors for one more");
        event_loop.now = now;
        SimulatedFront {
            event_loop,
            next_job,
            jobs: VecDeque::new(),
        }
    }

    /// Has a client at this address connect, whose network takes so many bytes.
    pub fn connect(&mut self, client: IpAddr, window: usize) -> ClientEnd {
        let wire = Arc::new(Mutex::new(Wire {
            window,
            ..Wire::default()
        }));
        let mut end = ClientEnd { wire, key: None };
        let server = ServerEnd(Arc::clone(&end.wire));
        self.event_loop.add_connection(client, |_, token| {
            end.key = Some(Key::from(token));
            Ok(Box::new(server))
        });
        end
    }

    /// Reports the state of a socket to the event loop, as an event of the system does.
    fn report(&mut self, end: &ClientEnd) {
        let wire = end.wire();
        let change = SocketChange {
            is_read_closed: wire.client != End::Open,
            is_write_closed: wire.client == End::Gone
                || (wire.client == End::Done && wire.server == End::Done),
            is_error: wire.client == End::Gone,
        };
        drop(wire);
        if let Some(key) = end.key {
            self.event_loop.socket_changed(key, change);
        }
    }

    /// Has bytes of a client arrive.
    pub fn send(&mut self, end: &ClientEnd, bytes: &[u8]) {
        end.wire().to_server.extend(bytes);
        self.report(end);
    }

    /// Has the network take so many bytes more for a client.
    pub fn widen(&mut self, end: &ClientEnd, bytes: usize) {
        end.wire().window += bytes;
        self.report(end);
    }

    /// The client sends no more.
    pub fn finish(&mut self, end: &ClientEnd) {
        end.wire().client = End::Done;
        self.report(end);
    }

    /// The connection breaks.
    pub fn reset(&mut self, end: &ClientEnd) {
        end.wire().client = End::Gone;
        self.report(end);
    }

    /// Takes a turn at this time. Returns whether a shutdown has ended.
    pub fn turn(&mut self, now: Instant) -> bool {
        self.event_loop.now = now;
        let is_over = self.event_loop.go_on();
        self.jobs.extend(std::iter::from_fn(&self.next_job));
        is_over
    }

    /// When something is due, if nothing happens before.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.event_loop.timers.first().map(|(at, _)| *at)
    }

    /// How many jobs the workers have.
    pub fn jobs(&self) -> usize {
        self.jobs.len()
    }

    /// Has a worker do one of its jobs.
    pub fn work(&mut self, job: usize) {
        let job = self.jobs.remove(job).expect("there is such a job");
        job.run();
    }

    /// Requests a graceful shutdown.
    pub fn shut_down(&self) {
        let requested = self.event_loop.shutdown.shut_down();
        requested.expect("the waker is there");
    }

    /// Bytes that connections and jobs hold, of how many.
    pub fn held(&self) -> (u64, u64) {
        let shares = &self.event_loop.shares;
        (shares.held(), shares.total())
    }

    /// Connections, jobs that workers have, requests that wait for workers, and timers.
    pub fn counts(&self) -> [usize; 4] {
        let event_loop = &self.event_loop;
        let load = event_loop.current_load();
        [
            load.connections,
            load.working,
            load.waiting,
            event_loop.timers.len(),
        ]
    }
}

impl ClientEnd {
    fn wire(&self) -> MutexGuard<'_, Wire> {
        self.wire.lock().expect("nothing panics with a wire")
    }

    /// Takes the bytes that have arrived at the client.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.wire().to_client)
    }

    /// Whether the client will get nothing more.
    pub fn is_over(&self) -> bool {
        let wire = self.wire();
        wire.server != End::Open || wire.client == End::Gone
    }

    /// Whether the server has closed its end.
    pub fn is_dropped(&self) -> bool {
        self.wire().server == End::Gone
    }
}

impl Socket for ServerEnd {
    fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut wire = self.wire();
        if wire.client == End::Gone {
            return Err(ErrorKind::ConnectionReset.into());
        }
        let count = bytes.len().min(wire.to_server.len());
        if count == 0 && wire.client == End::Open {
            return Err(ErrorKind::WouldBlock.into());
        }
        for (to, from) in bytes.iter_mut().zip(wire.to_server.drain(..count)) {
            *to = from;
        }
        Ok(count)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut wire = self.wire();
        if wire.client == End::Gone || wire.server == End::Done {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let count = bytes.len().min(wire.window);
        if count == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        wire.window -= count;
        wire.to_client.extend(&bytes[..count]);
        Ok(count)
    }

    fn shut_down_write(&self) -> io::Result<()> {
        self.wire().server = End::Done;
        Ok(())
    }
}

impl ServerEnd {
    fn wire(&self) -> MutexGuard<'_, Wire> {
        self.0.lock().expect("nothing panics with a wire")
    }
}

impl Drop for ServerEnd {
    fn drop(&mut self) {
        self.wire().server = End::Gone;
    }
}
