//! All tables, open for writing: the rows of a transaction ([`crate::store::apply`]).

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use redb::{ReadableTable, Table, WriteTransaction};

use super::accounts::{self, ACCOUNTS, EMAILS};
use super::failures::{self, FAILURES};
use super::invites::{self, INVITES};
use super::meta::{self, META};
use super::result::Result;
use super::sessions::{self, ACCOUNT_SESSIONS, SESSION_ENDS, SESSIONS};
use super::tokens::{self, RESTRICTIONS, TOKENS};
use super::usage::UsageTables;
use crate::auth::{AccountId, CodeHash};
use crate::store::apply::{self, Transaction};
use crate::store::columns::{self, FailureColumns};
use crate::store::engine::{Command, OldRows, Outcome};
use crate::store::failure::Failure;
use crate::store::rows::AccountRow;
use crate::store::session::StoredSession;
use crate::store::token::{ApiToken, Restrictions};
use crate::store::token_number::TokenNumber;

/// The most entries of histories that are removed at a time: other commands of the same commit wait
/// some 50 ms for it.
const MAX_REMOVED: usize = 10_000;

/// The most accounts that are looked at for old rows at a time.
const MAX_ACCOUNTS: usize = 1000;

/// The most ended sessions that are removed at a time, so that no sign-in waits for a long removal.
const MAX_SWEPT: usize = 1000;

/// All tables of one transaction.
pub struct Tables<'t> {
    accounts: Table<'t, u64, accounts::Value>,
    emails: Table<'t, &'static str, u64>,
    meta: Table<'t, &'static str, u64>,
    invites: Table<'t, &'static CodeHash, u64>,
    tokens: Table<'t, (u64, u32), tokens::Value>,
    restrictions: Table<'t, u64, (u64, u64, u64)>,
    sessions: Table<'t, &'static CodeHash, sessions::Value>,
    ends: Table<'t, (u64, &'static CodeHash), ()>,
    by_account: Table<'t, (u64, &'static CodeHash), ()>,
    pub usage: UsageTables<'t>,
    pub failures: Table<'t, (u64, u64), failures::Value>,
}

/// Makes all tables of a new database.
pub fn create(write: &WriteTransaction) -> Result<()> {
    meta::set_format(write, meta::FORMAT)?;
    Tables::open(write).map(drop)
}

/// The result of a future that is ready at once.
pub fn ready<T>(work: impl Future<Output = T>) -> T {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => unreachable!("the rows of redb are there at once"),
    }
}

impl<'t> Tables<'t> {
    /// Opens the tables, and makes them if they are missing.
    pub fn open(write: &'t WriteTransaction) -> Result<Tables<'t>> {
        Ok(Tables {
            accounts: write.open_table(ACCOUNTS)?,
            emails: write.open_table(EMAILS)?,
            meta: write.open_table(META)?,
            invites: write.open_table(INVITES)?,
            tokens: write.open_table(TOKENS)?,
            restrictions: write.open_table(RESTRICTIONS)?,
            sessions: write.open_table(SESSIONS)?,
            ends: write.open_table(SESSION_ENDS)?,
            by_account: write.open_table(ACCOUNT_SESSIONS)?,
            usage: UsageTables::open(write)?,
            failures: write.open_table(FAILURES)?,
        })
    }

    /// Carries out one command.
    pub fn apply(&mut self, command: &Command) -> Result<Outcome> {
        match command {
            Command::RecordUsage {
                account,
                entry,
                quotas,
            } => {
                if self.accounts.get(account.0)?.is_none() {
                    return Ok(Outcome::Unchanged);
                }
                self.usage.record(*account, entry, *quotas)
            }
            command => ready(apply::apply(self, command)),
        }
    }
}

impl Transaction for Tables<'_> {
    type Error = redb::Error;

    async fn account(&mut self, id: AccountId) -> Result<Option<AccountRow>> {
        accounts::by_id(&self.accounts, id)
    }

    async fn account_of(&mut self, email: &str) -> Result<Option<AccountId>> {
        let id = self.emails.get(email)?;
        Ok(id.map(|id| AccountId(id.value())))
    }

    async fn put_account(&mut self, account: &AccountRow) -> Result<()> {
        let before = self.account(account.id).await?;
        if let Some(before) = before.filter(|before| before.email != account.email) {
            self.emails.remove(&*before.email)?;
        }
        self.emails.insert(&*account.email, account.id.0)?;
        let value = columns::of_account(account);
        self.accounts.insert(account.id.0, value)?;
        Ok(())
    }

    async fn remove_account(&mut self, account: &AccountRow) -> Result<()> {
        let id = account.id;
        let sessions = self.sessions(id).await?.into_iter();
        let cookies: Vec<_> = sessions.map(|(cookie, _)| cookie).collect();
        self.remove_sessions(&cookies).await?;
        self.accounts.remove(id.0)?;
        self.emails.remove(&*account.email)?;
        self.tokens
            .retain_in((id.0, 0)..=(id.0, u32::MAX), |_, _| false)?;
        self.restrictions.remove(id.0)?;
        self.usage.delete_all_of(id)?;
        let failures = (id.0, 0)..=(id.0, u64::MAX);
        Ok(self.failures.retain_in(failures, |_, _| false)?)
    }

    async fn last_account(&mut self) -> Result<u64> {
        let last = self.meta.get("last_account")?;
        Ok(last.map_or(0, |last| last.value()))
    }

