//! Stores that go from one engine to another as rows.

#[cfg(feature = "postgres")]
mod postgres;

use super::Folder;
use crate::auth::{AccountId, Email, SecondFactor};
use crate::store::clock;
use crate::store::engine::{
    AccountChange, Command, Engine, OldRows, Outcome, PageRange, Snapshot, TokenChange,
};
use crate::store::error::StoreError;
use crate::store::failure::{Failure, FailureFilter};
use crate::store::redb::{Backup, FileSnapshot, RedbEngine, check_file};
use crate::store::request_id::RequestId;
use crate::store::rows::{Row, Tally};
use crate::store::token::{Limits, Restrictions, TokenSettings};
use crate::store::token_number::TokenNumber;
use crate::store::usage::{Days, MonthlyQuotas, UsageEntry, UsageFilter, WatermarkKind};
use std::fs;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::Path;
use std::time::Instant;
use towebp_encoder::testing::Random;

const DAY: u64 = clock::DAY;

/// The day of the first conversion: 2026-10-20, so that the conversions lie in several months.
const FIRST_DAY: u64 = 20_746;

/// The hashes of the invitations.
const CODES: [[u8; 32]; 2] = [[1; 32], [2; 32]];

/// Does all that can be done to a store, with this many conversions of its busiest account.
pub(crate) fn fill(engine: &dyn Engine, conversions: u64) {
    engine.exchange_secret_mark(0x1234_5678).unwrap();
    let busy = create(engine, "busy@example.org", Some("$argon2id$busy"), 1000);
    let swept = create(engine, "swept@example.org", None, 2000);
    let deleted = create(engine, "deleted@example.org", None, 3000);
    let text = format!("{} 5 {}", "1".repeat(22), "2".repeat(43));
    let factor = SecondFactor::parse(&text);
    assert!(factor.is_some());
    let turn_on = Command::ChangeAccount {
        account: busy,
        change: AccountChange::SecondFactor(factor),
        verified: None,
    };
    one(engine, turn_on);
    // The clock was set back.
    create(engine, "plain@example.org", Some("$argon2id$plain"), 500);
    for (code, end) in CODES.into_iter().zip([7000, 8000]) {
        let now = 0;
        one(engine, Command::AddInvite { code, end, now });
    }
    let tokens = tokens(engine, busy);
    record(engine, busy, &tokens, FIRST_DAY, conversions);
    record(engine, swept, &[TokenNumber::DEFAULT], FIRST_DAY, 40);
    record(engine, deleted, &[TokenNumber::DEFAULT], FIRST_DAY, 3);
    for account in [busy, swept] {
        let failures = (0..5).map(failure).collect();
        one(engine, Command::RecordFailures { account, failures });
    }
    one(engine, Command::DeleteAccount(deleted));
    // The first third of the entries of one account goes, all of the other, and some failures.
    let mut first = Some(AccountId(0));
    while let Some(account) = first {
        let old = OldRows {
            first: account,
            history_before: (FIRST_DAY + 15) * DAY,
            failures_before: (FIRST_DAY + 2) * DAY,
        };
        first = match one(engine, Command::RemoveOld(old)) {
            Outcome::Removed { next } => next,
            outcome => panic!("{outcome:?}"),
        };
    }
}

/// Makes, rotates and deletes tokens, and returns the numbers of those that convert.
fn tokens(engine: &dyn Engine, account: AccountId) -> [TokenNumber; 3] {
    let settings = |name: &str| TokenSettings {
        name: name.to_owned(),
        ends: None,
        limits: Limits::default(),
        preset: String::new(),
    };
    let made = |settings, now| {
        let change = TokenChange::Create { settings, now };
        match one(engine, Command::ChangeTokens { account, change }) {
            Outcome::Token { token, .. } => token,
            outcome => panic!("{outcome:?}"),
        }
    };
    let change = |change| one(engine, Command::ChangeTokens { account, change });
    let shop = made(
        TokenSettings {
            ends: Some(clock::from_milliseconds(9_000_000_000_000)),
            limits: Limits {
                per_minute: NonZeroU32::new(7),
                monthly: NonZeroU64::new(1_000_000),
            },
            preset: "quality=80\n!watermark_text=Prüfung".to_owned(),
            ..settings("Laden \u{1f5bc}")
        },
        10_000,
    );
    let gone = made(settings("gone"), 20_000);
    change(TokenChange::Rotate {
        token: shop,
        overlap_ends: Some(8_000_000_000_000),
        now: 30_000,
    });
    change(TokenChange::Rotate {
        token: TokenNumber::DEFAULT,
        overlap_ends: None,
        now: 40_000,
    });
    change(TokenChange::Delete {
        token: gone,
        now: 50_000,
    });
    change(TokenChange::Restrict(Restrictions {
        per_minute: Some(0),
        monthly: Some(123_456),
        disabled: Some(clock::from_milliseconds(60_000)),
    }));
    [TokenNumber::DEFAULT, shop, gone]
}

