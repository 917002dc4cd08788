//! What one replica does holds at the others: tokens, sessions, invitations, throttling, rates,
//! histories.

use crate::replicas::{OWNER, Replicas, convert, get};
use crate::support::postgres::shared;
use crate::support::{Response, Server};
use std::collections::HashSet;
use std::thread;
use std::time::Duration;

const PASSWORD: &str = "correct horse battery";

/// Three replicas over a new database; `None` where there is no PostgreSQL.
fn three(flags: &[&str]) -> Option<(Replicas, Vec<Server>)> {
    let replicas = Replicas::of(shared()?.database());
    let servers = thread::scope(|scope| {
        let starts: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| replicas.start(flags)))
            .collect();
        let starts = starts.into_iter();
        starts
            .map(|start| start.join().expect("it starts"))
            .collect()
    });
    Some((replicas, servers))
}

#[test]
fn every_replica_takes_the_token_and_tells_the_same_history() {
    let Some((replicas, servers)) = three(&[]) else {
        return;
    };
    let token = replicas.create_account(OWNER);
    for turn in 0..5 {
        for server in &servers {
            let answer = convert(server, &token);
            assert_eq!(answer.status, 200, "turn {turn}: {}", answer.text());
        }
    }
    let whole = |target: &str| {
        let told: HashSet<String> = servers
            .iter()
            .map(|server| {
                let answer = get(server, &token, target);
                assert_eq!(answer.status, 200, "{target}: {}", answer.text());
                answer.text().to_owned()
            })
            .collect();
        assert_eq!(told.len(), 1, "{target}: {told:?}");
        told.into_iter().next().expect("one")
    };
    assert_eq!(whole("/api/usage.csv").lines().count(), 1 + 15);
    assert_eq!(whole("/api/usage.ndjson").lines().count(), 15);
    for target in ["/api/usage/days", "/api/usage/months", "/api/failures"] {
        whole(target);
    }
    // Each page from another replica.
    let (mut ids, mut before) = (Vec::new(), String::new());
    for server in servers.iter().cycle() {
        let page = get(server, &token, &format!("/api/usage?limit=4{before}")).json();
        assert_eq!(page["totals"]["conversions"], 15, "{page}");
        let entries = page["entries"].as_array().expect("a list");
        ids.extend(entries.iter().map(|entry| entry["id"].to_string()));
        match page["next_before"].as_str() {
            Some(next) => before = format!("&before={next}"),
            None => break,
        }
    }
    let different: HashSet<&String> = ids.iter().collect();
    assert_eq!((ids.len(), different.len()), (15, 15), "{ids:?}");
    let usage = replicas.done(&["account", "usage", OWNER]);
    assert!(usage.contains("15"), "{usage}");
    let checked = replicas.check();
    assert!(checked.contains("15"), "{checked}");
}

#[test]
fn a_token_that_one_replica_replaced_is_refused_by_all() {
    let Some((replicas, servers)) = three(&[]) else {
        return;
    };
    let browser = Browser::sign("/signup", &servers[0]);
    let mut token = browser.token();
    for (turn, from) in servers.iter().cycle().take(4).enumerate() {
        // So that each knows it.
        for server in &servers {
            assert_eq!(convert(server, &token).status, 200, "turn {turn}");
        }
        let browser = Browser {
            server: from,
            cookie: browser.cookie.clone(),
        };
        let answer = browser.post("/token/rotate", &[("token", "0")]);
        assert_eq!(answer.status, 303, "{}", answer.text());
        for server in &servers {
            let refused = convert(server, &token);
            assert_eq!(refused.status, 401, "turn {turn}: {}", refused.text());
        }
        token = browser.token();
        for server in &servers {
            assert_eq!(convert(server, &token).status, 200, "turn {turn}");
        }
    }
    let rotated = replicas.done(&["account", "rotate", OWNER]);
    for server in &servers {
        assert_eq!(convert(server, &token).status, 401);
        assert_eq!(convert(server, &rotated).status, 200);
    }
    replicas.done(&["account", "disable", OWNER]);
    for server in &servers {
        assert_eq!(convert(server, &rotated).status, 403);
    }
    replicas.done(&["account", "enable", OWNER]);
    for server in &servers {
        assert_eq!(convert(server, &rotated).status, 200);
    }
}

#[test]
fn an_account_that_one_replica_deleted_is_gone_at_all() {
    let Some((replicas, servers)) = three(&[]) else {
        return;
    };
    let browser = Browser::sign("/signup", &servers[0]);
    let token = browser.token();
    for server in &servers {
        assert_eq!(convert(server, &token).status, 200);
    }
    let answer = browser.post(
        "/account/delete",
        &[("password", PASSWORD), ("confirmed", "yes")],
    );
    assert_eq!(answer.status, 303, "{}", answer.text());
    for server in &servers {
        assert_eq!(convert(server, &token).status, 401);
        let browser = Browser {
            server,
            cookie: browser.cookie.clone(),
        };
        assert!(!browser.is_signed_in());
    }
    // The address is free, and the new account has nothing of the old one.
    let token = replicas.create_account(OWNER);
    for server in &servers {
        let page = get(server, &token, "/api/usage").json();
        assert_eq!(page["totals"]["conversions"], 0, "{page}");
    }
}

