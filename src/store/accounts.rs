//! Tables `accounts` and `emails`.
//!
//! ```text
//! accounts   key    0  8  account, u64
//!            value  0  1  length n of the e-mail, 1 to 253; for 254: the bytes 254, 254, 0, and all that follows
//!                         lies two bytes further on
//!                   1  8  created, u64, milliseconds since the epoch
//!                   9  4  rotations of the token, u32
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
//! An account's number is the millisecond of its creation, or one more than the last number given, whichever is
//! greater. So it is never given again: not after the account's deletion, and not when an old copy of the database
//! is put back and grows other accounts than before, which the tokens of the first ones must not open.

use std::time::SystemTime;

use redb::{ReadTransaction, ReadableTable, Table, TableDefinition, WriteTransaction};

use super::clock;
use super::database::META;
use crate::auth::{AccountId, Email};

/// Accounts by their number.
pub const ACCOUNTS: TableDefinition<u64, Value> = TableDefinition::new("accounts");
/// Account numbers by e-mail.
pub const EMAILS: TableDefinition<&str, u64> = TableDefinition::new("emails");

/// Created, rotations, e-mail, password hash.
pub type Value = (u64, u32, &'static str, Option<&'static str>);
type ValueAt<'a> = (u64, u32, &'a str, Option<&'a str>);

/// An account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its name inside.
    pub id: AccountId,
    /// Its address, trimmed and lower-cased.
    pub email: String,
    /// When it was made, to the millisecond.
    pub created: SystemTime,
    /// Counts the rotations of its token.
    pub token_generation: u32,
    /// Whether it can sign in to the dashboard.
    pub has_password: bool,
}

/// An account with what only the store sees.
pub struct Record {
    /// The account.
    pub account: Account,
    /// PHC string.
    pub password_hash: Option<String>,
}

/// Whether there is any account.
///
/// # Errors
/// Those of redb.
pub fn any(read: &ReadTransaction) -> Result<bool, redb::Error> {
    Ok(read.open_table(ACCOUNTS)?.first()?.is_some())
}

/// All accounts, oldest first.
///
/// # Errors
/// Those of redb.
pub fn all(read: &ReadTransaction) -> Result<Vec<Account>, redb::Error> {
    let accounts = read.open_table(ACCOUNTS)?;
    let mut all = Vec::new();
    for row in accounts.iter()? {
        let (id, value) = row?;
        all.push(record(AccountId(id.value()), value.value()).account);
    }
    Ok(all)
}

/// The accounts with how often each one's token was rotated, youngest first.
///
/// # Errors
/// Those of redb, here and with each account.
pub fn generations(
    read: &ReadTransaction,
) -> Result<impl Iterator<Item = Result<(AccountId, u32), redb::Error>>, redb::Error> {
    let rows = read.open_table(ACCOUNTS)?.range::<u64>(..)?.rev();
    Ok(rows.map(|row| {
        let (id, value) = row?;
        Ok((AccountId(id.value()), value.value().1))
    }))
}

/// The account of this number.
///
/// # Errors
/// Those of redb.
pub fn by_id(read: &ReadTransaction, id: AccountId) -> Result<Option<Record>, redb::Error> {
    Ok(read
        .open_table(ACCOUNTS)?
        .get(id.0)?
        .map(|value| record(id, value.value())))
}

/// The account of this e-mail.
///
/// # Errors
/// Those of redb.
pub fn by_email(read: &ReadTransaction, email: &Email) -> Result<Option<Record>, redb::Error> {
    match read.open_table(EMAILS)?.get(email.as_str())? {
        Some(id) => by_id(read, AccountId(id.value())),
        None => Ok(None),
    }
}

/// The tables, open to write.
pub struct Tables<'t> {
    accounts: Table<'t, u64, Value>,
    emails: Table<'t, &'static str, u64>,
    meta: Table<'t, &'static str, u64>,
}

