//! All tables, open for writing: what each command does to their rows.

use redb::WriteTransaction;

use super::accounts::AccountTables;
use super::failures::FailureTable;
use super::invites::InviteTable;
use super::meta;
use super::sessions::SessionTables;
use super::tokens::TokenTables;
use super::usage::UsageTables;
use crate::auth::{AccountId, CodeHash, Email};
use crate::store::clock;
use crate::store::engine::{Command, OldRows, Outcome, TokenChange};
use crate::store::token::{AccountAccess, ApiToken, MAX_TOKENS, TokenSettings};
use crate::store::token_number::TokenNumber;

/// The most entries of histories that are removed at a time: other commands of the same commit wait
/// some 50 ms for it.
const MAX_REMOVED: usize = 10_000;

/// The most accounts that are looked at for old rows at a time.
const MAX_ACCOUNTS: usize = 1000;

/// All tables of one transaction.
pub struct Tables<'t> {
    accounts: AccountTables<'t>,
    sessions: SessionTables<'t>,
    tokens: TokenTables<'t>,
    usage: UsageTables<'t>,
    failures: FailureTable<'t>,
    invites: InviteTable<'t>,
}

/// Makes all tables of a new database.
pub fn create(write: &WriteTransaction) -> Result<(), redb::Error> {
    meta::set_format(write, meta::FORMAT)?;
    Tables::open(write).map(drop)
}

