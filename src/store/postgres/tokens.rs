//! Tokens with their usage.

use super::cell::{Fields, cells};
use super::connection::Link;
use super::fault::Result;
use super::row;
use super::tables;
use crate::auth::AccountId;
use crate::store::clock;
use crate::store::token::TokenUsage;

/// The tokens of an account by number, with their usage.
pub async fn usage(link: &Link, account: AccountId) -> Result<Vec<TokenUsage>> {
    let sql = format!(
        "SELECT {}, coalesce(u.conversions, 0), coalesce(u.input_bytes, 0),
                coalesce(u.output_bytes, 0), u.last_used
         FROM tokens t LEFT JOIN
             (SELECT token, sum(conversions)::INT8 AS conversions,
                     sum(input_bytes)::INT8 AS input_bytes,
                     sum(output_bytes)::INT8 AS output_bytes, max(last_used) AS last_used
              FROM usage_days WHERE account = $1 GROUP BY token) AS u ON u.token = t.number
         WHERE t.account = $1 ORDER BY t.number",
        tables::TOKENS.columns("t")
    );
    let usage = |row: &mut Fields<'_>| {
        let (token, deleted) = row::token(row)?;
        Ok(TokenUsage {
            token,
            deleted: deleted.map(clock::from_milliseconds),
            totals: row::totals(row)?,
            last_used: row.read::<Option<u64>>()?.map(clock::from_milliseconds),
        })
    };
    link.all(&sql, cells![account], usage).await
}
