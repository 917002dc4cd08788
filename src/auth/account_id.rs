//! The number of an account.

/// Identifies an account for good: the number is not used again after the account is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountId(pub u64);
