//! The database file: opened privately, brought to the present format, and opened anew after a failed disk.
//!
//! Table `meta`, key a name, value a number (`u64`, least significant byte first):
//!
//! | key | value |
//! |---|---|
//! | `format` | 2: the layout of all tables as drawn in their modules ([`migration`]) |
//! | `last_account` | the last account number given; absent before the first |
//! | `secret` | [`Secret::mark`] of the secret last used; absent before the first |

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use std::time::SystemTime;

use redb::{
    DatabaseError, ReadTransaction, ReadableDatabase, StorageError, TableDefinition,
    WriteTransaction,
};

use super::availability::Availability;
use super::error::{OpenError, StoreError};
use super::{accounts, clock, folder, invites, migration, sessions, usage};
use crate::auth::Secret;

/// Numbers about the whole store.
pub const META: TableDefinition<&str, u64> = TableDefinition::new("meta");

/// The layout that this towebp reads and writes.
pub const FORMAT: u64 = 2;

/// Pages kept in memory: accounts and the newest history fit; redb's own default is 1 GiB.
pub const CACHE_BYTES: usize = 32 << 20;

/// The open database.
///
/// After one failed read or write (a full disk, say) redb refuses everything until it is opened anew. So that
/// happens here, at the failure and again before each use until it succeeds: the server recovers when the disk does.
pub struct Database {
    slot: RwLock<Slot>,
    opener: Box<Opener>,
    /// Set by the writer.
    pub availability: Availability,
}

type Opener = dyn Fn() -> Result<redb::Database, DatabaseError> + Send + Sync;

struct Slot {
    /// `None` if it could not be opened anew.
    redb: Option<redb::Database>,
    /// Counts the openings, so that of several failures at once the first alone opens it anew.
    opened: u64,
}

