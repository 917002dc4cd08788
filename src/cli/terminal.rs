//! Questions to a person at a terminal.

use super::say;
use crate::process::interrupt;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{self, BufRead, Write};

/// Asks for a new password twice, without showing what is typed.
///
/// # Errors
/// A sentence: the two differ, or the terminal does not answer.
pub fn ask_for_new_password() -> Result<String, String> {
    let failed = |error: io::Error| format!("the password cannot be read: {error}");
    let silence = Silence::begin().map_err(failed)?;
    // Ctrl+C would else leave a terminal that shows nothing.
    let before = silence.before.clone();
    interrupt::catch(&interrupt::Outputs::default(), move |_| {
        restore(&before);
        say::note("");
    })?;
    let first = ask("New password: ").map_err(failed)?;
    let second = ask("The same again: ").map_err(failed)?;
    drop(silence);
    if first != second {
        return Err("the two passwords differ: nothing was changed".to_owned());
    }
    Ok(first)
}

/// The line that is typed, without its end.
fn ask(question: &str) -> io::Result<String> {
    io::stderr().write_all(question.as_bytes()).ok();
    let mut line = String::new();
    let length = io::stdin().lock().read_line(&mut line)?;
    // The line's end is not shown either.
    say::note("");
    if length == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// A terminal that does not show what is typed, while this lives.
struct Silence {
    before: Termios,
}

impl Silence {
    fn begin() -> io::Result<Silence> {
        let before = tcgetattr(io::stdin())?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        // What was typed before the question is no answer to it.
        tcsetattr(io::stdin(), OptionalActions::Flush, &silent)?;
        Ok(Silence { before })
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        restore(&self.before);
    }
}

fn restore(before: &Termios) {
    tcsetattr(io::stdin(), OptionalActions::Now, before).ok();
}
