//! `towebp account password` and tokens in files, as they are typed.

use super::terminal::Terminal;
use super::{failed, succeeded};
use crate::support::command::{account, run, towebp};
use crate::support::picture::Picture;
use crate::support::service::{OWNER, Service};
use crate::support::{Folder, Response, Server, create_account};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

fn set_password(data: &Path, email: &str, line: &str) -> Output {
    let mut command = towebp();
    command.args(["account", "password", email, "--data"]);
    run(command.arg(data), line.as_bytes())
}

fn sign_in(server: &Server, password: &str) -> Response {
    server
        .request("POST", "/signin")
        .form(&[("email", OWNER), ("password", password)])
        .send()
}

/// The status of the dashboard for this cookie: 200 if it is that of a session.
fn dashboard(server: &Server, cookie: &str) -> u16 {
    let request = server.request("GET", "/dashboard");
    request.header("Cookie", cookie).send().status
}

#[test]
fn an_account_of_the_command_line_gets_a_password_beside_a_server_and_without() {
    let service = Service::start();
    let server = &service.server;
    assert_eq!(sign_in(server, "correct horse").status, 400, "it has none");
    let set = set_password(&service.data(), OWNER, "correct horse\n");
    succeeded(&set);
    assert!(set.stdout.is_empty());
    let signed_in = sign_in(server, "correct horse");
    assert_eq!(signed_in.status, 303, "{}", signed_in.text());
    let cookie = signed_in.session_cookie();
    assert_eq!(dashboard(server, &cookie), 200);

    let refused = set_password(&service.data(), OWNER, "short\n");
    failed(&refused, &["password", "at least 8"]);
    failed(
        &set_password(&service.data(), "no@example.org", "correct horse\n"),
        &["no account"],
    );
    assert_eq!(dashboard(server, &cookie), 200, "nothing was changed");
    succeeded(&set_password(&service.data(), OWNER, "another horse\n"));
    assert_ne!(dashboard(server, &cookie), 200, "the session went on");
    assert_eq!(sign_in(server, "correct horse").status, 400);
    assert_eq!(sign_in(server, "another horse").status, 303);
    service.webp(&[], &Picture::waves(8, 8).png());

    let Service { server, token } = service;
    let folder = server.kill();
    let data = folder.path.join("data");
    succeeded(&set_password(&data, OWNER, "a third horse\n"));
    let service = Service::resume(folder, token);
    assert_eq!(sign_in(&service.server, "a third horse").status, 303);
}

#[test]
fn at_a_terminal_a_password_is_asked_for_twice_and_not_shown() {
    let data = Folder::new();
    create_account(&data.path, OWNER);
    for (again, code, said) in [
        ("correct horse", 0, "has a new password"),
        ("correct house", 1, "the two passwords differ"),
    ] {
        let mut terminal =
            Terminal::start(&["account", "password", OWNER, "--data", "."], &data.path);
        terminal.wait_for("New password: ");
        assert!(!terminal.shows_what_is_typed());
        terminal.type_line("correct horse");
        terminal.wait_for("The same again: ");
        terminal.type_line(again);
        terminal.wait_for(said);
        assert_eq!(terminal.end(), Some(code));
        let screen = terminal.screen();
        assert!(!screen.contains("correct"), "it was shown: {screen}");
        assert!(terminal.shows_what_is_typed(), "the terminal stays silent");
    }
    assert!(account(&["list"], &data.path).ends_with("\tdashboard"));

    let mut terminal = Terminal::start(
        &[
            "account",
            "create",
            "new@example.org",
            "--password-stdin",
            "--data",
            ".",
        ],
        &data.path,
    );
    terminal.wait_for("New password: ");
    let number = i32::try_from(terminal.child.id()).expect("Linux has no more processes");
    kill_process(Pid::from_raw(number).expect("not 0"), Signal::INT).expect("it runs");
    assert_eq!(terminal.end(), Some(130));
    assert!(terminal.shows_what_is_typed(), "Ctrl+C leaves it silent");
    assert!(!account(&["list"], &data.path).contains("new@"));
}

#[test]
fn a_token_is_kept_when_its_account_is_made_twice() {
    let folder = Folder::new();
    let file = folder.path.join("token");
    let create = || {
        let mut command = towebp();
        command.args(["account", "create", OWNER, "-o", "token", "--data", "data"]);
        run(command.current_dir(&folder.path), b"")
    };
    let created = create();
    succeeded(&created);
    assert!(created.stdout.is_empty());
    let token = fs::read_to_string(&file).expect("it was written");
    let mode = fs::metadata(&file)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let second = create();
    failed(
        &second,
        &["already", "towebp account token owner@example.org"],
    );
    assert_eq!(fs::read_to_string(&file).expect("it is there"), token);
    let data = folder.path.join("data");
    assert_eq!(account(&["token", OWNER], &data), token.trim_end());
}
