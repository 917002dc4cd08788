//! Tokens with names, limits and presets: made on the dashboard and on the command line, and used
//! over a real socket.

use crate::history::without_request;
use crate::support::picture::Picture;
use crate::support::service::OWNER;
use crate::support::{Response, Server, TOWEBP, store};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const PASSWORD: &str = "correct horse battery";

/// A browser that is signed in to the dashboard.
struct Browser<'a> {
    server: &'a Server,
    cookie: String,
}

impl Browser<'_> {
    fn sign_up(server: &Server) -> Browser<'_> {
        let form = [("email", OWNER), ("password", PASSWORD)];
        let signed_up = server.request("POST", "/signup").form(&form).send();
        assert_eq!(signed_up.status, 303, "{}", signed_up.text());
        Browser {
            server,
            cookie: signed_up.session_cookie(),
        }
    }

    fn page(&self, path: &str) -> String {
        let request = self.server.request("GET", path);
        let page = request.header("Cookie", &self.cookie).send();
        assert_eq!(page.status, 200, "{path}: {}", page.text());
        page.text().to_owned()
    }

    /// Sends a form of the page of all tokens, with the session's secret.
    fn send(&self, path: &str, fields: &[(&str, &str)]) -> Response {
        let page = self.page("/tokens");
        let csrf = between(&page, "name=\"csrf\" value=\"", "\"");
        let fields = [&[("csrf", csrf)][..], fields].concat();
        let request = self.server.request("POST", path);
        request.header("Cookie", &self.cookie).form(&fields).send()
    }

    /// The text and the number of the token of this name.
    fn token(&self, name: &str) -> (String, String) {
        let page = self.page("/tokens");
        let (_, card) = page
            .split_once(&format!("scope=\"row\">{name}</th>"))
            .unwrap_or_else(|| panic!("no token {name} in {page}"));
        let number = between(card, "id=\"token-", "\"").to_owned();
        (self.server.token_of(&self.cookie, &number), number)
    }
}

fn between<'t>(text: &'t str, start: &str, end: &str) -> &'t str {
    let (_, rest) = text.split_once(start).expect("where it begins");
    rest.split_once(end).expect("where it ends").0
}

fn convert(server: &Server, token: &str, query: &str) -> Response {
    server
        .request("POST", &format!("/convert?token={token}{query}"))
        .header("Content-Type", "image/png")
        .body(Picture::waves(24, 16).png())
        .send()
}

#[track_caller]
fn assert_problem(answer: &Response, status: u16, code: &str) {
    let json = answer.json();
    assert_eq!(
        (answer.status, json["code"].as_str()),
        (status, Some(code)),
        "{}",
        answer.text()
    );
}

