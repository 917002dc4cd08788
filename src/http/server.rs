//! The start of the server: the front, and its workers.

use super::admitted::HttpAdmission;
use super::state::AppState;
use crate::admission::MemoryBudget;
use crate::front::{FrontHandle, Listeners};
use std::sync::Arc;

/// Most pages that are answered at a time. No page takes longer than computing a password, some 50
/// ms; while all four compute one, for four client addresses, others wait as long.
const MOST_PAGES: usize = 4;

/// Most conversions, beyond those that may run and one for each core, that read their request and
/// plan, or wait until the disk has their usage entry.
const MOST_BESIDE: usize = 4;

/// Starts the workers, and then accepts connections.
///
/// # Errors
/// A sentence for the operator, if the threads cannot be had.
pub fn serve(listeners: Listeners, state: AppState) -> Result<FrontHandle, String> {
    let threads = state.settings.threads.get();
    let [small, large] = MemoryBudget::most_running(threads);
    let conversions = small + large + threads + MOST_BESIDE;
    // One worker for readiness, which is checked once a second at most.
    let workers = [conversions, MOST_PAGES, 1];
    listeners.serve(workers, HttpAdmission(Arc::new(state)))
}
