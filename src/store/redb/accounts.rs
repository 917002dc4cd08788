//! Tables `accounts` and `emails`.
//!
//! ```text
//! accounts   key    0  8  account, u64
//!            value  0  1  length n of the e-mail, 1 to 253; for 254: the bytes 254, 254, 0, and
//!                         everything that follows lies two bytes further on
//!                   1  8  created, u64, milliseconds since the epoch
//!                   9  4  last serial number of a token, u32
//!                  13  n  e-mail, UTF-8
//!                13+n  1  1 if there is a password, else 0 and the end
//!                14+n  .  the password's hash as a PHC string, to the end
//!
//! emails     key    0  n  e-mail, UTF-8
//!            value  0  8  account, u64
//! ```
//!
//! Numbers have their least significant byte first. The value of `accounts` is redb's tuple
//! `(u64, u32, &str, Option<&str>)`.
//!
//! An account's number is the millisecond of its creation, or the last number given plus one,
//! whichever is greater. So it is never given again: not after the account's deletion, and not when
//! an old copy of the database is put back and grows other accounts than before, which the tokens
//! of the first ones must not open.

use redb::{ReadTransaction, ReadableTable, Table, TableDefinition, WriteTransaction};

use super::meta::META;
use crate::auth::{AccountId, Email};
use crate::store::account::{Account, AccountRecord};
use crate::store::clock;
use crate::store::engine::Outcome;
use crate::store::rows::AccountRow;
use crate::store::token::next_serial;

/// Accounts by their number.
pub const ACCOUNTS: TableDefinition<u64, Value> = TableDefinition::new("accounts");
/// Account numbers by e-mail address.
pub const EMAILS: TableDefinition<&str, u64> = TableDefinition::new("emails");

/// Created, last serial number of a token, e-mail address, password hash.
pub type Value = (u64, u32, &'static str, Option<&'static str>);
type ValueRef<'a> = (u64, u32, &'a str, Option<&'a str>);

/// All accounts, oldest first.
pub fn all(read: &ReadTransaction) -> Result<Vec<Account>, redb::Error> {
    let accounts = read.open_table(ACCOUNTS)?;
    let mut all = Vec::new();
    for row in accounts.iter()? {
        let (id, value) = row?;
        all.push(record(AccountId(id.value()), value.value()).account);
    }
    Ok(all)
}

/// The numbers of the youngest accounts, at most `limit` of them, youngest first.
pub fn youngest(read: &ReadTransaction, limit: usize) -> Result<Vec<AccountId>, redb::Error> {
    let accounts = read.open_table(ACCOUNTS)?;
    let mut youngest = Vec::new();
    for row in accounts.iter()?.rev().take(limit) {
        youngest.push(AccountId(row?.0.value()));
    }
    Ok(youngest)
}

/// Whether there is such an account.
pub fn exists(read: &ReadTransaction, id: AccountId) -> Result<bool, redb::Error> {
    Ok(read.open_table(ACCOUNTS)?.get(id.0)?.is_some())
}

/// The account with this number.
pub fn by_id(read: &ReadTransaction, id: AccountId) -> Result<Option<AccountRecord>, redb::Error> {
    let value = read.open_table(ACCOUNTS)?.get(id.0)?;
    Ok(value.map(|value| record(id, value.value())))
}

/// The account with this e-mail address.
pub fn by_email(
    read: &ReadTransaction,
    email: &Email,
) -> Result<Option<AccountRecord>, redb::Error> {
    match read.open_table(EMAILS)?.get(email.as_str())? {
        Some(id) => by_id(read, AccountId(id.value())),
        None => Ok(None),
    }
}

/// Both tables and `meta`, open for writing.
pub struct AccountTables<'t> {
    accounts: Table<'t, u64, Value>,
    emails: Table<'t, &'static str, u64>,
    meta: Table<'t, &'static str, u64>,
}

