//! `GET /api/usage` and `GET /api/usage.csv`: the usage history for programs.

use super::credentials::Credentials;
use super::pairs::Pairs;
use super::problem::{Kind, Problem};
use super::request::{Body, Request};
use super::response::Response;
use super::state::AppState;
use crate::conversion::{CAPPED, DefaultValue, Parameter, Value};
use crate::front::NEXT_PART;
use crate::store::{AccountId, TokenUsage, UsageEntry, UsagePage, UsageTotals, token_name};
use serde::Serialize;
use std::borrow::Cow;
use std::fmt::Write;
use std::time::SystemTime;

/// Entries of a page, if `limit` is not given.
const DEFAULT_LIMIT: u64 = 100;

/// Most entries of a page: some 200 KB of JSON.
const MAX_LIMIT: u64 = 1000;

/// The parameters of the JSON, beside the token.
pub const PARAMETERS: [Parameter; 2] = [
    Parameter {
        name: "before",
        value: Value::Count(0, u64::MAX),
        example: "1000",
        default: DefaultValue::Other("none"),
        meaning: "the `next_before` of the page before; the first page without it",
        otherwise: "400",
    },
    Parameter {
        name: "limit",
        value: Value::Count(1, MAX_LIMIT),
        example: "10",
        default: DefaultValue::Given("100"),
        meaning: "the most entries of the page, 1 to 1000",
        otherwise: CAPPED,
    },
];

/// A part of the CSV ends with the page that brings it to this many bytes: some 3,000 rows. Each
/// part waits for a worker like any request, so shorter parts would take longer; each client that
/// reads one holds that much memory.
const MIN_PART: usize = 256 << 10;

/// The first row of the CSV.
const COLUMNS: &str =
    "id,time,format,input_bytes,output_bytes,width,height,quality,watermark,milliseconds,token\r\n";

/// One page, newest first, and the totals of the whole history. The parameter `before` takes the
/// `next_before` of the preceding page; `limit` is capped to 1 to 1000.
///
/// # Errors
/// 401 without a good token or session, 400 for numbers that are none.
pub fn json(state: &AppState, request: &Request, _body: &mut Body) -> Result<Response, Problem> {
    let (account, query) = account(state, request)?;
    let before = number(&query, "before")?;
    let limit = number(&query, "limit")?
        .unwrap_or(DEFAULT_LIMIT)
        .clamp(1, MAX_LIMIT);
    let page = state.store.usage(account, before, limit as usize)?;
    let totals = state.store.usage_totals(account)?;
    let tokens = state.store.tokens(account)?;
    Ok(Response::json(&Page {
        entries: page
            .entries
            .iter()
            .map(|(id, entry)| Entry::new(*id, entry, &tokens))
            .collect(),
        next_before: page.next_before,
        totals: totals.into(),
        tokens: tokens.iter().map(OfToken::new).collect(),
    }))
}

/// The whole history, newest first, as of the first part: later entries have larger numbers and
/// would come before it.
///
/// It is answered in parts, each from a few pages of the store, so that its memory does not grow
/// with the history, and that a client which reads slowly holds neither a worker nor a view of the
/// database. The token or session is checked again for each part.
///
/// # Errors
/// 401 without a good token or session.
pub fn csv(state: &AppState, request: &Request, _body: &mut Body) -> Result<Response, Problem> {
    let (account, _) = account(state, request)?;
    let before = request
        .header(NEXT_PART)
        .and_then(|number| number.parse().ok());
    let tokens = state.store.tokens(account)?;
    let (text, next) = csv_part(before, &tokens, |before| {
        state.store.usage(account, before, MAX_LIMIT as usize)
    })?;
    let response = Response::new(200, "text/csv; charset=utf-8; header=present", text)
        .header("Cache-Control", "private, no-store")
        .header(
            "Content-Disposition",
            "attachment; filename=\"towebp-usage.csv\"",
        );
    Ok(match next {
        Some(before) => response.header(NEXT_PART, &before.to_string()),
        None => response,
    })
}

/// One part of the CSV: the rows with smaller numbers than `before`, and the `before` of the next
/// part, if there is one. The first part, without `before`, begins with the columns' names.
fn csv_part<E>(
    before: Option<u64>,
    tokens: &[TokenUsage],
    page: impl Fn(Option<u64>) -> Result<UsagePage, E>,
) -> Result<(String, Option<u64>), E> {
    let mut text = String::new();
    if before.is_none() {
        text.push_str(COLUMNS);
    }
    let mut before = before;
    loop {
        let page = page(before)?;
        for (id, entry) in &page.entries {
            push_row(&mut text, &Entry::new(*id, entry, tokens));
        }
        before = page.next_before;
        if before.is_none() || text.len() >= MIN_PART {
            return Ok((text, before));
        }
    }
}

#[derive(Serialize)]
struct Page<'a> {
    entries: Vec<Entry<'a>>,
    next_before: Option<u64>,
    totals: Totals,
    tokens: Vec<OfToken<'a>>,
}

/// The sums over the conversions by one token.
#[derive(Serialize)]
struct OfToken<'a> {
    name: &'a str,
    is_deleted: bool,
    created: String,
    last_used: Option<String>,
    #[serde(flatten)]
    totals: Totals,
}

impl OfToken<'_> {
    fn new(usage: &TokenUsage) -> OfToken<'_> {
        OfToken {
            name: &usage.token.settings.name,
            is_deleted: usage.deleted.is_some(),
            created: rfc3339(usage.token.created),
            last_used: usage.last_used.map(rfc3339),
            totals: usage.totals.into(),
        }
    }
}

