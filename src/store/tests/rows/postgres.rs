//! Stores that are copied between redb and PostgreSQL. Without PostgreSQL, these are skipped.

use super::{answers, create, fill, one, tally};
use crate::auth::{AccountId, CodeHash};
use crate::store::clock;
use crate::store::copy::{CopyStep, copy_to_folder, copy_to_postgres};
use crate::store::engine::{Command, Engine, PageRange};
use crate::store::postgres::{CopyTarget, PostgresEngine, open_snapshot};
use crate::store::redb::{Backup, RedbEngine, check_file, database_path};
use crate::store::rows::{AccountRow, Row, Tally};
use crate::store::session::{Browser, SessionTimes, StoredSession};
use crate::store::tests::Folder;
use crate::store::tests::postgres::TestDatabase;
use crate::store::tests::postgres::server;
use crate::store::token_number::TokenNumber;
use crate::store::usage::{Days, UsageDay, UsageEntry, UsageFilter, UsageTotals};
use crate::store::{OpenError, Store, StoreError, secret_file};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// A data folder with all that [`fill`] stores, and its secret.
struct Source {
    folder: Folder,
    secret: PathBuf,
}

impl Source {
    fn new(conversions: u64) -> Source {
        let folder = Folder::new();
        drop(Store::open(&folder.settings()).unwrap());
        let secret = folder.settings().data.join("secret");
        let source = Source { folder, secret };
        let engine = source.engine();
        fill(&engine, conversions);
        let mark = secret_file::open(&source.secret, true).unwrap().mark();
        engine.exchange_secret_mark(mark).unwrap();
        source
    }

    fn data(&self) -> PathBuf {
        self.folder.settings().data
    }

    fn engine(&self) -> RedbEngine {
        RedbEngine::open(&database_path(&self.data())).unwrap()
    }

    fn copy_to(&self, database: &TestDatabase) -> Result<Tally, String> {
        let settings = &database.settings;
        copy_to_postgres(&self.data(), settings, &self.secret, &mut |_, _, _| {})
            .map(|copied| copied.rows)
    }
}

/// What a check of the database finds, but that the server of these tests does not sync.
fn problems(database: &TestDatabase) -> Vec<String> {
    let snapshot = open_snapshot(&database.settings).unwrap();
    let mut problems = snapshot.check().unwrap().problems;
    problems.retain(|problem| !problem.contains("fsync = off"));
    problems
}

fn sql(database: &TestDatabase, statement: &str) -> String {
    let server = server::shared().expect("it is there");
    database.sql(server, statement)
}

fn session() -> StoredSession {
    StoredSession {
        times: SessionTimes::at_start(1),
        browser: Browser::default(),
    }
}

#[test]
fn a_store_goes_to_postgres_and_back_and_answers_as_before() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    let source = Source::new(6000);
    let (before, rows) = {
        let engine = source.engine();
        let snapshot = engine.snapshot().unwrap().unwrap();
        (answers(&engine), tally(&*snapshot))
    };
    let mut steps = Vec::new();
    let progress = &mut |step, done, all| {
        if done == all && steps.last() != Some(&step) {
            steps.push(step);
        }
    };
    let settings = &database.settings;
    let copied = copy_to_postgres(&source.data(), settings, &source.secret, progress).unwrap();
    assert_eq!(steps, [CopyStep::Check, CopyStep::Copy, CopyStep::Compare]);
    assert_eq!(copied.rows.digest(), rows.digest());
    assert!(!database_path(&source.data()).exists() && copied.file.exists());
    assert!(copied.file.ends_with("towebp.redb.moved"));

    assert_eq!(problems(&database), [""; 0]);
    let engine = database.engine();
    assert_eq!(answers(&engine), before);
    // Numbers that were given are not given again.
    let mark = engine.exchange_secret_mark(1).unwrap();
    assert_eq!(mark, rows.secret_mark);
    engine.exchange_secret_mark(mark.unwrap()).unwrap();
    let next = create(&engine, "next@example.org", None, 700);
    let last = AccountId(next.0 - 1);
    assert!(engine.account(last).unwrap().is_some());
    one(&engine, Command::DeleteAccount(next));

    let back = source.folder.path().join("back");
    let refused = copy_to_folder(settings, &back, None, &mut |_, _, _| {})
        .err()
        .unwrap();
    assert!(refused.contains("stop them first"), "{refused}");
    drop(engine);
    let copied = copy_to_folder(settings, &back, Some(&source.secret), &mut |_, _, _| {}).unwrap();
    assert_eq!(copied.file, database_path(&back));
    let findings = check_file(&copied.file).unwrap();
    assert_eq!(findings.problems, [""; 0]);
    let engine = RedbEngine::open(&copied.file).unwrap();
    assert_eq!(answers(&engine), before);
    let again = copy_to_folder(settings, &back, None, &mut |_, _, _| {})
        .err()
        .unwrap();
    assert!(again.contains("is there already"), "{again}");
}

