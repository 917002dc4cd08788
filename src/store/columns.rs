//! Rows as tuples of plain values, as both engines store them. Times are milliseconds since the
//! epoch. A time or a limit of 0 means that there is none.

use std::num::{NonZeroU32, NonZeroU64};

use super::clock::{from_milliseconds, to_milliseconds};
use super::failure::Failure;
use super::request_id::RequestId;
use super::rows::AccountRow;
use super::session::{Browser, SessionTimes, StoredSession};
use super::token::{ApiToken, Limits, PreviousText, Restrictions, TokenSettings};
use super::token_number::TokenNumber;
use super::usage::{UsageEntry, UsageTotals, WatermarkKind};
use crate::auth::AccountId;

/// Created, last serial number of a token, e-mail address, password hash, second factor.
pub type AccountColumns<'a> = (u64, u32, &'a str, Option<&'a str>, Option<&'a str>);

/// Created, end, end of the previous serial number, monthly limit, deleted, serial number, previous
/// serial number, limit by the minute, name, preset.
pub type TokenColumns<'a> = (u64, u64, u64, u64, u64, u32, u32, u32, &'a str, &'a str);

/// Disabled since, monthly limit, limit by the minute. A limit of 0 allows any number.
pub type RestrictionColumns = (u64, Option<u64>, Option<u32>);

/// Account, beginning, last use, end, latest end, the browser's name and its network.
pub type SessionColumns<'a> = (u64, u64, u64, u64, u64, &'a str, &'a str);

/// Time, bytes in, bytes out, width, height, milliseconds, token, quality, watermark, request,
/// format.
pub type EntryColumns<'a> = (u64, u64, u64, u32, u32, u32, u32, u8, u8, u128, &'a str);

/// Conversions, bytes in, bytes out.
pub type TotalColumns = (u64, u64, u64);

/// Time, bytes, token, status, request, code.
pub type FailureColumns<'a> = (u64, u64, u32, u16, u128, &'a str);

/// The columns of an account, without its number.
pub fn of_account(row: &AccountRow) -> AccountColumns<'_> {
    let (password, second_factor) = (row.password.as_deref(), row.second_factor.as_deref());
    (
        row.created,
        row.last_serial,
        &row.email,
        password,
        second_factor,
    )
}

/// The account with this number and these columns.
pub fn account(
    id: AccountId,
    (created, last_serial, email, password, second_factor): AccountColumns<'_>,
) -> AccountRow {
    AccountRow {
        id,
        email: email.to_owned(),
        created,
        last_serial,
        password: password.map(str::to_owned),
        second_factor: second_factor.map(str::to_owned),
    }
}

/// The columns of a token, without its account and its number, and the time of its deletion.
pub fn of_token(token: &ApiToken, deleted: Option<u64>) -> TokenColumns<'_> {
    let time = |time| to_milliseconds(time).max(1);
    let TokenSettings {
        name,
        ends,
        limits,
        preset,
    } = &token.settings;
    (
        to_milliseconds(token.created),
        ends.map_or(0, time),
        token.previous.map_or(0, |previous| time(previous.ends)),
        limits.monthly.map_or(0, NonZeroU64::get),
        deleted.unwrap_or(0),
        token.serial,
        token.previous.map_or(0, |previous| previous.serial),
        limits.per_minute.map_or(0, NonZeroU32::get),
        name,
        preset,
    )
}

