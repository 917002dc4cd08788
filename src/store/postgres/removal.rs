//! Removes accounts and rows that are too old, a bounded number of rows at a time.

use super::cell::{self, Cell, cells};
use super::connection::Link;
use super::fault::Result;
use crate::auth::AccountId;
use crate::store::clock::DAY;
use crate::store::engine::OldRows;

/// The most entries of histories that are removed at a time: other commands of this replica wait
/// some 50 ms for it.
const MAX_REMOVED: i64 = 5_000;

/// The most accounts whose old failures are removed at a time.
const MAX_ACCOUNTS: i64 = 1_000;

/// Removes an account with its rows. The rest of a long history is removed later. Nobody can read
/// it meanwhile, since the account's number is not given again.
pub async fn remove_account(link: &Link, account: AccountId) -> Result<()> {
    for sql in [
        "DELETE FROM accounts WHERE id = $1",
        "DELETE FROM sessions WHERE account = $1",
        "DELETE FROM tokens WHERE account = $1",
        "DELETE FROM restrictions WHERE account = $1",
    ] {
        link.execute(sql, cells![account]).await?;
    }
    // Conversions that are being recorded now may be added after this transaction. Because of this
    // row, they are removed later.
    let sql = "INSERT INTO deletions (account) VALUES ($1) ON CONFLICT DO NOTHING";
    link.execute(sql, cells![account]).await?;
    remove_history(link, account).await.map(drop)
}

/// Removes the history, the sums and the failures of an account that is deleted, as far as one step
/// goes. Returns whether nothing was left to remove.
async fn remove_history(link: &Link, account: AccountId) -> Result<bool> {
    let mut removed = 0;
    for sql in [
        "DELETE FROM usage_days WHERE account = $1",
        "DELETE FROM usage_months WHERE account = $1",
        "DELETE FROM usage_removed WHERE account = $1",
        "DELETE FROM failures WHERE account = $1",
    ] {
        removed += link.execute(sql, cells![account]).await?;
    }
    let sql = "DELETE FROM usage WHERE account = $1 AND id IN
                   (SELECT id FROM usage WHERE account = $1 ORDER BY id LIMIT $2)";
    removed += link.execute(sql, cells![account, MAX_REMOVED]).await?;
    Ok(removed == 0)
}

/// Removes some of the rows that are too old or of deleted accounts. Returns the account to go on
/// with.
pub async fn remove_old(link: &Link, old: OldRows) -> Result<Option<AccountId>> {
    if old.first == AccountId(0) {
        remove_once(link, old).await?;
        if let Some(account) = deleted(link).await? {
            if remove_history(link, account).await? {
                let sql = "DELETE FROM deletions WHERE account = $1";
                link.execute(sql, cells![account]).await?;
            }
            // The same step again, until no account is left.
            return Ok(Some(AccountId(0)));
        }
    }
    if let Some(account) = first_old(link, old).await? {
        remove_entries(link, account, old.history_before).await?;
        return Ok(Some(account));
    }
    let sql = "DELETE FROM failures WHERE time < $2 AND account IN
                   (SELECT id FROM accounts WHERE id >= $1 ORDER BY id LIMIT $3)";
    let [first, most] = [Cell::from(old.first), MAX_ACCOUNTS.into()];
    let parameters = [first.clone(), old.failures_before.into(), most.clone()];
    link.execute(sql, &parameters).await?;
    let sql = "SELECT id FROM accounts WHERE id >= $1 ORDER BY id OFFSET $2 LIMIT 1";
    link.first(sql, &[first, most], cell::read).await
}

/// Removes old rows that belong to no account.
async fn remove_once(link: &Link, old: OldRows) -> Result<()> {
    // Counts of failed attempts to sign in are good for a day, and failed conversions are kept for
    // longer than that: whatever the clocks of replicas are, no count is removed too early.
    let sql = "DELETE FROM attempts WHERE last < $1";
    link.execute(sql, cells![old.failures_before]).await?;
    let sql = "DELETE FROM replicas
               WHERE seen < (extract(epoch FROM clock_timestamp()) * 1000)::INT8 - $1";
    link.execute(sql, cells![DAY]).await.map(drop)
}

/// A deleted account that may have rows left.
async fn deleted(link: &Link) -> Result<Option<AccountId>> {
    let sql = "SELECT account FROM deletions ORDER BY account LIMIT 1";
    link.first(sql, &[], cell::read).await
}

/// The first account, from `old.first` on, whose oldest entry is too old.
async fn first_old(link: &Link, old: OldRows) -> Result<Option<AccountId>> {
    if old.history_before == 0 {
        return Ok(None);
    }
    let sql = "SELECT a.id FROM accounts a
               WHERE a.id >= $1 AND
                   (SELECT u.time FROM usage u WHERE u.account = a.id ORDER BY u.id LIMIT 1) < $2
               ORDER BY a.id LIMIT 1";
    link.first(sql, cells![old.first, old.history_before], cell::read)
        .await
}

/// Removes the oldest entries of an account that are from before this time, up to the first one
/// that is not, and adds them to the sums of what was removed.
async fn remove_entries(link: &Link, account: AccountId, before: u64) -> Result<()> {
    let sql = "WITH oldest AS (
                   SELECT id, time FROM usage WHERE account = $1 ORDER BY id LIMIT $3
               ), kept AS (
                   SELECT coalesce(min(id::TEXT), $4) AS first FROM oldest WHERE time >= $2
               ), removed AS (
                   DELETE FROM usage WHERE account = $1
                       AND id IN (SELECT o.id FROM oldest o, kept k WHERE o.id::TEXT < k.first)
                   RETURNING input_bytes, output_bytes
               )
               INSERT INTO usage_removed AS r (account, conversions, input_bytes, output_bytes)
               SELECT $1, count(*), coalesce(sum(input_bytes), 0)::INT8,
                      coalesce(sum(output_bytes), 0)::INT8 FROM removed
               ON CONFLICT (account) DO UPDATE SET
                   conversions = r.conversions + excluded.conversions,
                   input_bytes = r.input_bytes + excluded.input_bytes,
                   output_bytes = r.output_bytes + excluded.output_bytes";
    // It is greater than every key as a text; texts of UUIDs are in the order of their bytes.
    let last = "g";
    link.execute(sql, cells![account, before, MAX_REMOVED, last])
        .await
        .map(drop)
}