impl<'t> Tables<'t> {
    /// Opens them, making them if missing.
    ///
    /// # Errors
    /// Those of redb.
    pub fn open(write: &'t WriteTransaction) -> Result<Tables<'t>, redb::Error> {
        Ok(Tables {
            accounts: write.open_table(ACCOUNTS)?,
            emails: write.open_table(EMAILS)?,
            meta: write.open_table(META)?,
        })
    }

    /// Whether there is such an account.
    ///
    /// # Errors
    /// Those of redb.
    pub fn contains(&self, id: AccountId) -> Result<bool, redb::Error> {
        Ok(self.accounts.get(id.0)?.is_some())
    }

    /// Makes an account; `None` if the e-mail is taken.
    ///
    /// # Errors
    /// Those of redb.
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
            .map_or(0, |value| value.value());
        let id = created.max(last + 1);
        let value: ValueAt = (created, 0, email.as_str(), password_hash);
        self.meta.insert("last_account", id)?;
        self.emails.insert(email.as_str(), id)?;
        self.accounts.insert(id, value)?;
        Ok(Some(record(AccountId(id), value).account))
    }

    /// Counts one more rotation of the token; `None` if there is no such account.
    ///
    /// # Errors
    /// Those of redb.
    pub fn rotate(&mut self, id: AccountId) -> Result<Option<Account>, redb::Error> {
        let Some(before) = self.record(id)? else {
            return Ok(None);
        };
        let created = clock::to_milliseconds(before.account.created);
        let generation = before.account.token_generation.wrapping_add(1);
        let value: ValueAt = (
            created,
            generation,
            &before.account.email,
            before.password_hash.as_deref(),
        );
        self.accounts.insert(id.0, value)?;
        Ok(Some(record(id, value).account))
    }

    /// Replaces the password's hash; `None` if there is no such account. If `verified` is given, nothing is changed either
    /// unless that is the hash until now: the password that was asked for may have been replaced meanwhile.
    ///
    /// # Errors
    /// Those of redb.
    pub fn set_password(
        &mut self,
        id: AccountId,
        password_hash: &str,
        verified: Option<&str>,
    ) -> Result<Option<Account>, redb::Error> {
        let Some(before) = self.record(id)? else {
            return Ok(None);
        };
        if verified.is_some() && verified != before.password_hash.as_deref() {
            return Ok(None);
        }
        let value: ValueAt = (
            clock::to_milliseconds(before.account.created),
            before.account.token_generation,
            &before.account.email,
            Some(password_hash),
        );
        self.accounts.insert(id.0, value)?;
        Ok(Some(record(id, value).account))
    }

    fn record(&self, id: AccountId) -> Result<Option<Record>, redb::Error> {
        let value = self.accounts.get(id.0)?;
        Ok(value.map(|value| record(id, value.value())))
    }

    /// Deletes an account; false if there is none.
    ///
    /// # Errors
    /// Those of redb.
    pub fn delete(&mut self, id: AccountId) -> Result<bool, redb::Error> {
        let Some(record) = self
            .accounts
            .remove(id.0)?
            .map(|value| record(id, value.value()))
        else {
            return Ok(false);
        };
        self.emails.remove(record.account.email.as_str())?;
        Ok(true)
    }
}

fn record(id: AccountId, (created, token_generation, email, password_hash): ValueAt) -> Record {
    let account = Account {
        id,
        email: email.to_owned(),
        created: clock::from_milliseconds(created),
        token_generation,
        has_password: password_hash.is_some(),
    };
    Record {
        account,
        password_hash: password_hash.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_is_as_drawn() {
        let drawn = [
            &[1][..],                  // length of the e-mail
            &[2, 0, 0, 0, 0, 0, 0, 0], // created
            &[3, 0, 0, 0],             // rotations
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

    fn bytes(value: ValueAt) -> Vec<u8> {
        <Value as redb::Value>::as_bytes(&value)
    }
}