#[test]
fn a_token_s_life_on_the_dashboard() {
    let server = Server::start();
    let browser = Browser::sign_up(&server);
    let made = browser.send(
        "/token/create",
        &[
            ("name", "shop <1>"),
            ("per_minute", "3"),
            ("preset", "!watermark=© Example\nwidth=12"),
        ],
    );
    assert_eq!(made.status, 303, "{}", made.text());
    let (token, number) = browser.token("shop &lt;1&gt;");
    let converted = convert(&server, &token, "");
    assert_eq!(converted.status, 200, "{}", converted.text());
    assert_eq!(converted.header("image-width"), Some("12"), "its preset");
    assert_eq!(
        converted.header("ratelimit-policy"),
        Some("\"token-rate\";q=3;w=60")
    );
    let larger = convert(&server, &token, "&width=20");
    assert_eq!(larger.header("image-width"), Some("20"));
    for query in ["&watermark=mine", "&watermark_opacity=0"] {
        assert_problem(&convert(&server, &token, query), 400, "fixed_parameter");
    }
    assert_eq!(convert(&server, &token, "").status, 200);
    assert_problem(&convert(&server, &token, ""), 429, "rate_limited");

    let changed = browser.send(
        "/token/change",
        &[("token", &number), ("name", "shop"), ("preset", "")],
    );
    assert_eq!(changed.status, 303, "{}", changed.text());
    let (same, _) = browser.token("shop");
    assert_eq!(same, token);
    let free = convert(&server, &token, "&watermark=mine");
    assert_eq!(free.status, 200, "{}", free.text());
    assert_eq!(free.header("image-width"), Some("24"));

    let overlap = [("token", &*number), ("overlap", "24")];
    assert_eq!(browser.send("/token/rotate", &overlap).status, 303);
    let (next, _) = browser.token("shop");
    assert_ne!(next, token);
    for good in [&token, &next] {
        assert_eq!(convert(&server, good, "").status, 200, "both work");
    }
    let ended = [
        ("token", &*number),
        ("name", "shop"),
        ("ends", "2001-01-01"),
    ];
    let refused = browser.send("/token/change", &ended);
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("is over"), "{}", refused.text());
    assert_eq!(convert(&server, &next, "").status, 200, "nothing changed");
    // The operator may, and what is over stays when something else is changed.
    let ends = Command::new(TOWEBP)
        .args([
            "account",
            "set-token",
            OWNER,
            "shop",
            "--ends",
            "2001-01-01",
        ])
        .args(store::flags(&server.data()))
        .status();
    assert!(ends.expect("it starts").success());
    assert_eq!(browser.send("/token/change", &ended).status, 303);
    assert_problem(&convert(&server, &next, ""), 401, "token_expired");
    let deleted = browser.send("/token/delete", &[("token", &number)]);
    assert_eq!(deleted.status, 303);
    for gone in [&token, &next] {
        assert_problem(&convert(&server, gone, ""), 401, "token_invalid");
    }
    let page = browser.page("/tokens");
    assert!(page.contains("Deleted tokens: 1"), "{page}");

    let refused = browser.send("/token/create", &[("name", "x"), ("preset", "qality=1")]);
    assert_eq!(refused.status, 400);
    let text = refused.text();
    assert!(text.contains("there is no such parameter"), "{text}");
    assert!(text.contains("qality=1"), "the draft is lost: {text}");
}

#[test]
fn changes_of_tokens_are_limited_by_account() {
    const CHANGES: u64 = 60;
    let server = Server::start();
    let browser = Browser::sign_up(&server);
    let page = browser.page("/tokens");
    let csrf = between(&page, "name=\"csrf\" value=\"", "\"");
    // An attempt counts although it changes nothing: the name is empty.
    let change = || {
        let request = server.request("POST", "/token/create");
        let form = [("csrf", csrf), ("name", "")];
        request.header("Cookie", &browser.cookie).form(&form).send()
    };
    let start = Instant::now();
    let mut accepted = 0;
    let rejected = loop {
        let answer = change();
        if answer.status == 429 {
            break answer;
        }
        assert_eq!(answer.status, 400, "{}", answer.text());
        accepted += 1;
        // One more every ten seconds.
        let allowed = CHANGES + start.elapsed().as_secs() / 10 + 1;
        assert!(accepted <= allowed, "{accepted} of {allowed} changes");
    };
    assert!(accepted >= CHANGES, "rejected after {accepted} changes");
    let wait = rejected.header("retry-after").expect("how long to wait");
    let wait: u64 = wait.parse().expect("seconds");
    assert!((1..=600).contains(&wait), "Retry-After: {wait}");
    let text = rejected.text();
    assert!(text.contains("changed too often"), "{text}");
    // The token converts all the same, and other accounts are not limited.
    let (token, _) = browser.token("default");
    assert_eq!(convert(&server, &token, "").status, 200);
    let form = [("email", "other@example.org"), ("password", PASSWORD)];
    let signed_up = server.request("POST", "/signup").form(&form).send();
    let other = Browser {
        server: &server,
        cookie: signed_up.session_cookie(),
    };
    let made = other.send("/token/create", &[("name", "shop")]);
    assert_eq!(made.status, 303, "{}", made.text());
}

