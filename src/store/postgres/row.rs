//! Numbers and times as columns hold them, and rows as the program's types: for each table its
//! cells and its reader, in the order of its columns ([`super::tables`]).
//!
//! PostgreSQL has no integers without a sign. What is stored of them is less than 2^63, unless a
//! caller made it up: that is stored as the greatest number.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::SystemTime;

use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use uuid::Uuid;

use super::connection::get;
use super::fault::{Class, Fault};
use super::tables::Cell;
use crate::auth::{AccountId, CodeHash};
use crate::store::clock;
use crate::store::failure::Failure;
use crate::store::rows::AccountRow;
use crate::store::session::{Browser, SessionTimes, StoredSession};
use crate::store::token::{ApiToken, Limits, PreviousText, Restrictions, TokenSettings};
use crate::store::token_number::TokenNumber;
use crate::store::usage::{UsageDay, UsageEntry, UsageTotals, WatermarkKind};

/// A number as it is stored.
pub fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A time as it is stored.
pub fn time(time: SystemTime) -> i64 {
    int(clock::to_milliseconds(time))
}

/// A time as it is stored where 0 stands for none.
fn optional_time(at: Option<SystemTime>) -> i64 {
    at.map_or(0, |at| time(at).max(1))
}

/// A number of a row, 0 or more.
pub fn number(row: &Row, column: usize) -> Result<u64, Fault> {
    small(row, column)
}

/// A number of a row of fewer bits.
pub fn small<T: TryFrom<i64>>(row: &Row, column: usize) -> Result<T, Fault> {
    T::try_from(get::<i64>(row, column)?).map_err(|_| damaged(row, column))
}

fn damaged(row: &Row, column: usize) -> Fault {
    let name = row.columns()[column].name();
    Fault::new(
        Class::Unexpected,
        format!("the column {name} holds what was never stored"),
    )
}

/// The columns of a row, read one after the other.
pub struct Fields<'a> {
    row: &'a Row,
    next: usize,
}

impl<'a> Fields<'a> {
    /// Begins at the first column.
    pub fn of(row: &'a Row) -> Fields<'a> {
        Fields { row, next: 0 }
    }

    /// The next column.
    pub fn get<T: FromSql<'a>>(&mut self) -> Result<T, Fault> {
        self.next += 1;
        get(self.row, self.next - 1)
    }

    /// The next column, a number.
    pub fn number<T: TryFrom<i64>>(&mut self) -> Result<T, Fault> {
        self.next += 1;
        small(self.row, self.next - 1)
    }

    /// The next column, a number or null.
    fn optional_number<T: TryFrom<i64>>(&mut self) -> Result<Option<T>, Fault> {
        let number = self.get::<Option<i64>>()?.map(T::try_from);
        number.transpose().map_err(|_| self.damaged())
    }

    fn time(&mut self) -> Result<SystemTime, Fault> {
        self.number().map(clock::from_milliseconds)
    }

    /// The next column, a time in which 0 stands for none.
    fn optional_time(&mut self) -> Result<Option<SystemTime>, Fault> {
        let time = self.number()?;
        Ok((time != 0).then(|| clock::from_milliseconds(time)))
    }

    fn hash(&mut self) -> Result<CodeHash, Fault> {
        let bytes: &[u8] = self.get()?;
        bytes.try_into().map_err(|_| self.damaged())
    }

    fn token(&mut self) -> Result<TokenNumber, Fault> {
        self.number().map(TokenNumber)
    }

    /// Three columns of sums.
    pub fn totals(&mut self) -> Result<UsageTotals, Fault> {
        Ok(UsageTotals {
            conversions: self.number()?,
            input_bytes: self.number()?,
            output_bytes: self.number()?,
        })
    }

    /// The column that was read last holds what was never stored.
    fn damaged(&self) -> Fault {
        damaged(self.row, self.next - 1)
    }
}

/// A row of `accounts`.
pub fn account_cells(account: &AccountRow) -> [Cell; 5] {
    [
        account.id.0.into(),
        (&*account.email).into(),
        account.created.into(),
        account.last_serial.into(),
        account.password.clone().into(),
    ]
}

/// A row of `accounts`.
pub fn account(row: &mut Fields<'_>) -> Result<AccountRow, Fault> {
    Ok(AccountRow {
        id: AccountId(row.number()?),
        email: row.get()?,
        created: row.number()?,
        last_serial: row.number()?,
        password: row.get()?,
    })
}

