//! What users of the store rely on, tried through the facade.

mod backup;
pub(crate) mod disk;
mod engine;
mod examples;
mod known;
mod owner;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
mod rows;
mod sessions;
pub(crate) mod shared;
pub(crate) mod shared_engine;
mod time;
mod tokens;

use super::*;
use crate::auth::{Token, Wait};
use std::fs;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, UNIX_EPOCH};

/// A new folder under the system's folder for temporary files, removed when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "towebp-test-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            data: self.0.join("data"),
            secret_file: None,
            allow_shared_data: false,
            history_keep: None,
            postgres: None,
        }
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&self.settings()).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A page of a history without a filter.
pub(crate) fn all_usage(
    store: &Store,
    id: AccountId,
    before: Option<EntryId>,
    limit: usize,
) -> Result<Page<UsageEntry>, StoreError> {
    store.usage(id, &UsageFilter::default(), before, limit)
}

/// A store that reads each page from this disk whenever it needs it.
pub(crate) fn store_on(disk: &disk::Disk) -> Store {
    let engine = Arc::new(disk.engine_without_cache());
    let secret = Secret::random().unwrap();
    Store::start(engine, secret, Clock::new(SystemTime::now), None).unwrap()
}

/// A store on this disk, with the time of this clock and the same secret each time.
pub(crate) fn store_at(
    disk: &disk::Disk,
    time: impl Fn() -> SystemTime + Send + Sync + 'static,
) -> Store {
    let secret = Secret::parse(shared::SECRET).unwrap();
    Store::start(Arc::new(disk.engine()), secret, Clock::new(time), None).unwrap()
}

/// A number of the environment, if it is set.
pub(crate) fn from_environment<T: FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    let number = text.parse().ok();
    Some(number.unwrap_or_else(|| panic!("{name} is {text:?}, and should be a number")))
}

/// Probes the storage at once, as the store does within a second after its disk was mended.
pub(crate) fn probe(store: &Store) {
    store.engine.probe().unwrap();
    store.availability.succeeded();
}

#[test]
fn a_token_names_its_account_until_it_is_rotated() {
    let folder = Folder::new();
    let store = folder.store();
    let account = store.create_account("Owner@Example.org ", None).unwrap();
    assert_eq!(account.email, "owner@example.org");
    let old = store.token(account.id).unwrap();
    let caller = store.authenticate(&old).unwrap();
    assert_eq!(caller.account, account.id);
    assert_eq!(
        (caller.token, caller.token_name()),
        (TokenNumber::DEFAULT, "default")
    );

    let new = rotate(&store, account.id);
    assert!(
        matches!(store.authenticate(&old), Err(TokenError::Invalid)),
        "the old token is still accepted"
    );
    assert_eq!(store.authenticate(&new).unwrap().account, account.id);
    assert_eq!(store.token(account.id).unwrap(), new);
}

#[test]
fn a_store_cannot_be_opened_twice_at_a_time() {
    let folder = Folder::new();
    let store = folder.store();
    match Store::open(&folder.settings()) {
        Err(OpenError::InUse(path)) => assert_eq!(path, database_path(&folder.settings().data)),
        Err(other) => panic!("another error: {other:?}"),
        Ok(_) => panic!("it was opened twice"),
    }
    drop(store);
    folder.store();
}

#[test]
fn a_missing_secret_is_not_replaced_once_there_are_accounts() {
    let folder = Folder::new();
    let store = folder.store();
    fs::remove_file(folder.settings().data.join("secret")).unwrap();
    drop(store);
    drop(folder.store());
    folder
        .store()
        .create_account("owner@example.org", None)
        .unwrap();
    fs::remove_file(folder.settings().data.join("secret")).unwrap();
    let Err(OpenError::Failed(sentence)) = Store::open(&folder.settings()) else {
        panic!("it was opened")
    };
    assert!(
        sentence.contains("secret") && sentence.contains("is missing"),
        "{sentence}"
    );
}

