//! From format 2 to 3: accounts may have many tokens.
//!
//! Format 2 had one token for each account, whose serial number was the generation in `accounts`,
//! and its table `usage` had no token in its rows. Format 3 has a row in `tokens` for each account,
//! the entries of `usage` in `history`, and sums by token and by day.

use redb::{ReadableTable, ReadableTableMetadata, TableDefinition, WriteTransaction};

use crate::auth::AccountId;
use crate::store::clock;
use crate::store::redb::accounts::ACCOUNTS;
use crate::store::redb::tokens::TokenTables;
use crate::store::redb::usage::{self, UsageTables};
use crate::store::token::ApiToken;

/// The entries that are moved in one commit: some 3 MB of rows. Tests move few, so that there are
/// several commits.
const BATCH: usize = if cfg!(test) { 2 } else { 20_000 };

/// Conversions of format 2 by account and sequence number: time, bytes in, bytes out, width,
/// height, milliseconds, quality, watermark, format.
const USAGE: TableDefinition<(u64, u64), OldValue> = TableDefinition::new("usage");
type OldValue = (u64, u64, u64, u32, u32, u32, u8, u8, &'static str);

/// Makes the first token of each account, and the tables that format 3 has beside those of format
/// 2.
pub fn begin(write: &WriteTransaction) -> Result<(), redb::Error> {
    UsageTables::open(write)?;
    let accounts = write.open_table(ACCOUNTS)?;
    let mut tokens = TokenTables::open(write)?;
    for row in accounts.iter()? {
        let (id, value) = row?;
        let (created, generation, ..) = value.value();
        let token = ApiToken::default_token(created, generation);
        tokens.put(AccountId(id.value()), &token)?;
    }
    Ok(())
}

/// Moves some entries. Returns the number of those that are left; once there are none, the table
/// they were in is gone.
pub fn move_rows(write: &WriteTransaction) -> Result<u64, redb::Error> {
    let mut old = write.open_table(USAGE)?;
    let mut keys = Vec::new();
    let mut tables = UsageTables::open(write)?;
    for row in old.iter()?.take(BATCH) {
        let (key, value) = row?;
        let (time, input, output, width, height, milliseconds, quality, watermark, format) =
            value.value();
        let value = (
            time,
            input,
            output,
            width,
            height,
            milliseconds,
            0,
            quality,
            watermark,
            format,
        );
        let (account, sequence) = key.value();
        let entry = usage::entry(value)?;
        tables.insert(AccountId(account), sequence, &entry)?;
        let (month, _) = clock::month(time);
        tables.count_for_token(AccountId(account), &entry, month)?;
        keys.push((account, sequence));
    }
    for key in &keys {
        old.remove(key)?;
    }
    let left = old.len()?;
    drop(old);
    if left == 0 {
        write.delete_table(USAGE)?;
    }
    Ok(left)
}

/// Undoes both functions, for tests.
#[cfg(test)]
pub fn set_back(write: &WriteTransaction) -> Result<(), redb::Error> {
    use crate::store::redb::tokens::{RESTRICTIONS, TOKENS};
    let history = write.open_table(usage::HISTORY)?;
    let mut old = write.open_table(USAGE)?;
    for row in history.iter()? {
        let (key, value) = row?;
        let (time, input, output, width, height, took, _, quality, watermark, format) =
            value.value();
        let value = (
            time, input, output, width, height, took, quality, watermark, format,
        );
        old.insert(key.value(), value)?;
    }
    drop((history, old));
    write.delete_table(usage::HISTORY)?;
    write.delete_table(usage::USAGE_DAYS)?;
    write.delete_table(usage::USAGE_TOKENS)?;
    write.delete_table(TOKENS)?;
    write.delete_table(RESTRICTIONS)?;
    Ok(())
}
