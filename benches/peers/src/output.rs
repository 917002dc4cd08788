//! Standard output and standard error, whose readers may leave: `println!` would panic.

use std::io::{self, ErrorKind, Write};

/// Prints `text` and ends the line. Nothing is wrong when nobody reads it any more (`peers ... |
/// head`): files that were asked for are still to be written.
///
/// # Errors
/// When it cannot be written for another reason, such as a full disk.
pub fn print(text: &str) -> Result<(), String> {
    print_to(&mut io::stdout().lock(), text)
        .map_err(|error| format!("standard output cannot be written: {error}"))
}

/// Tells `text` on standard error, if anybody listens.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

fn print_to(output: &mut impl Write, text: &str) -> io::Result<()> {
    match writeln!(output, "{text}").and_then(|()| output.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_reader_who_left_is_no_error() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        drop(reader);
        print_to(&mut writer, "unread").expect("nobody reads it any more");
        let error = print_to(&mut [0; 3].as_mut_slice(), "too long").expect_err("no room");
        assert_eq!(error.kind(), ErrorKind::WriteZero);
    }
}
