//! Rows as the program's types: for each table its columns and its reader, in the order of
//! [`super::tables`].

use uuid::Uuid;

use super::cell::{Columns, Fields};
use super::fault::{Class, Fault, Result};
use crate::auth::{AccountId, CodeHash};
use crate::store::columns::{
    self, EntryColumns, FailureColumns, RestrictionColumns, TokenColumns, TotalColumns,
};
use crate::store::failure::Failure;
use crate::store::rows::AccountRow;
use crate::store::session::StoredSession;
use crate::store::token::{ApiToken, Restrictions};
use crate::store::token_number::TokenNumber;
use crate::store::usage::{UsageDay, UsageEntry, UsageTotals};

/// A row of `accounts`.
pub fn account_columns(account: &AccountRow) -> impl Columns<'_> {
    let (created, last_serial, email, password, second_factor) = columns::of_account(account);
    (
        account.id,
        email,
        created,
        last_serial,
        password,
        second_factor,
    )
}

/// A row of `accounts`.
pub fn account(row: &mut Fields<'_>) -> Result<AccountRow> {
    let (id, email, created, last_serial, password, second_factor) = row.read()?;
    let columns = (created, last_serial, email, password, second_factor);
    Ok(columns::account(id, columns))
}

/// A row of `tokens`, with the time of the deletion if it was deleted.
pub fn token_columns(
    account: AccountId,
    token: &ApiToken,
    deleted: Option<u64>,
) -> impl Columns<'_> {
    let key = (account, token.number);
    (key, columns::of_token(token, deleted))
}

/// A row of `tokens`, with the time of the deletion if it was deleted.
pub fn token(row: &mut Fields<'_>) -> Result<(ApiToken, Option<u64>)> {
    let (_, number, token): (AccountId, TokenNumber, TokenColumns<'_>) = row.read()?;
    Ok(columns::token(number, token))
}

/// A row of `restrictions`.
pub fn restrictions_columns(
    account: AccountId,
    restrictions: Restrictions,
) -> (AccountId, RestrictionColumns) {
    (account, columns::of_restrictions(restrictions))
}

/// A row of `restrictions`, whose columns are null if nothing is set.
pub fn restrictions(row: &mut Fields<'_>) -> Result<Restrictions> {
    let (_, disabled, monthly, per_minute): (Option<AccountId>, Option<u64>, _, _) = row.read()?;
    let columns = (disabled.unwrap_or(0), monthly, per_minute);
    Ok(columns::restrictions(columns))
}

/// A row of `sessions`: the hash of the cookie, the account and the session.
pub fn session(row: &mut Fields<'_>) -> Result<(CodeHash, AccountId, StoredSession)> {
    let (cookie, session) = row.read()?;
    let (account, session) = columns::session(session);
    Ok((cookie, account, session))
}

/// A row of `usage`.
pub fn entry_columns(account: AccountId, id: Uuid, entry: &UsageEntry) -> impl Columns<'_> {
    let columns = columns::of_entry(entry);
    let (time, input, output, width, height, milliseconds, ..) = columns;
    let (.., token, quality, watermark, request, format) = columns;
    (
        (account, id, time, token, input, output),
        (width, height, milliseconds, quality, watermark, format),
        request,
    )
}

/// A row of `usage`: the key and the entry.
pub fn entry(row: &mut Fields<'_>) -> Result<(Uuid, UsageEntry)> {
    let (_, id, time, token, input, output): (AccountId, _, _, _, _, _) = row.read()?;
    let (width, height, milliseconds, quality, watermark, format) = row.read()?;
    let request = row.read()?;
    let columns: EntryColumns<'_> = (
        time,
        input,
        output,
        width,
        height,
        milliseconds,
        token,
        quality,
        watermark,
        request,
        format,
    );
    let text = "the column watermark holds what was never stored";
    let damaged = || Fault::new(Class::Unexpected, text);
    Ok((id, columns::entry(columns).ok_or_else(damaged)?))
}

/// A row of `usage_days`, with the latest time of an entry, and the milliseconds in the first and
/// in the last key.
pub fn day_columns(
    account: AccountId,
    day: &UsageDay,
    last_used: u64,
    [first, last]: [u64; 2],
) -> impl Columns<'_> {
    let key = (account, day.day, day.token, &*day.format);
    (key, columns::of_totals(day.totals), last_used, first, last)
}

/// A row of `usage_days`: the sums, the latest time of an entry, and the milliseconds in the first
/// and in the last key.
pub fn day(row: &mut Fields<'_>) -> Result<(UsageDay, u64, [u64; 2])> {
    let (_, day, token, format): (AccountId, _, _, _) = row.read()?;
    let (totals, last_used, first, last) = row.read()?;
    let totals = columns::totals(totals);
    let day = UsageDay {
        day,
        token,
        format,
        totals,
    };
    Ok((day, last_used, [first, last]))
}

/// A row of `usage_months`: its first millisecond with the token or
/// [`super::record::ALL_TOKENS`], and the number of conversions.
pub fn month(row: &mut Fields<'_>) -> Result<((u64, i64), u64)> {
    let (_, key, conversions): (AccountId, _, _) = row.read()?;
    Ok((key, conversions))
}

/// Three columns of sums.
pub fn totals(row: &mut Fields<'_>) -> Result<UsageTotals> {
    row.read().map(columns::totals)
}

/// A row of `usage_removed`.
pub fn removed(row: &mut Fields<'_>) -> Result<UsageTotals> {
    let (_, removed): (AccountId, TotalColumns) = row.read()?;
    Ok(columns::totals(removed))
}

/// A row of `failures`.
pub fn failure_columns(account: AccountId, id: Uuid, failure: &Failure) -> impl Columns<'_> {
    let key = (account, id);
    (key, columns::of_failure(failure))
}

/// A row of `failures`: the key and the failure.
pub fn failure(row: &mut Fields<'_>) -> Result<(Uuid, Failure)> {
    let (_, id, failure): (AccountId, Uuid, FailureColumns<'_>) = row.read()?;
    Ok((id, columns::failure(failure)))
}
