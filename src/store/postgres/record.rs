//! Records conversions in groups: one idempotent statement, retried with the same keys until it is
//! durable.

use std::collections::{BTreeMap, HashMap};

use uuid::Uuid;

use super::cell::{self, Cell, ColumnType, Fields, cells};
use super::connection::Link;
use super::fault::Result;
use super::ids;
use super::row;
use super::tables::{self, Rows};
use crate::auth::AccountId;
use crate::store::clock;
use crate::store::engine::Outcome;
use crate::store::token_number::TokenNumber;
use crate::store::usage::{MonthlyQuotas, UsageDay, UsageEntry};

/// Adds entries whose keys are not there yet, and counts those by day and by month.
///
/// `alive` makes every attempt write something: a retry that finds its entries there would
/// otherwise write nothing, and so not wait for the standby that the first attempt did not reach.
/// `owners` keeps accounts from being deleted meanwhile. Rows of sums are locked in one order, so
/// that two replicas do not deadlock.
///
/// It returns the accounts that exist, and the new counts of months.
const RECORD: &str = "
WITH given AS (
    SELECT * FROM unnest($1::INT8[], $2::UUID[], $3::INT8[], $4::INT8[], $5::INT8[], $6::INT8[],
                         $7::INT8[], $8::INT8[], $9::INT8[], $10::INT2[], $11::INT2[], $12::TEXT[],
                         $13::UUID[], $14::INT8[], $15::INT8[], $17::INT8[])
        AS g (account, id, time, token, input_bytes, output_bytes, width, height, milliseconds,
              quality, watermark, format, request, month, day, key)
), alive AS (
    INSERT INTO replicas (id, seen)
    VALUES ($16::UUID, (extract(epoch FROM clock_timestamp()) * 1000)::INT8)
    ON CONFLICT (id) DO UPDATE SET seen = excluded.seen
), owners AS (
    SELECT id FROM accounts WHERE id = ANY ($1::INT8[]) ORDER BY id FOR KEY SHARE
), fresh AS (
    INSERT INTO usage (account, id, time, token, input_bytes, output_bytes, width, height,
                       milliseconds, quality, watermark, format, request)
    SELECT account, g.id, time, token, input_bytes, output_bytes, width, height, milliseconds,
           quality, watermark, format, request
    FROM given g JOIN owners o ON o.id = g.account
    ON CONFLICT (account, id) DO NOTHING
    RETURNING account, id
), counted AS (
    SELECT g.* FROM given g JOIN fresh f ON f.account = g.account AND f.id = g.id
), days AS (
    INSERT INTO usage_days AS d
        (account, day, token, format, conversions, input_bytes, output_bytes, last_used, first_key,
         last_key)
    SELECT account, day, token, format, count(*), sum(input_bytes)::INT8, sum(output_bytes)::INT8,
           max(time), min(key), max(key)
    FROM counted GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
    ON CONFLICT (account, day, token, format) DO UPDATE SET
        conversions = d.conversions + excluded.conversions,
        input_bytes = d.input_bytes + excluded.input_bytes,
        output_bytes = d.output_bytes + excluded.output_bytes,
        last_used = greatest(d.last_used, excluded.last_used),
        first_key = least(d.first_key, excluded.first_key),
        last_key = greatest(d.last_key, excluded.last_key)
), months AS (
    INSERT INTO usage_months AS m
        (account, month, token, conversions)
    SELECT account, month, scope, count(*)
    FROM (SELECT *, token AS scope FROM counted UNION ALL SELECT *, -1 FROM counted) AS both_scopes
    GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (account, month, token) DO UPDATE SET
        conversions = m.conversions + excluded.conversions
    RETURNING m.account, m.month, m.token, m.conversions
)
SELECT account, month, token, conversions FROM months
UNION ALL
SELECT id, NULL, NULL, NULL FROM owners";

/// A conversion to record.
pub struct Recorded<'a> {
    /// Its key, which is made before it is sent for the first time.
    pub id: Uuid,
    /// The account.
    pub account: AccountId,
    /// The entry.
    pub entry: &'a UsageEntry,
    /// The most conversions of the month.
    pub quotas: MonthlyQuotas,
}

