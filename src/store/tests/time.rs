//! What depends on the clock, which may be set back and forward.

use super::*;
use crate::store::engine::PageRange;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// A clock that the test sets: the seconds since a moment in November.
#[derive(Clone, Default)]
struct TestClock(Arc<AtomicU64>);

impl TestClock {
    fn now(&self) -> SystemTime {
        let start = humantime::parse_rfc3339("2026-11-21T12:00:00Z").unwrap();
        start + Duration::from_secs(self.0.load(Ordering::SeqCst))
    }

    fn forward(&self, time: Duration) {
        self.0.fetch_add(time.as_secs(), Ordering::SeqCst);
    }

    fn back(&self, time: Duration) {
        self.0.fetch_sub(time.as_secs(), Ordering::SeqCst);
    }

    fn open(&self, folder: &Folder) -> Store {
        let clock = self.clone();
        Store::open_with(&folder.settings(), Clock::new(move || clock.now())).unwrap()
    }
}

/// A store with an account that is signed in.
fn signed_in(folder: &Folder, clock: &TestClock) -> (Store, AccountId, String) {
    let store = clock.open(folder);
    let id = store.create_account("owner@example.org", None).unwrap().id;
    let cookie = store.start_session(id, &Browser::default()).unwrap();
    (store, id, cookie)
}

fn is_open(store: &Store, cookie: &str) -> bool {
    store.session(cookie).unwrap().is_some()
}

#[test]
fn a_session_ends_after_seven_days_without_use() {
    let (folder, clock) = (Folder::new(), TestClock::default());
    let (store, id, used) = signed_in(&folder, &clock);
    let unused = store.start_session(id, &Browser::default()).unwrap();
    clock.forward(DAY * 6);
    assert!(is_open(&store, &used));
    clock.forward(DAY + SECOND);
    assert!(
        is_open(&store, &used),
        "a session ended that was used yesterday"
    );
    assert!(!is_open(&store, &unused));
    drop(store);

    let store = clock.open(&folder);
    let swept = store.writer.write(Command::EndSession {
        cookie: Code::parse(&unused).unwrap().hash(),
    });
    assert!(
        !swept.unwrap().changed(),
        "the ended session was still stored"
    );
    assert!(is_open(&store, &used), "its use was not stored");
}

#[test]
fn a_session_ends_after_thirty_days_however_it_is_used() {
    let (folder, clock) = (Folder::new(), TestClock::default());
    let (store, _, cookie) = signed_in(&folder, &clock);
    for day in 1..30 {
        clock.forward(DAY);
        assert!(is_open(&store, &cookie), "day {day}");
    }
    clock.forward(DAY);
    clock.back(SECOND);
    assert!(is_open(&store, &cookie), "it ended a second too early");
    clock.forward(SECOND);
    assert!(!is_open(&store, &cookie));
}

#[test]
fn a_use_is_written_once_an_hour() {
    let (folder, clock) = (Folder::new(), TestClock::default());
    let (store, _, cookie) = signed_in(&folder, &clock);
    let hash = Code::parse(&cookie).unwrap().hash();
    let end = || store.engine.session(&hash).unwrap().unwrap().times.end;
    let first = end();
    clock.forward(HOUR);
    clock.back(SECOND);
    assert!(is_open(&store, &cookie));
    assert_eq!(end(), first, "written within the hour");
    clock.forward(SECOND);
    assert!(is_open(&store, &cookie));
    assert_eq!(end(), first + HOUR.as_millis() as u64);
}

#[test]
fn a_use_is_listed_even_when_the_end_no_longer_moves() {
    let (folder, clock) = (Folder::new(), TestClock::default());
    let (store, id, cookie) = signed_in(&folder, &clock);
    let began = clock.now();
    for _ in 0..29 {
        clock.forward(DAY);
        assert!(is_open(&store, &cookie));
    }
    let [listed] = &store.sessions(id, &cookie).unwrap()[..] else {
        panic!("one session");
    };
    assert_eq!((listed.created, listed.used), (began, clock.now()));
    clock.forward(HOUR);
    clock.back(SECOND);
    assert!(is_open(&store, &cookie));
    let used = store.sessions(id, &cookie).unwrap()[0].used;
    assert_eq!(used, listed.used, "written within the hour");
}

