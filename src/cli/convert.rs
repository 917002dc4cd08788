//! `towebp convert`: converts files with the same [`towebp_pipeline::conversion`] as the server, by
//! the same parameters.

mod batch;
mod existing;
mod folders;
mod hints;
mod naming;
mod parameters;
mod progress;
mod report;
mod tasks;

pub(super) use hints::hint;

use super::failure::Failure;
use super::names::shown;
use super::output;
use super::say;
use super::settings::ConvertFlags;
use super::shared::fonts;
use crate::fetch::{Fetcher, Settings};
use crate::process::interrupt::Outputs;
use batch::{Batch, Rules};
use clap::{Args, ValueHint};
use existing::Existing;
use naming::Name;
use parameters::ParameterFlags;
use progress::Messages;
use std::ffi::OsStr;
use std::fmt::Display;
use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tasks::{Destination, Plan, Target, plan};
use towebp_pipeline::conversion::{CpuBudget, IfLarger, Params};

/// Convert pictures (PNG, JPEG, GIF, BMP) to WebP.
///
/// An existing file is replaced if its name ends in .webp, else only with --force; an input never
/// is. What is a WebP already is passed over, unless --accept webp is given.
#[derive(Args, Debug)]
#[command(mut_arg("threads", |threads| {
    threads.help("cores to use, each for a picture or several for one (default: all of them)").help_heading(MESSAGES)
}))]
#[command(mut_arg("accept", |types| types.help_heading(MESSAGES)))]
#[command(mut_arg("max-pixels", |pixels| pixels.help_heading(MESSAGES)))]
pub(super) struct Convert {
    #[command(flatten)]
    files: FileFlags,
    #[command(flatten)]
    parameters: ParameterFlags,
    #[command(flatten)]
    messages: MessageFlags,
    #[command(flatten)]
    settings: ConvertFlags,
}

const MESSAGES: &str = "Messages and resources";

#[derive(Args, Debug)]
#[command(next_help_heading = "Files")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
struct FileFlags {
    /// pictures to convert, and with -r folders; - is standard input
    #[arg(value_name = "IN", value_hint = ValueHint::FilePath, help_heading = "Arguments")]
    inputs: Vec<PathBuf>,

    /// where to: a folder (made if missing) if OUT ends in /, is one, or there are several inputs
    /// or -r; else a file; - is standard output. By default beside each picture
    #[arg(short, long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// convert the pictures in folders and all folders below, hidden ones apart; with -o the same
    /// folders are made in OUT
    #[arg(short, long)]
    recursive: bool,

    /// the names of the WebP files (default {stem}.webp): {stem} is the input's name without its
    /// ending, {ext} the ending and, below the folder of -o, {dir} the input's folder
    #[arg(long, value_name = "NAME", value_hint = ValueHint::Other)]
    name: Option<String>,

    /// replace an existing file whose name does not end in .webp, too, and write a WebP onto a
    /// terminal
    #[arg(long)]
    force: bool,

    /// never replace a file: pictures whose WebP exists are skipped in silence, and the exit code
    /// is 0
    #[arg(long)]
    no_clobber: bool,

    /// do not convert pictures whose WebP exists, and say so
    #[arg(long)]
    skip_existing: bool,

    /// convert only pictures that were changed after their WebP was written, or have none
    #[arg(long)]
    newer: bool,

    /// write no WebP that is not smaller than its picture, and say so
    #[arg(long)]
    skip_if_larger: bool,

    /// say what would be done, and write nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Args, Debug)]
#[command(next_help_heading = MESSAGES)]
struct MessageFlags {
    /// say nothing but what failed
    #[arg(long)]
    quiet: bool,

