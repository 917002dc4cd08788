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
use crate::auth::AccountId;
use crate::store::account::Account;
use crate::store::columns::{self, AccountColumns};
use crate::store::rows::AccountRow;

/// Accounts by their number.
pub const ACCOUNTS: TableDefinition<u64, Value> = TableDefinition::new("accounts");
/// Account numbers by e-mail address.
pub const EMAILS: TableDefinition<&str, u64> = TableDefinition::new("emails");

/// All columns but the number.
pub type Value = AccountColumns<'static>;

/// All accounts, oldest first.
pub fn all(read: &ReadTransaction) -> Result<Vec<Account>> {
    let accounts = read.open_table(ACCOUNTS)?;
    let mut all = Vec::new();
    for found in accounts.iter()? {
        let (id, value) = found?;
        let id = AccountId(id.value());
        all.push(columns::account(id, value.value()).into());
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

/// The account with this number.
pub fn by_id(
    accounts: &impl ReadableTable<u64, Value>,
    id: AccountId,
) -> Result<Option<AccountRow>> {
    let value = accounts.get(id.0)?;
    Ok(value.map(|value| columns::account(id, value.value())))
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

    fn bytes(value: AccountColumns<'_>) -> Vec<u8> {
        <Value as redb::Value>::as_bytes(&value)
    }
}
