//! Tokens, and what the operator has set for accounts.

use tokio_postgres::types::Type;

use super::connection::{Link, get};
use super::fault::Fault;
use super::row::{self, int, number, small};
use crate::auth::AccountId;
use crate::store::clock;
use crate::store::engine::{Outcome, TokenChange};
use crate::store::token::{
    AccountAccess, ApiToken, MAX_DELETED_TOKENS, MAX_TOKENS, Restrictions, TokenSettings,
    TokenUsage, next_serial,
};
use crate::store::token_number::TokenNumber;

/// What decides about an account's requests; `None` if there is no such account.
pub async fn access(link: &Link, account: AccountId) -> Result<Option<AccountAccess>, Fault> {
    let sql = format!(
        "SELECT {}, {} FROM accounts a JOIN tokens t ON t.account = a.id AND t.deleted = 0
         LEFT JOIN restrictions r ON r.account = a.id WHERE a.id = $1 ORDER BY t.number",
        row::RESTRICTIONS,
        row::TOKEN
    );
    let rows = link.query(&sql, &[(&int(account.0), Type::INT8)]).await?;
    let Some(first) = rows.first() else {
        return Ok(None);
    };
    let tokens = rows.iter().map(|row| Ok(row::token(row, 3)?.0));
    Ok(Some(AccountAccess {
        restrictions: row::restrictions(first, 0)?,
        tokens: tokens.collect::<Result<_, Fault>>()?,
    }))
}

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
              FROM usage_months WHERE account = $1 GROUP BY token) AS u ON u.token = t.number
         WHERE t.account = $1 ORDER BY t.number",
        row::TOKEN
    );
    let rows = link.query(&sql, &[(&int(account.0), Type::INT8)]).await?;
    let usage = |row| {
        let (token, deleted) = row::token(row, 0)?;
        let last_used: Option<i64> = get(row, 14)?;
        Ok(TokenUsage {
            token,
            deleted,
            totals: row::totals(row, 11)?,
            last_used: last_used.map(|time| clock::from_milliseconds(time.unsigned_abs())),
        })
    };
    rows.iter().map(usage).collect()
}

/// Carries out a change.
pub async fn change(
    link: &Link,
    account: AccountId,
    change: &TokenChange,
) -> Result<Outcome, Fault> {
    let Some(access) = access(link, account).await? else {
        return Ok(Outcome::Unchanged);
    };
    let number = match change {
        TokenChange::Create { settings, now } => {
            return create(link, account, &access, settings, *now).await;
        }
        TokenChange::Set { token, .. }
        | TokenChange::Rotate { token, .. }
        | TokenChange::Delete { token, .. } => *token,
        TokenChange::Restrict(_) => TokenNumber::DEFAULT,
    };
    let Some(mut token) = access.token(number).cloned() else {
        return Ok(Outcome::Unchanged);
    };
    match change {
        TokenChange::Set { settings, .. } => {
            if access.has_name(&settings.name, Some(number)) {
                return Ok(Outcome::NameTaken);
            }
            token.settings = settings.clone();
            put(link, account, &token, 0).await?;
        }
        TokenChange::Rotate {
            overlap_ends, now, ..
        } => {
            let serial = take_serial(link, account, *now).await?;
            token.rotate(serial, *overlap_ends);
            put(link, account, &token, 0).await?;
        }
        TokenChange::Delete { now, .. } => delete(link, account, &token, *now).await?,
        TokenChange::Restrict(restrictions) => restrict(link, account, *restrictions).await?,
        TokenChange::Create { .. } => unreachable!("it was carried out above"),
    }
    outcome(link, account, number).await
}

async fn create(
    link: &Link,
    account: AccountId,
    access: &AccountAccess,
    settings: &TokenSettings,
    now: u64,
) -> Result<Outcome, Fault> {
    if access.has_name(&settings.name, None) {
        return Ok(Outcome::NameTaken);
    }
    if access.tokens.len() >= MAX_TOKENS {
        return Ok(Outcome::TooManyTokens);
    }
    let serial = take_serial(link, account, now).await?;
    let token = ApiToken {
        number: TokenNumber(serial),
        created: clock::from_milliseconds(now),
        serial,
        previous: None,
        settings: settings.clone(),
    };
    put(link, account, &token, 0).await?;
    outcome(link, account, token.number).await
}

