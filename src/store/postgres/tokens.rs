//! Tokens with what was done by them.

use tokio_postgres::types::Type;

use super::connection::Link;
use super::fault::Fault;
use super::row::{self, Fields, int, number};
use super::tables;
use crate::auth::AccountId;
use crate::store::clock;
use crate::store::token::TokenUsage;

/// The numbers of the youngest accounts.
pub async fn youngest(link: &Link, limit: usize) -> Result<Vec<AccountId>, Fault> {
    let sql = "SELECT id FROM accounts ORDER BY id DESC LIMIT $1";
    let rows = link.query(sql, &[(&int(limit as u64), Type::INT8)]).await?;
    rows.iter()
        .map(|row| Ok(AccountId(number(row, 0)?)))
        .collect()
}

/// The tokens of an account by number, with what was done by them.
pub async fn usage(link: &Link, account: AccountId) -> Result<Vec<TokenUsage>, Fault> {
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
    let rows = link.query(&sql, &[(&int(account.0), Type::INT8)]).await?;
    let usage = |row| {
        let mut fields = Fields::of(row);
        let (token, deleted) = row::token(&mut fields)?;
        Ok(TokenUsage {
            token,
            deleted: deleted.map(clock::from_milliseconds),
            totals: fields.totals()?,
            last_used: fields
                .get::<Option<i64>>()?
                .map(|time| clock::from_milliseconds(time.unsigned_abs())),
        })
    };
    rows.iter().map(usage).collect()
}
