//! Errors, one type for each kind of call, so that callers handle exactly the cases that can occur.

use std::fmt;
use std::path::PathBuf;

use super::token::{MAX_NAME, MAX_PRESET_BYTES, MAX_TOKENS};
use crate::auth::AuthError;

/// The store could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// Another process has this database open.
    InUse(PathBuf),
    /// Anything else: a sentence for the operator.
    Failed(String),
}

/// The store failed to read or write. The texts are for the log, not for users.
///
/// If it was a write, the change may have been stored or not, but never in part.
#[derive(Clone, Debug)]
pub enum StoreError {
    /// The storage cannot be written at present, for instance because the disk is full. The store
    /// has logged it, and tries again by itself.
    Unavailable(String),
    /// Anything else, for instance a damaged file.
    Failed(String),
}

/// An account was not made.
#[derive(Debug)]
pub enum CreateAccountError {
    /// The text is not an e-mail address: a sentence that says why.
    Email(String),
    /// The password is too short (under 8 characters) or too long (over 1024 bytes): a sentence.
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
    /// The password is too short (under 8 characters) or too long (over 1024 bytes): a sentence.
    Password(String),
    /// There is no such account.
    NoAccount,
    /// The store failed.
    Store(StoreError),
}

/// An e-mail address was not set.
#[derive(Debug)]
pub enum SetEmailError {
    /// The text is not an e-mail address: a sentence that says why.
    Email(String),
    /// Another account has the address.
    Taken,
    /// There is no such account.
    NoAccount,
    /// The store failed.
    Store(StoreError),
}

/// Somebody was not signed in.
#[derive(Debug)]
pub enum SignInError {
    /// There is no such account, or the password is wrong. The two do not differ in text or in
    /// time.
    Wrong,
    /// There were too many attempts for this address.
    TooMany {
        /// In how many seconds the next attempt is allowed; at least 1.
        retry_after: u64,
    },
    /// The store failed.
    Store(StoreError),
}

/// An account's owner, who is signed in, asked for a change that needs the present password, and it
/// was not made.
#[derive(Debug)]
pub enum OwnerError {
    /// The session is unknown or has ended.
    SignedOut,
    /// The present password is wrong, or the account has none.
    Wrong,
    /// There were too many wrong passwords in this session.
    TooMany {
        /// In how many seconds the next attempt is allowed; at least 1.
        retry_after: u64,
    },
    /// The new password is too short (under 8 characters) or too long (over 1024 bytes): a
    /// sentence.
    NewPassword(String),
    /// The new e-mail address is none: a sentence that says why.
    NewEmail(String),
    /// Another account has the new e-mail address.
    EmailTaken,
    /// The store failed.
    Store(StoreError),
}

/// A conversion was not recorded.
#[derive(Debug)]
pub enum RecordError {
    /// The month has as many conversions as it may have.
    QuotaExceeded {
        /// Whether it is the token's quota, and not the account's.
        of_token: bool,
    },
    /// The store failed.
    Store(StoreError),
}

/// A token was not accepted.
#[derive(Debug)]
pub enum TokenError {
    /// The token is malformed, mistyped or forged, was replaced or deleted, or belongs to a deleted
    /// account.
    Invalid,
    /// The token's end, which its owner has set, is over.
    Ended,
    /// The store failed.
    Store(StoreError),
}

/// A token was not made, changed or deleted.
#[derive(Debug)]
pub enum ChangeTokenError {
    /// The name is empty, too long, or has control characters.
    Name,
    /// Another token of the account has the name.
    NameTaken,
    /// The account has as many tokens as are allowed.
    TooMany,
    /// The token `default` keeps its name, has no end, and is not deleted.
    Default,
    /// The preset has this many bytes, which is more than are allowed.
    PresetTooLong(usize),
    /// There is no such token or no such account.
    NoToken,
    /// The store failed.
    Store(StoreError),
}

const TAKEN: &str = "there is an account with this e-mail address already";

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
            CreateAccountError::Exists => f.write_str(TAKEN),
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

impl fmt::Display for SetEmailError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetEmailError::Email(sentence) => f.write_str(sentence),
            SetEmailError::Taken => f.write_str(TAKEN),
            SetEmailError::NoAccount => f.write_str("there is no such account"),
            SetEmailError::Store(error) => error.fmt(f),
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
            OwnerError::NewPassword(sentence) | OwnerError::NewEmail(sentence) => {
                f.write_str(sentence)
            }
            OwnerError::EmailTaken => f.write_str(TAKEN),
            OwnerError::Store(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::QuotaExceeded { .. } => f.write_str("the month has no conversion left"),
            RecordError::Store(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenError::Invalid => f.write_str("the token is not valid"),
            TokenError::Ended => f.write_str("the token has ended"),
            TokenError::Store(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for ChangeTokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeTokenError::Name => write!(
                f,
                "the name of a token has 1 to {MAX_NAME} characters, none of them a control character"
            ),
            ChangeTokenError::NameTaken => f.write_str("another token has this name"),
            ChangeTokenError::TooMany => {
                write!(
                    f,
                    "an account has at most {MAX_TOKENS} tokens; delete one first"
                )
            }
            ChangeTokenError::Default => f.write_str(
                "the token \"default\" keeps its name, has no end, and cannot be deleted",
            ),
            ChangeTokenError::PresetTooLong(bytes) => write!(
                f,
                "the preset has {bytes} bytes; allowed are {MAX_PRESET_BYTES}"
            ),
            ChangeTokenError::NoToken => f.write_str("there is no such token"),
            ChangeTokenError::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ChangeTokenError {}
impl std::error::Error for OpenError {}
impl std::error::Error for StoreError {}
impl std::error::Error for CreateAccountError {}
impl std::error::Error for SetPasswordError {}
impl std::error::Error for SetEmailError {}
impl std::error::Error for SignInError {}
impl std::error::Error for OwnerError {}
impl std::error::Error for RecordError {}
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

/// Lets `?` turn what fails below a call into the case `Store` of the call's own error.
macro_rules! wrap_store_errors {
    ($($error:ident)*) => {
        $(
            impl From<StoreError> for $error {
                fn from(error: StoreError) -> Self {
                    $error::Store(error)
                }
            }

            impl From<AuthError> for $error {
                fn from(error: AuthError) -> Self {
                    $error::Store(error.into())
                }
            }
        )*
    };
}

wrap_store_errors! { ChangeTokenError CreateAccountError SetEmailError SetPasswordError SignInError OwnerError RecordError TokenError }
