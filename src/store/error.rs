//! What can go wrong, by what the caller was doing.

use std::fmt;
use std::path::PathBuf;

use crate::auth::AuthError;

/// The store could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// Another process has it open.
    InUse(PathBuf),
    /// Anything else, as a sentence for the operator.
    Failed(String),
}

/// A read or write failed. The texts are for the log, not for callers.
#[derive(Clone, Debug)]
pub enum StoreError {
    /// The disk takes no writes: it is full, read-only or broken. The store has told the log, and tries again by itself.
    Unavailable(String),
    /// Anything else: a damaged file, say.
    Failed(String),
}

/// An account was not made.
#[derive(Debug)]
pub enum CreateAccountError {
    /// Not an e-mail address; a sentence that says why.
    Email(String),
    /// The password is too short (under 8 characters) or too long (over 1024 bytes); a sentence.
    Password(String),
    /// There is such an account already.
    Exists,
    /// The invitation is unknown, used or expired.
    Invite,
    /// The store failed.
    Store(StoreError),
}

/// A password was not set.
#[derive(Debug)]
pub enum SetPasswordError {
    /// The password is too short (under 8 characters) or too long (over 1024 bytes); a sentence.
    Password(String),
    /// There is no such account.
    NoAccount,
    /// The store failed.
    Store(StoreError),
}

/// Sign-in was refused.
#[derive(Debug)]
pub enum SignInError {
    /// No such account or a wrong password: not told apart, in text or in time.
    Wrong,
    /// Too many attempts for this account: wait this many seconds.
    TooMany {
        /// Seconds, at least 1.
        retry_after: u64,
    },
    /// The store failed.
    Store(StoreError),
}

/// What the owner of an account asked for in a session, by the present password, was not done.
#[derive(Debug)]
pub enum OwnerError {
    /// The session is unknown, ended or expired.
    SignedOut,
    /// The present password is wrong, or the account has none.
    Wrong,
    /// Too many wrong ones in this session: wait this many seconds.
    TooMany {
        /// Seconds, at least 1.
        retry_after: u64,
    },
    /// The new password is too short (under 8 characters) or too long (over 1024 bytes); a sentence.
    NewPassword(String),
    /// The store failed.
    Store(StoreError),
}

/// A token was refused.
#[derive(Debug)]
pub enum TokenError {
    /// Malformed or mistyped (checksum), forged, rotated away, or of a deleted account.
    Invalid,
    /// The store failed.
    Store(StoreError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::InUse(path) => write!(f, "{} is in use by another process", path.display()),
            OpenError::Failed(sentence) => f.write_str(sentence),
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Unavailable(cause) | StoreError::Failed(cause) => f.write_str(cause),
        }
    }
}

impl fmt::Display for CreateAccountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CreateAccountError::Email(sentence) | CreateAccountError::Password(sentence) => {
                f.write_str(sentence)
            }
            CreateAccountError::Exists => {
                f.write_str("there is an account with this e-mail address already")
            }
            CreateAccountError::Invite => {
                f.write_str("the invitation is mistyped, used or expired")
            }
            CreateAccountError::Store(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for SetPasswordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetPasswordError::Password(sentence) => f.write_str(sentence),
            SetPasswordError::NoAccount => f.write_str("there is no such account"),
            SetPasswordError::Store(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for SignInError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SignInError::Wrong => f.write_str("the e-mail address or the password is wrong"),
            SignInError::TooMany { retry_after } => {
                write!(f, "too many attempts: try again in {retry_after} seconds")
            }
            SignInError::Store(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for OwnerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OwnerError::SignedOut => f.write_str("the session has ended"),
            OwnerError::Wrong => f.write_str("the present password is wrong"),
            OwnerError::TooMany { retry_after } => {
                write!(f, "too many attempts: try again in {retry_after} seconds")
            }
            OwnerError::NewPassword(sentence) => f.write_str(sentence),
            OwnerError::Store(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenError::Invalid => f.write_str("the token is not valid"),
            TokenError::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}
impl std::error::Error for StoreError {}
impl std::error::Error for CreateAccountError {}
impl std::error::Error for SetPasswordError {}
impl std::error::Error for SignInError {}
impl std::error::Error for OwnerError {}
impl std::error::Error for TokenError {}

impl From<AuthError> for StoreError {
    fn from(error: AuthError) -> Self {
        StoreError::Failed(error.to_string())
    }
}

impl From<StoreError> for OpenError {
    fn from(error: StoreError) -> Self {
        OpenError::Failed(error.to_string())
    }
}

impl From<StoreError> for CreateAccountError {
    fn from(error: StoreError) -> Self {
        CreateAccountError::Store(error)
    }
}

impl From<StoreError> for SetPasswordError {
    fn from(error: StoreError) -> Self {
        SetPasswordError::Store(error)
    }
}

impl From<StoreError> for SignInError {
    fn from(error: StoreError) -> Self {
        SignInError::Store(error)
    }
}

impl From<StoreError> for OwnerError {
    fn from(error: StoreError) -> Self {
        OwnerError::Store(error)
    }
}

impl From<StoreError> for TokenError {
    fn from(error: StoreError) -> Self {
        TokenError::Store(error)
    }
}
