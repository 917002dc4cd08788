//! The one thread that writes.
//!
//! One commit takes a few milliseconds, whatever is in it. So callers queue up their commands and wait; the thread
//! takes all that have queued up meanwhile, commits once, and then answers each. Nobody is answered before the
//! disk has it.
//!
//! After a commit that the disk did not take, the thread looks for room every second, until there is some.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use redb::{TableDefinition, WriteTransaction};

use super::accounts::{self, Account};
use super::database::Database;
use super::error::StoreError;
use super::invites;
use super::known::KnownAccounts;
use super::sessions;
use super::usage::{self, UsageEntry};
use crate::auth::{AccountId, Email};

/// Commands in one commit: more gains nothing, and the first would wait for the last.
const BATCH: usize = 256;

/// Commands that may wait; further callers block until there is room.
const QUEUE: usize = 1024;

/// Between two looks for room.
const PROBE_PAUSE: Duration = Duration::from_secs(1);

/// What is written to find out whether there is room, for a moment: some commits' worth, so that not the very next of them finds
/// the disk full again. With what stands around it, 256 KiB; the file keeps them.
const ROOM_BYTES: usize = 252 << 10;

const ROOM: TableDefinition<(), &[u8]> = TableDefinition::new("room");

/// One change.
pub enum Command {
    /// Answered by the account, or by nothing if the e-mail is taken or the invitation is not good. An invitation is
    /// used up only by an account.
    CreateAccount {
        /// Its address.
        email: Email,
        /// PHC string.
        password_hash: Option<String>,
        /// Milliseconds since the epoch.
        created: u64,
        /// SHA-256 of the invitation's code, if one is needed.
        invite: Option<[u8; 32]>,
    },
    /// Makes an invitation.
    Invite {
        /// SHA-256 of its code.
        code: [u8; 32],
        /// Milliseconds since the epoch.
        now: u64,
    },
    /// With its sessions and history. Whether there was one.
    DeleteAccount(AccountId),
    /// Answered by the account, or by nothing if there is none.
    RotateToken(AccountId),
    /// Also ends the account's sessions. Answered by the account, or by nothing if there is none, or its password is
    /// no more the one that was verified.
    SetPassword {
        /// Whose.
        account: AccountId,
        /// PHC string.
        password_hash: String,
        /// The PHC string that must be stored still, if one must.
        verified: Option<String>,
        /// SHA-256 of the cookie whose session goes on.
        kept_session: Option<[u8; 32]>,
    },
    /// Also sweeps expired ones. Nothing happens if there is no such account.
    StartSession {
        /// SHA-256 of the cookie.
        cookie: [u8; 32],
        /// Whose.
        account: AccountId,
        /// Milliseconds since the epoch.
        now: u64,
    },
    /// Moves its end, if there is one.
    RenewSession {
        /// SHA-256 of the cookie.
        cookie: [u8; 32],
        /// Milliseconds since the epoch.
        now: u64,
    },
    /// Whether there was one.
    EndSession {
        /// SHA-256 of the cookie.
        cookie: [u8; 32],
    },
    /// Ends all sessions of an account.
    EndSessionsOf(AccountId),
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
    /// A conversion was recorded.
    Recorded {
        /// The first millisecond of its month.
        month: u64,
        /// The account's conversions in that month.
        conversions: u64,
    },
    /// Nothing was.
    Unchanged,
}

