//! Copies all rows but sessions between the file of a data folder and PostgreSQL.
//!
//! The rows of the source are loaded into the target ([`super::rows`]), then read back there and
//! compared. Only after that may servers use the target database, and is a file renamed.

use std::fs;
use std::path::{Path, PathBuf};

use super::engine::{Engine, Snapshot};
use super::error::{OpenError, StoreError};
use super::folder;
use super::postgres::{self, PostgresSettings};
use super::redb::{Backup, FileSnapshot, RedbEngine, database_path};
use super::rows::{Row, Tally};
use super::secret_file;
use super::transfer;
use crate::auth::Secret;

/// The step of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyStep {
    /// It checks the source.
    Check,
    /// It copies.
    Copy,
    /// It reads the target, and compares it with the source.
    Compare,
}

/// Takes the step of a copy, and the numbers of entries that are done and of all entries.
pub type Progress<'a> = dyn FnMut(CopyStep, u64, u64) + 'a;

/// A store that was copied.
pub struct Copied {
    /// The counts of the rows, which are the same on both sides.
    pub rows: Tally,
    /// The database file: the renamed source, or the new target.
    pub file: PathBuf,
}

/// Copies the store of a data folder, on which no server runs, to an empty database, or goes on
/// with that. Then the folder's database is renamed, so that no server starts on it by mistake.
///
/// # Errors
/// A sentence. The folder is as it was; if rows were copied already, no server starts on the
/// database until the copy was repeated.
pub fn copy_to_postgres(
    data: &Path,
    to: &PostgresSettings,
    secret: &Path,
    progress: &mut Progress<'_>,
) -> Result<Copied, String> {
    let file = database_path(data);
    let moved = file.with_extension("redb.moved");
    if moved.exists() {
        return Err(format!(
            "{} is there already, from a copy before: move it away first",
            moved.display()
        ));
    }
    let engine = RedbEngine::open(&file).map_err(stop_first)?;
    let snapshot = engine.snapshot().map_err(sentence)?;
    let snapshot = snapshot.ok_or("the file cannot be read as a whole")?;
    let mark = secret_mark(&*snapshot)?;
    expect_secret(secret, mark)?;
    progress(CopyStep::Check, 0, 0);
    let findings = snapshot.check().map_err(sentence)?;
    if !findings.problems.is_empty() {
        return Err(format!(
            "what is in {} does not fit together; towebp check --data {} tells more",
            file.display(),
            data.display()
        ));
    }
    let target = postgres::CopyTarget::open(to).map_err(sentence)?;
    let mut loader = target.begin(mark).map_err(sentence)?;
    let entries = findings.entries;
    let copied = read(&*snapshot, CopyStep::Copy, entries, progress, |row| {
        loader.add(row)
    })?;
    loader.finish().map_err(sentence)?;
    let written = target.snapshot().map_err(sentence)?;
    let written = read(&*written, CopyStep::Compare, entries, progress, |_| Ok(()))?;
    compare(&copied, &written)?;
    target.complete().map_err(sentence)?;
    drop((snapshot, engine));
    folder::rename_new(&file, &moved)
        .and_then(|()| folder::sync(data))
        .map_err(|error| {
            format!(
                "all is copied, but {} cannot be renamed to {}: {error}",
                file.display(),
                moved.display()
            )
        })?;
    Ok(Copied {
        rows: copied,
        file: moved,
    })
}

