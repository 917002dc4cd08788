//! Table `invites`.
//!
//! ```text
//! invites  key    0  32  SHA-256 of the code
//!          value  0   8  end, u64, milliseconds since the epoch, least significant byte first
//! ```
//!
//! An invitation is removed in the commit that makes its account.

use redb::{ReadableTable, TableDefinition};

use super::result::Result;
use crate::auth::CodeHash;

/// Ends of invitations by the hash of their code.
pub const INVITES: TableDefinition<&CodeHash, u64> = TableDefinition::new("invites");

/// When the invitation ends; `None` if it is used or unknown.
pub fn end(
    invites: &impl ReadableTable<&'static CodeHash, u64>,
    code: &CodeHash,
) -> Result<Option<u64>> {
    Ok(invites.get(code)?.map(|end| end.value()))
}
