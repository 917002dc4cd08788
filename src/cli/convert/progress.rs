//! The messages of a batch of conversions while it works: a bar on a terminal, lines or JSON, and
//! the inputs that failed.

use super::report::{self, Outcome, Total};
use super::tasks::{Input, Target};
use crate::cli::say;
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use std::fmt;
use std::io::{self, IsTerminal};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The message about each picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Messages {
    /// A line on standard error.
    Lines,
    /// An object on standard output.
    Json,
    /// Nothing, unless it fails.
    None,
}

/// The progress of one batch.
pub(super) struct Progress {
    bar: ProgressBar,
    messages: Messages,
    /// The number of inputs.
    total: usize,
    /// The inputs that failed: the index of each, and a line with the reason.
    failures: Mutex<Vec<(usize, String)>>,
    /// The error of standard output, if it could not be written.
    unprinted: Mutex<Option<String>>,
}

/// How often the bar moves while pictures are converted.
const TICK: Duration = Duration::from_millis(125);

impl Progress {
    /// Shows a bar if standard error is a terminal. It moves from the start, within large pictures
    /// too.
    pub(super) fn new(total: usize, messages: Messages) -> Progress {
        let is_shown = total > 0 && messages != Messages::None && io::stderr().is_terminal();
        let bar = if is_shown {
            // Without colors, whether NO_COLOR is set or not.
            let style = ProgressStyle::with_template(
                "{spinner} {bar:30} {pos} of {len}, {elapsed}{left} {wide_msg}",
            );
            let style = style.expect("the template is valid").tick_chars("|/-\\ ");
            let style = style.with_key(
                "left",
                |state: &ProgressState, text: &mut dyn fmt::Write| {
                    if state.pos() > 0 {
                        write!(text, ", {:#} left", HumanDuration(state.eta())).ok();
                    }
                },
            );
            let bar = ProgressBar::new(total as u64).with_style(style);
            bar.enable_steady_tick(TICK);
            bar
        } else {
            ProgressBar::hidden()
        };
        Progress {
            bar,
            messages,
            total,
            failures: Mutex::default(),
            unprinted: Mutex::default(),
        }
    }

    /// Shows that an input is being converted.
    pub(super) fn begin(&self, input: &Input) {
        self.bar.set_message(input.to_string());
    }

    /// Reports the outcome of an input.
    pub(super) fn report(&self, input: &Input, target: &Target, outcome: &Outcome) {
        match self.messages {
            Messages::Lines => {
                if let Some(line) = report::line(input, target, outcome) {
                    self.bar.suspend(|| say::note(&line));
                }
            }
            Messages::Json => self.print(&report::object(input, target, outcome)),
            Messages::None => {}
        }
    }

    /// Reports the total of all inputs. A single input has only its own line.
    pub(super) fn report_total(
        &self,
        total: &Total,
        inputs: usize,
        spent: Duration,
        is_dry_run: bool,
    ) {
        match (self.messages, inputs) {
            (Messages::Lines, 0) => say::note("no pictures were found"),
            (Messages::Lines, 1) | (Messages::None, _) => {}
            (Messages::Lines, _) => say::note(&total.line(spent, is_dry_run)),
            (Messages::Json, _) => self.print(&total.object(spent)),
        }
    }

    /// Counts one more input as done.
    pub(super) fn advance(&self) {
        self.bar.inc(1);
    }

    /// Removes the bar.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Records that the input of this index failed.
    pub(super) fn add_failure(&self, index: usize, input: &Input, reason: &str) {
        if self.messages == Messages::Json {
            self.print(&report::object_of_failure(input, reason));
        }
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.push((index, format!("{input}: {reason}")));
    }

    /// The lines of the inputs that failed, in the order of the inputs.
    pub(super) fn failures(&self) -> Vec<String> {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.sort();
        failures.iter().map(|(_, line)| line.clone()).collect()
    }

    /// Reports how far the batch came, when a signal ends it.
    pub(super) fn report_interrupted(&self, converted: usize) {
        self.bar.finish_and_clear();
        let total = self.total;
        let mut lines = vec![format!(
            "towebp: interrupted when {converted} of {total} pictures were converted"
        )];
        lines.extend(self.failures());
        say::note(&lines.join("\n"));
    }

    fn print(&self, object: &serde_json::Value) {
        if let Err(sentence) = self.bar.suspend(|| say::print(&object.to_string())) {
            let mut unprinted = self
                .unprinted
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            unprinted.get_or_insert(sentence);
        }
    }

    /// Checks that standard output took all lines.
    ///
    /// # Errors
    /// A sentence for standard error.
    pub(super) fn printed(&self) -> Result<(), String> {
        let unprinted = self
            .unprinted
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        unprinted.clone().map_or(Ok(()), Err)
    }
}
