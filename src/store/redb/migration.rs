//! Brings a database of the format before forward.
//!
//! Format 2 had one token for each account, whose serial number was the generation in `accounts`,
//! and its table `usage` had no token in its rows. Format 3 has a row in `tokens` for each account,
//! the entries of `usage` in `history`, and sums by token and by day.
//!
//! Entries are moved in commits of [`BATCH`], so that memory stays flat however long the histories
//! are. The first commit sets the new format, which no older towebp opens, together with a mark
//! that entries are being moved; the last one removes the mark. A process that was killed between
//! them goes on where it was.

use redb::{ReadableTable, ReadableTableMetadata, TableDefinition, WriteTransaction};

use super::accounts::ACCOUNTS;
use super::database::Database;
use super::meta::{self, FORMAT, FORMAT_BEFORE};
use super::tokens::TokenTables;
use super::usage::{self, UsageTables};
use crate::auth::AccountId;
use crate::store::clock;
use crate::store::error::StoreError;
use crate::store::token::ApiToken;

/// The entries that are moved in one commit: some 3 MB of rows.
const BATCH: usize = 20_000;

/// Conversions of format 2 by account and sequence number: time, bytes in, bytes out, width,
/// height, milliseconds, quality, watermark, format.
const USAGE: TableDefinition<(u64, u64), OldValue> = TableDefinition::new("usage");
type OldValue = (u64, u64, u64, u32, u32, u32, u8, u8, &'static str);

/// Brings a database of the format before forward, or goes on with that; leaves others alone.
///
/// # Errors
/// The file cannot be read or written; what was moved is moved.
pub fn run(database: &Database) -> Result<(), StoreError> {
    if database.read(meta::format)? == Some(FORMAT_BEFORE) {
        begin(database)?;
    }
    let is_present = database.read(meta::format)? == Some(FORMAT);
    if is_present && database.read(meta::is_migrating)? {
        finish(database)?;
    }
    Ok(())
}

/// All that is short.
fn begin(database: &Database) -> Result<(), StoreError> {
    log::info!("the database has format {FORMAT_BEFORE}, and is brought to format {FORMAT}");
    database.write(|write| {
        super::tables::create(write)?;
        let accounts = write.open_table(ACCOUNTS)?;
        let mut tokens = TokenTables::open(write)?;
        for row in accounts.iter()? {
            let (id, value) = row?;
            let (created, generation, ..) = value.value();
            let token = ApiToken::default_token(created, generation);
            tokens.put(AccountId(id.value()), &token)?;
        }
        meta::set_migrating(write, true)
    })
}

/// Moves the entries that are still to be moved.
fn finish(database: &Database) -> Result<(), StoreError> {
    let mut moved = 0;
    loop {
        let (count, left) = database.write(move_batch)?;
        if count == 0 {
            break;
        }
        moved += count;
        log::info!("{moved} entries of histories are moved, {left} are left");
    }
    database.write(|write| {
        write.delete_table(USAGE)?;
        meta::set_migrating(write, false)
    })?;
    log::info!("the database has format {FORMAT} now");
    Ok(())
}

/// Moves some entries. Returns their number, and the number of those that are left.
fn move_batch(write: &WriteTransaction) -> Result<(usize, u64), redb::Error> {
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
    Ok((keys.len(), old.len()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::redb::meta::META;
    use crate::store::redb::usage::HISTORY;
    use crate::store::redb::{RedbEngine, check_file, database_path};
    use crate::store::tests::{Folder, entry};
    use crate::store::{Store, StoreError};

    /// Makes a database of format 2 out of one of this format.
    fn set_back(database: &Database) -> Result<(), StoreError> {
        database.write(|write| {
            let history = write.open_table(HISTORY)?;
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
            write.delete_table(HISTORY)?;
            write.delete_table(usage::USAGE_DAYS)?;
            write.delete_table(usage::USAGE_TOKENS)?;
            write.delete_table(crate::store::redb::tokens::TOKENS)?;
            write.delete_table(crate::store::redb::tokens::RESTRICTIONS)?;
            write.open_table(META)?.insert("format", FORMAT_BEFORE)?;
            Ok(())
        })
    }

    /// A data folder of format 2 with two accounts, and the token of the first, which was replaced
    /// once.
    fn old_folder(entries: u64) -> (Folder, String) {
        let folder = Folder::new();
        let store = folder.store();
        let owner = store.create_account("owner@example.org", None).unwrap().id;
        store.create_account("other@example.org", None).unwrap();
        for i in 0..entries {
            store.record_usage(owner, &entry(i)).unwrap();
        }
        let path = database_path(&folder.settings().data);
        drop(store);
        let database = Database::open(&path).unwrap();
        let generation = 3;
        database
            .write(|write| {
                let mut accounts = write.open_table(ACCOUNTS)?;
                let (created, email) = {
                    let row = accounts.get(owner.0)?.expect("it was made");
                    (row.value().0, row.value().2.to_owned())
                };
                accounts.insert(owner.0, (created, generation, &*email, None))?;
                Ok(())
            })
            .unwrap();
        set_back(&database).unwrap();
        drop(database);
        let secret = crate::store::secret_file::open(&folder.settings().data.join("secret"), true);
        let token = crate::auth::Token {
            account: owner,
            serial: generation,
        };
        (folder, token.text(&secret.unwrap()))
    }

    /// The database is sound, its owner's token is good, and it has so many entries.
    fn assert_brought_forward(folder: &Folder, token: &str, entries: u64) {
        let path = database_path(&folder.settings().data);
        let findings = check_file(&path).unwrap();
        assert_eq!((findings.accounts, findings.entries), (2, entries));
        assert_eq!(findings.problems, [""; 0]);
        let store = Store::open(&folder.settings()).unwrap();
        let caller = store.authenticate(token).unwrap();
        let page = store.usage(caller.account, None, 10_000).unwrap();
        assert_eq!(page.entries.len() as u64, entries);
        for (sequence, found) in page.entries {
            assert_eq!(found, entry(sequence - 1));
        }
        let [token] = &store.tokens(caller.account).unwrap()[..] else {
            panic!("one token");
        };
        assert_eq!(token.totals, store.usage_totals(caller.account).unwrap());
    }

    #[test]
    fn a_database_of_format_2_is_brought_forward_and_keeps_everything() {
        let (folder, token) = old_folder(30);
        let path = database_path(&folder.settings().data);
        let rejection = check_file(&path).err().unwrap().to_string();
        assert!(rejection.contains("towebp serve"), "{rejection}");
        drop(Store::open(&folder.settings()).unwrap());
        assert_brought_forward(&folder, &token, 30);
    }

    #[test]
    fn a_migration_that_was_killed_goes_on() {
        let (folder, token) = old_folder(3);
        let path = database_path(&folder.settings().data);
        let database = Database::open_unchecked(&path).unwrap();
        begin(&database).unwrap();
        drop(database);
        let rejection = check_file(&path).err().unwrap().to_string();
        assert!(rejection.contains("towebp serve"), "{rejection}");
        drop(RedbEngine::open(&path).unwrap());
        assert_brought_forward(&folder, &token, 3);
    }
}
