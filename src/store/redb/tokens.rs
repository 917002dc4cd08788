//! Tables `tokens` and `restrictions`.
//!
//! ```text
//! tokens        key     0   8  account, u64
//!                       8   4  number, u32: 0 is the one named `default`
//!               value   0   1  length n of the name, 1 to 160
//!                       1   8  created, u64, milliseconds since the epoch
//!                       9   8  end, u64; 0 for none
//!                      17   8  end of the previous serial number, u64; 0 if it does not work
//!                      25   8  conversions a month, u64; 0 for any number
//!                      33   8  deleted, u64; 0 if it is not
//!                      41   4  serial number, u32
//!                      45   4  previous serial number, u32
//!                      49   4  conversions a minute, u32; 0 for any number
//!                      53   n  name, UTF-8
//!                    53+n   .  preset, UTF-8, to the end
//!
//! restrictions  key     0   8  account, u64
//!               value   0   8  disabled since, u64; 0 if it is not
//!                       8   8  conversions a month, u64; 0 for any number, 2^64-1 if not set
//!                      16   8  conversions a minute, u64, likewise
//! ```
//!
//! Numbers have their least significant byte first. The value of `tokens` is redb's tuple
//! [`Value`]. An account that the operator has set nothing for has no row in
//! `restrictions`.

use redb::{ReadTransaction, ReadableTable, TableDefinition};

use super::result::Result;
use crate::auth::AccountId;
use crate::store::columns::{self, TokenColumns};
use crate::store::token::{AccountAccess, ApiToken, Restrictions};
use crate::store::token_number::TokenNumber;

/// Tokens by account and number.
pub const TOKENS: TableDefinition<(u64, u32), Value> = TableDefinition::new("tokens");
/// The limits that the operator has set, by account.
pub const RESTRICTIONS: TableDefinition<u64, (u64, u64, u64)> =
    TableDefinition::new("restrictions");

/// All columns but the account and the number.
pub type Value = TokenColumns<'static>;

/// A limit that is not set.
const NOT_SET: u64 = u64::MAX;

/// Opens both tables. Returns a function that reads the tokens and limits of an account; an account
/// that does not exist has no tokens.
pub fn access_reader(
    read: &ReadTransaction,
) -> Result<impl Fn(AccountId) -> Result<AccountAccess> + use<>> {
    let (tokens, restrictions) = (read.open_table(TOKENS)?, read.open_table(RESTRICTIONS)?);
    Ok(move |account| {
        let restrictions = restrictions_in(&restrictions, account)?;
        Ok(AccountAccess::new(all_in(&tokens, account)?, restrictions))
    })
}

/// All tokens of an account by number, with the times at which some of them were deleted.
pub fn all(read: &ReadTransaction, account: AccountId) -> Result<Vec<(ApiToken, Option<u64>)>> {
    all_in(&read.open_table(TOKENS)?, account)
}

/// As [`all`], in this table.
pub fn all_in(
    tokens: &impl ReadableTable<(u64, u32), Value>,
    account: AccountId,
) -> Result<Vec<(ApiToken, Option<u64>)>> {
    let mut all = Vec::new();
    for row in tokens.range((account.0, 0)..=(account.0, u32::MAX))? {
        let (key, value) = row?;
        all.push(columns::token(TokenNumber(key.value().1), value.value()));
    }
    Ok(all)
}

/// The limits that the operator has set for an account.
pub fn restrictions_in(
    restrictions: &impl ReadableTable<u64, (u64, u64, u64)>,
    account: AccountId,
) -> Result<Restrictions> {
    let row = restrictions.get(account.0)?;
    Ok(row.map_or_else(Restrictions::default, |row| restrictions_of(row.value())))
}

/// The row of an account's restrictions.
pub fn restrictions_value(restrictions: Restrictions) -> (u64, u64, u64) {
    let (disabled, monthly, per_minute) = columns::of_restrictions(restrictions);
    (
        disabled,
        monthly.unwrap_or(NOT_SET),
        per_minute.map_or(NOT_SET, u64::from),
    )
}

fn restrictions_of((disabled, monthly, per_minute): (u64, u64, u64)) -> Restrictions {
    columns::restrictions((
        disabled,
        (monthly != NOT_SET).then_some(monthly),
        u32::try_from(per_minute).ok(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_has_the_layout_that_is_drawn() {
        let drawn = [
            &[1][..],                  // length of the name
            &[1, 0, 0, 0, 0, 0, 0, 0], // created
            &[2, 0, 0, 0, 0, 0, 0, 0], // end
            &[3, 0, 0, 0, 0, 0, 0, 0], // end of the previous serial number
            &[4, 0, 0, 0, 0, 0, 0, 0], // conversions a month
            &[5, 0, 0, 0, 0, 0, 0, 0], // deleted
            &[6, 0, 0, 0],             // serial number
            &[7, 0, 0, 0],             // previous serial number
            &[8, 0, 0, 0],             // conversions a minute
            b"n",
            b"p",
        ];
        let value = (1, 2, 3, 4, 5, 6, 7, 8, "n", "p");
        assert_eq!(<Value as redb::Value>::as_bytes(&value), drawn.concat());
    }

    #[test]
    fn restrictions_tell_none_from_any_number() {
        for (row, expected) in [
            ((0, NOT_SET, NOT_SET), (None, None, false)),
            ((7, 0, 0), (Some(0), Some(0), true)),
            ((0, 5, 3), (Some(3), Some(5), false)),
        ] {
            let restrictions = restrictions_of(row);
            let Restrictions {
                per_minute,
                monthly,
                disabled,
            } = restrictions;
            assert_eq!((per_minute, monthly, disabled.is_some()), expected);
        }
    }
}
