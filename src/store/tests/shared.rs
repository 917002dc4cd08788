//! Two stores on one engine, as two servers have them.

use super::shared_engine::SharedEngine;
use super::*;
use crate::store::known::VALIDITY;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::atomic::Ordering;
use std::thread;

/// The secret of all servers.
pub(crate) const SECRET: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// The engine, and two stores on it.
pub(crate) fn two() -> (Arc<SharedEngine>, Store, Store) {
    let engine = Arc::new(SharedEngine::default());
    let [first, second] = [(), ()].map(|()| store_of(&engine, SECRET, SystemTime::now).unwrap());
    (engine, first, second)
}

/// A store on this engine, with the time of this clock.
pub(crate) fn store_of(
    engine: &Arc<SharedEngine>,
    secret: &str,
    time: impl Fn() -> SystemTime + Send + Sync + 'static,
) -> Result<Store, OpenError> {
    let engine = Arc::clone(engine) as Arc<dyn Engine>;
    let secret = Secret::parse(secret).unwrap();
    Store::start_shared(engine, secret, Clock::new(time), None)
}

/// What memory tells: `Ok` with whether the token is good, or `Err` if the engine has to be asked.
fn known(store: &Store, token: &str) -> Result<bool, ()> {
    match store.check_token(token) {
        TokenCheck::Valid(_) => Ok(true),
        TokenCheck::Invalid | TokenCheck::Ended => Ok(false),
        TokenCheck::Unknown { .. } => Err(()),
    }
}

#[test]
fn a_token_is_known_for_a_second_and_then_asked_for_again() {
    let (engine, first, second) = two();
    let owner = first.create_account("owner@example.org", None).unwrap();
    let token = first.token(owner.id).unwrap();
    assert_eq!(
        known(&second, &token),
        Err(()),
        "nothing is read at the start"
    );
    assert_eq!(second.authenticate(&token).unwrap().account, owner.id);
    assert_eq!(known(&second, &token), Ok(true));
    let asked = engine.asked.load(Ordering::SeqCst);
    for _ in 0..9 {
        second.authenticate(&token).unwrap();
    }
    assert_eq!(engine.asked.load(Ordering::SeqCst), asked);
    thread::sleep(VALIDITY);
    let TokenCheck::Unknown {
        account,
        last_known: Some(caller),
    } = second.check_token(&token)
    else {
        panic!("it is known for more than a second");
    };
    assert_eq!((account, caller.account), (owner.id, owner.id));
    second.authenticate(&token).unwrap();
    assert_eq!(engine.asked.load(Ordering::SeqCst), asked + 1);
    // That there is no such account is good for a second, too.
    let absent = token_text(&second, AccountId(owner.id.0 + 1), 0);
    assert!(second.authenticate(&absent).is_err());
    assert_eq!(known(&second, &absent), Ok(false));
    thread::sleep(VALIDITY);
    assert_eq!(known(&second, &absent), Err(()));
    assert_eq!(known(&second, "twp_forged"), Ok(false));
}

#[test]
fn what_is_changed_at_one_is_in_force_at_the_other_when_it_is_told() {
    let (_, first, second) = two();
    let owner = first.create_account("owner@example.org", None).unwrap();
    let default = TokenNumber::DEFAULT;
    let old = first.token(owner.id).unwrap();
    // The other one learns it again and again, as under load, to the last moment.
    let rotate = || first.rotate_token(owner.id, default, Duration::ZERO);
    let rotated = while_asking(&first, &second, &old, rotate)
        .unwrap()
        .unwrap();
    assert_ne!(known(&second, &old), Ok(true));
    assert!(matches!(
        second.authenticate(&old),
        Err(TokenError::Invalid)
    ));
    let new = first.token_text(owner.id, &rotated);
    assert!(second.authenticate(&new).is_ok());
    // A new token is not refused by one that has just learned the others.
    let settings = TokenSettings {
        name: "shop".to_owned(),
        ..TokenSettings::of_default()
    };
    let create = || first.create_token(owner.id, settings);
    let made = while_asking(&first, &second, &new, create).unwrap();
    let shop = first.token_text(owner.id, &made);
    assert!(second.authenticate(&shop).is_ok());
    let disabled = Restrictions {
        disabled: Some(SystemTime::now()),
        ..Restrictions::default()
    };
    let disable = || first.restrict(owner.id, disabled);
    while_asking(&first, &second, &new, disable).unwrap();
    let caller = second.authenticate(&new).unwrap();
    assert!(caller.restrictions().disabled.is_some());
    let delete = || first.delete_token(owner.id, made.number);
    while_asking(&first, &second, &shop, delete).unwrap();
    assert!(second.authenticate(&shop).is_err());
    let delete = || first.delete_account(owner.id);
    assert!(while_asking(&first, &second, &new, delete).unwrap());
    assert!(second.authenticate(&new).is_err());
    // What changes nothing is in force.
    let before = first.in_force_at();
    assert!(!first.delete_account(owner.id).unwrap());
    assert_eq!(first.in_force_at(), before);
    assert!(before.is_some_and(|at| at <= Instant::now()));
    assert_eq!(second.in_force_at(), None);
}

