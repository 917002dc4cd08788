//! `towebp check`: checks that all that is stored fits together, beside a running server too.

use super::failure::Failure;
use super::shared::{must_exist, sentence};
use super::store_flags::with_store_flags;
use crate::admin;
use crate::store::{self, Findings};
use argh::{ArgsInfo, FromArgs};
use std::io::{self, Write};
use std::path::PathBuf;

with_store_flags! {
    /// Check that all that is stored fits together, beside a running server too. The exit code is 1
    /// if it does not.
    #[derive(FromArgs, ArgsInfo)]
    #[argh(subcommand, name = "check", help_triggers("-h", "--help"))]
    pub struct CheckCommand {
        /// a database file that no server uses, such as a backup, instead of the data folder's
        #[argh(positional)]
        file: Option<PathBuf>,
        /// the data folder (default: towebp-data)
        #[argh(option, arg_name = "folder", default = "super::shared::default_data()")]
        data: PathBuf,
        /// check this PostgreSQL, such as postgres://towebp@db1,db2/towebp, instead of the data
        /// folder
        #[argh(option, arg_name = "url")]
        store: Option<String>,
    }
}

/// Carries out the command.
///
/// # Errors
/// A sentence for standard error: there is a problem, or nothing to check.
pub fn run(command: &CheckCommand) -> Result<(), Failure> {
    let (name, (findings, by_server)) = match (&command.file, &command.store) {
        (Some(file), None) => {
            must_exist(file, file)?;
            let findings = store::check_file(file).map_err(sentence)?;
            (file.display().to_string(), (findings, false))
        }
        (None, None) => {
            let path = store::database_path(&command.data);
            must_exist(&path, &command.data)?;
            (path.display().to_string(), admin::check(&command.data)?)
        }
        (None, Some(url)) => {
            let snapshot = command.flags_of(&**url).snapshot()?;
            let findings = snapshot.check().map_err(|error| error.to_string())?;
            (url.clone(), (findings, false))
        }
        (Some(file), Some(_)) => {
            return Err(Failure::Usage(format!(
                "{} and --store were given; one of them can be checked at a time",
                file.display()
            )));
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
        1 => Err(Failure::Failed(format!("{name}: problems of one kind"))),
        kinds => Err(Failure::Failed(format!(
            "{name}: problems of {kinds} kinds"
        ))),
    }
}
