//! The number of an account.

use serde::{Deserialize, Serialize};

/// Identifies an account for good: the number is not used again after the account is deleted.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize,
)]
pub struct AccountId(pub u64);
