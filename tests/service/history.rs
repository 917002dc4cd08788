//! The history as its owner reads it: filters, sums, the whole of it line by line, and failed
//! conversions.

use crate::support::picture::Picture;
use crate::support::service::Service;
use crate::support::{Folder, Response, Server, TOWEBP, store};
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, SystemTime};

/// Makes a token by the command line.
fn make_token(service: &Service, name: &str, more: &[&str]) -> String {
    let made = Command::new(TOWEBP)
        .args(["account", "set-token", crate::support::service::OWNER, name])
        .args(more)
        .args(store::flags(&service.data()))
        .output()
        .expect("the program starts");
    assert!(made.status.success(), "{made:?}");
    let made = Command::new(TOWEBP)
        .args([
            "account",
            "token",
            crate::support::service::OWNER,
            "--name",
            name,
        ])
        .args(store::flags(&service.data()))
        .output()
        .expect("the program starts");
    assert!(made.status.success(), "{made:?}");
    String::from_utf8(made.stdout)
        .expect("a token")
        .trim()
        .to_owned()
}

fn convert(service: &Service, token: &str, query: &str, media_type: &str, body: &[u8]) -> Response {
    let bearer = format!("Bearer {token}");
    let headers = [("Content-Type", media_type), ("Authorization", &bearer)];
    service.request("POST", &format!("/convert{query}"), &headers, body)
}

fn get(service: &Service, target: &str) -> Response {
    let bearer = format!("Bearer {}", service.token);
    service.get(target, &[("Authorization", &bearer)])
}

#[track_caller]
fn get_json(service: &Service, target: &str) -> Value {
    let answer = get(service, target);
    assert_eq!(answer.status, 200, "{target}: {}", answer.text());
    answer.json()
}

/// The values of a member of each object in a list.
fn members<'v>(list: &'v Value, name: &str) -> Vec<&'v Value> {
    let list = list.as_array().expect("a list");
    list.iter().map(|it| &it[name]).collect()
}

/// A row of CSV without its last cell, which has to be the id of a request.
pub fn without_request(row: &str) -> &str {
    let (before, id) = row.rsplit_once(',').expect("it has cells");
    let is_digit = |it: u8| matches!(it, b'0'..=b'9' | b'a'..=b'f');
    assert!(id.len() == 32 && id.bytes().all(is_digit), "{row}");
    before
}

fn today() -> String {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    now[..10].to_owned()
}

/// Two PNGs by `default`, a GIF by `shop`.
fn with_conversions() -> (Service, String) {
    let service = Service::start_with(&["--max-body", "100000"]);
    let shop = make_token(&service, "shop", &[]);
    let png = Picture::waves(20, 10).png();
    let gif = Picture::waves(30, 10).gif();
    for (token, media_type, body) in [
        (&service.token, "image/png", &png),
        (&shop, "image/gif", &gif),
        (&service.token, "image/png", &png),
    ] {
        let answer = convert(&service, token, "", media_type, body);
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    (service, shop)
}

#[test]
fn a_history_is_filtered_and_summed_up() {
    let (service, _) = with_conversions();
    let today = today();
    let page = get_json(&service, "/api/usage");
    let ids = members(&page["entries"], "id").into_iter();
    let ids: Vec<&str> = ids.filter_map(Value::as_str).collect();
    let [third, second, first] = ids[..] else {
        panic!("{ids:?}");
    };
    if !store::is_postgres() {
        assert_eq!(ids, ["3", "2", "1"]);
    }
    for (query, ids) in [
        ("token_name=shop", &[second][..]),
        ("format=png", &[third, first]),
        ("format=png&token_name=shop", &[]),
        ("format=&from=&to=&token_name=", &ids),
        (&format!("from={today}"), &ids),
        ("to=2020-01-01", &[]),
        (&format!("limit=1&format=png&before={third}"), &[first]),
    ] {
        let page = get_json(&service, &format!("/api/usage?{query}"));
        assert_eq!(members(&page["entries"], "id"), ids, "{query}: {page}");
        assert_eq!(page["totals"]["conversions"], 3, "totals are of everything");
    }
    for (path, name, length) in [("days", "day", 10), ("months", "month", 7)] {
        for (query, conversions) in [("", 3), ("?format=png", 2), ("?token_name=shop", 1)] {
            let sums = get_json(&service, &format!("/api/usage/{path}{query}"));
            assert_eq!(members(&sums["sums"], name), [&today[..length]], "{sums}");
            let sum = &sums["sums"][0];
            assert_eq!(sum["conversions"], conversions, "{path}{query}: {sum}");
            assert!(sum["input_bytes"].as_u64() > Some(0), "{sum}");
        }
        let none = get_json(&service, &format!("/api/usage/{path}?to=2020-01-01"));
        assert_eq!(none["sums"], Value::Array(Vec::new()));
    }
    let lines = get(&service, "/api/usage.ndjson?format=png");
    assert_eq!(lines.header("content-type"), Some("application/x-ndjson"));
    let listed: Vec<Value> = lines
        .text()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["id"].clone())
        .collect();
    assert_eq!(listed, [third, first]);
    let rows = get(&service, "/api/usage.csv?token_name=shop");
    let rows: Vec<_> = rows.text().lines().collect();
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(
        rows[1].starts_with(&format!("{second},")) && without_request(rows[1]).ends_with(",shop"),
        "{rows:?}"
    );
}