impl Outcome {
    /// The account, if the command was answered by one.
    pub fn account(self) -> Option<Account> {
        match self {
            Outcome::Account(account) => Some(account),
            Outcome::Changed | Outcome::Recorded { .. } | Outcome::Unchanged => None,
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
    /// Starts the thread, which brings what it has changed to `known` too.
    ///
    /// # Errors
    /// A sentence: the system has no thread to give.
    pub fn start(database: Arc<Database>, known: Arc<KnownAccounts>) -> Result<Writer, String> {
        let (queue, requests) = sync_channel(QUEUE);
        let thread = thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || run(&database, &known, &requests))
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
        let ended = || StoreError::Failed("the store's writer has ended".into());
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

fn run(database: &Database, known: &KnownAccounts, requests: &Receiver<Request>) {
    let mut probed = Instant::now();
    loop {
        let is_out = database.availability.check().is_err();
        let first = if is_out {
            requests.recv_timeout(PROBE_PAUSE)
        } else {
            requests.recv().map_err(RecvTimeoutError::from)
        };
        match first {
            Ok(first) => {
                let mut batch = vec![first];
                batch.extend(requests.try_iter().take(BATCH - 1));
                commit(database, known, &batch);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if is_out && probed.elapsed() >= PROBE_PAUSE {
            probe(database);
            probed = Instant::now();
        }
    }
}

/// Small commits may still find room in the file while the disk is full: a large one proves more.
fn probe(database: &Database) {
    // Random, since some file systems have room for any number of zeros.
    let mut bytes = vec![0; ROOM_BYTES];
    if getrandom::fill(&mut bytes).is_err() {
        return;
    }
    let probed = catch_unwind(AssertUnwindSafe(|| {
        database.write(|write| Ok(write.open_table(ROOM)?.insert((), &*bytes).map(drop)?))?;
        database.write(|write| Ok(write.delete_table(ROOM).map(drop)?))
    }));
    if let Ok(Ok(())) = probed {
        database.availability.succeeded();
    }
}

fn commit(database: &Database, known: &KnownAccounts, batch: &[Request]) {
    let written = catch_unwind(AssertUnwindSafe(|| {
        database.write(|write| {
            let mut tables = Tables::open(write)?;
            batch
                .iter()
                .map(|request| tables.apply(&request.command))
                .collect::<Result<Vec<_>, _>>()
        })
    }));
    let written =
        written.unwrap_or_else(|_| Err(StoreError::Failed("the store's writer panicked".into())));
    // A caller that has gone away does not hear its answer; the others do.
    match written {
        Ok(outcomes) => {
            for (request, outcome) in batch.iter().zip(&outcomes) {
                tell(known, &request.command, outcome);
            }
            for (request, outcome) in batch.iter().zip(outcomes) {
                let _ = request.answer.send(Ok(outcome));
            }
        }
        Err(error) => {
            if let StoreError::Unavailable(cause) = &error {
                database.availability.failed(cause);
            }
            for request in batch {
                doubt(known, &request.command);
            }
            for request in batch {
                let _ = request.answer.send(Err(error.clone()));
            }
        }
    }
}

/// Brings to memory what is on disk now.
fn tell(known: &KnownAccounts, command: &Command, outcome: &Outcome) {
    match (command, outcome) {
        (Command::CreateAccount { .. } | Command::RotateToken(_), Outcome::Account(account)) => {
            known.changed(account.id, account.token_generation);
        }
        (Command::DeleteAccount(account), Outcome::Changed) => known.deleted(*account),
        (Command::RecordUsage { account, .. }, Outcome::Recorded { month, conversions }) => {
            known.counted(*account, *month, *conversions);
        }
        _ => {}
    }
}

/// Takes from memory what may be on disk or not.
fn doubt(known: &KnownAccounts, command: &Command) {
    match command {
        Command::CreateAccount { .. } | Command::RotateToken(_) | Command::DeleteAccount(_) => {
            known.forget_all();
        }
        Command::RecordUsage { account, .. } => known.forget_month(*account),
        Command::Invite { .. }
        | Command::SetPassword { .. }
        | Command::StartSession { .. }
        | Command::RenewSession { .. }
        | Command::EndSession { .. }
        | Command::EndSessionsOf(_)
        | Command::SweepSessions { .. } => {}
    }
}

struct Tables<'t> {
    accounts: accounts::Tables<'t>,
    sessions: sessions::Tables<'t>,
    usage: usage::Tables<'t>,
    invites: invites::Tables<'t>,
}

impl<'t> Tables<'t> {
    fn open(write: &'t WriteTransaction) -> Result<Tables<'t>, redb::Error> {
        Ok(Tables {
            accounts: accounts::Tables::open(write)?,
            sessions: sessions::Tables::open(write)?,
            usage: usage::Tables::open(write)?,
            invites: invites::Tables::open(write)?,
        })
    }

    fn apply(&mut self, command: &Command) -> Result<Outcome, redb::Error> {
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
                Ok(account.map_or(Outcome::Unchanged, Outcome::Account))
            }
            Command::Invite { code, now } => {
                self.invites.add(code, *now)?;
                Ok(Outcome::Changed)
            }
            Command::DeleteAccount(account) => {
                let existed = self.accounts.delete(*account)?;
                if existed {
                    self.sessions.end_all_of(*account, None)?;
                    self.usage.delete_all_of(*account)?;
                }
                Ok(outcome(existed))
            }
            Command::RotateToken(account) => Ok(self
                .accounts
                .rotate(*account)?
                .map_or(Outcome::Unchanged, Outcome::Account)),
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
                Ok(changed.map_or(Outcome::Unchanged, Outcome::Account))
            }
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
            Command::RenewSession { cookie, now } => {
                self.sessions.renew(cookie, *now)?;
                Ok(Outcome::Changed)
            }
            Command::EndSession { cookie } => Ok(outcome(self.sessions.end(cookie)?)),
            Command::EndSessionsOf(account) => {
                self.sessions.end_all_of(*account, None)?;
                Ok(Outcome::Changed)
            }
            Command::SweepSessions { now } => Ok(outcome(self.sessions.sweep(*now)?)),
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

fn outcome(changed: bool) -> Outcome {
    if changed {
        Outcome::Changed
    } else {
        Outcome::Unchanged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::disk::Disk;

    #[test]
    fn a_failed_commit_answers_every_waiter_and_a_mended_disk_is_used_again() {
        let disk = Disk::default();
        let database = Arc::new(disk.open());
        database.ensure_format().unwrap();
        let writer = start(&database);
        writer.write(create("first@example.org")).unwrap();

        disk.break_after(0);
        thread::scope(|scope| {
            let waiters: Vec<_> = (0..8)
                .map(|i| {
                    scope.spawn({
                        let writer = &writer;
                        move || writer.write(create(&format!("{i}@example.org")))
                    })
                })
                .collect();
            for waiter in waiters {
                assert!(
                    waiter.join().unwrap().is_err(),
                    "a write was acknowledged that no disk has"
                );
            }
        });
        assert!(
            database.read(accounts::all).is_err(),
            "read from a broken disk"
        );

        disk.mend();
        assert_eq!(
            emails(&database),
            ["first@example.org"],
            "read after the disk was mended"
        );
        writer.write(create("second@example.org")).unwrap();
        assert_eq!(
            emails(&database),
            ["first@example.org", "second@example.org"]
        );
    }

    #[test]
    fn a_full_disk_is_known_until_there_is_room_for_more_than_one_commit() {
        let disk = Disk::default();
        let database = Arc::new(disk.open());
        database.ensure_format().unwrap();
        let writer = start(&database);
        writer.write(create("first@example.org")).unwrap();
        database.availability.check().unwrap();

        disk.fill_up();
        let large = |i: u32| Command::CreateAccount {
            email: Email::parse(&format!("{i}@example.org")).unwrap(),
            password_hash: Some("x".repeat(ROOM_BYTES)),
            created: 0,
            invite: None,
        };
        let refused = (0..).find_map(|i| writer.write(large(i)).err());
        assert!(
            matches!(refused, Some(StoreError::Unavailable(_))),
            "{refused:?}"
        );
        assert!(database.availability.check().is_err());
        // There is room for a commit of one short row, but not for many: nobody should be told to go on.
        thread::sleep(PROBE_PAUSE * 3);
        writer.write(create("second@example.org")).unwrap();
        assert!(database.availability.check().is_err());

        disk.make_room();
        let deadline = Instant::now() + Duration::from_secs(30);
        while database.availability.check().is_err() {
            assert!(Instant::now() < deadline, "nobody has looked for room");
            thread::sleep(Duration::from_millis(20));
        }
        writer.write(create("third@example.org")).unwrap();
        let tables = database
            .read(|read| Ok(read.list_tables()?.count()))
            .unwrap();
        assert_eq!(tables, 9, "what was written to find out is gone");
    }

    #[test]
    fn wherever_a_commit_breaks_off_what_was_acknowledged_stays() {
        for operations in 0..1000 {
            let disk = Disk::default();
            let database = Arc::new(disk.open());
            database.ensure_format().unwrap();
            let writer = start(&database);
            writer.write(create("first@example.org")).unwrap();

            disk.break_after(operations);
            let acknowledged = writer.write(create("second@example.org")).is_ok();
            disk.mend();
            writer.write(create("third@example.org")).unwrap();
            let mut emails = emails(&database);
            let second = emails
                .iter()
                .position(|email| email == "second@example.org");
            assert!(
                second.is_some() || !acknowledged,
                "lost after {operations} operations"
            );
            // Without an acknowledgement it may be there or not, but never by halves.
            second.map(|at| emails.remove(at));
            assert_eq!(
                emails,
                ["first@example.org", "third@example.org"],
                "after {operations} operations"
            );
            if acknowledged {
                return;
            }
        }
        panic!("the commit never succeeds");
    }

    #[test]
    fn what_queues_up_is_committed_together() {
        const CALLERS: usize = 16;
        let disk = Disk::default();
        let database = Arc::new(disk.open());
        database.ensure_format().unwrap();
        let writer = start(&database);
        writer.write(create("first@example.org")).unwrap();
        let one = disk.syncs_of(|| drop(writer.write(create("second@example.org")).unwrap()));

        let pause = disk.hold_up();
        let all = thread::scope(|scope| {
            for i in 0..CALLERS {
                let writer = &writer;
                scope.spawn(move || writer.write(create(&format!("{i}@example.org"))).unwrap());
            }
            let before = disk.syncs();
            thread::sleep(std::time::Duration::from_millis(200));
            drop(pause);
            before
        });
        let all = disk.syncs() - all;
        assert_eq!(emails(&database).len(), CALLERS + 2);
        // The first may go alone, the rest queue up behind it, and a thread or two may come late.
        assert!(
            all <= 2 * one,
            "{CALLERS} waiting callers took {all} syncs; one alone takes {one}"
        );
    }

    fn start(database: &Arc<Database>) -> Writer {
        let known = database.read(KnownAccounts::load).unwrap();
        Writer::start(Arc::clone(database), Arc::new(known)).unwrap()
    }

    fn create(email: &str) -> Command {
        Command::CreateAccount {
            email: Email::parse(email).unwrap(),
            password_hash: None,
            created: 0,
            invite: None,
        }
    }

    fn emails(database: &Database) -> Vec<String> {
        database
            .read(accounts::all)
            .unwrap()
            .into_iter()
            .map(|account| account.email)
            .collect()
    }
}
