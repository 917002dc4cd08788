//! Writes lines for people to standard error, and lines for programs to standard output.
//!
//! The macros `eprintln!` and `println!` panic when the stream is closed (`towebp convert ... 2>&1
//! | head -1`). These functions do not, since a command must do its work even if nobody reads its
//! messages.

use std::io::{self, ErrorKind, Write};

/// Writes a line to standard error, in one piece, so that lines of several threads do not mix.
/// Control characters are escaped, since they may be those of a file's name or of a server's
/// answer.
pub(super) fn note(line: &str) {
    let line = super::names::escaped(line);
    io::stderr().write_all(format!("{line}\n").as_bytes()).ok();
}

/// Writes a line to standard output. A reader that has gone away, such as `head`, is no failure.
///
/// # Errors
/// A sentence: the line could not be written.
pub(super) fn print(line: &str) -> Result<(), String> {
    write(format!("{line}\n").as_bytes())
}

/// Writes bytes to standard output, as [`print()`] does.
///
/// # Errors
/// As those of [`print()`].
pub(super) fn write(bytes: &[u8]) -> Result<(), String> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("standard output cannot be written: {error}"))
        }
        _ => Ok(()),
    }
}
