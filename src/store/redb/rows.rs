//! Reads all tables as rows that are independent of the engine.

use redb::{ReadTransaction, ReadableTable};

use super::accounts::ACCOUNTS;
use super::failures::FAILURES;
use super::invites::INVITES;
use super::meta::{self, META};
use super::result::Result;
use super::tokens::{self, RESTRICTIONS};
use super::usage::{self, HISTORY};
use crate::auth::AccountId;
use crate::store::columns;
use crate::store::rows::Row;
use crate::store::usage::Days;

/// The function that takes each row.
type Each<'a> = dyn FnMut(Row) -> Result<()> + 'a;

/// Calls `each` with all rows but sessions, in the order of [`crate::store::rows`].
pub fn each(read: &ReadTransaction, each: &mut Each<'_>) -> Result<()> {
    let last = read.open_table(META)?.get("last_account")?;
    each(Row::Store {
        last_account: last.map_or(0, |last| last.value()),
        secret_mark: meta::secret_mark(read)?,
    })?;
    for row in read.open_table(INVITES)?.iter()? {
        let (code, end) = row?;
        let (code, end) = (*code.value(), end.value());
        each(Row::Invite { code, end })?;
    }
    for row in read.open_table(ACCOUNTS)?.iter()? {
        let (id, value) = row?;
        let id = AccountId(id.value());
        each(Row::Account(columns::account(id, value.value())))?;
        each_of(read, id, each)?;
    }
    Ok(())
}

/// Calls `each` with the rows of an account.
fn each_of(read: &ReadTransaction, account: AccountId, each: &mut Each<'_>) -> Result<()> {
    for (token, deleted) in tokens::all(read, account)? {
        each(Row::Token { token, deleted })?;
    }
    let restrictions = tokens::restrictions_in(&read.open_table(RESTRICTIONS)?, account)?;
    let removed = columns::totals(usage::removed(read, account)?);
    for row in [Row::Restrictions(restrictions), Row::Removed(removed)] {
        if !row.is_empty() {
            each(row)?;
        }
    }
    usage::each_day(read, account, Days::default(), &mut |day, last_used| {
        each(Row::Day { day, last_used })
    })?;
    let id = account.0;
    let history = read.open_table(HISTORY)?;
    for row in history.range((id, 0)..=(id, u64::MAX))? {
        each(Row::Entry(usage::entry(row?.1.value())?))?;
    }
    let failures = read.open_table(FAILURES)?;
    for row in failures.range((id, 0)..=(id, u64::MAX))? {
        each(Row::Failure(columns::failure(row?.1.value())))?;
    }
    Ok(())
}