#[test]
fn a_stolen_database_yields_no_working_token() {
    let folder = Folder::new();
    let store = folder.store();
    let account = store.create_account("owner@example.org", None).unwrap();
    let token = store.token(account.id).unwrap();
    drop(store);

    let thief = Settings {
        data: folder.path().join("stolen"),
        secret_file: None,
        allow_shared_data: false,
        history_keep: None,
        postgres: None,
    };
    super::folder::create_private(&thief.data).unwrap();
    fs::copy(
        database_path(&folder.settings().data),
        database_path(&thief.data),
    )
    .unwrap();
    fs::write(thief.data.join("secret"), "5".repeat(64)).unwrap();
    let stolen = Store::open(&thief).unwrap();
    let owner = stolen.account_by_email("owner@example.org").unwrap();
    let forged = stolen.token(owner.unwrap().id).unwrap();
    assert!(
        stolen.authenticate(&forged).is_ok(),
        "the thief's own copy accepts its token"
    );
    drop(stolen);

    let store = folder.store();
    assert!(
        matches!(store.authenticate(&forged), Err(TokenError::Invalid)),
        "the forged token works"
    );
    assert_eq!(store.authenticate(&token).unwrap().account, account.id);
}

#[test]
fn older_tokens_do_not_open_accounts_made_after_a_restore() {
    let folder = Folder::new();
    let store = folder.store();
    drop(store);
    let path = database_path(&folder.settings().data);
    let backup = fs::read(&path).unwrap();
    let store = folder.store();
    let old = store.create_account("before@example.org", None).unwrap();
    let old = store.token(old.id).unwrap();
    drop(store);
    fs::write(&path, backup).unwrap();
    std::thread::sleep(Duration::from_millis(2));
    let store = folder.store();
    store.create_account("after@example.org", None).unwrap();
    assert!(matches!(store.authenticate(&old), Err(TokenError::Invalid)));
}

#[test]
fn concurrent_conversions_are_all_counted_and_survive() {
    const THREADS: u64 = 8;
    const EACH: u64 = 40;
    let folder = Folder::new();
    let store = folder.store();
    let id = store.create_account("owner@example.org", None).unwrap().id;
    let other = store.create_account("other@example.org", None).unwrap().id;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let store = &store;
            scope.spawn(move || {
                for i in 0..EACH {
                    store.record_usage(id, &entry(thread * EACH + i)).unwrap();
                }
            });
        }
        store.record_usage(other, &entry(5)).unwrap();
    });
    drop(store);

    let store = folder.store();
    let count = THREADS * EACH;
    let expected = UsageTotals {
        conversions: count,
        input_bytes: (0..count).map(|i| 1000 + i).sum(),
        output_bytes: (0..count).sum(),
    };
    assert_eq!(store.usage_totals(id).unwrap(), expected);
    assert_eq!(store.usage_totals(other).unwrap().conversions, 1);
    let page = all_usage(&store, id, None, 1000).unwrap();
    let ids = page.entries.iter().map(|(id, _)| *id);
    assert!(
        ids.eq((1..=count).rev().map(EntryId::from)),
        "the sequence has gaps or doubles"
    );
    assert_eq!(page.next_before, None);
}

#[test]
fn pages_go_back_from_the_newest() {
    let folder = Folder::new();
    let store = folder.store();
    let id = store.create_account("owner@example.org", None).unwrap().id;
    for i in 1..=5 {
        store.record_usage(id, &entry(i)).unwrap();
    }
    let first = all_usage(&store, id, None, 2).unwrap();
    assert_eq!(
        first.entries,
        [(EntryId(5), entry(5)), (EntryId(4), entry(4))]
    );
    assert_eq!(first.next_before, Some(EntryId(4)));
    let second = all_usage(&store, id, first.next_before, 2).unwrap();
    assert_eq!(
        second.entries,
        [(EntryId(3), entry(3)), (EntryId(2), entry(2))]
    );
    let third = all_usage(&store, id, second.next_before, 2).unwrap();
    assert_eq!(third.entries, [(EntryId(1), entry(1))]);
    assert_eq!(third.next_before, None);
    assert_eq!(
        all_usage(&store, id, Some(EntryId(4)), 3)
            .unwrap()
            .next_before,
        None,
        "the page ended with the first entry"
    );
    assert!(
        all_usage(&store, id, Some(EntryId(0)), 2)
            .unwrap()
            .entries
            .is_empty()
    );
    assert!(
        all_usage(&store, AccountId(id.0 + 1), None, 2)
            .unwrap()
            .entries
            .is_empty(),
        "another account's history is shown"
    );
}

