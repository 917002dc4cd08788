//! Table `failures`: conversions that failed.
//!
//! ```text
//! key    0  8  account, u64
//!        8  8  sequence, u64: grows by 1; the oldest ones are removed
//! value  0  8  time, u64, milliseconds since the epoch
//!        8  8  bytes of the body, u64
//!       16  4  token, u32
//!       20  2  status code, u16
//!       22 16  request, u128
//!       38  .  code of the problem, UTF-8, to the end
//! ```
//!
//! Numbers have their least significant byte first.

use redb::{ReadTransaction, ReadableTable, Table, TableDefinition};

use super::result::Result;
use crate::auth::AccountId;
use crate::store::clock;
use crate::store::columns::{self, FailureColumns};
use crate::store::engine::PageRange;
use crate::store::entry_id::{EntryId, Page};
use crate::store::failure::{Failure, FailureFilter, MAX_FAILURES};
use crate::store::token_number::TokenNumber;

/// Time, bytes, token, status, request and code by account and sequence number.
pub const FAILURES: TableDefinition<(u64, u64), Value> = TableDefinition::new("failures");

/// All columns but the account and the sequence number.
pub type Value = FailureColumns<'static>;

/// Failures that pass the filter, newest first. All failures of an account are read if need be:
/// there are [`MAX_FAILURES`].
pub fn page(
    read: &ReadTransaction,
    account: AccountId,
    filter: &FailureFilter,
    range: PageRange,
) -> Result<Page<Failure>> {
    let table = read.open_table(FAILURES)?;
    let rows = table.range((account.0, 0)..(account.0, range.end()))?;
    let mut failures = Vec::new();
    for row in rows.rev() {
        let (key, value) = row?;
        let value = value.value();
        let (time, _, token, status, ..) = value;
        if filter.passes(clock::day(time), TokenNumber(token), status) {
            failures.push((EntryId::from(key.value().1), columns::failure(value)));
        }
        if failures.len() > range.limit {
            break;
        }
    }
    Ok(Page::of(failures, range.limit))
}

/// Adds failures of an account, which must exist, and removes the oldest of too many.
pub fn add(
    table: &mut Table<'_, (u64, u64), Value>,
    account: AccountId,
    failures: &[Failure],
) -> Result<()> {
    let id = account.0;
    let newest = table.range((id, 0)..=(id, u64::MAX))?.next_back();
    let mut last = newest.transpose()?.map_or(0, |(key, _)| key.value().1);
    for failure in failures {
        last += 1;
        table.insert((id, last), columns::of_failure(failure))?;
    }
    let first_kept = (last + 1).saturating_sub(MAX_FAILURES);
    Ok(table.retain_in((id, 0)..(id, first_kept), |_, _| false)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_has_the_layout_that_is_drawn() {
        let drawn = [
            &[1, 0, 0, 0, 0, 0, 0, 0][..], // time
            &[2, 0, 0, 0, 0, 0, 0, 0],     // bytes
            &[3, 0, 0, 0],                 // token
            &[157, 1],                     // status
            &5_u128.to_le_bytes(),         // request
            b"body_too_large",             // code
        ];
        let value = (1, 2, 3, 413, 5, "body_too_large");
        assert_eq!(<Value as redb::Value>::as_bytes(&value), drawn.concat());
    }
}