#[test]
fn sessions_are_listed_with_their_browser_by_their_last_use() {
    let (folder, clock) = (Folder::new(), TestClock::default());
    let (store, id, own) = signed_in(&folder, &clock);
    let at = |name: &str, network: &str| Browser {
        name: name.to_owned(),
        network: network.to_owned(),
    };
    let (home, cafe) = (
        at("Firefox on Linux", "192.0.2.0/24"),
        at("Firefox on Linux", "198.51.100.0/24"),
    );
    let laptop = store.start_session(id, &home).unwrap();
    clock.forward(HOUR);
    assert!(is_open(&store, &own));
    let listed = || {
        let all = store.sessions(id, &own).unwrap();
        all.into_iter()
            .map(|session| (session.is_own, session.browser))
            .collect::<Vec<_>>()
    };
    let unknown = (true, Browser::default());
    assert_eq!(listed(), [unknown.clone(), (false, home.clone())]);
    clock.forward(HOUR);
    let found = store.session_of(&laptop, Some(&cafe)).unwrap();
    assert!(found.is_some());
    assert_eq!(listed(), [unknown.clone(), (false, cafe.clone())]);
    // Within the hour nothing is written, whoever asks.
    clock.forward(SECOND);
    store.session_of(&laptop, Some(&home)).unwrap();
    let third = store.start_session(id, &home).unwrap();
    assert_eq!(
        listed(),
        [unknown.clone(), (false, home.clone()), (false, cafe)],
        "the one used last first"
    );
    store.end_session(&third).unwrap();
    // Those that have ended are not listed.
    clock.forward(DAY * 6);
    assert!(is_open(&store, &own));
    clock.forward(DAY);
    assert_eq!(listed(), [unknown]);
    // The clock was ahead all the time.
    clock.back(DAY * 7);
    assert!(is_open(&store, &own));
    let used = store.sessions(id, &own).unwrap()[0].used;
    assert_eq!(used, clock.now());
}

#[test]
fn a_clock_set_back_ends_no_session_and_makes_none_longer() {
    let (folder, clock) = (Folder::new(), TestClock::default());
    clock.forward(DAY * 1000);
    let (store, _, cookie) = signed_in(&folder, &clock);
    clock.back(HOUR * 2);
    assert!(
        is_open(&store, &cookie),
        "it ended when the clock was set back a little"
    );
    clock.back(DAY * 900);
    assert!(
        is_open(&store, &cookie),
        "it ended when the clock was set back far"
    );
    clock.forward(DAY * 6);
    assert!(is_open(&store, &cookie));
    for _ in 0..23 {
        clock.forward(DAY);
        assert!(is_open(&store, &cookie));
    }
    clock.forward(DAY);
    assert!(
        !is_open(&store, &cookie),
        "30 days after it was first used again"
    );
}

#[test]
fn a_clock_set_forward_ends_sessions_and_invitations_and_nothing_else() {
    let (folder, clock) = (Folder::new(), TestClock::default());
    let (store, id, cookie) = signed_in(&folder, &clock);
    let code = store.invite().unwrap();
    store.record_usage(id, &entry(1)).unwrap();
    clock.forward(DAY * 1000);
    assert!(!is_open(&store, &cookie));
    let rejected = store.create_invited_account("guest@example.org", "correct horse", &code);
    assert!(
        matches!(rejected, Err(CreateAccountError::Invite)),
        "{rejected:?}"
    );
    drop(store);
    let store = clock.open(&folder);
    let owner = store
        .account_by_email("owner@example.org")
        .unwrap()
        .unwrap();
    assert!(store.authenticate(&store.token(owner.id).unwrap()).is_ok());
    assert_eq!(store.usage_totals(id).unwrap().conversions, 1);
    let cookie = store.start_session(id, &Browser::default()).unwrap();
    assert!(is_open(&store, &cookie), "a new session cannot be used");
}