/// Copies the store of a database, on which no server runs, to a folder that has none. The database
/// stays as it is.
///
/// # Errors
/// A sentence. No file is left then.
pub fn copy_to_folder(
    from: &PostgresSettings,
    data: &Path,
    secret: Option<&Path>,
    progress: &mut Progress<'_>,
) -> Result<Copied, String> {
    let file = database_path(data);
    if file.exists() {
        return Err(format!(
            "{} is there already, and a copy needs a folder without accounts",
            file.display()
        ));
    }
    let snapshot = postgres::open_unused_snapshot(from).map_err(sentence)?;
    if let Some(secret) = secret {
        expect_secret(secret, secret_mark(&*snapshot)?)?;
    }
    folder::create_private(data)?;
    let entries = snapshot.entries().map_err(sentence)?;
    let mut copied = Err(String::new());
    let backup = Backup::create(&file, false)?;
    backup.load(|each| {
        copied = read(&*snapshot, CopyStep::Copy, entries, progress, each);
        match &copied {
            Ok(_) => Ok(()),
            Err(sentence) => Err(StoreError::Failed(sentence.clone())),
        }
    })?;
    let copied = copied?;
    let compared = FileSnapshot::open(&file)
        .map_err(sentence)
        .and_then(|written| read(&written, CopyStep::Compare, entries, progress, |_| Ok(())))
        .and_then(|written| compare(&copied, &written));
    if let Err(sentence) = compared {
        fs::remove_file(&file).ok();
        return Err(sentence);
    }
    Ok(Copied { rows: copied, file })
}

/// Calls `each` with all rows, and adds them up.
fn read(
    snapshot: &dyn Snapshot,
    step: CopyStep,
    entries: u64,
    progress: &mut Progress<'_>,
    each: impl FnMut(Row) -> Result<(), StoreError>,
) -> Result<Tally, String> {
    let mut progress = |done| progress(step, done, entries);
    transfer::read(snapshot, &mut progress, each).map_err(sentence)
}

fn compare(copied: &Tally, written: &Tally) -> Result<(), String> {
    if copied.digest() == written.digest() {
        return Ok(());
    }
    Err(format!(
        "what was written differs from what was read: {} and {} accounts, {} and {} tokens, {} and \
         {} entries of histories, {} and {} conversions. A copy is repeated into an empty database",
        written.accounts,
        copied.accounts,
        written.tokens,
        copied.tokens,
        written.entries,
        copied.entries,
        written.conversions,
        copied.conversions
    ))
}

/// The mark of the secret last used, which is in the first row.
fn secret_mark(snapshot: &dyn Snapshot) -> Result<Option<u64>, String> {
    let mut mark = None;
    let enough = || StoreError::Failed("no more rows are needed".to_owned());
    let read = snapshot.rows(&mut |row| match row {
        Row::Store { secret_mark, .. } => {
            mark = Some(secret_mark);
            Err(enough())
        }
        _ => Err(enough()),
    });
    match (mark, read) {
        (Some(mark), _) => Ok(mark),
        (None, Err(error)) => Err(sentence(error)),
        (None, Ok(())) => Ok(None),
    }
}

/// Without the secret of their tokens, no token would work after the copy.
fn expect_secret(file: &Path, mark: Option<u64>) -> Result<(), String> {
    let secret: Secret = secret_file::open(file, true)?;
    if mark.is_none_or(|mark| mark == secret.mark()) {
        return Ok(());
    }
    Err(format!(
        "the secret in {} is not the one that the tokens were issued with: name that one by \
         --secret-file",
        file.display()
    ))
}

fn stop_first(error: OpenError) -> String {
    match error {
        OpenError::InUse(path) => format!(
            "a server runs on {}: stop it first, and keep it stopped",
            path.display()
        ),
        OpenError::Failed(sentence) => sentence,
    }
}

fn sentence(error: impl std::error::Error) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::entry;

    #[test]
    fn a_copy_that_differs_is_told_with_both_sums() {
        let tally = |entries: &[u64]| {
            let mut tally = Tally::default();
            for each in entries {
                tally.add(&Row::Entry(entry(*each)));
            }
            tally
        };
        let copied = tally(&[1, 2]);
        compare(&copied, &tally(&[1, 2])).unwrap();
        for written in [&[1][..], &[1, 3], &[2, 1]] {
            let sentence = compare(&copied, &tally(written)).unwrap_err();
            let entries = format!("{} and 2 entries of histories", written.len());
            assert!(sentence.contains(&entries), "{sentence}");
        }
    }
}