/// The token with this number and these columns, and the time of its deletion.
pub fn token(number: TokenNumber, columns: TokenColumns<'_>) -> (ApiToken, Option<u64>) {
    let (created, ends, previous_ends, monthly, deleted, serial, previous, minute, name, preset) =
        columns;
    let time = |time: u64| (time != 0).then(|| from_milliseconds(time));
    let token = ApiToken {
        number,
        created: from_milliseconds(created),
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

/// The columns of an account's restrictions, without its number.
pub fn of_restrictions(restrictions: Restrictions) -> RestrictionColumns {
    let disabled = restrictions.disabled;
    let disabled = disabled.map_or(0, |time| to_milliseconds(time).max(1));
    (disabled, restrictions.monthly, restrictions.per_minute)
}

/// The restrictions with these columns.
pub fn restrictions((disabled, monthly, per_minute): RestrictionColumns) -> Restrictions {
    Restrictions {
        per_minute,
        monthly,
        disabled: (disabled != 0).then(|| from_milliseconds(disabled)),
    }
}

/// The columns of a session, without the hash of its cookie.
pub fn of_session(account: AccountId, session: &StoredSession) -> SessionColumns<'_> {
    let StoredSession { times, browser } = session;
    (
        account.0,
        times.created,
        times.used,
        times.end,
        times.latest,
        &browser.name,
        &browser.network,
    )
}

/// The account and the session with these columns.
pub fn session(
    (account, created, used, end, latest, name, network): SessionColumns<'_>,
) -> (AccountId, StoredSession) {
    let session = StoredSession {
        times: SessionTimes {
            created,
            used,
            end,
            latest,
        },
        browser: Browser {
            name: name.to_owned(),
            network: network.to_owned(),
        },
    };
    (AccountId(account), session)
}

/// The columns of an entry of a history, without its key.
pub fn of_entry(entry: &UsageEntry) -> EntryColumns<'_> {
    (
        to_milliseconds(entry.time),
        entry.input_bytes,
        entry.output_bytes,
        entry.width,
        entry.height,
        entry.milliseconds,
        entry.token.0,
        entry.quality,
        entry.watermark as u8,
        entry.request.0,
        &entry.format,
    )
}

/// The entry with these columns; `None` if there is no watermark kind of its number.
pub fn entry(columns: EntryColumns<'_>) -> Option<UsageEntry> {
    let (time, input_bytes, output_bytes, width, height, milliseconds, ..) = columns;
    let (.., token, quality, watermark, request, format) = columns;
    Some(UsageEntry {
        time: from_milliseconds(time),
        token: TokenNumber(token),
        format: format.to_owned(),
        input_bytes,
        output_bytes,
        width,
        height,
        quality,
        watermark: WatermarkKind::from_number(watermark)?,
        milliseconds,
        request: RequestId(request),
    })
}

/// The columns of sums.
pub fn of_totals(totals: UsageTotals) -> TotalColumns {
    (totals.conversions, totals.input_bytes, totals.output_bytes)
}

/// The sums with these columns.
pub fn totals((conversions, input_bytes, output_bytes): TotalColumns) -> UsageTotals {
    UsageTotals {
        conversions,
        input_bytes,
        output_bytes,
    }
}

/// The columns of a failed conversion, without its key.
pub fn of_failure(failure: &Failure) -> FailureColumns<'_> {
    (
        to_milliseconds(failure.time),
        failure.input_bytes,
        failure.token.0,
        failure.status,
        failure.request.0,
        &failure.code,
    )
}

/// The failed conversion with these columns.
pub fn failure(columns: FailureColumns<'_>) -> Failure {
    let (time, input_bytes, token, status, request, code) = columns;
    Failure {
        time: from_milliseconds(time),
        token: TokenNumber(token),
        status,
        code: code.to_owned(),
        input_bytes,
        request: RequestId(request),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_back_from_its_columns() {
        let columns = (1, 2, 3, 4, 5, 6, 7, 8, "n", "p");
        let (token, deleted) = token(TokenNumber(9), columns);
        assert_eq!((token.number, deleted), (TokenNumber(9), Some(5)));
        assert_eq!(of_token(&token, deleted), columns);
    }

    #[test]
    fn every_watermark_kind_comes_back_from_its_number() {
        for number in 0..4 {
            let columns = (1, 2, 3, 4, 5, 6, 7, 8, number, 9, "png");
            assert_eq!(of_entry(&entry(columns).unwrap()), columns);
        }
        assert_eq!(entry((1, 2, 3, 4, 5, 6, 7, 8, 4, 9, "png")), None);
    }
}
