//! Reads a password at a terminal.

use super::say;
use crate::process::interrupt;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{self, BufRead, Write};

/// Prompts for a new password twice, without echo.
///
/// # Errors
/// A sentence: the two differ, or the terminal does not answer.
pub fn ask_for_new_password() -> Result<String, String> {
    let failed = |error: io::Error| format!("the password cannot be read: {error}");
    let echo_off = EchoOff::begin().map_err(failed)?;
    // Otherwise Ctrl+C would leave a terminal without echo.
    let before = echo_off.before.clone();
    interrupt::catch(&interrupt::Outputs::default(), move |_| {
        restore(&before);
        say::note("");
    })?;
    let first = ask("New password: ").map_err(failed)?;
    let second = ask("The same again: ").map_err(failed)?;
    drop(echo_off);
    if first != second {
        return Err("the two passwords differ: nothing was changed".to_owned());
    }
    Ok(first)
}

/// Prints a prompt, and returns the typed line without its end.
fn ask(question: &str) -> io::Result<String> {
    io::stderr().write_all(question.as_bytes()).ok();
    let mut line = String::new();
    let length = io::stdin().lock().read_line(&mut line)?;
    // The end of the line is not shown either.
    say::note("");
    if length == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Turns the terminal's echo off until it is dropped.
struct EchoOff {
    before: Termios,
}

impl EchoOff {
    fn begin() -> io::Result<EchoOff> {
        let before = tcgetattr(io::stdin())?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        // Flush: input from before the prompt is no answer to it.
        tcsetattr(io::stdin(), OptionalActions::Flush, &silent)?;
        Ok(EchoOff { before })
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        restore(&self.before);
    }
}

fn restore(before: &Termios) {
    tcsetattr(io::stdin(), OptionalActions::Now, before).ok();
}
