//! `towebp store`: moves all that is stored between a folder and PostgreSQL.

use super::failure::Failure;
use super::say;
use super::settings::CopyFlags;
use super::shared::{count, must_exist, postgres, progress_bar};
use crate::store::{self, Copied, CopyStep};
use clap::{Args, Subcommand, ValueHint};
use std::path::Path;

/// Move all accounts and their history between a data folder and PostgreSQL.
#[derive(Args)]
pub(super) struct StoreCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Copy(Copy),
}

/// Copy all that is stored, but sessions, from a data folder to an empty PostgreSQL, or back to a
/// folder without accounts.
///
/// No server may run on either. Tokens go on working.
#[derive(Args)]
struct Copy {
    /// a data folder, or the URL of a PostgreSQL such as postgres://towebp@db1,db2/towebp
    #[arg(long, value_name = "FOLDER|URL", value_hint = ValueHint::DirPath)]
    from: String,

    /// a PostgreSQL, or a data folder
    #[arg(long, value_name = "URL|FOLDER", value_hint = ValueHint::DirPath)]
    to: String,

    #[command(flatten)]
    settings: CopyFlags,
}

/// Carries out the command.
///
/// # Errors
/// A sentence for standard error.
pub(super) fn run(command: &StoreCommand) -> Result<(), Failure> {
    let Action::Copy(copy) = &command.action;
    let is_url = |text: &str| text.contains("://");
    match (is_url(&copy.from), is_url(&copy.to)) {
        (false, true) => to_postgres(copy),
        (true, false) => to_folder(copy),
        _ => Err(Failure::Usage(format!(
            "--from {} and --to {} were given; allowed is a data folder and the URL of a \
             PostgreSQL, or the URL and a folder",
            copy.from, copy.to
        ))),
    }
}

fn to_postgres(copy: &Copy) -> Result<(), Failure> {
    let data = Path::new(&copy.from);
    let file = store::database_path(data);
    if !file.exists() {
        let sentence = format!("there are no accounts in {} (--from)", copy.from);
        return Err(Failure::Failed(sentence));
    }
    let settings = postgres(&copy.settings.0, Some(&copy.to))?;
    let secret = copy.settings.0.config.store.secret_file.clone();
    let secret = secret.unwrap_or_else(|| data.join("secret"));
    must_exist(&secret, &secret).map_err(|_| {
        format!(
            "{} is missing: --secret-file names the file of the server's secret",
            secret.display()
        )
    })?;
    let copied =
        with_progress(|progress| store::copy_to_postgres(data, &settings, &secret, progress))?;
    say::print(&summary(&copied))?;
    say::note(&format!(
        "{} is {} now: no server uses it any more. Each server on the PostgreSQL needs a copy of \
         the secret in {}.",
        file.display(),
        copied.file.display(),
        secret.display()
    ));
    Ok(())
}

fn to_folder(copy: &Copy) -> Result<(), Failure> {
    let data = Path::new(&copy.to);
    let settings = postgres(&copy.settings.0, Some(&copy.from))?;
    let secret = copy.settings.0.config.store.secret_file.as_deref();
    let copied =
        with_progress(|progress| store::copy_to_folder(&settings, data, secret, progress))?;
    say::print(&summary(&copied))?;
    say::note(&format!(
        "{} was made. Its server needs the secret of those before it, in {} or by --secret-file.",
        copied.file.display(),
        data.join("secret").display()
    ));
    Ok(())
}

fn summary(copied: &Copied) -> String {
    let rows = &copied.rows;
    format!(
        "{}, {}, {}, {} ({} of them in histories, {} bytes in, {} bytes out), {}: the same on both sides",
        count(rows.accounts, "account"),
        count(rows.tokens, "token"),
        count(rows.invites, "invitation"),
        count(rows.conversions, "conversion"),
        rows.entries,
        rows.input_bytes,
        rows.output_bytes,
        count(rows.failures, "failed conversion")
    )
}

fn with_progress<T>(
    work: impl FnOnce(&mut dyn FnMut(CopyStep, u64, u64)) -> Result<T, String>,
) -> Result<T, String> {
    let bar = progress_bar();
    let answer = work(&mut |step, done, all| {
        bar.set_message(match step {
            CopyStep::Check => "checking",
            CopyStep::Copy => "copying",
            CopyStep::Compare => "comparing",
        });
        bar.set_length(all);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    answer
}
