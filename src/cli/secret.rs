//! `towebp secret`: makes the secret of several servers.

use super::say;
use crate::auth::Secret;
use clap::Args;

/// Print a new secret, for the file that all servers on one --store have as --secret-file.
#[derive(Args)]
pub(super) struct SecretCommand {}

/// Carries out the command.
///
/// # Errors
/// A sentence for standard error: there is no randomness, or standard output takes nothing.
pub(super) fn run() -> Result<(), String> {
    let secret = Secret::random().map_err(|error| error.to_string())?;
    say::write(secret.to_text().as_bytes())
}
