//! The rows of a transaction ([`crate::store::apply`]): each change other than a conversion is a
//! serializable transaction of its own, which is repeated if others were at the same rows.

use tokio_postgres::types::Type;
use uuid::Uuid;

use super::connection::Link;
use super::fault::{Class, Fault};
use super::row::{self, Fields, int};
use super::tables::{self, Conflict, Rows};
use super::{removal, schema};
use crate::auth::{AccountId, CodeHash};
use crate::store::apply::{Transaction, apply};
use crate::store::engine::{Command, OldRows, Outcome, TokenChange};
use crate::store::failure::{Failure, MAX_FAILURES};
use crate::store::rows::AccountRow;
use crate::store::session::StoredSession;
use crate::store::token::{AccountAccess, ApiToken, Restrictions};
use crate::store::token_number::TokenNumber;

/// The most sessions that have ended that are removed at a time.
const MAX_SWEPT: i64 = 100;

/// Carries out a command other than [`Command::RecordUsage`], and returns its outcome once it is
/// durable. `keys` has a key for each failure of [`Command::RecordFailures`].
pub async fn carry_out(link: &Link, command: &Command, keys: &[Uuid]) -> Result<Outcome, Fault> {
    link.forget_warnings();
    link.batch("BEGIN ISOLATION LEVEL SERIALIZABLE").await?;
    let outcome = apply(&mut SqlRows { link, keys }, command).await?;
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

/// The rows of the transaction of a connection, or of single statements.
pub struct SqlRows<'a> {
    link: &'a Link,
    /// The keys of failures that are added.
    keys: &'a [Uuid],
}

impl SqlRows<'_> {
    /// Those of a connection, for reading.
    pub fn of(link: &Link) -> SqlRows<'_> {
        SqlRows { link, keys: &[] }
    }
}

