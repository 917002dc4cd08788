//! The one thread that writes.
//!
//! A commit takes a few milliseconds, however many commands are in it. So callers put their
//! commands into a queue and wait. The thread takes all commands of the queue, has the engine
//! carry them out together, and sends each caller its outcome once its command is durable.
//!
//! After a failed commit, the thread probes the storage every second until it can be written again.
//! It does so after a failed query too if the engine is shared, and so is reached over a network.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::availability::Availability;
use super::engine::{Command, Engine, Outcome};
use super::error::{Result, StoreError};
use super::known::KnownAccounts;

/// The most commands in one commit. More would gain nothing, and the first would wait for the last.
const MAX_BATCH: usize = 256;

/// The most commands in the queue; further callers wait.
const QUEUE: usize = 1024;

/// The time between two probes.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// The state of the thread.
pub struct Shared {
    /// Carries out the commands.
    pub engine: Arc<dyn Engine>,
    /// Whether other processes use the engine, too.
    pub has_others: bool,
    /// Receives every change of accounts.
    pub known: Arc<KnownAccounts>,
    /// Receives whether the storage can be written.
    pub availability: Arc<Availability>,
}

/// The queue to the thread. Dropping it waits until the thread has carried out the queued commands.
pub struct Writer {
    counts: Arc<Counts>,
    queue: Option<SyncSender<Request>>,
    thread: Option<JoinHandle<()>>,
}

/// Numbers of groups and commands sent to the engine.
#[derive(Default)]
struct Counts {
    groups: AtomicU64,
    commands: AtomicU64,
}

/// A command, the channel for its outcome, and the time when it was queued.
type Request = (Command, Reply, Instant);

/// The channel for an outcome.
type Reply = SyncSender<Result<Outcome>>;