#[test]
fn a_backup_of_postgres_is_a_file_that_one_machine_goes_on_with() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    let engine = database.engine();
    fill(&engine, 3000);
    let account = engine.accounts().unwrap()[0].id;
    let cookie: CodeHash = [5; 32];
    let started = Command::StartSession {
        cookie,
        account,
        session: session(),
        now: 0,
    };
    one(&engine, started);
    assert_eq!(problems(&database), [""; 0]);
    // A server goes on meanwhile, and what it adds is not in the file.
    let snapshot = open_snapshot(&database.settings).unwrap();
    let before = answers(&engine);
    create(&engine, "late@example.org", None, 900_000);
    let folder = Folder::new();
    let file = folder.path().join("backup");
    let backup = Backup::create(&file, false).unwrap();
    let rows = crate::store::fill_backup(backup, &*snapshot, &mut |_, _| {}).unwrap();
    assert!(rows > 2000, "{rows}");
    let findings = check_file(&file).unwrap();
    assert_eq!(findings.problems, [""; 0]);
    assert_eq!((findings.accounts, findings.sessions), (3, 0));
    let restored = RedbEngine::open(&file).unwrap();
    assert_eq!(answers(&restored), before);
}

#[test]
fn a_copy_that_was_broken_off_keeps_servers_away_and_is_repeated() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    let source = Source::new(5000);
    let mark = secret_file::open(&source.secret, true).unwrap().mark();
    let before = answers(&source.engine());
    {
        let engine = source.engine();
        let snapshot = engine.snapshot().unwrap().unwrap();
        let target = CopyTarget::open(&database.settings).unwrap();
        let mut loader = target.begin(Some(mark)).unwrap();
        let mut entries = 0;
        let broken = snapshot.rows(&mut |row| {
            entries += u64::from(matches!(row, Row::Entry(_)));
            if entries == 2500 {
                return Err(StoreError::Failed("killed".to_owned()));
            }
            loader.add(row)
        });
        assert!(broken.is_err());
    }
    let opened = PostgresEngine::open(&database.settings);
    let Err(OpenError::Failed(sentence)) = opened else {
        panic!("a server started");
    };
    assert!(sentence.contains("being copied"), "{sentence}");
    assert!(open_snapshot(&database.settings).is_err());
    let written: u64 = sql(&database, "SELECT count(*) FROM usage")
        .parse()
        .unwrap();
    assert_eq!(written, 2000, "whole groups");

    // Another store must not be mixed with it.
    let other = Source::new(60);
    let refused = other.copy_to(&database).unwrap_err();
    assert!(refused.contains("another store"), "{refused}");
    assert!(database_path(&other.data()).exists());

    source.copy_to(&database).unwrap();
    assert_eq!(problems(&database), [""; 0]);
    assert_eq!(answers(&database.engine()), before);
}

