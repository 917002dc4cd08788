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

use redb::{
    ReadOnlyTable, ReadTransaction, ReadableTable, Table, TableDefinition, WriteTransaction,
};
use std::num::{NonZeroU32, NonZeroU64};

use crate::auth::AccountId;
use crate::store::clock;
use crate::store::token::{
    AccountAccess, ApiToken, Limits, MAX_DELETED_TOKENS, PreviousText, Restrictions, TokenSettings,
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

/// A token, and when it was deleted, in milliseconds since the epoch; 0 if it was not.
pub struct StoredToken {
    pub token: ApiToken,
    pub deleted: u64,
}

/// Both tables, open for reading.
pub struct AccessReader {
    tokens: ReadOnlyTable<(u64, u32), Value>,
    restrictions: ReadOnlyTable<u64, (u64, u64, u64)>,
}

impl AccessReader {
    /// Opens the tables.
    pub fn open(read: &ReadTransaction) -> Result<AccessReader, redb::Error> {
        Ok(AccessReader {
            tokens: read.open_table(TOKENS)?,
            restrictions: read.open_table(RESTRICTIONS)?,
        })
    }

    /// What decides about an account's requests. An account that does not exist has no tokens.
    pub fn access(&self, account: AccountId) -> Result<AccountAccess, redb::Error> {
        access_in(&self.tokens, &self.restrictions, account)
    }
}

/// All tokens of an account by number, with those that are deleted.
pub fn all(read: &ReadTransaction, account: AccountId) -> Result<Vec<StoredToken>, redb::Error> {
    all_in(&read.open_table(TOKENS)?, account)
}

fn access_in(
    tokens: &impl ReadableTable<(u64, u32), Value>,
    restrictions: &impl ReadableTable<u64, (u64, u64, u64)>,
    account: AccountId,
) -> Result<AccountAccess, redb::Error> {
    let tokens = all_in(tokens, account)?.into_iter();
    let restrictions = restrictions.get(account.0)?;
    Ok(AccountAccess {
        tokens: tokens
            .filter(|stored| stored.deleted == 0)
            .map(|stored| stored.token)
            .collect(),
        restrictions: restrictions
            .map_or_else(Restrictions::default, |row| restrictions_of(row.value())),
    })
}

fn all_in(
    tokens: &impl ReadableTable<(u64, u32), Value>,
    account: AccountId,
) -> Result<Vec<StoredToken>, redb::Error> {
    let mut all = Vec::new();
    for row in tokens.range((account.0, 0)..=(account.0, u32::MAX))? {
        let (key, value) = row?;
        all.push(stored(key.value().1, value.value()));
    }
    Ok(all)
}

/// Both tables, open for writing.
pub struct TokenTables<'t> {
    tokens: Table<'t, (u64, u32), Value>,
    restrictions: Table<'t, u64, (u64, u64, u64)>,
}

impl<'t> TokenTables<'t> {
    /// Opens the tables, and makes them if they are missing.
    pub fn open(write: &'t WriteTransaction) -> Result<TokenTables<'t>, redb::Error> {
        Ok(TokenTables {
            tokens: write.open_table(TOKENS)?,
            restrictions: write.open_table(RESTRICTIONS)?,
        })
    }

    /// What decides about an account's requests.
    pub fn access(&self, account: AccountId) -> Result<AccountAccess, redb::Error> {
        access_in(&self.tokens, &self.restrictions, account)
    }

    /// Writes a token of an account.
    pub fn put(&mut self, account: AccountId, token: &ApiToken) -> Result<(), redb::Error> {
        self.put_with(account, token, 0)
    }

    /// Writes a token that was deleted at this time, in milliseconds since the epoch; 0 if it was
    /// not.
    pub fn put_with(
        &mut self,
        account: AccountId,
        token: &ApiToken,
        deleted: u64,
    ) -> Result<(), redb::Error> {
        let key = (account.0, token.number.0);
        self.tokens.insert(key, value(token, deleted))?;
        Ok(())
    }

    /// Marks a token as deleted, and forgets the oldest deleted ones beyond their number.
    pub fn delete(
        &mut self,
        account: AccountId,
        token: &ApiToken,
        now: u64,
    ) -> Result<(), redb::Error> {
        self.put_with(account, &token.deleted(), now.max(1))?;
        let mut deleted = all_in(&self.tokens, account)?;
        deleted.retain(|stored| stored.deleted != 0);
        deleted.sort_by_key(|stored| stored.deleted);
        let surplus = deleted.len().saturating_sub(MAX_DELETED_TOKENS);
        for stored in &deleted[..surplus] {
            self.tokens.remove((account.0, stored.token.number.0))?;
        }
        Ok(())
    }

    /// Writes what the operator has set for an account.
    pub fn restrict(
        &mut self,
        account: AccountId,
        restrictions: Restrictions,
    ) -> Result<(), redb::Error> {
        if restrictions == Restrictions::default() {
            self.restrictions.remove(account.0)?;
            return Ok(());
        }
        let disabled = restrictions.disabled.map_or(0, stored_time);
        let monthly = restrictions.monthly.unwrap_or(NOT_SET);
        let per_minute = restrictions.per_minute.map_or(NOT_SET, u64::from);
        let row = (disabled, monthly, per_minute);
        self.restrictions.insert(account.0, row)?;
        Ok(())
    }

    /// Removes an account's tokens, and what the operator has set for it.
    pub fn delete_all_of(&mut self, account: AccountId) -> Result<(), redb::Error> {
        self.tokens
            .retain_in((account.0, 0)..=(account.0, u32::MAX), |_, _| false)?;
        self.restrictions.remove(account.0)?;
        Ok(())
    }
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

fn value(token: &ApiToken, deleted: u64) -> ValueRef<'_> {
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
        deleted,
        *serial,
        previous.map_or(0, |previous| previous.serial),
        settings.limits.per_minute.map_or(0, NonZeroU32::get),
        &settings.name,
        &settings.preset,
    )
}

/// The token of a row.
pub fn stored(number: u32, value: ValueRef<'_>) -> StoredToken {
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
    StoredToken { token, deleted }
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
        let bytes = <Value as redb::Value>::as_bytes(&value(&token, 5));
        assert_eq!(bytes, drawn.concat());
        let back = stored(9, value(&token, 5));
        assert_eq!((back.token, back.deleted), (token, 5));
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
