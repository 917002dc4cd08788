//! The one thread that writes.
//!
//! One commit takes a few milliseconds, whatever is in it. So callers queue up their commands and wait; the thread
//! takes all that have queued up meanwhile, commits once, and then answers each. Nobody is answered before the
//! disk has it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use redb::WriteTransaction;

use super::accounts::{self, Account, AccountId};
use super::database::Database;
use super::email::Email;
use super::error::StoreError;
use super::sessions;
use super::usage::{self, UsageEntry};

/// Commands in one commit: more gains nothing, and the first would wait for the last.
const BATCH: usize = 256;

/// Commands that may wait; further callers block until there is room.
const QUEUE: usize = 1024;

/// One change.
pub enum Command {
    /// Answered by the account, or by nothing if the e-mail is taken.
    CreateAccount {
        /// Its address.
        email: Email,
        /// PHC string.
        password_hash: Option<String>,
        /// Milliseconds since the epoch.
        created: u64,
    },
    /// With its sessions and history. Whether there was one.
    DeleteAccount(AccountId),
    /// Answered by the account, or by nothing if there is none.
    RotateToken(AccountId),
    /// Also sweeps expired ones. Nothing happens if there is no such account.
    StartSession {
        /// SHA-256 of the cookie.
        cookie: [u8; 32],
        /// Whose.
        account: AccountId,
        /// Milliseconds since the epoch.
        now: u64,
    },
    /// Whether there was one.
    EndSession {
        /// SHA-256 of the cookie.
        cookie: [u8; 32],
    },
    /// Removes expired sessions; whether there were any.
    SweepSessions {
        /// Milliseconds since the epoch.
        now: u64,
    },
    /// Nothing happens if there is no such account.
    RecordUsage {
        /// Whose.
        account: AccountId,
        /// What.
        entry: UsageEntry,
    },
}

/// What came of a command.
#[derive(Debug)]
pub enum Outcome {
    /// The account made or changed.
    Account(Account),
    /// Something was changed.
    Changed,
    /// Nothing was.
    Unchanged,
}

impl Outcome {
    /// The account, if the command was answered by one.
    pub fn account(self) -> Option<Account> {
        match self {
            Outcome::Account(account) => Some(account),
            Outcome::Changed | Outcome::Unchanged => None,
        }
    }

    /// Whether anything was changed.
    pub fn changed(&self) -> bool {
        !matches!(self, Outcome::Unchanged)
    }
}

/// The way to the thread. Dropping it waits until the thread has done what was queued.
pub struct Writer {
    queue: Option<SyncSender<Request>>,
    thread: Option<JoinHandle<()>>,
}

struct Request {
    command: Command,
    answer: SyncSender<Result<Outcome, StoreError>>,
}

impl Writer {
    /// Starts the thread.
    ///
    /// # Errors
    /// A sentence: the system has no thread to give.
    pub fn start(database: Arc<Database>) -> Result<Writer, String> {
        let (queue, requests) = sync_channel(QUEUE);
        let thread = thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || run(&database, &requests))
            .map_err(|error| format!("the store's writer thread cannot be started: {error}"))?;
        Ok(Writer {
            queue: Some(queue),
            thread: Some(thread),
        })
    }

    /// Has the command carried out, and returns when it is on disk.
    ///
    /// # Errors
    /// The commit failed; nothing of the command is kept, as far as the disk tells.
    pub fn write(&self, command: Command) -> Result<Outcome, StoreError> {
        let (answer, outcome) = sync_channel(1);
        let ended = || StoreError("the store's writer has ended".into());
        self.queue
            .as_ref()
            .ok_or_else(ended)?
            .send(Request { command, answer })
            .map_err(|_| ended())?;
        outcome.recv().map_err(|_| ended())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // It catches its own panics; if one got past, there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

fn run(database: &Database, requests: &Receiver<Request>) {
    while let Ok(first) = requests.recv() {
        let mut batch = vec![first];
        batch.extend(requests.try_iter().take(BATCH - 1));
        commit(database, &batch);
    }
}

fn commit(database: &Database, batch: &[Request]) {
    let written = catch_unwind(AssertUnwindSafe(|| {
        database.write(|write| {
            let mut tables = Tables::open(write)?;
            batch
                .iter()
                .map(|request| tables.apply(&request.command))
                .collect::<Result<Vec<_>, _>>()
        })
    }));
    let written = written.unwrap_or_else(|_| Err(StoreError("the store's writer panicked".into())));
    // A caller that has gone away does not hear its answer; the others do.
    match written {
        Ok(outcomes) => {
            for (request, outcome) in batch.iter().zip(outcomes) {
                let _ = request.answer.send(Ok(outcome));
            }
        }
        Err(error) => {
            for request in batch {
                let _ = request.answer.send(Err(error.clone()));
            }
        }
    }
}

struct Tables<'t> {
    accounts: accounts::Tables<'t>,
    sessions: sessions::Tables<'t>,
    usage: usage::Tables<'t>,
}

impl<'t> Tables<'t> {
    fn open(write: &'t WriteTransaction) -> Result<Tables<'t>, redb::Error> {
        Ok(Tables {
            accounts: accounts::Tables::open(write)?,
            sessions: sessions::Tables::open(write)?,
            usage: usage::Tables::open(write)?,
        })
    }

    fn apply(&mut self, command: &Command) -> Result<Outcome, redb::Error> {
        match command {
            Command::CreateAccount {
                email,
                password_hash,
                created,
            } => {
                let account = self
                    .accounts
                    .create(email, password_hash.as_deref(), *created)?;
                Ok(account.map_or(Outcome::Unchanged, Outcome::Account))
            }
            Command::DeleteAccount(account) => {
                let existed = self.accounts.delete(*account)?;
                if existed {
                    self.sessions.end_all_of(*account)?;
                    self.usage.delete_all_of(*account)?;
                }
                Ok(outcome(existed))
            }
            Command::RotateToken(account) => Ok(self
                .accounts
                .rotate(*account)?
                .map_or(Outcome::Unchanged, Outcome::Account)),
            Command::StartSession {
                cookie,
                account,
                now,
            } => {
                self.sessions.sweep(*now)?;
                let exists = self.accounts.contains(*account)?;
                if exists {
                    self.sessions.start(cookie, *account, *now)?;
                }
                Ok(outcome(exists))
            }
            Command::EndSession { cookie } => Ok(outcome(self.sessions.end(cookie)?)),
            Command::SweepSessions { now } => Ok(outcome(self.sessions.sweep(*now)?)),
            Command::RecordUsage { account, entry } => {
                let exists = self.accounts.contains(*account)?;
                if exists {
                    self.usage.record(*account, entry)?;
                }
                Ok(outcome(exists))
            }
        }
    }
}

fn outcome(changed: bool) -> Outcome {
    if changed {
        Outcome::Changed
    } else {
        Outcome::Unchanged
    }
}
