//! Passwords: who may change them, and who has to wait after wrong ones.

use super::*;
use crate::auth::Origin;

#[test]
fn the_operator_sets_and_replaces_passwords() {
    let folder = Folder::new();
    let store = folder.store();
    let owner = store.create_account("owner@example.org", None).unwrap();
    let other = store
        .create_account("other@example.org", Some("battery staple"))
        .unwrap();
    let token = store.token(owner.id).unwrap();
    let [session, others] =
        [owner.id, other.id].map(|id| store.start_session(id, &Browser::default()).unwrap());
    for _ in 0..5 {
        assert!(store.sign_in("owner@example.org", "wrong horse").is_err());
    }

    for password in ["correct horse", "another horse"] {
        let changed = store.set_password(owner.id, password).unwrap();
        assert!(changed.has_password);
        assert_eq!(
            store.sign_in("owner@example.org", password).unwrap(),
            changed,
            "there is still a wait after the operator set the password"
        );
    }
    assert!(matches!(
        store.sign_in("owner@example.org", "correct horse"),
        Err(SignInError::Wrong)
    ));
    assert!(
        store.session(&session).unwrap().is_none(),
        "an earlier session goes on"
    );
    assert!(
        store.session(&others).unwrap().is_some(),
        "another account's session has ended"
    );
    assert!(store.authenticate(&token).is_ok(), "the token has changed");

    let short = store.set_password(owner.id, "short");
    assert!(
        matches!(&short, Err(OwnerError::NewPassword(text)) if text.contains("5 characters")),
        "{short:?}"
    );
    let nobody = store.set_password(AccountId(other.id.0 + 1), "correct horse");
    assert!(matches!(nobody, Err(OwnerError::NoAccount)), "{nobody:?}");
    drop(store);
    assert!(
        folder
            .store()
            .sign_in("owner@example.org", "another horse")
            .is_ok(),
        "the password was not stored"
    );
}

/// Makes failed attempts until the next one must wait for minutes.
fn exhaust(store: &Store, email: &str, origin: Origin) {
    let (email, mut now) = (Email::parse(email).unwrap(), Instant::now());
    for _ in 0..20 {
        if let Err(wait) = store.throttle.begin(&email, origin, now) {
            now += Duration::from_secs(wait.seconds);
        }
    }
}

#[test]
fn guesses_from_unknown_browsers_do_not_make_a_known_one_wait() {
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
        Err(SignInError::TooMany(_)) => true,
        Err(SignInError::Wrong) => false,
        other => panic!("{other:?}"),
    };

    exhaust(&store, EMAIL, Origin::Unknown);
    for unknown in [None, Some("x"), Some(others.as_str())] {
        assert!(has_to_wait(unknown), "{unknown:?}");
    }
    let signed_in = store.sign_in_from(Some(&own), EMAIL, "correct horse");
    assert!(matches!(signed_in.unwrap(), SignIn::Done(account) if account == owner));
    assert!(
        has_to_wait(None),
        "the owner's success cleared the count of unknown browsers"
    );

    let record = store.engine.account(owner.id).unwrap();
    let hash = record.unwrap().password.unwrap();
    let device = auth::verify_device_cookie(&stolen, &store.secret, owner.id, &hash).unwrap();
    exhaust(&store, EMAIL, Origin::Device(device));
    assert!(has_to_wait(Some(&stolen)), "a thief may guess on");
    assert!(!has_to_wait(Some(&own)), "a thief stops the owner");

    store.set_password(owner.id, "another horse").unwrap();
    assert!(
        !has_to_wait(None),
        "there is still a wait after the operator set the password"
    );
    exhaust(&store, EMAIL, Origin::Unknown);
    assert!(
        has_to_wait(Some(&own)),
        "the device cookie outlived the password"
    );
    let own = cookie(owner.id);
    assert!(!has_to_wait(Some(&own)));
    drop(store);
    let store = folder.store();
    exhaust(&store, EMAIL, Origin::Unknown);
    assert!(
        store
            .sign_in_from(Some(&own), EMAIL, "another horse")
            .is_ok(),
        "a restart invalidated the device cookie"
    );
}

#[test]
fn the_owner_changes_the_password_and_keeps_only_this_session() {
    const EMAIL: &str = "owner@example.org";
    let folder = Folder::new();
    let store = folder.store();
    let owner = store.create_account(EMAIL, Some("correct horse")).unwrap();
    let token = store.token(owner.id).unwrap();
    let [here, elsewhere] =
        [(); 2].map(|()| store.start_session(owner.id, &Browser::default()).unwrap());
    exhaust(&store, EMAIL, Origin::Unknown);
    let short = store.change_password(&here, "correct horse", "short");
    assert!(
        matches!(&short, Err(OwnerError::NewPassword(reason)) if reason.contains("5 characters")),
        "{short:?}"
    );
    let wrong = store.change_password(&here, "wrong horse", "another horse");
    assert!(matches!(wrong, Err(OwnerError::Wrong)), "{wrong:?}");
    let nobody = Code::random().unwrap();
    let unknown = store.change_password(nobody.as_str(), "correct horse", "another horse");
    assert!(matches!(unknown, Err(OwnerError::SignedOut)), "{unknown:?}");
    assert!(store.session(&elsewhere).unwrap().is_some());

    store
        .change_password(&here, "correct horse", "another horse")
        .expect("guesses from unknown browsers do not stop the owner");
    assert!(store.session(&here).unwrap().is_some());
    assert!(store.session(&elsewhere).unwrap().is_none());
    assert!(store.authenticate(&token).is_ok(), "the token has changed");
    let wrong = store.change_password(&here, "correct horse", "third horse");
    assert!(matches!(wrong, Err(OwnerError::Wrong)), "{wrong:?}");

    let session = Code::parse(&here).unwrap().hash();
    exhaust(&store, EMAIL, Origin::Session(session));
    for outcome in [
        store
            .change_password(&here, "another horse", "third horse")
            .map(drop),
        store.delete_own_account(&here, "another horse"),
    ] {
        assert!(
            matches!(outcome, Err(OwnerError::TooMany(_))),
            "a thief of the session may guess on: {outcome:?}"
        );
    }
}

