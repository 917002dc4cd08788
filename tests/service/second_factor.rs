//! The second factor and the recovery codes, over a real socket.

use crate::support::command::account;
use crate::support::totp::{code, period};
use crate::support::{Response, Server};

const OWNER: &str = "owner@example.org";
const PASSWORD: &str = "correct horse battery";
const NEW: &str = "another horse battery";

/// An account whose second factor is on.
struct Owner {
    server: Server,
    cookie: String,
    key: String,
    /// The period whose code was used to turn it on.
    period: u64,
    recovery: Vec<String>,
}

impl Owner {
    fn new() -> Owner {
        let server = Server::start();
        let signed_up = post(
            &server,
            "",
            "/signup",
            &[("email", OWNER), ("password", PASSWORD)],
        );
        let cookie = signed_up.session_cookie();
        let page = get(&server, &cookie, "/account/second-factor");
        let key = between(page.text(), "<code id=\"key\">", "<");
        let period = period();
        let turn_on = |password: &str, code: &str| {
            let nonce = between(page.text(), "name=\"nonce\" value=\"", "\"");
            let csrf = between(page.text(), "name=\"csrf\" value=\"", "\"");
            let fields = [
                ("csrf", &*csrf),
                ("nonce", &nonce),
                ("password", password),
                ("code", code),
            ];
            post(&server, &cookie, "/account/second-factor", &fields)
        };
        let code = code(&key, period);
        for (password, code) in [("wrong horse", &*code), (PASSWORD, "no code")] {
            let rejected = turn_on(password, code);
            assert_eq!(rejected.status, 400, "{}", rejected.text());
            let same = between(rejected.text(), "<code id=\"key\">", "<");
            assert_eq!(same, key, "the app has to scan again");
        }
        let shown = turn_on(PASSWORD, &code);
        assert_eq!(shown.status, 200, "{}", shown.text());
        assert_eq!(shown.header("cache-control"), Some("no-store"));
        let recovery = between(shown.text(), "<code id=\"codes\">", "<");
        let recovery: Vec<_> = recovery.lines().map(str::to_owned).collect();
        assert_eq!(recovery.len(), 10, "{recovery:?}");
        Owner {
            server,
            cookie,
            key,
            period,
            recovery,
        }
    }

    fn give_password(&self, password: &str) -> Response {
        let fields = [
            ("email", OWNER),
            ("password", password),
            ("next", "/tokens"),
        ];
        post(&self.server, "", "/signin", &fields)
    }

    /// The ticket that the password gives.
    fn ticket(&self, password: &str) -> String {
        let page = self.give_password(password);
        assert_eq!(page.status, 200, "{}", page.text());
        assert_eq!(
            page.header("set-cookie"),
            None,
            "the password alone signs in"
        );
        between(page.text(), "name=\"ticket\" value=\"", "\"")
    }

    fn give_code(&self, ticket: &str, code: &str) -> Response {
        let fields = [("ticket", ticket), ("code", code), ("next", "/tokens")];
        post(&self.server, "", "/signin/code", &fields)
    }

    fn recover(&self, email: &str, code: &str, new: &str) -> Response {
        let fields = [("email", email), ("code", code), ("password", new)];
        post(&self.server, "", "/signin/recover", &fields)
    }

    fn turn_off(&self, password: &str) -> Response {
        let page = get(&self.server, &self.cookie, "/account/second-factor");
        let csrf = between(page.text(), "name=\"csrf\" value=\"", "\"");
        let fields = [("csrf", &*csrf), ("password", password)];
        post(
            &self.server,
            &self.cookie,
            "/account/second-factor/off",
            &fields,
        )
    }

    fn account(&self, action: &str) -> String {
        account(&[action, OWNER], &self.server.data())
    }
}

fn get(server: &Server, cookie: &str, path: &str) -> Response {
    server.request("GET", path).header("Cookie", cookie).send()
}

fn post(server: &Server, cookie: &str, path: &str, fields: &[(&str, &str)]) -> Response {
    let request = server.request("POST", path).header("Cookie", cookie);
    request.form(fields).send()
}

#[track_caller]
fn between(text: &str, start: &str, end: &str) -> String {
    let (_, rest) = text
        .split_once(start)
        .unwrap_or_else(|| panic!("no {start} in {text}"));
    rest.split_once(end).expect("it ends").0.to_owned()
}