impl Transaction for SqlRows<'_> {
    type Error = Fault;

    async fn account(&mut self, id: AccountId) -> Result<Option<AccountRow>, Fault> {
        let sql = tables::ACCOUNTS.select("id = $1");
        let row = self
            .link
            .query_opt(&sql, &[(&int(id.0), Type::INT8)])
            .await?;
        row.map(|row| row::account(&mut Fields::of(&row)))
            .transpose()
    }

    async fn account_of(&mut self, email: &str) -> Result<Option<AccountId>, Fault> {
        let sql = "SELECT id FROM accounts WHERE email = $1";
        let row = self.link.query_opt(sql, &[(&email, Type::TEXT)]).await?;
        let id = row.map(|row| row::number(&row, 0)).transpose()?;
        Ok(id.map(AccountId))
    }

    async fn put_account(&mut self, account: &AccountRow) -> Result<(), Fault> {
        // An upsert of the unique e-mail address would keep conversions waiting, which lock the
        // account's key.
        let sql = "UPDATE accounts SET email = $2, last_serial = $3, password = $4 WHERE id = $1";
        let parameters = [
            (&int(account.id.0) as _, Type::INT8),
            (&account.email as _, Type::TEXT),
            (&i64::from(account.last_serial) as _, Type::INT8),
            (&account.password as _, Type::TEXT),
        ];
        if self.link.execute(sql, &parameters).await? > 0 {
            return Ok(());
        }
        let cells = row::account_cells(account);
        tables::ACCOUNTS.put(self.link, cells).await
    }

    async fn remove_account(&mut self, account: &AccountRow) -> Result<(), Fault> {
        removal::remove_account(self.link, account.id).await
    }

    async fn last_account(&mut self) -> Result<u64, Fault> {
        let last = schema::number(self.link, "last_account").await?;
        Ok(last.map_or(0, i64::cast_unsigned))
    }

    async fn set_last_account(&mut self, last: u64) -> Result<(), Fault> {
        schema::set_number(self.link, "last_account", int(last)).await
    }

    async fn invite_end(&mut self, code: &CodeHash) -> Result<Option<u64>, Fault> {
        let sql = "SELECT ends FROM invites WHERE code = $1";
        let row = self
            .link
            .query_opt(sql, &[(&&code[..], Type::BYTEA)])
            .await?;
        row.map(|row| row::number(&row, 0)).transpose()
    }

    async fn put_invite(&mut self, code: &CodeHash, end: u64) -> Result<(), Fault> {
        let cells = [(*code).into(), end.into()];
        tables::INVITES.put(self.link, cells).await
    }

    async fn remove_invite(&mut self, code: &CodeHash) -> Result<(), Fault> {
        let sql = "DELETE FROM invites WHERE code = $1";
        let parameters = [(&&code[..] as _, Type::BYTEA)];
        self.link.execute(sql, &parameters).await.map(drop)
    }

    async fn remove_ended_invites(&mut self, now: u64) -> Result<(), Fault> {
        let sql = "DELETE FROM invites WHERE ends <= $1";
        let parameters = [(&int(now) as _, Type::INT8)];
        self.link.execute(sql, &parameters).await.map(drop)
    }

    async fn tokens(&mut self, account: AccountId) -> Result<Vec<(ApiToken, Option<u64>)>, Fault> {
        let sql = tables::TOKENS.select("account = $1 ORDER BY number");
        let rows = self
            .link
            .query(&sql, &[(&int(account.0), Type::INT8)])
            .await?;
        rows.iter()
            .map(|row| row::token(&mut Fields::of(row)))
            .collect()
    }

    async fn put_token(
        &mut self,
        account: AccountId,
        token: &ApiToken,
        deleted: Option<u64>,
    ) -> Result<(), Fault> {
        let cells = row::token_cells(account, token, deleted);
        tables::TOKENS.put(self.link, cells).await
    }

    async fn remove_token(&mut self, account: AccountId, token: TokenNumber) -> Result<(), Fault> {
        let sql = "DELETE FROM tokens WHERE account = $1 AND number = $2";
        let key = [int(account.0), token.0.into()];
        let key = key.each_ref().map(|it| (it as _, Type::INT8));
        self.link.execute(sql, &key).await.map(drop)
    }

    async fn restrictions(&mut self, account: AccountId) -> Result<Restrictions, Fault> {
        let sql = tables::RESTRICTIONS.select("account = $1");
        let row = self
            .link
            .query_opt(&sql, &[(&int(account.0), Type::INT8)])
            .await?;
        row.map_or(Ok(Restrictions::default()), |row| {
            row::restrictions(&mut Fields::of(&row))
        })
    }

    async fn put_restrictions(
        &mut self,
        account: AccountId,
        restrictions: Restrictions,
    ) -> Result<(), Fault> {
        if restrictions == Restrictions::default() {
            let sql = "DELETE FROM restrictions WHERE account = $1";
            let parameters = [(&int(account.0) as _, Type::INT8)];
            return self.link.execute(sql, &parameters).await.map(drop);
        }
        let cells = row::restrictions_cells(account, restrictions);
        tables::RESTRICTIONS.put(self.link, cells).await
    }

    async fn session(
        &mut self,
        cookie: &CodeHash,
    ) -> Result<Option<(AccountId, StoredSession)>, Fault> {
        let sql = tables::SESSIONS.select("cookie = $1");
        let row = self
            .link
            .query_opt(&sql, &[(&&cookie[..], Type::BYTEA)])
            .await?;
        let session = row.map(|row| row::session(&mut Fields::of(&row)));
        Ok(session
            .transpose()?
            .map(|(_, account, session)| (account, session)))
    }

    async fn sessions(
        &mut self,
        account: AccountId,
    ) -> Result<Vec<(CodeHash, StoredSession)>, Fault> {
        let sql = tables::SESSIONS.select("account = $1");
        let parameters = [(&int(account.0) as _, Type::INT8)];
        let rows = self.link.query(&sql, &parameters).await?;
        let session = |row| {
            let (cookie, _, session) = row::session(&mut Fields::of(row))?;
            Ok((cookie, session))
        };
        rows.iter().map(session).collect()
    }

    async fn ended_sessions(&mut self, now: u64) -> Result<Vec<CodeHash>, Fault> {
        let sql = tables::SESSIONS.select("ends <= $1 ORDER BY ends LIMIT $2");
        let parameters = [(&int(now) as _, Type::INT8), (&MAX_SWEPT as _, Type::INT8)];
        let rows = self.link.query(&sql, &parameters).await?;
        let cookie = |row| Ok(row::session(&mut Fields::of(row))?.0);
        rows.iter().map(cookie).collect()
    }

    async fn put_session(
        &mut self,
        cookie: &CodeHash,
        account: AccountId,
        session: &StoredSession,
    ) -> Result<(), Fault> {
        let cells = row::session_cells(cookie, account, session);
        tables::SESSIONS.put(self.link, cells).await
    }

    async fn remove_sessions(&mut self, cookies: &[CodeHash]) -> Result<u64, Fault> {
        if cookies.is_empty() {
            return Ok(0);
        }
        let cookies: Vec<&[u8]> = cookies.iter().map(|it| &it[..]).collect();
        let sql = "DELETE FROM sessions WHERE cookie = ANY ($1)";
        self.link
            .execute(sql, &[(&cookies, Type::BYTEA_ARRAY)])
            .await
    }

    async fn add_failures(
        &mut self,
        account: AccountId,
        failures: &[Failure],
    ) -> Result<(), Fault> {
        let mut rows = Rows::new(&tables::FAILURES);
        for (failure, key) in failures.iter().zip(self.keys) {
            rows.push(row::failure_cells(account, *key, failure));
        }
        rows.send(self.link, Conflict::Keep).await?;
        let sql = "DELETE FROM failures WHERE account = $1 AND id <=
                       (SELECT id FROM failures WHERE account = $1
                        ORDER BY id DESC OFFSET $2 LIMIT 1)";
        let parameters = [int(account.0), int(MAX_FAILURES)];
        let parameters = parameters.each_ref().map(|it| (it as _, Type::INT8));
        self.link.execute(sql, &parameters).await.map(drop)
    }

    async fn remove_old(&mut self, old: OldRows) -> Result<Option<AccountId>, Fault> {
        removal::remove_old(self.link, old).await
    }

    async fn access(&mut self, account: AccountId) -> Result<AccountAccess, Fault> {
        // One statement, since each replica sends it again and again.
        let sql = format!(
            "SELECT {}, {} FROM tokens t LEFT JOIN restrictions r ON r.account = t.account
             WHERE t.account = $1 AND t.deleted = 0 ORDER BY t.number",
            tables::RESTRICTIONS.columns("r"),
            tables::TOKENS.columns("t")
        );
        let parameters = [(&int(account.0) as _, Type::INT8)];
        let rows = self.link.query(&sql, &parameters).await?;
        let mut access = AccountAccess {
            tokens: Vec::new(),
            restrictions: Restrictions::default(),
        };
        for row in &rows {
            let mut fields = Fields::of(row);
            access.restrictions = row::restrictions(&mut fields)?;
            access.tokens.push(row::token(&mut fields)?.0);
        }
        Ok(access)
    }
}