#[test]
fn a_filter_that_cannot_be_used_is_named() {
    let (service, _) = with_conversions();
    for path in [
        "/api/usage",
        "/api/usage.csv",
        "/api/usage.ndjson",
        "/api/usage/days",
    ] {
        for (query, detail) in [
            (
                "from=yesterday",
                "from is \"yesterday\"; allowed: days (UTC)",
            ),
            ("to=2026-02-30", "to is \"2026-02-30\"; allowed: days (UTC)"),
            (
                "from=2026-11-02&to=2026-11-01",
                "to is \"2026-11-01\"; allowed: the day given as from",
            ),
            (
                "token_name=Shop",
                "token_name is \"Shop\"; allowed: the names",
            ),
            (
                "format=avif",
                "format is \"avif\"; allowed: png, jpeg, gif, bmp, webp or tiff",
            ),
        ] {
            let answer = get(&service, &format!("{path}?{query}"));
            let found = answer.problem(400, "invalid_parameter");
            assert!(found.starts_with(detail), "{path}?{query}: {found}");
        }
        let twice = get(&service, &format!("{path}?format=png&format=gif"));
        twice.problem(400, "repeated_parameter");
    }
    for status in ["200", "4x", "600", "abc"] {
        let answer = get(&service, &format!("/api/failures?status={status}"));
        let found = answer.problem(400, "invalid_parameter");
        assert!(
            found.contains("allowed: a status code from 400 to 599"),
            "{found}"
        );
    }
}

