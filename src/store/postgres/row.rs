//! Numbers and times as columns hold them, and rows as the program's types.
//!
//! PostgreSQL has no integers without a sign. What is stored of them is less than 2^63, unless a
//! caller made it up: that is stored as the greatest number.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::SystemTime;

use tokio_postgres::Row;

use super::connection::get;
use super::fault::{Class, Fault};
use crate::auth::{AccountId, CodeHash};
use crate::store::account::{Account, AccountRecord};
use crate::store::clock;
use crate::store::token::{ApiToken, Limits, PreviousText, Restrictions, TokenSettings};
use crate::store::token_number::TokenNumber;
use crate::store::usage::{UsageEntry, UsageTotals, WatermarkKind};

/// A number as it is stored.
pub fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A time as it is stored.
pub fn time(time: SystemTime) -> i64 {
    int(clock::to_milliseconds(time))
}

/// A time as it is stored where 0 stands for none.
pub fn optional_time(at: Option<SystemTime>) -> i64 {
    at.map_or(0, |at| time(at).max(1))
}

/// A number of a row, 0 or more.
pub fn number(row: &Row, column: usize) -> Result<u64, Fault> {
    let number = get::<i64>(row, column)?;
    u64::try_from(number).map_err(|_| damaged(row, column))
}

/// A number of a row of fewer bits.
pub fn small<T: TryFrom<i64>>(row: &Row, column: usize) -> Result<T, Fault> {
    T::try_from(get::<i64>(row, column)?).map_err(|_| damaged(row, column))
}

/// A time of a row.
pub fn time_of(row: &Row, column: usize) -> Result<SystemTime, Fault> {
    number(row, column).map(clock::from_milliseconds)
}

/// A time of a row in which 0 stands for none.
fn optional_time_of(row: &Row, column: usize) -> Result<Option<SystemTime>, Fault> {
    let time = number(row, column)?;
    Ok((time != 0).then(|| clock::from_milliseconds(time)))
}

/// A hash of a row.
pub fn hash(row: &Row, column: usize) -> Result<CodeHash, Fault> {
    let bytes: &[u8] = get(row, column)?;
    bytes.try_into().map_err(|_| damaged(row, column))
}

fn damaged(row: &Row, column: usize) -> Fault {
    let name = row.columns()[column].name();
    Fault::new(
        Class::Unexpected,
        format!("the column {name} holds what was never stored"),
    )
}

/// The columns of [`account`].
pub const ACCOUNT: &str = "a.id, a.email, a.created, a.password";

/// An account whose columns begin with this one.
pub fn account(row: &Row, first: usize) -> Result<AccountRecord, Fault> {
    let password_hash: Option<String> = get(row, first + 3)?;
    Ok(AccountRecord {
        account: Account {
            id: AccountId(number(row, first)?),
            email: get(row, first + 1)?,
            created: time_of(row, first + 2)?,
            has_password: password_hash.is_some(),
        },
        password_hash,
    })
}

/// The columns of [`token`].
pub const TOKEN: &str = "t.number, t.created, t.ends, t.previous_ends, t.monthly, t.deleted, \
                         t.serial, t.previous_serial, t.per_minute, t.name, t.preset";

/// A token whose columns begin with this one, and when it was deleted.
pub fn token(row: &Row, first: usize) -> Result<(ApiToken, Option<SystemTime>), Fault> {
    let previous_serial = small(row, first + 7)?;
    let token = ApiToken {
        number: TokenNumber(small(row, first)?),
        created: time_of(row, first + 1)?,
        serial: small(row, first + 6)?,
        previous: optional_time_of(row, first + 3)?.map(|ends| PreviousText {
            serial: previous_serial,
            ends,
        }),
        settings: TokenSettings {
            name: get(row, first + 9)?,
            ends: optional_time_of(row, first + 2)?,
            limits: Limits {
                per_minute: NonZeroU32::new(small(row, first + 8)?),
                monthly: NonZeroU64::new(number(row, first + 4)?),
            },
            preset: get(row, first + 10)?,
        },
    };
    Ok((token, optional_time_of(row, first + 5)?))
}

/// The columns of [`restrictions`].
pub const RESTRICTIONS: &str = "r.disabled, r.monthly, r.per_minute";

/// What the operator has set, in columns that begin with this one and are null if nothing is.
pub fn restrictions(row: &Row, first: usize) -> Result<Restrictions, Fault> {
    let Some(disabled) = get::<Option<i64>>(row, first)? else {
        return Ok(Restrictions::default());
    };
    let optional = |column| get::<Option<i64>>(row, column);
    let (monthly, per_minute) = (optional(first + 1)?, optional(first + 2)?);
    Ok(Restrictions {
        per_minute: per_minute.map(|_| small(row, first + 2)).transpose()?,
        monthly: monthly.map(|_| number(row, first + 1)).transpose()?,
        disabled: (disabled != 0).then(|| clock::from_milliseconds(disabled.unsigned_abs())),
    })
}

/// The columns of [`entry`].
pub const ENTRY: &str = "time, token, input_bytes, output_bytes, width, height, milliseconds, \
                         quality, watermark, format";

/// An entry of a history whose columns begin with this one.
pub fn entry(row: &Row, first: usize) -> Result<UsageEntry, Fault> {
    let quality = get::<i16>(row, first + 7)?;
    Ok(UsageEntry {
        time: time_of(row, first)?,
        token: TokenNumber(small(row, first + 1)?),
        input_bytes: number(row, first + 2)?,
        output_bytes: number(row, first + 3)?,
        width: small(row, first + 4)?,
        height: small(row, first + 5)?,
        milliseconds: small(row, first + 6)?,
        quality: u8::try_from(quality).map_err(|_| damaged(row, first + 7))?,
        watermark: match get::<i16>(row, first + 8)? {
            0 => WatermarkKind::None,
            1 => WatermarkKind::Text,
            2 => WatermarkKind::Image,
            3 => WatermarkKind::Both,
            _ => return Err(damaged(row, first + 8)),
        },
        format: get(row, first + 9)?,
    })
}

/// Sums in three columns, the first one of which is this one.
pub fn totals(row: &Row, first: usize) -> Result<UsageTotals, Fault> {
    Ok(UsageTotals {
        conversions: number(row, first)?,
        input_bytes: number(row, first + 1)?,
        output_bytes: number(row, first + 2)?,
    })
}
