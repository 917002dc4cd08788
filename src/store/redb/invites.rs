//! Table `invites`.
//!
//! ```text
//! invites  key    0  32  SHA-256 of the code
//!          value  0   8  end, u64, milliseconds since the epoch, least significant byte first
//! ```
//!
//! An invitation is removed in the commit that makes its account.

use redb::{ReadTransaction, ReadableTable, Table, TableDefinition, WriteTransaction};

use crate::auth::CodeHash;

/// Ends of invitations by the hash of their code.
pub const INVITES: TableDefinition<&CodeHash, u64> = TableDefinition::new("invites");

/// When the invitation ends; `None` if it is used or unknown.
pub fn end(read: &ReadTransaction, code: &CodeHash) -> Result<Option<u64>, redb::Error> {
    let end = read.open_table(INVITES)?.get(code)?;
    Ok(end.map(|end| end.value()))
}

/// The table, open for writing.
pub struct InviteTable<'t> {
    invites: Table<'t, &'static CodeHash, u64>,
}

impl<'t> InviteTable<'t> {
    /// Opens the table, and makes it if it is missing.
    pub fn open(write: &'t WriteTransaction) -> Result<InviteTable<'t>, redb::Error> {
        Ok(InviteTable {
            invites: write.open_table(INVITES)?,
        })
    }

    /// Adds an invitation, and removes those that have ended. This reads all invitations; an
    /// operator makes few.
    pub fn add(&mut self, code: &CodeHash, end: u64, now: u64) -> Result<(), redb::Error> {
        self.invites.retain(|_, end| end > now)?;
        self.invites.insert(code, end)?;
        Ok(())
    }

    /// Writes an invitation, and removes none.
    pub fn load(&mut self, code: &CodeHash, end: u64) -> Result<(), redb::Error> {
        self.invites.insert(code, end)?;
        Ok(())
    }

    /// Whether there is such an invitation and it has not ended.
    pub fn is_good(&self, code: &CodeHash, now: u64) -> Result<bool, redb::Error> {
        Ok(self.invites.get(code)?.is_some_and(|end| end.value() > now))
    }

    /// Uses an invitation up.
    pub fn remove(&mut self, code: &CodeHash) -> Result<(), redb::Error> {
        self.invites.remove(code)?;
        Ok(())
    }
}