/// Records conversions of some 45 days. The clock is ahead by a year for a while, and is set back
/// by 3 days in the middle.
fn record(
    engine: &dyn Engine,
    account: AccountId,
    tokens: &[TokenNumber],
    first_day: u64,
    count: u64,
) {
    let mut random = Random::new(account.0);
    let commands: Vec<_> = (0..count)
        .map(|i| {
            let day = match i * 45 / count {
                20 => 385,
                day @ 25.. => day - 3,
                day => day,
            };
            let time = (first_day + day) * DAY + i % DAY;
            let formats = ["png", "jpeg", "gif", "bmp"];
            let kinds = [
                WatermarkKind::None,
                WatermarkKind::Text,
                WatermarkKind::Image,
                WatermarkKind::Both,
            ];
            Command::RecordUsage {
                account,
                entry: UsageEntry {
                    time: clock::from_milliseconds(time),
                    token: tokens[random.below(tokens.len() as u32) as usize],
                    format: formats[random.below(4) as usize].to_owned(),
                    input_bytes: u64::from(random.below(1 << 30)) << 8,
                    output_bytes: u64::from(random.below(1 << 20)),
                    width: random.below(16_384),
                    height: random.below(16_384),
                    quality: random.below(101) as u8,
                    watermark: kinds[random.below(4) as usize],
                    milliseconds: random.below(10_000),
                    request: RequestId(u128::from(random.below(u32::MAX)) << 96),
                },
                quotas: MonthlyQuotas::default(),
            }
        })
        .collect();
    for commands in commands.chunks(10_000) {
        engine.apply(commands, Instant::now()).unwrap();
    }
}

fn failure(day: u64) -> Failure {
    Failure {
        time: clock::from_milliseconds((FIRST_DAY + day) * DAY),
        token: TokenNumber(day as u32),
        status: 413,
        code: "body_too_large".to_owned(),
        input_bytes: day << 40,
        request: RequestId(u128::MAX - u128::from(day)),
    }
}

/// What an engine answers to every query about what [`fill`] stores, but the numbers by which
/// histories are ordered.
pub(crate) fn answers(engine: &dyn Engine) -> Vec<String> {
    let mut answers = Vec::new();
    let mut add = |answer: String| answers.push(answer);
    for code in CODES {
        add(format!("{:?}", engine.invite_end(&code).unwrap()));
    }
    let accounts = engine.accounts().unwrap();
    add(format!("{accounts:?}"));
    for account in accounts {
        let id = account.id;
        let record = engine.account(id).unwrap().unwrap();
        add(format!("{record:?}"));
        let email = Email::parse(&account.email).unwrap();
        let found = engine.account_by_email(&email).unwrap().unwrap();
        add(format!("{found:?}"));
        add(format!("{:?}", engine.access(id).unwrap()));
        add(format!("{:?}", engine.usage_totals(id).unwrap()));
        let tokens = engine.tokens(id).unwrap();
        let numbers = tokens.iter().map(|it| Some(it.token.number));
        for number in [None].into_iter().chain(numbers) {
            for day in [FIRST_DAY, FIRST_DAY + 30, FIRST_DAY + 385] {
                let (month, _) = clock::month(day * DAY);
                add(format!("{:?}", engine.usage_in_month(id, number, month)));
            }
        }
        add(format!("{tokens:?}"));
        let mut days = Vec::new();
        let all = Days::default();
        engine
            .usage_days(id, all, &mut |day| days.push(day))
            .unwrap();
        add(format!("{days:?}"));
        for filter in filters() {
            let mut before = None;
            loop {
                let page = engine
                    .usage_page(id, &filter, PageRange { before, limit: 500 })
                    .unwrap();
                let entries = page.entries.into_iter();
                entries.for_each(|(_, entry)| add(format!("{entry:?}")));
                before = page.next_before;
                if before.is_none() {
                    break;
                }
            }
        }
        let filter = FailureFilter::default();
        let failures = engine
            .failures(
                id,
                &filter,
                PageRange {
                    before: None,
                    limit: 100,
                },
            )
            .unwrap()
            .entries;
        let failures: Vec<_> = failures.into_iter().map(|(_, failure)| failure).collect();
        add(format!("{failures:?}"));
    }
    answers
}