    async fn set_last_account(&mut self, last: u64) -> Result<()> {
        self.meta.insert("last_account", last)?;
        Ok(())
    }

    async fn invite_end(&mut self, code: &CodeHash) -> Result<Option<u64>> {
        invites::end(&self.invites, code)
    }

    async fn put_invite(&mut self, code: &CodeHash, end: u64) -> Result<()> {
        self.invites.insert(code, end)?;
        Ok(())
    }

    async fn remove_invite(&mut self, code: &CodeHash) -> Result<()> {
        self.invites.remove(code)?;
        Ok(())
    }

    async fn remove_ended_invites(&mut self, now: u64) -> Result<()> {
        Ok(self.invites.retain(|_, end| end > now)?)
    }

    async fn tokens(&mut self, account: AccountId) -> Result<Vec<(ApiToken, Option<u64>)>> {
        tokens::all_in(&self.tokens, account)
    }

    async fn put_token(
        &mut self,
        account: AccountId,
        token: &ApiToken,
        deleted: Option<u64>,
    ) -> Result<()> {
        let key = (account.0, token.number.0);
        self.tokens.insert(key, columns::of_token(token, deleted))?;
        Ok(())
    }

    async fn remove_token(&mut self, account: AccountId, token: TokenNumber) -> Result<()> {
        self.tokens.remove((account.0, token.0))?;
        Ok(())
    }

    async fn restrictions(&mut self, account: AccountId) -> Result<Restrictions> {
        tokens::restrictions_in(&self.restrictions, account)
    }

    async fn put_restrictions(
        &mut self,
        account: AccountId,
        restrictions: Restrictions,
    ) -> Result<()> {
        if restrictions == Restrictions::default() {
            self.restrictions.remove(account.0)?;
        } else {
            let value = tokens::restrictions_value(restrictions);
            self.restrictions.insert(account.0, value)?;
        }
        Ok(())
    }

    async fn session(&mut self, cookie: &CodeHash) -> Result<Option<(AccountId, StoredSession)>> {
        let value = self.sessions.get(cookie)?;
        Ok(value.map(|value| columns::session(value.value())))
    }

    async fn sessions(&mut self, account: AccountId) -> Result<Vec<(CodeHash, StoredSession)>> {
        sessions::all_of(&self.by_account, &self.sessions, account)
    }

    async fn ended_sessions(&mut self, now: u64) -> Result<Vec<CodeHash>> {
        let mut ended = Vec::new();
        for row in self.ends.iter()?.take(MAX_SWEPT) {
            let key = row?.0;
            let (end, cookie) = key.value();
            if end > now {
                break;
            }
            ended.push(*cookie);
        }
        Ok(ended)
    }

    async fn put_session(
        &mut self,
        cookie: &CodeHash,
        account: AccountId,
        session: &StoredSession,
    ) -> Result<()> {
        self.remove_sessions(&[*cookie]).await?;
        let value = columns::of_session(account, session);
        self.sessions.insert(cookie, value)?;
        self.ends.insert((session.times.end, cookie), ())?;
        self.by_account.insert((account.0, cookie), ())?;
        Ok(())
    }

    async fn remove_sessions(&mut self, cookies: &[CodeHash]) -> Result<u64> {
        let mut removed = 0;
        for cookie in cookies {
            let row = self.sessions.remove(cookie)?;
            let row = row.map(|value| columns::session(value.value()));
            if let Some((account, session)) = row {
                self.ends.remove((session.times.end, cookie))?;
                self.by_account.remove((account.0, cookie))?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    async fn add_failures(&mut self, account: AccountId, failures: &[Failure]) -> Result<()> {
        failures::add(&mut self.failures, account, failures)
    }

    async fn remove_old(&mut self, old: OldRows) -> Result<Option<AccountId>> {
        let mut accounts = Vec::new();
        for row in self.accounts.range(old.first.0..)?.take(MAX_ACCOUNTS + 1) {
            accounts.push(AccountId(row?.0.value()));
        }
        let mut left = MAX_REMOVED;
        for (index, account) in accounts.into_iter().enumerate() {
            if index == MAX_ACCOUNTS {
                return Ok(Some(account));
            }
            let failures = (account.0, 0)..=(account.0, u64::MAX);
            let is_kept = |_, (time, ..): FailureColumns<'_>| time >= old.failures_before;
            self.failures.retain_in(failures, is_kept)?;
            let before = old.history_before;
            left -= self.usage.remove_before(account, before, left)?;
            if left == 0 {
                return Ok(Some(account));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::redb::Database;
    use crate::store::tests::Folder;

    #[test]
    fn a_search_for_old_rows_goes_on_with_the_next_account() {
        let folder = Folder::new();
        let database = Database::open(&folder.path().join("towebp.redb")).unwrap();
        let most = MAX_ACCOUNTS as u64;
        let removal = |write: &WriteTransaction, accounts: u64| {
            let mut tables = Tables::open(write)?;
            for id in 1..=accounts {
                ready(tables.put_account(&AccountRow {
                    id: AccountId(id),
                    email: format!("{id}@example.org"),
                    ..AccountRow::default()
                }))?;
            }
            ready(tables.remove_old(OldRows {
                first: AccountId(1),
                history_before: 0,
                failures_before: 0,
            }))
        };
        for (accounts, next) in [(0, None), (most, None), (most + 1, Some(most + 1))] {
            let found = database.write(|write| removal(write, accounts)).unwrap();
            assert_eq!(found, next.map(AccountId), "{accounts} accounts");
        }
    }
}
