//! A store moves from the file of one machine to PostgreSQL and back, by the commands for it.

use crate::replicas::{OWNER, Replicas, convert};
use crate::support::command::{run, towebp};
use crate::support::postgres::shared;
use crate::support::{Folder, Server, store};
use rustix::process::Signal;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

#[test]
fn tokens_and_histories_go_to_postgres_and_back() {
    if store::is_postgres() {
        return;
    }
    let Some(postgres) = shared() else {
        return;
    };
    let replicas = Replicas::of(postgres.database());
    let secret = replicas.secret();
    let secret = secret.to_str().expect("ASCII");
    let folder = Folder::new();
    let data = folder.path.join("data");
    let on_file = |data: &Path, words: &[&str]| {
        let command = &mut towebp();
        let command = command.arg("account").args(words).arg("--data").arg(data);
        text(&run(command.args(["--secret-file", secret]), b""))
    };
    let token = on_file(&data, &["create", OWNER]);
    let server = Server::start_in(folder, &["--secret-file", secret]);
    assert_eq!(convert(&server, &token).status, 200);

    let (url, flags) = (&replicas.database.url, &replicas.database.flags()[2..]);
    let copy = |from: &str, to: &str| {
        let words = ["store", "copy", "--from", from, "--to", to];
        let own = ["--secret-file", secret];
        run(towebp().args(words).args(own).args(flags), b"")
    };
    let file = data.to_str().expect("ASCII");
    assert_refused(&copy(file, url), "stop it first");
    let folder = server.kill();
    let copied = text(&copy(file, url));
    assert!(
        copied.starts_with("1 account, 1 token, 0 invitations, 1 conversion (1 of them")
            && copied.ends_with("the same on both sides"),
        "{copied}"
    );
    assert!(!data.join("towebp.redb").exists() && data.join("towebp.redb.moved").exists());
    assert_refused(&copy(file, url), "there are no accounts in");

    let mut replica = replicas.start(&[]);
    assert_eq!(convert(&replica, &token).status, 200);
    assert_eq!(replicas.check(), "1 account, 0 sessions, 2 conversions");
    let backup = folder.path.join("backup");
    replicas.done(&["backup", backup.to_str().expect("ASCII")]);
    let checked = text(&run(towebp().arg("check").arg(&backup), b""));
    assert_eq!(checked, "1 account, 0 sessions, 2 conversions");

    let back = folder.path.join("back");
    let to = back.to_str().expect("ASCII");
    assert_refused(&copy(url, to), "stop them first");
    replica.signal(Signal::TERM);
    assert!(replica.ended_within(Duration::from_secs(30)).success());
    text(&copy(url, to));
    assert_refused(&copy(url, to), "is there already");
    assert_eq!(on_file(&back, &["token", OWNER]), token);
    assert!(on_file(&back, &["usage", OWNER]).contains("conversions\t2"));
    // A mistake, by its exit code.
    let twice = copy(url, url);
    let said = String::from_utf8_lossy(&twice.stderr);
    assert_eq!(twice.status.code(), Some(2), "{said}");
    assert!(said.contains("a data folder and the URL"), "{said}");
}

/// What a command printed that has to succeed.
#[track_caller]
fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[track_caller]
fn assert_refused(output: &Output, expected: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(1) && said.contains(expected),
        "{said}"
    );
}