#[test]
fn invitations_end_after_fourteen_days() {
    let (folder, clock) = (Folder::new(), TestClock::default());
    let store = clock.open(&folder);
    let [first, second] = [(); 2].map(|()| store.invite().unwrap());
    let join = |email, code| store.create_invited_account(email, "correct horse", code);
    clock.forward(DAY * 14);
    clock.back(SECOND);
    join("first@example.org", &first).unwrap();
    clock.forward(SECOND);
    let late = join("second@example.org", &second);
    assert!(matches!(late, Err(CreateAccountError::Invite)), "{late:?}");
}

#[test]
fn account_numbers_grow_whatever_the_clock_says() {
    let (folder, clock) = (Folder::new(), TestClock::default());
    clock.forward(DAY * 1000);
    let store = clock.open(&folder);
    let create = |email: &str| store.create_account(email, None).unwrap().id;
    let first = create("a@example.org");
    clock.back(DAY * 1000);
    let second = create("b@example.org");
    assert_eq!(second.0, first.0 + 1);
    let emails = store
        .accounts()
        .unwrap()
        .into_iter()
        .map(|account| account.email);
    assert_eq!(
        emails.collect::<Vec<_>>(),
        ["a@example.org", "b@example.org"]
    );
}

#[test]
fn the_history_keeps_its_order_and_its_months_while_the_clock_jumps() {
    let (folder, clock) = (Folder::new(), TestClock::default());
    let (store, id, _) = signed_in(&folder, &clock);
    let record = |time: &str| {
        let time = humantime::parse_rfc3339(&format!("{time}T12:00:00Z")).unwrap();
        let entry = UsageEntry { time, ..entry(1) };
        store.record_usage(id, &entry).unwrap();
    };
    // The clock is ahead by a year for a while, and behind by one at the end.
    let days = [
        "2026-10-01",
        "2027-11-01",
        "2026-11-21",
        "2026-11-22",
        "2025-11-23",
        "2026-12-01",
    ];
    for day in days {
        record(day);
    }
    let page = all_usage(&store, id, None, 10).unwrap();
    let order: Vec<_> = page.entries.iter().map(|(id, _)| id.0).collect();
    assert_eq!(order, [6, 5, 4, 3, 2, 1]);
    for (day, conversions) in [
        ("2026-09-30", 0),
        ("2026-10-15", 1),
        ("2026-11-30", 2),
        ("2026-12-31", 1),
        ("2027-01-01", 0),
        ("2027-11-30", 1),
    ] {
        let now = humantime::parse_rfc3339(&format!("{day}T00:00:00Z")).unwrap();
        let month = store.usage_in_month(id, None, now).unwrap();
        assert_eq!(month.conversions, conversions, "{day}");
    }
    let findings = store.snapshot().unwrap().check().unwrap();
    assert_eq!(findings.problems, [""; 0]);
}

fn named(name: &str, ends: Option<SystemTime>) -> TokenSettings {
    TokenSettings {
        name: name.to_owned(),
        ends,
        limits: Limits::default(),
        preset: String::new(),
    }
}