/// Changes something at one store, until it is in force, while other threads ask another store for
/// a token all the time. The change itself does not wait.
fn while_asking<T>(changed: &Store, asked: &Store, token: &str, change: impl FnOnce() -> T) -> T {
    let is_over = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                let _ = asked.authenticate(token);
                thread::sleep(Duration::from_millis(1));
            }
        });
        let begun = Instant::now();
        let done = change();
        let left = changed.in_force_at().map(|at| at - begun);
        assert!(left >= Some(IN_FORCE_AFTER), "{left:?}");
        assert!(begun.elapsed() < IN_FORCE_AFTER / 2, "the change waited");
        changed.wait_until_in_force();
        is_over.store(true, Ordering::SeqCst);
        done
    })
}

#[test]
fn sessions_and_invitations_are_the_same_for_both() {
    let (_, first, second) = two();
    let code = first.invite().unwrap();
    let made = second.create_invited_account("owner@example.org", "correct horse", &code);
    let owner = made.unwrap().id;
    let again = first.create_invited_account("other@example.org", "correct horse", &code);
    assert!(matches!(again, Err(CreateAccountError::Invite)));
    let cookie = second.start_session(owner, &Browser::default()).unwrap();
    assert!(first.session(&cookie).unwrap().is_some());
    second.end_session(&cookie).unwrap();
    assert!(first.session(&cookie).unwrap().is_none());
}

#[test]
fn wrong_passwords_are_counted_together() {
    let (_, first, second) = two();
    first
        .create_account("owner@example.org", Some("correct horse"))
        .unwrap();
    for store in [&first, &second, &first, &second, &first] {
        let refused = store.sign_in("owner@example.org", "wrong password");
        assert!(matches!(refused, Err(SignInError::Wrong)));
    }
    for store in [&first, &second] {
        let refused = store.sign_in("owner@example.org", "correct horse");
        assert!(matches!(refused, Err(SignInError::TooMany(_))));
    }
    let owner = first
        .account_by_email("owner@example.org")
        .unwrap()
        .unwrap();
    first.set_password(owner.id, "battery staple").unwrap();
    second
        .sign_in("owner@example.org", "battery staple")
        .unwrap();
}

#[test]
fn a_quota_is_exact_over_both() {
    let (_, first, second) = two();
    let owner = first.create_account("owner@example.org", None).unwrap().id;
    let quotas = MonthlyQuotas {
        account: NonZeroU64::new(100),
        token: None,
    };
    let record = |store: &Store| {
        let recorded = (0..40).map(|_| store.record_usage_within(owner, &entry(1), quotas));
        recorded.flatten().count()
    };
    let recorded: usize = thread::scope(|scope| {
        let threads: Vec<_> = [&first, &second, &first, &second]
            .map(|store| scope.spawn(move || record(store)))
            .into();
        threads.into_iter().map(|it| it.join().unwrap()).sum()
    });
    assert_eq!(recorded, 100);
    let refused = second.record_usage_within(owner, &entry(1), quotas);
    assert!(matches!(
        refused,
        Err(RecordError::QuotaExceeded { of_token: false })
    ));
    // Memory knows it, for a second.
    let month = second.known_usage_in_month(owner, None, entry(1).time);
    assert_eq!(month.unwrap().conversions, 100);
    thread::sleep(VALIDITY);
    assert_eq!(
        second.known_usage_in_month(owner, None, entry(1).time),
        None
    );
    assert_eq!(second.usage_totals(owner).unwrap().conversions, 100);
}

