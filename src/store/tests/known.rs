//! What memory knows of accounts, beside a disk that is slow or breaks.

use super::disk::Disk;
use super::*;

#[test]
fn memory_knows_whose_token_it_is_and_follows_every_change_before_it_is_answered() {
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
            "what memory knows is not asked of the disk"
        );
    }
    assert_eq!(disk.reads(), reads, "the disk was asked");
}

#[test]
fn what_a_failed_commit_leaves_in_doubt_is_asked_of_the_disk_and_known_again() {
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
