//! The usage history for programs: `GET /api/usage`, `/api/usage.csv`, `/api/usage.ndjson`, and
//! sums by `/api/usage/days` and `/api/usage/months`.

use super::credentials::Credentials;
use super::csv;
use super::pairs::Pairs;
use super::problem::{Kind, Problem};
use super::request::Request;
use super::response::Response;
use super::state::AppState;
use crate::store::{
    self, AccountId, EntryId, FilterTexts, Period, Store, TokenUsage, UsageEntry, UsageFilter,
    UsageSum, UsageTotals, period_text, token_name,
};
use serde::Serialize;
use std::sync::Arc;
use std::time::SystemTime;
use towebp_pipeline::conversion::{CAPPED, DefaultValue, Parameter, Value};

/// Entries of a page, if `limit` is not given.
const DEFAULT_LIMIT: u64 = 100;

/// Most entries of a page: some 200 KB of JSON.
pub const MAX_LIMIT: u64 = 1000;

/// The parameters of a page, beside the token.
pub const PAGE: [Parameter; 2] = [
    Parameter {
        name: "before",
        value: Value::Cursor(EntryId::PATTERN),
        example: "1000",
        default: DefaultValue::Other("none"),
        meaning: "the `next_before` of the page before; the first page without it",
        ..FROM
    },
    Parameter {
        name: "limit",
        value: Value::Count(1, MAX_LIMIT),
        example: "10",
        default: DefaultValue::Given("100"),
        meaning: "the most entries of the page, 1 to 1000",
        as_flag: None,
        otherwise: CAPPED,
    },
];

/// Only from this day on.
pub const FROM: Parameter = Parameter {
    name: "from",
    value: Value::Day,
    example: "2026-11-01",
    default: DefaultValue::Other("none"),
    meaning: "the first day (UTC)",
    as_flag: None,
    otherwise: "400",
};

/// Only up to this day.
pub const TO: Parameter = Parameter {
    name: "to",
    meaning: "the last day (UTC)",
    ..FROM
};

/// Only by this token.
pub const TOKEN_NAME: Parameter = Parameter {
    name: "token_name",
    value: Value::Text,
    example: "default",
    default: DefaultValue::Other("all tokens"),
    meaning: "the name of one of the account's tokens",
    ..FROM
};

/// The filters of entries.
pub const FILTERS: [Parameter; 4] = [
    FROM,
    TO,
    TOKEN_NAME,
    Parameter {
        name: "format",
        value: Value::Word("png, jpeg, gif, bmp, webp or tiff"),
        example: "png",
        default: DefaultValue::Other("all formats"),
        meaning: "the format of the input",
        ..FROM
    },
];

/// Most days that are summed up at a time: the days of ten years. Each has a sum for each token and
/// each format.
const MAX_DAYS: u32 = 3660;

/// A part of a long response ends with the page that brings it to this many bytes: some 3,000 rows
/// of CSV. Each part waits for a worker like any request, so shorter parts would take longer; each
/// client that reads one holds that much memory.
const MIN_PART: usize = 256 << 10;

/// Most pages of the store for one part. A page without an entry that passes the filter takes up to
/// some 20 ms.
const MAX_PAGES: usize = 10;

/// The media type of one JSON object a line.
pub const NDJSON: &str = "application/x-ndjson";

/// A request for entries or sums.
pub struct Listing {
    /// The account.
    pub account: AccountId,
    /// The account's tokens, with deleted ones.
    pub tokens: Vec<TokenUsage>,
    /// The filters, as they were given.
    pub texts: FilterTexts,
    query: Pairs,
    credentials: Credentials,
}

impl Listing {
    /// Reads the request.
    ///
    /// # Errors
    /// 401 without a good token or session, 400 for a parameter that is repeated or no text.
    pub fn of(state: &AppState, request: &Request) -> Result<Listing, Problem> {
        let query = request.query();
        let credentials = Credentials::of(request, &query, &state.settings)?;
        let account = credentials.account(&state.store)?;
        query.check()?;
        Ok(Listing {
            account,
            tokens: state.store.tokens(account)?,
            texts: filter_texts(&query)?,
            query,
            credentials,
        })
    }

