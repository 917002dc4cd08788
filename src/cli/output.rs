//! Files that commands write at paths of the user, without losing existing ones.
//!
//! - A regular file appears whole or not at all: it is written under a temporary name beside the
//!   target and renamed. One that is replaced keeps its mode, and its owner where the system
//!   permits that.
//! - A symbolic link stays, and the file that it leads to is replaced or made.
//! - Any other file (a device, a FIFO, a descriptor of this process such as `/dev/fd/3`) is opened
//!   and written to, since a rename would destroy it.

use crate::process::interrupt::Outputs;
use crate::store::rename_new;
use rustix::fs::OFlags;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// The most symbolic links that are followed one after the other, as in Linux
/// (`path_resolution(7)`).
const MAX_LINKS: usize = 40;

/// An output, and the file that exists there.
#[derive(Debug)]
pub struct Output(Place);

#[derive(Debug)]
enum Place {
    /// This path is opened and written to.
    Stream(PathBuf),
    /// A file is written beside this path, which is no symbolic link, and renamed to it.
    File {
        path: PathBuf,
        /// The file that exists there.
        replaced: Option<Metadata>,
    },
}

impl Output {
    /// Follows the path.
    ///
    /// # Errors
    /// It is a folder, leads through a folder that does not exist, or has too many symbolic links.
    pub fn find(target: &Path) -> io::Result<Output> {
        let mut path = target.to_owned();
        for _ in 0..MAX_LINKS {
            if is_descriptor(&path) {
                return Ok(Output(Place::Stream(target.to_owned())));
            }
            let found = match fs::symlink_metadata(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                found => Some(found?),
            };
            match found {
                Some(link) if link.is_symlink() => {
                    let leads_to = fs::read_link(&path)?;
                    // `join` takes an absolute path as it is.
                    path = folder_of(&path).join(leads_to);
                }
                Some(folder) if folder.is_dir() => {
                    return Err(io::ErrorKind::IsADirectory.into());
                }
                Some(file) if !file.is_file() => {
                    return Ok(Output(Place::Stream(path)));
                }
                replaced => {
                    return Ok(Output(Place::File { path, replaced }));
                }
            }
        }
        Err(io::Error::other("too many symbolic links"))
    }

    /// The regular file that writing would replace, after symbolic links are followed.
    pub fn replaces(&self) -> Option<&Path> {
        match &self.0 {
            Place::File {
                path,
                replaced: Some(_),
            } => Some(path),
            _ => None,
        }
    }

