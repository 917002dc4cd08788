//! Several engines on one PostgreSQL, and one whose PostgreSQL fails.

use std::num::NonZeroU64;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::{account, create, email, entry, one, record};
use crate::auth::{AccountId, FailedAttempts};
use crate::store::clock;
use crate::store::engine::{Command, Engine, OldRows, Outcome, PageRange};
use crate::store::error::{OpenError, StoreError};
use crate::store::postgres::{PostgresEngine, open_snapshot};
use crate::store::tests::postgres::TestDatabase;
use crate::store::tests::postgres::server::{self, Postgres};
use crate::store::usage::{MonthlyQuotas, UsageFilter};

/// The quota of a month.
const QUOTA: u64 = 100;

/// Calls `work` with a number on as many threads.
fn on_threads<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|i| {
                let work = &work;
                scope.spawn(move || work(i))
            })
            .collect();
        let ended = threads.into_iter().map(thread::ScopedJoinHandle::join);
        ended.map(|result| result.expect("no panic")).collect()
    })
}

#[test]
fn many_programs_make_the_tables_at_once() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    let engines = on_threads(6, |_| database.engine());
    let owner = account(&engines[0], "owner@example.org", 5);
    for engine in &engines {
        assert_eq!(
            engine.accounts().unwrap(),
            std::slice::from_ref(&owner),
            "the same tables"
        );
    }
}

#[test]
fn a_schema_from_the_future_is_rejected_by_its_number() {
    let (Some(database), Some(server)) = (TestDatabase::new(), server::shared()) else {
        return;
    };
    drop(database.engine());
    database.sql(server, "UPDATE meta SET value = 7 WHERE name = 'schema'");
    drop(database.engine()); // It does not need a newer program.
    database.sql(server, "UPDATE meta SET value = 6 WHERE name = 'needs'");
    let opened = PostgresEngine::open(&database.settings).map(drop);
    for opened in [opened, open_snapshot(&database.settings).map(drop)] {
        let Err(OpenError::Failed(sentence)) = opened else {
            panic!("it was opened");
        };
        assert!(
            sentence.contains("schema 7") && sentence.contains("knows schema 6"),
            "{sentence}"
        );
    }
}

#[test]
fn tables_without_a_column_are_rejected_and_named() {
    let (Some(database), Some(server)) = (TestDatabase::new(), server::shared()) else {
        return;
    };
    drop(database.engine());
    database.sql(server, "ALTER TABLE usage_days DROP COLUMN last_used");
    let opened = PostgresEngine::open(&database.settings).map(drop);
    for opened in [opened, open_snapshot(&database.settings).map(drop)] {
        let Err(OpenError::Failed(sentence)) = opened else {
            panic!("it was opened");
        };
        let expected = "table usage_days has no column last_used";
        assert!(sentence.contains(expected), "{sentence}");
    }
}

#[test]
fn what_an_operator_has_to_change_is_told_at_once() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    let server = server::shared().expect("it is there");
    let mut wrong_name = database.settings.clone();
    wrong_name.database = "nowhere".to_owned();
    let mut wrong_ca = database.settings.clone();
    wrong_ca.ca = Some(server.other_ca());
    let mut wrong_user = database.settings.clone();
    wrong_user.user = "nobody".to_owned();
    for (settings, part) in [
        (wrong_name, "3D000"),
        (wrong_ca, "invalid peer certificate"),
        (wrong_user, "28000"),
    ] {
        let began = Instant::now();
        let error = PostgresEngine::open(&settings).err();
        let Some(OpenError::Failed(sentence)) = error else {
            panic!("it was opened");
        };
        assert!(sentence.contains(part), "{sentence}");
        assert!(began.elapsed() < Duration::from_secs(4), "{sentence}");
    }
}

