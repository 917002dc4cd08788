//! Converts many pictures at a time, as many as there are cores.

use super::existing::Existing;
use super::folders;
use super::progress::{Messages, Progress};
use super::report::{Bytes, Converted, Outcome, Total};
use super::tasks::{Input, Plan, Target, Task};
use crate::cli::names::shown;
use crate::cli::output::Output;
use crate::process::interrupt::{self, Outputs};
use indicatif::HumanBytes;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use std::{fs, thread};
use towebp_pipeline::conversion::{
    self, Cancel, Conversion, ConversionError, CpuBudget, Fonts, Job, Params,
};
use towebp_pipeline::image::{AcceptedFormats, Format, Limits};
use towebp_pipeline::watermark::TextError;

/// The state that all conversions of one command share.
pub(super) struct Batch {
    pub(super) params: Params,
    pub(super) fonts: Fonts,
    pub(super) limits: Limits,
    /// The formats that are converted beside PNG, JPEG, GIF and BMP.
    pub(super) accepts: AcceptedFormats,
    /// The file of the watermark's picture.
    pub(super) watermark: Option<Arc<[u8]>>,
    /// The cores that pictures share; the last picture has all of them.
    pub(super) cpu_budget: CpuBudget,
    pub(super) existing: Existing,
    pub(super) rules: Rules,
    pub(super) messages: Messages,
    pub(super) outputs: Outputs,
}

/// Which pictures are not converted.
#[derive(Clone, Copy, Default)]
pub(super) struct Rules {
    /// `--newer`: those whose output is not older.
    pub(super) newer: bool,
    /// `--skip-if-larger`: those whose WebP is not smaller.
    pub(super) skip_if_larger: bool,
    /// `--dry-run`: all.
    pub(super) dry_run: bool,
}

