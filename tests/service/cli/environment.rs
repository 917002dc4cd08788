//! The flags of `towebp serve` by variables.

use super::{failed, succeeded};
use crate::support::Folder;
use crate::support::command::{run, towebp};
use crate::support::service::OWNER;
use std::fs;
use std::process::Output;

fn with(variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = towebp();
    command.envs(variables.iter().copied()).args(arguments);
    run(&mut command, b"")
}

#[test]
fn commands_find_the_data_of_a_container_by_its_variables() {
    let folder = Folder::new();
    let data = folder.path.join("data");
    let data = data.to_str().expect("a temporary folder in ASCII");
    let variables = [("TOWEBP_DATA", data), ("TOWEBP_STORE", "")];
    let created = with(&variables, &["account", "create", OWNER]);
    succeeded(&created);
    assert!(created.stdout.starts_with(b"twp_"), "{created:?}");
    assert!(created.stderr.is_empty(), "{created:?}");
    let listed = with(&variables, &["account", "list"]);
    succeeded(&listed);
    assert!(listed.stdout.starts_with(OWNER.as_bytes()), "{listed:?}");
    succeeded(&with(&variables, &["check"]));
    // A flag beats its variable.
    let elsewhere = folder.path.join("none");
    let elsewhere = elsewhere.to_str().expect("ASCII");
    failed(
        &with(&variables, &["account", "list", "--data", elsewhere]),
        &["there are no accounts in", "none"],
    );
    // A backup is checked by itself, whatever the store is.
    let copy = folder.path.join("copy.redb");
    let copy = copy.to_str().expect("ASCII");
    succeeded(&with(&variables, &["backup", copy]));
    let store = ("TOWEBP_STORE", "postgres://towebp@127.0.0.1:1/towebp");
    succeeded(&with(
        &[store, ("TOWEBP_STORE_TIMEOUT", "1")],
        &["check", copy],
    ));
}

#[test]
fn a_mistake_names_the_variable_it_comes_from() {
    for (name, value, words) in [
        ("TOWEBP_MAX_BODY", "3", "TOWEBP_MAX_BODY 3: allowed are"),
        (
            "TOWEBP_LISTEN",
            "here",
            "TOWEBP_LISTEN \"here\": expected ADDRESS:PORT",
        ),
        (
            "TOWEBP_SNIFF",
            "perhaps",
            "TOWEBP_SNIFF \"perhaps\": allowed are 1, true or on",
        ),
        ("TOWEBP_SIGNUP", "opn", "did you mean open?"),
        (
            "TOWEBP_STORE_CA",
            "ca.pem",
            "TOWEBP_STORE_CA without --store",
        ),
    ] {
        let refused = with(&[(name, value)], &["serve"]);
        failed(&refused, &[words]);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    }
    let data = Folder::new();
    let data = data.path.join("none");
    let data = data.to_str().expect("ASCII");
    let warned = with(
        &[
            ("TOWEBP_DAT", "x"),
            ("TOWEBP_PORT_80_TCP", "tcp://10.0.0.1:80"),
        ],
        &["account", "list", "--data", data],
    );
    let said = String::from_utf8_lossy(&warned.stderr);
    assert!(said.contains("TOWEBP_DAT is ignored"), "{said}");
    assert!(said.contains("did you mean TOWEBP_DATA?"), "{said}");
    assert!(!said.contains("TCP"), "{said}");
}

#[test]
fn the_converter_reads_no_variables() {
    let folder = Folder::new();
    let png = crate::support::picture::Picture::waves(30, 20).png();
    fs::write(folder.path.join("a.png"), png).expect("our own folder");
    let mut command = towebp();
    command
        .env("TOWEBP_MAX_PIXELS", "1")
        .env("TOWEBP_THREADS", "none")
        .args(["convert", "a.png"]);
    succeeded(&run(command.current_dir(&folder.path), b""));
}