#[test]
fn a_replaced_token_works_as_long_as_it_was_given() {
    let (folder, clock) = (Folder::new(), TestClock::default());
    let (store, id, _) = signed_in(&folder, &clock);
    let rotate = |overlap| {
        let rotated = store.rotate_token(id, TokenNumber::DEFAULT, overlap);
        store.token_text(id, &rotated.unwrap().unwrap())
    };
    let is_good = |token: &str| store.authenticate(token).is_ok();
    let first = store.token(id).unwrap();
    let second = rotate(HOUR);
    assert!(is_good(&first) && is_good(&second));
    clock.forward(SECOND * 3599);
    assert!(is_good(&first) && is_good(&second));
    clock.forward(SECOND);
    assert!(!is_good(&first) && is_good(&second));
    clock.back(HOUR);
    assert!(is_good(&second), "a clock set back ends nothing");
    let third = rotate(DAY * 100);
    clock.forward(SECOND * (3 * 86_400 - 1));
    assert!(is_good(&second) && is_good(&third));
    clock.forward(SECOND);
    assert!(!is_good(&second), "72 hours are the most");
    let fourth = rotate(HOUR);
    let fifth = rotate(HOUR);
    assert!(!is_good(&third), "of replaced ones only the last works");
    assert!(is_good(&fourth) && is_good(&fifth));
    rotate(Duration::ZERO);
    assert!(!is_good(&fourth) && !is_good(&fifth), "all at once");
}

#[test]
fn a_token_ends_when_its_owner_says() {
    let (folder, clock) = (Folder::new(), TestClock::default());
    let (store, id, _) = signed_in(&folder, &clock);
    let token = store
        .create_token(id, named("shop", Some(clock.now() + HOUR)))
        .unwrap();
    let text = store.token_text(id, &token);
    clock.forward(SECOND * 3599);
    assert_eq!(store.authenticate(&text).unwrap().token_name(), "shop");
    clock.forward(SECOND);
    assert!(matches!(store.authenticate(&text), Err(TokenError::Ended)));
    assert!(matches!(store.check_token(&text), TokenCheck::Ended));
    drop(store);
    let store = clock.open(&folder);
    assert!(matches!(store.check_token(&text), TokenCheck::Ended));
    let later = named("shop", Some(clock.now() + HOUR));
    store.change_token(id, token.number, later).unwrap();
    assert!(store.authenticate(&text).is_ok(), "it goes on");
    clock.forward(DAY * 1000);
    store
        .change_token(id, token.number, named("shop", None))
        .unwrap();
    assert!(store.authenticate(&text).is_ok(), "it has no end");
}

/// The database is put back to what it was before a token was made and replaced.
#[test]
fn no_serial_number_is_given_twice_even_after_an_old_copy_was_put_back() {
    let (folder, clock) = (Folder::new(), TestClock::default());
    let (store, id, _) = signed_in(&folder, &clock);
    drop(store);
    let path = database_path(&folder.settings().data);
    let backup = fs::read(&path).unwrap();
    let store = clock.open(&folder);
    let lost = store.create_token(id, named("contractor", None)).unwrap();
    let lost = store.token_text(id, &lost);
    drop(store);
    fs::write(&path, backup).unwrap();
    clock.forward(SECOND);
    let store = clock.open(&folder);
    let other = store.create_token(id, named("shop", None)).unwrap();
    assert_ne!(store.token_text(id, &other), lost);
    assert!(store.authenticate(&lost).is_err());
}

fn failure(clock: &TestClock) -> Failure {
    Failure {
        time: clock.now(),
        token: TokenNumber::DEFAULT,
        ..Failure::example(400, "body_empty")
    }
}