    /// print an object of JSON for each picture, and one with the total
    #[arg(long)]
    json: bool,
}

/// Converts every input; one that fails does not stop the others.
///
/// # Errors
/// A mistake in the command, before anything is converted; or the inputs that failed and the
/// reasons.
pub(super) fn run(command: &Convert) -> Result<(), Failure> {
    let prepared = command.prepare().map_err(Failure::Usage)?;
    let settings = &command.settings.0;
    let picture = command.parameters.watermark_image();
    let batch = Batch {
        watermark: picture.map(load_watermark).transpose()?,
        params: prepared.params,
        fonts: fonts(&settings.fonts)?,
        limits: settings.config.limits,
        accepts: settings.config.http.accepts,
        cpu_budget: CpuBudget::new(settings.config.http.threads),
        existing: prepared.existing,
        rules: Rules {
            newer: command.files.newer,
            skip_if_larger: command.files.skip_if_larger,
            dry_run: command.files.dry_run,
        },
        messages: command.messages(),
        outputs: Outputs::default(),
    };
    Ok(batch.convert_all(&prepared.plan)?)
}

/// The values of the flags, after they were checked.
struct Prepared {
    params: Params,
    existing: Existing,
    plan: Plan,
}

impl Convert {
    /// Checks the whole command before anything is done.
    fn prepare(&self) -> Result<Prepared, String> {
        let files = &self.files;
        let params = self.parameters.params()?;
        let existing = self.existing()?;
        if files.skip_if_larger && params.if_larger == IfLarger::Original {
            return Err(
                "--skip-if-larger writes nothing in place of a WebP, and --if-larger original a copy: \
                        give one of the two"
                    .to_owned(),
            );
        }
        let destination = Destination {
            output: files.output.clone(),
            recursive: files.recursive,
            name: files.name.as_deref().map(Name::parse).transpose()?,
            accepts: self.settings.0.config.http.accepts,
        };
        let plan = plan(&files.inputs, &destination)?;
        let prints = |task: &tasks::Task| task.target == Target::StandardOutput;
        if plan.tasks.iter().any(prints) {
            self.check_standard_output()?;
        }
        if self.messages() == Messages::Lines {
            for line in self
                .parameters
                .without_effect(&params, !self.settings.0.fonts.is_empty())
            {
                say::note(&format!("towebp: {line}"));
            }
        }
        Ok(Prepared {
            params,
            existing,
            plan,
        })
    }

    fn check_standard_output(&self) -> Result<(), String> {
        let files = &self.files;
        for (flag, is_given) in [
            ("--json", self.messages.json),
            ("--skip-if-larger", files.skip_if_larger),
            ("--dry-run", files.dry_run),
        ] {
            if is_given {
                return Err(format!(
                    "{flag} and a WebP on standard output were given; give -o FILE, or no {flag}"
                ));
            }
        }
        if output::is_standard_output_closed() {
            return Err("standard output is closed; give -o FILE".to_owned());
        }
        if io::stdout().is_terminal() && !files.force {
            return Err(
                "a WebP is not for a terminal; give -o FILE, or lead standard output elsewhere (--force writes it all the same)"
                    .to_owned(),
            );
        }
        Ok(())
    }

    fn messages(&self) -> Messages {
        match self.messages {
            MessageFlags { json: true, .. } => Messages::Json,
            MessageFlags { quiet: true, .. } => Messages::None,
            MessageFlags { .. } => Messages::Lines,
        }
    }

    fn existing(&self) -> Result<Existing, String> {
        let files = &self.files;
        if files.newer && (files.no_clobber || files.skip_existing) {
            return Err(
                "--newer replaces files and --no-clobber and --skip-existing keep them: \
                 give only one of these"
                    .to_owned(),
            );
        }
        Existing::new(files.force, files.no_clobber, files.skip_existing)
    }
}

/// Reads the watermark's picture from a file or an http or https URL.
fn load_watermark(place: &OsStr) -> Result<Arc<[u8]>, String> {
    let path = Path::new(place);
    let failed = |reason: &dyn Display| format!("watermark picture {}: {reason}", shown(path));
    let url = place.to_str().filter(|text| is_url(text));
    let Some(url) = url else {
        return fs::read(path)
            .map(Arc::from)
            .map_err(|error| failed(&error));
    };
    // The user of the command line may reach whatever this machine reaches.
    let settings = Settings {
        allow_private: true,
        ..Settings::default()
    };
    Fetcher::new(&settings)?
        .fetch(url, &|| true)
        .map(|fetched| fetched.bytes)
        .map_err(|error| failed(&error))
}

fn is_url(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

#[cfg(test)]
mod tests;
