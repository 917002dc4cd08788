//! Errors while tokens, passwords and sessions are checked or issued.

use thiserror::Error;

/// An internal error: the client has done nothing wrong. The texts are for the log.
#[derive(Clone, Debug, Error)]
pub enum AuthError {
    /// The system gives no random bytes.
    #[error("the system gives no random bytes: {0}")]
    Random(String),
    /// argon2 failed; in practice the stored password hash is damaged.
    #[error("argon2 failed: {0}")]
    Argon2(String),
}
