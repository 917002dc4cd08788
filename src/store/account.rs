//! Accounts as the rest of the program sees them.

use std::time::SystemTime;

use crate::auth::AccountId;

/// An account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The number that identifies it for good.
    pub id: AccountId,
    /// The e-mail address, trimmed and in lower case.
    pub email: String,
    /// When the account was made, to the millisecond.
    pub created: SystemTime,
    /// Whether the account can sign in to the dashboard.
    pub has_password: bool,
}

/// An account together with what does not leave the store.
#[derive(Clone)]
pub struct AccountRecord {
    /// The account.
    pub account: Account,
    /// The password's PHC string, if the account has a password.
    pub password_hash: Option<String>,
}
