//! Reads histories, sums and failures.

use uuid::Uuid;

use super::cell::{Cell, Fields, cells};
use super::connection::Link;
use super::fault::Result;
use super::ids;
use super::row;
use super::tables;
use crate::auth::AccountId;
use crate::store::clock::DAY;
use crate::store::engine::PageRange;
use crate::store::entry_id::{EntryId, Page};
use crate::store::failure::{Failure, FailureFilter, StatusFilter};
use crate::store::usage::{Days, UsageDay, UsageEntry, UsageFilter, UsageTotals};

/// The most entries that are read for one page.
const MAX_READ: u64 = 50_000;

/// The most ranges of keys that are read by one statement.
const MAX_RANGES: usize = 64;

/// The conditions of a query and their parameters, of which the first one is the account.
struct Conditions {
    sql: String,
    values: Vec<Cell>,
}

impl Conditions {
    fn of(account: AccountId) -> Conditions {
        Conditions {
            sql: "TRUE".to_owned(),
            values: vec![account.into()],
        }
    }

    /// Adds a parameter, and returns what stands for it.
    fn parameter(&mut self, value: impl Into<Cell>) -> String {
        self.values.push(value.into());
        format!("${}", self.values.len())
    }

    /// Adds a condition, in which `?` stands for the parameter.
    fn and(&mut self, condition: &str, value: impl Into<Cell>) {
        let place = self.parameter(value);
        self.sql.push_str(" AND ");
        self.sql.push_str(&condition.replace('?', &place));
    }

    fn and_days(&mut self, days: Days) {
        if days.first > 0 {
            self.and("time >= ?", u64::from(days.first) * DAY);
        }
        if days.last < u32::MAX {
            self.and("time < ?", (u64::from(days.last) + 1) * DAY);
        }
    }

    /// Token and format.
    fn and_kind(&mut self, filter: &UsageFilter) {
        if let Some(token) = filter.token {
            self.and("token = ?", token);
        }
        if let Some(format) = &filter.format {
            self.and("format = ?", &**format);
        }
    }
}

/// A page of a history.
pub async fn page(
    link: &Link,
    account: AccountId,
    filter: &UsageFilter,
    PageRange { before, limit }: PageRange,
) -> Result<Page<UsageEntry>> {
    let before = before.map_or(Uuid::max(), |before| Uuid::from_u128(before.0));
    let ranges = if filter.is_empty() {
        vec![Range::ALL]
    } else {
        ranges(link, account, filter, before).await?
    };
    let (mut entries, mut looked_at, mut next_before) = (Vec::new(), 0, None);
    let mut left = &ranges[..];
    while let Some(count) = first_ranges(left, limit - entries.len()) {
        let (some, rest) = left.split_at(count);
        let wanted = limit - entries.len() + 1;
        entries.extend(entries_in(link, account, filter, before, some, wanted).await?);
        if entries.len() > limit {
            entries.truncate(limit);
            next_before = entries.last().map(|(id, _)| *id);
            break;
        }
        if let [range] = some
            && !filter.is_empty()
        {
            // The page has all entries read that pass.
            next_before = reached(link, account, *range, before).await?;
        }
        looked_at += some.iter().map(|range| range.entries).sum::<u64>();
        if next_before.is_none() && looked_at >= MAX_READ && !rest.is_empty() {
            next_before = some.last().map(|range| EntryId(range.start().as_u128()));
        }
        if next_before.is_some() {
            break;
        }
        left = rest;
    }
    Ok(Page {
        entries,
        next_before,
    })
}

/// Keys between which entries that pass a filter are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    /// The milliseconds in the first key.
    first: u64,
    /// The milliseconds in the last key.
    last: u64,
    /// The number of entries that pass, with removed ones.
    passing: u64,
    /// The number of entries of the days, with removed ones: about as many are read.
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

/// The number of ranges to read at a time: as many as are likely to fill a page with so many
/// entries, unless too many entries would be read. `None` if there are no ranges.
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

/// The ranges of keys before this one in which entries pass, the last range first. No two overlap.
async fn ranges(
    link: &Link,
    account: AccountId,
    filter: &UsageFilter,
    before: Uuid,
) -> Result<Vec<Range>> {
    let mut conditions = Conditions::of(account);
    let Days { first, last } = filter.days;
    let [first, last] = [first, last].map(|day| conditions.parameter(day));
    conditions.and_kind(filter);
    let passes = &conditions.sql;
    let sql = format!(
        "SELECT min(first_key) FILTER (WHERE {passes}), max(last_key) FILTER (WHERE {passes}),
                (sum(conversions) FILTER (WHERE {passes}))::INT8, sum(conversions)::INT8
         FROM usage_days WHERE account = $1 AND day BETWEEN {first} AND {last}
         GROUP BY day HAVING count(*) FILTER (WHERE {passes}) > 0"
    );
    let range = |row: &mut Fields<'_>| {
        let (first, last, passing, entries) = row.read()?;
        Ok(Range {
            first,
            last,
            passing,
            entries,
        })
    };
    let mut ranges = link.all(&sql, &conditions.values, range).await?;
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