impl Recorded<'_> {
    /// The first millisecond of its month.
    fn month(&self) -> u64 {
        clock::month(clock::to_milliseconds(self.entry.time)).0
    }

    /// The counts that include it: its account's conversions of the month, and those by its token.
    fn scopes(&self) -> [Scope; 2] {
        let scope = |token| (self.account.0, self.month(), token);
        [scope(ALL_TOKENS), scope(i64::from(self.entry.token.0))]
    }

    fn has_quota(&self) -> bool {
        self.quotas != MonthlyQuotas::default()
    }

    /// The outcome if one of these counts exceeds its quota.
    fn exceeded(&self, counts: [u64; 2]) -> Option<Outcome> {
        let of_token = self.quotas.exceeded(counts)?;
        Some(Outcome::QuotaExceeded { of_token })
    }
}

/// Account, first millisecond of a month, and token or [`ALL_TOKENS`].
type Scope = (u64, u64, i64);

/// Stands for all tokens of an account together.
pub const ALL_TOKENS: i64 = -1;

/// Conversions by month and token or [`ALL_TOKENS`].
pub type MonthCounts = BTreeMap<(u64, i64), u64>;

/// Adds the conversions of a day to those of its month.
pub fn count(months: &mut MonthCounts, day: &UsageDay) {
    let (month, _) = clock::month(u64::from(day.day) * clock::DAY);
    for token in [ALL_TOKENS, day.token.0.into()] {
        *months.entry((month, token)).or_default() += day.totals.conversions;
    }
}

/// The result of the statement.
#[derive(Default)]
struct Counts {
    accounts: Vec<u64>,
    /// The counts of those scopes in which something was counted.
    conversions: HashMap<Scope, u64>,
}