#[test]
fn deleting_an_account_deletes_its_sessions_history_and_token_only() {
    let folder = Folder::new();
    let store = folder.store();
    let owner = store.create_account("owner@example.org", None).unwrap();
    let other = store.create_account("other@example.org", None).unwrap();
    let cookies =
        [owner.id, other.id].map(|id| store.start_session(id, &Browser::default()).unwrap());
    for id in [owner.id, other.id] {
        store.record_usage(id, &entry(1)).unwrap();
    }
    assert!(store.delete_account(owner.id).unwrap());
    assert!(
        !store.delete_account(owner.id).unwrap(),
        "it was deleted twice"
    );

    assert_eq!(store.accounts().unwrap(), std::slice::from_ref(&other));
    assert!(
        store.session(&cookies[0]).unwrap().is_none(),
        "the session goes on"
    );
    assert!(matches!(
        store.authenticate(&token_text(&store, owner.id, 0)),
        Err(TokenError::Invalid)
    ));
    assert_eq!(
        store.usage_totals(owner.id).unwrap(),
        UsageTotals::default()
    );
    assert!(
        all_usage(&store, owner.id, None, 10)
            .unwrap()
            .entries
            .is_empty()
    );
    assert!(
        store.record_usage(owner.id, &entry(2)).is_err(),
        "a deleted account has a history again"
    );
    assert!(store.start_session(owner.id, &Browser::default()).is_err());
    let rotated = store.rotate_token(owner.id, TokenNumber::DEFAULT, Duration::ZERO);
    assert!(rotated.unwrap().is_none());

    assert!(store.session(&cookies[1]).unwrap().is_some());
    assert_eq!(store.usage_totals(other.id).unwrap().conversions, 1);

    let again = store.create_account("owner@example.org", None).unwrap();
    assert!(again.id > other.id, "the number was given again");
    assert!(matches!(
        store.authenticate(&token_text(&store, owner.id, 0)),
        Err(TokenError::Invalid)
    ));
}

#[test]
fn a_session_lasts_until_it_is_ended() {
    let folder = Folder::new();
    let store = folder.store();
    let account = store.create_account("owner@example.org", None).unwrap();
    let cookie = store
        .start_session(account.id, &Browser::default())
        .unwrap();
    let another = store
        .start_session(account.id, &Browser::default())
        .unwrap();
    let session = store.session(&cookie).unwrap().unwrap();
    assert_eq!(session.account, account);
    assert!(session.csrf_matches(&session.csrf.clone()));
    assert!(!session.csrf_matches(""));
    assert!(
        !session.csrf_matches(&store.session(&another).unwrap().unwrap().csrf),
        "the value is accepted for another session"
    );
    drop(store);

    let store = folder.store();
    assert_eq!(
        store.session(&cookie).unwrap().unwrap().csrf,
        session.csrf,
        "a restart changed the value"
    );
    store.end_session(&cookie).unwrap();
    assert!(store.session(&cookie).unwrap().is_none());
    assert!(
        store.session(&another).unwrap().is_some(),
        "the other browser was signed out too"
    );
    assert!(store.session("").unwrap().is_none());
    let stored = fs::read(database_path(&folder.settings().data)).unwrap();
    assert!(
        !stored.windows(43).any(|bytes| bytes == another.as_bytes()),
        "the cookie is in the database"
    );
}