#[test]
fn a_copy_wants_an_empty_database_the_right_secret_and_no_server() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    let source = Source::new(60);
    let file = database_path(&source.data());
    let refused = |expected: &str| {
        let sentence = source.copy_to(&database).unwrap_err();
        assert!(sentence.contains(expected), "{sentence}");
        assert!(file.exists());
    };
    let engine = source.engine();
    refused("a server runs on");
    drop(engine);

    let right = fs::read(&source.secret).unwrap();
    fs::write(&source.secret, format!("{}\n", "ab".repeat(32))).unwrap();
    refused("--secret-file");
    fs::write(&source.secret, right).unwrap();

    let server = database.engine();
    refused("servers run on");
    let account = create(&server, "first@example.org", None, 1);
    drop(server);
    refused("needs an empty one");
    let server = database.engine();
    one(&server, Command::DeleteAccount(account));
    drop(server);

    fs::write(file.with_extension("redb.moved"), "precious").unwrap();
    refused("move it away");
    fs::remove_file(file.with_extension("redb.moved")).unwrap();
    source.copy_to(&database).unwrap();
}

#[test]
fn each_kind_of_damage_is_found_and_named() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    let source = Source::new(300);
    let busy = source.engine().accounts().unwrap()[0].id.0;
    source.copy_to(&database).unwrap();
    assert_eq!(problems(&database), [""; 0]);
    for (damage, repair, expected) in [
        (
            "UPDATE meta SET value = 1 WHERE name = 'last_account'",
            "UPDATE meta SET value = 9000 WHERE name = 'last_account'",
            &["accounts above the last number given: 3 ("][..],
        ),
        (
            "UPDATE accounts SET email = 'Busy@example.org' WHERE email = 'busy@example.org'",
            "UPDATE accounts SET email = 'busy@example.org' WHERE email = 'Busy@example.org'",
            &["accounts with an invalid e-mail address: 1 ("],
        ),
        (
            "UPDATE tokens SET serial = serial + 1 WHERE account = $ AND number > 0 AND deleted = 0",
            "UPDATE tokens SET serial = serial - 1 WHERE account = $ AND number > 0 AND deleted = 0",
            &[],
        ),
        (
            "UPDATE accounts SET last_serial = 1 WHERE id = $",
            "UPDATE accounts SET last_serial = 1000000 WHERE id = $",
            &["serial numbers above the last one given: 1 ("],
        ),
        (
            "INSERT INTO usage_days VALUES (7, 1, 0, 'png', 1, 1, 1, 1, 1, 1)",
            "DELETE FROM usage_days WHERE account = 7",
            &["sums by day without an account: 1 (account 7)"],
        ),
        (
            "UPDATE usage SET watermark = 9 WHERE account = $",
            "UPDATE usage SET watermark = 0 WHERE account = $",
            &["the tables cannot be read to the end: the column watermark holds"],
        ),
        (
            "UPDATE usage SET account = 8 WHERE account = $",
            "UPDATE usage SET account = $ WHERE account = 8",
            &[
                "history entries without an account: 200 (account 8",
                "sums by day that differ from the history: 1 (",
            ],
        ),
        (
            "UPDATE usage_months SET conversions = conversions + 1 WHERE token = 0",
            "UPDATE usage_months SET conversions = conversions - 1 WHERE token = 0",
            &["sums by month that differ from those by day: 2 ("],
        ),
        (
            "UPDATE usage_removed SET input_bytes = input_bytes + 1",
            "UPDATE usage_removed SET input_bytes = input_bytes - 1",
            &["sums by day that differ from the history: 2 ("],
        ),
        (
            "UPDATE usage_days SET last_key = last_key - 1 WHERE account = $ AND last_key > 0",
            "UPDATE usage_days SET last_key = last_key + 1 WHERE account = $ AND last_key > 0",
            &["history entries beyond the keys of their day: 1 ("],
        ),
        (
            "DELETE FROM tokens WHERE number = 0 AND account = $",
            "",
            &["accounts without their first token: 1 ("],
        ),
    ] {
        let number = busy.to_string();
        sql(&database, &damage.replace('$', &number));
        let found = problems(&database);
        if !expected.is_empty() {
            assert_eq!(found.len(), expected.len(), "{damage}: {found:?}");
        }
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{damage}: {found}");
        }
        if !repair.is_empty() {
            sql(&database, &repair.replace('$', &number));
            assert_eq!(problems(&database), [""; 0], "{repair}");
        }
    }
    let snapshot = open_snapshot(&database.settings).unwrap();
    let all = snapshot.check().unwrap().problems;
    let off = "settings by which a loss of power loses what was answered: 1 (fsync = off)";
    assert!(all.iter().any(|problem| problem == off), "{all:?}");
}