/// The next serial number of an account, which exists.
async fn take_serial(link: &Link, account: AccountId, now: u64) -> Result<u32, Fault> {
    let sql = "SELECT last_serial FROM accounts WHERE id = $1";
    let id = int(account.0);
    let row = link.query_opt(sql, &[(&id, Type::INT8)]).await?;
    let last = row.map_or(Ok(0), |row| small(&row, 0))?;
    let serial = next_serial(last, now);
    let sql = "UPDATE accounts SET last_serial = $2 WHERE id = $1";
    let parameters = [
        (&id as _, Type::INT8),
        (&i64::from(serial) as _, Type::INT8),
    ];
    link.execute(sql, &parameters).await?;
    Ok(serial)
}

/// Writes the token that an account has from its beginning.
pub async fn put_default(link: &Link, account: AccountId, created: u64) -> Result<(), Fault> {
    put(link, account, &ApiToken::default_token(created, 0), 0).await
}

async fn put(link: &Link, account: AccountId, token: &ApiToken, deleted: u64) -> Result<(), Fault> {
    let sql = "INSERT INTO tokens (account, number, created, ends, previous_ends, monthly, deleted,
                                   serial, previous_serial, per_minute, name, preset)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
               ON CONFLICT (account, number) DO UPDATE SET
                   ends = excluded.ends, previous_ends = excluded.previous_ends,
                   monthly = excluded.monthly, deleted = excluded.deleted,
                   serial = excluded.serial, previous_serial = excluded.previous_serial,
                   per_minute = excluded.per_minute, name = excluded.name,
                   preset = excluded.preset";
    let ApiToken {
        number,
        created,
        serial,
        previous,
        settings,
    } = token;
    let limits = settings.limits;
    let numbers = [
        int(account.0),
        i64::from(number.0),
        row::time(*created),
        row::optional_time(settings.ends),
        row::optional_time(previous.map(|previous| previous.ends)),
        limits.monthly.map_or(0, |most| int(most.get())),
        int(deleted),
        i64::from(*serial),
        previous.map_or(0, |previous| i64::from(previous.serial)),
        limits.per_minute.map_or(0, |most| i64::from(most.get())),
    ];
    let mut parameters: Vec<(&(dyn tokio_postgres::types::ToSql + Sync), Type)> = Vec::new();
    for number in &numbers {
        parameters.push((number, Type::INT8));
    }
    parameters.push((&settings.name, Type::TEXT));
    parameters.push((&settings.preset, Type::TEXT));
    link.execute(sql, &parameters).await.map(drop)
}

/// Marks a token as deleted, and forgets the oldest deleted ones beyond their number.
async fn delete(link: &Link, account: AccountId, token: &ApiToken, now: u64) -> Result<(), Fault> {
    put(link, account, &token.deleted(), now.max(1)).await?;
    let sql = "DELETE FROM tokens WHERE account = $1 AND number IN
                   (SELECT number FROM tokens WHERE account = $1 AND deleted <> 0
                    ORDER BY deleted DESC, number DESC OFFSET $2)";
    let parameters = [
        (&int(account.0) as _, Type::INT8),
        (&(MAX_DELETED_TOKENS as i64) as _, Type::INT8),
    ];
    link.execute(sql, &parameters).await.map(drop)
}

async fn restrict(
    link: &Link,
    account: AccountId,
    restrictions: Restrictions,
) -> Result<(), Fault> {
    let account = int(account.0);
    if restrictions == Restrictions::default() {
        let sql = "DELETE FROM restrictions WHERE account = $1";
        return link.execute(sql, &[(&account, Type::INT8)]).await.map(drop);
    }
    let sql = "INSERT INTO restrictions (account, disabled, monthly, per_minute)
               VALUES ($1, $2, $3, $4)
               ON CONFLICT (account) DO UPDATE SET disabled = excluded.disabled,
                   monthly = excluded.monthly, per_minute = excluded.per_minute";
    let parameters = [
        (&account as _, Type::INT8),
        (&row::optional_time(restrictions.disabled) as _, Type::INT8),
        (&restrictions.monthly.map(int) as _, Type::INT8),
        (&restrictions.per_minute.map(i64::from) as _, Type::INT8),
    ];
    link.execute(sql, &parameters).await.map(drop)
}

async fn outcome(link: &Link, account: AccountId, token: TokenNumber) -> Result<Outcome, Fault> {
    let access = access(link, account).await?;
    Ok(access.map_or(Outcome::Unchanged, |access| Outcome::Token {
        token,
        access,
    }))
}
