//! One state of the whole database, to be checked or copied.

use super::cell;
use super::check::{self, DayCheck};
use super::connection::Link;
use super::ids;
use super::pages::Pages;
use super::pool::{Pool, Session};
use super::row;
use super::schema;
use super::tables;
use crate::store::check::RowCheck;
use crate::store::engine::{EachRow, Findings, Snapshot};
use crate::store::error::Result;
use crate::store::rows::Row;

/// A transaction that sees one state, and changes nothing, on a connection of its own.
pub struct PostgresSnapshot {
    session: Session,
    /// The pool, if nothing else keeps it open. It is dropped after `session`.
    _pool: Option<Pool>,
}

impl PostgresSnapshot {
    /// The present state.
    pub fn of(pool: &Pool) -> Result<PostgresSnapshot> {
        let session = pool.session()?;
        session.query(async |link: &Link| {
            link.batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                .await?;
            // The transaction sees the state at its first query.
            schema::number(link, "schema").await.map(drop)
        })?;
        Ok(PostgresSnapshot {
            session,
            _pool: None,
        })
    }

    /// The present state of a database; the snapshot keeps the pool open.
    pub fn on(pool: Pool) -> Result<PostgresSnapshot> {
        let snapshot = PostgresSnapshot::of(&pool)?;
        Ok(PostgresSnapshot {
            _pool: Some(pool),
            ..snapshot
        })
    }
}

/// A row with a pair of times from keys, in milliseconds: for a day those in its first and its last
/// key, for an entry twice the one in its key, for other rows zeros.
type Keyed = (Row, [u64; 2]);

type EachKeyed<'a> = dyn FnMut(Row, [u64; 2]) -> Result<()> + 'a;

impl PostgresSnapshot {
    fn each(&self, each: &mut EachKeyed<'_>) -> Result<()> {
        let numbers = self.session.query(async |link: &Link| {
            Ok([
                schema::number(link, "last_account").await?,
                schema::number(link, "secret").await?,
            ])
        })?;
        let [last_account, secret_mark] = numbers.map(|it| it.map(i64::cast_unsigned));
        let last_account = last_account.unwrap_or(0);
        let store = Row::Store {
            last_account,
            secret_mark,
        };
        each(store, [0; 2])?;
        let mut invites = Pages::new(&tables::INVITES, cell::read);
        while let Some((_, (code, end))) = invites.next(&self.session)? {
            each(Row::Invite { code, end }, [0; 2])?;
        }
        let mut accounts = Pages::new(&tables::ACCOUNTS, row::account);
        let mut of_accounts = of_accounts();
        while let Some((id, account)) = accounts.next(&self.session)? {
            each(Row::Account(account), [0; 2])?;
            for table in &mut of_accounts {
                table.each_of(&self.session, id, &mut |(row, keys)| match row {
                    row if row.is_empty() => Ok(()),
                    row => each(row, keys),
                })?;
            }
        }
        Ok(())
    }
}

impl Snapshot for PostgresSnapshot {
    fn check(&self) -> Result<Findings> {
        let mut rows = RowCheck::default();
        let read = check::check(&self.session, &mut rows).and_then(|()| {
            let mut days = DayCheck::new(&self.session);
            self.each(&mut |row, keys| {
                days.add(&row, keys, &mut rows)?;
                rows.add(row);
                Ok(())
            })?;
            days.end_account(&mut rows)
        });
        rows.findings(read)
    }

    fn rows(&self, each: &mut EachRow<'_>) -> Result<()> {
        self.each(&mut |row, _| each(row))
    }

    fn entries(&self) -> Result<u64> {
        // Counting them would read them all.
        let sql = "SELECT (SELECT coalesce(sum(conversions), 0)::INT8 FROM usage_days) -
                          (SELECT coalesce(sum(conversions), 0)::INT8 FROM usage_removed)";
        self.session.query(async |link: &Link| {
            let entries: Option<i64> = link.first(sql, &[], cell::read).await?;
            Ok(entries.map_or(0, |entries| entries.max(0).unsigned_abs()))
        })
    }
}

/// The tables whose rows belong to accounts, in the order of [`crate::store::rows`].
fn of_accounts() -> [Pages<Keyed>; 6] {
    [
        Pages::new(&tables::TOKENS, |row| {
            let (token, deleted) = row::token(row)?;
            Ok((Row::Token { token, deleted }, [0; 2]))
        }),
        Pages::new(&tables::RESTRICTIONS, |row| {
            Ok((Row::Restrictions(row::restrictions(row)?), [0; 2]))
        }),
        Pages::new(&tables::REMOVED, |row| {
            Ok((Row::Removed(row::removed(row)?), [0; 2]))
        }),
        Pages::new(&tables::DAYS, |row| {
            let (day, last_used, keys) = row::day(row)?;
            Ok((Row::Day { day, last_used }, keys))
        }),
        Pages::new(&tables::USAGE, |row| {
            let (id, entry) = row::entry(row)?;
            Ok((Row::Entry(entry), [ids::milliseconds(id); 2]))
        }),
        Pages::new(&tables::FAILURES, |row| {
            Ok((Row::Failure(row::failure(row)?.1), [0; 2]))
        }),
    ]
}
