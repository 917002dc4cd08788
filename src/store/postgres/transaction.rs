//! The rows of a transaction ([`crate::store::apply`]): each change other than a conversion is a
//! serializable transaction of its own, which is repeated if others were at the same rows.

use uuid::Uuid;

use super::cell::{self, Cell, ColumnType, Fields, cells};
use super::connection::Link;
use super::fault::{Class, Fault, Result};
use super::row;
use super::tables::{self, Conflict, Rows};
use super::{removal, schema};
use crate::auth::{AccountId, CodeHash};
use crate::store::apply::{Transaction, apply};
use crate::store::columns;
use crate::store::engine::{AccountChange, Command, OldRows, Outcome, TokenChange};
use crate::store::failure::{Failure, MAX_FAILURES};
use crate::store::rows::AccountRow;
use crate::store::session::StoredSession;
use crate::store::token::{AccountAccess, ApiToken, Restrictions};
use crate::store::token_number::TokenNumber;

/// The most sessions that have ended that are removed at a time.
const MAX_SWEPT: i64 = 100;

/// Carries out a command other than [`Command::RecordUsage`], and returns its outcome once it is
/// durable. `keys` has a key for each failure of [`Command::RecordFailures`].
pub async fn carry_out(link: &Link, command: &Command, keys: &[Uuid]) -> Result<Outcome> {
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
    matches!(
        command,
        Command::AddInvite { .. }
            | Command::StartSession { .. }
            | Command::RenewSession { .. }
            | Command::EndSessionsOf(_)
            | Command::SweepSessions { .. }
            | Command::RecordUsage { .. }
            | Command::RecordFailures { .. }
            | Command::RemoveOld(_)
            | Command::ChangeAccount {
                change: AccountChange::Email(_),
                ..
            }
            | Command::ChangeTokens {
                change: TokenChange::Set { .. } | TokenChange::Restrict(_),
                ..
            }
    )
}

/// The rows of the transaction of a connection, or of single statements.
pub struct SqlRows<'a> {
    link: &'a Link,
    /// The keys of failures that are added.
    keys: &'a [Uuid],
}

impl SqlRows<'_> {
    /// The rows of a connection, for reading.
    pub fn of(link: &Link) -> SqlRows<'_> {
        SqlRows { link, keys: &[] }
    }
}