    /// Reads the account and its tokens again, which may have changed.
    ///
    /// # Errors
    /// 401 if the token or session is not good any more.
    fn renew(&mut self, store: &Store) -> Result<(), Problem> {
        self.account = self.credentials.account(store)?;
        self.tokens = store.tokens(self.account)?;
        Ok(())
    }

    /// `before`, and `limit` within its bounds.
    ///
    /// # Errors
    /// 400 for a `before` that no answer gave, or a `limit` that is no number.
    pub fn page(&self) -> Result<(Option<EntryId>, usize), Problem> {
        let before = self.query.parameter("before")?.map(str::parse);
        let before = before.transpose().map_err(|_| {
            let detail = "before must be the next_before of a page.".to_owned();
            Problem::new(Kind::InvalidParameter, detail)
        })?;
        let limit = number(&self.query, "limit")?;
        let limit = limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        Ok((before, limit as usize))
    }
}

/// The filters of a query. An empty one counts as none.
///
/// # Errors
/// 400 for one that is repeated.
pub fn filter_texts(query: &Pairs) -> Result<FilterTexts, Problem> {
    let text = |name| -> Result<String, Problem> {
        Ok(query.parameter(name)?.unwrap_or_default().to_owned())
    };
    Ok(FilterTexts {
        from: text("from")?,
        to: text("to")?,
        token_name: text("token_name")?,
        format: text("format")?,
        status: text("status")?,
    })
}

/// One page, newest first, and the totals of the whole history. The parameter `before` takes the
/// `next_before` of the preceding page; `limit` is capped to 1 to 1000. With a filter, a page may
/// have fewer entries, or none, and yet not be the last one.
///
/// # Errors
/// 401 without a good token or session, 400 for a parameter that cannot be used.
pub fn json(state: &AppState, request: &Request) -> Result<Response, Problem> {
    let listing = Listing::of(state, request)?;
    let Listing {
        account, tokens, ..
    } = &listing;
    let filter = listing.texts.usage(tokens)?;
    let (before, limit) = listing.page()?;
    let page = state.store.usage(*account, &filter, before, limit)?;
    let totals = state.store.usage_totals(*account)?;
    Ok(Response::json(&Page {
        entries: page
            .entries
            .iter()
            .map(|(id, entry)| Entry::new(*id, entry, tokens))
            .collect(),
        next_before: page.next_before,
        totals,
        tokens: tokens.iter().map(OfToken::new).collect(),
    }))
}

/// All entries that pass the filter as CSV, newest first, as of the first part: later entries have
/// larger ids and would come before it. They come in parts, see [`Download`].
///
/// # Errors
/// As [`json`].
pub fn csv(state: &AppState, request: &Request) -> Result<Response, Problem> {
    CSV.answer(state, request)
}

const CSV: Download<UsageEntry> = Download {
    file: "towebp-usage.csv",
    media_type: csv::MEDIA_TYPE,
    columns: Entry::COLUMNS,
    page,
    push: |text, id, entry, tokens| Entry::new(id, entry, tokens).push_csv(text),
};

/// All entries that pass the filter, one JSON object a line, in parts as those of [`csv()`].
///
/// # Errors
/// As [`json`].
pub fn ndjson(state: &AppState, request: &Request) -> Result<Response, Problem> {
    let push = |text: &mut String, id, entry: &UsageEntry, tokens: &[TokenUsage]| {
        let entry = Entry::new(id, entry, tokens);
        text.push_str(&serde_json::to_string(&entry).expect("texts and numbers"));
        text.push('\n');
    };
    Download {
        file: "towebp-usage.ndjson",
        media_type: NDJSON,
        columns: &[],
        push,
        ..CSV
    }
    .answer(state, request)
}

fn page(store: &Store, listing: &Listing, before: Option<EntryId>) -> PageOf<UsageEntry> {
    let filter = listing.texts.usage(&listing.tokens)?;
    Ok(store.usage(listing.account, &filter, before, MAX_LIMIT as usize)?)
}

