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

use redb::{ReadTransaction, ReadableTable, TableDefinition};

use super::result::Result;
use crate::auth::{AccountId, Email};
use crate::store::account::{Account, AccountRecord};
use crate::store::rows::AccountRow;

/// Accounts by their number.
pub const ACCOUNTS: TableDefinition<u64, Value> = TableDefinition::new("accounts");
/// Account numbers by e-mail address.
pub const EMAILS: TableDefinition<&str, u64> = TableDefinition::new("emails");

/// Created, last serial number of a token, e-mail address, password hash.
pub type Value = (u64, u32, &'static str, Option<&'static str>);
pub type ValueRef<'a> = (u64, u32, &'a str, Option<&'a str>);

/// All accounts, oldest first.
pub fn all(read: &ReadTransaction) -> Result<Vec<Account>> {
    let accounts = read.open_table(ACCOUNTS)?;
    let mut all = Vec::new();
    for found in accounts.iter()? {
        let (id, value) = found?;
        let row = row(AccountId(id.value()), value.value());
        all.push(AccountRecord::from(row).account);
    }
    Ok(all)
}

/// The numbers of the youngest accounts, at most `limit` of them, youngest first.
pub fn youngest(read: &ReadTransaction, limit: usize) -> Result<Vec<AccountId>> {
    let accounts = read.open_table(ACCOUNTS)?;
    let mut youngest = Vec::new();
    for row in accounts.iter()?.rev().take(limit) {
        youngest.push(AccountId(row?.0.value()));
    }
    Ok(youngest)
}

/// Whether there is such an account.
pub fn exists(read: &ReadTransaction, id: AccountId) -> Result<bool> {
    Ok(read.open_table(ACCOUNTS)?.get(id.0)?.is_some())
}

/// The account with this number.
pub fn by_id(read: &ReadTransaction, id: AccountId) -> Result<Option<AccountRecord>> {
    let value = read.open_table(ACCOUNTS)?.get(id.0)?;
    Ok(value.map(|value| row(id, value.value()).into()))
}

/// The account with this e-mail address.
pub fn by_email(read: &ReadTransaction, email: &Email) -> Result<Option<AccountRecord>> {
    match read.open_table(EMAILS)?.get(email.as_str())? {
        Some(id) => by_id(read, AccountId(id.value())),
        None => Ok(None),
    }
}

/// The row of an account.
pub fn row(id: AccountId, (created, last_serial, email, password): ValueRef) -> AccountRow {
    AccountRow {
        id,
        email: email.to_owned(),
        created,
        last_serial,
        password: password.map(str::to_owned),
    }
}

/// What is stored of a row.
pub fn value(row: &AccountRow) -> ValueRef<'_> {
    let password = row.password.as_deref();
    (row.created, row.last_serial, &row.email, password)
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
