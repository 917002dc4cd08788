//! The data folder, and files that only their owner may read.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::auth::random_bytes;

/// Makes the folder and its missing parents with mode 0700. A folder that exists keeps its mode,
/// since it may be a mounted volume; the files in it have mode 0600 either way. See
/// [`reject_shared`].
///
/// # Errors
/// A sentence that names the folder.
pub fn create_private(folder: &Path) -> Result<(), String> {
    if folder.is_dir() {
        return Ok(());
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| {
            format!(
                "the data folder {} cannot be made: {error}",
                folder.display()
            )
        })
}

/// Rejects a folder or a file that others than its owner may write. In such a data folder, other
/// users could replace the database or the socket for administration; in such a database, they
/// could take accounts over. A path that does not exist is accepted.
///
/// # Errors
/// A sentence that names the path and the command that corrects its mode.
pub fn reject_shared(path: &Path, what: &str) -> Result<(), String> {
    let Ok(found) = fs::metadata(path) else {
        return Ok(());
    };
    let mode = found.permissions().mode() & 0o7777;
    let (who, mend) = match (mode & 0o020 != 0, mode & 0o002 != 0) {
        (false, false) => return Ok(()),
        (true, false) => ("its group", "g-w"),
        (false, true) => ("everybody", "o-w"),
        (true, true) => ("its group and everybody", "go-w"),
    };
    let path = path.display();
    Err(format!(
        "the {what} {path} may be written by {who} (mode {mode:04o}), who could take over every \
         account: \
         chmod {mend} {path} mends that, and --allow-shared-data allows it"
    ))
}

/// Opens a file for reading and writing, and makes an empty one of mode 0600 if it is missing.
pub fn open_private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

/// Makes a new file of mode 0600 for reading and writing. If the name is taken, even by a symbolic
/// link, that file is neither followed nor used: `O_EXCL` guarantees it (open(2)).
///
/// # Errors
/// The system's; [`io::ErrorKind::AlreadyExists`] if the name is taken.
pub fn create_new_private(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    // A umask may have cleared bits of the owner.
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

/// A name beside `target` for a file that becomes `target` once it is complete. It cannot be
/// guessed, so nobody can have prepared a file or a link of that name.
///
/// # Errors
/// The system's; [`io::ErrorKind::InvalidInput`] if `target` has no name.
pub fn partial_name(target: &Path) -> io::Result<PathBuf> {
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let random = u64::from_ne_bytes(random_bytes().map_err(io::Error::other)?);
    let name = format!(".{}.{random:016x}.partial", name.to_string_lossy());
    Ok(target.with_file_name(name))
}

/// Renames a file to a name that is not taken. On a file system without hard links, a file that is
/// made under that name at the same moment may be replaced.
///
/// # Errors
/// The system's; [`io::ErrorKind::AlreadyExists`] if the name is taken.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(_) if fs::symlink_metadata(to).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(from, to),
    }
}

/// Makes the names of new files in the folder durable: syncing a file does not sync its name.
pub fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The folder that a file is in; `.` for a bare name.
pub fn of(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::Folder;
    use crate::store::{OpenError, Store, database_path, lock_folder};
    use std::os::unix::fs::symlink;

    #[test]
    fn paths_that_others_may_write_are_rejected_unless_that_is_allowed() {
        let folder = Folder::new();
        let settings = folder.settings();
        drop(folder.store());
        let database = database_path(&settings.data);
        for (path, private) in [(&settings.data, 0o700), (&database, 0o600)] {
            let set = |mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
            for (bits, mend) in [
                (0o020, "g-w"),
                (0o002, "o-w"),
                (0o022, "go-w"),
                (0o1022, "go-w"),
            ] {
                set(private | bits);
                let Err(OpenError::Failed(sentence)) = Store::open(&settings) else {
                    panic!("{} was opened with {bits:o}", path.display());
                };
                let mended = format!("chmod {mend} {} ", path.display());
                assert!(sentence.contains(&mended), "{sentence}");
                assert!(sentence.contains("--allow-shared-data"), "{sentence}");
                let mut allowed = settings.clone();
                allowed.allow_shared_data = true;
                drop(Store::open(&allowed).unwrap());
            }
            // A folder without a database has a lock of its own.
            if path == &settings.data {
                assert!(matches!(lock_folder(&settings), Err(OpenError::Failed(_))));
            }
            // Others may read, but not write.
            set(private | 0o055);
            drop(folder.store());
            set(private);
            drop(folder.store());
        }
    }

    #[test]
    fn a_new_private_file_is_new() {
        let folder = Folder::new();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("taken"), "precious").unwrap();
        symlink("taken", at("link")).unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        for name in ["taken", "link", "dangling"] {
            let error = create_new_private(&at(name)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{name}");
        }
        assert_eq!(fs::read(at("taken")).unwrap(), b"precious");
        assert!(!at("nowhere").exists());
        create_new_private(&at("new")).unwrap();
        for name in ["taken", "link", "dangling"] {
            let error = rename_new(&at("new"), &at(name)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{name}");
        }
        rename_new(&at("new"), &at("renamed")).unwrap();
        assert!(at("renamed").exists() && !at("new").exists());
    }

    #[test]
    fn a_bare_name_is_in_the_present_folder() {
        for (file, folder) in [
            ("towebp.redb", "."),
            ("./towebp.redb", "."),
            ("data/towebp.redb", "data"),
            ("/towebp.redb", "/"),
        ] {
            assert_eq!(of(Path::new(file)), Path::new(folder), "{file}");
        }
    }
}
