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

use std::num::{NonZeroU32, NonZeroU64};

use redb::{ReadOnlyTable, ReadTransaction, ReadableTable, TableDefinition};

use super::result::Result;
use crate::auth::AccountId;
use crate::store::clock;
use crate::store::token::{
    AccountAccess, ApiToken, Limits, PreviousText, Restrictions, TokenSettings,
};
use crate::store::token_number::TokenNumber;

/// Tokens by account and number.
pub const TOKENS: TableDefinition<(u64, u32), Value> = TableDefinition::new("tokens");
/// What the operator has set, by account.
pub const RESTRICTIONS: TableDefinition<u64, (u64, u64, u64)> =
    TableDefinition::new("restrictions");

/// Created, end, end of the previous serial number, monthly limit, deleted, serial number, previous
/// serial number, limit by the minute, name, preset.
pub type Value = (
    u64,
    u64,
    u64,
    u64,
    u64,
    u32,
    u32,
    u32,
    &'static str,
    &'static str,
);
pub type ValueRef<'a> = (u64, u64, u64, u64, u64, u32, u32, u32, &'a str, &'a str);

/// A limit that is not set.
const NOT_SET: u64 = u64::MAX;

/// Both tables, open for reading.
pub struct AccessReader {
    tokens: ReadOnlyTable<(u64, u32), Value>,
    restrictions: ReadOnlyTable<u64, (u64, u64, u64)>,
}

impl AccessReader {
    /// Opens the tables.
    pub fn open(read: &ReadTransaction) -> Result<AccessReader> {
        Ok(AccessReader {
            tokens: read.open_table(TOKENS)?,
            restrictions: read.open_table(RESTRICTIONS)?,
        })
    }

    /// What decides about an account's requests. An account that does not exist has no tokens.
    pub fn access(&self, account: AccountId) -> Result<AccountAccess> {
        let tokens = all_in(&self.tokens, account)?.into_iter();
        let living = tokens.filter(|(_, deleted)| deleted.is_none());
        Ok(AccountAccess {
            tokens: living.map(|(token, _)| token).collect(),
            restrictions: restrictions_in(&self.restrictions, account)?,
        })
    }
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
        all.push(stored(key.value().1, value.value()));
    }
    Ok(all)
}

/// What the operator has set for an account.
pub fn restrictions_in(
    restrictions: &impl ReadableTable<u64, (u64, u64, u64)>,
    account: AccountId,
) -> Result<Restrictions> {
    let row = restrictions.get(account.0)?;
    Ok(row.map_or_else(Restrictions::default, |row| restrictions_of(row.value())))
}

/// What is stored of what the operator has set.
pub fn restrictions_value(restrictions: Restrictions) -> (u64, u64, u64) {
    (
        restrictions.disabled.map_or(0, stored_time),
        restrictions.monthly.unwrap_or(NOT_SET),
        restrictions.per_minute.map_or(NOT_SET, u64::from),
    )
}

/// A time that 0 does not stand for.
fn stored_time(time: std::time::SystemTime) -> u64 {
    clock::to_milliseconds(time).max(1)
}

fn restrictions_of((disabled, monthly, per_minute): (u64, u64, u64)) -> Restrictions {
    Restrictions {
        per_minute: u32::try_from(per_minute).ok(),
        monthly: (monthly != NOT_SET).then_some(monthly),
        disabled: (disabled != 0).then(|| clock::from_milliseconds(disabled)),
    }
}

/// What is stored of a token, which was deleted at this time, if it was.
pub fn value(token: &ApiToken, deleted: Option<u64>) -> ValueRef<'_> {
    let ApiToken {
        created,
        serial,
        previous,
        settings,
        ..
    } = token;
    (
        clock::to_milliseconds(*created),
        settings.ends.map_or(0, stored_time),
        previous.map_or(0, |previous| stored_time(previous.ends)),
        settings.limits.monthly.map_or(0, NonZeroU64::get),
        deleted.unwrap_or(0),
        *serial,
        previous.map_or(0, |previous| previous.serial),
        settings.limits.per_minute.map_or(0, NonZeroU32::get),
        &settings.name,
        &settings.preset,
    )
}

/// The token of a row, and when it was deleted.
fn stored(number: u32, value: ValueRef<'_>) -> (ApiToken, Option<u64>) {
    let (created, ends, previous_ends, monthly, deleted, serial, previous, minute, name, preset) =
        value;
    let time = |stored: u64| (stored != 0).then(|| clock::from_milliseconds(stored));
    let token = ApiToken {
        number: TokenNumber(number),
        created: clock::from_milliseconds(created),
        serial,
        previous: time(previous_ends).map(|ends| PreviousText {
            serial: previous,
            ends,
        }),
        settings: TokenSettings {
            name: name.to_owned(),
            ends: time(ends),
            limits: Limits {
                per_minute: NonZeroU32::new(minute),
                monthly: NonZeroU64::new(monthly),
            },
            preset: preset.to_owned(),
        },
    };
    (token, (deleted != 0).then_some(deleted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_has_the_layout_that_is_drawn() {
        let token = ApiToken {
            number: TokenNumber(9),
            created: clock::from_milliseconds(1),
            serial: 6,
            previous: Some(PreviousText {
                serial: 7,
                ends: clock::from_milliseconds(3),
            }),
            settings: TokenSettings {
                name: "n".to_owned(),
                ends: Some(clock::from_milliseconds(2)),
                limits: Limits {
                    per_minute: NonZeroU32::new(8),
                    monthly: NonZeroU64::new(4),
                },
                preset: "p".to_owned(),
            },
        };
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
        let bytes = <Value as redb::Value>::as_bytes(&value(&token, Some(5)));
        assert_eq!(bytes, drawn.concat());
        let back = stored(9, value(&token, Some(5)));
        assert_eq!(back, (token, Some(5)));
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
