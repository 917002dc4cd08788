//! The number of a token.

use serde::{Deserialize, Serialize};

/// Identifies a token within its account for good, whatever its name and its text become.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
pub struct TokenNumber(pub u32);

impl TokenNumber {
    /// The token that every account has.
    pub const DEFAULT: TokenNumber = TokenNumber(0);

    /// The name of [`TokenNumber::DEFAULT`], which does not change.
    pub const DEFAULT_NAME: &str = "default";
}