#[test]
fn sign_in_does_not_tell_unknown_accounts_from_wrong_passwords() {
    let folder = Folder::new();
    let store = folder.store();
    let account = store
        .create_account("owner@example.org", Some("correct horse"))
        .unwrap();
    assert!(account.has_password);
    store.create_account("machine@example.org", None).unwrap();
    assert_eq!(
        store
            .sign_in(" OWNER@example.org", "correct horse")
            .unwrap(),
        account
    );
    for (email, password) in [
        ("owner@example.org", "wrong horse"),
        ("owner@example.org", ""),
        ("nobody@example.org", "correct horse"),
        ("machine@example.org", ""),
        ("not an address", "correct horse"),
    ] {
        let rejected = store.sign_in(email, password);
        assert!(
            matches!(rejected, Err(SignInError::Wrong)),
            "{email} with {password:?}: {rejected:?}"
        );
    }
}

#[test]
fn the_sixth_guess_waits_even_with_the_right_password() {
    let folder = Folder::new();
    let store = folder.store();
    store
        .create_account("owner@example.org", Some("correct horse"))
        .unwrap();
    for email in ["owner@example.org", "nobody@example.org"] {
        for _ in 0..5 {
            assert!(matches!(
                store.sign_in(email, "wrong horse"),
                Err(SignInError::Wrong)
            ));
        }
        let rejected = store.sign_in(email, "correct horse");
        assert!(
            matches!(rejected, Err(SignInError::TooMany(Wait { seconds: 1 }))),
            "{email}: {rejected:?}"
        );
    }
    std::thread::sleep(Duration::from_millis(1100));
    assert!(store.sign_in("owner@example.org", "correct horse").is_ok());
    assert!(
        matches!(
            store.sign_in("owner@example.org", "wrong horse"),
            Err(SignInError::Wrong)
        ),
        "the success did not clear the count"
    );
}

#[test]
fn an_account_is_made_once() {
    let folder = Folder::new();
    let store = folder.store();
    store.create_account("owner@example.org", None).unwrap();
    assert!(matches!(
        store.create_account("OWNER@example.org", None),
        Err(CreateAccountError::Exists)
    ));
    assert!(matches!(
        store.create_account("owner", None),
        Err(CreateAccountError::Email(_))
    ));
    assert!(matches!(
        store.create_account("a@example.org", Some("short")),
        Err(CreateAccountError::Password(_))
    ));
    assert_eq!(store.accounts().unwrap().len(), 1);
}

#[test]
fn an_invitation_makes_one_account() {
    let folder = Folder::new();
    let store = folder.store();
    let code = store.invite().unwrap();
    let join = |email: &str, code: &str| store.create_invited_account(email, "correct horse", code);

    store.create_account("owner@example.org", None).unwrap();
    let taken = join("owner@example.org", &code);
    assert!(
        matches!(taken, Err(CreateAccountError::Exists)),
        "{taken:?}"
    );
    let guest = join("guest@example.org", &format!(" {code}\n"))
        .expect("a failure does not use the invitation up");
    assert!(guest.has_password);
    let other = Code::random().unwrap().as_str().to_owned();
    for code in [code.as_str(), &other, "", "guess"] {
        for email in ["second@example.org", "owner@example.org"] {
            let rejected = join(email, code);
            assert!(
                matches!(rejected, Err(CreateAccountError::Invite)),
                "{email} by {code:?}: {rejected:?}"
            );
        }
    }
    let stored = fs::read(database_path(&folder.settings().data)).unwrap();
    assert!(
        !stored.windows(43).any(|bytes| bytes == code.as_bytes()),
        "the code is in the database"
    );
}

#[test]
fn an_invitation_used_at_once_by_several_makes_one_account() {
    let folder = Folder::new();
    let store = folder.store();
    let code = store.invite().unwrap();
    let made = std::thread::scope(|scope| {
        let joining = ["a@example.org", "b@example.org", "c@example.org"].map(|email| {
            let (store, code) = (&store, &code);
            scope.spawn(move || {
                store
                    .create_invited_account(email, "correct horse", code)
                    .is_ok()
            })
        });
        joining.map(|thread| thread.join().unwrap())
    });
    assert_eq!(made.iter().filter(|made| **made).count(), 1, "{made:?}");
    assert_eq!(store.accounts().unwrap().len(), 1);
}