#[test]
fn a_quota_is_exact_over_several_engines() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    let engines = [database.engine(), database.engine(), database.engine()];
    let owner = account(&engines[0], "owner@example.org", 5).id;
    let command = |i| {
        let mut command = record(owner, entry(i));
        if let Command::RecordUsage { quotas, .. } = &mut command {
            quotas.account = NonZeroU64::new(QUOTA);
        }
        command
    };
    let recorded = on_threads(3, |thread| {
        let mut recorded = 0;
        for group in 0..12 {
            let commands: Vec<_> = (0..5 + group).map(command).collect();
            let outcomes = engines[thread].apply(&commands, Instant::now()).unwrap();
            for outcome in outcomes {
                match outcome {
                    Outcome::Recorded { conversions, .. } => {
                        assert!(conversions <= QUOTA);
                        recorded += 1;
                    }
                    Outcome::QuotaExceeded { of_token: false } => {}
                    other => panic!("{other:?}"),
                }
            }
        }
        recorded
    });
    assert_eq!(recorded.iter().sum::<u64>(), QUOTA, "{recorded:?}");
    assert_eq!(engines[0].usage_totals(owner).unwrap().conversions, QUOTA);
    let page = engines[1].usage_page(
        owner,
        &UsageFilter::default(),
        PageRange {
            before: None,
            limit: 1000,
        },
    );
    assert_eq!(page.unwrap().entries.len() as u64, QUOTA);
}

#[test]
fn accounts_invitations_and_attempts_are_shared() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    let engines = [database.engine(), database.engine()];
    let code = [7; 32];
    let end = 1_000;
    one(&engines[0], Command::AddInvite { code, end, now: 0 });
    let made = on_threads(8, |i| {
        let command = Command::CreateAccount {
            email: email(&format!("{i}@example.org")),
            password_hash: None,
            created: 5,
            invite: Some(code),
        };
        one(&engines[i % 2], command).changed()
    });
    assert_eq!(made.iter().filter(|made| **made).count(), 1, "{made:?}");
    let numbers = on_threads(8, |i| {
        account(&engines[i % 2], &format!("open{i}@example.org"), 5)
            .id
            .0
    });
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), 8, "{numbers:?}");

    let key = [9; 32];
    let mut expected = None;
    for attempt in 0..8 {
        let begun = engines[attempt % 2].begin_attempt(&key, 10).unwrap();
        let next = FailedAttempts::next(expected, 10);
        assert_eq!(begun, Some(next.map(drop)), "attempt {attempt}");
        expected = FailedAttempts::next(expected, 10).ok().or(expected);
    }
    engines[1].forget_attempts(&key).unwrap();
    assert_eq!(engines[0].begin_attempt(&key, 10).unwrap(), Some(Ok(())));
    assert_eq!(engines.map(|engine| engine.replicas().min(1)), [1, 1]);
}

#[test]
fn of_a_long_history_nothing_is_left_after_some_steps() {
    let (Some(database), Some(server)) = (TestDatabase::new(), server::shared()) else {
        return;
    };
    let engine = database.engine();
    let owner = account(&engine, "owner@example.org", 5).id;
    let commands: Vec<_> = (0..6000).map(|i| record(owner, entry(i))).collect();
    engine.apply(&commands, Instant::now()).unwrap();
    one(&engine, Command::DeleteAccount(owner));
    let rows = || database.sql(server, "SELECT count(*) FROM usage");
    assert_eq!(rows().trim(), "1000", "the first step");
    let mut next = Some(AccountId(0));
    for _ in 0..10 {
        let Some(first) = next else { break };
        let old = OldRows {
            first,
            history_before: 0,
            failures_before: 0,
        };
        next = match one(&engine, Command::RemoveOld(old)) {
            Outcome::Removed { next } => next,
            other => panic!("{other:?}"),
        };
    }
    assert_eq!((next, rows().trim()), (None, "0"));
    assert_eq!(
        database
            .sql(server, "SELECT count(*) FROM deletions")
            .trim(),
        "0"
    );
}

/// A machine whose clock is ten minutes ahead.
fn ahead() -> SystemTime {
    SystemTime::now() + Duration::from_mins(10)
}

