//! An engine in memory, for tests that need no disk. It keeps nothing when it is dropped.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard};

use crate::auth::{AccountId, CodeHash, Email};
use crate::store::account::{Account, AccountRecord};
use crate::store::clock;
use crate::store::engine::{Command, Engine, Outcome, SessionRecord, Snapshot};
use crate::store::error::StoreError;
use crate::store::session::SessionEnds;
use crate::store::usage::{UsageEntry, UsagePage, UsageTotals};

/// The engine.
#[derive(Default)]
pub struct MemoryEngine(Mutex<State>);

#[derive(Default)]
struct State {
    accounts: BTreeMap<AccountId, AccountRecord>,
    sessions: HashMap<CodeHash, (AccountId, SessionEnds)>,
    invites: HashMap<CodeHash, u64>,
    histories: HashMap<AccountId, Vec<UsageEntry>>,
    last_account: u64,
    secret_mark: Option<u64>,
}

impl MemoryEngine {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no method panics with the lock")
    }
}

impl Engine for MemoryEngine {
    fn account(&self, id: AccountId) -> Result<Option<AccountRecord>, StoreError> {
        Ok(self.state().accounts.get(&id).cloned())
    }

    fn account_by_email(&self, email: &Email) -> Result<Option<AccountRecord>, StoreError> {
        Ok(self.state().by_email(email).cloned())
    }

    fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        let state = self.state();
        let records = state.accounts.values();
        Ok(records.map(|record| record.account.clone()).collect())
    }

    fn token_generations(&self, limit: usize) -> Result<Vec<(AccountId, u32)>, StoreError> {
        let state = self.state();
        let youngest = state.accounts.values().rev().take(limit);
        Ok(youngest
            .map(|record| (record.account.id, record.account.token_generation))
            .collect())
    }

    fn session(&self, cookie: &CodeHash) -> Result<Option<SessionRecord>, StoreError> {
        let state = self.state();
        let session = state.sessions.get(cookie);
        Ok(session.and_then(|(id, ends)| {
            let record = state.accounts.get(id)?.clone();
            Some(SessionRecord {
                record,
                ends: *ends,
            })
        }))
    }

    fn invite_end(&self, code: &CodeHash) -> Result<Option<u64>, StoreError> {
        Ok(self.state().invites.get(code).copied())
    }

    fn usage_page(
        &self,
        account: AccountId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<UsagePage, StoreError> {
        let state = self.state();
        let history = state.histories.get(&account).map_or(&[][..], |all| all);
        let entries: Vec<_> = (1..)
            .zip(history.iter().cloned())
            .filter(|(sequence, _)| before.is_none_or(|before| *sequence < before))
            .collect();
        let entries: Vec<_> = entries.into_iter().rev().take(limit).collect();
        let last = entries.last().map(|(sequence, _)| *sequence);
        Ok(UsagePage {
            entries,
            next_before: last.filter(|sequence| *sequence > 1),
        })
    }

    fn usage_totals(&self, account: AccountId) -> Result<UsageTotals, StoreError> {
        let mut totals = UsageTotals::default();
        for entry in self.state().histories.get(&account).into_iter().flatten() {
            totals.conversions += 1;
            totals.input_bytes += entry.input_bytes;
            totals.output_bytes += entry.output_bytes;
        }
        Ok(totals)
    }

    fn usage_in_month(&self, account: AccountId, month: u64) -> Result<u64, StoreError> {
        Ok(self.state().in_month(account, month))
    }

    fn exchange_secret_mark(&self, mark: u64) -> Result<Option<u64>, StoreError> {
        Ok(self.state().secret_mark.replace(mark))
    }

    fn apply(&self, commands: &[Command]) -> Result<Vec<Outcome>, StoreError> {
        let mut state = self.state();
        Ok(commands
            .iter()
            .map(|command| state.apply(command))
            .collect())
    }

    fn probe(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn snapshot(&self) -> Result<Option<Box<dyn Snapshot>>, StoreError> {
        Ok(None)
    }
}

impl State {
    fn by_email(&self, email: &Email) -> Option<&AccountRecord> {
        let mut records = self.accounts.values();
        records.find(|record| record.account.email == email.as_str())
    }

    fn in_month(&self, account: AccountId, month: u64) -> u64 {
        let history = self.histories.get(&account).into_iter().flatten();
        history.filter(|entry| month_of(entry) == month).count() as u64
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each command")]
    fn apply(&mut self, command: &Command) -> Outcome {
        match command {
            Command::CreateAccount {
                email,
                password_hash,
                created,
                invite,
            } => {
                let is_good = |code| self.invites.get(code).is_some_and(|end| end > created);
                if !invite.as_ref().is_none_or(is_good) || self.by_email(email).is_some() {
                    return Outcome::Unchanged;
                }
                if let Some(code) = invite {
                    self.invites.remove(code);
                }
                self.last_account = (*created).max(self.last_account + 1);
                let account = Account {
                    id: AccountId(self.last_account),
                    email: email.as_str().to_owned(),
                    created: clock::from_milliseconds(*created),
                    token_generation: 0,
                    has_password: password_hash.is_some(),
                };
                let record = AccountRecord {
                    account: account.clone(),
                    password_hash: password_hash.clone(),
                };
                self.accounts.insert(account.id, record);
                Outcome::Account(account)
            }
            Command::AddInvite { code, end, now } => {
                self.invites.retain(|_, end| *end > *now);
                self.invites.insert(*code, *end);
                Outcome::Changed
            }
            Command::DeleteAccount(id) => {
                self.sessions.retain(|_, (owner, _)| owner != id);
                self.histories.remove(id);
                Outcome::of_change(self.accounts.remove(id).is_some())
            }
            Command::RotateToken(id) => {
                let Some(record) = self.accounts.get_mut(id) else {
                    return Outcome::Unchanged;
                };
                record.account.token_generation += 1;
                Outcome::Account(record.account.clone())
            }
            Command::SetPassword {
                account,
                password_hash,
                verified,
                kept_session,
            } => {
                let Some(record) = self.accounts.get_mut(account) else {
                    return Outcome::Unchanged;
                };
                if verified.is_some() && *verified != record.password_hash {
                    return Outcome::Unchanged;
                }
                record.password_hash = Some(password_hash.clone());
                record.account.has_password = true;
                self.sessions.retain(|cookie, (owner, _)| {
                    owner != account || kept_session.as_ref() == Some(cookie)
                });
                Outcome::Account(record.account.clone())
            }
            Command::StartSession {
                cookie,
                account,
                ends,
                now,
            } => {
                self.sweep(*now);
                if !self.accounts.contains_key(account) {
                    return Outcome::Unchanged;
                }
                self.sessions.insert(*cookie, (*account, *ends));
                Outcome::Changed
            }
            Command::RenewSession { cookie, ends } => {
                if let Some((_, stored)) = self.sessions.get_mut(cookie) {
                    *stored = *ends;
                }
                Outcome::Changed
            }
            Command::EndSession { cookie } => {
                Outcome::of_change(self.sessions.remove(cookie).is_some())
            }
            Command::EndSessionsOf(account) => {
                self.sessions.retain(|_, (owner, _)| owner != account);
                Outcome::Changed
            }
            Command::SweepSessions { now } => Outcome::of_change(self.sweep(*now)),
            Command::RecordUsage { account, entry } => {
                if !self.accounts.contains_key(account) {
                    return Outcome::Unchanged;
                }
                let history = self.histories.entry(*account).or_default();
                history.push(entry.clone());
                let month = month_of(entry);
                let conversions = self.in_month(*account, month);
                Outcome::Recorded { month, conversions }
            }
        }
    }

    fn sweep(&mut self, now: u64) -> bool {
        let before = self.sessions.len();
        self.sessions.retain(|_, (_, ends)| !ends.is_over(now));
        self.sessions.len() < before
    }
}

fn month_of(entry: &UsageEntry) -> u64 {
    clock::month(clock::to_milliseconds(entry.time)).0
}
