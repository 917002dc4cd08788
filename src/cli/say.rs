//! Writes lines for people to standard error, and lines for programs to standard output.
//!
//! The macros `eprintln!` and `println!` panic when the stream is closed (`towebp convert ... 2>&1
//! | head -1`). These functions do not, since a command must do its work even if nobody reads its
//! messages.

use std::io::{self, Write};

/// Writes a line to standard error, in one piece, so that lines of several threads do not mix.
pub fn note(line: &str) {
    io::stderr().write_all(format!("{line}\n").as_bytes()).ok();
}

/// Writes a line to standard output.
pub fn print(line: &str) {
    io::stdout().write_all(format!("{line}\n").as_bytes()).ok();
}
