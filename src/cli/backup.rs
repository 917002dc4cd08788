//! `towebp backup`: writes all that is stored into one new file, beside a running server too.

use super::failure::Failure;
use super::names::shown;
use super::say;
use super::settings::DataFlags;
use super::shared::{must_exist, progress_bar, snapshot};
use crate::process::interrupt::{self, Outputs};
use crate::store::Backup;
use crate::{admin, store};
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Write all accounts and their history into a new file, beside a running server too.
///
/// The secret and the sessions are not in it.
#[derive(Args)]
pub(super) struct BackupCommand {
    /// the file to make, readable by its owner only
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// replace the file if it is there already
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    settings: DataFlags,
}

/// Carries out the command.
///
/// # Errors
/// A sentence for standard error.
pub(super) fn run(command: &BackupCommand) -> Result<(), Failure> {
    let settings = &command.settings.0;
    let data = settings.data();
    let shared = snapshot(settings)?;
    if shared.is_none() {
        must_exist(&store::database_path(data), data)?;
    }
    let outputs = Outputs::default();
    interrupt::catch(&outputs, |_| {
        say::note("towebp: interrupted");
    })?;
    let backup = outputs.begin(|| {
        let backup = Backup::create(&command.file, command.force)?;
        Ok::<_, String>((backup.partial().to_owned(), backup))
    })?;
    let bar = progress_bar();
    let progress = &mut |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    };
    let rows = match shared {
        Some(snapshot) => store::fill_backup(backup, &*snapshot, progress),
        None => admin::backup(data, backup, progress),
    };
    bar.finish_and_clear();
    say::print(&format!("{}: {} rows", shown(&command.file), rows?))?;
    say::note(
        "The server's secret is not in it, and no token works without: keep a copy of the file secret (or --secret-file) \
         somewhere else.",
    );
    Ok(())
}