impl<'t> Tables<'t> {
    /// Opens the tables, and makes them if they are missing.
    pub fn open(write: &'t WriteTransaction) -> Result<Tables<'t>, redb::Error> {
        Ok(Tables {
            accounts: AccountTables::open(write)?,
            sessions: SessionTables::open(write)?,
            tokens: TokenTables::open(write)?,
            usage: UsageTables::open(write)?,
            failures: FailureTable::open(write)?,
            invites: InviteTable::open(write)?,
        })
    }

    /// Carries out one command.
    pub fn apply(&mut self, command: &Command) -> Result<Outcome, redb::Error> {
        match command {
            Command::CreateAccount {
                email,
                password_hash,
                created,
                invite,
            } => {
                let (hash, code) = (password_hash.as_deref(), invite.as_ref());
                self.create_account(email, hash, *created, code)
            }
            Command::AddInvite { code, end, now } => {
                self.invites.add(code, *end, *now)?;
                Ok(Outcome::Changed)
            }
            Command::DeleteAccount(account) => {
                let existed = self.accounts.delete(*account)?;
                if existed {
                    self.sessions.end_all_of(*account, None)?;
                    self.tokens.delete_all_of(*account)?;
                    self.usage.delete_all_of(*account)?;
                    self.failures.delete_all_of(*account)?;
                }
                Ok(Outcome::of_change(existed))
            }
            Command::ChangeTokens { account, change } => self.change_tokens(*account, change),
            Command::SetPassword {
                account,
                password_hash,
                verified,
                kept_session,
            } => {
                let changed =
                    self.accounts
                        .set_password(*account, password_hash, verified.as_deref())?;
                if changed.is_some() {
                    self.sessions.end_all_of(*account, kept_session.as_ref())?;
                }
                Ok(changed.into())
            }
            Command::SetEmail {
                account,
                email,
                verified,
            } => self
                .accounts
                .set_email(*account, email, verified.as_deref()),
            Command::StartSession {
                cookie,
                account,
                session,
                now,
            } => {
                self.sessions.sweep(*now)?;
                let exists = self.accounts.contains(*account)?;
                if exists {
                    self.sessions.start(cookie, *account, session)?;
                }
                Ok(Outcome::of_change(exists))
            }
            Command::RenewSession {
                cookie,
                times,
                browser,
            } => {
                self.sessions.renew(cookie, *times, browser.as_ref())?;
                Ok(Outcome::Changed)
            }
            Command::EndSession { cookie } => Ok(Outcome::of_change(self.sessions.end(cookie)?)),
            Command::EndSessionOf { account, session } => Ok(Outcome::of_change(
                self.sessions.end_of(*account, *session)?,
            )),
            Command::EndSessionsOf(account) => {
                self.sessions.end_all_of(*account, None)?;
                Ok(Outcome::Changed)
            }
            Command::SweepSessions { now } => Ok(Outcome::of_change(self.sessions.sweep(*now)?)),
            Command::RecordFailures { account, failures } => {
                let exists = self.accounts.contains(*account)?;
                if exists {
                    self.failures.add(*account, failures)?;
                }
                Ok(Outcome::of_change(exists))
            }
            Command::RemoveOld(old) => self.remove_old(*old),
            Command::RecordUsage {
                account,
                entry,
                quotas,
            } => {
                if !self.accounts.contains(*account)? {
                    return Ok(Outcome::Unchanged);
                }
                self.usage.record(*account, entry, *quotas)
            }
        }
    }

    fn create_account(
        &mut self,
        email: &Email,
        password_hash: Option<&str>,
        created: u64,
        invite: Option<&CodeHash>,
    ) -> Result<Outcome, redb::Error> {
        if let Some(code) = invite
            && !self.invites.is_good(code, created)?
        {
            return Ok(Outcome::Unchanged);
        }
        let account = self.accounts.create(email, password_hash, created)?;
        if let (Some(code), Some(_)) = (invite, &account) {
            self.invites.remove(code)?;
        }
        if let Some(account) = &account {
            let token = ApiToken::default_token(created, 0);
            self.tokens.put(account.id, &token)?;
        }
        Ok(account.into())
    }

    fn remove_old(&mut self, old: OldRows) -> Result<Outcome, redb::Error> {
        let mut left = MAX_REMOVED;
        let accounts = self.accounts.from(old.first, MAX_ACCOUNTS + 1)?;
        for (index, account) in accounts.into_iter().enumerate() {
            if index == MAX_ACCOUNTS {
                return Ok(Outcome::Removed {
                    next: Some(account),
                });
            }
            self.failures.remove_before(account, old.failures_before)?;
            let removed = self
                .usage
                .remove_before(account, old.history_before, left)?;
            left -= removed;
            if left == 0 {
                return Ok(Outcome::Removed {
                    next: Some(account),
                });
            }
        }
        Ok(Outcome::Removed { next: None })
    }

    fn change_tokens(
        &mut self,
        account: AccountId,
        change: &TokenChange,
    ) -> Result<Outcome, redb::Error> {
        let access = self.tokens.access(account)?;
        let number = match change {
            TokenChange::Create { settings, now } => {
                return self.create_token(account, &access, settings, *now);
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
                self.tokens.put(account, &token)?;
            }
            TokenChange::Rotate {
                overlap_ends, now, ..
            } => {
                if let Some(serial) = self.accounts.next_serial(account, *now)? {
                    token.rotate(serial, *overlap_ends);
                    self.tokens.put(account, &token)?;
                }
            }
            TokenChange::Delete { now, .. } => self.tokens.delete(account, &token, *now)?,
            TokenChange::Restrict(restrictions) => self.tokens.restrict(account, *restrictions)?,
            TokenChange::Create { .. } => unreachable!("it was carried out above"),
        }
        self.token_outcome(account, number)
    }

    fn create_token(
        &mut self,
        account: AccountId,
        access: &AccountAccess,
        settings: &TokenSettings,
        now: u64,
    ) -> Result<Outcome, redb::Error> {
        if access.has_name(&settings.name, None) {
            return Ok(Outcome::NameTaken);
        }
        if access.tokens.len() >= MAX_TOKENS {
            return Ok(Outcome::TooManyTokens);
        }
        let Some(serial) = self.accounts.next_serial(account, now)? else {
            return Ok(Outcome::Unchanged);
        };
        let token = ApiToken {
            number: TokenNumber(serial),
            created: clock::from_milliseconds(now),
            serial,
            previous: None,
            settings: settings.clone(),
        };
        self.tokens.put(account, &token)?;
        self.token_outcome(account, token.number)
    }

    fn token_outcome(
        &self,
        account: AccountId,
        token: TokenNumber,
    ) -> Result<Outcome, redb::Error> {
        let access = self.tokens.access(account)?;
        Ok(Outcome::Token { token, access })
    }
}
