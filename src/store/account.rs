//! Accounts as the rest of the program sees them.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::auth::AccountId;

/// An account.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Account {
    /// The number that identifies it for good.
    pub id: AccountId,
    /// The e-mail address, trimmed and in lower case.
    pub email: String,
    /// When the account was made, to the millisecond.
    pub created: SystemTime,
    /// Whether the account can sign in to the dashboard.
    pub has_password: bool,
    /// Whether signing in needs a code beside the password.
    pub has_second_factor: bool,
}
