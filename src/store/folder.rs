//! The data folder and files in it that only their owner may read.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Makes the folder, and those above it, if missing: mode 0700. One that exists keeps its mode: it may be a
/// mounted volume; what lies inside is 0600 either way.
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

/// Opens a file to read and write, making an empty one of mode 0600 if missing.
///
/// # Errors
/// As the system says.
pub fn open_private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

/// Makes a new file of mode 0600 to write.
///
/// # Errors
/// As the system says; also if there is one already.
pub fn create_new_private(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    // A umask may have taken the owner's own bits.
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(file)
}

/// Puts names made in the folder on disk: syncing a file does not sync its name.
///
/// # Errors
/// As the system says.
pub fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The folder that a file lies in; `.` for a bare name.
pub fn of(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}
