//! Table `meta`: numbers about the whole database. The key is a name, the value a `u64`, least
//! significant byte first.
//!
//! | key | value |
//! |---|---|
//! | `format` | [`FORMAT`] |
//! | `last_account` | the last account number given; absent before the first |
//! | `secret` | [`crate::auth::Secret::mark`] of the secret last used; absent before the first |

use redb::{ReadTransaction, TableDefinition, TableError, WriteTransaction};

use super::result::Result;

/// The table.
pub const META: TableDefinition<&str, u64> = TableDefinition::new("meta");

/// The number of the layout that all tables have, as their modules draw them. This towebp reads and
/// writes no other.
pub const FORMAT: u64 = 2;

/// The number of the layout that the database has; `None` if there is no such number.
pub fn format(read: &ReadTransaction) -> Result<Option<u64>> {
    match read.open_table(META) {
        Ok(meta) => Ok(meta.get("format")?.map(|value| value.value())),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Writes the number of the layout.
pub fn set_format(write: &WriteTransaction, format: u64) -> Result<()> {
    write.open_table(META)?.insert("format", format)?;
    Ok(())
}

/// The mark of the secret last used.
pub fn secret_mark(read: &ReadTransaction) -> Result<Option<u64>> {
    let mark = read.open_table(META)?.get("secret")?;
    Ok(mark.map(|mark| mark.value()))
}

/// Writes the mark of the secret in use.
pub fn set_secret_mark(write: &WriteTransaction, mark: u64) -> Result<()> {
    write.open_table(META)?.insert("secret", mark)?;
    Ok(())
}
