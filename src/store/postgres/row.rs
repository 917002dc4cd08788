//! Rows as the program's types: for each table its cells and its reader, in the order of its
//! columns ([`super::tables`]).

use std::num::{NonZeroU32, NonZeroU64};

use uuid::Uuid;

use super::cell::{Cell, Fields, optional_time, time};
use super::fault::Result;
use crate::auth::{AccountId, CodeHash};
use crate::store::clock;
use crate::store::failure::Failure;
use crate::store::rows::AccountRow;
use crate::store::session::{Browser, SessionTimes, StoredSession};
use crate::store::token::{ApiToken, Limits, PreviousText, Restrictions, TokenSettings};
use crate::store::usage::{UsageDay, UsageEntry, UsageTotals, WatermarkKind};

/// A row of `accounts`.
pub fn account_cells(account: &AccountRow) -> [Cell; 5] {
    [
        account.id.into(),
        (&*account.email).into(),
        account.created.into(),
        account.last_serial.into(),
        account.password.clone().into(),
    ]
}

/// A row of `accounts`.
pub fn account(row: &mut Fields<'_>) -> Result<AccountRow> {
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
        account.into(),
        token.number.into(),
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
pub fn token(row: &mut Fields<'_>) -> Result<(ApiToken, Option<u64>)> {
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
        account.into(),
        optional_time(restrictions.disabled).into(),
        restrictions.monthly.into(),
        restrictions.per_minute.into(),
    ]
}

/// A row of `restrictions`, whose columns are null if nothing is set.
pub fn restrictions(row: &mut Fields<'_>) -> Result<Restrictions> {
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
pub fn invite(row: &mut Fields<'_>) -> Result<(CodeHash, u64)> {
    Ok((row.hash()?, row.number()?))
}

/// A row of `sessions`.
pub fn session_cells(cookie: &CodeHash, account: AccountId, session: &StoredSession) -> [Cell; 8] {
    let StoredSession { times, browser } = session;
    [
        (*cookie).into(),
        account.into(),
        times.created.into(),
        times.used.into(),
        times.end.into(),
        times.latest.into(),
        (&*browser.name).into(),
        (&*browser.network).into(),
    ]
}

/// A row of `sessions`: the hash of the cookie, the account and the session.
pub fn session(row: &mut Fields<'_>) -> Result<(CodeHash, AccountId, StoredSession)> {
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
        account.into(),
        id.into(),
        time(entry.time).into(),
        entry.token.into(),
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
pub fn entry(row: &mut Fields<'_>) -> Result<(Uuid, UsageEntry)> {
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
fn watermark_number(kind: WatermarkKind) -> i16 {
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
        account.into(),
        day.day.into(),
        day.token.into(),
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
pub fn day(row: &mut Fields<'_>) -> Result<(UsageDay, u64, [u64; 2])> {
    let _account: u64 = row.number()?;
    let day = UsageDay {
        day: row.number()?,
        token: row.token()?,
        format: row.get()?,
        totals: totals(row)?,
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
pub fn month(row: &mut Fields<'_>) -> Result<Month> {
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
        account.into(),
        totals.conversions.into(),
        totals.input_bytes.into(),
        totals.output_bytes.into(),
    ]
}

/// Three columns of sums.
pub fn totals(row: &mut Fields<'_>) -> Result<UsageTotals> {
    Ok(UsageTotals {
        conversions: row.number()?,
        input_bytes: row.number()?,
        output_bytes: row.number()?,
    })
}

/// A row of `usage_removed`.
pub fn removed(row: &mut Fields<'_>) -> Result<UsageTotals> {
    let _account: u64 = row.number()?;
    totals(row)
}

/// A row of `failures`.
pub fn failure_cells(account: AccountId, id: Uuid, failure: &Failure) -> [Cell; 7] {
    [
        account.into(),
        id.into(),
        time(failure.time).into(),
        failure.input_bytes.into(),
        failure.token.into(),
        failure.status.into(),
        (&*failure.code).into(),
    ]
}

/// A row of `failures`: the key and the failure.
pub fn failure(row: &mut Fields<'_>) -> Result<(Uuid, Failure)> {
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
