//! A token that is replaced again and again while everything fails: what was replaced, and told so,
//! is refused for good.

use crate::replicas::{Replicas, convert};
use crate::support::Server;
use crate::support::postgres::{Database, Postgres};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long a replica may take to find the database again, on a busy machine.
const RECOVERY: Duration = Duration::from_mins(1);

const EMAIL: &str = "rotated@example.org";

/// The tokens of an account, of which each replaced the one before.
pub struct Rotations {
    replicas: Arc<Replicas>,
    /// The way to whichever server of both is the primary.
    database: Database,
    tokens: Vec<String>,
    /// Whether the last rotation was answered. One that was not may have been carried out.
    last_is_known: bool,
}

impl Rotations {
    pub fn begin(replicas: &Arc<Replicas>, database: Database) -> Rotations {
        Rotations {
            tokens: vec![replicas.create_account(EMAIL)],
            replicas: Arc::clone(replicas),
            database,
            last_is_known: true,
        }
    }

    /// Replaces the token by `towebp account rotate` until `is_over`.
    pub fn rotate_until(&mut self, is_over: &AtomicBool) {
        while !is_over.load(Ordering::SeqCst) {
            let words = ["account", "rotate", EMAIL, "--store-timeout", "3"];
            let output = self.replicas.command_over(&self.database, &words);
            self.last_is_known = output.status.success();
            if self.last_is_known {
                let token = String::from_utf8(output.stdout).expect("a token");
                self.tokens.push(token.trim().to_owned());
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// How many were answered.
    pub fn count(&self) -> usize {
        self.tokens.len() - 1
    }

    /// Checks that each replica refuses all but the last one, and takes that.
    #[track_caller]
    pub fn check(&self, servers: &[Server]) {
        let (last, replaced) = self.tokens.split_last().expect("there is one");
        for server in servers {
            // The latest ones: those before were looked at before.
            for token in replaced.iter().rev().take(8) {
                let status = status_of(server, token);
                assert_eq!(status, 401, "a token that was replaced is taken again");
            }
            if self.last_is_known {
                assert_eq!(status_of(server, last), 200);
            }
        }
    }
}

#[test]
fn a_command_whose_write_is_not_answered_says_so_and_ends() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let database = server.database();
    let replicas = Replicas::of(database.clone());
    replicas.create_account(EMAIL);
    let output = thread::scope(|scope| {
        let hold = "LOCK TABLE tokens IN SHARE MODE; SELECT pg_sleep(8)";
        scope.spawn(|| server.sql(&database.name, hold));
        server.until("SELECT EXISTS (SELECT FROM pg_locks WHERE mode = 'ShareLock' AND granted)");
        let words = ["account", "rotate", EMAIL, "--store-timeout", "1"];
        replicas.command_over(&database, &words)
    });
    assert!(!output.status.success());
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("the store cannot be written"), "{told}");
    assert!(output.stdout.is_empty(), "no token that may not be one");
}

/// What a token is answered by a replica that has its database. The load goes on once one of them
/// has; another one, whose link was cut, may need a moment more.
#[track_caller]
fn status_of(server: &Server, token: &str) -> u16 {
    let deadline = Instant::now() + RECOVERY;
    loop {
        let status = convert(server, token).status;
        if status != 503 || Instant::now() >= deadline {
            return status;
        }
        thread::sleep(Duration::from_millis(100));
    }
}
