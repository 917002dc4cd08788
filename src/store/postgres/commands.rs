//! Changes other than conversions: each in a serializable transaction of its own, which is repeated
//! if others were at the same rows.

use tokio_postgres::types::Type;
use uuid::Uuid;

use super::connection::{Link, get};
use super::fault::{Class, Fault};
use super::removal;
use super::row::{self, hash, int, number};
use super::{schema, tokens};
use crate::auth::{AccountId, CodeHash, Email};
use crate::store::account::Account;
use crate::store::clock;
use crate::store::engine::{Command, Outcome, TokenChange};
use crate::store::failure::{Failure, MAX_FAILURES};
use crate::store::session::{Browser, MAX_SESSIONS, SessionId, SessionTimes, StoredSession};

/// The most sessions that have ended that are removed at a time.
const MAX_SWEPT: i64 = 100;

/// Carries out a command other than [`Command::RecordUsage`], and returns its outcome once it is
/// durable. `keys` has a key for each failure of [`Command::RecordFailures`].
pub async fn carry_out(link: &Link, command: &Command, keys: &[Uuid]) -> Result<Outcome, Fault> {
    link.forget_warnings();
    link.batch("BEGIN ISOLATION LEVEL SERIALIZABLE").await?;
    let outcome = change(link, command, keys).await?;
    if !outcome.changed() {
        link.batch("ROLLBACK").await?;
        return Ok(outcome);
    }
    let committed = link.batch("COMMIT").await.and_then(|()| link.confirm());
    match committed {
        Ok(()) => Ok(outcome),
        Err(fault) if fault.class == Class::Lost && !may_be_repeated(command) => {
            Err(Fault::new(Class::Unknown, fault.text))
        }
        Err(fault) => Err(fault),
    }
}

/// Whether a command has the same effect and the same outcome if it has been carried out before.
fn may_be_repeated(command: &Command) -> bool {
    match command {
        Command::AddInvite { .. }
        | Command::SetEmail { .. }
        | Command::StartSession { .. }
        | Command::RenewSession { .. }
        | Command::EndSessionsOf(_)
        | Command::SweepSessions { .. }
        | Command::RecordUsage { .. }
        | Command::RecordFailures { .. }
        | Command::RemoveOld(_) => true,
        Command::ChangeTokens { change, .. } => {
            matches!(change, TokenChange::Set { .. } | TokenChange::Restrict(_))
        }
        Command::CreateAccount { .. }
        | Command::DeleteAccount(_)
        | Command::SetPassword { .. }
        | Command::EndSession { .. }
        | Command::EndSessionOf { .. } => false,
    }
}

async fn change(link: &Link, command: &Command, keys: &[Uuid]) -> Result<Outcome, Fault> {
    match command {
        Command::CreateAccount {
            email,
            password_hash,
            created,
            invite,
        } => {
            let hash = password_hash.as_deref();
            create_account(link, email, hash, *created, invite.as_ref()).await
        }
        Command::AddInvite { code, end, now } => {
            let sql = "DELETE FROM invites WHERE ends <= $1";
            link.execute(sql, &[(&int(*now), Type::INT8)]).await?;
            let sql = "INSERT INTO invites (code, ends) VALUES ($1, $2)
                       ON CONFLICT (code) DO UPDATE SET ends = excluded.ends";
            let parameters = [
                (&&code[..] as _, Type::BYTEA),
                (&int(*end) as _, Type::INT8),
            ];
            link.execute(sql, &parameters).await?;
            Ok(Outcome::Changed)
        }
        Command::DeleteAccount(account) => removal::delete_account(link, *account).await,
        Command::ChangeTokens { account, change } => tokens::change(link, *account, change).await,
        Command::SetPassword {
            account,
            password_hash,
            verified,
            kept_session,
        } => {
            let changed = set_password(link, *account, password_hash, verified.as_deref()).await?;
            if changed.is_some() {
                end_sessions(link, *account, kept_session.as_ref()).await?;
            }
            Ok(changed.into())
        }
        Command::SetEmail {
            account,
            email,
            verified,
        } => set_email(link, *account, email, verified.as_deref()).await,
        Command::StartSession {
            cookie,
            account,
            session,
            now,
        } => {
            if !exists(link, *account).await? {
                return Ok(Outcome::Unchanged);
            }
            sweep(link, *now).await?;
            start_session(link, cookie, *account, session).await?;
            Ok(Outcome::Changed)
        }
        Command::RenewSession {
            cookie,
            times,
            browser,
        } => renew_session(link, cookie, *times, browser.as_ref()).await,
        Command::EndSession { cookie } => {
            let sql = "DELETE FROM sessions WHERE cookie = $1";
            let ended = link.execute(sql, &[(&&cookie[..], Type::BYTEA)]).await?;
            Ok(Outcome::of_change(ended > 0))
        }
        Command::EndSessionOf { account, session } => {
            end_session_of(link, *account, *session).await
        }
        Command::EndSessionsOf(account) => {
            end_sessions(link, *account, None).await?;
            Ok(Outcome::Changed)
        }
        Command::SweepSessions { now } => Ok(Outcome::of_change(sweep(link, *now).await? > 0)),
        Command::RecordFailures { account, failures } => {
            record_failures(link, *account, failures, keys).await
        }
        Command::RemoveOld(old) => removal::remove_old(link, *old).await,
        Command::RecordUsage { .. } => Err(Fault::new(
            Class::Unexpected,
            "a conversion is recorded in a group",
        )),
    }
}

