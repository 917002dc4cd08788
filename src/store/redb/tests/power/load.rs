//! What is done with a database while the power is on, and what the disk saw of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use redb::ReadTransaction;
use towebp_encoder::testing::Random;

use super::disk::{Disk, Event};
use crate::auth::{AccountId, Email};
use crate::store::clock;
use crate::store::engine::{
    AccountChange, Command, Engine, OldRows, Outcome, Snapshot, TokenChange,
};
use crate::store::error::StoreError;
use crate::store::failure::Failure;
use crate::store::redb::load::Loader;
use crate::store::redb::sessions::{ACCOUNT_SESSIONS, SESSIONS};
use crate::store::redb::{Database, FileSnapshot, RedbEngine, database, sessions};
use crate::store::request_id::RequestId;
use crate::store::session::{Browser, SessionTimes, StoredSession};
use crate::store::tests::entry;
use crate::store::token::{Limits, Restrictions, TokenSettings};
use crate::store::token_number::TokenNumber;
use crate::store::usage::MonthlyQuotas;

/// Pages that the database may keep in memory, in bytes. With so few, pages of a transaction reach
/// the file before its commit.
const SMALL_CACHE: usize = 64 << 10;

/// So few bytes of rows that a backup takes several commits.
const BACKUP_BATCH: usize = 2 << 10;

/// Set when redb repairs a file on opening it.
pub static REPAIRED: AtomicBool = AtomicBool::new(false);

/// All rows, as bytes.
pub type Rows = Vec<u8>;

/// The record of some work.
pub struct Load {
    pub name: &'static str,
    /// The file before the work.
    pub before: Vec<u8>,
    /// What the disk saw.
    pub events: Vec<Event>,
    /// The rows before the work and after each answer. Between two of them lies one transaction.
    pub states: Vec<Rows>,
    /// During this many events at the beginning, the file does not have its name yet: nobody opens
    /// it, and it may be incomplete as long as it is not taken for a complete one.
    pub unnamed: usize,
}

/// All loads.
pub fn all() -> Vec<Load> {
    let (new, file) = life("a new file", Vec::new(), database::CACHE_BYTES, 1_000);
    let (used, file) = life("a used file", file, SMALL_CACHE, 50_000);
    vec![new, used, backup("a backup", file)]
}

/// Opens the file as the program does.
pub fn open(disk: &Disk, cache_bytes: usize) -> Result<RedbEngine, String> {
    prepare(open_unchecked(disk, cache_bytes)?)
}

fn prepare(database: Database) -> Result<RedbEngine, String> {
    database.ensure_format()?;
    Ok(RedbEngine::on(database))
}

fn open_unchecked(disk: &Disk, cache_bytes: usize) -> Result<Database, String> {
    let disk = disk.clone();
    let opener = move || {
        redb::Database::builder()
            .set_cache_size(cache_bytes)
            .set_repair_callback(|_| {
                REPAIRED.store(true, Ordering::Relaxed);
            })
            .create_with_backend(disk.clone())
    };
    Database::open_by(Box::new(opener)).map_err(|error| error.to_string())
}

/// All rows of the database.
pub fn rows(engine: &RedbEngine) -> Result<Rows, StoreError> {
    let mut rows = Vec::new();
    FileSnapshot::of(&engine.database)?.rows(&mut |row| {
        rows.extend(format!("{row:?}").bytes());
        Ok(())
    })?;
    let read: ReadTransaction = engine.database.begin_read()?;
    for account in engine.accounts()? {
        let sessions = || -> Result<_, redb::Error> {
            let index = read.open_table(ACCOUNT_SESSIONS)?;
            sessions::all_of(&index, &read.open_table(SESSIONS)?, account.id)
        };
        let mut sessions = sessions().map_err(|error| StoreError::Failed(error.to_string()))?;
        sessions.sort_by_key(|(cookie, _)| *cookie);
        rows.extend(format!("{sessions:?}").bytes());
    }
    Ok(rows)
}

/// Accounts that come, do all that accounts can do, and go; the file is closed and opened between.
/// Numbers of accounts begin with `first`. Returns the file afterwards, too.
fn life(name: &'static str, before: Vec<u8>, cache_bytes: usize, first: u64) -> (Load, Vec<u8>) {
    let disk = Disk::of(before.clone());
    let database = open_unchecked(&disk, cache_bytes).unwrap();
    let is_new = before.is_empty();
    let unnamed = if is_new { disk.events().len() } else { 0 };
    let mut engine = prepare(database).unwrap();
    let mut states = vec![rows(&engine).unwrap()];
    let mut random = Random::new(first);
    let [a, b] = [AccountId(first), AccountId(first + 1)];
    for (i, group) in groups(a, b).into_iter().enumerate() {
        let outcomes = answer(&disk, &engine, &group, &mut states);
        assert!(
            outcomes.iter().all(Outcome::changed),
            "group {i}: {outcomes:?}"
        );
        let time = i as u64 * 10;
        for account in [a, b] {
            let count = 1 + random.index(6) as u64;
            let conversions = (0..count).map(|i| record(account, time + i));
            answer(
                &disk,
                &engine,
                &conversions.collect::<Vec<_>>(),
                &mut states,
            );
        }
    }
    engine.probe().unwrap();
    drop(engine);
    engine = open(&disk, cache_bytes).unwrap();
    engine.exchange_secret_mark(first).unwrap();
    disk.answer();
    states.push(rows(&engine).unwrap());
    assert!(engine.database.check_pages().unwrap());
    // The power goes before it is closed.
    let load = Load {
        name,
        before,
        events: disk.events(),
        states,
        unnamed,
    };
    (load, disk.bytes())
}

