//! How far a batch of conversions is, shown on a terminal, and which of them failed.

use crate::cli::say;
use indicatif::ProgressBar;
use std::io::{self, IsTerminal};
use std::sync::{Mutex, PoisonError};

/// The progress of one batch.
pub(super) struct Progress {
    bar: ProgressBar,
    /// The number of inputs.
    total: usize,
    /// The inputs that failed: the index of each, and a line that says why.
    failures: Mutex<Vec<(usize, String)>>,
}

impl Progress {
    /// Shows a bar if there is more than one input and standard error is a terminal.
    pub(super) fn new(total: usize) -> Progress {
        let bar = if total > 1 && io::stderr().is_terminal() {
            ProgressBar::new(total as u64)
        } else {
            ProgressBar::hidden()
        };
        Progress {
            bar,
            total,
            failures: Mutex::default(),
        }
    }

    /// Writes a line to standard error, above the bar.
    pub(super) fn say(&self, line: &str) {
        self.bar.suspend(|| say::note(line));
    }

    /// Counts one more input as done.
    pub(super) fn advance(&self) {
        self.bar.inc(1);
    }

    /// Removes the bar.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Remembers that the input of this index failed.
    pub(super) fn add_failure(&self, index: usize, line: String) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.push((index, line));
    }

    /// The lines of the inputs that failed, in the order of the inputs.
    pub(super) fn failures(&self) -> Vec<String> {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.sort();
        failures.iter().map(|(_, line)| line.clone()).collect()
    }

    /// Says how far the batch came, when a signal ends it.
    pub(super) fn say_interrupted(&self, converted: usize) {
        self.bar.finish_and_clear();
        let total = self.total;
        let mut lines = vec![format!(
            "towebp: interrupted when {converted} of {total} pictures were converted"
        )];
        lines.extend(self.failures());
        say::note(&lines.join("\n"));
    }
}
