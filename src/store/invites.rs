//! Table `invites`, and the codes.
//!
//! ```text
//! invites  key    0  32  SHA-256 of the code
//!          value  0   8  end, u64, milliseconds since the epoch, least significant byte first
//! ```
//!
//! A code is 256 random bits as 43 base-62 digits. Only its hash is stored: the database gives no way to an account.
//! The code goes when its account is made, in the same commit.

use redb::{ReadTransaction, ReadableTable, Table, TableDefinition, WriteTransaction};

/// Hash of the code, end.
pub const INVITES: TableDefinition<&[u8; 32], u64> = TableDefinition::new("invites");

/// How long an invitation is good, in milliseconds: 14 days, so that one forgotten in a mailbox opens nothing.
const LIFETIME: u64 = 14 * 24 * 60 * 60 * 1000;

/// Whether there is such an invitation, neither used nor expired.
///
/// # Errors
/// Those of redb.
pub fn is_good(read: &ReadTransaction, code: &[u8; 32], now: u64) -> Result<bool, redb::Error> {
    let invites = read.open_table(INVITES)?;
    Ok(invites.get(code)?.is_some_and(|end| end.value() > now))
}

/// The table, open to write.
pub struct Tables<'t> {
    invites: Table<'t, &'static [u8; 32], u64>,
}

impl<'t> Tables<'t> {
    /// Opens it, making it if missing.
    ///
    /// # Errors
    /// Those of redb.
    pub fn open(write: &'t WriteTransaction) -> Result<Tables<'t>, redb::Error> {
        Ok(Tables {
            invites: write.open_table(INVITES)?,
        })
    }

    /// Adds an invitation, and removes expired ones: an operator makes few, so all are read.
    ///
    /// # Errors
    /// Those of redb.
    pub fn add(&mut self, code: &[u8; 32], now: u64) -> Result<(), redb::Error> {
        self.invites.retain(|_, end| end > now)?;
        self.invites.insert(code, now.saturating_add(LIFETIME))?;
        Ok(())
    }

    /// Whether there is such an invitation, neither used nor expired.
    ///
    /// # Errors
    /// Those of redb.
    pub fn is_good(&self, code: &[u8; 32], now: u64) -> Result<bool, redb::Error> {
        Ok(self.invites.get(code)?.is_some_and(|end| end.value() > now))
    }

    /// Uses an invitation up.
    ///
    /// # Errors
    /// Those of redb.
    pub fn remove(&mut self, code: &[u8; 32]) -> Result<(), redb::Error> {
        self.invites.remove(code)?;
        Ok(())
    }
}
