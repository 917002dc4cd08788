//! Reads histories, sums and failures.

use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::connection::{Link, Parameter, get};
use super::fault::Fault;
use super::ids;
use super::row::{self, Fields, int, number};
use super::tables;
use crate::auth::AccountId;
use crate::store::clock::DAY;
use crate::store::entry_id::EntryId;
use crate::store::failure::{FailureFilter, FailurePage, StatusFilter};
use crate::store::usage::{Days, UsageDay, UsageEntry, UsageFilter, UsagePage, UsageTotals};

/// The most entries that are looked at for one page.
const MAX_READ: u64 = 50_000;

/// The most ranges of keys that are read by one statement.
const MAX_RANGES: usize = 64;

/// The conditions of a query and their parameters, of which the first one is the account.
struct Conditions {
    sql: String,
    values: Vec<(Box<dyn ToSql + Sync + Send>, Type)>,
}

impl Conditions {
    fn of(account: AccountId) -> Conditions {
        Conditions {
            sql: "TRUE".to_owned(),
            values: vec![(Box::new(int(account.0)), Type::INT8)],
        }
    }

    /// Adds a parameter, and returns what stands for it.
    fn parameter(&mut self, value: impl ToSql + Sync + Send + 'static, of_type: Type) -> String {
        self.values.push((Box::new(value), of_type));
        format!("${}", self.values.len())
    }

    /// Adds a condition, in which `?` stands for the parameter.
    fn and(&mut self, condition: &str, value: impl ToSql + Sync + Send + 'static, of_type: Type) {
        let place = self.parameter(value, of_type);
        self.sql.push_str(" AND ");
        self.sql.push_str(&condition.replace('?', &place));
    }

    fn and_days(&mut self, days: Days) {
        if days.first > 0 {
            let start = int(u64::from(days.first) * DAY);
            self.and("time >= ?", start, Type::INT8);
        }
        if days.last < u32::MAX {
            let end = int((u64::from(days.last) + 1) * DAY);
            self.and("time < ?", end, Type::INT8);
        }
    }

    /// Token and format.
    fn and_kind(&mut self, filter: &UsageFilter) {
        if let Some(token) = filter.token {
            self.and("token = ?", i64::from(token.0), Type::INT8);
        }
        if let Some(format) = &filter.format {
            self.and("format = ?", format.clone(), Type::TEXT);
        }
    }

    fn parameters(&self) -> Vec<Parameter<'_>> {
        let values = self.values.iter();
        values
            .map(|(value, of_type)| (&**value as &(dyn ToSql + Sync), of_type.clone()))
            .collect()
    }
}

/// A page of a history.
pub async fn page(
    link: &Link,
    account: AccountId,
    filter: &UsageFilter,
    before: Option<EntryId>,
    limit: usize,
) -> Result<UsagePage, Fault> {
    let before = before.map_or(Uuid::max(), |before| Uuid::from_u128(before.0));
    let ranges = if filter.is_empty() {
        vec![Range::ALL]
    } else {
        ranges(link, account, filter, before).await?
    };
    let (mut entries, mut looked_at) = (Vec::new(), 0);
    let mut left = &ranges[..];
    while let Some(count) = first_ranges(left, limit - entries.len()) {
        let (some, rest) = left.split_at(count);
        let wanted = limit - entries.len();
        let mut found = entries_in(link, account, filter, before, some, wanted + 1).await?;
        if found.len() > wanted {
            found.truncate(wanted);
            entries.extend(found);
            let next_before = entries.last().map(|(id, _)| *id);
            return Ok(UsagePage {
                entries,
                next_before,
            });
        }
        entries.extend(found);
        if let [range] = some
            && !filter.is_empty()
            && let Some(reached) = reached(link, account, *range, before).await?
        {
            // The page has all that pass of those that were looked at.
            let next_before = Some(reached);
            return Ok(UsagePage {
                entries,
                next_before,
            });
        }
        looked_at += some.iter().map(|range| range.entries).sum::<u64>();
        if looked_at >= MAX_READ && !rest.is_empty() {
            let next_before = some.last().map(|range| EntryId(range.start().as_u128()));
            return Ok(UsagePage {
                entries,
                next_before,
            });
        }
        left = rest;
    }
    Ok(UsagePage {
        entries,
        next_before: None,
    })
}