#[test]
fn a_session_goes_on_at_every_replica_and_ends_at_all() {
    let Some((_replicas, servers)) = three(&[]) else {
        return;
    };
    let here = Browser::sign("/signup", &servers[0]);
    let there = Browser::sign("/signin", &servers[1]);
    let at = |server, of: &Browser| {
        let cookie = of.cookie.clone();
        Browser { server, cookie }.is_signed_in()
    };
    for server in &servers {
        assert!(at(server, &here) && at(server, &there));
    }
    assert_eq!(there.post("/signout", &[]).status, 303);
    for server in &servers {
        assert!(at(server, &here) && !at(server, &there));
    }
}

#[test]
fn an_invitation_makes_one_account_wherever_it_is_used() {
    let Some((replicas, servers)) = three(&["--signup", "invite", "--signup-limit", "0"]) else {
        return;
    };
    for turn in 0..3 {
        let code = replicas.done(&["account", "invite"]);
        let code = code.lines().next().expect("the code");
        let statuses = thread::scope(|scope| {
            let tries: Vec<_> = (0..6)
                .map(|number| {
                    let email = format!("{turn}-{number}@example.org");
                    let server = &servers[number % servers.len()];
                    scope.spawn(move || {
                        let form = [("email", &*email), ("password", PASSWORD), ("invite", code)];
                        server.request("POST", "/signup").form(&form).send().status
                    })
                })
                .collect();
            let tries = tries.into_iter();
            tries
                .map(|one| one.join().expect("an answer"))
                .collect::<Vec<_>>()
        });
        let made = statuses.iter().filter(|status| **status == 303).count();
        assert_eq!(made, 1, "{statuses:?}");
    }
    assert_eq!(
        replicas
            .done(&["account", "list"])
            .lines()
            .filter(|line| line.contains('@'))
            .count(),
        3
    );
}

#[test]
fn wrong_passwords_are_counted_over_all_replicas() {
    let Some((replicas, servers)) = three(&["--signin-limit", "0"]) else {
        return;
    };
    replicas.create_account(OWNER);
    let sign_in = |server: &Server| {
        let form = [("email", OWNER), ("password", "wrong horse")];
        server.request("POST", "/signin").form(&form).send().status
    };
    for server in servers.iter().cycle().take(5) {
        assert_eq!(sign_in(server), 400, "five are free");
    }
    // The longer the waits become, the surer it is that none has passed meanwhile.
    let refused = servers
        .iter()
        .cycle()
        .take(9)
        .filter(|server| sign_in(server) == 429);
    assert!(refused.count() >= 5);
}

#[test]
fn a_rate_is_divided_among_the_replicas() {
    const RATE: usize = 60;
    let Some((replicas, servers)) = three(&["--rate-limit", "60"]) else {
        return;
    };
    let token = replicas.create_account(OWNER);
    // They learn of each other every 5 s.
    thread::sleep(Duration::from_secs(11));
    let done: Vec<usize> = servers
        .iter()
        .map(|server| {
            let answered = |_: &usize| convert(server, &token).status == 200;
            (0..RATE).take_while(answered).count()
        })
        .collect();
    let all: usize = done.iter().sum();
    // While they are asked, some more are allowed again: one a second.
    assert!((RATE..RATE * 3 / 2).contains(&all), "{done:?}");
    assert!(done.iter().all(|done| *done >= RATE / 3), "{done:?}");
}

/// A browser that is signed in.
struct Browser<'s> {
    server: &'s Server,
    cookie: String,
}

impl Browser<'_> {
    fn sign<'s>(how: &str, server: &'s Server) -> Browser<'s> {
        let form = [("email", OWNER), ("password", PASSWORD)];
        let signed = server.request("POST", how).form(&form).send();
        assert_eq!(signed.status, 303, "{}", signed.text());
        Browser {
            server,
            cookie: signed.session_cookie(),
        }
    }

    fn get(&self, path: &str) -> Response {
        let request = self.server.request("GET", path);
        request.header("Cookie", &self.cookie).send()
    }

    /// Sends a form with the session's secret.
    fn post(&self, path: &str, fields: &[(&str, &str)]) -> Response {
        let page = self.get("/tokens");
        assert_eq!(page.status, 200, "{}", page.text());
        let csrf = between(page.text(), "name=\"csrf\" value=\"");
        let fields = [&[("csrf", csrf)][..], fields].concat();
        let request = self.server.request("POST", path);
        request.header("Cookie", &self.cookie).form(&fields).send()
    }

    /// The token that the account has from its beginning.
    fn token(&self) -> String {
        self.server.token_of(&self.cookie, "0")
    }

    fn is_signed_in(&self) -> bool {
        self.get("/dashboard").status == 200
    }
}

/// What stands between this and the next quotation mark.
fn between<'t>(text: &'t str, start: &str) -> &'t str {
    let (_, rest) = text.split_once(start).expect("where it begins");
    rest.split_once('"').expect("where it ends").0
}