#[test]
fn histories_are_kept_for_the_days_that_are_set_and_failures_for_thirty() {
    let (folder, clock) = (Folder::new(), TestClock::default());
    let now = clock.clone();
    let settings = Settings {
        history_keep: NonZeroU32::new(40),
        ..folder.settings()
    };
    let store = Store::open_with(&settings, Clock::new(move || now.now())).unwrap();
    let id = store.create_account("owner@example.org", None).unwrap().id;
    let record = || {
        store
            .record_usage(id, &UsageEntry::example(clock.now()))
            .unwrap();
        store.record_failure(id, failure(&clock));
    };
    let counts = || {
        store.janitor.remove_old().unwrap();
        let page = all_usage(&store, id, None, 9).unwrap();
        let failures = store.failures(id, &FailureFilter::default(), None, 9);
        (page.entries.len(), failures.unwrap().entries.len())
    };
    record();
    clock.forward(DAY);
    record();
    assert_eq!(counts(), (2, 2));
    clock.forward(DAY * 29);
    assert_eq!(counts(), (2, 2));
    clock.forward(SECOND);
    assert_eq!(counts(), (2, 1));
    clock.forward(DAY * 10);
    assert_eq!(counts(), (1, 0));
    // The clock is set back, and forward again.
    clock.back(DAY * 40);
    assert_eq!(counts(), (1, 0));
    clock.forward(DAY * 41);
    assert_eq!(counts(), (0, 0));
    assert_eq!(store.usage_totals(id).unwrap().conversions, 2);
    drop(store);
    let path = database_path(&folder.settings().data);
    assert_eq!(check_file(&path).unwrap().problems, [""; 0]);
}

#[test]
fn without_a_limit_histories_are_kept() {
    let (folder, clock) = (Folder::new(), TestClock::default());
    let (store, id, _) = signed_in(&folder, &clock);
    store
        .record_usage(id, &UsageEntry::example(clock.now()))
        .unwrap();
    clock.forward(DAY * 40_000);
    store.janitor.remove_old().unwrap();
    assert_eq!(all_usage(&store, id, None, 9).unwrap().entries.len(), 1);
}

#[test]
fn failures_are_written_when_the_store_is_closed() {
    let (folder, clock) = (Folder::new(), TestClock::default());
    let (store, id, _) = signed_in(&folder, &clock);
    store.record_failure(id, failure(&clock));
    drop(store);
    let engine = RedbEngine::open(&database_path(&folder.settings().data)).unwrap();
    let page = engine.failures(
        id,
        &FailureFilter::default(),
        PageRange {
            before: None,
            limit: 9,
        },
    );
    assert_eq!(page.unwrap().entries.len(), 1);
}

#[test]
fn sums_are_of_calendar_days_and_months() {
    let (folder, clock) = (Folder::new(), TestClock::default());
    let (store, id, _) = signed_in(&folder, &clock);
    let days = [
        "2026-10-31",
        "2026-11-01",
        "2026-11-01",
        "2026-11-30",
        "2027-11-01",
    ];
    for day in days {
        let time = humantime::parse_rfc3339(&format!("{day}T23:59:59Z")).unwrap();
        let entry = UsageEntry::example(time);
        store.record_usage(id, &entry).unwrap();
    }
    let sums = |period, filter: &UsageFilter| -> Vec<(String, u64)> {
        let sums = store.usage_sums(id, filter, period).unwrap();
        let named = sums.iter();
        named
            .map(|sum| (filter::day_text(sum.first_day), sum.totals.conversions))
            .collect()
    };
    let expected = |sums: &[(&str, u64)]| -> Vec<(String, u64)> {
        sums.iter()
            .map(|(day, count)| ((*day).to_owned(), *count))
            .collect()
    };
    let all = UsageFilter::default();
    let by_day = [
        ("2026-10-31", 1),
        ("2026-11-01", 2),
        ("2026-11-30", 1),
        ("2027-11-01", 1),
    ];
    assert_eq!(sums(Period::Day, &all), expected(&by_day));
    let by_month = [("2026-10-01", 1), ("2026-11-01", 3), ("2027-11-01", 1)];
    assert_eq!(sums(Period::Month, &all), expected(&by_month));
    let texts = FilterTexts {
        from: "2026-11-02".to_owned(),
        to: "2027-10-31".to_owned(),
        ..FilterTexts::default()
    };
    let some = texts.usage(&[]).unwrap();
    assert_eq!(sums(Period::Month, &some), expected(&[("2026-11-01", 1)]));
}
