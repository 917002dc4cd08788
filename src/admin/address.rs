//! The address of the socket: `admin.sock` in the data folder, whose mode admits its owner only.
//!
//! The address of a Unix socket holds at most 107 bytes of path (unix(7), `sun_path`). If the path
//! of the socket is longer, the data folder is opened, and the socket is reached through
//! `/proc/self/fd/N/admin.sock`.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

const NAME: &str = "admin.sock";

/// The most bytes of a socket's path: `sun_path` holds 108 bytes, the last of which is zero.
const MAX_PATH_BYTES: usize = 107;

/// A path in the data folder that is short enough for a socket.
pub struct Address {
    path: PathBuf,
    /// The descriptor N of `/proc/self/fd/N`, if the path goes through it.
    _folder: Option<File>,
}

impl Address {
    /// The address of the server's socket.
    ///
    /// # Errors
    /// The path is too long, and the folder cannot be opened.
    pub fn of_socket(data: &Path) -> io::Result<Address> {
        Address::of(data, NAME)
    }

    /// The address at which a new socket is made before it replaces an old one.
    ///
    /// # Errors
    /// As [`Address::of_socket`].
    pub fn of_draft(data: &Path) -> io::Result<Address> {
        Address::of(data, "admin.new")
    }

    /// The path. It is valid in this process, for as long as the address lives.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn of(data: &Path, name: &str) -> io::Result<Address> {
        let path = data.join(name);
        if path.as_os_str().len() <= MAX_PATH_BYTES {
            return Ok(Address {
                path,
                _folder: None,
            });
        }
        let folder = File::open(data)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()));
        Ok(Address {
            path,
            _folder: Some(folder),
        })
    }
}

/// The path of the socket as people read it.
pub fn socket_path(data: &Path) -> PathBuf {
    data.join(NAME)
}
