//! The one thread that waits for every socket. It lets connections take their steps, and does the
//! work that concerns more than one of them: accepting ([`accept`]), admission ([`requests`]),
//! handing requests to workers ([`dispatch`]), memory ([`memory`]), timers ([`timers`]) and the
//! graceful end ([`shutdown`]).

mod accept;
mod dispatch;
mod memory;
mod requests;
mod shutdown;
#[cfg(test)]
pub mod simulated;
mod timers;

use super::admission::Admission;
use super::connection::{Connection, Stage, Step};
use super::descriptors;
use super::heartbeat::Heartbeat;
use super::job::{Exchange, Inbox, Message};
use super::kind::WorkKind;
use super::load::{Load, LoadGauge};
use super::rejection::Rejection;
use super::settings::Settings;
use super::shutdown::ShutdownHandle;
use super::slab::{Key, Slab};
use super::worker_queue::WorkerQueue;
use super::workers::Jobs;
use crate::admission::{AccountShares, ConnectionCounts, Share};
use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Waker};
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Kinds of event sources that are no client's connection: see [`Key::fixed`].
const LISTENER: u32 = 0;
const WAKER: u32 = 1;

/// Most bytes that one read takes from a socket.
const SCRATCH_BYTES: usize = 64 << 10;

/// Steps of one connection before others have their turn.
const MAX_STEPS: usize = 16;

/// The state of the event loop, all of which its thread owns.
pub struct EventLoop<A> {
    poll: Poll,
    listeners: Vec<TcpListener>,
    settings: Settings,
    admission: A,
    connections: Slab<Connection>,
    /// Accepted connections by client network.
    counts: ConnectionCounts,
    /// Connections that exist only to get the response that there are too many.
    surplus: usize,
    /// The jobs that workers have.
    exchanges: Slab<Exchange>,
    /// The requests that wait for a worker, by the number of their kind.
    queues: [WorkerQueue; WorkKind::ALL.len()],
    /// The way to the workers.
    jobs: Jobs,
    /// The memory of connections and exchanges.
    shares: AccountShares,
    timers: BTreeSet<(Instant, Key)>,
    /// Connections that have more to do than their turn allowed.
    unfinished: Vec<Key>,
    /// When to accept again; `None` until a listener is ready.
    accept_at: Option<Instant>,
    /// Whether accepting failed the last time, so that a row of failures is logged once.
    accept_failed: bool,
    shutdown: ShutdownHandle,
    inbox: Inbox,
    heartbeat: Heartbeat,
    load: LoadGauge,
    /// During a shutdown: when the requests in progress must have ended.
    ends_at: Option<Instant>,
    scratch: Box<[u8]>,
    /// When the present turn began.
    now: Instant,
}

/// The parts of a client's connection that have ended, as an event reports them.
#[derive(Clone, Copy, Debug, Default)]
struct SocketChange {
    /// The client has closed its sending side.
    is_read_closed: bool,
    /// Nothing can be sent any more.
    is_write_closed: bool,
    /// The connection is broken.
    is_error: bool,
}

