//! One state of the whole database, to be checked or copied.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use redb::{ReadTransaction, ReadableTableMetadata};

use super::database::Database;
use super::usage::HISTORY;
use super::{check, rows};
use crate::store::check::RowCheck;
use crate::store::engine::{EachRow, Findings, Snapshot};
use crate::store::error::{OpenError, Result, StoreError};

/// A read transaction. While it lives, the database keeps the pages of deleted rows.
pub struct FileSnapshot {
    read: ReadTransaction,
    /// The database, if nothing else keeps it open. It is dropped after `read`.
    _database: Option<Database>,
}

impl FileSnapshot {
    /// The present state of an open database.
    pub fn of(database: &Database) -> Result<FileSnapshot> {
        database.begin_read().map(|read| FileSnapshot {
            read,
            _database: None,
        })
    }

    /// The state of a database file that no process has open.
    ///
    /// # Errors
    /// The file cannot be opened: it is in use, unreadable, or of another format.
    pub fn open(path: &Path) -> Result<FileSnapshot, OpenError> {
        let database = Database::open(path)?;
        Ok(FileSnapshot {
            read: database.begin_read()?,
            _database: Some(database),
        })
    }
}

impl Snapshot for FileSnapshot {
    fn check(&self) -> Result<Findings> {
        let mut check = RowCheck::default();
        let read = check::check(&self.read, &mut check).and_then(|()| {
            self.rows(&mut |row| {
                check.add(row);
                Ok(())
            })
        });
        check.findings(read)
    }

    fn rows(&self, each: &mut EachRow<'_>) -> Result<()> {
        let mut stopped = None;
        let mut each = |row| {
            each(row).map_err(|error| {
                stopped = Some(error);
                redb::Error::Corrupted("the reader has stopped".to_owned())
            })
        };
        let read = check::readable(|| rows::each(&self.read, &mut each));
        stopped.map_or(read, Err)
    }

    fn entries(&self) -> Result<u64> {
        let history = self.read.open_table(HISTORY).map_err(failed)?;
        history.len().map_err(failed)
    }
}

fn failed(error: impl Display) -> StoreError {
    StoreError::Failed(format!("the database cannot be read: {error}"))
}

/// Checks a database file that no process has open. First its pages are compared with their
/// checksums, and mended where that is possible; then its rows are checked.
///
/// # Errors
/// The file cannot be opened: it is in use, unreadable, or of another format.
pub fn check_file(path: &Path) -> Result<Findings, OpenError> {
    let mut database = Database::open(path)?;
    let pages = catch_unwind(AssertUnwindSafe(|| database.check_pages()))
        .unwrap_or_else(|_| Err(StoreError::Failed("they cannot be read".into())));
    let problem = match pages {
        Ok(true) => None,
        Ok(false) => Some("pages did not match their checksums, and were mended".to_owned()),
        Err(error) => Some(format!("pages are damaged: {error}")),
    };
    let mut findings = FileSnapshot::of(&database)?.check()?;
    findings.problems.splice(0..0, problem);
    Ok(findings)
}
