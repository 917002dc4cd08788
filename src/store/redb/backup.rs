//! Backup files: rows that belong to no engine as a new database file.
//!
//! If the bytes of the file were copied while the server writes to it, the copy could not be
//! opened. So the rows are copied, from one snapshot ([`crate::store::transfer`]). Sessions are not
//! among them: they are not worth keeping, and whoever restores a backup after a theft does not
//! want the thief's sessions back. The new file has their tables, empty.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::load::{BATCH_BYTES, Loader};
use crate::store::engine::EachRow;
use crate::store::error::StoreError;
use crate::store::folder;

/// The most bytes of pages of the new file that are kept in memory.
pub const CACHE_BYTES: usize = 16 << 20;

/// A backup file that is being written. It has a temporary name beside its target until it is
/// complete, and is removed if it does not become complete.
pub struct Backup {
    target: PathBuf,
    partial: PathBuf,
    replace: bool,
    /// `None` once [`Backup::load`] has taken it.
    file: Option<File>,
}

impl Backup {
    /// Makes the temporary file, which only its owner may read ([`folder::partial_name`]). With
    /// `replace`, a regular file of the target's name is replaced at the end.
    ///
    /// # Errors
    /// A sentence: the target exists already, or the file cannot be made.
    pub fn create(target: &Path, replace: bool) -> Result<Backup, String> {
        let cannot = |error: io::Error| format!("{} cannot be written: {error}", target.display());
        match fs::symlink_metadata(target) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(cannot(error)),
            Ok(found) if found.is_symlink() => {
                return Err(format!(
                    "{} is a symbolic link, which a backup does not follow: name the file itself",
                    target.display()
                ));
            }
            Ok(found) if !found.is_file() => {
                return Err(format!(
                    "{} is not a regular file: a backup is a new file",
                    target.display()
                ));
            }
            Ok(_) if !replace => {
                return Err(format!(
                    "{} is there already; --force replaces it",
                    target.display()
                ));
            }
            Ok(_) => {}
        }
        let partial = folder::partial_name(target).map_err(cannot)?;
        let file = folder::create_new_private(&partial).map_err(cannot)?;
        Ok(Backup {
            target: target.to_owned(),
            partial,
            replace,
            file: Some(file),
        })
    }

    /// The path of the temporary file, which a process that is interrupted has to remove.
    pub fn partial(&self) -> &Path {
        &self.partial
    }

    /// Completes the file from rows of any engine: `give` calls its argument with each of them, in
    /// their order ([`crate::store::rows`]).
    ///
    /// # Errors
    /// A sentence: that of `give`, the rows do not fit together, or the file cannot be written. No
    /// file is left then.
    pub fn load(
        self,
        give: impl FnOnce(&mut EachRow<'_>) -> Result<(), StoreError>,
    ) -> Result<(), String> {
        self.complete(|file| {
            let redb = create(file).map_err(io::Error::other)?;
            let mut loader = Loader::new(redb, BATCH_BYTES);
            give(&mut |row| loader.add(row))
                .and_then(|()| loader.finish())
                .map_err(io::Error::other)
        })
    }

    /// Gives the file, which `write` makes a whole database, its name.
    fn complete<T>(mut self, write: impl FnOnce(File) -> io::Result<T>) -> Result<T, String> {
        let file = self
            .file
            .take()
            .expect("only this function takes it, and it consumes the backup");
        let completed = file.try_clone().and_then(|written| {
            let answer = write(file)?;
            written.sync_all()?;
            if self.replace {
                fs::rename(&self.partial, &self.target)?;
            } else {
                folder::rename_new(&self.partial, &self.target)?;
            }
            folder::sync(folder::of(&self.target))?;
            Ok(answer)
        });
        completed.map_err(|error| {
            fs::remove_file(&self.partial).ok();
            let cause = match error.kind() {
                io::ErrorKind::AlreadyExists => "a file of that name was made meanwhile".to_owned(),
                _ => error.to_string(),
            };
            format!("{} was not made: {cause}", self.target.display())
        })
    }
}

fn create(file: File) -> Result<redb::Database, redb::DatabaseError> {
    redb::Database::builder()
        .set_cache_size(CACHE_BYTES)
        .create_file(file)
}

impl Drop for Backup {
    fn drop(&mut self) {
        if self.file.is_some() {
            fs::remove_file(&self.partial).ok();
        }
    }
}
