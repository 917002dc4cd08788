//! Errors while tokens, passwords and sessions are checked or issued.

use std::fmt;

/// An internal error: the client has done nothing wrong. The texts are for the log.
#[derive(Clone, Debug)]
pub enum AuthError {
    /// The system gives no random bytes.
    Random(String),
    /// argon2 failed; in practice the stored password hash is damaged.
    Argon2(String),
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuthError::Random(cause) => write!(f, "the system gives no random bytes: {cause}"),
            AuthError::Argon2(cause) => write!(f, "argon2 failed: {cause}"),
        }
    }
}

impl std::error::Error for AuthError {}
