//! From format 3 to 4: each 1024 entries of a history have a row that tells what is in them, and
//! there are tables of failed conversions and of what was removed from histories.

use redb::{ReadableTable, WriteTransaction};

use crate::auth::AccountId;
use crate::store::redb::blocks::BlockTable;
use crate::store::redb::tables::Tables;
use crate::store::redb::usage::{self, HISTORY};

/// Makes the tables, and reads all histories once. The rows that are written are few: one for 1024
/// entries.
pub fn begin(write: &WriteTransaction) -> Result<(), redb::Error> {
    drop(Tables::open(write)?);
    let history = write.open_table(HISTORY)?;
    let mut blocks = BlockTable::open(write)?;
    for row in history.iter()? {
        let (key, value) = row?;
        let (account, sequence) = key.value();
        blocks.add(AccountId(account), sequence, &usage::entry(value.value())?)?;
    }
    Ok(())
}

/// Undoes [`begin`], for tests.
#[cfg(test)]
pub fn set_back(write: &WriteTransaction) -> Result<(), redb::Error> {
    use crate::store::redb::{blocks, failures};
    write.delete_table(blocks::HISTORY_BLOCKS)?;
    write.delete_table(usage::HISTORY_REMOVED)?;
    write.delete_table(failures::FAILURES)?;
    Ok(())
}
