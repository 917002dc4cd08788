//! One state of the whole database, to be checked or copied.

use std::collections::BTreeMap;
use std::io::{self, Write};

use tokio_postgres::Row as SqlRow;

use super::check;
use super::connection::{Link, get};
use super::fault::Fault;
use super::pages::{KeyColumn, Table};
use super::pool::{Pool, Session};
use super::row::{self, number, small};
use super::schema;
use crate::auth::AccountId;
use crate::store::engine::{EachRow, Findings, Snapshot};
use crate::store::error::StoreError;
use crate::store::failure::Failure;
use crate::store::rows::{AccountRow, Row};
use crate::store::token::Restrictions;
use crate::store::token_number::TokenNumber;
use crate::store::usage::UsageDay;

/// A transaction that sees one state, and changes nothing, on a connection of its own.
pub struct PostgresSnapshot {
    session: Session,
    /// What the connection belongs to, if nothing else keeps it. It is dropped after `session`.
    _pool: Option<Pool>,
}

impl PostgresSnapshot {
    /// The present state.
    ///
    /// # Errors
    /// The database is away.
    pub fn of(pool: &Pool) -> Result<PostgresSnapshot, StoreError> {
        let session = pool.session()?;
        session.ask(async |link: &Link| {
            link.batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                .await?;
            // What it sees is what is there when it asks for the first time.
            schema::number(link, "schema").await.map(drop)
        })?;
        Ok(PostgresSnapshot {
            session,
            _pool: None,
        })
    }

    /// The present state of a database that nothing else in this process uses.
    ///
    /// # Errors
    /// The database is away.
    pub fn on(pool: Pool) -> Result<PostgresSnapshot, StoreError> {
        let snapshot = PostgresSnapshot::of(&pool)?;
        Ok(PostgresSnapshot {
            _pool: Some(pool),
            ..snapshot
        })
    }
}

impl Snapshot for PostgresSnapshot {
    fn check(&self) -> Result<Findings, StoreError> {
        check::check(&self.session)
    }

    fn export(&self, _: &mut dyn Write) -> io::Result<()> {
        Err(io::Error::other(
            "this server keeps its data in PostgreSQL: \"towebp backup FILE --store URL\" reads it \
             there",
        ))
    }

    fn rows(&self, each: &mut EachRow<'_>) -> Result<(), StoreError> {
        let numbers = self.session.ask(async |link: &Link| {
            Ok([
                schema::number(link, "last_account").await?,
                schema::number(link, "secret").await?,
            ])
        })?;
        let [last_account, secret] = numbers;
        each(Row::Store {
            last_account: last_account.map_or(0, i64::cast_unsigned),
            secret_mark: secret.map(i64::cast_unsigned),
        })?;
        let mut invites = Table::new("invites", &[KeyColumn::Bytes("code")], "code, ends", invite);
        while let Some((_, invite)) = invites.next_of(&self.session)? {
            each(invite)?;
        }
        let mut accounts = Table::new("accounts", &[KeyColumn::Int("id")], ACCOUNT, account);
        let mut tables = OfAccounts::new();
        while let Some((id, account)) = accounts.next_of(&self.session)? {
            each(Row::Account(account))?;
            tables.each(&self.session, id, each)?;
        }
        Ok(())
    }

    fn entries(&self) -> Result<u64, StoreError> {
        // Counting them would read them all.
        let sql = "SELECT (SELECT coalesce(sum(conversions), 0)::INT8 FROM usage_months
                           WHERE token = -1) -
                          (SELECT coalesce(sum(conversions), 0)::INT8 FROM usage_removed)";
        self.session.ask(async |link: &Link| {
            let row = link.query_opt(sql, &[]).await?;
            row.map_or(Ok(0), |row| Ok(get::<i64>(&row, 0)?.max(0).unsigned_abs()))
        })
    }
}

/// The tables of what is an account's.
struct OfAccounts {
    tokens: Table<Row>,
    restrictions: Table<Restrictions>,
    removed: Table<Row>,
    days: Table<Row>,
    months: Table<(TokenNumber, u64)>,
    history: Table<Row>,
    failures: Table<Row>,
}