/// Whether there is such an account.
pub async fn exists(link: &Link, account: AccountId) -> Result<bool, Fault> {
    let sql = "SELECT 1 FROM accounts WHERE id = $1";
    let row = link
        .query_opt(sql, &[(&int(account.0), Type::INT8)])
        .await?;
    Ok(row.is_some())
}

async fn create_account(
    link: &Link,
    email: &Email,
    password_hash: Option<&str>,
    created: u64,
    invite: Option<&CodeHash>,
) -> Result<Outcome, Fault> {
    if let Some(code) = invite {
        let sql = "DELETE FROM invites WHERE code = $1 AND ends > $2";
        let parameters = [
            (&&code[..] as _, Type::BYTEA),
            (&int(created) as _, Type::INT8),
        ];
        if link.execute(sql, &parameters).await? == 0 {
            return Ok(Outcome::Unchanged);
        }
    }
    let sql = "SELECT 1 FROM accounts WHERE email = $1";
    let taken = link
        .query_opt(sql, &[(&email.as_str(), Type::TEXT)])
        .await?;
    if taken.is_some() {
        return Ok(Outcome::Unchanged);
    }
    let last = schema::number(link, "last_account").await?.unwrap_or(0);
    let id = int(created).max(last + 1);
    schema::set_number(link, "last_account", id).await?;
    let sql = "INSERT INTO accounts (id, email, created, last_serial, password)
               VALUES ($1, $2, $3, 0, $4)";
    let parameters = [
        (&id as _, Type::INT8),
        (&email.as_str() as _, Type::TEXT),
        (&int(created) as _, Type::INT8),
        (&password_hash as _, Type::TEXT),
    ];
    link.execute(sql, &parameters).await?;
    let account = Account {
        id: AccountId(id.unsigned_abs()),
        email: email.as_str().to_owned(),
        created: clock::from_milliseconds(created),
        has_password: password_hash.is_some(),
    };
    tokens::put_default(link, account.id, created).await?;
    Ok(Outcome::Account(account))
}

/// Replaces the password's hash; `None` if there is no such account, or if another hash is stored
/// than the verified one.
async fn set_password(
    link: &Link,
    account: AccountId,
    password_hash: &str,
    verified: Option<&str>,
) -> Result<Option<Account>, Fault> {
    let sql = format!(
        "UPDATE accounts a SET password = $2
         WHERE id = $1 AND ($3::TEXT IS NULL OR password = $3) RETURNING {}",
        row::ACCOUNT
    );
    let parameters = [
        (&int(account.0) as _, Type::INT8),
        (&password_hash as _, Type::TEXT),
        (&verified as _, Type::TEXT),
    ];
    let changed = link.query_opt(&sql, &parameters).await?;
    let record = changed
        .map(|changed| row::account(&changed, 0))
        .transpose()?;
    Ok(record.map(|record| record.account))
}

