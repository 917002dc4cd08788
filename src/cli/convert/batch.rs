//! Converts many pictures at a time, as many as there are cores.

use super::existing::{Decision, Existing};
use super::progress::Progress;
use super::tasks::{Input, Target, Task};
use crate::cli::output::Output;
use crate::conversion::{self, Cancel, Conversion, CpuBudget, Fonts, Job, Params};
use crate::image::{Format, Limits};
use crate::process::interrupt::{self, Outputs};
use indicatif::HumanBytes;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, thread};

/// What all conversions of one command share.
pub(super) struct Batch {
    pub(super) params: Params,
    pub(super) fonts: Fonts,
    pub(super) limits: Limits,
    /// The file of the watermark's picture.
    pub(super) watermark: Option<Arc<[u8]>>,
    /// The cores that pictures share; the last picture has all of them.
    pub(super) cpu_budget: CpuBudget,
    pub(super) existing: Existing,
    pub(super) outputs: Outputs,
}

/// What became of one input.
enum Outcome {
    /// It was converted; a line that says so.
    Converted(String),
    /// It was skipped; a line that says so, unless it is skipped in silence.
    Skipped(Option<String>),
}

impl Batch {
    /// Carries out all tasks; one that fails does not stop the others.
    ///
    /// # Errors
    /// A line for each input that failed.
    pub(super) fn convert_all(&self, tasks: &[Task]) -> Result<(), String> {
        let progress = Arc::new(Progress::new(tasks.len()));
        interrupt::catch(&self.outputs, {
            let progress = Arc::clone(&progress);
            move |converted| progress.say_interrupted(converted)
        })?;
        let next = AtomicUsize::new(0);
        let convert_until_done = || {
            while let Some((index, task)) = {
                let index = next.fetch_add(1, Ordering::Relaxed);
                tasks.get(index).map(|task| (index, task))
            } {
                let outcome = catch_unwind(AssertUnwindSafe(|| self.convert(task)))
                    .unwrap_or_else(|_| Err("the conversion failed".to_owned()));
                match outcome {
                    Ok(Outcome::Converted(line) | Outcome::Skipped(Some(line))) => {
                        progress.say(&line);
                    }
                    Ok(Outcome::Skipped(None)) => {}
                    Err(reason) => {
                        progress.add_failure(index, format!("{}: {reason}", task.input));
                    }
                }
                progress.advance();
            }
        };
        thread::scope(|scope| {
            for _ in 1..self.cpu_budget.total().min(tasks.len()) {
                scope.spawn(convert_until_done);
            }
            convert_until_done();
        });
        progress.finish();
        match progress.failures().as_slice() {
            [] => Ok(()),
            [failure] if tasks.len() == 1 => Err(failure.clone()),
            many => Err(format!(
                "{} of {} pictures were not converted:\n{}",
                many.len(),
                tasks.len(),
                many.join("\n")
            )),
        }
    }

    /// Converts one input. The target is looked at first: the input of a task that is skipped is
    /// not read.
    fn convert(&self, task: &Task) -> Result<Outcome, String> {
        let target_failed = |error: io::Error| format!("{}: {error}", task.target);
        let output = match &task.target {
            Target::StandardOutput => None,
            Target::File(path) => Some(Output::find(path).map_err(target_failed)?),
        };
        if let Some(file) = output.as_ref().and_then(Output::replaces)
            && let Decision::Skip { silently } = self.existing.decide(file)?
        {
            return Ok(skipped(task, silently));
        }
        let bytes = read(&task.input).map_err(|error| error.to_string())?;
        let conversion = self.encode(&bytes)?;
        let written = match &output {
            None => self.write_standard_output(&conversion.webp),
            Some(output) => output.write(
                &conversion.webp,
                0o666,
                self.existing.if_created(),
                &self.outputs,
            ),
        };
        match (written, &task.target) {
            (Ok(()), _) => Ok(Outcome::Converted(describe(task, bytes.len(), &conversion))),
            // The file was created while the picture was converted.
            (Err(error), Target::File(path)) if error.kind() == io::ErrorKind::AlreadyExists => {
                match self.existing.decide(path)? {
                    Decision::Skip { silently } => Ok(skipped(task, silently)),
                    Decision::Replace => Err(target_failed(error)),
                }
            }
            (Err(error), _) => Err(target_failed(error)),
        }
    }

    fn encode(&self, bytes: &[u8]) -> Result<Conversion, String> {
        let format = Format::sniff(bytes).ok_or("it looks like none of PNG, JPEG, GIF and BMP")?;
        let job = Job {
            bytes,
            format,
            params: &self.params,
            watermark_picture: self.watermark.as_deref(),
            fonts: &self.fonts,
            limits: &self.limits,
            threads: self.cpu_budget.total(),
            cpu_budget: Some(&self.cpu_budget),
            cancel: &Cancel::never(),
        };
        let _own_core = self.cpu_budget.occupy();
        conversion::run(&job).map_err(|error| error.to_string())
    }

    fn write_standard_output(&self, webp: &[u8]) -> io::Result<()> {
        let mut output = io::stdout().lock();
        output.write_all(webp)?;
        output.flush()?;
        self.outputs.count_finished();
        Ok(())
    }
}

fn skipped(task: &Task, silently: bool) -> Outcome {
    let line = || format!("{}: skipped, since {} exists", task.input, task.target);
    Outcome::Skipped((!silently).then(line))
}

fn describe(task: &Task, input_bytes: usize, conversion: &Conversion) -> String {
    let Conversion {
        webp,
        width,
        height,
        coding,
        timing,
    } = conversion;
    let spent = timing.decode + timing.watermark + timing.encode;
    format!(
        "{} -> {}: {width} x {height}, {}, {} -> {} ({} %), {} ms",
        task.input,
        task.target,
        coding.name(),
        HumanBytes(input_bytes as u64),
        HumanBytes(webp.len() as u64),
        webp.len() * 100 / input_bytes.max(1),
        spent.as_millis()
    )
}

fn read(input: &Input) -> io::Result<Vec<u8>> {
    match input {
        Input::File(path) => fs::read(path),
        Input::StandardInput => {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes)?;
            Ok(bytes)
        }
    }
}
