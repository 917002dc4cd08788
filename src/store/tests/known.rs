//! What memory knows about accounts while the disk is slow or fails.

use super::disk::Disk;
use super::*;

#[test]
fn memory_knows_every_change_of_a_token_before_the_caller_goes_on() {
    let disk = Disk::default();
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
            "{token}"
        );
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
        "what was read was not stored"
    );
    // The rotation is on the disk or it is not; memory has to agree with the disk.
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
fn a_monthly_count_is_in_memory_once_it_was_read_and_follows_every_conversion() {
    let disk = Disk::default();
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
        assert_eq!(disk.reads(), reads, "the disk was read");
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