async fn set_email(
    link: &Link,
    account: AccountId,
    email: &Email,
    verified: Option<&str>,
) -> Result<Outcome, Fault> {
    let sql = "SELECT 1 FROM accounts WHERE id = $1 AND ($2::TEXT IS NULL OR password = $2)";
    let id = int(account.0);
    let parameters = [(&id as _, Type::INT8), (&verified as _, Type::TEXT)];
    if link.query_opt(sql, &parameters).await?.is_none() {
        return Ok(Outcome::Unchanged);
    }
    let sql = "SELECT 1 FROM accounts WHERE email = $1 AND id <> $2";
    let address = email.as_str();
    let parameters = [(&address as _, Type::TEXT), (&id as _, Type::INT8)];
    if link.query_opt(sql, &parameters).await?.is_some() {
        return Ok(Outcome::EmailTaken);
    }
    let sql = format!(
        "UPDATE accounts a SET email = $1 WHERE id = $2 RETURNING {}",
        row::ACCOUNT
    );
    let changed = link.query_opt(&sql, &parameters).await?;
    let record = changed
        .map(|changed| row::account(&changed, 0))
        .transpose()?;
    Ok(record.map(|record| record.account).into())
}

/// Removes some of the sessions that have ended. Returns how many.
async fn sweep(link: &Link, now: u64) -> Result<u64, Fault> {
    let sql = "DELETE FROM sessions WHERE cookie IN
                   (SELECT cookie FROM sessions WHERE ends <= $1 ORDER BY ends LIMIT $2)";
    let parameters = [(&int(now) as _, Type::INT8), (&MAX_SWEPT as _, Type::INT8)];
    link.execute(sql, &parameters).await
}

async fn start_session(
    link: &Link,
    cookie: &CodeHash,
    account: AccountId,
    session: &StoredSession,
) -> Result<(), Fault> {
    let account = int(account.0);
    // Those beyond the most used ones end, so that there is room for one.
    let sql = "DELETE FROM sessions WHERE cookie IN
                   (SELECT cookie FROM sessions WHERE account = $1 AND cookie <> $3
                    ORDER BY used DESC, cookie DESC OFFSET $2)";
    let parameters = [
        (&account as _, Type::INT8),
        (&(MAX_SESSIONS as i64 - 1) as _, Type::INT8),
        (&&cookie[..] as _, Type::BYTEA),
    ];
    link.execute(sql, &parameters).await?;
    let sql = "INSERT INTO sessions
                   (cookie, account, created, used, ends, latest, browser, network)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (cookie) DO NOTHING";
    let StoredSession { times, browser } = session;
    let parameters = [
        (&&cookie[..] as _, Type::BYTEA),
        (&account as _, Type::INT8),
        (&int(times.created) as _, Type::INT8),
        (&int(times.used) as _, Type::INT8),
        (&int(times.end) as _, Type::INT8),
        (&int(times.latest) as _, Type::INT8),
        (&browser.name as _, Type::TEXT),
        (&browser.network as _, Type::TEXT),
    ];
    link.execute(sql, &parameters).await.map(drop)
}

async fn renew_session(
    link: &Link,
    cookie: &CodeHash,
    times: SessionTimes,
    browser: Option<&Browser>,
) -> Result<Outcome, Fault> {
    let sql = "UPDATE sessions SET created = $2, used = $3, ends = $4, latest = $5,
                   browser = coalesce($6, browser), network = coalesce($7, network)
               WHERE cookie = $1";
    let parameters = [
        (&&cookie[..] as _, Type::BYTEA),
        (&int(times.created) as _, Type::INT8),
        (&int(times.used) as _, Type::INT8),
        (&int(times.end) as _, Type::INT8),
        (&int(times.latest) as _, Type::INT8),
        (&browser.map(|browser| &browser.name) as _, Type::TEXT),
        (&browser.map(|browser| &browser.network) as _, Type::TEXT),
    ];
    link.execute(sql, &parameters).await?;
    Ok(Outcome::Changed)
}

