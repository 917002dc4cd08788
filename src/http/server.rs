//! The running server: the front, and its workers.

use super::admitted::HttpAdmission;
use super::state::AppState;
use crate::admission::MemoryBudget;
use crate::front::{FrontHandle, Heartbeat, Listeners, LoadGauge, ShutdownHandle};
use std::net::SocketAddr;
use std::sync::Arc;

/// Most pages that are answered at a time. No page takes longer than computing a password, some 50
/// ms; while all four compute one, for four client addresses, others wait as long.
const MOST_PAGES: usize = 4;

/// Most conversions, beyond those that may run and one for each core, that read their request and
/// plan, or wait until the disk has their usage entry.
const MOST_BESIDE: usize = 4;

/// A running server.
pub struct Server {
    addresses: Vec<SocketAddr>,
    front: FrontHandle,
}

impl Server {
    /// Starts the workers, and then accepts connections.
    ///
    /// # Errors
    /// A sentence for the operator, if the threads cannot be had.
    pub fn start(listeners: Listeners, state: AppState) -> Result<Server, String> {
        let addresses = listeners.addresses().to_vec();
        let threads = state.settings.threads.get();
        let [small, large] = MemoryBudget::most_running(threads);
        let conversions = small + large + threads + MOST_BESIDE;
        // One worker for readiness, which is checked once a second at most.
        let workers = [conversions, MOST_PAGES, 1];
        let front = listeners.serve(workers, HttpAdmission(Arc::new(state)))?;
        Ok(Server { addresses, front })
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

    /// Shows whether the event loop still runs.
    pub fn heartbeat(&self) -> Heartbeat {
        self.front.heartbeat.clone()
    }

    /// Shows how busy the event loop is.
    pub fn load_gauge(&self) -> LoadGauge {
        self.front.load.clone()
    }

    /// Waits until the server was shut down and all workers have ended.
    ///
    /// # Errors
    /// A sentence for the operator: why the event loop ended by itself, which should never happen.
    pub fn wait(self) -> Result<(), String> {
        self.front.wait()
    }
}