#[test]
fn a_code_is_needed_beside_the_password_and_each_works_once() {
    let owner = Owner::new();
    let ticket = owner.ticket(PASSWORD);
    let used = code(&owner.key, owner.period);
    for wrong in [&*used, &code(&owner.key, owner.period + 100)] {
        let rejected = owner.give_code(&ticket, wrong);
        assert_eq!(rejected.status, 400, "{wrong}: {}", rejected.text());
        assert!(
            rejected
                .text()
                .contains("The code is wrong, or was used before.")
        );
        assert_eq!(rejected.header("set-cookie"), None);
    }
    for forged in ["", "1", &format!("{ticket}x"), &format!("1{ticket}")] {
        let rejected = owner.give_code(forged, &used);
        assert!(
            rejected.text().contains("Begin again."),
            "{}",
            rejected.text()
        );
    }
    let next = code(&owner.key, owner.period + 1);
    let signed_in = owner.give_code(&ticket, &next);
    assert_eq!(signed_in.status, 303, "{}", signed_in.text());
    assert_eq!(signed_in.header("location"), Some("/tokens"));
    let shown = get(&owner.server, &signed_in.session_cookie(), "/dashboard");
    assert_eq!(shown.status, 200);
    assert_eq!(owner.give_code(&owner.ticket(PASSWORD), &next).status, 400);
}

#[test]
fn wrong_codes_count_as_wrong_passwords_and_the_password_does_not_clear_them() {
    let owner = Owner::new();
    let mut statuses = Vec::new();
    // Waits double, so on a machine of whatever speed one is met.
    while statuses.len() < 20 && !statuses.contains(&429) {
        let page = owner.give_password(PASSWORD);
        statuses.push(page.status);
        if page.status == 200 {
            let ticket = between(page.text(), "name=\"ticket\" value=\"", "\"");
            statuses.push(owner.give_code(&ticket, "no code").status);
        }
    }
    assert_eq!(statuses[..5], [200, 400, 200, 400, 200], "{statuses:?}");
    assert!(statuses.contains(&429), "{statuses:?}");
}

#[test]
fn a_recovery_code_signs_in_or_replaces_the_password_once() {
    let owner = Owner::new();
    let [first, second, third] = [0, 1, 2].map(|at| &*owner.recovery[at]);
    let typed = first.to_lowercase().replace('-', " ");
    let signed_in = owner.give_code(&owner.ticket(PASSWORD), &typed);
    assert_eq!(signed_in.status, 303, "{}", signed_in.text());
    let page = get(
        &owner.server,
        &signed_in.session_cookie(),
        "/account/second-factor",
    );
    assert!(
        page.text().contains("left: <strong>9</strong>"),
        "{}",
        page.text()
    );
    assert_eq!(owner.give_code(&owner.ticket(PASSWORD), first).status, 400);

    for (email, code, new) in [
        (OWNER, first, NEW),
        (OWNER, second, "short"),
        ("nobody@example.org", second, NEW),
    ] {
        let rejected = owner.recover(email, code, new);
        assert_eq!(rejected.status, 400, "{email} {new}: {}", rejected.text());
    }
    let ticket = owner.ticket(PASSWORD);
    let recovered = owner.recover(OWNER, second, NEW);
    assert_eq!(recovered.header("location"), Some("/signin?recovered=yes"));
    assert_eq!(recovered.header("set-cookie"), None, "it signs nobody in");
    let ended = get(&owner.server, &signed_in.session_cookie(), "/dashboard");
    assert_eq!(ended.status, 303, "a session goes on");
    let void = owner.give_code(&ticket, third);
    assert!(
        void.text().contains("Begin again."),
        "the ticket outlived the password"
    );
    assert_eq!(owner.give_password(PASSWORD).status, 400);
    let signed_in = owner.give_code(&owner.ticket(NEW), third);
    assert_eq!(signed_in.status, 303, "{}", signed_in.text());
    assert_eq!(owner.recover(OWNER, second, NEW).status, 400);
}

#[test]
fn the_password_or_the_operator_turns_it_off() {
    let owner = Owner::new();
    let usage = owner.account("usage");
    assert!(usage.contains("second factor\ttrue\n"), "{usage}");
    let rejected = owner.turn_off("wrong horse");
    assert_eq!(rejected.status, 400, "{}", rejected.text());
    assert_eq!(owner.give_password(PASSWORD).status, 200, "it is off");
    assert_eq!(
        owner.turn_off(PASSWORD).header("location"),
        Some("/account")
    );
    assert_eq!(owner.give_password(PASSWORD).status, 303);
    let void = owner.recover(OWNER, &owner.recovery[0], NEW);
    assert_eq!(
        void.status, 400,
        "a recovery code outlived the second factor"
    );

    let owner = Owner::new();
    owner.account("second-factor-off");
    assert_eq!(owner.give_password(PASSWORD).status, 303);
    let usage = owner.account("usage");
    assert!(usage.contains("second factor\tfalse\n"), "{usage}");
}
