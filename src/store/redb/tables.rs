//! All tables, open for writing: what each command does to their rows.

use redb::WriteTransaction;

use super::accounts::AccountTables;
use super::invites::InviteTable;
use super::meta;
use super::sessions::SessionTables;
use super::usage::UsageTables;
use crate::store::engine::{Command, Outcome};

/// All tables of one transaction.
pub struct Tables<'t> {
    accounts: AccountTables<'t>,
    sessions: SessionTables<'t>,
    usage: UsageTables<'t>,
    invites: InviteTable<'t>,
}

/// Makes all tables of a new database.
pub fn create(write: &WriteTransaction) -> Result<(), redb::Error> {
    meta::set_format(write)?;
    Tables::open(write).map(drop)
}

impl<'t> Tables<'t> {
    /// Opens the tables, and makes them if they are missing.
    pub fn open(write: &'t WriteTransaction) -> Result<Tables<'t>, redb::Error> {
        Ok(Tables {
            accounts: AccountTables::open(write)?,
            sessions: SessionTables::open(write)?,
            usage: UsageTables::open(write)?,
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
                if let Some(code) = invite
                    && !self.invites.is_good(code, *created)?
                {
                    return Ok(Outcome::Unchanged);
                }
                let account = self
                    .accounts
                    .create(email, password_hash.as_deref(), *created)?;
                if let (Some(code), Some(_)) = (invite, &account) {
                    self.invites.remove(code)?;
                }
                Ok(account.into())
            }
            Command::AddInvite { code, end, now } => {
                self.invites.add(code, *end, *now)?;
                Ok(Outcome::Changed)
            }
            Command::DeleteAccount(account) => {
                let existed = self.accounts.delete(*account)?;
                if existed {
                    self.sessions.end_all_of(*account, None)?;
                    self.usage.delete_all_of(*account)?;
                }
                Ok(Outcome::of_change(existed))
            }
            Command::RotateToken(account) => Ok(self.accounts.rotate_token(*account)?.into()),
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
            Command::StartSession {
                cookie,
                account,
                ends,
                now,
            } => {
                self.sessions.sweep(*now)?;
                let exists = self.accounts.contains(*account)?;
                if exists {
                    self.sessions.start(cookie, *account, *ends)?;
                }
                Ok(Outcome::of_change(exists))
            }
            Command::RenewSession { cookie, ends } => {
                self.sessions.renew(cookie, *ends)?;
                Ok(Outcome::Changed)
            }
            Command::EndSession { cookie } => Ok(Outcome::of_change(self.sessions.end(cookie)?)),
            Command::EndSessionsOf(account) => {
                self.sessions.end_all_of(*account, None)?;
                Ok(Outcome::Changed)
            }
            Command::SweepSessions { now } => Ok(Outcome::of_change(self.sessions.sweep(*now)?)),
            Command::RecordUsage { account, entry } => {
                if !self.accounts.contains(*account)? {
                    return Ok(Outcome::Unchanged);
                }
                let (month, conversions) = self.usage.record(*account, entry)?;
                Ok(Outcome::Recorded { month, conversions })
            }
        }
    }
}