impl Transaction for SqlRows<'_> {
    type Error = Fault;

    async fn account(&mut self, id: AccountId) -> Result<Option<AccountRow>> {
        let sql = tables::ACCOUNTS.select("id = $1");
        self.link.first(&sql, cells![id], row::account).await
    }

    async fn account_of(&mut self, email: &str) -> Result<Option<AccountId>> {
        let sql = "SELECT id FROM accounts WHERE email = $1";
        self.link.first(sql, cells![email], cell::read).await
    }

    async fn put_account(&mut self, account: &AccountRow) -> Result<()> {
        // An upsert of the unique e-mail address would keep conversions waiting, which lock the
        // account's key.
        let sql =
            "UPDATE accounts SET email = $2, last_serial = $3, password = $4, second_factor = $5
                   WHERE id = $1";
        if self
            .link
            .execute(
                sql,
                cells![
                    account.id,
                    &*account.email,
                    account.last_serial,
                    account.password.clone(),
                    account.second_factor.clone()
                ],
            )
            .await?
            > 0
        {
            return Ok(());
        }
        let columns = row::account_columns(account);
        tables::ACCOUNTS.put(self.link, columns).await
    }

    async fn remove_account(&mut self, account: &AccountRow) -> Result<()> {
        removal::remove_account(self.link, account.id).await
    }

    async fn last_account(&mut self) -> Result<u64> {
        let last = schema::number(self.link, "last_account").await?;
        Ok(last.map_or(0, i64::cast_unsigned))
    }

    async fn set_last_account(&mut self, last: u64) -> Result<()> {
        schema::set_number(self.link, "last_account", last).await
    }

    async fn invite_end(&mut self, code: &CodeHash) -> Result<Option<u64>> {
        let sql = "SELECT ends FROM invites WHERE code = $1";
        let code = (*code).into();
        self.link.first(sql, &[code], cell::read).await
    }

    async fn put_invite(&mut self, code: &CodeHash, end: u64) -> Result<()> {
        tables::INVITES.put(self.link, (*code, end)).await
    }

    async fn remove_invite(&mut self, code: &CodeHash) -> Result<()> {
        let sql = "DELETE FROM invites WHERE code = $1";
        self.link.execute(sql, cells![*code]).await.map(drop)
    }

    async fn remove_ended_invites(&mut self, now: u64) -> Result<()> {
        let sql = "DELETE FROM invites WHERE ends <= $1";
        self.link.execute(sql, cells![now]).await.map(drop)
    }

    async fn tokens(&mut self, account: AccountId) -> Result<Vec<(ApiToken, Option<u64>)>> {
        let sql = tables::TOKENS.select("account = $1 ORDER BY number");
        self.link.all(&sql, cells![account], row::token).await
    }

    async fn put_token(
        &mut self,
        account: AccountId,
        token: &ApiToken,
        deleted: Option<u64>,
    ) -> Result<()> {
        let columns = row::token_columns(account, token, deleted);
        tables::TOKENS.put(self.link, columns).await
    }

    async fn remove_token(&mut self, account: AccountId, token: TokenNumber) -> Result<()> {
        let sql = "DELETE FROM tokens WHERE account = $1 AND number = $2";
        self.link
            .execute(sql, cells![account, token])
            .await
            .map(drop)
    }

    async fn restrictions(&mut self, account: AccountId) -> Result<Restrictions> {
        let sql = tables::RESTRICTIONS.select("account = $1");
        let restrictions = self
            .link
            .first(&sql, cells![account], row::restrictions)
            .await?;
        Ok(restrictions.unwrap_or_default())
    }

    async fn put_restrictions(
        &mut self,
        account: AccountId,
        restrictions: Restrictions,
    ) -> Result<()> {
        if restrictions == Restrictions::default() {
            let sql = "DELETE FROM restrictions WHERE account = $1";
            return self.link.execute(sql, cells![account]).await.map(drop);
        }
        let columns = row::restrictions_columns(account, restrictions);
        tables::RESTRICTIONS.put(self.link, columns).await
    }

    async fn session(&mut self, cookie: &CodeHash) -> Result<Option<(AccountId, StoredSession)>> {
        let sql = tables::SESSIONS.select("cookie = $1");
        let found = self.link.first(&sql, cells![*cookie], row::session).await?;
        Ok(found.map(|(_, account, session)| (account, session)))
    }

    async fn sessions(&mut self, account: AccountId) -> Result<Vec<(CodeHash, StoredSession)>> {
        let sql = tables::SESSIONS.select("account = $1");
        let session = |row: &mut Fields<'_>| {
            let (cookie, _, session) = row::session(row)?;
            Ok((cookie, session))
        };
        self.link.all(&sql, cells![account], session).await
    }

    async fn ended_sessions(&mut self, now: u64) -> Result<Vec<CodeHash>> {
        let sql = tables::SESSIONS.select("ends <= $1 ORDER BY ends LIMIT $2");
        let cookie = |row: &mut Fields<'_>| Ok(row::session(row)?.0);
        self.link.all(&sql, cells![now, MAX_SWEPT], cookie).await
    }

    async fn put_session(
        &mut self,
        cookie: &CodeHash,
        account: AccountId,
        session: &StoredSession,
    ) -> Result<()> {
        let columns = (*cookie, columns::of_session(account, session));
        tables::SESSIONS.put(self.link, columns).await
    }

    async fn remove_sessions(&mut self, cookies: &[CodeHash]) -> Result<u64> {
        if cookies.is_empty() {
            return Ok(0);
        }
        let cookies = cookies.iter().map(|it| (*it).into()).collect();
        let sql = "DELETE FROM sessions WHERE cookie = ANY ($1)";
        let cookies = [Cell::List(ColumnType::Bytes, cookies)];
        self.link.execute(sql, &cookies).await
    }

    async fn add_failures(&mut self, account: AccountId, failures: &[Failure]) -> Result<()> {
        let mut rows = Rows::new(&tables::FAILURES);
        for (failure, key) in failures.iter().zip(self.keys) {
            rows.push(row::failure_columns(account, *key, failure));
        }
        rows.send(self.link, Conflict::Keep).await?;
        let sql = "DELETE FROM failures WHERE account = $1 AND id <=
                       (SELECT id FROM failures WHERE account = $1
                        ORDER BY id DESC OFFSET $2 LIMIT 1)";
        self.link
            .execute(sql, cells![account, MAX_FAILURES])
            .await
            .map(drop)
    }

    async fn remove_old(&mut self, old: OldRows) -> Result<Option<AccountId>> {
        removal::remove_old(self.link, old).await
    }

    async fn access(&mut self, account: AccountId) -> Result<AccountAccess> {
        // One statement, since each replica sends it again and again.
        let sql = format!(
            "SELECT {}, {} FROM tokens t LEFT JOIN restrictions r ON r.account = t.account
             WHERE t.account = $1 AND t.deleted = 0 ORDER BY t.number",
            tables::RESTRICTIONS.columns("r"),
            tables::TOKENS.columns("t")
        );
        let both = |row: &mut Fields<'_>| Ok((row::restrictions(row)?, row::token(row)?.0));
        let rows = self.link.all(&sql, cells![account], both).await?;
        Ok(AccountAccess {
            restrictions: rows.first().map(|it| it.0).unwrap_or_default(),
            tokens: rows.into_iter().map(|it| it.1).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Email;
    use crate::store::token::TokenSettings;

    #[test]
    fn no_secret_is_given_and_nothing_is_removed_twice_for_an_answer_that_was_lost() {
        let (account, token) = (AccountId(1), TokenNumber::DEFAULT);
        let settings = TokenSettings::of_default;
        let change = |change| Command::ChangeTokens { account, change };
        let of_account = |change| Command::ChangeAccount {
            account,
            change,
            verified: None,
        };
        let email = Email::parse("owner@example.org").unwrap();
        let create = TokenChange::Create {
            settings: settings(),
            now: 0,
        };
        let rotate = TokenChange::Rotate {
            token,
            overlap_ends: None,
            now: 0,
        };
        let password = AccountChange::Password {
            hash: String::new(),
            kept_session: None,
        };
        let once = [
            Command::CreateAccount {
                email: email.clone(),
                password_hash: None,
                created: 0,
                invite: None,
            },
            Command::DeleteAccount(account),
            Command::EndSession { cookie: [0; 32] },
            change(create),
            change(rotate),
            change(TokenChange::Delete { token, now: 0 }),
            of_account(password),
            of_account(AccountChange::SecondFactor(None)),
        ];
        assert!(!once.iter().any(may_be_repeated));
        let set = TokenChange::Set {
            token,
            settings: settings(),
        };
        let again = [
            Command::EndSessionsOf(account),
            change(set),
            change(TokenChange::Restrict(Restrictions::default())),
            of_account(AccountChange::Email(email)),
        ];
        assert!(again.iter().all(may_be_repeated));
    }
}
