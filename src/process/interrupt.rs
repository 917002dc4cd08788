//! Signals that end a command in the middle of its work, such as Ctrl+C: unfinished files are
//! removed first.

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

/// The files that this process is writing, and the number of those that it has finished. A clone
/// shares them.
#[derive(Clone, Debug, Default)]
pub struct Outputs(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Paths of temporary files.
    unfinished: BTreeSet<PathBuf>,
    finished: usize,
}

impl Outputs {
    /// Calls `make`, which makes a temporary file and returns its path, and records the file.
    /// `make` must not block, since a signal takes effect only before or after it.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn begin<T, E>(&self, make: impl FnOnce() -> Result<(PathBuf, T), E>) -> Result<T, E> {
        let mut state = self.state();
        let (path, made) = make()?;
        state.unfinished.insert(path);
        Ok(made)
    }

    /// Calls `rename`, which gives a temporary file its name, and counts the file as finished; or
    /// removes it if that fails. As in [`Outputs::begin`], a signal takes effect only before or
    /// after this.
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

/// From now on SIGINT, SIGTERM and SIGHUP remove unfinished files, call `at_end` with the number of
/// finished ones, and end the process with the exit code that shells report for the signal: 130
/// after Ctrl+C. A second signal, while `at_end` writes to a slow terminal, ends the process at
/// once. A signal that the process was started to ignore (by `nohup`, or as a background job of a
/// script) stays ignored.
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
    // If SIGXFSZ is caught, a limit on the size of files (`ulimit -f`) makes writes fail, as a full
    // disk does, instead of ending the process.
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
            // The state stays locked, so that no other file is begun.
            process::exit(128 + signal)
        })
        .map(drop)
        .map_err(failed)
}

/// The signals that this process ignores, signal n in bit n - 1, as Linux reports them (`proc(5)`,
/// `SigIgn`); 0 elsewhere.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