#[test]
fn history_and_metrics_tell_the_token_and_only_default_reads_it() {
    let server = Server::start();
    let browser = Browser::sign_up(&server);
    browser.send("/token/create", &[("name", "a, \"b\"")]);
    let (token, number) = browser.token("a, &quot;b&quot;");
    let (default, _) = browser.token("default");
    for token in [&token, &default, &token] {
        assert_eq!(convert(&server, token, "").status, 200);
    }
    browser.send("/token/delete", &[("token", &number)]);
    let get = |path: &str, token: &str| {
        let request = server.request("GET", path);
        let bearer = format!("Bearer {token}");
        request.header("Authorization", &bearer).send()
    };
    let json = get("/api/usage", &default).json();
    let names: Vec<_> = json["entries"]
        .as_array()
        .expect("entries")
        .iter()
        .map(|entry| entry["token"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["a, \"b\"", "default", "a, \"b\""]);
    let told = &json["tokens"][1];
    assert_eq!(told["name"], "a, \"b\"");
    assert_eq!(
        (&told["conversions"], &told["is_deleted"]),
        (&2.into(), &true.into())
    );
    let csv = get("/api/usage.csv", &default);
    let rows: Vec<_> = csv.text().lines().collect();
    assert!(
        rows[0].ends_with(",milliseconds,token,request_id"),
        "{rows:?}"
    );
    assert!(
        without_request(rows[1]).ends_with(",\"a, \"\"b\"\"\""),
        "{rows:?}"
    );
    assert!(without_request(rows[2]).ends_with(",default"), "{rows:?}");

    browser.send("/token/create", &[("name", "public page")]);
    let (public, _) = browser.token("public page");
    for path in ["/api/usage", "/api/usage.csv"] {
        assert_problem(&get(path, &public), 403, "token_converts_only");
    }
}

fn account(server: &Server, args: &[&str]) -> String {
    let command = Command::new(TOWEBP)
        .arg("account")
        .args(args)
        .args(store::flags(&server.data()))
        .output()
        .expect("it starts");
    let error = String::from_utf8_lossy(&command.stderr);
    assert!(command.status.success(), "{args:?}: {error}");
    String::from_utf8(command.stdout)
        .expect("text")
        .trim()
        .to_owned()
}

#[test]
fn the_operator_limits_and_disables_an_account() {
    let server = Server::start_with(&["--monthly-quota", "1"]);
    let token = server.create_account(OWNER);
    assert_eq!(convert(&server, &token, "").status, 200);
    assert_problem(&convert(&server, &token, ""), 429, "quota_exceeded");
    account(&server, &["limit", OWNER, "--monthly", "3", "--rate", "2"]);
    for _ in 0..2 {
        assert_eq!(convert(&server, &token, "").status, 200);
    }
    assert_problem(&convert(&server, &token, ""), 429, "rate_limited");
    account(&server, &["limit", OWNER, "--rate", "0"]);
    assert_problem(&convert(&server, &token, ""), 429, "quota_exceeded");
    account(&server, &["limit", OWNER, "--monthly", "0"]);
    assert_eq!(convert(&server, &token, "").status, 200);
    account(&server, &["disable", OWNER]);
    assert_problem(&convert(&server, &token, ""), 403, "account_disabled");
    account(&server, &["enable", OWNER]);
    assert_eq!(convert(&server, &token, "").status, 200);
    let usage = account(&server, &["usage", OWNER]);
    assert!(usage.starts_with("conversions\t5\n"), "{usage}");
    account(&server, &["limit", OWNER, "--monthly", "server"]);
    assert_problem(&convert(&server, &token, ""), 429, "quota_exceeded");
}

/// The accounts of [`a_hundred_tokens`].
const OWNERS: [&str; 2] = ["a@example.org", "b@example.org"];

/// Tokens of each account.
const TOKENS: usize = 50;

/// All tokens of two accounts, each with this limit.
fn a_hundred_tokens(server: &Server, limit: [&str; 2]) -> Vec<String> {
    let set_token =
        |owner, name: &str| account(server, &[&["set-token", owner, name][..], &limit].concat());
    let of = |owner| {
        let first = server.create_account(owner);
        set_token(owner, "default");
        let others = (1..TOKENS).map(|number| set_token(owner, &format!("token {number}")));
        std::iter::once(first).chain(others).collect::<Vec<_>>()
    };
    OWNERS.into_iter().flat_map(of).collect()
}

/// How often each token of an account has converted, in the order in which they were made.
fn conversions(server: &Server, owner: &str) -> Vec<u32> {
    let usage = account(server, &["usage", owner]);
    let rows = usage.lines().filter(|line| line.starts_with("token\t"));
    let counts = rows.filter_map(|row| row.split('\t').nth(2));
    counts
        .map(|count| count.parse().expect("a number"))
        .collect()
}

#[test]
fn a_hundred_tokens_have_exactly_what_they_may() {
    const MONTHLY: usize = 3;
    let server = Server::start();
    let tokens = a_hundred_tokens(&server, ["--monthly", "3"]);
    let next = AtomicUsize::new(0);
    let converted = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                // Every token is used by many threads at once.
                loop {
                    let turn = next.fetch_add(1, Ordering::Relaxed);
                    let Some(token) = tokens.get(turn / 6) else {
                        break;
                    };
                    let answer = convert(&server, token, "&quality=1");
                    if answer.status == 200 {
                        converted.fetch_add(1, Ordering::Relaxed);
                    } else {
                        assert_problem(&answer, 429, "quota_exceeded");
                    }
                }
            });
        }
    });
    // Some may have been refused while the last place was taken by one that was under way.
    for token in &tokens {
        while convert(&server, token, "&quality=1").status == 200 {
            converted.fetch_add(1, Ordering::Relaxed);
        }
    }
    assert_eq!(converted.into_inner(), tokens.len() * MONTHLY);
    for owner in OWNERS {
        assert_eq!(conversions(&server, owner), [3; TOKENS]);
    }
}

