//! Conversions that failed: how they are kept, and `GET /api/failures` and `/api/failures.csv`.

use super::credentials::{Token, is_of_page_script};
use super::csv;
use super::problem::{Kind, Problem};
use super::request::Request;
use super::response::Response;
use super::state::AppState;
use super::usage::{self, Download, Listing, MAX_LIMIT};
use crate::store::{Caller, EntryId, Failure, TokenUsage, token_name};
use serde::Serialize;
use towebp_pipeline::conversion::{DefaultValue, Parameter, Value};

/// The filters of failed conversions.
pub const FILTERS: [Parameter; 4] = [
    usage::FROM,
    usage::TO,
    usage::TOKEN_NAME,
    Parameter {
        name: "status",
        value: Value::Status,
        example: "4xx",
        default: DefaultValue::Other("all"),
        meaning: "the status code, 400 to 599, or all that begin with 4 or 5",
        ..usage::FROM
    },
];

/// Problems of requests that the script of the page that converts cancels or repeats by itself.
/// They are not shown to the account's owner.
const SETTLED_BY_PAGE: [Kind; 5] = [
    Kind::BodyCutShort,
    Kind::RateLimited,
    Kind::Busy,
    Kind::TooManyConnections,
    Kind::StorageUnavailable,
];

/// Keeps a failed conversion of a known caller, but not that the client has gone. `received` is the
/// number of body bytes; without it the announced length is kept. The event loop may call this.
pub fn note(
    state: &AppState,
    caller: &Caller,
    request: &Request,
    received: Option<u64>,
    problem: &Problem,
) {
    let is_settled =
        SETTLED_BY_PAGE.contains(&problem.kind) && is_of_page_script(request, &state.settings);
    if is_settled || problem.kind == Kind::ClientGone {
        return;
    }
    let row = problem.kind.row();
    let failure = Failure {
        time: state.store.now(),
        token: caller.token,
        status: row.status,
        code: row.code.to_owned(),
        input_bytes: received.unwrap_or(request.announced),
        request: request.id,
    };
    state.store.record_failure(caller.account, failure);
}

/// Keeps a conversion that the front has rejected, if its head names a known account. The event
/// loop may call this.
pub fn note_rejected(state: &AppState, request: &Request, problem: &Problem) {
    let Ok(token) = Token::of(request, &request.query(), &state.settings) else {
        return;
    };
    if let Ok(checked) = token.check(&state.store)
        && let Some(caller) = checked.last_known()
    {
        note(state, caller, request, None, problem);
    }
}

/// One page of failed conversions, newest first. The parameters are those of the history, with
/// `status` in place of `format`.
///
/// # Errors
/// 401 without a good token or session, 400 for a parameter that cannot be used.
pub fn json(state: &AppState, request: &Request) -> Result<Response, Problem> {
    let listing = Listing::of(state, request)?;
    let filter = listing.texts.failures(&listing.tokens)?;
    let (before, limit) = listing.page()?;
    let page = state
        .store
        .failures(listing.account, &filter, before, limit)?;
    let failures = page.entries.iter();
    Ok(Response::json(&Page {
        failures: failures
            .map(|(id, failure)| Entry::new(*id, failure, &listing.tokens))
            .collect(),
        next_before: page.next_before,
    }))
}

/// All failed conversions that pass the filter, newest first, in parts, as the history is sent.
///
/// # Errors
/// As [`json`].
pub fn csv(state: &AppState, request: &Request) -> Result<Response, Problem> {
    Download {
        file: "towebp-failures.csv",
        media_type: csv::MEDIA_TYPE,
        columns: Entry::COLUMNS,
        page: |store, listing, before| {
            let filter = listing.texts.failures(&listing.tokens)?;
            let limit = MAX_LIMIT as usize;
            Ok(store.failures(listing.account, &filter, before, limit)?)
        },
        push: |text, id, failure, tokens| Entry::new(id, failure, tokens).push_csv(text),
    }
    .answer(state, request)
}

#[derive(Serialize)]
struct Page<'a> {
    failures: Vec<Entry<'a>>,
    next_before: Option<EntryId>,
}

csv::row! {
    /// A failed conversion.
    struct Entry<'a> {
        id: EntryId,
        time: String,
        status: u16,
        code: &'a str,
        input_bytes: u64,
        token: &'a str,
        request_id: String,
    }
}

impl<'a> Entry<'a> {
    fn new(id: EntryId, failure: &'a Failure, tokens: &'a [TokenUsage]) -> Entry<'a> {
        Entry {
            id,
            time: usage::rfc3339(failure.time),
            status: failure.status,
            code: &failure.code,
            input_bytes: failure.input_bytes,
            token: token_name(tokens, failure.token),
            request_id: failure.request.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{RequestId, TokenNumber};
    use std::time::{Duration, SystemTime};

    #[test]
    fn rows_have_the_header_s_columns() {
        let failure = Failure {
            time: SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123),
            token: TokenNumber::DEFAULT,
            status: 413,
            code: "body_too_large".to_owned(),
            input_bytes: 99,
            request: RequestId(0xabc),
        };
        let tokens = [TokenUsage::example(0, "-1")];
        let mut text = String::new();
        Entry::new(EntryId(4), &failure, &tokens).push_csv(&mut text);
        let row = "4,2023-11-14T22:13:20.123Z,413,body_too_large,99,\"'-1\",00000000000000000000000000000abc\r\n";
        assert_eq!(text, row);
        assert_eq!(Entry::COLUMNS.len(), 7);
    }
}