#[test]
fn few_entries_of_a_long_history_are_found_at_once() {
    const DAYS: u32 = 60;
    const A_DAY: u64 = 2000;
    let Some(database) = TestDatabase::new() else {
        return;
    };
    let target = CopyTarget::open(&database.settings).unwrap();
    let mut loader = target.begin(None).unwrap();
    let account = AccountId(5);
    let mut add = |row| loader.add(row).unwrap();
    add(Row::Account(AccountRow {
        id: account,
        email: "owner@example.org".to_owned(),
        created: 5,
        last_serial: 0,
        ..AccountRow::default()
    }));
    let entry = |day: u32, i: u64| UsageEntry {
        format: (if day % 20 == 3 && i % 1000 == 7 {
            "bmp"
        } else {
            "png"
        })
        .to_owned(),
        ..UsageEntry::example(clock::from_milliseconds(
            u64::from(day) * clock::DAY + i * 40_000,
        ))
    };
    let history: Vec<_> = (0..DAYS)
        .flat_map(|day| (0..A_DAY).map(move |i| entry(day, i)))
        .collect();
    let mut days = BTreeMap::<_, UsageTotals>::new();
    for entry in &history {
        let day = clock::day(clock::to_milliseconds(entry.time));
        *days.entry((day, entry.format.clone())).or_default() += UsageTotals {
            conversions: 1,
            input_bytes: entry.input_bytes,
            output_bytes: entry.output_bytes,
        };
    }
    for ((day, format), totals) in days {
        let token = TokenNumber::DEFAULT;
        add(Row::Day {
            day: UsageDay {
                day,
                token,
                format,
                totals,
            },
            last_used: u64::from(day) * clock::DAY,
        });
    }
    history.iter().cloned().map(Row::Entry).for_each(&mut add);
    loader.finish().unwrap();
    target.complete().unwrap();

    let engine = database.engine();
    let pages = |filter: &UsageFilter, limit| {
        let (mut found, mut pages, mut before) = (Vec::new(), 0, None);
        loop {
            let page = engine
                .usage_page(account, filter, PageRange { before, limit })
                .unwrap();
            found.extend(page.entries.into_iter().map(|(_, entry)| entry));
            pages += 1;
            before = page.next_before;
            if before.is_none() {
                return (found, pages);
            }
        }
    };
    let walk = |filter: &UsageFilter| -> Vec<_> {
        let passes = |entry: &&UsageEntry| {
            let day = clock::day(clock::to_milliseconds(entry.time));
            filter.passes(day, entry.token, &entry.format)
        };
        history.iter().rev().filter(passes).cloned().collect()
    };
    let rare = UsageFilter {
        format: Some("bmp".to_owned()),
        ..UsageFilter::default()
    };
    assert_eq!(pages(&rare, 10), (walk(&rare), 1));
    assert_eq!(pages(&rare, 4), (walk(&rare), 2));
    let early = UsageFilter {
        days: Days { first: 1, last: 2 },
        ..UsageFilter::default()
    };
    assert_eq!(pages(&early, 1000), (walk(&early), 4));
    let none = UsageFilter {
        token: Some(TokenNumber(7)),
        ..UsageFilter::default()
    };
    assert_eq!(pages(&none, 10), (Vec::new(), 1));
    let common = UsageFilter {
        format: Some("png".to_owned()),
        days: Days { first: 9, last: 50 },
        ..UsageFilter::default()
    };
    let (found, _) = pages(&common, 3500);
    assert_eq!(found, walk(&common));
}
