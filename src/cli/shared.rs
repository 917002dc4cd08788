//! What several commands need.

use crate::conversion::Fonts;
use crate::store::OpenError;
use std::fmt::Display;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::{fs, thread};

/// The number of cores that this process may use.
pub(super) fn cores() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// The default of `--data`.
pub(super) fn default_data() -> PathBuf {
    PathBuf::from("towebp-data")
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
    Err(format!(
        "there are no accounts in {}{flag}",
        named.display()
    ))
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
        let rejected = |reason: &dyn Display| format!("--font {}: {reason}", file.display());
        let bytes = fs::read(file).map_err(|error| rejected(&error))?;
        fonts.add(bytes).map_err(|error| rejected(&error))?;
    }
    Ok(fonts)
}
