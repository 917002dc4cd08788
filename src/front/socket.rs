//! The part of a client's socket that a connection uses.

use mio::net::TcpStream;
use std::io::{self, Read, Write};
use std::net::Shutdown;

/// A socket that never blocks: an operation that would have to wait is a
/// [`WouldBlock`](io::ErrorKind::WouldBlock). In tests it may be a simulated one.
pub trait Socket: Send {
    /// As [`Read::read`].
    fn read(&self, bytes: &mut [u8]) -> io::Result<usize>;

    /// As [`Write::write`].
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Closes the sending side.
    fn shut_down_write(&self) -> io::Result<()>;
}

impl Socket for TcpStream {
    fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        Read::read(&mut &*self, bytes)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        Write::write(&mut &*self, bytes)
    }

    fn shut_down_write(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}
