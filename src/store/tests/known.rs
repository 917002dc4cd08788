//! What memory knows about accounts while the disk is slow or fails.

use super::disk::Disk;
use super::*;

#[test]
fn memory_knows_every_change_of_a_token_before_the_caller_goes_on() {
    let disk = Disk::default();
    let store = store_on(&disk);
    let owner = store.create_account("owner@example.org", None).unwrap();
    let deleted = store.create_account("deleted@example.org", None).unwrap();
    let old = store.token(owner.id).unwrap();
    let new = rotate(&store, owner.id);
    store.delete_account(deleted.id).unwrap();

    disk.slow_down(Duration::from_secs(1));
    let reads = disk.reads();
    for (token, expected) in [
        (new, Some(owner.id)),
        (old, None),
        (token_text(&store, deleted.id, 0), None),
        (token_text(&store, AccountId(1_000_000), 0), None),
        ("twp_forged".to_owned(), None),
    ] {
        let valid = match store.check_token(&token) {
            TokenCheck::Valid(caller) => Some(caller.account),
            TokenCheck::Invalid => None,
            other => panic!("{other:?}"),
        };
        assert_eq!(valid, expected);
        let authenticated = store.authenticate(&token).ok();
        assert_eq!(authenticated.map(|caller| caller.account), expected);
    }
    assert_eq!(disk.reads(), reads, "the disk was read");
}

#[test]
fn what_a_failed_commit_leaves_in_doubt_is_read_from_the_disk_again() {
    let disk = Disk::default();
    let store = store_on(&disk);
    let owner = store.create_account("owner@example.org", None).unwrap();
    let other = store.create_account("other@example.org", None).unwrap();
    let deleted = store.create_account("deleted@example.org", None).unwrap();
    store.delete_account(deleted.id).unwrap();
    disk.break_after(0);
    let rotated = store.rotate_token(owner.id, TokenNumber::DEFAULT, Duration::ZERO);
    assert!(rotated.is_err());
    let other_token = token_text(&store, other.id, 0);
    let is_unknown = |token: &str, id| matches!(store.check_token(token), TokenCheck::Unknown { account, .. } if account == id);
    assert!(is_unknown(&other_token, other.id));
    assert!(
        matches!(store.authenticate(&other_token), Err(TokenError::Store(_))),
        "neither memory nor the disk can tell"
    );

    disk.mend();
    assert_eq!(store.authenticate(&other_token).unwrap().account, other.id);
    assert!(
        matches!(store.check_token(&other_token), TokenCheck::Valid(_)),
        "what was read was not stored"
    );
    // The rotation is on the disk or it is not; memory has to agree with the disk.
    let [present] = &store.tokens(owner.id).unwrap()[..] else {
        panic!("it has one token");
    };
    let present = store.token_text(owner.id, &present.token);
    assert!(store.authenticate(&present).is_ok());
    let first = token_text(&store, owner.id, 0);
    assert_eq!(store.authenticate(&first).is_ok(), first == present);
    let gone = token_text(&store, deleted.id, 0);
    assert!(is_unknown(&gone, deleted.id));
    assert!(matches!(
        store.authenticate(&gone),
        Err(TokenError::Invalid)
    ));
    assert!(matches!(store.check_token(&gone), TokenCheck::Invalid));
}

#[test]
fn a_read_that_fails_alone_keeps_nobody_from_writing() {
    let disk = Disk::default();
    let store = store_on(&disk);
    store.create_account("owner@example.org", None).unwrap();
    disk.break_after(0);
    let read = store.account_by_email("owner@example.org");
    assert!(matches!(read, Err(StoreError::Failed(_))), "{read:?}");
    store.check_available().unwrap();
}

#[test]
fn a_monthly_count_is_in_memory_once_it_was_read_and_follows_every_conversion() {
    let disk = Disk::default();
    let store = store_on(&disk);
    let owner = store.create_account("owner@example.org", None).unwrap().id;
    let now = entry(1).time;
    let count = |month: Option<Month>| month.map(|month| month.conversions);
    assert_eq!(store.known_usage_in_month(owner, None, now), None);
    assert_eq!(
        store.usage_in_month(owner, None, now).unwrap().conversions,
        0
    );
    for conversions in 1..=3 {
        store.record_usage(owner, &entry(conversions)).unwrap();
        let reads = disk.reads();
        assert_eq!(
            count(store.known_usage_in_month(owner, None, now)),
            Some(conversions)
        );
        assert_eq!(
            store.usage_in_month(owner, None, now).unwrap().conversions,
            conversions
        );
        assert_eq!(disk.reads(), reads, "the disk was read");
    }
    disk.break_after(0);
    assert!(store.record_usage(owner, &entry(4)).is_err());
    disk.mend();
    assert_eq!(store.known_usage_in_month(owner, None, now), None);
    let recorded = store.usage_totals(owner).unwrap().conversions;
    assert_eq!(
        store.usage_in_month(owner, None, now).unwrap().conversions,
        recorded
    );
}