fn filters() -> [UsageFilter; 3] {
    [
        UsageFilter::default(),
        UsageFilter {
            format: Some("gif".to_owned()),
            ..UsageFilter::default()
        },
        UsageFilter {
            days: Days {
                first: FIRST_DAY as u32 + 22,
                last: FIRST_DAY as u32 + 24,
            },
            token: Some(TokenNumber::DEFAULT),
            format: None,
        },
    ]
}

/// What all rows of a snapshot add up to.
pub(crate) fn tally(snapshot: &dyn Snapshot) -> Tally {
    let mut tally = Tally::default();
    let read = snapshot.rows(&mut |row| {
        tally.add(&row);
        Ok(())
    });
    read.unwrap();
    tally
}

/// All rows of a snapshot.
fn rows(snapshot: &dyn Snapshot) -> Vec<Row> {
    let mut rows = Vec::new();
    let read = snapshot.rows(&mut |row| {
        rows.push(row);
        Ok(())
    });
    read.unwrap();
    rows
}

fn load(rows: &[Row], file: &Path) -> Result<(), String> {
    let backup = Backup::create(file, false)?;
    backup.load(|each| rows.iter().try_for_each(|row| each(row.clone())))
}

#[test]
fn rows_make_a_store_that_answers_as_the_first_one() {
    let folder = Folder::new();
    let at = |name: &str| folder.path().join(name);
    let engine = RedbEngine::open(&at("first")).unwrap();
    fill(&engine, 30_000);
    let snapshot = engine.snapshot().unwrap().unwrap();
    let backup = Backup::create(&at("second"), false).unwrap();
    backup.load(|each| snapshot.rows(each)).unwrap();

    let findings = check_file(&at("second")).unwrap();
    assert_eq!(findings.problems, [""; 0]);
    assert_eq!((findings.accounts, findings.sessions), (3, 0));
    assert_eq!(findings.entries, snapshot.entries().unwrap());
    let copy = RedbEngine::open(&at("second")).unwrap();
    let copied = copy.snapshot().unwrap().unwrap();
    assert_eq!(tally(&*copied).digest(), tally(&*snapshot).digest());
    assert_eq!(rows(&*copied), rows(&*snapshot));
    assert_eq!(answers(&copy), answers(&engine));
    // Numbers that were given are not given again, and the mark of the secret is there.
    let both = [&engine, &copy].map(|engine| {
        let next = create(engine, "next@example.org", None, 700);
        (next, engine.exchange_secret_mark(1).unwrap())
    });
    assert_eq!(both[0], both[1]);
    assert_eq!(both[0].1, Some(0x1234_5678));
}

#[test]
fn a_store_without_anything_is_copied_too() {
    let folder = Folder::new();
    let at = |name: &str| folder.path().join(name);
    let engine = RedbEngine::open(&at("first")).unwrap();
    let rows = rows(&*engine.snapshot().unwrap().unwrap());
    let (last_account, secret_mark) = (0, None);
    let store = Row::Store {
        last_account,
        secret_mark,
    };
    assert_eq!(rows, [store]);
    load(&rows, &at("second")).unwrap();
    assert_eq!(check_file(&at("second")).unwrap().problems, [""; 0]);
}

