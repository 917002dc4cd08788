//! Errors, one type for each kind of call, so that callers handle exactly the cases that can occur.

use std::path::PathBuf;

use thiserror::Error;

use super::token::{MAX_NAME, MAX_PRESET_BYTES, MAX_TOKENS};
use crate::auth::{AuthError, Wait};

/// The store could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Another process has this database open.
    #[error("{} is in use by another process", .0.display())]
    InUse(PathBuf),
    /// Anything else: a sentence for the operator.
    #[error("{0}")]
    Failed(String),
}

/// The store failed to read or write. The texts are for the log, not for users.
///
/// If it was a write, the change may have been stored or not, but never in part.
#[derive(Clone, Debug, Error)]
pub enum StoreError {
    /// The storage cannot be written at present, for instance because the disk is full. The store
    /// has logged it, and tries again by itself.
    #[error("{0}")]
    Unavailable(String),
    /// Anything else, for instance a damaged file.
    #[error("{0}")]
    Failed(String),
}

/// The result of a call that fails only if the store does.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// An account was not made.
#[derive(Debug, Error)]
pub enum CreateAccountError {
    /// The text is not an e-mail address: a sentence with the reason.
    #[error("{0}")]
    Email(String),
    /// The password is too short (under 8 characters) or too long (over 1024 bytes): a sentence.
    #[error("{0}")]
    Password(String),
    /// There is such an account already.
    #[error("there is an account with this e-mail address already")]
    Exists,
    /// The invitation is unknown, used or expired.
    #[error("the invitation is mistyped, used or expired")]
    Invite,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Somebody was not signed in.
#[derive(Debug, Error)]
pub enum SignInError {
    /// There is no such account, or the password is wrong. The two do not differ in text or in
    /// time.
    #[error("the e-mail address or the password is wrong")]
    Wrong,
    /// The code of the second factor came too late, or for another password: sign-in begins anew.
    #[error("the sign-in has ended")]
    Ended,
    /// The new password is invalid: a sentence with the reason.
    #[error("{0}")]
    NewPassword(String),
    /// There were too many attempts for this address.
    #[error(transparent)]
    TooMany(#[from] Wait),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A change of an account failed: by its owner, who is signed in and gives the present password, or
/// by the operator.
#[derive(Debug, Error)]
pub enum OwnerError {
    /// There is no such account. The owner gets [`OwnerError::SignedOut`] instead.
    #[error("there is no such account")]
    NoAccount,
    /// The session is unknown or has ended.
    #[error("the session has ended")]
    SignedOut,
    /// The present password is wrong, or the account has none.
    #[error("the present password is wrong")]
    Wrong,
    /// The code does not belong to the second factor.
    #[error("the code is wrong")]
    WrongCode,
    /// There were too many wrong passwords in this session.
    #[error(transparent)]
    TooMany(#[from] Wait),
    /// The new password is too short (under 8 characters) or too long (over 1024 bytes): a
    /// sentence.
    #[error("{0}")]
    NewPassword(String),
    /// The new e-mail address is invalid: a sentence with the reason.
    #[error("{0}")]
    NewEmail(String),
    /// Another account has the new e-mail address.
    #[error("there is an account with this e-mail address already")]
    EmailTaken,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A conversion was not recorded.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The month has as many conversions as it may have.
    #[error("the month has no conversion left")]
    QuotaExceeded {
        /// Whether it is the token's quota, and not the account's.
        of_token: bool,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A token was not accepted.
#[derive(Debug, Error)]
pub enum TokenError {
    /// The token is malformed, mistyped or forged, was replaced or deleted, or belongs to a deleted
    /// account.
    #[error("the token is not valid")]
    Invalid,
    /// The token's end, which its owner has set, is over.
    #[error("the token has ended")]
    Ended,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A token was not made, changed or deleted.
#[derive(Debug, Error)]
pub enum ChangeTokenError {
    /// The name is empty, too long, or has control characters.
    #[error(
        "the name of a token has 1 to {} characters, none of them a control character",
        MAX_NAME
    )]
    Name,
    /// Another token of the account has the name.
    #[error("another token has this name")]
    NameTaken,
    /// The account has as many tokens as are allowed.
    #[error("an account has at most {} tokens; delete one first", MAX_TOKENS)]
    TooMany,
    /// The token `default` keeps its name, has no end, and is not deleted.
    #[error("the token \"default\" keeps its name, has no end, and cannot be deleted")]
    Default,
    /// The preset has this many bytes, which is more than are allowed.
    #[error("the preset has {0} bytes; allowed are {most}", most = MAX_PRESET_BYTES)]
    PresetTooLong(usize),
    /// There is no such token or no such account.
    #[error("there is no such token")]
    NoToken,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

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