#[test]
fn a_reopened_store_has_everything() {
    let folder = Folder::new();
    let store = folder.store();
    let owner = store
        .create_account("owner@example.org", Some("correct horse"))
        .unwrap();
    let token = rotate(&store, owner.id);
    let cookie = store.start_session(owner.id, &Browser::default()).unwrap();
    store.record_usage(owner.id, &entry(1)).unwrap();
    drop(store);

    let store = folder.store();
    assert_eq!(store.accounts().unwrap(), std::slice::from_ref(&owner));
    assert_eq!(store.authenticate(&token).unwrap().account, owner.id);
    assert_eq!(store.session(&cookie).unwrap().unwrap().account, owner);
    assert_eq!(
        all_usage(&store, owner.id, None, 10).unwrap().entries,
        [(EntryId(1), entry(1))]
    );
    assert_eq!(
        store.sign_in("owner@example.org", "correct horse").unwrap(),
        owner
    );
}

#[test]
fn only_its_owner_may_read_the_data_folder() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let _store = folder.store();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let data = folder.settings().data;
    assert_eq!(mode(&data), 0o700);
    assert_eq!(mode(&data.join("secret")), 0o600);
    assert_eq!(mode(&database_path(&data)), 0o600);
}

#[test]
fn the_secret_file_can_be_elsewhere() {
    let folder = Folder::new();
    let settings = Settings {
        secret_file: Some(folder.path().join("elsewhere")),
        ..folder.settings()
    };
    let store = Store::open(&settings).unwrap();
    let owner = store.create_account("owner@example.org", None).unwrap();
    let token = store.token(owner.id).unwrap();
    drop(store);
    assert!(!settings.data.join("secret").exists());
    assert!(Store::open(&settings).unwrap().authenticate(&token).is_ok());
}

#[test]
fn a_month_counts_its_own_conversions() {
    let folder = Folder::new();
    let store = folder.store();
    let account = store.create_account("owner@example.org", None).unwrap();
    let other = store.create_account("other@example.org", None).unwrap();
    let time = |text: &str| humantime::parse_rfc3339(text).unwrap();
    let times = [
        "2026-10-31T23:59:59.999Z",
        "2026-11-01T00:00:00Z",
        "2026-11-21T08:00:00Z",
    ];
    for text in times {
        let entry = UsageEntry {
            time: time(text),
            ..entry(1)
        };
        store.record_usage(account.id, &entry).unwrap();
    }
    let count = |id, now: &str| {
        store
            .usage_in_month(id, None, time(now))
            .unwrap()
            .conversions
    };
    assert_eq!(count(account.id, "2026-11-30T23:59:59Z"), 2);
    assert_eq!(count(account.id, "2026-12-01T00:00:00Z"), 0);
    assert_eq!(count(other.id, "2026-11-30T23:59:59Z"), 0);
    let month = store
        .usage_in_month(account.id, None, time("2026-11-21T08:00:00Z"))
        .unwrap();
    assert_eq!(
        (month.start, month.end),
        (time("2026-11-01T00:00:00Z"), time("2026-12-01T00:00:00Z"))
    );
}

/// The text of the token that an account's serial number gives, without asking the engine.
pub(crate) fn token_text(store: &Store, account: AccountId, serial: u32) -> String {
    Token { account, serial }.text(&store.secret)
}

/// Replaces an account's token `default`, and returns its new text.
pub(crate) fn rotate(store: &Store, id: AccountId) -> String {
    let rotated = store.rotate_token(id, TokenNumber::DEFAULT, Duration::ZERO);
    store.token_text(id, &rotated.unwrap().unwrap())
}

/// The `i`-th of a series of different entries.
pub(crate) fn entry(i: u64) -> UsageEntry {
    UsageEntry {
        time: UNIX_EPOCH + Duration::from_millis(1_795_000_000_000 + i),
        token: TokenNumber::DEFAULT,
        format: "jpeg".into(),
        input_bytes: 1000 + i,
        output_bytes: i,
        width: 640,
        height: 480,
        quality: 85,
        watermark: WatermarkKind::Text,
        milliseconds: 12,
        request: RequestId(u128::MAX - u128::from(i)),
    }
}
