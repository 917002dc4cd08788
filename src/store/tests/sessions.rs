//! Sessions: how many there are, and what they give away.

use super::*;

#[test]
fn a_stolen_database_and_the_name_of_a_session_yield_no_cookie() {
    let folder = Folder::new();
    let store = folder.store();
    let owner = store.create_account("owner@example.org", None).unwrap();
    let cookie = store.start_session(owner.id, &Browser::default()).unwrap();
    let hash = Code::parse(&cookie).unwrap().hash();
    let name = store.sessions(owner.id, &cookie).unwrap()[0].id.to_string();
    assert!(!cookie.contains(&name));
    let [first, second] = [&hash[..16], &hash[16..]]
        .map(|half| u128::from_be_bytes(half.try_into().expect("16 bytes")));
    assert_eq!(name, format!("{first:032x}"));
    let hex = format!("{first:032x}{second:032x}");
    for forged in [&name, &hex, &hex[..43], &format!("{name}{}", &name[..11])] {
        assert!(store.session(forged).unwrap().is_none(), "{forged}");
    }
    drop(store);
    let bytes = fs::read(database_path(&folder.settings().data)).unwrap();
    let has = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    assert!(has(&hash) && !has(cookie.as_bytes()));
}

#[test]
fn sign_ins_at_a_time_keep_to_the_limit_and_the_newest_stay() {
    const THREADS: usize = 16;
    const EACH: usize = 8;
    let folder = Folder::new();
    let store = folder.store();
    let id = store.create_account("owner@example.org", None).unwrap().id;
    let start = || store.start_session(id, &Browser::default()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| (0..EACH).for_each(|_| drop(start())));
        }
    });
    assert_eq!(store.sessions(id, "").unwrap().len(), MAX_SESSIONS);
    let last = start();
    let listed = store.sessions(id, &last).unwrap();
    assert_eq!(listed.len(), MAX_SESSIONS);
    assert!(listed[0].is_own && store.session(&last).unwrap().is_some());
    let findings = store.snapshot().unwrap().check().unwrap();
    assert_eq!(findings.sessions as usize, MAX_SESSIONS);
    assert_eq!(findings.problems, [""; 0]);
}
