//! Backups, through the stream that a server sends and as a file.

use super::{Folder, entry};
use crate::store::redb::Backup;
use crate::store::transfer::{receive, receive_backup, send};
use crate::store::{Settings, Store, TokenNumber, check_file, database_path};
use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::time::Duration;

/// A store with two accounts, the second deleted again, an invitation, a session and `entries`
/// conversions.
fn filled(folder: &Folder, entries: u64) -> (Store, String, String) {
    let store = folder.store();
    let owner = store.create_account("owner@example.org", None).unwrap();
    let token = TokenNumber::DEFAULT;
    store.rotate_token(owner.id, token, Duration::ZERO).unwrap();
    let other = store.create_account("other@example.org", None).unwrap();
    store.delete_account(other.id).unwrap();
    let cookie = store
        .start_session(owner.id, &crate::store::Browser::default())
        .unwrap();
    for i in 0..entries {
        store.record_usage(owner.id, &entry(i)).unwrap();
    }
    let token = store.token(owner.id).unwrap();
    (store, token, cookie)
}

fn exported(store: &Store) -> Vec<u8> {
    let mut rows = Vec::new();
    send(&*store.snapshot().unwrap(), &mut rows).unwrap();
    rows
}

#[test]
fn a_restored_backup_is_the_store_as_it_was() {
    let folder = Folder::new();
    let (store, token, cookie) = filled(&folder, 3);
    let code = store.invite().unwrap();
    let rows = exported(&store);
    let later = store.authenticate(&token).unwrap().account;
    store.record_usage(later, &entry(9)).unwrap();

    let restored = Settings {
        data: folder.path().join("restored"),
        secret_file: Some(folder.settings().data.join("secret")),
        allow_shared_data: false,
        history_keep: None,
        postgres: None,
    };
    let mut private = fs::DirBuilder::new();
    private.mode(0o700).create(&restored.data).unwrap();
    let file = database_path(&restored.data);
    let mut told = Vec::new();
    let backup = Backup::create(&file, false).unwrap();
    receive_backup(backup, &rows[..], &mut |done, all| told.push((done, all))).unwrap();
    assert_eq!(told, [(0, 3), (3, 3)]);
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(fs::read_dir(&restored.data).unwrap().count(), 1);

    let copy = Store::open(&restored).unwrap();
    let owner = copy.authenticate(&token).unwrap().account;
    assert_eq!(copy.usage_totals(owner).unwrap().conversions, 3);
    assert!(
        copy.session(&cookie).unwrap().is_none(),
        "a session came back"
    );
    copy.create_invited_account("guest@example.org", "correct horse", &code)
        .unwrap();
    let findings = copy.snapshot().unwrap().check().unwrap();
    assert_eq!(findings.problems, [""; 0]);
    assert_eq!((findings.accounts, findings.sessions), (2, 0));
    // Account numbers are not given again.
    let next = copy.create_account("next@example.org", None).unwrap();
    assert!(next.id > owner);
}

#[test]
fn rows_that_end_early_are_an_error_wherever_they_end() {
    let folder = Folder::new();
    let (store, ..) = filled(&folder, 2);
    let rows = exported(&store);
    for length in 0..rows.len() {
        let read = receive(&rows[..length], &mut |_, _| {}, &mut |_| Ok(()));
        assert!(read.is_err(), "after {length} of {} bytes", rows.len());
    }
    let read = receive(&rows[..], &mut |_, _| {}, &mut |_| Ok(()));
    assert_eq!(
        read.unwrap() as usize + 2,
        rows.split(|it| *it == b'\n').count() - 1
    );
}

#[test]
fn other_bytes_make_no_file() {
    let folder = Folder::new();
    let (store, ..) = filled(&folder, 1);
    let rows = exported(&store);
    drop(store);
    let file = folder.path().join("backup");
    let end = rows.len()
        - 1
        - rows[..rows.len() - 1]
            .iter()
            .rev()
            .position(|it| *it == b'\n')
            .unwrap();
    let head = &b"{\"head\":{\"format\":2,\"entries\":1}}\n"[..];
    for (rows, expected) in [
        (rows[..end].to_vec(), "ended too early"),
        ([head, &vec![b' '; 1 << 17]].concat(), "a row is too long"),
        ([head, b"{\"usage\":{}}\n"].concat(), "a row cannot be read"),
        ([head, head].concat(), "two heads"),
        ([head, b"{\"end\":1}\n"].concat(), "0 rows came of 1"),
        (b"{\"end\":1}\n".to_vec(), "no head"),
        (
            b"{\"head\":{\"format\":1,\"entries\":0}}\n".to_vec(),
            "format 1",
        ),
        (Vec::new(), "ended too early"),
    ] {
        let backup = Backup::create(&file, false).unwrap();
        let made = receive_backup(backup, &rows[..], &mut |_, _| {});
        let sentence = made.expect_err("it was accepted as a backup");
        assert!(sentence.contains("was not made"), "{sentence}");
        assert!(sentence.contains(expected), "{sentence}");
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            1,
            "{expected}"
        );
    }
}

#[test]
fn an_existing_file_is_replaced_only_on_demand() {
    let folder = Folder::new();
    let (store, ..) = filled(&folder, 1);
    let file = folder.path().join("backup");
    fs::write(&file, "precious").unwrap();
    let rejection = Backup::create(&file, false).err().unwrap();
    assert!(rejection.contains("--force"), "{rejection}");
    let first = Backup::create(&file, true).unwrap();
    let partial = first.partial().to_owned();
    let second = Backup::create(&file, true).unwrap();
    assert_ne!(partial, second.partial(), "two backups write to one file");
    drop(second);
    assert_eq!(
        fs::read(&file).unwrap(),
        b"precious",
        "the target changed before the backup was complete"
    );
    receive_backup(first, &exported(&store)[..], &mut |_, _| {}).unwrap();
    assert!(!partial.exists());
    let findings = check_file(&file).unwrap();
    assert_eq!((findings.entries, &findings.problems[..]), (1, &[][..]));

    // A file of the same name that is made while the backup is being written.
    let late = folder.path().join("late");
    let backup = Backup::create(&late, false).unwrap();
    fs::write(&late, "precious").unwrap();
    let rejection = receive_backup(backup, &exported(&store)[..], &mut |_, _| {});
    assert!(rejection.unwrap_err().contains("made meanwhile"));
    assert_eq!(fs::read(&late).unwrap(), b"precious");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
fn links_and_special_files_are_left_alone() {
    let folder = Folder::new();
    let (store, ..) = filled(&folder, 1);
    let at = |name: &str| folder.path().join(name);
    fs::write(at("victim"), "precious").unwrap();
    // What another user could prepare in a folder that all may write to, such as /tmp.
    symlink("victim", at("backup.partial")).unwrap();
    symlink("victim", at("link")).unwrap();
    symlink("nowhere", at("dangling")).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    for name in ["link", "dangling", "socket", "data"] {
        for replace in [false, true] {
            let rejection = Backup::create(&at(name), replace).err().unwrap();
            assert!(rejection.contains(name), "{rejection}");
        }
    }
    drop(socket);
    let backup = Backup::create(&at("backup"), false).unwrap();
    let made = fs::symlink_metadata(backup.partial()).unwrap();
    assert!(made.is_file() && made.permissions().mode() & 0o777 == 0o600);
    receive_backup(backup, &exported(&store)[..], &mut |_, _| {}).unwrap();
    assert_eq!(fs::read(at("victim")).unwrap(), b"precious");
    assert!(fs::symlink_metadata(at("backup")).unwrap().is_file());
    assert!(!at("nowhere").exists());
}
