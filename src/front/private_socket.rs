//! The Unix socket on which a `tiny_http` server accepts its upstream connections.
//!
//! `tiny_http` accepts from a listener only, so for a moment there is a Unix socket in a folder of
//! mode 0700. Once every connection has answered a request, the folder is removed and the listener
//! shut down. That ends `tiny_http`'s accepting thread, which could not survive a lack of
//! descriptors or threads anyway, and nobody else can ever connect.

use super::admission::Pool;
use super::response::ResponseReader;
use super::upstream::UpstreamConnection;
use mio::net::UnixStream;
use rustix::net::{Shutdown, shutdown};
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream as StdUnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A new connection answers within milliseconds, but the machine may be busy.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Sent over each new connection. It has no internal headers, which every client's request has.
const PROBE: &[u8] = b"OPTIONS * HTTP/1.1\r\nConnection: keep-alive\r\n\r\n";

/// Where a `tiny_http` server accepts until all of its connections are made.
pub struct PrivateSocket {
    folder: PathBuf,
    /// Where to connect. If the folder's path is too long for a socket's address, it leads through
    /// the open folder.
    address: PathBuf,
    _open_folder: File,
    listener: UnixListener,
}

impl PrivateSocket {
    /// Listens in a new folder of this name inside `data`, which no other process may use at the
    /// same time.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn bind(data: &Path, name: &str) -> Result<PrivateSocket, String> {
        let folder = data.join(name);
        PrivateSocket::bind_in(&folder).map_err(|error| {
            format!(
                "the private socket in {} cannot be made: {error}",
                folder.display()
            )
        })
    }

    fn bind_in(folder: &Path) -> io::Result<PrivateSocket> {
        // A process that was killed at this point has left its folder behind.
        fs::remove_dir_all(folder).ok();
        DirBuilder::new().mode(0o700).create(folder)?;
        let open_folder = File::open(folder)?;
        let mut address = folder.join("socket");
        // sun_path holds 107 bytes (unix(7)).
        if address.as_os_str().len() > 107 {
            let descriptor = open_folder.as_raw_fd();
            address = PathBuf::from(format!("/proc/self/fd/{descriptor}/socket"));
        }
        let listener = UnixListener::bind(&address)?;
        Ok(PrivateSocket {
            folder: folder.to_owned(),
            address,
            _open_folder: open_folder,
            listener,
        })
    }

    /// A listener for `tiny_http` to accept from.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn listener(&self) -> Result<UnixListener, String> {
        let listener = self.listener.try_clone();
        listener.map_err(|error| format!("the private socket cannot be shared: {error}"))
    }

    /// Makes `count` connections, waits until each of them has answered, and closes the socket.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn connect(self, pool: Pool, count: usize) -> Result<Vec<UpstreamConnection>, String> {
        let connections = (0..count)
            .map(|_| Ok(UpstreamConnection::new(pool, self.connect_one()?)))
            .collect::<io::Result<Vec<UpstreamConnection>>>();
        let connections = connections.map_err(|error| {
            format!("the workers did not start (is there a limit on threads?): {error}")
        })?;
        shutdown(&self.listener, Shutdown::Both)
            .map_err(|error| format!("the private socket cannot be closed: {error}"))?;
        Ok(connections)
    }

    fn connect_one(&self) -> io::Result<UnixStream> {
        let mut stream = StdUnixStream::connect(&self.address)?;
        stream.set_read_timeout(Some(CONNECT_TIMEOUT))?;
        stream.write_all(PROBE)?;
        let mut response = ResponseReader::default();
        let mut bytes = [0; 512];
        loop {
            let count = stream.read(&mut bytes)?;
            match response.read(&bytes[..count], false) {
                Ok(portion) if portion.is_last => break,
                Ok(_) if count > 0 => {}
                _ => return Err(ErrorKind::UnexpectedEof.into()),
            }
        }
        stream.set_nonblocking(true)?;
        Ok(UnixStream::from_std(stream))
    }
}

impl Drop for PrivateSocket {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::thread;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!(
            "towebp-private-socket-{}-{name}",
            std::process::id()
        ));
        fs::create_dir_all(&folder).expect("a new folder");
        folder
    }

    #[test]
    fn nobody_can_connect_after_the_upstreams() {
        for name in ["short".to_owned(), "long".repeat(40)] {
            let data = folder(&name);
            let socket = PrivateSocket::bind(&data, "private").expect("a private socket");
            let mode = fs::metadata(&socket.folder)
                .expect("it is there")
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o700, "its owner alone may enter");
            let server =
                tiny_http::Server::from_listener(socket.listener().unwrap(), None).unwrap();
            let worker = thread::spawn(move || {
                for _ in 0..3 {
                    let request = server.recv().expect("a probe");
                    request
                        .respond(tiny_http::Response::empty(204))
                        .expect("it is read");
                }
                assert!(server.recv().is_err(), "the accepting thread has ended");
            });
            let (address, folder) = (socket.address.clone(), socket.folder.clone());
            let upstreams = socket.connect(Pool::Pages, 3).expect("three connections");
            assert_eq!(upstreams.len(), 3);
            worker.join().expect("three probes");
            assert!(!folder.exists(), "nothing is left on disk");
            StdUnixStream::connect(address).expect_err("the socket is gone");
            fs::remove_dir_all(data).ok();
        }
    }
}
