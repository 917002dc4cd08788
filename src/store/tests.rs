//! What users of the store rely on, through its public face.

pub(crate) mod disk;
mod time;

use super::*;
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, UNIX_EPOCH};

/// A folder of its own, removed when dropped.
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

/// A store that reads each page from the disk whenever it needs it.
pub(crate) fn store_on(disk: &disk::Disk) -> Store {
    let database = Arc::new(disk.open_without_cache());
    database.ensure_format().unwrap();
    let folder = Folder::new();
    let secret = Secret::open(&folder.path().join("secret"), false).unwrap();
    Store::start(database, secret, Clock::new(SystemTime::now)).unwrap()
}

#[test]
fn memory_knows_whose_token_it_is_and_follows_every_change_before_it_is_answered() {
    let disk = disk::Disk::default();
    let store = store_on(&disk);
    let owner = store.create_account("owner@example.org", None).unwrap();
    let deleted = store.create_account("deleted@example.org", None).unwrap();
    let old = store.token(&owner);
    let owner = store.rotate_token(owner.id).unwrap().unwrap();
    store.delete_account(deleted.id).unwrap();

    disk.slow_down(Duration::from_secs(1));
    let reads = disk.reads();
    for (token, expected) in [
        (store.token(&owner), TokenCheck::Valid(owner.id)),
        (old, TokenCheck::Invalid),
        (store.token(&deleted), TokenCheck::Invalid),
        ("twp_forged".to_owned(), TokenCheck::Invalid),
    ] {
        assert_eq!(store.check_token(&token), expected);
        assert_eq!(
            store.authenticate(&token).ok(),
            (expected == TokenCheck::Valid(owner.id)).then_some(owner.id),
            "what memory knows is not asked of the disk"
        );
    }
    assert_eq!(disk.reads(), reads, "the disk was asked");
}

#[test]
fn what_a_failed_commit_leaves_in_doubt_is_asked_of_the_disk_and_known_again() {
    let disk = disk::Disk::default();
    let store = store_on(&disk);
    let owner = store.create_account("owner@example.org", None).unwrap();
    let other = store.create_account("other@example.org", None).unwrap();
    let deleted = store.create_account("deleted@example.org", None).unwrap();
    store.delete_account(deleted.id).unwrap();
    disk.break_after(0);
    assert!(store.rotate_token(owner.id).is_err());
    let other_token = store.token(&other);
    assert_eq!(
        store.check_token(&other_token),
        TokenCheck::Unknown(other.id)
    );
    assert!(
        matches!(store.authenticate(&other_token), Err(TokenError::Store(_))),
        "neither memory nor the disk can tell"
    );

    disk.mend();
    assert_eq!(store.authenticate(&other_token).unwrap(), other.id);
    assert_eq!(
        store.check_token(&other_token),
        TokenCheck::Valid(other.id),
        "it is remembered"
    );
    // The rotation has come to the disk or not; memory has to say the same.
    let present = store
        .account_by_email("owner@example.org")
        .unwrap()
        .unwrap();
    for generation in 0..2 {
        let token = store.token(&Account {
            token_generation: generation,
            ..owner.clone()
        });
        let is_present = generation == present.token_generation;
        assert_eq!(store.authenticate(&token).is_ok(), is_present);
    }
    let gone = store.token(&deleted);
    assert_eq!(store.check_token(&gone), TokenCheck::Unknown(deleted.id));
    assert!(matches!(
        store.authenticate(&gone),
        Err(TokenError::Invalid)
    ));
    assert_eq!(store.check_token(&gone), TokenCheck::Invalid);
}