    /// Writes all bytes. A new file gets this mode, less the umask of the process. `replaces` is
    /// whether a file is replaced that another program creates meanwhile.
    ///
    /// # Errors
    /// The error of the system; an existing file is not changed. [`io::ErrorKind::AlreadyExists`]
    /// if another program has created the file and it is not replaced.
    pub fn write(
        &self,
        bytes: &[u8],
        mode: u32,
        replaces: bool,
        outputs: &Outputs,
    ) -> io::Result<()> {
        match &self.0 {
            Place::Stream(path) => {
                write_stream(path, bytes)?;
                outputs.count_finished();
                Ok(())
            }
            Place::File { path, replaced } => {
                let temporary = temporary_beside(path)?;
                let mode = if replaced.is_some() { 0o600 } else { mode };
                let mut file = outputs.begin(|| {
                    let file = OpenOptions::new()
                        .write(true)
                        .create_new(true)
                        .mode(mode)
                        .open(&temporary)?;
                    Ok::<_, io::Error>((temporary.clone(), file))
                })?;
                let written = file.write_all(bytes).and_then(|()| {
                    replaced
                        .as_ref()
                        .map_or(Ok(()), |old| copy_owner_and_mode(&file, old))
                });
                if let Err(error) = written {
                    outputs.abandon(&temporary);
                    return Err(error);
                }
                let rename = if replaces { rename } else { rename_new };
                outputs.finish(&temporary, || rename(&temporary, path))
            }
        }
    }
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

/// Whether the process was started without standard output, which Rust then has as `/dev/null` for
/// reading and writing. Nobody who wants output leads it there in that way.
pub fn is_standard_output_closed() -> bool {
    let found = fs::metadata("/proc/self/fd/1").ok();
    let null = fs::metadata("/dev/null").ok();
    let is_null = found.zip(null).is_some_and(|(found, null)| {
        found.file_type().is_char_device() && found.rdev() == null.rdev()
    });
    let flags = rustix::fs::fcntl_getfl(io::stdout());
    is_null && flags.is_ok_and(|flags| flags.contains(OFlags::RDWR))
}

/// Whether the path names an open file of a process, which is a link that cannot be replaced.
fn is_descriptor(path: &Path) -> bool {
    path.starts_with("/dev/fd") || (path.starts_with("/proc") && folder_of(path).ends_with("fd"))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

fn write_stream(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A regular file behind a descriptor (`3>>file`) is appended to, as by other programs that have
    // the descriptor.
    let is_file = fs::metadata(path).is_ok_and(|found| found.is_file());
    let mut file = OpenOptions::new().write(true).append(is_file).open(path)?;
    file.write_all(bytes)?;
    // A disk reports failed writes here; other devices cannot be synced.
    if file.metadata()?.file_type().is_block_device() {
        file.sync_all()?;
    }
    Ok(())
}

/// Gives the new file the owner and the mode of the old one. If the group cannot be kept, the new
/// group gets only the permissions that all others had.
fn copy_owner_and_mode(file: &File, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    let is_owned = (new.uid(), new.gid()) == (old.uid(), old.gid())
        || fchown(file, Some(old.uid()), Some(old.gid())).is_ok();
    // Only root may change the owner of a file; its owner may change the group to one of their own.
    let has_group =
        is_owned || new.gid() == old.gid() || fchown(file, None, Some(old.gid())).is_ok();
    let mode = kept_mode(old.mode(), has_group);
    file.set_permissions(Permissions::from_mode(mode))
}

/// The permissions that the new file keeps, without set-user-ID: its contents are others.
fn kept_mode(old: u32, has_group: bool) -> u32 {
    let others = old & 0o007;
    let group = if has_group { 0o070 } else { others << 3 };
    old & (0o707 | group)
}

/// A path beside this one, with a name that nobody can guess and create first.
fn temporary_beside(path: &Path) -> io::Result<PathBuf> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    // The name of a file has at most 255 bytes.
    let name: String = name.to_string_lossy().chars().take(50).collect();
    let random = u64::from_ne_bytes(random);
    Ok(path.with_file_name(format!(".{name}.{random:016x}.tmp")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::Folder;
    use std::os::unix::fs::symlink;

    fn write(target: &Path, bytes: &[u8]) -> io::Result<()> {
        Output::find(target)?.write(bytes, 0o666, true, &Outputs::default())
    }

    fn count(folder: &Folder) -> usize {
        fs::read_dir(folder.path()).unwrap().count()
    }

    #[test]
    fn links_stay_and_the_files_behind_them_are_written() {
        let folder = Folder::new();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("sub")).unwrap();
        fs::write(at("sub/real"), "old").unwrap();
        symlink("sub/real", at("link")).unwrap();
        symlink(at("link"), at("chain")).unwrap();
        symlink("made", at("sub/dangling")).unwrap();
        symlink("loop", at("loop")).unwrap();
        write(&at("chain"), b"new").unwrap();
        assert_eq!(fs::read(at("sub/real")).unwrap(), b"new");
        for link in ["link", "chain"] {
            assert!(fs::symlink_metadata(at(link)).unwrap().is_symlink());
        }
        let dangling = Output::find(&at("sub/dangling")).unwrap();
        assert_eq!(dangling.replaces(), None);
        let real = folder.path().join("sub/real");
        assert_eq!(Output::find(&at("chain")).unwrap().replaces(), Some(&*real));
        write(&at("sub/dangling"), b"made").unwrap();
        assert_eq!(fs::read(at("sub/made")).unwrap(), b"made");
        assert!(write(&at("loop"), b"").is_err());
        assert!(write(&at("sub"), b"").is_err(), "a folder was written");
        assert_eq!(fs::read_dir(at("sub")).unwrap().count(), 3);
        assert_eq!(count(&folder), 4, "something was left behind");
    }

    #[test]
    fn a_replaced_file_keeps_its_mode_and_a_new_one_gets_the_given_mode() {
        let folder = Folder::new();
        let file = folder.path().join("file");
        let mode = || fs::metadata(&file).unwrap().mode() & 0o7777;
        let output = Output::find(&file).unwrap();
        assert_eq!(output.replaces(), None);
        output
            .write(b"new", 0o600, false, &Outputs::default())
            .unwrap();
        assert_eq!(mode(), 0o600);
        let created = output.write(b"late", 0o600, false, &Outputs::default());
        assert_eq!(created.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&file).unwrap(), b"new");
        for kept in [0o600, 0o640, 0o755, 0o444] {
            fs::set_permissions(&file, Permissions::from_mode(kept)).unwrap();
            assert_eq!(Output::find(&file).unwrap().replaces(), Some(&*file));
            write(&file, b"newer").unwrap();
            assert_eq!(
                (mode(), fs::read(&file).unwrap()),
                (kept, b"newer".to_vec())
            );
        }
        assert_eq!(count(&folder), 1, "something was left behind");
    }

    #[test]
    fn another_group_gets_no_more_than_others_had() {
        for (old, same_group, other_group) in [
            (0o640, 0o640, 0o600),
            (0o664, 0o664, 0o644),
            (0o600, 0o600, 0o600),
            (0o604, 0o604, 0o604),
            (0o6755, 0o755, 0o755),
        ] {
            assert_eq!(kept_mode(old, true), same_group, "{old:o}");
            assert_eq!(kept_mode(old, false), other_group, "{old:o}");
        }
    }

    #[test]
    fn descriptors_are_told_from_files() {
        for path in ["/dev/fd/3", "/proc/self/fd/1", "/proc/12/fd/3"] {
            assert!(is_descriptor(Path::new(path)), "{path}");
        }
        for path in ["/dev/null", "/proc/self/comm", "fd/3", "/srv/fd/3"] {
            assert!(!is_descriptor(Path::new(path)), "{path}");
        }
    }
}