#[derive(Serialize)]
struct Entry<'a> {
    id: u64,
    time: String,
    format: &'a str,
    input_bytes: u64,
    output_bytes: u64,
    width: u32,
    height: u32,
    quality: u8,
    watermark: &'static str,
    milliseconds: u32,
    token: &'a str,
}

#[derive(Serialize)]
struct Totals {
    conversions: u64,
    input_bytes: u64,
    output_bytes: u64,
}

impl<'a> Entry<'a> {
    fn new(id: u64, entry: &'a UsageEntry, tokens: &'a [TokenUsage]) -> Entry<'a> {
        Entry {
            id,
            time: rfc3339(entry.time),
            format: &entry.format,
            input_bytes: entry.input_bytes,
            output_bytes: entry.output_bytes,
            width: entry.width,
            height: entry.height,
            quality: entry.quality,
            watermark: entry.watermark.name(),
            milliseconds: entry.milliseconds,
            token: token_name(tokens, entry.token),
        }
    }
}

impl From<UsageTotals> for Totals {
    fn from(totals: UsageTotals) -> Totals {
        let UsageTotals {
            conversions,
            input_bytes,
            output_bytes,
        } = totals;
        Totals {
            conversions,
            input_bytes,
            output_bytes,
        }
    }
}

/// Appends one row. No field but the token's name needs quotes: they are numbers, times and the
/// server's own words.
fn push_row(text: &mut String, entry: &Entry<'_>) {
    let Entry {
        id,
        time,
        format,
        input_bytes,
        output_bytes,
        width,
        height,
        quality,
        watermark,
        milliseconds,
        token,
    } = entry;
    let token = quoted(token);
    write!(
        text,
        "{id},{time},{format},{input_bytes},{output_bytes},{width},{height},{quality},{watermark},{milliseconds},{token}\r\n"
    )
    .expect("a String takes everything");
}

/// A field of CSV, in quotes if it needs them (RFC 4180, section 2).
fn quoted(field: &str) -> Cow<'_, str> {
    if field.contains([',', '"']) {
        Cow::Owned(format!("\"{}\"", field.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(field)
    }
}

/// UTC, with milliseconds.
fn rfc3339(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

/// The account whose history is asked for, and the query.
fn account(state: &AppState, request: &Request) -> Result<(AccountId, Pairs), Problem> {
    let query = request.query();
    let credentials = Credentials::of(request, &query, &state.settings)?;
    let account = credentials.account(&state.store)?;
    query.check()?;
    Ok((account, query))
}

fn number(query: &Pairs, name: &'static str) -> Result<Option<u64>, Problem> {
    let Some(text) = query.parameter(name)? else {
        return Ok(None);
    };
    match text.parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(Problem::new(
            Kind::InvalidParameter,
            format!("{name} must be a whole number, 0 or more."),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{TokenNumber, WatermarkKind};
    use std::time::Duration;

    fn entry() -> UsageEntry {
        UsageEntry {
            time: SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123),
            token: TokenNumber::DEFAULT,
            format: "png".to_owned(),
            input_bytes: 1000,
            output_bytes: 100,
            width: 30,
            height: 20,
            quality: 85,
            watermark: WatermarkKind::Text,
            milliseconds: 7,
        }
    }

    fn tokens(name: &str) -> [TokenUsage; 1] {
        [TokenUsage::example(0, name)]
    }

    #[test]
    fn rows_of_the_csv_have_the_header_s_columns() {
        for (name, written) in [("default", "default"), ("a, \"b\"", "\"a, \"\"b\"\"\"")] {
            let mut text = String::new();
            push_row(&mut text, &Entry::new(4, &entry(), &tokens(name)));
            let row = "4,2023-11-14T22:13:20.123Z,png,1000,100,30,20,85,text,7";
            assert_eq!(text, format!("{row},{written}\r\n"));
        }
    }

    #[test]
    fn the_csv_comes_in_parts_of_bounded_length() {
        const ROWS: u64 = 500_000;
        // The store's pages; every other one finds that a row was added meanwhile.
        let rows = std::cell::Cell::new(ROWS);
        let page = |before: Option<u64>| {
            let first = before.unwrap_or(rows.get() + 1);
            rows.set(rows.get() + first % 2);
            let ids = (1..first).rev().take(MAX_LIMIT as usize);
            let entries: Vec<_> = ids.map(|id| (id, entry())).collect();
            let last = entries.last().map_or(1, |(id, _)| *id);
            Ok::<_, ()>(UsagePage {
                entries,
                next_before: (last > 1).then_some(last),
            })
        };
        let (mut before, mut expected, mut parts) = (None, ROWS, 0);
        loop {
            let (text, next) =
                csv_part(before, &tokens("default"), page).expect("pages do not fail");
            assert!(text.len() < MIN_PART + 200_000, "{} bytes", text.len());
            let rows = text.strip_prefix(COLUMNS).unwrap_or(&text);
            assert_eq!(rows.len() < text.len(), parts == 0, "the columns come once");
            for row in rows.lines() {
                assert!(row.starts_with(&format!("{expected},")), "{row}");
                expected -= 1;
            }
            parts += 1;
            before = next;
            if before.is_none() {
                break;
            }
        }
        assert_eq!(expected, 0, "all rows of the start");
        assert!(parts > 50, "{parts} parts");
    }

    #[test]
    fn numbers_must_be_whole() {
        let query = Pairs::decode(b"limit=ten&before=3");
        assert_eq!(number(&query, "before"), Ok(Some(3)));
        let error = number(&query, "limit").expect_err("a word");
        assert_eq!(error.kind, Kind::InvalidParameter);
        assert_eq!(number(&query, "absent"), Ok(None));
    }
}
