//! The database file: it is private to its owner, has one format, and is reopened after a failure
//! of the disk.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use redb::{DatabaseError, ReadTransaction, ReadableDatabase, StorageError, WriteTransaction};

use super::meta::{self, FORMAT};
use super::tables;
use crate::store::error::{OpenError, Result, StoreError};
use crate::store::folder;

/// The most bytes of pages that are kept in memory. Accounts and the newest history fit; redb's own
/// default is 1 GiB.
pub const CACHE_BYTES: usize = 32 << 20;

/// The open database.
///
/// After one failed read or write, for instance on a full disk, redb rejects all further work until
/// the file is reopened. This type reopens it after the failure, and before each use until that
/// succeeds, so the server recovers when the disk does.
pub struct Database {
    slot: RwLock<Slot>,
    opener: Box<Opener>,
}

type Opener = dyn Fn() -> Result<redb::Database, DatabaseError> + Send + Sync;

struct Slot {
    /// `None` if the file could not be reopened.
    redb: Option<redb::Database>,
    /// The number of times that the file was opened: if several callers fail at once, only the
    /// first one reopens it.
    opened: u64,
}

impl Database {
    /// Opens the file, and makes it with its tables if it is missing.
    ///
    /// # Errors
    /// Another process has the file open, or a sentence that names it.
    pub fn open(path: &Path) -> Result<Database, OpenError> {
        let database = Database::open_unchecked(path)?;
        database.ensure_format().map_err(|reason| {
            OpenError::Failed(format!(
                "the database {} cannot be used: {reason}",
                path.display()
            ))
        })?;
        // The file's name must be durable before anything in the file is.
        folder::sync(folder::of(path)).map_err(|error| {
            OpenError::Failed(format!("{} cannot be synced: {error}", path.display()))
        })?;
        Ok(database)
    }