impl OfAccounts {
    fn new() -> OfAccounts {
        use KeyColumn::{Int, Text, Uuid};
        const ACCOUNT: KeyColumn = Int("account");
        OfAccounts {
            tokens: Table::new("tokens t", &[ACCOUNT, Int("number")], row::TOKEN, token),
            restrictions: Table::new(
                "restrictions r",
                &[ACCOUNT],
                row::RESTRICTIONS,
                row::restrictions,
            ),
            removed: Table::new(
                "usage_removed",
                &[ACCOUNT],
                "conversions, input_bytes, output_bytes",
                |row, first| Ok(Row::Removed(row::totals(row, first)?)),
            ),
            days: Table::new(
                "usage_days",
                &[ACCOUNT, Int("day"), Int("token"), Text("format")],
                "day, token, format, conversions, input_bytes, output_bytes",
                day,
            ),
            months: Table::new(
                "(SELECT * FROM usage_months WHERE token >= 0) AS m",
                &[ACCOUNT, Int("month"), Int("token")],
                "token, last_used",
                |row, first| Ok((TokenNumber(small(row, first)?), number(row, first + 1)?)),
            ),
            history: Table::new("usage", &[ACCOUNT, Uuid("id")], row::ENTRY, |row, first| {
                row::entry(row, first).map(Row::Entry)
            }),
            failures: Table::new(
                "failures",
                &[ACCOUNT, Uuid("id")],
                "time, input_bytes, token, status, code",
                failure,
            ),
        }
    }

    fn each(
        &mut self,
        session: &Session,
        account: u64,
        each: &mut EachRow<'_>,
    ) -> Result<(), StoreError> {
        self.tokens.each_of(session, account, each)?;
        self.restrictions
            .each_of(session, account, &mut |restrictions| {
                if restrictions == Restrictions::default() {
                    return Ok(());
                }
                each(Row::Restrictions(restrictions))
            })?;
        self.removed
            .each_of(session, account, &mut |removed| match removed {
                // Entries were looked for, and none was old.
                Row::Removed(totals) if totals.conversions == 0 => Ok(()),
                removed => each(removed),
            })?;
        self.days.each_of(session, account, each)?;
        let mut last_uses = BTreeMap::<TokenNumber, u64>::new();
        self.months
            .each_of(session, account, &mut |(token, time)| {
                let last = last_uses.entry(token).or_default();
                *last = time.max(*last);
                Ok(())
            })?;
        for (token, time) in last_uses {
            each(Row::LastUse { token, time })?;
        }
        self.history.each_of(session, account, each)?;
        self.failures.each_of(session, account, each)
    }
}

/// The columns of [`account`].
const ACCOUNT: &str = "id, email, created, last_serial, password";

fn account(row: &SqlRow, first: usize) -> Result<AccountRow, Fault> {
    Ok(AccountRow {
        id: AccountId(number(row, first)?),
        email: get(row, first + 1)?,
        created: number(row, first + 2)?,
        last_serial: small(row, first + 3)?,
        password: get(row, first + 4)?,
    })
}

fn invite(row: &SqlRow, first: usize) -> Result<Row, Fault> {
    Ok(Row::Invite {
        code: row::hash(row, first)?,
        end: number(row, first + 1)?,
    })
}

fn token(row: &SqlRow, first: usize) -> Result<Row, Fault> {
    let (token, deleted) = row::token(row, first)?;
    Ok(Row::Token {
        token,
        deleted: deleted.map(crate::store::clock::to_milliseconds),
    })
}

fn day(row: &SqlRow, first: usize) -> Result<Row, Fault> {
    Ok(Row::Day(UsageDay {
        day: small(row, first)?,
        token: TokenNumber(small(row, first + 1)?),
        format: get(row, first + 2)?,
        totals: row::totals(row, first + 3)?,
    }))
}

fn failure(row: &SqlRow, first: usize) -> Result<Row, Fault> {
    Ok(Row::Failure(Failure {
        time: row::time_of(row, first)?,
        input_bytes: number(row, first + 1)?,
        token: TokenNumber(small(row, first + 2)?),
        status: small(row, first + 3)?,
        code: get(row, first + 4)?,
    }))
}