/// At most `limit` entries that pass, in these ranges and before this key, the last one first. If
/// there is one range, only its last [`MAX_READ`] entries are read.
async fn entries_in(
    link: &Link,
    account: AccountId,
    filter: &UsageFilter,
    before: Uuid,
    ranges: &[Range],
    limit: usize,
) -> Result<Vec<(EntryId, UsageEntry)>> {
    let mut conditions = Conditions::of(account);
    let places: Vec<_> = ranges
        .iter()
        .map(|range| [range.start(), range.bound(before)].map(|key| conditions.parameter(key)))
        .collect();
    conditions.and_days(filter.days);
    conditions.and_kind(filter);
    let few = match ranges {
        [_] if !filter.is_empty() => format!("LIMIT {MAX_READ}"),
        _ => String::new(),
    };
    // One part for each range: the database expects so many rows of a join with all ranges that it
    // first compiles the statement (130 ms).
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
    let entry = |row: &mut Fields<'_>| {
        let (id, entry) = row::entry(row)?;
        Ok((EntryId(id.as_u128()), entry))
    };
    link.all(&sql, &conditions.values, entry).await
}

/// The last key of a range that was read for a page, if the range has entries beyond it.
async fn reached(
    link: &Link,
    account: AccountId,
    range: Range,
    before: Uuid,
) -> Result<Option<EntryId>> {
    let sql = "SELECT id FROM usage WHERE account = $1 AND id >= $2 AND id < $3
               ORDER BY id DESC OFFSET $4 LIMIT 2";
    let id = |row: &mut Fields<'_>| Ok(EntryId(row.read::<Uuid>()?.as_u128()));
    let ids = link
        .all(
            sql,
            cells![account, range.start(), range.bound(before), MAX_READ - 1],
            id,
        )
        .await?;
    match ids[..] {
        [last, _] => Ok(Some(last)),
        _ => Ok(None),
    }
}

/// The sums of an account by day, token and format.
pub async fn days(link: &Link, account: AccountId, days: Days) -> Result<Vec<UsageDay>> {
    let passing = "account = $1 AND day BETWEEN $2 AND $3 ORDER BY day, token, format";
    let day = |row: &mut Fields<'_>| Ok(row::day(row)?.0);
    let sql = tables::DAYS.select(passing);
    link.all(&sql, cells![account, days.first, days.last], day)
        .await
}

/// The sums over a history.
pub async fn totals(link: &Link, account: AccountId) -> Result<UsageTotals> {
    let sql = "SELECT coalesce(sum(conversions), 0)::INT8, coalesce(sum(input_bytes), 0)::INT8,
                      coalesce(sum(output_bytes), 0)::INT8
               FROM usage_days WHERE account = $1";
    let totals = link.first(sql, cells![account], row::totals).await?;
    Ok(totals.unwrap_or_default())
}

/// A page of failed conversions.
pub async fn failures(
    link: &Link,
    account: AccountId,
    filter: &FailureFilter,
    PageRange { before, limit }: PageRange,
) -> Result<Page<Failure>> {
    let mut conditions = Conditions::of(account);
    conditions.and_days(filter.days);
    if let Some(before) = before {
        conditions.and("id < ?", Uuid::from_u128(before.0));
    }
    if let Some(token) = filter.token {
        conditions.and("token = ?", token);
    }
    match filter.status {
        Some(StatusFilter::Exact(status)) => conditions.and("status = ?", status),
        Some(StatusFilter::Class(digit)) => conditions.and("status / 100 = ?", digit),
        None => {}
    }
    let passing = format!(
        "account = $1 AND {} ORDER BY id DESC LIMIT {}",
        conditions.sql,
        limit.saturating_add(1)
    );
    let sql = tables::FAILURES.select(&passing);
    let failure = |row: &mut Fields<'_>| {
        let (id, failure) = row::failure(row)?;
        Ok((EntryId(id.as_u128()), failure))
    };
    let failures = link.all(&sql, &conditions.values, failure).await?;
    Ok(Page::of(failures, limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_ranges_are_read_at_a_time_as_fill_a_page_and_not_too_many_entries() {
        let of = |passing, entries| Range {
            first: 0,
            last: 0,
            passing,
            entries,
        };
        let full = MAX_READ;
        for (ranges, wanted, expected) in [
            (vec![], 10, None),
            (vec![Range::ALL], 10, Some(1)),
            // One more entry than wanted tells whether there is a next page.
            (vec![of(10, 10); 3], 10, Some(2)),
            (vec![of(11, 11); 3], 10, Some(1)),
            (vec![of(9, 10); 3], 10, Some(2)),
            (vec![of(1, 1); 100], 10, Some(11)),
            (vec![of(1, 1); 100], 1000, Some(MAX_RANGES)),
            // The first one is read however long it is.
            (vec![of(1, full + 1), of(1, 1)], 10, Some(1)),
            (
                vec![of(1, full / 2), of(1, full / 2), of(1, 1)],
                10,
                Some(2),
            ),
            (vec![of(1, full / 2), of(1, full / 2 + 1)], 10, Some(1)),
        ] {
            assert_eq!(first_ranges(&ranges, wanted), expected, "{ranges:?}");
        }
    }
}