    /// Opens the file, whatever its format is.
    fn open_unchecked(path: &Path) -> Result<Database, OpenError> {
        let file = PathBuf::from(path);
        let opener = move || open_redb(&file);
        Database::open_by(Box::new(opener)).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => OpenError::InUse(path.to_owned()),
            DatabaseError::Storage(StorageError::Io(error)) if forbids_writes(&error) => {
                OpenError::Failed(format!(
                    "the data folder {} cannot be written: {}: {error}",
                    folder::of(path).display(),
                    path.display()
                ))
            }
            error => OpenError::Failed(format!(
                "the database {} cannot be opened: {error}",
                path.display()
            )),
        })
    }

    /// The database that `opener` opens, now and after failures. Its format is not checked.
    ///
    /// # Errors
    /// The errors of `opener`.
    pub fn open_by(opener: Box<Opener>) -> Result<Database, DatabaseError> {
        let redb = opener()?;
        Ok(Database {
            slot: RwLock::new(Slot {
                redb: Some(redb),
                opened: 1,
            }),
            opener,
        })
    }

    /// Makes the tables of a new database, and rejects one that this towebp does not know.
    ///
    /// # Errors
    /// Why the database cannot be used, as the end of a sentence.
    pub fn ensure_format(&self) -> Result<(), String> {
        let sentence = |error: StoreError| error.to_string();
        match self.read(meta::format).map_err(sentence)? {
            Some(FORMAT) => Ok(()),
            Some(other) => Err(format!(
                "it has format {other}, and this towebp knows format {FORMAT} only: use the version \
                 that wrote it"
            )),
            None if self.read(has_no_tables).map_err(sentence)? => {
                self.write(tables::create).map_err(sentence)
            }
            None => Err("it belongs to another program".to_owned()),
        }
    }

    /// Reads in one transaction: `work` sees one state of the whole store.
    ///
    /// # Errors
    /// The file cannot be read, or it is damaged.
    pub fn read<T>(
        &self,
        work: impl FnOnce(&ReadTransaction) -> Result<T, redb::Error>,
    ) -> Result<T> {
        self.attempt(|redb| work(&redb.begin_read()?))
    }

    /// A transaction that sees one state of the whole database for as long as it lives. Unlike
    /// [`Database::read`], it does not keep the file from being reopened after a failure; the
    /// transaction fails then.
    ///
    /// # Errors
    /// As [`Database::read`].
    pub fn begin_read(&self) -> Result<ReadTransaction> {
        self.attempt(|redb| Ok(redb.begin_read()?))
    }

    /// Compares all pages of the file with their checksums, and mends what can be mended. Returns
    /// whether all pages were sound. No transaction may be open.
    ///
    /// # Errors
    /// The file is damaged beyond repair, or it cannot be read.
    pub fn check_pages(&mut self) -> Result<bool> {
        let slot = self.slot.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(redb) = &mut slot.redb else {
            return Err(closed());
        };
        redb.check_integrity()
            .map_err(|error| StoreError::Failed(error.to_string()))
    }

    /// Writes in one transaction, which is on disk when this returns. Other writers wait meanwhile.
    ///
    /// # Errors
    /// `work` failed, and nothing is changed; or the file cannot be written.
    pub fn write<T>(
        &self,
        work: impl FnOnce(&WriteTransaction) -> Result<T, redb::Error>,
    ) -> Result<T> {
        self.attempt(|redb| {
            let mut transaction = redb.begin_write()?;
            // Opening the file after a kill then takes half a millisecond instead of a walk through
            // all of it.
            transaction.set_quick_repair(true);
            let answer = work(&transaction)?;
            transaction.commit()?;
            Ok(answer)
        })
    }

    fn attempt<T>(
        &self,
        work: impl FnOnce(&redb::Database) -> Result<T, redb::Error>,
    ) -> Result<T> {
        self.reopen_if_closed()?;
        let slot = self.slot.read().unwrap_or_else(PoisonError::into_inner);
        let Some(redb) = &slot.redb else {
            return Err(closed());
        };
        let error = match work(redb) {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let opened = slot.opened;
        drop(slot);
        let cause = format!("the database failed: {error}");
        if !is_final(&error) {
            return Err(StoreError::Failed(cause));
        }
        self.reopen(opened);
        Err(StoreError::Unavailable(cause))
    }

    fn reopen_if_closed(&self) -> Result<()> {
        let mut opened = None;
        {
            let slot = self.slot.read().unwrap_or_else(PoisonError::into_inner);
            if slot.redb.is_none() {
                opened = Some(slot.opened);
            }
        }
        match opened.and_then(|opened| self.reopen(opened)) {
            None => Ok(()),
            Some(error) => Err(StoreError::Unavailable(format!(
                "the database cannot be opened anew: {error}"
            ))),
        }
    }

    /// Reopens the file unless another thread has done so since `opened`. Returns the error if
    /// that fails.
    fn reopen(&self, opened: u64) -> Option<DatabaseError> {
        let mut slot = self.slot.write().unwrap_or_else(PoisonError::into_inner);
        if slot.opened != opened {
            return None;
        }
        // The file's lock must be released before the file can be opened again.
        slot.redb = None;
        match (self.opener)() {
            Ok(redb) => {
                slot.redb = Some(redb);
                slot.opened += 1;
                log::debug!("the database was opened anew after a failure");
                None
            }
            Err(error) => Some(error),
        }
    }
}

fn open_redb(path: &Path) -> Result<redb::Database, DatabaseError> {
    if !path.try_exists()?
        && let Some(redb) = create_redb(path)?
    {
        return Ok(redb);
    }
    builder().create_file(folder::open_private(path)?)
}

/// Makes a new database. It has a temporary name until it is complete: redb opens no file that it
/// was still making when the power went or the disk was full. `None` if another process has made
/// one meanwhile.
fn create_redb(path: &Path) -> Result<Option<redb::Database>, DatabaseError> {
    let partial = folder::partial_name(path)?;
    let file = folder::create_new_private(&partial)?;
    let made = builder().create_file(file).and_then(|redb| {
        folder::rename_new(&partial, path)?;
        Ok(redb)
    });
    if made.is_err() {
        fs::remove_file(&partial).ok();
    }
    match made {
        Err(DatabaseError::Storage(StorageError::Io(error)))
            if error.kind() == io::ErrorKind::AlreadyExists =>
        {
            Ok(None)
        }
        made => made.map(Some),
    }
}