/// Keys between which entries that pass a filter are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    /// The milliseconds in the first key.
    first: u64,
    /// The milliseconds in the last key.
    last: u64,
    /// How many entries that pass there were; some may be removed.
    passing: u64,
    /// How many entries of the days there were: that is about how many are looked at.
    entries: u64,
}

impl Range {
    /// All of a history.
    const ALL: Range = Range {
        first: 0,
        last: (1 << 48) - 1,
        passing: u64::MAX,
        entries: u64::MAX,
    };

    /// No key of the range is less.
    fn start(self) -> Uuid {
        ids::first_at(self.first)
    }

    /// All keys of the range that are before this one are less than the result.
    fn bound(self, before: Uuid) -> Uuid {
        if self.last >= ids::milliseconds(Uuid::max()) {
            return before;
        }
        ids::first_at(self.last + 1).min(before)
    }
}

/// How many of the ranges are read at a time: those that are likely to fill a page with so many
/// entries, as long as few entries are looked at; `None` if there is none.
fn first_ranges(ranges: &[Range], wanted: usize) -> Option<usize> {
    let (mut passing, mut entries) = (0_u64, 0_u64);
    let count = ranges.iter().take(MAX_RANGES).take_while(|range| {
        let is_enough = passing > wanted as u64;
        let is_too_much = entries > 0 && entries.saturating_add(range.entries) > MAX_READ;
        passing = passing.saturating_add(range.passing);
        entries = entries.saturating_add(range.entries);
        !is_enough && !is_too_much
    });
    Some(count.count()).filter(|count| *count > 0)
}

/// Between which keys before this one the entries that pass are, the last ones first. No two
/// overlap.
async fn ranges(
    link: &Link,
    account: AccountId,
    filter: &UsageFilter,
    before: Uuid,
) -> Result<Vec<Range>, Fault> {
    let mut conditions = Conditions::of(account);
    let Days { first, last } = filter.days;
    let [first, last] = [first, last].map(|day| conditions.parameter(i64::from(day), Type::INT8));
    conditions.and_kind(filter);
    let passes = &conditions.sql;
    let sql = format!(
        "SELECT min(first_key) FILTER (WHERE {passes}), max(last_key) FILTER (WHERE {passes}),
                (sum(conversions) FILTER (WHERE {passes}))::INT8, sum(conversions)::INT8
         FROM usage_days WHERE account = $1 AND day BETWEEN {first} AND {last}
         GROUP BY day HAVING count(*) FILTER (WHERE {passes}) > 0"
    );
    let rows = link.query(&sql, &conditions.parameters()).await?;
    let range = |row| {
        Ok(Range {
            first: number(row, 0)?,
            last: number(row, 1)?,
            passing: number(row, 2)?,
            entries: number(row, 3)?,
        })
    };
    let mut ranges: Vec<_> = rows.iter().map(range).collect::<Result<_, Fault>>()?;
    ranges.retain(|range| range.start() < before);
    Ok(without_overlaps(ranges))
}

fn without_overlaps(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort_unstable_by_key(|range| std::cmp::Reverse(range.last));
    let mut apart: Vec<Range> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match apart.last_mut() {
            Some(later) if range.last >= later.first => {
                later.first = later.first.min(range.first);
                later.passing = later.passing.saturating_add(range.passing);
                later.entries = later.entries.saturating_add(range.entries);
            }
            _ => apart.push(range),
        }
    }
    apart
}

/// At most so many entries that pass, in these ranges and before this key, the last one first. If
/// it is one range, only the last ones of many are looked at.
async fn entries_in(
    link: &Link,
    account: AccountId,
    filter: &UsageFilter,
    before: Uuid,
    ranges: &[Range],
    limit: usize,
) -> Result<Vec<(EntryId, UsageEntry)>, Fault> {
    let mut conditions = Conditions::of(account);
    let places: Vec<_> = ranges
        .iter()
        .map(|range| {
            [range.start(), range.bound(before)].map(|key| conditions.parameter(key, Type::UUID))
        })
        .collect();
    conditions.and_days(filter.days);
    conditions.and_kind(filter);
    let few = match ranges {
        [_] if !filter.is_empty() => format!("LIMIT {MAX_READ}"),
        _ => String::new(),
    };
    // One part for each range: of a join with all of them, the database expects so many rows that
    // it first compiles the statement (130 ms).
    let columns = tables::USAGE.columns("looked_at");
    let part = |[start, bound]: &[String; 2]| {
        format!(
            "(SELECT {columns} FROM (
                 SELECT * FROM usage WHERE account = $1 AND id >= {start} AND id < {bound}
                 ORDER BY id DESC {few}
             ) AS looked_at WHERE {} ORDER BY id DESC LIMIT {limit})",
            conditions.sql
        )
    };
    let parts: Vec<_> = places.iter().map(part).collect();
    let parts = parts.join(" UNION ALL ");
    let sql = format!("SELECT * FROM ({parts}) AS passing ORDER BY id DESC LIMIT {limit}");
    let rows = link.query(&sql, &conditions.parameters()).await?;
    let entry = |row| {
        let (id, entry) = row::entry(&mut Fields::of(row))?;
        Ok((EntryId(id.as_u128()), entry))
    };
    rows.iter().map(entry).collect()
}

