//! Helpers of several commands.

use super::failure::Failure;
use super::names::shown;
use crate::config::Given;
#[cfg(feature = "postgres")]
use crate::store::PostgresSettings;
use crate::store::{self, OpenError, Snapshot};
use indicatif::ProgressBar;
use std::fmt::Display;
use std::io::{self, IsTerminal};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{fs, thread};
use towebp_pipeline::conversion::Fonts;

/// The number of cores that this process may use.
pub(super) fn cores() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// A progress bar on standard error, which is hidden unless that is a terminal.
pub(super) fn progress_bar() -> ProgressBar {
    if io::stderr().is_terminal() {
        ProgressBar::new(0)
    } else {
        ProgressBar::hidden()
    }
}

/// Reads a whole number.
///
/// # Errors
/// The allowed range.
pub(super) fn whole<N: Copy + Display + FromStr + PartialOrd>(
    text: &str,
    least: N,
    most: N,
) -> Result<N, String> {
    let number = text.trim().parse().ok();
    number
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| format!("expected a whole number, {least} to {most}"))
}

/// `1 account`, `2 accounts`.
pub(super) fn count(number: impl Into<u64>, noun: &str) -> String {
    match number.into() {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    }
}

/// The PostgreSQL with this URL, which must be there.
///
/// # Errors
/// A sentence that names the flag.
#[cfg(feature = "postgres")]
pub(super) fn postgres(given: &Given, url: Option<&str>) -> Result<PostgresSettings, Failure> {
    let settings = given.postgres(url).map_err(Failure::Usage)?;
    settings.ok_or_else(|| Failure::Usage("--store is missing".to_owned()))
}

/// The present state of the PostgreSQL of `--store`; `None` without one.
///
/// # Errors
/// A sentence for standard error.
pub(super) fn snapshot(given: &Given) -> Result<Option<Box<dyn Snapshot>>, Failure> {
    let settings = given.postgres(given.store.as_deref());
    let settings = settings.map_err(Failure::Usage)?;
    let snapshot = settings.map(|settings| store::open_postgres_snapshot(&settings));
    Ok(snapshot.transpose().map_err(sentence)?)
}

/// Checks that the file of a database exists, so that a mistyped name does not make a new one.
/// `named` is the path that the user gave: the file, or its folder.
///
/// # Errors
/// A sentence for standard error.
pub(super) fn must_exist(database: &Path, named: &Path) -> Result<(), String> {
    if database.exists() {
        return Ok(());
    }
    let flag = if database == named { "" } else { " (--data)" };
    Err(format!("there are no accounts in {}{flag}", shown(named)))
}

/// Why a store cannot be opened, for standard error.
pub(super) fn sentence(error: OpenError) -> String {
    match error {
        OpenError::Failed(sentence) => sentence,
        in_use @ OpenError::InUse(_) => in_use.to_string(),
    }
}

/// The fonts in these files (`--font`), followed by the bundled ones.
///
/// # Errors
/// A sentence for standard error: a file cannot be read, or is no font.
pub(super) fn fonts(files: &[PathBuf]) -> Result<Fonts, String> {
    let mut fonts = Fonts::default();
    for file in files {
        let rejected = |reason: &dyn Display| format!("--font {}: {reason}", shown(file));
        let bytes = fs::read(file).map_err(|error| rejected(&error))?;
        fonts.add(bytes).map_err(|error| rejected(&error))?;
    }
    Ok(fonts)
}
