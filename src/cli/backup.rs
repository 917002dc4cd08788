//! `towebp backup`: writes all that is stored into one new file, beside a running server too.

use super::failure::Failure;
use super::say;
use super::shared::must_exist;
use super::store_flags::with_store_flags;
use crate::process::interrupt::{self, Outputs};
use crate::store::Backup;
use crate::{admin, store};
use argh::{ArgsInfo, FromArgs};
use indicatif::ProgressBar;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

with_store_flags! {
    /// Write all accounts and their history into a new file, beside a running server too. The
    /// secret and the sessions are not in it.
    #[derive(FromArgs, ArgsInfo)]
    #[argh(subcommand, name = "backup", help_triggers("-h", "--help"))]
    pub struct BackupCommand {
        /// the file to make, readable by its owner only
        #[argh(positional)]
        file: PathBuf,
        /// replace the file if it is there already
        #[argh(switch)]
        force: bool,
        /// the data folder (default: towebp-data)
        #[argh(option, arg_name = "folder", default = "super::shared::default_data()")]
        data: PathBuf,
        /// write what is in this PostgreSQL, such as postgres://towebp@db1,db2/towebp, instead of
        /// the data folder: a file with which one machine can go on
        #[argh(option, arg_name = "url")]
        store: Option<String>,
    }
}

/// Carries out the command.
///
/// # Errors
/// A sentence for standard error.
pub fn run(command: &BackupCommand) -> Result<(), Failure> {
    let shared = command.store.as_deref();
    let shared = shared.map(|url| command.flags_of(url).snapshot());
    let shared = shared.transpose()?;
    if shared.is_none() {
        must_exist(&store::database_path(&command.data), &command.data)?;
    }
    let outputs = Outputs::default();
    interrupt::catch(&outputs, |_| {
        say::note("towebp: interrupted");
    })?;
    let backup = outputs.begin(|| {
        let backup = Backup::create(&command.file, command.force)?;
        Ok::<_, String>((backup.partial().to_owned(), backup))
    })?;
    let bar = if io::stderr().is_terminal() {
        ProgressBar::new(0)
    } else {
        ProgressBar::hidden()
    };
    let progress = &mut |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    };
    let rows = match shared {
        Some(snapshot) => store::fill_backup(backup, &*snapshot, progress),
        None => admin::backup(&command.data, backup, progress),
    };
    bar.finish_and_clear();
    say::print(&format!("{}: {} rows", command.file.display(), rows?));
    say::note(
        "The server's secret is not in it, and no token works without: keep a copy of the file secret (or --secret-file) \
         somewhere else.",
    );
    Ok(())
}
