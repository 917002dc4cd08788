//! `towebp check`: checks that all that is stored fits together, beside a running server too.

use super::shared::must_exist;
use crate::admin;
use crate::store::{self, Findings, OpenError};
use argh::{ArgsInfo, FromArgs};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Check that all that is stored fits together, beside a running server too. The exit code is 1 if
/// it does not.
#[derive(FromArgs, ArgsInfo)]
#[argh(subcommand, name = "check", help_triggers("-h", "--help", "help"))]
pub struct CheckCommand {
    /// a database file that no server uses, such as a backup, instead of the data folder's
    #[argh(positional)]
    file: Option<PathBuf>,
    /// the data folder (default: towebp-data)
    #[argh(option, default = "super::shared::default_data()")]
    data: PathBuf,
}

/// Carries out the command.
///
/// # Errors
/// A sentence for standard error: there is a problem, or nothing to check.
pub fn run(command: &CheckCommand) -> Result<(), String> {
    let (path, (findings, by_server)) = if let Some(file) = &command.file {
        must_exist(file, file)?;
        (file.clone(), (check_file(file)?, false))
    } else {
        let path = store::database_path(&command.data);
        must_exist(&path, &command.data)?;
        (path, admin::check(&command.data)?)
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
        writeln!(io::stderr(), "{line}").ok();
    }
    // A closed standard output is no error: the exit code tells the result too.
    let mut out = io::stdout();
    writeln!(
        out,
        "{accounts} accounts, {sessions} sessions, {entries} conversions"
    )
    .ok();
    for problem in &problems {
        writeln!(out, "{problem}").ok();
    }
    match problems.len() {
        0 => Ok(()),
        kinds => Err(format!("{}: problems of {kinds} kinds", path.display())),
    }
}

fn check_file(path: &Path) -> Result<Findings, String> {
    match store::check_file(path) {
        Ok(findings) => Ok(findings),
        Err(OpenError::Failed(sentence)) => Err(sentence),
        Err(in_use @ OpenError::InUse(_)) => Err(in_use.to_string()),
    }
}