/// What was seen of one token.
#[derive(Default)]
struct Seen {
    converted: u32,
    first_sent: Option<Instant>,
    first_answered: Option<Instant>,
    last_answered: Option<Instant>,
    /// When the last request that was refused was sent.
    refused: Option<Instant>,
}

#[test]
fn a_hundred_tokens_keep_to_their_rates_under_load() {
    const RATE: u32 = 20;
    const SHARE: Duration = Duration::from_secs(60 / RATE as u64);
    /// Long enough for each token to get several of its times back.
    const TIME: Duration = Duration::from_secs(8);
    let server = Server::start();
    let tokens = a_hundred_tokens(&server, ["--rate", "20"]);
    let seen: Vec<Mutex<Seen>> = tokens.iter().map(|_| Mutex::default()).collect();
    let next = AtomicUsize::new(0);
    let (began, turns) = (Instant::now(), 4 * tokens.len());
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                // Four threads at once use up what a token has, again and again.
                loop {
                    let turn = next.fetch_add(1, Ordering::Relaxed);
                    if turn >= 2 * turns && began.elapsed() >= TIME {
                        break;
                    }
                    let number = turn % turns / 4;
                    while use_once(&server, &tokens[number], &seen[number]) {}
                }
            });
        }
    });
    let counts: Vec<u32> = OWNERS.map(|owner| conversions(&server, owner)).concat();
    for (seen, counted) in seen.into_iter().zip(counts) {
        let seen = seen.into_inner().expect("nobody panicked");
        assert_eq!(seen.converted, counted);
        let shares = |from: Option<Instant>, to: Option<Instant>| {
            let time = to.expect("seen") - from.expect("seen");
            time.as_secs_f64() / SHARE.as_secs_f64()
        };
        // The server took all within this time, ...
        let most = f64::from(RATE) + shares(seen.first_sent, seen.last_answered);
        // ... and had none left at some moment after the last of these two.
        let least = f64::from(RATE - 1) + shares(seen.first_answered, seen.refused);
        let converted = f64::from(seen.converted);
        assert!(
            (least..=most).contains(&converted),
            "{converted} conversions; at least {least:.2} and at most {most:.2} were expected"
        );
    }
}

/// Converts with a token, and says whether it was not refused.
fn use_once(server: &Server, token: &str, seen: &Mutex<Seen>) -> bool {
    let sent = Instant::now();
    let answer = convert(server, token, "&quality=1");
    let answered = Instant::now();
    let mut seen = seen.lock().expect("nobody panicked");
    if answer.status != 200 {
        assert_problem(&answer, 429, "rate_limited");
        seen.refused = seen.refused.max(Some(sent));
        return false;
    }
    let earliest = |known: Option<Instant>, other| Some(known.map_or(other, |it| it.min(other)));
    seen.converted += 1;
    seen.first_sent = earliest(seen.first_sent, sent);
    seen.first_answered = earliest(seen.first_answered, answered);
    seen.last_answered = seen.last_answered.max(Some(answered));
    true
}