/// A row of `tokens`, which was deleted at this time, if it was.
pub fn token_cells(account: AccountId, token: &ApiToken, deleted: Option<u64>) -> [Cell; 12] {
    let TokenSettings {
        name,
        ends,
        limits,
        preset,
    } = &token.settings;
    let previous = token.previous;
    [
        account.0.into(),
        token.number.0.into(),
        time(token.created).into(),
        optional_time(*ends).into(),
        optional_time(previous.map(|previous| previous.ends)).into(),
        limits.monthly.map_or(0, NonZeroU64::get).into(),
        deleted.unwrap_or(0).into(),
        token.serial.into(),
        previous.map_or(0, |previous| previous.serial).into(),
        limits.per_minute.map_or(0, NonZeroU32::get).into(),
        (&**name).into(),
        (&**preset).into(),
    ]
}

/// A row of `tokens`: the token, and when it was deleted.
pub fn token(row: &mut Fields<'_>) -> Result<(ApiToken, Option<u64>), Fault> {
    let _account: u64 = row.number()?;
    let (number, created) = (row.token()?, row.time()?);
    let (ends, previous_ends) = (row.optional_time()?, row.optional_time()?);
    let (monthly, deleted) = (NonZeroU64::new(row.number()?), row.number()?);
    let (serial, previous_serial) = (row.number()?, row.number()?);
    let per_minute = NonZeroU32::new(row.number()?);
    let token = ApiToken {
        number,
        created,
        serial,
        previous: previous_ends.map(|ends| PreviousText {
            serial: previous_serial,
            ends,
        }),
        settings: TokenSettings {
            name: row.get()?,
            ends,
            limits: Limits {
                per_minute,
                monthly,
            },
            preset: row.get()?,
        },
    };
    Ok((token, (deleted != 0).then_some(deleted)))
}

/// A row of `restrictions`.
pub fn restrictions_cells(account: AccountId, restrictions: Restrictions) -> [Cell; 4] {
    [
        account.0.into(),
        optional_time(restrictions.disabled).into(),
        restrictions.monthly.into(),
        restrictions.per_minute.into(),
    ]
}

/// A row of `restrictions`, whose columns are null if nothing is set.
pub fn restrictions(row: &mut Fields<'_>) -> Result<Restrictions, Fault> {
    let _account: Option<i64> = row.get()?;
    let disabled: u64 = row.optional_number()?.unwrap_or(0);
    let (monthly, per_minute) = (row.optional_number()?, row.optional_number()?);
    Ok(Restrictions {
        per_minute,
        monthly,
        disabled: (disabled != 0).then(|| clock::from_milliseconds(disabled)),
    })
}

/// A row of `invites`: the hash and the end.
pub fn invite(row: &mut Fields<'_>) -> Result<(CodeHash, u64), Fault> {
    Ok((row.hash()?, row.number()?))
}

/// A row of `sessions`.
pub fn session_cells(cookie: &CodeHash, account: AccountId, session: &StoredSession) -> [Cell; 8] {
    let StoredSession { times, browser } = session;
    [
        (*cookie).into(),
        account.0.into(),
        times.created.into(),
        times.used.into(),
        times.end.into(),
        times.latest.into(),
        (&*browser.name).into(),
        (&*browser.network).into(),
    ]
}

/// A row of `sessions`: the hash of the cookie, the account and the session.
pub fn session(row: &mut Fields<'_>) -> Result<(CodeHash, AccountId, StoredSession), Fault> {
    let (cookie, account) = (row.hash()?, AccountId(row.number()?));
    let times = SessionTimes {
        created: row.number()?,
        used: row.number()?,
        end: row.number()?,
        latest: row.number()?,
    };
    let browser = Browser {
        name: row.get()?,
        network: row.get()?,
    };
    Ok((cookie, account, StoredSession { times, browser }))
}

/// A row of `usage`.
pub fn entry_cells(account: AccountId, id: Uuid, entry: &UsageEntry) -> [Cell; 12] {
    [
        account.0.into(),
        id.into(),
        time(entry.time).into(),
        entry.token.0.into(),
        entry.input_bytes.into(),
        entry.output_bytes.into(),
        entry.width.into(),
        entry.height.into(),
        entry.milliseconds.into(),
        entry.quality.into(),
        watermark_number(entry.watermark).into(),
        (&*entry.format).into(),
    ]
}

