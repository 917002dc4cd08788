//! `towebp backup`: all that is stored in one new file, beside a running server too.

use crate::{admin, store};
use argh::{ArgsInfo, FromArgs};
use indicatif::ProgressBar;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

/// Write all accounts and their history into a new file, beside a running server too. The secret is not in it.
#[derive(FromArgs, ArgsInfo)]
#[argh(subcommand, name = "backup", help_triggers("-h", "--help", "help"))]
pub struct BackupCommand {
    /// the file to make, readable by its owner only
    #[argh(positional)]
    file: PathBuf,
    /// replace the file if it is there already
    #[argh(switch)]
    force: bool,
    /// the data folder (default: towebp-data)
    #[argh(option, default = "super::default_data()")]
    data: PathBuf,
}

/// Carries it out.
///
/// # Errors
/// A sentence for standard error.
pub fn run(command: &BackupCommand) -> Result<(), String> {
    super::must_exist(&store::database_path(&command.data), &command.data)?;
    let bar = if io::stderr().is_terminal() {
        ProgressBar::new(0)
    } else {
        ProgressBar::hidden()
    };
    let rows = admin::backup(
        &command.data,
        &command.file,
        command.force,
        &mut |done, all| {
            bar.set_length(all);
            bar.set_position(done);
        },
    );
    bar.finish_and_clear();
    // The file is there, whoever reads this.
    writeln!(io::stdout(), "{}: {} rows", command.file.display(), rows?).ok();
    writeln!(
        io::stderr(),
        "The server's secret is not in it, and no token works without: keep a copy of the file secret (or --secret-file) \
         somewhere else."
    )
    .ok();
    Ok(())
}
