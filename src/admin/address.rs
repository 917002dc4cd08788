//! Where the socket lies: `admin.sock` in the data folder, whose mode lets nobody but its owner in.
//!
//! An address of a Unix socket holds at most 107 bytes of path (unix(7), `sun_path`). Where the data folder's path is
//! longer, the folder is opened and the socket reached through `/proc/self/fd/N/admin.sock`, which is short.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

const NAME: &str = "admin.sock";

/// `sun_path` holds 108 bytes, the last of them zero.
const LONGEST: usize = 107;

/// A path in the data folder that is short enough for a socket.
pub struct Address {
    path: PathBuf,
    /// Keeps `/proc/self/fd/N` alive.
    _folder: Option<File>,
}

impl Address {
    /// The address of the server's socket.
    ///
    /// # Errors
    /// The folder's path is too long and it cannot be opened.
    pub fn of_socket(data: &Path) -> io::Result<Address> {
        Address::of(data, NAME)
    }

    /// Where a new socket is made before it takes the place of an old one.
    ///
    /// # Errors
    /// The folder's path is too long and it cannot be opened.
    pub fn of_draft(data: &Path) -> io::Result<Address> {
        Address::of(data, "admin.new")
    }

    /// A path that leads to it, in this process, while the address lives.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn of(data: &Path, name: &str) -> io::Result<Address> {
        let path = data.join(name);
        if path.as_os_str().len() <= LONGEST {
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

/// Where the socket lies, for people.
pub fn socket_path(data: &Path) -> PathBuf {
    data.join(NAME)
}