/// The sums of days, oldest first; days without conversions are left out.
///
/// # Errors
/// As [`json`].
pub fn days(state: &AppState, request: &Request) -> Result<Response, Problem> {
    sums(state, request, Period::Day)
}

/// The sums of months, oldest first; months without conversions are left out. A month is summed up
/// over its days within the filter.
///
/// # Errors
/// As [`json`].
pub fn months(state: &AppState, request: &Request) -> Result<Response, Problem> {
    sums(state, request, Period::Month)
}

fn sums(state: &AppState, request: &Request, period: Period) -> Result<Response, Problem> {
    let listing = Listing::of(state, request)?;
    let mut filter = listing.texts.usage(&listing.tokens)?;
    // Without a first day, the last ten years.
    let last = filter.days.last.min(UsageFilter::today(state.store.now()));
    filter.days.first = filter.days.first.max(last.saturating_sub(MAX_DAYS - 1));
    let sums = state.store.usage_sums(listing.account, &filter, period)?;
    let sums: Vec<_> = sums.iter().map(|sum| Sum::new(sum, period)).collect();
    Ok(Response::json(&Sums { sums }))
}

/// A history as a file to save, written row by row.
///
/// It is sent in parts, each from a few pages of the store, so that its memory does not grow with
/// the history, and that a client which reads slowly holds neither a worker nor a view of the
/// database. The token or session is checked again for each part.
pub struct Download<E> {
    /// The name to save it by.
    pub file: &'static str,
    /// The media type.
    pub media_type: &'static str,
    /// The first row of CSV; empty for none.
    pub columns: &'static [&'static str],
    /// Reads a page of entries with smaller ids than the given one, newest first.
    pub page: fn(&Store, &Listing, Option<EntryId>) -> PageOf<E>,
    /// Appends the row of an entry.
    pub push: fn(&mut String, EntryId, &E, &[TokenUsage]),
}

/// A page of entries, or why there is none.
pub type PageOf<E> = Result<store::Page<E>, Problem>;

impl<E: 'static> Download<E> {
    /// The response.
    ///
    /// # Errors
    /// As [`json`].
    pub fn answer(self, state: &AppState, request: &Request) -> Result<Response, Problem> {
        let mut listing = Listing::of(state, request)?;
        let store = Arc::clone(&state.store);
        let disposition = format!("attachment; filename=\"{}\"", self.file);
        let media_type = self.media_type;
        let part = move |store: &Store, listing: &Listing, before| {
            let page = |before| (self.page)(store, listing, before);
            self.part(before, &listing.tokens, page)
        };
        let (text, mut next) = part(&store, &listing, None)?;
        let response = Response::new(200, media_type, text)
            .header("Cache-Control", "private, no-store")
            .header("Content-Disposition", &disposition);
        if next.is_none() {
            return Ok(response);
        }
        let rest = std::iter::from_fn(move || {
            let before = next.take()?;
            let renewed = listing.renew(&store);
            let made = renewed.and_then(|()| part(&store, &listing, Some(before)));
            Some(made.map(|(text, then)| {
                next = then;
                text
            }))
        });
        Ok(Response {
            parts: Some(Box::new(rest)),
            ..response
        })
    }

    /// The text of a part, of entries with smaller ids than `before`. Returns the `before` of the
    /// next part, too, if there is one.
    fn part(
        &self,
        mut before: Option<EntryId>,
        tokens: &[TokenUsage],
        page: impl Fn(Option<EntryId>) -> PageOf<E>,
    ) -> Result<(String, Option<EntryId>), Problem> {
        let mut text = String::new();
        if before.is_none() && !self.columns.is_empty() {
            csv::push_row(&mut text, self.columns);
        }
        for _ in 0..MAX_PAGES {
            let found = page(before)?;
            for (id, entry) in &found.entries {
                (self.push)(&mut text, *id, entry, tokens);
            }
            before = found.next_before;
            if before.is_none() || text.len() >= MIN_PART {
                break;
            }
        }
        Ok((text, before))
    }
}

