//! `towebp check`: checks that all that is stored fits together, beside a running server too.

use super::failure::Failure;
use super::names::shown;
use super::say;
use super::settings::DataFlags;
use super::shared::{count, must_exist, sentence, snapshot};
use crate::admin;
use crate::store::{self, Findings};
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Check that all that is stored fits together, beside a running server too.
///
/// The exit code is 1 if it does not.
#[derive(Args)]
pub(super) struct Check {
    /// a database file that no server uses, such as a backup, instead of the data folder's
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,

    #[command(flatten)]
    settings: DataFlags,
}

/// Carries out the command.
///
/// # Errors
/// A sentence for standard error: there is a problem, or nothing to check.
pub(super) fn run(command: &Check) -> Result<(), Failure> {
    let settings = &command.settings.0;
    let (name, (findings, by_server)) = match (&command.file, &settings.store) {
        (Some(file), Some(_)) if !settings.is_by_variable("store") => {
            return Err(Failure::Usage(format!(
                "{} and --store were given; one of them can be checked at a time",
                shown(file)
            )));
        }
        // A file is checked by itself, wherever the accounts are.
        (Some(file), _) => {
            must_exist(file, file)?;
            let findings = store::check_file(file).map_err(sentence)?;
            (shown(file), (findings, false))
        }
        (None, Some(url)) => {
            let snapshot = snapshot(settings)?.expect("there is a URL");
            let findings = snapshot.check().map_err(|error| error.to_string())?;
            (url.clone(), (findings, false))
        }
        (None, None) => {
            let data = settings.data();
            let path = store::database_path(data);
            must_exist(&path, data)?;
            settings.store().map_err(Failure::Usage)?;
            (shown(&path), admin::check(data)?)
        }
    };
    let Findings {
        accounts,
        sessions,
        entries,
        problems,
    } = findings;
    if by_server {
        let line =
            "A server runs here: the pages of the file were not compared with their checksums.";
        say::note(line);
    }
    let counts = [
        count(accounts, "account"),
        count(sessions, "session"),
        count(entries, "conversion"),
    ];
    say::print(&counts.join(", "))?;
    for problem in &problems {
        say::print(problem)?;
    }
    match problems.len() {
        0 => Ok(()),
        1 => Err(Failure::Failed(format!("{name}: problems of one kind"))),
        kinds => Err(Failure::Failed(format!(
            "{name}: problems of {kinds} kinds"
        ))),
    }
}