#[test]
fn a_month_s_count_is_known_from_the_first_look_on_and_counts_every_conversion() {
    let disk = disk::Disk::default();
    let store = store_on(&disk);
    let owner = store.create_account("owner@example.org", None).unwrap().id;
    let now = entry(1).time;
    let count = |month: Option<Month>| month.map(|month| month.conversions);
    assert_eq!(store.known_usage_in_month(owner, now), None);
    assert_eq!(store.usage_in_month(owner, now).unwrap().conversions, 0);
    for conversions in 1..=3 {
        store.record_usage(owner, &entry(conversions)).unwrap();
        let reads = disk.reads();
        assert_eq!(
            count(store.known_usage_in_month(owner, now)),
            Some(conversions)
        );
        assert_eq!(
            store.usage_in_month(owner, now).unwrap().conversions,
            conversions
        );
        assert_eq!(disk.reads(), reads, "the disk was asked");
    }
    disk.break_after(0);
    assert!(store.record_usage(owner, &entry(4)).is_err());
    disk.mend();
    assert_eq!(store.known_usage_in_month(owner, now), None);
    let recorded = store.usage_totals(owner).unwrap().conversions;
    assert_eq!(
        store.usage_in_month(owner, now).unwrap().conversions,
        recorded
    );
}

#[test]
fn a_token_names_its_account_until_it_is_rotated() {
    let folder = Folder::new();
    let store = folder.store();
    let account = store.create_account("Owner@Example.org ", None).unwrap();
    assert_eq!(account.email, "owner@example.org");
    let old = store.token(&account);
    assert_eq!(store.authenticate(&old).unwrap(), account.id);

    let rotated = store.rotate_token(account.id).unwrap().unwrap();
    assert_eq!(rotated.token_generation, 1);
    assert!(
        matches!(store.authenticate(&old), Err(TokenError::Invalid)),
        "the old token is still accepted"
    );
    assert_eq!(
        store.authenticate(&store.token(&rotated)).unwrap(),
        rotated.id
    );
}