impl Database {
    /// Opens the file, making it and its tables if missing.
    ///
    /// # Errors
    /// Another process has it open, or a sentence that names the file.
    pub fn open(path: &Path) -> Result<Database, OpenError> {
        let file = PathBuf::from(path);
        let opener = move || open_redb(&file);
        let database = Database::open_by(Box::new(opener)).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => OpenError::InUse(path.to_owned()),
            DatabaseError::Storage(StorageError::Io(error)) if refuses_writes(&error) => {
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
        })?;
        database.ensure_format().map_err(|reason| {
            OpenError::Failed(format!(
                "the database {} cannot be used: {reason}",
                path.display()
            ))
        })?;
        // The file's name must be on disk before anything in it is promised.
        folder::sync(folder::of(path)).map_err(|error| {
            OpenError::Failed(format!("{} cannot be synced: {error}", path.display()))
        })?;
        Ok(database)
    }

    /// Opens what `opener` gives, now and after failures. Its format is not looked at.
    ///
    /// # Errors
    /// Those of `opener`.
    pub fn open_by(opener: Box<Opener>) -> Result<Database, DatabaseError> {
        let redb = opener()?;
        Ok(Database {
            slot: RwLock::new(Slot {
                redb: Some(redb),
                opened: 1,
            }),
            opener,
            availability: Availability::default(),
        })
    }

    /// Makes the tables of a new database, and brings an older format to the present one; refuses what it does not
    /// know.
    ///
    /// # Errors
    /// Why it cannot be used, as the end of a sentence.
    pub fn ensure_format(&self) -> Result<(), String> {
        let sentence = |error: StoreError| error.to_string();
        match self.read(format).map_err(sentence)? {
            Some(FORMAT) => Ok(()),
            Some(newer) if newer > FORMAT => Err(format!(
                "it was written by a newer towebp (format {newer}; this one knows formats up to {FORMAT})"
            )),
            Some(1) => {
                log::info!("the database is brought from format 1 to format {FORMAT}");
                let now = clock::to_milliseconds(SystemTime::now());
                self.write(|write| {
                    migration::from_1_to_2(write, now)?;
                    set_format(write)
                })
                .map_err(sentence)?;
                log::info!("the database has format {FORMAT} now");
                Ok(())
            }
            Some(unknown) => Err(format!(
                "its format is {unknown}; this towebp knows formats 1 to {FORMAT}"
            )),
            None if self.read(is_empty).map_err(sentence)? => {
                self.write(create_tables).map_err(sentence)
            }
            None => Err("it belongs to another program".to_owned()),
        }
    }

    /// Remembers which secret is used; whether it was another one the last time.
    ///
    /// # Errors
    /// Those of [`Database::read`] and [`Database::write`].
    pub fn exchange_secret(&self, secret: &Secret) -> Result<bool, StoreError> {
        let mark = secret.mark();
        let last = self.read(|read| {
            Ok(read
                .open_table(META)?
                .get("secret")?
                .map(|mark| mark.value()))
        })?;
        if last != Some(mark) {
            self.write(|write| Ok(write.open_table(META)?.insert("secret", mark).map(|_| ())?))?;
        }
        Ok(last.is_some_and(|last| last != mark))
    }

    /// Reads in one transaction: `work` sees one state of the whole store.
    ///
    /// # Errors
    /// The file cannot be read or is damaged.
    pub fn read<T>(
        &self,
        work: impl FnOnce(&ReadTransaction) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
        self.attempt(|redb| work(&redb.begin_read()?))
            .map_err(|error| match (error, self.availability.check()) {
                // The log has nothing of it yet.
                (StoreError::Unavailable(cause), Ok(())) => StoreError::Failed(cause),
                (error, _) => error,
            })
    }

    /// One state of the whole store, for as long as it takes to read all of it: unlike [`Database::read`] it never keeps a
    /// failed database from being opened anew, and fails itself then.
    ///
    /// # Errors
    /// As [`Database::read`].
    pub fn begin_read(&self) -> Result<ReadTransaction, StoreError> {
        self.attempt(|redb| Ok(redb.begin_read()?))
    }

    /// Compares all pages of the file with their checksums, and mends what can be; whether there was nothing to mend. Nothing
    /// else may be under way.
    ///
    /// # Errors
    /// It is damaged beyond that, or cannot be read.
    pub fn check_pages(&mut self) -> Result<bool, StoreError> {
        let slot = self.slot.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(redb) = &mut slot.redb else {
            return Err(closed());
        };
        redb.check_integrity()
            .map_err(|error| StoreError::Failed(error.to_string()))
    }

    /// Writes in one transaction, on disk when this returns. One caller at a time: others wait.
    ///
    /// # Errors
    /// `work` failed, or the file cannot be written; nothing of it is kept then.
    pub fn write<T>(
        &self,
        work: impl FnOnce(&WriteTransaction) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
        self.attempt(|redb| {
            let mut transaction = redb.begin_write()?;
            // Opening after a kill takes half a millisecond instead of a walk through the whole file.
            transaction.set_quick_repair(true);
            let answer = work(&transaction)?;
            transaction.commit()?;
            Ok(answer)
        })
    }

    fn attempt<T>(
        &self,
        work: impl FnOnce(&redb::Database) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
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

    fn reopen_if_closed(&self) -> Result<(), StoreError> {
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

    /// Opens it anew unless somebody has since `opened`; the error if that fails.
    fn reopen(&self, opened: u64) -> Option<DatabaseError> {
        let mut slot = self.slot.write().unwrap_or_else(PoisonError::into_inner);
        if slot.opened != opened {
            return None;
        }
        // The lock on the file must go before the next opening.
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
    let file = folder::open_private(path)?;
    redb::Database::builder()
        .set_cache_size(CACHE_BYTES)
        .create_file(file)
}

fn closed() -> StoreError {
    StoreError::Unavailable("the database is closed after a failure".into())
}

/// Whether the folder or its disk is the cause rather than what the file holds.
fn refuses_writes(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::StorageFull
            | io::ErrorKind::FileTooLarge
            | io::ErrorKind::QuotaExceeded
    )
}

/// Whether redb refuses all further work after this error.
pub fn is_final(error: &redb::Error) -> bool {
    matches!(
        error,
        redb::Error::Io(_)
            | redb::Error::PreviousIo
            | redb::Error::LockPoisoned(_)
            | redb::Error::DatabaseClosed
    )
}

fn format(read: &ReadTransaction) -> Result<Option<u64>, redb::Error> {
    match read.open_table(META) {
        Ok(meta) => Ok(meta.get("format")?.map(|value| value.value())),
        Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn is_empty(read: &ReadTransaction) -> Result<bool, redb::Error> {
    Ok(read.list_tables()?.next().is_none())
}

fn set_format(write: &WriteTransaction) -> Result<(), redb::Error> {
    write.open_table(META)?.insert("format", FORMAT)?;
    Ok(())
}

fn create_tables(write: &WriteTransaction) -> Result<(), redb::Error> {
    set_format(write)?;
    accounts::Tables::open(write)?;
    sessions::Tables::open(write)?;
    usage::Tables::open(write)?;
    invites::Tables::open(write)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::Folder;
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
    }

    #[test]
    fn refuses_a_file_that_is_no_database() {
        let folder = Folder::new();
        let path = folder.path().join("towebp.redb");
        std::fs::write(&path, "not a database at all").unwrap();
        let Err(OpenError::Failed(sentence)) = Database::open(&path) else {
            panic!("it was opened")
        };
        assert!(sentence.contains("towebp.redb"), "{sentence}");
        assert_eq!(
            std::fs::read(&path).unwrap(),
            b"not a database at all",
            "the file was changed"
        );
    }
}
