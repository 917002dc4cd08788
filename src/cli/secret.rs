//! `towebp secret`: makes the secret of several servers.

use crate::auth::Secret;
use argh::{ArgsInfo, FromArgs};
use std::io::{self, Write};

/// Print a new secret, for the file that all servers on one --store have as --secret-file.
#[derive(FromArgs, ArgsInfo)]
#[argh(subcommand, name = "secret", help_triggers("-h", "--help"))]
pub struct SecretCommand {}

/// Carries out the command.
///
/// # Errors
/// A sentence for standard error: there is no randomness, or standard output takes nothing.
pub fn run() -> Result<(), String> {
    let secret = Secret::random().map_err(|error| error.to_string())?;
    let mut out = io::stdout();
    let written = out.write_all(secret.to_text().as_bytes());
    let written = written.and_then(|()| out.flush());
    written.map_err(|error| format!("standard output cannot be written: {error}"))
}