#[test]
fn a_second_opening_is_refused_while_the_first_lasts() {
    let folder = Folder::new();
    let store = folder.store();
    match Store::open(&folder.settings()) {
        Err(OpenError::InUse(path)) => assert_eq!(path, database_path(&folder.settings().data)),
        Err(other) => panic!("refused, but by {other:?}"),
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
    let token = store.token(&account);
    drop(store);

    let thief = Settings {
        data: folder.path().join("stolen"),
        secret_file: None,
        allow_shared_data: false,
    };
    super::folder::create_private(&thief.data).unwrap();
    fs::copy(
        database_path(&folder.settings().data),
        database_path(&thief.data),
    )
    .unwrap();
    fs::write(thief.data.join("secret"), "5".repeat(64)).unwrap();
    let stolen = Store::open(&thief).unwrap();
    let forged = stolen.token(
        &stolen
            .account_by_email("owner@example.org")
            .unwrap()
            .unwrap(),
    );
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
    assert_eq!(store.authenticate(&token).unwrap(), account.id);
}

#[test]
fn an_account_made_after_a_backup_was_put_back_does_not_open_to_older_tokens() {
    let folder = Folder::new();
    let store = folder.store();
    drop(store);
    let path = database_path(&folder.settings().data);
    let backup = fs::read(&path).unwrap();
    let store = folder.store();
    let old = store.token(&store.create_account("before@example.org", None).unwrap());
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
    let page = store.usage(id, None, 1000).unwrap();
    let sequences: Vec<u64> = page.entries.iter().map(|(sequence, _)| *sequence).collect();
    assert_eq!(
        sequences,
        (1..=count).rev().collect::<Vec<_>>(),
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
    let first = store.usage(id, None, 2).unwrap();
    assert_eq!(first.entries, [(5, entry(5)), (4, entry(4))]);
    assert_eq!(first.next_before, Some(4));
    let second = store.usage(id, first.next_before, 2).unwrap();
    assert_eq!(second.entries, [(3, entry(3)), (2, entry(2))]);
    let third = store.usage(id, second.next_before, 2).unwrap();
    assert_eq!(third.entries, [(1, entry(1))]);
    assert_eq!(third.next_before, None);
    assert_eq!(
        store.usage(id, Some(4), 3).unwrap().next_before,
        None,
        "the page ended with the first entry"
    );
    assert!(store.usage(id, Some(0), 2).unwrap().entries.is_empty());
    assert!(
        store
            .usage(AccountId(id.0 + 1), None, 2)
            .unwrap()
            .entries
            .is_empty(),
        "another's history is shown"
    );
}

#[test]
fn deleting_an_account_takes_its_sessions_history_and_token_and_nobody_elses() {
    let folder = Folder::new();
    let store = folder.store();
    let owner = store.create_account("owner@example.org", None).unwrap();
    let other = store.create_account("other@example.org", None).unwrap();
    let cookies = [owner.id, other.id].map(|id| store.start_session(id).unwrap());
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
        "the session lives on"
    );
    assert!(matches!(
        store.authenticate(&store.token(&owner)),
        Err(TokenError::Invalid)
    ));
    assert_eq!(
        store.usage_totals(owner.id).unwrap(),
        UsageTotals::default()
    );
    assert!(store.usage(owner.id, None, 10).unwrap().entries.is_empty());
    assert!(
        store.record_usage(owner.id, &entry(2)).is_err(),
        "a deleted account has a history again"
    );
    assert!(store.start_session(owner.id).is_err());
    assert!(store.rotate_token(owner.id).unwrap().is_none());

    assert!(store.session(&cookies[1]).unwrap().is_some());
    assert_eq!(store.usage_totals(other.id).unwrap().conversions, 1);

    let again = store.create_account("owner@example.org", None).unwrap();
    assert!(again.id > other.id, "the number was given again");
    assert!(matches!(
        store.authenticate(&store.token(&owner)),
        Err(TokenError::Invalid)
    ));
}

#[test]
fn a_session_lasts_until_it_is_ended() {
    let folder = Folder::new();
    let store = folder.store();
    let account = store.create_account("owner@example.org", None).unwrap();
    let cookie = store.start_session(account.id).unwrap();
    let another = store.start_session(account.id).unwrap();
    let session = store.session(&cookie).unwrap().unwrap();
    assert_eq!(session.account, account);
    assert!(session.csrf_matches(&session.csrf.clone()));
    assert!(!session.csrf_matches(""));
    assert!(
        !session.csrf_matches(&store.session(&another).unwrap().unwrap().csrf),
        "csrf serves another session"
    );
    drop(store);

    let store = folder.store();
    assert_eq!(
        store.session(&cookie).unwrap().unwrap().csrf,
        session.csrf,
        "a restart changed csrf"
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
        "the cookie lies in the database"
    );
}

#[test]
fn sign_in_tells_right_from_wrong_and_nothing_else() {
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
        let refused = store.sign_in(email, password);
        assert!(
            matches!(refused, Err(SignInError::Wrong)),
            "{email} with {password:?}: {refused:?}"
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
        let refused = store.sign_in(email, "correct horse");
        assert!(
            matches!(refused, Err(SignInError::TooMany { retry_after: 1 })),
            "{email}: {refused:?}"
        );
    }
    std::thread::sleep(Duration::from_millis(1100));
    assert!(store.sign_in("owner@example.org", "correct horse").is_ok());
    assert!(
        matches!(
            store.sign_in("owner@example.org", "wrong horse"),
            Err(SignInError::Wrong)
        ),
        "not reset"
    );
}

#[test]
fn the_operator_gives_a_password_to_an_account_that_has_none_or_another() {
    let folder = Folder::new();
    let store = folder.store();
    let owner = store.create_account("owner@example.org", None).unwrap();
    let other = store
        .create_account("other@example.org", Some("battery staple"))
        .unwrap();
    let token = store.token(&owner);
    let [session, others] = [owner.id, other.id].map(|id| store.start_session(id).unwrap());
    for _ in 0..5 {
        assert!(store.sign_in("owner@example.org", "wrong horse").is_err());
    }

    for password in ["correct horse", "another horse"] {
        let changed = store.set_password(owner.id, password).unwrap();
        assert!(changed.has_password);
        assert_eq!(
            store.sign_in("owner@example.org", password).unwrap(),
            changed,
            "whoever has been given a password need not wait"
        );
    }
    assert!(matches!(
        store.sign_in("owner@example.org", "correct horse"),
        Err(SignInError::Wrong)
    ));
    assert!(
        store.session(&session).unwrap().is_none(),
        "a session of before goes on"
    );
    assert!(
        store.session(&others).unwrap().is_some(),
        "another account's session has ended"
    );
    assert!(store.authenticate(&token).is_ok(), "the token is another");

    let short = store.set_password(owner.id, "short");
    assert!(
        matches!(&short, Err(SetPasswordError::Password(reason)) if reason.contains("5 characters")),
        "{short:?}"
    );
    let nobody = store.set_password(AccountId(other.id.0 + 1), "correct horse");
    assert!(
        matches!(nobody, Err(SetPasswordError::NoAccount)),
        "{nobody:?}"
    );
    drop(store);
    assert!(
        folder
            .store()
            .sign_in("owner@example.org", "another horse")
            .is_ok(),
        "it is forgotten with the process"
    );
}

/// Failed attempts, until the next must wait for minutes.
fn exhaust(store: &Store, email: &str, origin: Origin) {
    let (email, mut now) = (Email::parse(email).unwrap(), Instant::now());
    for _ in 0..20 {
        if let Err(wait) = store.attempts.begin(&email, origin, now) {
            now += Duration::from_secs(wait.seconds);
        }
    }
}

#[test]
fn strangers_who_guess_do_not_make_a_browser_wait_that_has_signed_in_before() {
    const EMAIL: &str = "owner@example.org";
    let folder = Folder::new();
    let store = folder.store();
    let owner = store.create_account(EMAIL, Some("correct horse")).unwrap();
    let other = store
        .create_account("other@example.org", Some("battery staple"))
        .unwrap();
    let machine = store.create_account("machine@example.org", None).unwrap();
    assert_eq!(store.device_cookie(machine.id).unwrap(), None);
    let cookie = |id| store.device_cookie(id).unwrap().unwrap();
    let (own, stolen, others) = (cookie(owner.id), cookie(owner.id), cookie(other.id));
    let has_to_wait = |device: Option<&str>| match store.sign_in_from(device, EMAIL, "wrong") {
        Err(SignInError::TooMany { .. }) => true,
        Err(SignInError::Wrong) => false,
        other => panic!("{other:?}"),
    };

    exhaust(&store, EMAIL, Origin::Stranger);
    for stranger in [None, Some("x"), Some(others.as_str())] {
        assert!(has_to_wait(stranger), "{stranger:?}");
    }
    let signed_in = store.sign_in_from(Some(&own), EMAIL, "correct horse");
    assert_eq!(signed_in.unwrap(), owner);
    assert!(has_to_wait(None), "the owner's success helps strangers");

    let record = store
        .database
        .read(|read| accounts::by_id(read, owner.id))
        .unwrap();
    let hash = record.unwrap().password_hash.unwrap();
    let device = device::verify(&stolen, &store.secret, owner.id, &hash).unwrap();
    exhaust(&store, EMAIL, Origin::Device(device));
    assert!(has_to_wait(Some(&stolen)), "a thief may guess on");
    assert!(!has_to_wait(Some(&own)), "a thief stops the owner");

    store.set_password(owner.id, "another horse").unwrap();
    assert!(!has_to_wait(None), "the operator's word counts");
    exhaust(&store, EMAIL, Origin::Stranger);
    assert!(has_to_wait(Some(&own)), "it outlives the password");
    let own = cookie(owner.id);
    assert!(!has_to_wait(Some(&own)));
    drop(store);
    let store = folder.store();
    exhaust(&store, EMAIL, Origin::Stranger);
    assert!(
        store
            .sign_in_from(Some(&own), EMAIL, "another horse")
            .is_ok(),
        "a restart forgets the browsers"
    );
}

#[test]
fn the_owner_changes_the_password_and_stays_signed_in_here_alone() {
    const EMAIL: &str = "owner@example.org";
    let folder = Folder::new();
    let store = folder.store();
    let owner = store.create_account(EMAIL, Some("correct horse")).unwrap();
    let token = store.token(&owner);
    let [here, elsewhere] = [(); 2].map(|()| store.start_session(owner.id).unwrap());
    exhaust(&store, EMAIL, Origin::Stranger);
    let short = store.change_password(&here, "correct horse", "short");
    assert!(
        matches!(&short, Err(OwnerError::NewPassword(reason)) if reason.contains("5 characters")),
        "{short:?}"
    );
    let wrong = store.change_password(&here, "wrong horse", "another horse");
    assert!(matches!(wrong, Err(OwnerError::Wrong)), "{wrong:?}");
    let nobody = Cookie::random().unwrap();
    let unknown = store.change_password(nobody.text(), "correct horse", "another horse");
    assert!(matches!(unknown, Err(OwnerError::SignedOut)), "{unknown:?}");
    assert!(store.session(&elsewhere).unwrap().is_some());

    store
        .change_password(&here, "correct horse", "another horse")
        .expect("strangers who guess do not stop the owner");
    assert!(store.session(&here).unwrap().is_some());
    assert!(store.session(&elsewhere).unwrap().is_none());
    assert!(store.authenticate(&token).is_ok(), "the token is another");
    let wrong = store.change_password(&here, "correct horse", "third horse");
    assert!(matches!(wrong, Err(OwnerError::Wrong)), "{wrong:?}");

    let session = Cookie::parse(&here).unwrap().hash();
    exhaust(&store, EMAIL, Origin::Session(session));
    for outcome in [
        store
            .change_password(&here, "another horse", "third horse")
            .map(drop),
        store.delete_own_account(&here, "another horse"),
    ] {
        assert!(
            matches!(outcome, Err(OwnerError::TooMany { .. })),
            "a thief of the session may guess on: {outcome:?}"
        );
    }
}

#[test]
fn the_owner_deletes_the_account_with_all_that_it_has() {
    let folder = Folder::new();
    let store = folder.store();
    let owner = store
        .create_account("owner@example.org", Some("correct horse"))
        .unwrap();
    let session = store.start_session(owner.id).unwrap();
    store.record_usage(owner.id, &entry(1)).unwrap();
    let wrong = store.delete_own_account(&session, "wrong horse");
    assert!(matches!(wrong, Err(OwnerError::Wrong)), "{wrong:?}");
    assert_eq!(store.accounts().unwrap().len(), 1);
    store.delete_own_account(&session, "correct horse").unwrap();
    assert!(store.accounts().unwrap().is_empty());
    assert!(store.session(&session).unwrap().is_none());
    assert!(store.authenticate(&store.token(&owner)).is_err());
    assert_eq!(store.usage_totals(owner.id).unwrap().conversions, 0);
    let gone = store.delete_own_account(&session, "correct horse");
    assert!(matches!(gone, Err(OwnerError::SignedOut)), "{gone:?}");
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
    let guest =
        join("guest@example.org", &format!(" {code}\n")).expect("a failure uses nothing up");
    assert!(guest.has_password);
    let other = Code::random().unwrap().into_text();
    for code in [code.as_str(), &other, "", "guess"] {
        for email in ["second@example.org", "owner@example.org"] {
            let refused = join(email, code);
            assert!(
                matches!(refused, Err(CreateAccountError::Invite)),
                "{email} by {code:?}: {refused:?}"
            );
        }
    }
    let stored = fs::read(database_path(&folder.settings().data)).unwrap();
    assert!(
        !stored.windows(43).any(|bytes| bytes == code.as_bytes()),
        "the code lies in the database"
    );
}

#[test]
fn of_two_who_use_an_invitation_at_once_one_gets_in() {
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
fn invitations_expire_after_fourteen_days() {
    const DAY: u64 = 24 * 60 * 60 * 1000;
    let folder = Folder::new();
    let store = folder.store();
    let now = clock::to_milliseconds(SystemTime::now());
    for (days, good) in [(15, false), (13, true)] {
        let code = Code::random().unwrap();
        let command = Command::Invite {
            code: code.hash(),
            now: now - days * DAY,
        };
        assert!(store.writer.write(command).unwrap().changed());
        let email = format!("{days}@example.org");
        let joined = store.create_invited_account(&email, "correct horse", &code.into_text());
        assert_eq!(joined.is_ok(), good, "after {days} days: {joined:?}");
    }
}

#[test]
fn a_reopened_store_has_all() {
    let folder = Folder::new();
    let store = folder.store();
    let owner = store
        .create_account("owner@example.org", Some("correct horse"))
        .unwrap();
    let rotated = store.rotate_token(owner.id).unwrap().unwrap();
    let token = store.token(&rotated);
    let cookie = store.start_session(owner.id).unwrap();
    store.record_usage(owner.id, &entry(1)).unwrap();
    drop(store);

    let store = folder.store();
    assert_eq!(store.accounts().unwrap(), std::slice::from_ref(&rotated));
    assert_eq!(store.authenticate(&token).unwrap(), rotated.id);
    assert_eq!(store.session(&cookie).unwrap().unwrap().account, rotated);
    assert_eq!(
        store.usage(owner.id, None, 10).unwrap().entries,
        [(1, entry(1))]
    );
    assert_eq!(
        store.sign_in("owner@example.org", "correct horse").unwrap(),
        rotated
    );
}

#[test]
fn another_secret_is_noticed_once() {
    let folder = Folder::new();
    let exchanged = |file: &str| {
        let secret = Secret::open(&folder.path().join(file), false).unwrap();
        folder.store().database.exchange_secret(&secret).unwrap()
    };
    drop(folder.store());
    assert!(!exchanged("data/secret"), "the same secret");
    assert!(exchanged("another"));
    // Opening the store in between used the first one again.
    assert!(exchanged("another"));
    let database = folder.store().database.clone();
    let first = Secret::open(&folder.path().join("data/secret"), true).unwrap();
    assert!(!database.exchange_secret(&first).unwrap());
}

#[test]
fn the_data_folder_is_its_owners_alone() {
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
fn a_secret_file_may_lie_elsewhere() {
    let folder = Folder::new();
    let settings = Settings {
        secret_file: Some(folder.path().join("elsewhere")),
        ..folder.settings()
    };
    let store = Store::open(&settings).unwrap();
    let token = store.token(&store.create_account("owner@example.org", None).unwrap());
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
    let count = |id, now: &str| store.usage_in_month(id, time(now)).unwrap().conversions;
    assert_eq!(count(account.id, "2026-11-30T23:59:59Z"), 2);
    assert_eq!(count(account.id, "2026-12-01T00:00:00Z"), 0);
    assert_eq!(count(other.id, "2026-11-30T23:59:59Z"), 0);
    let month = store
        .usage_in_month(account.id, time("2026-11-21T08:00:00Z"))
        .unwrap();
    assert_eq!(
        (month.start, month.end),
        (time("2026-11-01T00:00:00Z"), time("2026-12-01T00:00:00Z"))
    );
}

pub(crate) fn entry(i: u64) -> UsageEntry {
    UsageEntry {
        time: UNIX_EPOCH + Duration::from_millis(1_795_000_000_000 + i),
        format: "jpeg".into(),
        input_bytes: 1000 + i,
        output_bytes: i,
        width: 640,
        height: 480,
        quality: 85,
        watermark: WatermarkKind::Text,
        milliseconds: 12,
    }
}