#[test]
fn the_database_s_clock_holds() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    let engine = PostgresEngine::open_at(&database.settings, ahead);
    let engine = engine.expect("it is reachable");
    let time = clock::to_milliseconds(ahead()).saturating_add_signed(engine.clock_offset());
    let difference = time.abs_diff(clock::to_milliseconds(SystemTime::now()));
    assert!(difference < 2000, "{difference} ms");
}

#[test]
fn a_frozen_database_is_waited_for_until_the_deadline() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let mut database = TestDatabase::on(&server);
    database.settings.timeout = Duration::from_secs(1);
    let engine = database.engine();
    let owner = account(&engine, "owner@example.org", 5).id;
    server.freeze();
    for question in 0..3 {
        let began = Instant::now();
        let error = match question {
            0 => engine.account(owner).err(),
            1 => engine.apply(&[record(owner, entry(1))], began).err(),
            _ => engine.probe().err(),
        };
        let took = began.elapsed();
        assert!(
            matches!(error, Some(StoreError::Unavailable(_))),
            "{error:?}"
        );
        assert!(took < Duration::from_millis(1500), "{question}: {took:?}");
    }
    server.thaw();
    engine.probe().unwrap();
    assert!(one(&engine, record(owner, entry(2))).changed());
}

#[test]
fn a_promoted_standby_is_found_and_an_old_primary_is_not_used() {
    let Some(mut primary) = Postgres::start() else {
        return;
    };
    let standby = primary.standby(true);
    let mut database = TestDatabase::on(&primary);
    database.settings = database.behind(&[standby.port(), primary.port()]);
    let engine = database.engine();
    let owner = account(&engine, "owner@example.org", 5).id;
    let unlimited = MonthlyQuotas::default();
    for i in 0..3 {
        let (account, entry) = (owner, entry(i));
        let quotas = unlimited;
        let command = Command::RecordUsage {
            account,
            entry,
            quotas,
        };
        assert!(one(&engine, command).changed());
    }
    primary.kill();
    standby.promote();
    assert!(one(&engine, record(owner, entry(3))).changed());
    // It comes back and takes writes, as it was not told of its successor.
    primary.launch_with(&["-c", "synchronous_standby_names="]);
    primary.wait_until_ready();
    assert_eq!(
        primary.sql("postgres", "SELECT pg_is_in_recovery()").trim(),
        "f"
    );
    let again = PostgresEngine::open(&database.settings);
    for engine in [&engine, &again.expect("it is reachable")] {
        assert!(one(engine, record(owner, entry(4))).changed());
    }
    assert_eq!(engine.usage_totals(owner).unwrap().conversions, 6);
    assert_eq!(engine.accounts().unwrap().len(), 1);
    assert!(one(&engine, create("second@example.org", 6)).changed());
}

#[test]
fn a_commit_that_was_told_not_to_wait_for_its_standby_is_sent_again() {
    let Some(primary) = Postgres::start() else {
        return;
    };
    let standby = primary.standby(true);
    let database = TestDatabase::on(&primary);
    let engine = database.engine();
    let owner = account(&engine, "owner@example.org", 5).id;
    assert!(one(&engine, record(owner, entry(1))).changed());
    standby.freeze();
    thread::scope(|scope| {
        let recording = scope.spawn(|| one(&engine, record(owner, entry(2))).changed());
        let waiting = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity
                       WHERE application_name = 'towebp' AND wait_event = 'SyncRep'";
        let mut canceled = 0;
        let deadline = Instant::now() + Duration::from_secs(20);
        while canceled < 3 && Instant::now() < deadline {
            let count = primary.sql("postgres", waiting);
            canceled += count.trim().parse::<u32>().expect("a count");
            thread::sleep(Duration::from_millis(100));
        }
        assert!(canceled >= 3, "{canceled} commits waited");
        assert!(
            !recording.is_finished(),
            "it was answered without the standby"
        );
        standby.thaw();
        assert!(recording.join().expect("no panic"));
    });
    assert_eq!(engine.usage_totals(owner).unwrap().conversions, 2);
}