impl Writer {
    /// Starts the thread.
    ///
    /// # Errors
    /// A sentence: the system cannot start a thread.
    pub fn start(shared: Shared) -> Result<Writer, String> {
        let (queue, requests) = sync_channel(QUEUE);
        let counts = Arc::new(Counts::default());
        let of_thread = Arc::clone(&counts);
        let thread = thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || shared.run(&requests, &of_thread))
            .map_err(|error| format!("the store's writer thread cannot be started: {error}"))?;
        Ok(Writer {
            counts,
            queue: Some(queue),
            thread: Some(thread),
        })
    }

    /// The numbers of groups and of commands that were sent to the engine.
    pub fn counts(&self) -> (u64, u64) {
        let Counts { groups, commands } = &*self.counts;
        (
            groups.load(Ordering::Relaxed),
            commands.load(Ordering::Relaxed),
        )
    }

    /// Has the command carried out, and returns once it is durable.
    ///
    /// # Errors
    /// The commit failed. Whether the command has taken effect is not known.
    pub fn write(&self, command: Command) -> Result<Outcome> {
        let (reply, outcome) = sync_channel(1);
        let ended = || StoreError::Failed("the store's writer has ended".into());
        self.queue
            .as_ref()
            .ok_or_else(ended)?
            .send((command, reply, Instant::now()))
            .map_err(|_| ended())?;
        outcome.recv().map_err(|_| ended())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // The thread catches panics. Nothing can be done about one that it does not catch.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self, requests: &Receiver<Request>, counts: &Counts) {
        let mut probed = Instant::now();
        loop {
            let is_unavailable = self.availability.check().is_err();
            // Other threads may find that a shared engine is unavailable.
            let first = if is_unavailable || self.has_others {
                requests.recv_timeout(PROBE_INTERVAL)
            } else {
                requests.recv().map_err(RecvTimeoutError::from)
            };
            match first {
                Ok(first) => {
                    let since = first.2;
                    let more = requests.try_iter().take(MAX_BATCH - 1);
                    let (commands, replies): (Vec<_>, _) = std::iter::once(first)
                        .chain(more)
                        .map(|(command, reply, _)| (command, reply))
                        .unzip();
                    counts.groups.fetch_add(1, Ordering::Relaxed);
                    let number = commands.len() as u64;
                    counts.commands.fetch_add(number, Ordering::Relaxed);
                    self.commit(&commands, replies, since);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if is_unavailable && probed.elapsed() >= PROBE_INTERVAL {
                self.probe();
                probed = Instant::now();
            }
        }
    }

    fn probe(&self) {
        let probed = catch_unwind(AssertUnwindSafe(|| self.engine.probe()));
        if let Ok(Ok(())) = probed {
            self.availability.succeeded();
        }
    }

    fn commit(&self, commands: &[Command], replies: Vec<Reply>, since: Instant) {
        let queried = Instant::now();
        let applied = catch_unwind(AssertUnwindSafe(|| self.engine.apply(commands, since)));
        let applied = applied
            .unwrap_or_else(|_| Err(StoreError::Failed("the store's writer panicked".into())));
        // Memory is updated before the first caller goes on. A caller that has gone away gets no
        // outcome; the others do.
        match applied {
            Ok(outcomes) => {
                // A full disk may still take a small commit, but after a commit over a network the
                // storage is available again.
                if self.has_others {
                    self.availability.succeeded();
                }
                for (command, outcome) in commands.iter().zip(&outcomes) {
                    self.known.update(command, outcome, queried);
                }
                for (reply, outcome) in replies.into_iter().zip(outcomes) {
                    let _ = reply.send(Ok(outcome));
                }
            }
            Err(error) => {
                if let StoreError::Unavailable(cause) = &error {
                    self.availability.failed(cause);
                }
                for command in commands {
                    self.known.forget(command);
                }
                for reply in replies {
                    let _ = reply.send(Err(error.clone()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Email;
    use crate::store::tests::disk::Disk;

    #[test]
    fn a_failed_commit_fails_for_every_caller_and_a_mended_disk_is_used_again() {
        let disk = Disk::default();
        let (engine, writer, _) = start(&disk);
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
                    "a write was acknowledged that is not on the disk"
                );
            }
        });
        assert!(engine.accounts().is_err(), "read from a broken disk");

        disk.mend();
        assert_eq!(
            emails(&*engine),
            ["first@example.org"],
            "read after the disk was mended"
        );
        writer.write(create("second@example.org")).unwrap();
        assert_eq!(
            emails(&*engine),
            ["first@example.org", "second@example.org"]
        );
    }

    #[test]
    fn the_storage_is_unavailable_until_there_is_space_for_more_than_one_commit() {
        let disk = Disk::default();
        let (_, writer, availability) = start(&disk);
        writer.write(create("first@example.org")).unwrap();
        availability.check().unwrap();

        disk.fill_up();
        // As large as a probe, so that the disk is too full for one.
        let large = |i: u32| Command::CreateAccount {
            email: Email::parse(&format!("{i}@example.org")).unwrap(),
            password_hash: Some("x".repeat(252 << 10)),
            created: 0,
            invite: None,
        };
        let failure = (0..).find_map(|i| writer.write(large(i)).err());
        assert!(
            matches!(failure, Some(StoreError::Unavailable(_))),
            "{failure:?}"
        );
        assert!(availability.check().is_err());
        // There is space for a commit of one short row, but not for many.
        thread::sleep(PROBE_INTERVAL * 3);
        writer.write(create("second@example.org")).unwrap();
        assert!(availability.check().is_err());

        disk.free_space();
        let deadline = Instant::now() + Duration::from_secs(30);
        while availability.check().is_err() {
            assert!(Instant::now() < deadline, "no probe was made");
            thread::sleep(Duration::from_millis(20));
        }
        writer.write(create("third@example.org")).unwrap();
    }

    #[test]
    fn what_was_acknowledged_stays_wherever_a_commit_breaks_off() {
        for operations in 0..1000 {
            let disk = Disk::default();
            let (engine, writer, _) = start(&disk);
            writer.write(create("first@example.org")).unwrap();

            disk.break_after(operations);
            let acknowledged = writer.write(create("second@example.org")).is_ok();
            disk.mend();
            writer.write(create("third@example.org")).unwrap();
            let mut emails = emails(&*engine);
            let second = emails
                .iter()
                .position(|email| email == "second@example.org");
            assert!(
                second.is_some() || !acknowledged,
                "lost after {operations} operations"
            );
            // Without an acknowledgment, the account may be there or not, but never in part.
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
    fn commands_that_queue_up_are_committed_together() {
        const CALLERS: usize = 16;
        let disk = Disk::default();
        let (engine, writer, _) = start(&disk);
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
        assert_eq!(emails(&*engine).len(), CALLERS + 2);
        // The first command may be committed alone while the others queue up, and a thread or two
        // may come late.
        assert!(
            all <= 2 * one,
            "{CALLERS} waiting callers took {all} syncs; one alone takes {one}"
        );
    }

    fn start(disk: &Disk) -> (Arc<dyn Engine>, Writer, Arc<Availability>) {
        let engine: Arc<dyn Engine> = Arc::new(disk.engine());
        let availability = Arc::new(Availability::default());
        let shared = Shared {
            engine: Arc::clone(&engine),
            has_others: false,
            known: Arc::new(KnownAccounts::load(&*engine).unwrap()),
            availability: Arc::clone(&availability),
        };
        (engine, Writer::start(shared).unwrap(), availability)
    }

    fn create(email: &str) -> Command {
        Command::CreateAccount {
            email: Email::parse(email).unwrap(),
            password_hash: None,
            created: 0,
            invite: None,
        }
    }

    fn emails(engine: &dyn Engine) -> Vec<String> {
        let accounts = engine.accounts().unwrap();
        accounts.into_iter().map(|account| account.email).collect()
    }
}