#[test]
fn an_engine_that_is_away_is_found_by_a_question_and_found_again_by_a_probe() {
    let (engine, first, _) = two();
    let owner = first.create_account("owner@example.org", None).unwrap().id;
    first.check_available().unwrap();
    first.check_writable().unwrap();
    engine.is_away.store(true, Ordering::SeqCst);
    let asked = first.usage_totals(owner);
    assert!(matches!(asked, Err(StoreError::Unavailable(_))));
    assert!(first.check_available().is_err());
    assert!(first.check_writable().is_err());
    let recorded = first.record_usage(owner, &entry(1));
    assert!(matches!(recorded, Err(StoreError::Unavailable(_))));
    thread::sleep(Duration::from_secs(2));
    assert!(first.check_available().is_err());

    engine.is_away.store(false, Ordering::SeqCst);
    let deadline = Instant::now() + Duration::from_secs(30);
    while first.check_available().is_err() {
        assert!(Instant::now() < deadline, "no probe was made");
        thread::sleep(Duration::from_millis(20));
    }
    first.record_usage(owner, &entry(1)).unwrap();
}

#[test]
fn a_store_that_was_opened_while_all_is_well_finds_an_outage_by_its_probe_for_readiness() {
    let (engine, first, _) = two();
    engine.is_away.store(true, Ordering::SeqCst);
    assert!(matches!(
        first.check_writable(),
        Err(StoreError::Unavailable(_))
    ));
    assert!(first.check_available().is_err());
    engine.is_away.store(false, Ordering::SeqCst);
}

#[test]
fn the_time_is_the_engine_s() {
    let (engine, first, second) = two();
    let day = Duration::from_hours(24);
    engine
        .clock_offset
        .store(day.as_millis() as i64, Ordering::SeqCst);
    let ahead = first.now().duration_since(SystemTime::now()).unwrap();
    assert!(
        ahead + Duration::from_mins(1) > day && ahead <= day,
        "{ahead:?}"
    );
    let account = first.create_account("owner@example.org", None).unwrap();
    assert!(account.created > SystemTime::now() + day / 2);
    engine
        .clock_offset
        .store(-(day.as_millis() as i64), Ordering::SeqCst);
    assert!(second.now() < SystemTime::now() - day / 2);
}

#[test]
fn another_secret_is_refused_and_changes_nothing() {
    let (engine, first, _) = two();
    let other = SECRET.replace('0', "f");
    for _ in 0..2 {
        let Err(OpenError::Failed(sentence)) = store_of(&engine, &other, SystemTime::now) else {
            panic!("another secret was accepted");
        };
        assert!(sentence.contains("--secret-file"), "{sentence}");
    }
    drop(first);
    store_of(&engine, SECRET, SystemTime::now).unwrap();
}

#[test]
fn one_server_has_a_data_folder_without_a_database() {
    let folder = Folder::new();
    let settings = folder.settings();
    let lock = lock_folder(&settings).unwrap();
    assert!(matches!(lock_folder(&settings), Err(OpenError::InUse(_))));
    drop(lock);
    drop(lock_folder(&settings).unwrap());
    let names = fs::read_dir(&settings.data).unwrap();
    let names: Vec<_> = names.map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names, ["lock"]);
}

#[cfg(feature = "postgres")]
#[test]
fn a_shared_store_takes_a_secret_and_makes_none() {
    let folder = Folder::new();
    let postgres = PostgresSettings::default()
        .at("postgres://towebp@127.0.0.1:1/towebp")
        .unwrap();
    let settings = |secret_file: Option<PathBuf>| Settings {
        secret_file,
        postgres: Some(postgres.clone()),
        ..folder.settings()
    };
    let file = folder.path().join("secret");
    for (settings, said) in [
        (settings(None), "towebp secret >FILE"),
        (settings(Some(file.clone())), "is missing"),
    ] {
        let Err(OpenError::Failed(sentence)) = Store::open(&settings) else {
            panic!("there is no secret");
        };
        assert!(sentence.contains(said), "{sentence}");
    }
    assert!(!file.exists() && !folder.settings().data.exists());
}

#[test]
fn the_number_of_servers_is_the_engine_s() {
    let (engine, first, _) = two();
    assert_eq!(first.replicas(), NonZeroU32::MIN);
    engine.replicas.store(3, Ordering::SeqCst);
    assert_eq!(first.replicas().get(), 3);
}