impl<'t> AccountTables<'t> {
    /// Opens the tables, and makes them if they are missing.
    pub fn open(write: &'t WriteTransaction) -> Result<AccountTables<'t>, redb::Error> {
        Ok(AccountTables {
            accounts: write.open_table(ACCOUNTS)?,
            emails: write.open_table(EMAILS)?,
            meta: write.open_table(META)?,
        })
    }

    /// Whether there is such an account.
    pub fn contains(&self, id: AccountId) -> Result<bool, redb::Error> {
        Ok(self.accounts.get(id.0)?.is_some())
    }

    /// The accounts from this number on, oldest first, at most `limit`.
    pub fn from(&self, first: AccountId, limit: usize) -> Result<Vec<AccountId>, redb::Error> {
        let rows = self.accounts.range(first.0..)?.take(limit);
        rows.map(|row| Ok(AccountId(row?.0.value()))).collect()
    }

    /// Makes an account; `None` if the e-mail address is taken.
    pub fn create(
        &mut self,
        email: &Email,
        password_hash: Option<&str>,
        created: u64,
    ) -> Result<Option<Account>, redb::Error> {
        if self.emails.get(email.as_str())?.is_some() {
            return Ok(None);
        }
        let last = self
            .meta
            .get("last_account")?
            .map_or(0, |last| last.value());
        let id = created.max(last + 1);
        let value: ValueRef = (created, 0, email.as_str(), password_hash);
        self.meta.insert("last_account", id)?;
        self.emails.insert(email.as_str(), id)?;
        self.accounts.insert(id, value)?;
        Ok(Some(record(AccountId(id), value).account))
    }

    /// Writes an account of another store. Returns false, and changes nothing, if its number or its
    /// e-mail address is taken.
    pub fn load(&mut self, account: &AccountRow) -> Result<bool, redb::Error> {
        let AccountRow {
            id,
            email,
            created,
            last_serial,
            password,
        } = account;
        if self.contains(*id)? || self.emails.get(&**email)?.is_some() {
            return Ok(false);
        }
        let value: ValueRef = (*created, *last_serial, email, password.as_deref());
        self.emails.insert(&**email, id.0)?;
        self.accounts.insert(id.0, value)?;
        Ok(true)
    }

    /// Writes the last account number given.
    pub fn load_last(&mut self, last: u64) -> Result<(), redb::Error> {
        self.meta.insert("last_account", last)?;
        Ok(())
    }

    /// Gives the next serial number of a token; `None` if there is no such account.
    pub fn next_serial(&mut self, id: AccountId, now: u64) -> Result<Option<u32>, redb::Error> {
        let Some(stored) = self.stored(id)? else {
            return Ok(None);
        };
        let serial = next_serial(stored.last_serial, now);
        self.put(
            id,
            &StoredAccount {
                last_serial: serial,
                ..stored
            },
        )?;
        Ok(Some(serial))
    }

    /// Replaces the password's hash; `None` if there is no such account. If `verified` is given and
    /// is not the hash that is stored, nothing is changed either: the password that was verified
    /// has been replaced meanwhile.
    pub fn set_password(
        &mut self,
        id: AccountId,
        password_hash: &str,
        verified: Option<&str>,
    ) -> Result<Option<Account>, redb::Error> {
        let Some(stored) = self.stored(id)? else {
            return Ok(None);
        };
        let before = stored.record.password_hash.as_deref();
        if verified.is_some() && verified != before {
            return Ok(None);
        }
        let mut stored = stored;
        stored.record.password_hash = Some(password_hash.to_owned());
        stored.record.account.has_password = true;
        self.put(id, &stored)?;
        Ok(Some(stored.record.account))
    }

    /// Replaces the e-mail address. If `verified` is given and is not the hash that is stored,
    /// nothing is changed.
    pub fn set_email(
        &mut self,
        id: AccountId,
        email: &Email,
        verified: Option<&str>,
    ) -> Result<Outcome, redb::Error> {
        let Some(mut stored) = self.stored(id)? else {
            return Ok(Outcome::Unchanged);
        };
        if verified.is_some() && verified != stored.record.password_hash.as_deref() {
            return Ok(Outcome::Unchanged);
        }
        if let Some(owner) = self.emails.get(email.as_str())?
            && owner.value() != id.0
        {
            return Ok(Outcome::EmailTaken);
        }
        self.emails.remove(stored.record.account.email.as_str())?;
        self.emails.insert(email.as_str(), id.0)?;
        email.as_str().clone_into(&mut stored.record.account.email);
        self.put(id, &stored)?;
        Ok(Outcome::Account(stored.record.account))
    }

    /// Deletes an account; false if there is none.
    pub fn delete(&mut self, id: AccountId) -> Result<bool, redb::Error> {
        let Some(stored) = self.stored(id)? else {
            return Ok(false);
        };
        self.accounts.remove(id.0)?;
        self.emails.remove(stored.record.account.email.as_str())?;
        Ok(true)
    }

    fn stored(&self, id: AccountId) -> Result<Option<StoredAccount>, redb::Error> {
        let value = self.accounts.get(id.0)?;
        Ok(value.map(|value| StoredAccount {
            last_serial: value.value().1,
            record: record(id, value.value()),
        }))
    }

    fn put(&mut self, id: AccountId, stored: &StoredAccount) -> Result<(), redb::Error> {
        let StoredAccount {
            last_serial,
            record,
        } = stored;
        let value: ValueRef = (
            clock::to_milliseconds(record.account.created),
            *last_serial,
            &record.account.email,
            record.password_hash.as_deref(),
        );
        self.accounts.insert(id.0, value)?;
        Ok(())
    }
}

/// A row.
struct StoredAccount {
    last_serial: u32,
    record: AccountRecord,
}

fn record(id: AccountId, (created, _, email, password_hash): ValueRef) -> AccountRecord {
    AccountRecord {
        account: Account {
            id,
            email: email.to_owned(),
            created: clock::from_milliseconds(created),
            has_password: password_hash.is_some(),
        },
        password_hash: password_hash.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_has_the_layout_that_is_drawn() {
        let drawn = [
            &[1][..],                  // length of the e-mail
            &[2, 0, 0, 0, 0, 0, 0, 0], // created
            &[3, 0, 0, 0],             // last serial number
            b"e",                      // e-mail
            &[1],                      // there is a password
            b"$p",                     // its hash
        ];
        assert_eq!(bytes((2, 3, "e", Some("$p"))), drawn.concat());
        assert_eq!(
            bytes((2, 3, "e", None)),
            [&drawn[..4].concat()[..], &[0]].concat()
        );
        let longest = "e".repeat(254);
        assert_eq!(bytes((2, 3, &longest, None))[..4], [254, 254, 0, 2]);
        assert_eq!(bytes((2, 3, &longest[1..], None))[..2], [253, 2]);
    }

    fn bytes(value: ValueRef) -> Vec<u8> {
        <Value as redb::Value>::as_bytes(&value)
    }
}