fn builder() -> redb::Builder {
    let mut builder = redb::Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

fn closed() -> StoreError {
    StoreError::Unavailable("the database is closed after a failure".into())
}

/// Whether the cause is the folder or its disk, and not the contents of the file.
fn forbids_writes(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::StorageFull
            | io::ErrorKind::FileTooLarge
            | io::ErrorKind::QuotaExceeded
    )
}

/// Whether redb rejects all further work after this error.
pub fn is_final(error: &redb::Error) -> bool {
    matches!(
        error,
        redb::Error::Io(_)
            | redb::Error::PreviousIo
            | redb::Error::LockPoisoned(_)
            | redb::Error::DatabaseClosed
    )
}

fn has_no_tables(read: &ReadTransaction) -> Result<bool, redb::Error> {
    Ok(read.list_tables()?.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::redb::meta::META;
    use crate::store::tests::Folder;
    use redb::TableDefinition;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn is_readable_by_its_owner_only() {
        let folder = Folder::new();
        let path = folder.path().join("towebp.redb");
        let _database = Database::open(&path).unwrap();
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let files = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(files, 1, "the temporary name is left");
    }

    #[test]
    fn a_file_that_another_process_makes_meanwhile_is_left_alone() {
        let folder = Folder::new();
        let path = folder.path().join("towebp.redb");
        std::fs::write(&path, "theirs").unwrap();
        assert!(create_redb(&path).unwrap().is_none());
        assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
        let files = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(files, 1, "the temporary file is left");
    }

    #[test]
    fn a_file_that_is_no_database_is_rejected_and_left_alone() {
        let folder = Folder::new();
        let path = folder.path().join("towebp.redb");
        std::fs::write(&path, "not a database at all").unwrap();
        let sentence = rejection(&path);
        assert!(sentence.contains("towebp.redb"), "{sentence}");
        assert_eq!(
            std::fs::read(&path).unwrap(),
            b"not a database at all",
            "the file was changed"
        );
    }

    #[test]
    fn other_formats_are_rejected_and_left_alone() {
        for format in [0, FORMAT - 1, FORMAT + 1] {
            let folder = Folder::new();
            let path = folder.path().join("towebp.redb");
            let database = Database::open(&path).unwrap();
            database
                .write(|write| Ok(write.open_table(META)?.insert("format", format).map(drop)?))
                .unwrap();
            drop(database);
            for _ in 0..2 {
                let sentence = rejection(&path);
                let expected =
                    format!("it has format {format}, and this towebp knows format {FORMAT} only");
                assert!(sentence.contains(&expected), "{sentence}");
            }
        }
    }

    #[test]
    fn a_database_of_another_program_is_rejected_and_left_alone() {
        let folder = Folder::new();
        let path = folder.path().join("towebp.redb");
        let redb = redb::Database::create(&path).unwrap();
        let write = redb.begin_write().unwrap();
        write
            .open_table(TableDefinition::<u64, u64>::new("other"))
            .unwrap();
        write.commit().unwrap();
        drop(redb);
        let sentence = rejection(&path);
        assert!(sentence.contains("another program"), "{sentence}");
        let redb = redb::Database::open(&path).unwrap();
        let tables = redb.begin_read().unwrap().list_tables().unwrap().count();
        assert_eq!(tables, 1, "tables were added");
    }

    #[test]
    fn a_full_disk_is_not_taken_for_a_damaged_file() {
        use io::ErrorKind::{NotFound, PermissionDenied, StorageFull, UnexpectedEof};
        for (kind, expected) in [
            (PermissionDenied, true),
            (StorageFull, true),
            (NotFound, false),
            (UnexpectedEof, false),
        ] {
            assert_eq!(forbids_writes(&kind.into()), expected, "{kind}");
        }
    }

    fn rejection(path: &Path) -> String {
        match Database::open(path) {
            Err(OpenError::Failed(sentence)) => sentence,
            Err(OpenError::InUse(_)) => panic!("no process has it open"),
            Ok(_) => panic!("it was opened"),
        }
    }
}