#[test]
fn failed_conversions_are_kept_apart_and_without_their_query() {
    let (service, shop) = with_conversions();
    let limited = make_token(&service, "limited", &["--rate", "1"]);
    let png = Picture::waves(20, 10).png();
    let damaged = &png[..png.len() - 20];
    assert_eq!(
        convert(&service, &limited, "", "image/png", &png).status,
        200
    );
    let failures = [
        // What the head tells, what the worker finds, what the front rejects, what is limited.
        (
            &service.token,
            "?quality=secret1",
            "image/png",
            &png[..],
            "invalid_parameter",
        ),
        (
            &shop,
            "?watermark=secret2",
            "image/png",
            damaged,
            "invalid_image",
        ),
        (
            &shop,
            "",
            "image/png",
            &vec![b'x'; 100_001][..],
            "body_too_large",
        ),
        (&limited, "", "image/png", &png[..], "rate_limited"),
        (
            &service.token,
            "",
            "text/plain",
            b"",
            "content_type_unsupported",
        ),
    ];
    for (token, query, media_type, body, code) in &failures {
        let answer = convert(&service, token, query, media_type, body);
        assert_eq!(answer.json()["code"], *code, "{}", answer.text());
    }
    // Nobody's.
    convert(&service, "twp_0", "", "image/png", &png).problem(401, "token_invalid");

    let page = get(&service, "/api/failures");
    assert!(!page.text().contains("secret"), "{}", page.text());
    let page = page.json();
    let codes: Vec<_> = failures.iter().rev().map(|(.., code)| *code).collect();
    assert_eq!(members(&page["failures"], "code"), codes, "{page}");
    let tokens = members(&page["failures"], "token");
    assert_eq!(tokens, ["default", "limited", "shop", "shop", "default"]);
    let statuses = members(&page["failures"], "status");
    assert_eq!(statuses, [400, 429, 413, 400, 400]);
    let sizes = members(&page["failures"], "input_bytes");
    let size = |bytes: &[u8]| Value::from(bytes.len());
    assert_eq!(
        sizes,
        [
            &0.into(),
            &size(&png),
            &100_001.into(),
            &size(damaged),
            &size(&png)
        ]
    );
    assert_eq!(page["next_before"], Value::Null);
    for (query, expected) in [
        ("status=429", &["rate_limited"][..]),
        ("status=5xx", &[]),
        (
            "token_name=shop&status=4xx",
            &["body_too_large", "invalid_image"],
        ),
        ("to=2020-01-01", &[]),
        ("limit=2", &codes[..2]),
    ] {
        let page = get_json(&service, &format!("/api/failures?{query}"));
        assert_eq!(members(&page["failures"], "code"), expected, "{query}");
    }
    let next = get_json(&service, "/api/failures?limit=2");
    let before = next["next_before"].as_str().expect("a text");
    let rest = get_json(&service, &format!("/api/failures?before={before}"));
    assert_eq!(members(&rest["failures"], "code"), codes[2..]);
    let rows = get(&service, "/api/failures.csv?status=413");
    assert!(
        rows.text()
            .starts_with("id,time,status,code,input_bytes,token,request_id\r\n")
    );
    assert!(
        without_request(rows.text().trim_end()).ends_with(",413,body_too_large,100001,shop"),
        "{}",
        rows.text()
    );
    // They count nowhere.
    assert_eq!(get_json(&service, "/api/usage")["totals"]["conversions"], 4);
    let bearer = format!("Bearer {shop}");
    let other = service.get("/api/failures", &[("Authorization", &bearer)]);
    other.problem(403, "token_converts_only");
}

#[test]
fn rows_name_the_requests_as_their_responses_did() {
    let service = Service::start();
    for (path, list, body) in [
        ("usage", "entries", Picture::waves(20, 10).png()),
        ("failures", "failures", Vec::new()),
    ] {
        let answer = service.convert(&[], "image/png", &body);
        let id = answer.header("x-request-id").expect("it is in each answer");
        let page = get_json(&service, &format!("/api/{path}"));
        assert_eq!(members(&page[list], "request_id"), [id], "{page}");
        let rows = get(&service, &format!("/api/{path}.csv"));
        assert!(
            rows.text().ends_with(&format!(",{id}\r\n")),
            "{}",
            rows.text()
        );
    }
}

#[test]
fn failures_outlive_a_server_that_ends_gracefully() {
    let service = Service::start();
    service
        .convert(&[], "image/png", b"")
        .problem(400, "body_empty");
    let Service { mut server, token } = service;
    server.signal(rustix::process::Signal::TERM);
    server.ended_within(Duration::from_secs(30));
    let service = Service::resume(server.kill(), token);
    let page = get_json(&service, "/api/failures");
    assert_eq!(members(&page["failures"], "code"), ["body_empty"]);
}