/// Records all conversions, but those that exceed a quota or whose account does not exist, and
/// returns their outcomes once they are durable.
pub async fn record(link: &Link, replica: Uuid, group: &[Recorded<'_>]) -> Result<Vec<Outcome>> {
    link.forget_warnings();
    let mut outcomes = Vec::with_capacity(group.len());
    // The parts that are left to be recorded, the first one last. A part in which a quota is
    // exceeded is split in halves, until the conversion that exceeds it is alone.
    let mut parts = vec![group];
    while let Some(part) = parts.pop() {
        if !part.iter().any(Recorded::has_quota) {
            let counts = send(link, replica, part).await?;
            outcomes.extend(outcomes_of(link, part, counts).await?);
            continue;
        }
        link.batch("BEGIN").await?;
        let counts = send(link, replica, part).await?;
        let exceeded = first_exceeded(part, &counts);
        let Some(exceeded) = exceeded else {
            link.batch("COMMIT").await?;
            outcomes.extend(outcomes_of(link, part, counts).await?);
            continue;
        };
        link.batch("ROLLBACK").await?;
        if part.len() == 1 {
            outcomes.push(exceeded);
        } else {
            let (first, second) = part.split_at(part.len() / 2);
            parts.extend([second, first]);
        }
    }
    link.confirm()?;
    Ok(outcomes)
}

async fn send(link: &Link, replica: Uuid, part: &[Recorded<'_>]) -> Result<Counts> {
    let mut rows = Rows::new(&tables::USAGE);
    let [mut months, mut days, mut keys] = [const { Vec::new() }; 3];
    for it in part {
        rows.push(row::entry_columns(it.account, it.id, it.entry));
        months.push(it.month().into());
        days.push(clock::day(clock::to_milliseconds(it.entry.time)).into());
        keys.push(ids::milliseconds(it.id).into());
    }
    let mut parameters = rows.into_columns();
    parameters.extend([
        Cell::List(ColumnType::Int, months),
        Cell::List(ColumnType::Int, days),
        replica.into(),
        Cell::List(ColumnType::Int, keys),
    ]);
    let mut counts = Counts::default();
    for row in &link.query_prepared(RECORD, &parameters).await? {
        let (account, month, token, conversions): (u64, Option<_>, Option<_>, Option<_>) =
            Fields::of(row).read()?;
        if let Some(((month, token), conversions)) = month.zip(token).zip(conversions) {
            let scope = (account, month, token);
            counts.conversions.insert(scope, conversions);
        } else {
            counts.accounts.push(account);
        }
    }
    Ok(counts)
}

/// The outcome of the first conversion that exceeds a quota, if one does. Conversions that an
/// earlier attempt has recorded are not counted again, so they exceed none.
fn first_exceeded(part: &[Recorded<'_>], counts: &Counts) -> Option<Outcome> {
    part.iter().find_map(|it| {
        let count = |scope| counts.conversions.get(&scope).copied().unwrap_or(0);
        it.exceeded(it.scopes().map(count))
    })
}

/// The outcome of each conversion of a part that was recorded, in which each counts the ones before
/// it.
async fn outcomes_of(
    link: &Link,
    part: &[Recorded<'_>],
    mut counts: Counts,
) -> Result<Vec<Outcome>> {
    let mut outcomes = Vec::with_capacity(part.len());
    for it in part.iter().rev() {
        if !counts.accounts.contains(&it.account.0) {
            outcomes.push(Outcome::Unchanged);
            continue;
        }
        let mut conversions = [0; 2];
        for (scope, count) in it.scopes().into_iter().zip(&mut conversions) {
            *count = match counts.conversions.get(&scope) {
                Some(count) => *count,
                // An earlier attempt has recorded it, so nothing was counted.
                None => in_month(link, scope).await?,
            };
            counts.conversions.insert(scope, count.saturating_sub(1));
        }
        let [conversions, by_token] = conversions;
        outcomes.push(Outcome::Recorded {
            month: it.month(),
            conversions,
            by_token,
        });
    }
    outcomes.reverse();
    Ok(outcomes)
}

/// The conversions of an account, or by one of its tokens, in a month.
pub async fn usage_in_month(
    link: &Link,
    account: AccountId,
    token: Option<TokenNumber>,
    month: u64,
) -> Result<u64> {
    let token = token.map_or(ALL_TOKENS, |token| i64::from(token.0));
    in_month(link, (account.0, month, token)).await
}

async fn in_month(link: &Link, (account, month, token): Scope) -> Result<u64> {
    let sql = "SELECT conversions FROM usage_months
               WHERE account = $1 AND month = $2 AND token = $3";
    let count = link
        .first(sql, cells![account, month, token], cell::read)
        .await?;
    Ok(count.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::engine::{Command, Engine};
    use crate::store::postgres::ids::key;
    use crate::store::postgres::pool::Purpose;
    use crate::store::tests::entry;
    use crate::store::tests::postgres::TestDatabase;
    use std::num::NonZeroU64;
    use std::time::Instant;

    #[test]
    fn a_group_that_is_sent_again_is_counted_once() {
        let Some(database) = TestDatabase::new() else {
            return;
        };
        let engine = database.engine();
        let create = Command::CreateAccount {
            email: crate::auth::Email::parse("owner@example.org").unwrap(),
            password_hash: None,
            created: 5,
            invite: None,
        };
        engine.apply(&[create], Instant::now()).unwrap();
        let (owner, entries) = (AccountId(5), [1, 2, 3].map(entry));
        let recorded = |i: usize, quota| Recorded {
            id: key(1000, i as u32, 0),
            account: if i == 1 { AccountId(99) } else { owner },
            entry: &entries[i],
            quotas: MonthlyQuotas {
                account: NonZeroU64::new(quota),
                token: None,
            },
        };
        let send = |group: &[Recorded<'_>]| {
            let sent = engine.pool.query(Purpose::Write, async |link: &Link| {
                record(link, engine.replica, group).await
            });
            sent.unwrap()
        };
        let of = |conversions| Outcome::Recorded {
            month: clock::month(clock::to_milliseconds(entries[0].time)).0,
            conversions,
            by_token: conversions,
        };
        let group = [recorded(0, 0), recorded(1, 0)];
        for _ in 0..2 {
            assert_eq!(send(&group), [of(1), Outcome::Unchanged]);
        }
        // The first one is there already, the third one is new and the last one the quota allows.
        let group = [recorded(0, 2), recorded(2, 2)];
        assert_eq!(send(&group), [of(1), of(2)]);
        assert_eq!(send(&group), [of(1), of(2)], "the month is full of them");
        let totals = engine.usage_totals(owner).unwrap();
        let bytes = entries[0].input_bytes + entries[2].input_bytes;
        assert_eq!((totals.conversions, totals.input_bytes), (2, bytes));
    }

    #[test]
    fn a_pooler_may_forget_what_was_prepared() {
        let Some(database) = TestDatabase::new() else {
            return;
        };
        let engine = database.engine();
        let (owner, entry) = (AccountId(5), entry(1));
        let recorded = |number| Recorded {
            id: key(1000, number, 0),
            account: owner,
            entry: &entry,
            quotas: MonthlyQuotas::default(),
        };
        for number in 0..3 {
            let send = async |link: &Link| record(link, engine.replica, &[recorded(number)]).await;
            let outcomes = engine.pool.query(Purpose::Write, send).unwrap();
            assert_eq!(outcomes, [Outcome::Unchanged], "there is no such account");
            // What a pooler does by giving the next transaction another connection.
            let forget = async |link: &Link| link.batch("DEALLOCATE ALL").await;
            engine.pool.query(Purpose::Write, forget).unwrap();
        }
    }
}
