//! What `towebp serve` does when it is asked to end.

use super::systemd::Manager;
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};
use std::io;
use std::sync::Arc;
use std::thread;

/// Signals that ask the process to end, caught from now on.
pub struct Caught(Signals);

/// Catches SIGTERM (service managers, `docker stop`) and SIGINT (Ctrl+C). A process that is number
/// 1 of a container would not even notice them otherwise.
///
/// # Errors
/// A sentence for the operator.
pub fn catch() -> Result<Caught, String> {
    // A limit on the size of files (`ulimit -f`) would end the process: caught, it makes writes
    // fail, as a full disk does.
    flag::register(SIGXFSZ, Arc::default())
        .and_then(|_| Signals::new([SIGTERM, SIGINT]))
        .map(Caught)
        .map_err(|error| format!("signals cannot be caught: {error}"))
}

impl Caught {
    /// From now on the first signal, one that came before too, closes the door, which
    /// the manager is told, and the second ends the process at once.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn close(
        self,
        stop: impl Fn() -> io::Result<()> + Send + 'static,
        manager: Manager,
    ) -> Result<(), String> {
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || wait(self.0, &stop, &manager))
            .map(drop)
            .map_err(|error| format!("the thread for signals did not start: {error}"))
    }
}

fn wait(mut signals: Signals, stop: &dyn Fn() -> io::Result<()>, manager: &Manager) {
    let mut is_stopping = false;
    for signal in signals.forever() {
        if is_stopping || stop().is_err() {
            // As if it had never been caught: the process ends by the signal.
            low_level::emulate_default_handler(signal).ok();
        }
        manager.stopping();
        log::info!(
            "{}: requests under way are finished; a second signal ends the process at once",
            low_level::signal_name(signal).unwrap_or("a signal")
        );
        is_stopping = true;
    }
}
