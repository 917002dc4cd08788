//! Tables `accounts` and `emails`.
//!
//! ```text
//! accounts   key    0  8  account, u64
//!            value  0  1  length n of the e-mail, 1 to 253; for 254: the bytes 254, 254, 0, and
//!                         everything that follows lies two bytes further on
//!                   1  1  length m of the password's part, 1 to 253, likewise
//!                   2  8  created, u64, milliseconds since the epoch
//!                  10  4  last serial number of a token, u32
//!                  14  n  e-mail, UTF-8
//!                14+n  m  1 and the password's hash as a PHC string; 0 if there is none
//!              14+n+m  .  1 and the text of `auth::SecondFactor`, to the end; 0 if there is none
//!
//! emails     key    0  n  e-mail, UTF-8
//!            value  0  8  account, u64
//! ```
//!
//! Numbers have their least significant byte first. The value of `accounts` is redb's tuple
//! `(u64, u32, &str, Option<&str>, Option<&str>)`.
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
            &[1, 3][..],               // lengths of the e-mail and of the password's part
            &[2, 0, 0, 0, 0, 0, 0, 0], // created
            &[3, 0, 0, 0],             // last serial number
            b"e",                      // e-mail
            &[1],                      // there is a password
            b"$p",                     // its hash
            &[1],                      // there is a second factor
            b"n",                      // its text
        ];
        assert_eq!(bytes((2, 3, "e", Some("$p"), Some("n"))), drawn.concat());
        let rest = drawn[1..4].concat();
        let without = [&[1, 1], &rest[..], &[0, 0]].concat();
        assert_eq!(bytes((2, 3, "e", None, None)), without);
        let longest = "e".repeat(254);
        assert_eq!(
            bytes((2, 3, &longest, None, None))[..5],
            [254, 254, 0, 1, 2]
        );
        assert_eq!(bytes((2, 3, &longest[1..], None, None))[..3], [253, 1, 2]);
    }

    fn bytes(value: AccountColumns<'_>) -> Vec<u8> {
        <Value as redb::Value>::as_bytes(&value)
    }
}