impl Batch {
    /// Carries out all tasks; one that fails does not stop the others.
    ///
    /// # Errors
    /// A line for each input that failed.
    pub(super) fn convert_all(&self, plan: &Plan) -> Result<(), String> {
        let started = Instant::now();
        let tasks = &plan.tasks;
        let count = tasks.len() + plan.webps.len() + plan.failed.len();
        let progress = Arc::new(Progress::new(tasks.len(), self.messages));
        interrupt::catch(&self.outputs, {
            let progress = Arc::clone(&progress);
            move |converted| progress.report_interrupted(converted)
        })?;
        let mut total = Total::default();
        for path in &plan.webps {
            // Some programs take the last argument as the output, and this one may be meant so.
            let hint = if (plan.webps.len(), tasks.len()) == (1, 1) {
                format!("; -o {} writes to it", shown(path))
            } else {
                String::new()
            };
            let outcome = skipped(format!("it is a WebP already{hint}"));
            total.count(&outcome);
            let input = Input::File(path.clone());
            progress.report(&input, &Target::File(path.clone()), &outcome);
        }
        for (index, (path, reason)) in plan.failed.iter().enumerate() {
            total.failed += 1;
            progress.add_failure(tasks.len() + index, &Input::File(path.clone()), reason);
        }
        let total = Mutex::new(total);
        let next = AtomicUsize::new(0);
        let convert_until_done = || {
            while let Some((index, task)) = {
                let index = next.fetch_add(1, Ordering::Relaxed);
                tasks.get(index).map(|task| (index, task))
            } {
                progress.begin(&task.input);
                let outcome = catch_unwind(AssertUnwindSafe(|| self.convert(task)))
                    .unwrap_or_else(|_| Err("the conversion failed".to_owned()));
                let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
                match &outcome {
                    Ok((_, outcome)) => total.count(outcome),
                    Err(_) => total.failed += 1,
                }
                drop(total);
                match outcome {
                    Ok((target, outcome)) => progress.report(&task.input, &target, &outcome),
                    Err(reason) => progress.add_failure(index, &task.input, &reason),
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
        let total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
        progress.report_total(&total, count, started.elapsed(), self.rules.dry_run);
        match progress.failures().as_slice() {
            [] => progress.printed(),
            [failure] if count == 1 => Err(failure.clone()),
            many => Err(format!(
                "{} of {count} pictures were not converted:\n{}",
                many.len(),
                many.join("\n")
            )),
        }
    }

    /// Converts one input, and returns its target and its outcome. The target is examined first, so
    /// that the input of a skipped task is not read.
    fn convert(&self, task: &Task) -> Result<(Target, Outcome), String> {
        let (output, outcome) = self.find(task, &task.target)?;
        if let Some(outcome) = outcome {
            return Ok((task.target.clone(), outcome));
        }
        if self.rules.dry_run {
            check_input(&task.input, self.accepts)?;
            return Ok((task.target.clone(), Outcome::Planned));
        }
        let bytes = read(&task.input)?;
        let conversion = self.encode(&bytes)?;
        if self.rules.skip_if_larger && conversion.webp.len() >= bytes.len() {
            let (webp, own) = (conversion.webp.len() as u64, bytes.len() as u64);
            let (webp, own) = (HumanBytes(webp), HumanBytes(own));
            let reason = format!("its WebP would take {webp}, and it takes {own}");
            return Ok((task.target.clone(), skipped(reason)));
        }
        if !conversion.prefers_original {
            return self.write(task.target.clone(), output.as_ref(), &bytes, &conversion);
        }
        let target = task.target_of_original(&bytes);
        if let Target::File(path) = &target
            && task.is_input(path)
        {
            // The input stays where it is.
            let outcome = self.describe(&bytes, &conversion);
            return Ok((target, outcome));
        }
        let (output, outcome) = self.find(task, &target)?;
        match outcome {
            Some(outcome) => Ok((target, outcome)),
            None => self.write(target, output.as_ref(), &bytes, &conversion),
        }
    }

    /// Examines the path of an output. Returns an outcome if the picture is skipped.
    fn find(
        &self,
        task: &Task,
        target: &Target,
    ) -> Result<(Option<Output>, Option<Outcome>), String> {
        let Target::File(path) = target else {
            return Ok((None, None));
        };
        let output = Output::find(path).map_err(|error| format!("{target}: {error}"))?;
        let Some(file) = output.replaces() else {
            return Ok((Some(output), None));
        };
        if self.rules.newer && !task.is_newer_than(file) {
            let reason = format!("{target} is not older");
            return Ok((None, Some(skipped(reason))));
        }
        let outcome = self.existing.outcome(file, target)?;
        Ok((Some(output), outcome))
    }

    /// Writes the WebP, or the input in its place.
    fn write(
        &self,
        target: Target,
        output: Option<&Output>,
        bytes: &[u8],
        conversion: &Conversion,
    ) -> Result<(Target, Outcome), String> {
        let target_failed = |error: io::Error| format!("{target}: {error}");
        let file = if conversion.prefers_original {
            bytes
        } else {
            &conversion.webp
        };
        if let Target::File(path) = &target
            && let Some(folder) = path.parent()
        {
            make_folder(folder)?;
        }
        let written = match output {
            None => self.write_standard_output(file),
            Some(output) => output.write(file, 0o666, self.existing.replaces(), &self.outputs),
        };
        match (written, &target) {
            (Ok(()), _) => {
                let outcome = self.describe(bytes, conversion);
                Ok((target, outcome))
            }
            // The file was created while the picture was converted.
            (Err(error), Target::File(path)) if error.kind() == io::ErrorKind::AlreadyExists => {
                match self.existing.outcome(path, &target)? {
                    Some(outcome) => Ok((target, outcome)),
                    None => Err(target_failed(error)),
                }
            }
            (Err(error), _) => Err(target_failed(error)),
        }
    }

    fn encode(&self, bytes: &[u8]) -> Result<Conversion, String> {
        let format = format_of(bytes, self.accepts)?;
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
        conversion::run(&job).map_err(sentence)
    }

    fn write_standard_output(&self, file: &[u8]) -> io::Result<()> {
        let mut output = io::stdout().lock();
        output.write_all(file)?;
        output.flush()?;
        self.outputs.count_finished();
        Ok(())
    }

    fn describe(&self, input: &[u8], conversion: &Conversion) -> Outcome {
        let Conversion {
            webp,
            width,
            height,
            coding,
            found,
            timing,
            placeholder,
            prefers_original,
        } = conversion;
        let (before, webp_bytes) = (input.len() as u64, webp.len() as u64);
        let coding = coding.name();
        let given = (!coding.starts_with("lossless")).then_some(self.params.quality);
        Outcome::Converted(Converted {
            bytes: Bytes {
                before,
                after: if *prefers_original {
                    before
                } else {
                    webp_bytes
                },
            },
            webp_bytes,
            is_original: *prefers_original,
            width: *width,
            height: *height,
            coding,
            quality: found.map_or(given, |found| found.quality),
            is_found: found.is_some(),
            score: found.and_then(|found| found.score),
            placeholder: placeholder.clone(),
            spent: timing.decode + timing.watermark + timing.encode,
        })
    }
}

fn skipped(reason: String) -> Outcome {
    Outcome::Skipped {
        reason,
        silently: false,
    }
}

/// The text of an error, with the names of flags.
fn sentence(error: ConversionError) -> String {
    match error {
        ConversionError::MaxBytes { allowed, least } => format!(
            "its smallest file has {least} bytes, and --max-bytes allows {allowed}; allow as many, or take that file by \
             --best-effort"
        ),
        ConversionError::MissingCharacters(missing) => {
            format!("--watermark: {}", TextError::MissingCharacters(missing))
        }
        other => other.to_string(),
    }
}

fn make_folder(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", shown(folder)))
}

fn format_of(bytes: &[u8], accepts: AcceptedFormats) -> Result<Format, &'static str> {
    match Format::sniff(bytes) {
        Some(format) if format.is_accepted(accepts) => Ok(format),
        Some(Format::Tiff) => Err("it is a TIFF, which takes --accept tiff"),
        Some(_) => Err("it is a WebP already"),
        None => Err("it looks like none of PNG, JPEG, GIF and BMP"),
    }
}

/// Checks an input without converting it.
fn check_input(input: &Input, accepts: AcceptedFormats) -> Result<(), String> {
    let Input::File(path) = input else {
        return Ok(());
    };
    let found = fs::metadata(path).map_err(|error| error.to_string())?;
    if found.is_file() {
        let bytes = folders::first_bytes(path).map_err(|error| error.to_string())?;
        format_of(&bytes, accepts)?;
    } else if found.is_dir() {
        return Err(IS_FOLDER.to_owned());
    }
    Ok(())
}

const IS_FOLDER: &str = "it is a folder; -r converts what is in it";

fn read(input: &Input) -> Result<Vec<u8>, String> {
    match input {
        Input::File(path) if path.is_dir() => Err(IS_FOLDER.to_owned()),
        Input::File(path) => fs::read(path).map_err(|error| error.to_string()),
        Input::StandardInput => {
            let mut bytes = Vec::new();
            let read = io::stdin().lock().read_to_end(&mut bytes);
            read.map_err(|error| error.to_string())?;
            Ok(bytes)
        }
    }
}