#[test]
fn a_tally_differs_if_any_row_does_or_their_order() {
    let folder = Folder::new();
    let engine = RedbEngine::open(&folder.path().join("first")).unwrap();
    fill(&engine, 60);
    let rows = rows(&*engine.snapshot().unwrap().unwrap());
    let digest = |rows: &[Row]| {
        let mut tally = Tally::default();
        for row in rows {
            tally.add(row);
        }
        tally.digest()
    };
    let whole = digest(&rows);
    for at in 0..rows.len() {
        let mut fewer = rows.clone();
        let without = fewer.remove(at);
        assert_ne!(digest(&fewer), whole, "{without:?}");
    }
    let mut turned = rows.clone();
    let last = turned
        .iter()
        .rposition(|row| matches!(row, Row::Entry(_)))
        .unwrap();
    turned.swap(last - 1, last);
    assert_ne!(digest(&turned), whole);
}

#[test]
fn rows_that_do_not_fit_together_leave_no_file() {
    let folder = Folder::new();
    let file = folder.path().join("second");
    let first = folder.path().join("first");
    let engine = RedbEngine::open(&first).unwrap();
    fill(&engine, 60);
    let whole = rows(&*engine.snapshot().unwrap().unwrap());
    let position = |is: fn(&Row) -> bool| whole.iter().position(is).unwrap();
    let account = position(|row| matches!(row, Row::Account(_)));
    for (missing, expected) in [
        (account, "before their account"),
        (
            position(|row| matches!(row, Row::Day { .. })),
            "sums by day",
        ),
        (position(|row| matches!(row, Row::Entry(_))), "sums by day"),
        (
            position(|row| matches!(row, Row::Removed(_))),
            "sums by day",
        ),
    ] {
        let mut rows = whole.clone();
        rows.remove(missing);
        let sentence = load(&rows, &file).unwrap_err();
        assert!(sentence.contains(expected), "{sentence}");
    }
    // A number or an address may be there once.
    for (more, prefix) in [(0, ""), (1, ""), (0, "x")] {
        let Row::Account(mut again) = whole[account].clone() else {
            panic!("{:?}", whole[account]);
        };
        again.id.0 += more;
        again.email.insert_str(0, prefix);
        let mut twice = whole.clone();
        twice.push(Row::Account(again));
        let sentence = load(&twice, &file).unwrap_err();
        assert!(sentence.contains("two accounts"), "{sentence}");
    }

    // Rows that end early are an error of whoever gives them.
    let backup = Backup::create(&file, false).unwrap();
    let broken = backup.load(|each| {
        whole[..whole.len() / 2]
            .iter()
            .try_for_each(|row| each(row.clone()))?;
        Err(StoreError::Failed("the connection broke".to_owned()))
    });
    let sentence = broken.unwrap_err();
    assert!(sentence.contains("the connection broke"), "{sentence}");
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_damaged_file_is_an_error_and_not_a_copy() {
    let folder = Folder::new();
    let at = |name: &str| folder.path().join(name);
    let engine = RedbEngine::open(&at("first")).unwrap();
    fill(&engine, 3000);
    drop(engine);
    let mut bytes = fs::read(at("first")).unwrap();
    // The rows of the history lie one after the other; their formats become none.
    let places: Vec<_> = (0..bytes.len() - 4)
        .filter(|at| bytes[*at..].starts_with(b"jpeg"))
        .collect();
    for place in places {
        bytes[place] = 0xff;
    }
    fs::write(at("first"), bytes).unwrap();
    let snapshot = FileSnapshot::open(&at("first")).unwrap();
    let backup = Backup::create(&at("second"), false).unwrap();
    let sentence = backup.load(|each| snapshot.rows(each)).unwrap_err();
    assert!(sentence.contains("damaged"), "{sentence}");
    assert!(!at("second").exists());
}

fn create(engine: &dyn Engine, email: &str, password: Option<&str>, created: u64) -> AccountId {
    let outcome = one(
        engine,
        Command::CreateAccount {
            email: Email::parse(email).unwrap(),
            password_hash: password.map(str::to_owned),
            created,
            invite: None,
        },
    );
    outcome.account().unwrap().id
}

fn one(engine: &dyn Engine, command: Command) -> Outcome {
    engine.apply(&[command], Instant::now()).unwrap().remove(0)
}
