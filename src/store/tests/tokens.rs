//! Tokens with names: what their owner sets, and what is refused.

use super::disk::Disk;
use super::*;
use std::num::NonZeroU32;

fn settings(name: &str) -> TokenSettings {
    TokenSettings {
        name: name.to_owned(),
        ends: None,
        limits: Limits {
            per_minute: NonZeroU32::new(5),
            monthly: None,
        },
        preset: "quality=40\n".to_owned(),
    }
}

#[test]
fn a_caller_has_what_was_set_for_the_token_and_the_account() {
    let folder = Folder::new();
    let store = folder.store();
    let id = store.create_account("owner@example.org", None).unwrap().id;
    let token = store.create_token(id, settings(" shop ")).unwrap();
    assert_eq!(token.settings, settings("shop"), "the name is trimmed");
    let text = store.token_text(id, &token);
    let plain = store.token(id).unwrap();
    assert_ne!(text, plain);
    let restrictions = Restrictions {
        per_minute: None,
        monthly: Some(7),
        disabled: None,
    };
    assert!(store.restrict(id, restrictions).unwrap());
    drop(store);
    let store = folder.store();
    let caller = store.authenticate(&text).unwrap();
    assert_eq!((caller.account, caller.token), (id, token.number));
    assert_eq!(caller.token_name(), "shop");
    assert_eq!(caller.token_limits(), settings("shop").limits);
    assert_eq!(caller.preset(), "quality=40\n");
    assert_eq!(caller.restrictions(), restrictions);
    let caller = store.authenticate(&plain).unwrap();
    assert_eq!((caller.token_name(), caller.preset()), ("default", ""));
    assert_eq!(caller.restrictions(), restrictions);
    assert_eq!(store.restrictions(id).unwrap(), Some(restrictions));
}

#[test]
fn a_deleted_token_is_invalid_at_once_and_its_conversions_stay() {
    let disk = Disk::default();
    let store = store_on(&disk);
    let id = store.create_account("owner@example.org", None).unwrap().id;
    let token = store.create_token(id, settings("shop")).unwrap();
    let text = store.token_text(id, &token);
    let recorded = UsageEntry {
        token: token.number,
        ..entry(1)
    };
    store.record_usage(id, &recorded).unwrap();
    store.delete_token(id, token.number).unwrap();
    let reads = disk.reads();
    assert!(matches!(store.check_token(&text), TokenCheck::Invalid));
    assert_eq!(disk.reads(), reads, "the disk was read");
    let told = store.tokens(id).unwrap();
    assert_eq!(told[1].token.settings.name, "shop");
    assert_eq!(told[1].totals.conversions, 1);
    assert_eq!(told[1].last_used, Some(entry(1).time));
    assert!(told[1].deleted.is_some());
    assert_eq!(
        all_usage(&store, id, None, 9).unwrap().entries,
        [(EntryId(1), recorded)]
    );
    let again = store.delete_token(id, token.number);
    assert!(matches!(again, Err(ChangeTokenError::NoToken)));
    let again = store.create_token(id, settings("shop")).unwrap();
    assert_ne!(again.number, token.number, "it is another token");
    assert!(store.authenticate(&text).is_err());
}

#[test]
fn what_a_token_cannot_have_is_refused_and_named() {
    let folder = Folder::new();
    let store = folder.store();
    let id = store.create_account("owner@example.org", None).unwrap().id;
    let create = |settings| {
        store
            .create_token(id, settings)
            .map_err(|it| it.to_string())
    };
    let longest = "\u{e9}".repeat(MAX_NAME);
    assert!(create(settings(&longest)).is_ok());
    for (name, expected) in [
        ("", "1 to 40 characters"),
        ("   ", "1 to 40 characters"),
        (&*"x".repeat(MAX_NAME + 1), "1 to 40 characters"),
        ("a\nb", "control character"),
        ("default", "another token has this name"),
        (&longest, "another token has this name"),
    ] {
        let error = create(settings(name)).unwrap_err();
        assert!(error.contains(expected), "{name:?}: {error}");
    }
    let with_preset = |bytes| TokenSettings {
        preset: "x".repeat(bytes),
        ..settings("preset")
    };
    let error = create(with_preset(MAX_PRESET_BYTES + 1)).unwrap_err();
    assert!(error.contains("2001 bytes; allowed are 2000"), "{error}");
    assert!(create(with_preset(MAX_PRESET_BYTES)).is_ok());

    let first = TokenNumber::DEFAULT;
    let change = |settings| store.change_token(id, first, settings);
    assert!(change(settings("default")).is_ok());
    for refused in [
        change(settings("other")).map(drop),
        change(TokenSettings {
            ends: Some(entry(1).time),
            ..settings("default")
        })
        .map(drop),
        store.delete_token(id, first),
    ] {
        assert!(matches!(refused, Err(ChangeTokenError::Default)));
    }
    let missing = store.change_token(id, TokenNumber(7), settings("x"));
    assert!(matches!(missing, Err(ChangeTokenError::NoToken)));
}