#[test]
fn the_owner_deletes_the_account_with_everything_in_it() {
    let folder = Folder::new();
    let store = folder.store();
    let owner = store
        .create_account("owner@example.org", Some("correct horse"))
        .unwrap();
    let session = store.start_session(owner.id, &Browser::default()).unwrap();
    store.record_usage(owner.id, &entry(1)).unwrap();
    let wrong = store.delete_own_account(&session, "wrong horse");
    assert!(matches!(wrong, Err(OwnerError::Wrong)), "{wrong:?}");
    assert_eq!(store.accounts().unwrap().len(), 1);
    store.delete_own_account(&session, "correct horse").unwrap();
    assert!(store.accounts().unwrap().is_empty());
    assert!(store.session(&session).unwrap().is_none());
    assert!(
        store
            .authenticate(&token_text(&store, owner.id, 0))
            .is_err()
    );
    assert_eq!(store.usage_totals(owner.id).unwrap().conversions, 0);
    let gone = store.delete_own_account(&session, "correct horse");
    assert!(matches!(gone, Err(OwnerError::SignedOut)), "{gone:?}");
}

#[test]
fn the_owner_changes_the_address_and_everything_else_stays() {
    const EMAIL: &str = "owner@example.org";
    const NEW: &str = "new@example.org";
    const PASSWORD: &str = "correct horse";
    let folder = Folder::new();
    let store = folder.store();
    let owner = store.create_account(EMAIL, Some(PASSWORD)).unwrap();
    let machine = store.create_account("machine@example.org", None).unwrap();
    let token = store.token(owner.id).unwrap();
    let start = |id| store.start_session(id, &Browser::default()).unwrap();
    let (here, elsewhere) = (start(owner.id), start(owner.id));
    let device = store.device_cookie(owner.id).unwrap().unwrap();
    let invalid = store.change_email(&here, PASSWORD, "example.org");
    assert!(
        matches!(&invalid, Err(OwnerError::NewEmail(reason)) if reason.contains("no @")),
        "{invalid:?}"
    );
    for taken in [NEW, "machine@example.org"] {
        let wrong = store.change_email(&here, "wrong horse", taken);
        assert!(matches!(wrong, Err(OwnerError::Wrong)), "{wrong:?}");
    }
    let taken = store.change_email(&here, PASSWORD, " Machine@example.org");
    assert!(matches!(taken, Err(OwnerError::EmailTaken)), "{taken:?}");
    let none = store.change_email(&start(machine.id), "", NEW);
    assert!(matches!(none, Err(OwnerError::Wrong)), "{none:?}");

    let changed = store
        .change_email(&here, PASSWORD, " New@Example.org")
        .unwrap();
    assert_eq!((changed.id, &*changed.email), (owner.id, NEW));
    for cookie in [&here, &elsewhere] {
        let session = store.session(cookie).unwrap().expect("it goes on");
        assert_eq!(session.account, changed);
    }
    assert_eq!(store.authenticate(&token).unwrap().account, owner.id);
    let old = store.sign_in_from(Some(&device), EMAIL, PASSWORD);
    assert!(matches!(old, Err(SignInError::Wrong)), "{old:?}");
    drop(store);
    let store = folder.store();
    let signed_in = store.sign_in_from(Some(&device), NEW, PASSWORD);
    assert!(matches!(signed_in.unwrap(), SignIn::Done(account) if account == changed));
    store.create_account(EMAIL, None).expect("it is free again");
    let findings = store.snapshot().unwrap().check().unwrap();
    assert_eq!(findings.problems, [""; 0]);

    let session = Code::parse(&here).unwrap().hash();
    exhaust(&store, NEW, Origin::Session(session));
    let refused = store.change_email(&here, PASSWORD, "third@example.org");
    assert!(
        matches!(refused, Err(OwnerError::TooMany(_))),
        "{refused:?}"
    );
}

#[test]
fn the_operator_sets_an_address() {
    let folder = Folder::new();
    let store = folder.store();
    let machine = store.create_account("machine@example.org", None).unwrap();
    let other = store.create_account("other@example.org", None).unwrap();
    let set = |id, email| store.set_email(id, email);
    assert_eq!(
        set(machine.id, "New@example.org").unwrap().email,
        "new@example.org"
    );
    assert!(matches!(
        set(other.id, "new@example.org"),
        Err(OwnerError::EmailTaken)
    ));
    assert!(matches!(set(other.id, "new"), Err(OwnerError::NewEmail(_))));
    let nobody = AccountId(other.id.0 + 1);
    assert!(matches!(
        set(nobody, "a@example.org"),
        Err(OwnerError::NoAccount)
    ));
}
