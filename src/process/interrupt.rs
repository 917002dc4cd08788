//! Signals that end a command in the middle of its work (Ctrl+C): unfinished files are removed
//! first.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::collections::BTreeSet;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fs, thread};

/// The files that this process is writing, and how many it has finished. A clone shares them.
#[derive(Clone, Debug, Default)]
pub struct Outputs(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Paths of temporary files.
    unfinished: BTreeSet<PathBuf>,
    finished: usize,
}

impl Outputs {
    /// Makes a temporary file by `make`, which tells its path and must not wait. A signal comes
    /// before or after, never in between.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn begin<T, E>(&self, make: impl FnOnce() -> Result<(PathBuf, T), E>) -> Result<T, E> {
        let mut state = self.state();
        let (path, made) = make()?;
        state.unfinished.insert(path);
        Ok(made)
    }

    /// Gives a temporary file its name by `rename`, and counts it as finished. Like
    /// [`Outputs::begin`] it is not interrupted. If it fails, the temporary file is removed.
    ///
    /// # Errors
    /// Those of `rename`.
    pub fn finish(&self, path: &Path, rename: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut state = self.state();
        let renamed = rename();
        if renamed.is_err() {
            fs::remove_file(path).ok();
        }
        state.unfinished.remove(path);
        state.finished += usize::from(renamed.is_ok());
        renamed
    }

    /// Removes a temporary file.
    pub fn abandon(&self, path: &Path) {
        let mut state = self.state();
        fs::remove_file(path).ok();
        state.unfinished.remove(path);
    }

    /// Counts an output that has no temporary file.
    pub fn count_finished(&self) {
        self.state().finished += 1;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// From now on SIGINT, SIGTERM and SIGHUP remove what is unfinished, call `at_end` with the number
/// of finished outputs, and end the process with the exit code that shells give for the signal: 130
/// after Ctrl+C. One that comes while `at_end` waits for a slow terminal ends the process at once.
/// A signal that the process was started to ignore (`nohup`, a job of a script in the background)
/// stays ignored.
///
/// # Errors
/// A sentence for the user.
pub fn catch(outputs: &Outputs, at_end: impl FnOnce(usize) + Send + 'static) -> Result<(), String> {
    let failed = |error: io::Error| format!("signals cannot be caught: {error}");
    let ignored = ignored_signals();
    let caught: Vec<i32> = [SIGINT, SIGTERM, SIGHUP]
        .into_iter()
        .filter(|signal| ignored >> (signal - 1) & 1 == 0)
        .collect();
    let is_clean = Arc::new(AtomicBool::new(false));
    for signal in &caught {
        flag::register_conditional_shutdown(*signal, 128 + signal, Arc::clone(&is_clean))
            .map_err(failed)?;
    }
    // A limit on the size of files (`ulimit -f`) makes writes fail, as a full disk does, instead of
    // ending the process.
    flag::register(SIGXFSZ, Arc::default()).map_err(failed)?;
    let mut signals = Signals::new(&caught).map_err(failed)?;
    let outputs = outputs.clone();
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            let Some(signal) = signals.forever().next() else {
                return;
            };
            let mut state = outputs.state();
            for path in &mem::take(&mut state.unfinished) {
                fs::remove_file(path).ok();
            }
            is_clean.store(true, Ordering::SeqCst);
            at_end(state.finished);
            // The lock is held to the end, so that no other file is begun.
            process::exit(128 + signal)
        })
        .map(drop)
        .map_err(failed)
}

/// The signals that this process ignores, signal n in bit n - 1, as Linux tells (`proc(5)`,
/// `SigIgn`); elsewhere none.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