async fn end_session_of(
    link: &Link,
    account: AccountId,
    session: SessionId,
) -> Result<Outcome, Fault> {
    let [first, last] = session.hashes();
    let sql = "DELETE FROM sessions WHERE account = $1 AND cookie BETWEEN $2 AND $3";
    let parameters = [
        (&int(account.0) as _, Type::INT8),
        (&&first[..] as _, Type::BYTEA),
        (&&last[..] as _, Type::BYTEA),
    ];
    let ended = link.execute(sql, &parameters).await?;
    Ok(Outcome::of_change(ended > 0))
}

/// Ends the sessions of an account but one.
async fn end_sessions(
    link: &Link,
    account: AccountId,
    kept: Option<&CodeHash>,
) -> Result<(), Fault> {
    let sql = "DELETE FROM sessions WHERE account = $1 AND ($2::BYTEA IS NULL OR cookie <> $2)";
    let kept = kept.map(|kept| &kept[..]);
    let parameters = [
        (&int(account.0) as _, Type::INT8),
        (&kept as _, Type::BYTEA),
    ];
    link.execute(sql, &parameters).await.map(drop)
}

async fn record_failures(
    link: &Link,
    account: AccountId,
    failures: &[Failure],
    keys: &[Uuid],
) -> Result<Outcome, Fault> {
    if !exists(link, account).await? {
        return Ok(Outcome::Unchanged);
    }
    let id = int(account.0);
    let ints = |of: fn(&Failure) -> i64| -> Vec<i64> { failures.iter().map(of).collect() };
    let codes: Vec<&str> = failures.iter().map(|it| &*it.code).collect();
    let sql = "INSERT INTO failures (account, id, time, input_bytes, token, status, code)
               SELECT $1, * FROM unnest($2::UUID[], $3::INT8[], $4::INT8[], $5::INT8[], $6::INT8[],
                                        $7::TEXT[])
               ON CONFLICT (account, id) DO NOTHING";
    let parameters = [
        (&id as _, Type::INT8),
        (&keys as _, Type::UUID_ARRAY),
        (&ints(|it| row::time(it.time)) as _, Type::INT8_ARRAY),
        (&ints(|it| int(it.input_bytes)) as _, Type::INT8_ARRAY),
        (&ints(|it| it.token.0.into()) as _, Type::INT8_ARRAY),
        (&ints(|it| it.status.into()) as _, Type::INT8_ARRAY),
        (&codes as _, Type::TEXT_ARRAY),
    ];
    link.execute(sql, &parameters).await?;
    let sql = "DELETE FROM failures WHERE account = $1 AND id <=
                   (SELECT id FROM failures WHERE account = $1 ORDER BY id DESC OFFSET $2 LIMIT 1)";
    let most = int(MAX_FAILURES);
    let parameters = [(&id as _, Type::INT8), (&most as _, Type::INT8)];
    link.execute(sql, &parameters).await?;
    Ok(Outcome::Changed)
}

/// The sessions of an account.
pub async fn sessions(
    link: &Link,
    account: AccountId,
) -> Result<Vec<(CodeHash, StoredSession)>, Fault> {
    let sql = "SELECT cookie, created, used, ends, latest, browser, network
               FROM sessions WHERE account = $1";
    let rows = link.query(sql, &[(&int(account.0), Type::INT8)]).await?;
    let session = |row| {
        let session = StoredSession {
            times: session_times(row, 1)?,
            browser: Browser {
                name: get(row, 5)?,
                network: get(row, 6)?,
            },
        };
        Ok((hash(row, 0)?, session))
    };
    rows.iter().map(session).collect()
}

/// The times of a session in four columns, the first one of which is this one.
pub fn session_times(row: &tokio_postgres::Row, first: usize) -> Result<SessionTimes, Fault> {
    Ok(SessionTimes {
        created: number(row, first)?,
        used: number(row, first + 1)?,
        end: number(row, first + 2)?,
        latest: number(row, first + 3)?,
    })
}
