//! `towebp backup` and `towebp check`, beside a server at work and without one.

use crate::support::command::{account, run, towebp, towebp_with_signals};
use crate::support::service::{OWNER, Service, Size, send};
use crate::support::{Folder, Server, create_account};
use std::fs::{self, DirBuilder};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

#[test]
fn a_backup_of_a_server_at_work_has_all_that_was_answered_before() {
    let service = Service::start();
    let files = Folder::new();
    let file = files.path.join("backup.redb");
    let (next, is_over) = (AtomicU32::new(0), AtomicBool::new(false));
    let answered: Mutex<Vec<Size>> = Mutex::default();
    let (before, backup) = thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    let size = (8, 8 + next.fetch_add(1, Ordering::SeqCst));
                    let answer = send(service.address(), &service.message(size));
                    let status = answer.expect("it is answered").status;
                    assert_eq!(status, 200);
                    answered.lock().expect("nobody panicked").push(size);
                }
            });
        }
        crate::support::until(|| answered.lock().expect("nobody panicked").len() > 40);
        let before = answered.lock().expect("nobody panicked").clone();
        let backup = backup(&service.data(), &file, &[]);
        thread::sleep(Duration::from_millis(200));
        is_over.store(true, Ordering::SeqCst);
        (before, backup)
    });
    let said = String::from_utf8_lossy(&backup.stdout);
    assert!(
        backup.status.success() && said.contains(" rows"),
        "{backup:?}"
    );
    assert!(
        String::from_utf8_lossy(&backup.stderr).contains("secret"),
        "{backup:?}"
    );
    let mode = fs::metadata(&file)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(fs::read_dir(&files.path).expect("a folder").count(), 1);
    let checked = run(towebp().arg("check").arg(&file), b"");
    assert!(checked.status.success(), "{checked:?}");
    let conversions = service.sizes().len();

    // As README has it: the file and the secret into a new folder.
    let folder = Folder::new();
    let data = folder.path.join("data");
    DirBuilder::new()
        .mode(0o700)
        .create(&data)
        .expect("a new folder");
    fs::rename(&file, data.join("towebp.redb")).expect("the same disk");
    fs::copy(service.data().join("secret"), data.join("secret")).expect("it is there");
    let restored = Service::resume(folder, service.token.clone());
    let sizes = restored.sizes();
    for size in &before {
        assert_eq!(
            sizes.get(size),
            Some(&1),
            "{size:?} is not in the backup once"
        );
    }
    assert!(sizes.len() <= conversions, "more than there ever was");
    restored.webp(
        &[],
        &crate::support::picture::Picture::flat(2, 2, [1, 2, 3]).png(),
    );
    assert_eq!(restored.sizes().len(), sizes.len() + 1);
    assert!(check(&restored.data()).status.success());
}

#[test]
fn a_backup_without_a_server_replaces_a_file_only_if_told_to() {
    let folder = Folder::new();
    let data = folder.path.join("data");
    let token = create_account(&data, OWNER);
    let file = folder.path.join("backup");
    fs::write(&file, "precious").expect("there is room");
    let refused = backup(&data, &file, &[]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1));
    assert!(said.contains("--force"), "{said}");
    assert_eq!(fs::read(&file).expect("it is there"), b"precious");
    assert!(backup(&data, &file, &["--force"]).status.success());

    fs::rename(&file, data.join("towebp.redb")).expect("the same disk");
    assert_eq!(account(&["token", OWNER], &data), token);
    let elsewhere = folder.path.join("missing/backup");
    let refused = backup(&data, &elsewhere, &[]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("missing/backup cannot be written"), "{said}");
    let refused = backup(&folder.path.join("none"), &file, &[]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("there are no accounts in"), "{said}");
    assert!(!file.exists() && !folder.path.join("none").exists());
}

#[test]
fn a_check_counts_what_is_there_and_fails_on_damage() {
    let server = Server::start();
    server.create_account(OWNER);
    let checked = check(&server.data());
    assert_eq!(
        String::from_utf8_lossy(&checked.stdout),
        "1 account, 0 sessions, 0 conversions\n"
    );
    assert!(String::from_utf8_lossy(&checked.stderr).contains("A server runs here"));
    let folder = server.kill();
    let data = folder.path.join("data");
    let checked = check(&data);
    assert!(
        checked.status.success() && checked.stderr.is_empty(),
        "{checked:?}"
    );

    let file = data.join("towebp.redb");
    let mut bytes = fs::read(&file).expect("it is there");
    let text = OWNER.as_bytes();
    for at in 0..bytes.len() - text.len() {
        if bytes[at..].starts_with(text) {
            bytes[at] = b'X';
        }
    }
    fs::write(&file, bytes).expect("there is room");
    let checked = check(&data);
    assert_eq!(checked.status.code(), Some(1), "{checked:?}");
    let said = [checked.stdout, checked.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(
        said.contains("pages") || said.contains("towebp.redb"),
        "{said}"
    );
}

#[test]
fn sessions_are_not_in_a_backup() {
    let server = Server::start();
    let form = [("email", OWNER), ("password", "correct horse")];
    let signed_up = server.request("POST", "/signup").form(&form).send();
    assert_eq!(signed_up.status, 303, "{}", signed_up.text());
    let folder = Folder::new();
    let file = folder.path.join("backup.redb");
    let said = |output: Output| String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(backup(&server.data(), &file, &[]).status.success());
    assert_eq!(
        said(check(&server.data())),
        "1 account, 1 session, 0 conversions\n"
    );
    let checked = run(towebp().arg("check").arg(&file), b"");
    assert!(checked.status.success(), "{checked:?}");
    assert_eq!(said(checked), "1 account, 0 sessions, 0 conversions\n");
}

#[test]
fn a_signal_removes_what_there_is_of_a_backup() {
    let folder = Folder::new();
    let data = folder.path.join("data");
    create_account(&data, OWNER);
    // A server that begins to answer, and goes no further.
    let socket = UnixListener::bind(data.join("admin.sock")).expect("our own folder");
    let child = towebp_with_signals()
        .arg("backup")
        .arg(folder.path.join("backup"))
        .arg("--data")
        .arg(&data)
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // The first connection only looks whether a server runs.
    let (looks, _) = socket.accept().expect("it connects");
    let (mut asks, _) = socket.accept().expect("it connects");
    let mut line = [0; 9];
    asks.read_exact(&mut line).expect("it asks");
    assert_eq!(&line, b"\"backup\"\n");
    asks.write_all(b"\"backup\"\n").expect("it waits");
    let files = || fs::read_dir(&folder.path).expect("a folder").count();
    assert_eq!(files(), 2, "the data folder and an unfinished file");
    let number = i32::try_from(child.id()).expect("Linux has no more processes");
    let process = rustix::process::Pid::from_raw(number).expect("not 0");
    rustix::process::kill_process(process, rustix::process::Signal::INT).expect("it runs");
    let ended = child.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    assert_eq!(files(), 1, "something was left behind");
    drop((looks, asks));
}

fn backup(data: &Path, file: &Path, flags: &[&str]) -> Output {
    let mut command = towebp();
    run(
        command
            .arg("backup")
            .arg(file)
            .args(flags)
            .arg("--data")
            .arg(data),
        b"",
    )
}

fn check(data: &Path) -> Output {
    run(towebp().arg("check").arg("--data").arg(data), b"")
}