/// The last key of a range that was looked at for a page, if the range has entries beyond it.
async fn reached(
    link: &Link,
    account: AccountId,
    range: Range,
    before: Uuid,
) -> Result<Option<EntryId>, Fault> {
    let sql = "SELECT id FROM usage WHERE account = $1 AND id >= $2 AND id < $3
               ORDER BY id DESC OFFSET $4 LIMIT 2";
    let parameters = [
        (&int(account.0) as _, Type::INT8),
        (&range.start() as _, Type::UUID),
        (&range.bound(before) as _, Type::UUID),
        (&int(MAX_READ - 1) as _, Type::INT8),
    ];
    let rows = link.query(sql, &parameters).await?;
    match &rows[..] {
        [last, _] => Ok(Some(EntryId(get::<Uuid>(last, 0)?.as_u128()))),
        _ => Ok(None),
    }
}

/// The sums of an account by day, token and format.
pub async fn days(link: &Link, account: AccountId, days: Days) -> Result<Vec<UsageDay>, Fault> {
    let passing = "account = $1 AND day BETWEEN $2 AND $3 ORDER BY day, token, format";
    let (account, first, last) = (int(account.0), i64::from(days.first), i64::from(days.last));
    let parameters = [&account, &first, &last].map(|it| (it as _, Type::INT8));
    let rows = link
        .query(&tables::DAYS.select(passing), &parameters)
        .await?;
    let day = |row| Ok(row::day(&mut Fields::of(row))?.0);
    rows.iter().map(day).collect()
}

/// The sums over a history.
pub async fn totals(link: &Link, account: AccountId) -> Result<UsageTotals, Fault> {
    let sql = "SELECT coalesce(sum(conversions), 0)::INT8, coalesce(sum(input_bytes), 0)::INT8,
                      coalesce(sum(output_bytes), 0)::INT8
               FROM usage_days WHERE account = $1";
    let row = link
        .query_opt(sql, &[(&int(account.0), Type::INT8)])
        .await?;
    row.map_or(Ok(UsageTotals::default()), |row| Fields::of(&row).totals())
}

/// A page of failed conversions.
pub async fn failures(
    link: &Link,
    account: AccountId,
    filter: &FailureFilter,
    before: Option<EntryId>,
    limit: usize,
) -> Result<FailurePage, Fault> {
    let mut conditions = Conditions::of(account);
    conditions.and_days(filter.days);
    if let Some(before) = before {
        conditions.and("id < ?", Uuid::from_u128(before.0), Type::UUID);
    }
    if let Some(token) = filter.token {
        conditions.and("token = ?", i64::from(token.0), Type::INT8);
    }
    match filter.status {
        Some(StatusFilter::Exact(status)) => {
            conditions.and("status = ?", i64::from(status), Type::INT8);
        }
        Some(StatusFilter::Class(digit)) => {
            conditions.and("status / 100 = ?", i64::from(digit), Type::INT8);
        }
        None => {}
    }
    let passing = format!(
        "account = $1 AND {} ORDER BY id DESC LIMIT {}",
        conditions.sql,
        limit.saturating_add(1)
    );
    let sql = tables::FAILURES.select(&passing);
    let rows = link.query(&sql, &conditions.parameters()).await?;
    let failure = |row| {
        let (id, failure) = row::failure(&mut Fields::of(row))?;
        Ok((EntryId(id.as_u128()), failure))
    };
    let failures: Vec<_> = rows
        .iter()
        .take(limit)
        .map(failure)
        .collect::<Result<_, Fault>>()?;
    let next = failures.last().filter(|_| rows.len() > limit);
    Ok(FailurePage {
        next_before: next.map(|(id, _)| *id),
        failures,
    })
}