#[derive(Serialize)]
struct Sums {
    sums: Vec<Sum>,
}

/// The sums of a day or a month.
#[derive(Serialize)]
struct Sum {
    #[serde(flatten)]
    name: PeriodName,
    #[serde(flatten)]
    totals: UsageTotals,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum PeriodName {
    Day(String),
    Month(String),
}

impl Sum {
    fn new(sum: &UsageSum, period: Period) -> Sum {
        let text = period_text(period, sum.first_day);
        Sum {
            name: match period {
                Period::Day => PeriodName::Day(text),
                Period::Month => PeriodName::Month(text),
            },
            totals: sum.totals,
        }
    }
}

#[derive(Serialize)]
struct Page<'a> {
    entries: Vec<Entry<'a>>,
    next_before: Option<EntryId>,
    totals: UsageTotals,
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
    totals: UsageTotals,
}

impl OfToken<'_> {
    fn new(usage: &TokenUsage) -> OfToken<'_> {
        OfToken {
            name: &usage.token.settings.name,
            is_deleted: usage.deleted.is_some(),
            created: rfc3339(usage.token.created),
            last_used: usage.last_used.map(rfc3339),
            totals: usage.totals,
        }
    }
}

csv::row! {
    /// An entry of the history.
    struct Entry<'a> {
        id: EntryId,
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
        request_id: String,
    }
}

impl<'a> Entry<'a> {
    fn new(id: EntryId, entry: &'a UsageEntry, tokens: &'a [TokenUsage]) -> Entry<'a> {
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
            request_id: entry.request.to_string(),
        }
    }
}

/// UTC, with milliseconds.
pub fn rfc3339(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
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
    use crate::store::{RequestId, TokenNumber, WatermarkKind};
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
            request: RequestId(0xabc),
        }
    }

    fn tokens(name: &str) -> [TokenUsage; 1] {
        [TokenUsage::example(0, name)]
    }

    #[test]
    fn rows_of_the_csv_have_the_header_s_columns() {
        for (name, written) in [("default", "default"), ("=1", "\"'=1\"")] {
            let mut text = String::new();
            Entry::new(EntryId(4), &entry(), &tokens(name)).push_csv(&mut text);
            let row = "4,2023-11-14T22:13:20.123Z,png,1000,100,30,20,85,text,7";
            let request = entry().request;
            assert_eq!(text, format!("{row},{written},{request}\r\n"));
        }
    }

    #[test]
    fn the_csv_comes_in_parts_of_bounded_length() {
        const ROWS: u64 = 500_000;
        // The store's pages; every other one finds that a row was added meanwhile.
        let rows = std::cell::Cell::new(ROWS);
        let page = |before: Option<EntryId>| {
            let first = before.and_then(EntryId::sequence);
            let first = first.unwrap_or(rows.get() + 1);
            rows.set(rows.get() + first % 2);
            let ids = (1..first).rev().take(MAX_LIMIT as usize);
            let entries: Vec<_> = ids.map(|id| (id.into(), entry())).collect();
            let last = entries.last().map_or(EntryId(1), |(id, _)| *id);
            Ok(store::Page {
                entries,
                next_before: (last > EntryId(1)).then_some(last),
            })
        };
        let columns = "id,time,format,input_bytes,output_bytes,width,height,quality,watermark,\
                       milliseconds,token,request_id\r\n";
        let (mut before, mut expected, mut parts) = (None, ROWS, 0);
        loop {
            let (text, next) = CSV
                .part(before, &tokens("default"), page)
                .expect("pages do not fail");
            assert!(text.len() < MIN_PART + 200_000, "{} bytes", text.len());
            let rows = text.strip_prefix(columns).unwrap_or(&text);
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
        let query = Pairs::decode(b"limit=ten&other=3");
        assert_eq!(number(&query, "other"), Ok(Some(3)));
        let error = number(&query, "limit").expect_err("a word");
        assert_eq!(error.kind, Kind::InvalidParameter);
        assert_eq!(number(&query, "absent"), Ok(None));
    }
}
