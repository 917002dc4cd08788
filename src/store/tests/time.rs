//! What depends on the clock, which may be set back and forward.

use super::*;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// Seconds after a moment in November.
#[derive(Clone, Default)]
struct Hands(Arc<AtomicU64>);

impl Hands {
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

    fn store(&self, folder: &Folder) -> Store {
        let hands = self.clone();
        Store::open_with(&folder.settings(), Clock::new(move || hands.now())).unwrap()
    }
}

/// A store with an account that is signed in.
fn signed_in(folder: &Folder, hands: &Hands) -> (Store, AccountId, String) {
    let store = hands.store(folder);
    let id = store.create_account("owner@example.org", None).unwrap().id;
    let cookie = store.start_session(id).unwrap();
    (store, id, cookie)
}

fn is_open(store: &Store, cookie: &str) -> bool {
    store.session(cookie).unwrap().is_some()
}

#[test]
fn a_session_ends_after_seven_days_without_use() {
    let (folder, hands) = (Folder::new(), Hands::default());
    let (store, id, used) = signed_in(&folder, &hands);
    let unused = store.start_session(id).unwrap();
    hands.forward(DAY * 6);
    assert!(is_open(&store, &used));
    hands.forward(DAY + SECOND);
    assert!(is_open(&store, &used), "it was used yesterday");
    assert!(!is_open(&store, &unused));
    drop(store);

    let store = hands.store(&folder);
    let swept = store.writer.write(Command::EndSession {
        cookie: Code::parse(&unused).unwrap().hash(),
    });
    assert!(
        !swept.unwrap().changed(),
        "the ended session was still stored"
    );
    assert!(is_open(&store, &used), "its use was not on the disk");
}

#[test]
fn a_session_ends_after_thirty_days_however_it_is_used() {
    let (folder, hands) = (Folder::new(), Hands::default());
    let (store, _, cookie) = signed_in(&folder, &hands);
    for day in 1..30 {
        hands.forward(DAY);
        assert!(is_open(&store, &cookie), "day {day}");
    }
    hands.forward(DAY);
    hands.back(SECOND);
    assert!(is_open(&store, &cookie), "a second before");
    hands.forward(SECOND);
    assert!(!is_open(&store, &cookie));
}

#[test]
fn a_use_is_written_once_an_hour() {
    let (folder, hands) = (Folder::new(), Hands::default());
    let (store, _, cookie) = signed_in(&folder, &hands);
    let end = || {
        let hash = Code::parse(&cookie).unwrap().hash();
        let session = store.database.read(|read| {
            let sessions = read.open_table(sessions::SESSIONS)?;
            Ok(sessions.get(&hash)?.map(|session| session.value().1))
        });
        clock::from_milliseconds(session.unwrap().unwrap())
    };
    let first = end();
    hands.forward(HOUR);
    hands.back(SECOND);
    assert!(is_open(&store, &cookie));
    assert_eq!(end(), first, "written within the hour");
    hands.forward(SECOND);
    assert!(is_open(&store, &cookie));
    assert_eq!(end(), first + HOUR);
}

#[test]
fn a_clock_set_back_ends_no_session_and_makes_none_longer() {
    let (folder, hands) = (Folder::new(), Hands::default());
    hands.forward(DAY * 1000);
    let (store, _, cookie) = signed_in(&folder, &hands);
    hands.back(HOUR * 2);
    assert!(is_open(&store, &cookie), "set back a little");
    hands.back(DAY * 900);
    assert!(is_open(&store, &cookie), "set back far");
    hands.forward(DAY * 6);
    assert!(is_open(&store, &cookie));
    for _ in 0..23 {
        hands.forward(DAY);
        assert!(is_open(&store, &cookie));
    }
    hands.forward(DAY);
    assert!(
        !is_open(&store, &cookie),
        "30 days after it was first used again"
    );
}

#[test]
fn a_clock_set_forward_ends_sessions_and_invitations_and_nothing_else() {
    let (folder, hands) = (Folder::new(), Hands::default());
    let (store, id, cookie) = signed_in(&folder, &hands);
    let code = store.invite().unwrap();
    store.record_usage(id, &entry(1)).unwrap();
    hands.forward(DAY * 1000);
    assert!(!is_open(&store, &cookie));
    let refused = store.create_invited_account("guest@example.org", "correct horse", &code);
    assert!(
        matches!(refused, Err(CreateAccountError::Invite)),
        "{refused:?}"
    );
    drop(store);
    let store = hands.store(&folder);
    let owner = store
        .account_by_email("owner@example.org")
        .unwrap()
        .unwrap();
    assert!(store.authenticate(&store.token(&owner)).is_ok());
    assert_eq!(store.usage_totals(id).unwrap().conversions, 1);
    let cookie = store.start_session(id).unwrap();
    assert!(is_open(&store, &cookie), "one can sign in anew");
}

#[test]
fn account_numbers_grow_whatever_the_clock_says() {
    let (folder, hands) = (Folder::new(), Hands::default());
    hands.forward(DAY * 1000);
    let store = hands.store(&folder);
    let create = |email: &str| store.create_account(email, None).unwrap().id;
    let first = create("a@example.org");
    hands.back(DAY * 1000);
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
    let (folder, hands) = (Folder::new(), Hands::default());
    let (store, id, _) = signed_in(&folder, &hands);
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
    let page = store.usage(id, None, 10).unwrap();
    let order: Vec<u64> = page.entries.iter().map(|(sequence, _)| *sequence).collect();
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
        let month = store.usage_in_month(id, now).unwrap();
        assert_eq!(month.conversions, conversions, "{day}");
    }
    let findings = store.snapshot().unwrap().check().unwrap();
    assert_eq!(findings.problems, [""; 0]);
}
