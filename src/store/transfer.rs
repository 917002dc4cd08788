//! Rows on their way from a snapshot to somewhere else.

use super::engine::Snapshot;
use super::error::StoreError;
use super::redb::Backup;
use super::rows::{Row, Tally};

/// After how many entries of histories the progress is told.
const TOLD_EVERY: u64 = 1000;

/// Calls `each` with all rows, and adds them up. `progress` is told the number of entries of
/// histories that are done.
///
/// # Errors
/// That of `each`, or the rows cannot be read.
pub fn read(
    snapshot: &dyn Snapshot,
    progress: &mut dyn FnMut(u64),
    mut each: impl FnMut(Row) -> Result<(), StoreError>,
) -> Result<Tally, StoreError> {
    let mut tally = Tally::default();
    progress(0);
    snapshot.rows(&mut |row| {
        tally.add(&row);
        if matches!(row, Row::Entry(_)) && tally.entries.is_multiple_of(TOLD_EVERY) {
            progress(tally.entries);
        }
        each(row)
    })?;
    progress(tally.entries);
    Ok(tally)
}

/// Completes a backup file from a snapshot of any engine, and returns the number of its rows.
/// `progress` is told the number of entries of histories that are done, and how many there are.
///
/// # Errors
/// A sentence. No file is left then.
pub fn fill_backup(
    backup: Backup,
    snapshot: &dyn Snapshot,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<u64, String> {
    let entries = snapshot.entries().map_err(|error| error.to_string())?;
    let mut rows = 0;
    backup.load(|each| {
        let mut progress = |done| progress(done, entries);
        let read = read(snapshot, &mut progress, |row| {
            rows += 1;
            each(row)
        });
        read.map(drop)
    })?;
    Ok(rows)
}