/// A row of `usage`: the key and the entry.
pub fn entry(row: &mut Fields<'_>) -> Result<(Uuid, UsageEntry), Fault> {
    let _account: u64 = row.number()?;
    let id = row.get()?;
    let (time, token) = (row.time()?, row.token()?);
    let (input_bytes, output_bytes) = (row.number()?, row.number()?);
    let (width, height, milliseconds) = (row.number()?, row.number()?, row.number()?);
    let quality = u8::try_from(row.get::<i16>()?).map_err(|_| row.damaged())?;
    let watermark = match row.get::<i16>()? {
        0 => WatermarkKind::None,
        1 => WatermarkKind::Text,
        2 => WatermarkKind::Image,
        3 => WatermarkKind::Both,
        _ => return Err(row.damaged()),
    };
    let entry = UsageEntry {
        time,
        token,
        format: row.get()?,
        input_bytes,
        output_bytes,
        width,
        height,
        quality,
        watermark,
        milliseconds,
    };
    Ok((id, entry))
}

/// How a watermark is stored.
pub fn watermark_number(kind: WatermarkKind) -> i16 {
    match kind {
        WatermarkKind::None => 0,
        WatermarkKind::Text => 1,
        WatermarkKind::Image => 2,
        WatermarkKind::Both => 3,
    }
}

/// A row of `usage_days`, with the latest time of an entry, and the milliseconds in the first and
/// in the last key.
pub fn day_cells(
    account: AccountId,
    day: &UsageDay,
    last_used: u64,
    [first, last]: [u64; 2],
) -> [Cell; 10] {
    [
        account.0.into(),
        day.day.into(),
        day.token.0.into(),
        (&*day.format).into(),
        day.totals.conversions.into(),
        day.totals.input_bytes.into(),
        day.totals.output_bytes.into(),
        last_used.into(),
        first.into(),
        last.into(),
    ]
}

/// A row of `usage_days`: the sums, the latest time of an entry, and the milliseconds in the first
/// and in the last key.
pub fn day(row: &mut Fields<'_>) -> Result<(UsageDay, u64, [u64; 2]), Fault> {
    let _account: u64 = row.number()?;
    let day = UsageDay {
        day: row.number()?,
        token: row.token()?,
        format: row.get()?,
        totals: row.totals()?,
    };
    Ok((day, row.number()?, [row.number()?, row.number()?]))
}

/// A row of `usage_months`.
pub struct Month {
    /// Its first millisecond.
    pub start: u64,
    /// The token, or [`super::record::ALL_TOKENS`].
    pub token: i64,
    /// The number of conversions.
    pub conversions: u64,
}

/// A row of `usage_months`.
pub fn month(row: &mut Fields<'_>) -> Result<Month, Fault> {
    let _account: u64 = row.number()?;
    Ok(Month {
        start: row.number()?,
        token: row.get()?,
        conversions: row.number()?,
    })
}

/// A row of `usage_removed`.
pub fn removed_cells(account: AccountId, totals: UsageTotals) -> [Cell; 4] {
    [
        account.0.into(),
        totals.conversions.into(),
        totals.input_bytes.into(),
        totals.output_bytes.into(),
    ]
}

/// A row of `usage_removed`.
pub fn removed(row: &mut Fields<'_>) -> Result<UsageTotals, Fault> {
    let _account: u64 = row.number()?;
    row.totals()
}

/// A row of `failures`.
pub fn failure_cells(account: AccountId, id: Uuid, failure: &Failure) -> [Cell; 7] {
    [
        account.0.into(),
        id.into(),
        time(failure.time).into(),
        failure.input_bytes.into(),
        failure.token.0.into(),
        failure.status.into(),
        (&*failure.code).into(),
    ]
}

/// A row of `failures`: the key and the failure.
pub fn failure(row: &mut Fields<'_>) -> Result<(Uuid, Failure), Fault> {
    let _account: u64 = row.number()?;
    let id = row.get()?;
    let (time, input_bytes) = (row.time()?, row.number()?);
    let failure = Failure {
        time,
        input_bytes,
        token: row.token()?,
        status: row.number()?,
        code: row.get()?,
    };
    Ok((id, failure))
}
