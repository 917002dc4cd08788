//! The signals that end `towebp serve`.

use super::systemd::Manager;
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};
use std::io;
use std::sync::Arc;
use std::thread;

/// Signals that end the process, caught from now on.
pub struct CaughtSignals(Signals);

/// Catches SIGTERM (from service managers and `docker stop`) and SIGINT (Ctrl+C). The first process
/// of a container would ignore them otherwise.
///
/// # Errors
/// A sentence for the operator.
pub fn catch() -> Result<CaughtSignals, String> {
    // If SIGXFSZ is caught, a limit on the size of files (`ulimit -f`) makes writes fail, as a full
    // disk does, instead of ending the process.
    flag::register(SIGXFSZ, Arc::default())
        .and_then(|_| Signals::new([SIGTERM, SIGINT]))
        .map(CaughtSignals)
        .map_err(|error| format!("signals cannot be caught: {error}"))
}

impl CaughtSignals {
    /// From now on the first signal (also one that came since [`catch`]) calls `stop` and notifies
    /// the service manager; the second one ends the process at once, as does an error of `stop`.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn stop_on_signal(
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
            // The default action of the signal: it ends the process.
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
