//! Converts many pictures at a time, as many as there are cores.

use super::existing::{Decision, Existing};
use super::progress::Progress;
use super::tasks::{Input, Target, Task};
use crate::cli::output::Output;
use crate::conversion::{self, Cancel, Conversion, CpuBudget, Fonts, FoundQuality, Job, Params};
use crate::image::{Format, Limits};
use crate::process::interrupt::{self, Outputs};
use crate::store::saved_percent;
use indicatif::HumanBytes;
use std::fmt;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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
    /// It was converted; a line that says so, and its bytes before and after.
    Converted(String, Bytes),
    /// It was skipped; a line that says so, unless it is skipped in silence.
    Skipped(Option<String>),
}

/// The bytes of a picture, or of several.
#[derive(Clone, Copy, Default)]
struct Bytes {
    before: u64,
    after: u64,
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
        let total = Mutex::new((0, Bytes::default()));
        let convert_until_done = || {
            while let Some((index, task)) = {
                let index = next.fetch_add(1, Ordering::Relaxed);
                tasks.get(index).map(|task| (index, task))
            } {
                let outcome = catch_unwind(AssertUnwindSafe(|| self.convert(task)))
                    .unwrap_or_else(|_| Err("the conversion failed".to_owned()));
                match outcome {
                    Ok(Outcome::Converted(line, bytes)) => {
                        progress.say(&line);
                        let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
                        total.0 += 1;
                        total.1.before += bytes.before;
                        total.1.after += bytes.after;
                    }
                    Ok(Outcome::Skipped(Some(line))) => progress.say(&line),
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
        let (converted, bytes) = total.into_inner().unwrap_or_else(PoisonError::into_inner);
        if converted > 1 {
            progress.say(&format!("{converted} pictures: {bytes}"));
        }
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
        let output = match &task.target {
            Target::StandardOutput => None,
            Target::File(path) => {
                let output = Output::find(path);
                Some(output.map_err(|error| format!("{}: {error}", task.target))?)
            }
        };
        if let Some(file) = output.as_ref().and_then(Output::replaces)
            && let Decision::Skip { silently } = self.existing.decide(file)?
        {
            return Ok(skipped(task, &task.target, silently));
        }
        let bytes = read(&task.input).map_err(|error| error.to_string())?;
        let conversion = self.encode(&bytes)?;
        if !conversion.prefers_original {
            return self.write(task, &task.target, output.as_ref(), &bytes, &conversion);
        }
        let target = task.target_of_original(&bytes);
        let output = match &target {
            Target::StandardOutput => None,
            // The input stays where it is.
            Target::File(path) if task.is_input(path) => {
                let (line, bytes) = describe(task, &target, &bytes, &conversion);
                return Ok(Outcome::Converted(line, bytes));
            }
            Target::File(path) => {
                let output = Output::find(path).map_err(|error| format!("{target}: {error}"))?;
                if let Some(file) = output.replaces()
                    && let Decision::Skip { silently } = self.existing.decide(file)?
                {
                    return Ok(skipped(task, &target, silently));
                }
                Some(output)
            }
        };
        self.write(task, &target, output.as_ref(), &bytes, &conversion)
    }

    /// Writes the WebP, or the input in its place.
    fn write(
        &self,
        task: &Task,
        target: &Target,
        output: Option<&Output>,
        bytes: &[u8],
        conversion: &Conversion,
    ) -> Result<Outcome, String> {
        let target_failed = |error: io::Error| format!("{target}: {error}");
        let file = if conversion.prefers_original {
            bytes
        } else {
            &conversion.webp
        };
        let written = match output {
            None => self.write_standard_output(file),
            Some(output) => output.write(file, 0o666, self.existing.if_created(), &self.outputs),
        };
        match (written, target) {
            (Ok(()), _) => {
                let (line, bytes) = describe(task, target, bytes, conversion);
                Ok(Outcome::Converted(line, bytes))
            }
            // The file was created while the picture was converted.
            (Err(error), Target::File(path)) if error.kind() == io::ErrorKind::AlreadyExists => {
                match self.existing.decide(path)? {
                    Decision::Skip { silently } => Ok(skipped(task, target, silently)),
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

    fn write_standard_output(&self, file: &[u8]) -> io::Result<()> {
        let mut output = io::stdout().lock();
        output.write_all(file)?;
        output.flush()?;
        self.outputs.count_finished();
        Ok(())
    }
}

fn skipped(task: &Task, target: &Target, silently: bool) -> Outcome {
    let line = || format!("{}: skipped, since {target} exists", task.input);
    Outcome::Skipped((!silently).then(line))
}

/// A line about a picture that was converted, and its bytes.
fn describe(
    task: &Task,
    target: &Target,
    input: &[u8],
    conversion: &Conversion,
) -> (String, Bytes) {
    let Conversion {
        webp,
        width,
        height,
        coding,
        found,
        timing,
        prefers_original,
    } = conversion;
    let spent = timing.decode + timing.watermark + timing.encode;
    let before = input.len() as u64;
    let bytes = Bytes {
        before,
        after: if *prefers_original {
            before
        } else {
            webp.len() as u64
        },
    };
    let kind = if *prefers_original {
        format!(
            "original, since WebP takes {}",
            HumanBytes(webp.len() as u64)
        )
    } else {
        coding.name().to_owned() + &found.map_or_else(String::new, describe_found)
    };
    let line = format!(
        "{} -> {target}: {width} x {height}, {kind}, {bytes}, {} ms",
        task.input,
        spent.as_millis()
    );
    (line, bytes)
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bytes { before, after } = *self;
        write!(f, "{} -> {}", HumanBytes(before), HumanBytes(after))?;
        match saved_percent(before, after) {
            Some(percent) => write!(f, " ({percent} % saved)"),
            None => Ok(()),
        }
    }
}

/// What a search over quality found, as the middle of a line.
fn describe_found(found: FoundQuality) -> String {
    let quality = found
        .quality
        .map(|quality| format!(" at quality {quality}"));
    let score = found.score.map(|score| format!(", score {score:.1}"));
    quality.unwrap_or_default() + &score.unwrap_or_default()
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
