//! How replicas start: what is wrong with the way to the database is told in a sentence and ends
//! the start, tables are made once, and those of a newer towebp are left alone.

use crate::replicas::{OWNER, Replicas, convert};
use crate::support::Folder;
use crate::support::command::{run, towebp};
use crate::support::postgres::{Certificate, Database, Postgres, shared};
use std::fs;
use std::thread;

#[test]
fn what_is_wrong_with_the_way_to_the_database_ends_the_start() {
    // Its certificate changes: this server is no one else's.
    let Some(server) = Postgres::start() else {
        return;
    };
    let good = Replicas::of(server.database());
    let folder = Folder::new();
    let file = |name: &str, content: &str| {
        let path = folder.path.join(name);
        fs::write(&path, content).expect("the folder is ours");
        path
    };
    let wrong_password = Database {
        password_file: file("wrong", "guessed\n"),
        ..good.database.clone()
    };
    assert_refused(&good, &wrong_password, &["password"]);
    let no_password = Database {
        password_file: folder.path.join("none"),
        ..good.database.clone()
    };
    assert_refused(&good, &no_password, &["none"]);
    let other_authority = Database {
        ca: server.other_ca(),
        ..good.database.clone()
    };
    assert_refused(&good, &other_authority, &["certificate"]);
    let no_database = Database {
        url: good.database.url.replace(&good.database.name, "nowhere"),
        ..good.database.clone()
    };
    assert_refused(&good, &no_database, &["nowhere"]);
    let no_role = Database {
        url: good.database.url.replace("towebp@", "stranger@"),
        ..good.database.clone()
    };
    assert_refused(&good, &no_role, &["stranger"]);
    let password_in_url = Database {
        url: good.database.url.replace("towebp@", "towebp:secret@"),
        ..good.database.clone()
    };
    let said = refusal(&flags_of(&good, &password_in_url), MISTAKE);
    assert!(
        said.contains("password") && !said.contains("secret@"),
        "{said}"
    );
    server.show(Certificate::Expired);
    assert_refused(&good, &good.database, &["certificate", "Expired"]);
    server.show(Certificate::OtherHost);
    assert_refused(&good, &good.database, &["certificate", "127.0.0.1"]);
    server.show(Certificate::Good);
    let replica = good.start(&[]);
    assert_eq!(convert(&replica, &good.create_account(OWNER)).status, 200);
}

#[test]
fn the_web_s_authorities_are_trusted_unless_another_is_named() {
    let Some(server) = shared() else {
        return;
    };
    let replicas = Replicas::of(server.database());
    let mut flags = replicas.flags();
    let ca = flags.iter().position(|flag| flag == "--store-ca");
    flags
        .drain(ca.expect("it is there")..)
        .take(2)
        .for_each(drop);
    let secret = replicas.secret();
    let secret = secret.to_str().expect("ASCII");
    flags.extend(["--secret-file".into(), secret.to_owned()]);
    let said = refusal(&flags, FAILURE);
    assert!(said.contains("certificate"), "{said}");
}

#[test]
fn replicas_that_start_at_once_make_the_tables_once() {
    let Some(server) = shared() else {
        return;
    };
    for _ in 0..3 {
        let replicas = Replicas::of(server.database());
        let servers: Vec<_> = thread::scope(|scope| {
            let starts: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| replicas.start(&[])))
                .collect();
            let starts = starts.into_iter();
            starts
                .map(|start| start.join().expect("it starts"))
                .collect()
        });
        let token = replicas.create_account(OWNER);
        for server in &servers {
            assert_eq!(convert(server, &token).status, 200);
        }
    }
}

#[test]
fn tables_of_a_newer_towebp_are_left_alone() {
    let Some(server) = shared() else {
        return;
    };
    let replicas = Replicas::of(server.database());
    let first = replicas.start(&[]);
    let token = replicas.create_account(OWNER);
    let meta = |name: &str, value: u32| {
        let change = format!("UPDATE meta SET value = {value} WHERE name = '{name}'");
        server.sql(&replicas.database.name, &change);
    };
    // Newer, but such that this one may use them: two versions work side by side.
    meta("schema", 77);
    let beside = replicas.start(&[]);
    meta("needs", 77);
    let said = refusal(&replicas.flags(), FAILURE);
    assert!(said.contains("77"), "{said}");
    for running in [&first, &beside] {
        assert_eq!(convert(running, &token).status, 200);
    }
}

#[test]
fn another_secret_than_that_of_the_tokens_ends_the_start() {
    let Some(server) = shared() else {
        return;
    };
    let replicas = Replicas::of(server.database());
    let first = replicas.start(&[]);
    let token = replicas.create_account(OWNER);
    let folder = Folder::new();
    let other = folder.path.join("other");
    fs::write(&other, "ab".repeat(32)).expect("the folder is ours");
    let mut flags = replicas.flags();
    *flags.last_mut().expect("the secret is the last") = other.to_str().expect("ASCII").into();
    let said = refusal(&flags, FAILURE);
    assert!(said.contains("secret"), "{said}");
    assert_eq!(convert(&first, &token).status, 200);
}

/// Checks that `towebp serve` over this database ends with a complaint that has these words.
#[track_caller]
fn assert_refused(replicas: &Replicas, database: &Database, words: &[&str]) {
    let said = refusal(&flags_of(replicas, database), FAILURE);
    for word in words {
        assert!(said.contains(word), "no {word:?} in {said}");
    }
    for hidden in ["sc ram", "guessed", "secret@", "panicked"] {
        assert!(!said.contains(hidden), "{hidden:?} in {said}");
    }
}

/// The flags of a replica of these on another database.
fn flags_of(replicas: &Replicas, database: &Database) -> Vec<String> {
    let secret = replicas.secret();
    let secret = secret.to_str().expect("ASCII");
    let mut flags = database.flags();
    flags.extend(["--secret-file".into(), secret.to_owned()]);
    flags
}

/// The exit code of a command that failed.
const FAILURE: i32 = 1;

/// The exit code of a command line that cannot be carried out.
const MISTAKE: i32 = 2;

/// What `towebp serve` with these flags says, which has to end by itself, with this exit code.
#[track_caller]
fn refusal(flags: &[String], code: i32) -> String {
    let folder = Folder::new();
    let output = run(
        towebp()
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(folder.path.join("data"))
            .args(flags),
        b"",
    );
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{flags:?}: {said}");
    // A sentence, not a page.
    assert!(said.lines().count() <= 3, "{said}");
    said
}