impl<A: Admission> EventLoop<A> {
    /// Registers all sockets.
    ///
    /// # Errors
    /// The system has no more descriptors or memory.
    pub fn new(
        listeners: Vec<std::net::TcpListener>,
        workers: [usize; WorkKind::ALL.len()],
        jobs: Jobs,
        mut settings: Settings,
        admission: A,
    ) -> io::Result<EventLoop<A>> {
        settings.connections = descriptors::affordable_connections(settings.connections);
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), Key::fixed(WAKER, 0).token())?);
        let mut event_loop = EventLoop {
            poll,
            listeners: Vec::new(),
            admission,
            connections: Slab::new(),
            counts: ConnectionCounts::default(),
            surplus: 0,
            exchanges: Slab::new(),
            queues: workers.map(WorkerQueue::new),
            jobs,
            shares: AccountShares::new(settings.buffer as u64),
            settings,
            timers: BTreeSet::new(),
            unfinished: Vec::new(),
            accept_at: None,
            accept_failed: false,
            shutdown: ShutdownHandle::new(Arc::clone(&waker)),
            inbox: Inbox::new(Arc::clone(&waker)),
            heartbeat: Heartbeat::new(waker),
            load: LoadGauge::default(),
            ends_at: None,
            scratch: vec![0; SCRATCH_BYTES].into_boxed_slice(),
            now: Instant::now(),
        };
        let registry = event_loop.poll.registry();
        for (index, listener) in listeners.into_iter().enumerate() {
            listener.set_nonblocking(true)?;
            let mut listener = TcpListener::from_std(listener);
            let token = Key::fixed(LISTENER, index).token();
            registry.register(&mut listener, token, Interest::READABLE)?;
            event_loop.listeners.push(listener);
        }
        Ok(event_loop)
    }

    /// Ends [`EventLoop::run`].
    pub fn shutdown_handle(&self) -> ShutdownHandle {
        self.shutdown.clone()
    }

    /// Beats with every turn of [`EventLoop::run`].
    pub fn heartbeat(&self) -> Heartbeat {
        self.heartbeat.clone()
    }

    /// Shows how busy [`EventLoop::run`] is.
    pub fn load_gauge(&self) -> LoadGauge {
        self.load.clone()
    }

    /// Serves until a requested shutdown has ended.
    ///
    /// # Errors
    /// The reason why it cannot go on, for the operator.
    pub fn run(mut self) -> Result<(), String> {
        let mut events = Events::with_capacity(256);
        loop {
            match self.poll.poll(&mut events, self.poll_timeout()) {
                Err(error) if error.kind() != ErrorKind::Interrupted => {
                    return Err(format!("sockets cannot be waited for: {error}"));
                }
                _ => self.now = Instant::now(),
            }
            self.heartbeat.beat();
            for event in &events {
                let key = Key::from(event.token());
                match key.as_fixed() {
                    Some((LISTENER, _)) => self.accept_at = Some(self.now),
                    Some(_) => {}
                    None => self.socket_changed(
                        key,
                        SocketChange {
                            is_read_closed: event.is_read_closed(),
                            is_write_closed: event.is_write_closed(),
                            is_error: event.is_error(),
                        },
                    ),
                }
            }
            if self.go_on() {
                return Ok(());
            }
        }
    }

    /// Deals with a change of a client's socket.
    fn socket_changed(&mut self, key: Key, change: SocketChange) {
        if change.is_read_closed {
            self.input_closed(key);
        }
        if change.is_error || (change.is_write_closed && !self.is_lingering(key)) {
            self.close(key);
        } else {
            self.drive(key);
        }
    }

    /// Does what is due at `now`, after the changes of sockets. Returns whether a shutdown has
    /// ended.
    fn go_on(&mut self) -> bool {
        for message in self.inbox.take() {
            match message {
                Message::Prepare(key) => self.prepare_again(key),
                Message::Reply(exchange, outcome) => self.end_exchange(exchange, outcome),
            }
        }
        for key in std::mem::take(&mut self.unfinished) {
            self.drive(key);
        }
        if self.accept_at.is_some_and(|at| at <= self.now) {
            self.accept_at = None;
            self.accept();
        }
        self.expire_timers();
        self.load.set(self.current_load());
        self.shutdown.is_requested() && self.is_shut_down()
    }

    fn current_load(&self) -> Load {
        Load {
            connections: self.connections.len(),
            waiting: self.queues.iter().map(WorkerQueue::len).sum(),
            working: self.exchanges.len(),
            held: self.shares.held(),
        }
    }

    fn poll_timeout(&self) -> Option<Duration> {
        if !self.unfinished.is_empty() {
            return Some(Duration::ZERO);
        }
        let timer = self.timers.first().map(|(at, _)| *at);
        let others = self.accept_at.into_iter().chain(self.ends_at);
        let next = timer.into_iter().chain(others).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// Lets a connection take steps until it has to wait, or others their turn.
    fn drive(&mut self, key: Key) {
        for _ in 0..MAX_STEPS {
            let Some(connection) = self.connections.get_mut(key) else {
                return;
            };
            let has_memory = self.shares.held() < self.shares.total()
                && !self.shares.is_over_limit(connection.counted);
            let step = connection.step(&mut self.scratch, &self.settings, has_memory, self.now);
            if !self.apply(key, step) {
                return self.update_connection(key);
            }
            self.update_connection(key);
            self.bound_head_memory(key);
        }
        self.unfinished.push(key);
    }

    /// Meets the need of a connection after a step. `true` if it can take another one.
    fn apply(&mut self, key: Key, step: Step) -> bool {
        match step {
            Step::Wait => false,
            Step::Again => true,
            Step::Head(head) => self.admit(key, &head),
            Step::Complete => self.prepare(key),
            Step::Reject(rejection) => self.reject(key, rejection, None),
            Step::NeedsMemory => self.free_memory_for(key),
            Step::Close => {
                self.close(key);
                false
            }
        }
    }

    /// Handles that the client has closed its sending side. Most such clients have gone away
    /// altogether; only writing to them would show which have not.
    fn input_closed(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        connection.input_closed = true;
        let converts = connection
            .queue
            .is_some_and(|(kind, _)| kind == WorkKind::Conversion);
        match &connection.stage {
            Stage::Working { exchange } => {
                if let Some(exchange) = self.exchanges.get_mut(*exchange) {
                    exchange.cancel.cancel();
                }
            }
            // A conversion costs too much to be done for nobody.
            Stage::Queued { .. } if converts => {
                self.reject(key, Rejection::ClientDisconnected, None);
            }
            _ => {}
        }
    }

    /// Whether our own side is closed already. Then the client's closing changes nothing, and the
    /// bytes that it sent before are still to be read, since closing a socket with unread bytes
    /// resets the connection.
    fn is_lingering(&mut self, key: Key) -> bool {
        let connection = self.connections.get_mut(key);
        connection.is_some_and(|connection| matches!(connection.stage, Stage::Lingering { .. }))
    }

    fn close(&mut self, key: Key) {
        let Some(connection) = self.connections.remove(key) else {
            return;
        };
        self.shares.replace(connection.counted, Share::default());
        if let Some(deadline) = connection.deadline {
            self.timers.remove(&(deadline, key));
        }
        if connection.is_surplus {
            self.surplus -= 1;
        } else {
            self.counts.remove(connection.peer);
        }
        match (connection.stage, connection.queue) {
            (Stage::Queued { .. }, Some((kind, owner))) => {
                self.queues[kind as usize].remove(owner, key);
            }
            (Stage::Working { exchange }, _) => {
                if let Some(exchange) = self.exchanges.get_mut(exchange) {
                    exchange.client = None;
                    exchange.cancel.cancel();
                }
            }
            _ => {}
        }
    }
}
