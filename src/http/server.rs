//! The running server: worker threads around `tiny_http`, behind the front.

use super::admission::HttpAdmission;
use super::state::AppState;
use super::{admitted, exchange};
use crate::front::{
    Clients, FrontHandle, Heartbeat, Listeners, LoadGauge, Pool, PrivateSocket, ShutdownHandle,
};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Threads for everything but conversions. No such request takes longer than computing a password,
/// some 50 ms; while all four threads compute one, which four client addresses have to ask for,
/// others wait as long.
const PAGE_THREADS: usize = 4;

/// Threads for conversions, beyond two for each conversion that may run; small and large bodies
/// have as many each. A thread reads the request, estimates its memory and waits for it
/// ([`MemoryBudget`](crate::admission::MemoryBudget)), so that others with smaller pictures get
/// by. No account has more than half of the threads, which has to be enough for all conversions
/// that may run.
const WAITING_THREADS: usize = 4;

/// A running server.
pub struct Server {
    addresses: Vec<SocketAddr>,
    front: FrontHandle,
    pools: Vec<Workers>,
    is_over: Arc<AtomicBool>,
}

/// The threads of one pool, and the server that they take requests from.
struct Workers {
    server: Arc<tiny_http::Server>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Starts the workers, and then accepts connections. While it starts, there are private
    /// sockets in the folder `private`.
    ///
    /// # Errors
    /// A sentence for the operator, if the sockets or the threads cannot be had.
    pub fn start(listeners: Listeners, state: AppState, private: &Path) -> Result<Server, String> {
        let addresses = listeners.addresses().to_vec();
        let (state, clients) = (Arc::new(state), listeners.clients());
        let is_over = Arc::new(AtomicBool::new(false));
        let conversion_threads = 2 * state.settings.threads.get() + WAITING_THREADS;
        let (mut upstreams, mut pools) = (Vec::new(), Vec::new());
        for pool in Pool::ALL {
            let (name, count) = match pool {
                Pool::Conversions => ("convert", conversion_threads),
                Pool::SmallConversions => ("small", conversion_threads),
                Pool::Pages => ("pages", PAGE_THREADS),
            };
            let socket = PrivateSocket::bind(private, &format!("front-{name}"))?;
            let server = tiny_http::Server::from_listener(socket.listener()?, None)
                .map_err(|error| format!("the HTTP server did not start: {error}"))?;
            let server = Arc::new(server);
            let start_thread = |number| {
                let (server, state) = (Arc::clone(&server), Arc::clone(&state));
                let (clients, is_over) = (Arc::clone(&clients), Arc::clone(&is_over));
                let name = format!("{name}-{number}");
                thread::Builder::new()
                    .name(name.clone())
                    .spawn(move || work(&server, &state, &clients, &is_over))
                    .map_err(|error| format!("the thread {name} did not start: {error}"))
            };
            let threads = (1..=count)
                .map(start_thread)
                .collect::<Result<Vec<_>, String>>()?;
            upstreams.push((pool, socket, count));
            pools.push(Workers { server, threads });
        }
        let front = listeners.serve(upstreams, HttpAdmission::new(state))?;
        Ok(Server {
            addresses,
            front,
            pools,
            is_over,
        })
    }

    /// The addresses that it listens on, with the ports that it really got.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Ends the server gracefully: it accepts no more connections, finishes the requests that are
    /// under way, and [`Server::wait`] returns.
    pub fn shutdown_handle(&self) -> ShutdownHandle {
        self.front.shutdown.clone()
    }

    /// Tells whether the event loop still runs.
    pub fn heartbeat(&self) -> Heartbeat {
        self.front.heartbeat.clone()
    }

    /// Tells how busy the event loop is.
    pub fn load_gauge(&self) -> LoadGauge {
        self.front.load.clone()
    }

    /// Waits until the server was shut down and all workers have ended.
    ///
    /// # Errors
    /// A sentence for the operator: why the event loop ended by itself, which should never happen.
    pub fn wait(self) -> Result<(), String> {
        let ended = self.front.ended.recv();
        ended.unwrap_or_else(|_| Err("the event loop has ended".to_owned()))?;
        self.is_over.store(true, Ordering::SeqCst);
        for Workers { server, threads } in &self.pools {
            for _ in threads {
                server.unblock();
            }
        }
        for thread in self.pools.into_iter().flat_map(|pool| pool.threads) {
            thread
                .join()
                .map_err(|_| "a worker has panicked".to_owned())?;
        }
        Ok(())
    }
}

/// Answers requests until the server has ended.
fn work(server: &tiny_http::Server, state: &AppState, clients: &Clients, is_over: &AtomicBool) {
    while !is_over.load(Ordering::SeqCst) {
        // There are errors at the start, when the front has all its connections and stops the
        // accepting of more, and at the end.
        if let Ok(incoming) = server.recv() {
            exchange::run(
                incoming,
                clients,
                &state.metrics,
                &state.settings,
                |request, admitted, body| admitted::answer(state, request, admitted, body),
            );
        }
    }
}