/// A backup is written and restored, and work goes on in it.
fn backup(name: &'static str, of: Vec<u8>) -> Load {
    let engine = open(&Disk::of(of), database::CACHE_BYTES).unwrap();
    let empty = rows(&open(&Disk::default(), database::CACHE_BYTES).unwrap()).unwrap();

    let disk = Disk::default();
    let redb = redb::Database::builder().create_with_backend(disk.clone());
    let mut loader = Loader::new(redb.unwrap(), BACKUP_BATCH);
    let snapshot = FileSnapshot::of(&engine.database).unwrap();
    snapshot.rows(&mut |row| loader.add(row)).unwrap();
    loader.finish().unwrap();
    redb::StorageBackend::sync_data(&disk).unwrap();
    disk.answer();
    let unnamed = disk.events().len();
    let engine = open(&disk, database::CACHE_BYTES).unwrap();
    let mut states = vec![empty, rows(&engine).unwrap()];
    for round in 0..2 {
        answer(&disk, &engine, &work_after(round), &mut states);
    }
    Load {
        name,
        before: Vec::new(),
        events: disk.events(),
        states,
        unnamed,
    }
}

/// Carries the commands out, and adds the rows afterwards.
fn answer(
    disk: &Disk,
    engine: &RedbEngine,
    commands: &[Command],
    states: &mut Vec<Rows>,
) -> Vec<Outcome> {
    let outcomes = engine.apply(commands, Instant::now()).unwrap();
    disk.answer();
    states.push(rows(engine).unwrap());
    outcomes
}

/// Some work that changes any database, `round` by `round`.
pub fn work_after(round: u64) -> Vec<Command> {
    let id = AccountId(1_000_000 + round);
    let rotated = TokenChange::Rotate {
        token: TokenNumber::DEFAULT,
        overlap_ends: None,
        now: id.0,
    };
    vec![
        create(id, "after"),
        record(id, 1),
        record(id, 2),
        change(id, rotated),
    ]
}

/// What happens to two accounts, each group in one transaction.
fn groups(a: AccountId, b: AccountId) -> Vec<Vec<Command>> {
    let (cookie, others, code) = ([a.0 as u8; 32], [b.0 as u8; 32], [a.0 as u8 ^ 1; 32]);
    let now = a.0 + 7_000;
    let shop = TokenNumber((now / 1000) as u32);
    let settings = |name: &str| TokenSettings {
        name: name.to_owned(),
        ends: None,
        limits: Limits::default(),
        preset: "quality=5\n".to_owned(),
    };
    let token = |name| TokenChange::Create {
        settings: settings(name),
        now,
    };
    let rotated = |overlap_ends| TokenChange::Rotate {
        token: TokenNumber::DEFAULT,
        overlap_ends,
        now,
    };
    vec![
        vec![create(a, "a"), create(b, "b"), invite(code)],
        vec![start(cookie, a), change(a, token("shop")), fail(a, 3)],
        vec![change(a, rotated(Some(90_000))), start(others, b)],
        vec![Command::RenewSession {
            cookie,
            times: SessionTimes::at_start(9_000),
            browser: None,
        }],
        vec![
            change(
                a,
                TokenChange::Set {
                    token: shop,
                    settings: settings("journal"),
                },
            ),
            change(a, TokenChange::Restrict(Restrictions::default())),
            fail(b, 9),
        ],
        vec![Command::ChangeAccount {
            account: b,
            change: AccountChange::Password {
                hash: "$argon2id$other".to_owned(),
                kept_session: None,
            },
            verified: None,
        }],
        vec![Command::RemoveOld(OldRows {
            first: AccountId(0),
            history_before: clock::to_milliseconds(entry(25).time),
            failures_before: clock::to_milliseconds(entry(2).time),
        })],
        vec![change(a, rotated(None)), start(others, b)],
        vec![
            change(a, TokenChange::Delete { token: shop, now }),
            Command::EndSession { cookie },
        ],
        vec![
            Command::ChangeAccount {
                account: a,
                change: AccountChange::Email(email(a, "moved")),
                verified: None,
            },
            start(cookie, a),
        ],
        vec![Command::DeleteAccount(b)],
        vec![Command::SweepSessions { now: u64::MAX }, fail(a, 40)],
        vec![start(cookie, a)],
    ]
}

fn email(account: AccountId, name: &str) -> Email {
    Email::parse(&format!("{name}-{}@example.org", account.0)).unwrap()
}

fn create(account: AccountId, name: &str) -> Command {
    Command::CreateAccount {
        email: email(account, name),
        password_hash: Some("$argon2id$one".to_owned()),
        created: account.0,
        invite: None,
    }
}

fn invite(code: [u8; 32]) -> Command {
    Command::AddInvite {
        code,
        end: 500_000,
        now: 1,
    }
}

fn start(cookie: [u8; 32], account: AccountId) -> Command {
    Command::StartSession {
        cookie,
        account,
        session: StoredSession {
            times: SessionTimes::at_start(1_000),
            browser: Browser::default(),
        },
        now: 1_000,
    }
}

fn change(account: AccountId, change: TokenChange) -> Command {
    Command::ChangeTokens { account, change }
}

fn record(account: AccountId, i: u64) -> Command {
    Command::RecordUsage {
        account,
        entry: entry(i),
        quotas: MonthlyQuotas::default(),
    }
}

fn fail(account: AccountId, count: u64) -> Command {
    let failure = |i| Failure {
        time: entry(i).time,
        token: TokenNumber::DEFAULT,
        status: 415,
        code: "unsupported_format".to_owned(),
        input_bytes: i,
        request: RequestId(i.into()),
    };
    Command::RecordFailures {
        account,
        failures: (0..count).map(failure).collect(),
    }
}