#[test]
fn the_dashboard_shows_what_is_filtered_and_what_failed() {
    let server = Server::start();
    let form = [
        ("email", "a@example.org"),
        ("password", "correct horse battery"),
    ];
    let signed_up = server.request("POST", "/signup").form(&form).send();
    let cookie = signed_up.session_cookie();
    let page = |target: &str| {
        let page = server
            .request("GET", target)
            .header("Cookie", &cookie)
            .send();
        (page.status, page.text().to_owned())
    };
    let (_, empty) = page("/dashboard");
    for part in ["Filter", "By day", "Failed conversions"] {
        assert!(!empty.contains(part), "{part} is shown to somebody new");
    }
    let token = server.token_of(&cookie, "0");
    let service = Service { server, token };
    let png = Picture::waves(20, 10).png();
    service.webp(&[], &png);
    service
        .convert(&[], "image/gif", &png)
        .problem(400, "wrong_format");
    let page = |target: &str| {
        let page = service.get(target, &[("Cookie", &cookie)]);
        (page.status, page.text().to_owned())
    };
    let (_, full) = page("/dashboard");
    for part in [
        "Filter",
        "By day",
        "Failed conversions",
        "wrong_format",
        "The picture is not what Content-Type says",
        "<details class=\"filter\">",
    ] {
        assert!(full.contains(part), "{part} is missing in {full}");
    }
    let (_, filtered) = page("/dashboard?format=png&from=&to=");
    for part in [
        "1 conversion of this filter.",
        "href=\"/api/usage.csv?format=png\"",
        "<option value=\"png\" selected>",
    ] {
        assert!(filtered.contains(part), "{part} is missing in {filtered}");
    }
    // Failures are grouped by reason, with what to do.
    assert!(full.contains("id=\"reasons\"") && full.contains("One by one"));
    assert!(full.contains("Send the type that the file has as Content-Type."));
    // Two pages of the history lead to each other.
    for _ in 0..25 {
        service.webp(&[], &png);
    }
    let link = |page: &str, name: &str| {
        let (before, _) = page.split_once(&format!("\">{name}</a>"))?;
        let (_, link) = before.rsplit_once("href=\"")?;
        Some(link.replace("&amp;", "&"))
    };
    let (_, newest) = page("/dashboard");
    assert_eq!(link(&newest, "Newer"), None);
    let older = link(&newest, "Older").expect("there are more");
    let (older, _) = older.split_once('#').expect("browsers keep the fragment");
    let (_, older) = page(older);
    assert_eq!(link(&older, "Newer").as_deref(), Some("/dashboard#history"));
    assert_eq!(link(&older, "Older"), None);
    let (_, none) = page("/dashboard?format=bmp");
    assert!(none.contains("No conversion is like that"), "{none}");
    let (status, problem) = page("/dashboard?from=x");
    assert_eq!(status, 400);
    assert!(
        problem.contains("First day: &quot;x&quot; was given; allowed: days (UTC)"),
        "{problem}"
    );
}

#[test]
fn how_long_histories_are_kept_has_bounds() {
    for days in ["0", "36501", "-1", "ten"] {
        let refused = Command::new(TOWEBP)
            .args(["serve", "--history-keep", days])
            .output()
            .expect("the program starts");
        let text = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success(), "{days}");
        assert!(
            text.contains("--history-keep") && text.contains("1 to 36500"),
            "{days}: {text}"
        );
    }
    for days in ["1", "36500"] {
        let server = Server::start_in(Folder::new(), &["--history-keep", days]);
        assert_eq!(server.request("GET", "/readyz").send().status, 200);
    }
}

/// Spreadsheets take a cell that begins so for a formula, which may start programs (OWASP, "CSV
/// Injection").
#[test]
fn a_token_s_name_is_no_formula_in_a_spreadsheet() {
    let service = Service::start();
    let names = ["=1+cmd|' /C calc'!A0", "+1", "@SUM(1)", "\u{ff1d}1"];
    for name in names {
        let token = make_token(&service, name, &[]);
        let png = Picture::waves(6, 4).png();
        assert_eq!(convert(&service, &token, "", "image/png", &png).status, 200);
        let failed = convert(&service, &token, "", "image/png", b"no picture");
        assert_eq!(failed.status, 400);
    }
    for path in ["/api/usage.csv", "/api/failures.csv"] {
        let csv = get(&service, path);
        let mut rows: Vec<&str> = csv.text().lines().skip(1).collect();
        rows.reverse();
        assert_eq!(rows.len(), names.len(), "{path}: {rows:?}");
        for (row, name) in rows.iter().zip(names) {
            let row = without_request(row);
            assert!(row.ends_with(&format!(",\"'{name}\"")), "{path}: {row}");
        }
    }
    // JSON has the names as they are.
    let page = get_json(&service, "/api/usage");
    let mut listed = members(&page["entries"], "token");
    listed.reverse();
    assert_eq!(listed, names);
}
