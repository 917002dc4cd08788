//! The stylesheets, scripts and icon of the pages, as browsers and caches get them.

use crate::support::{Response, Server};
use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

fn get(server: &Server, path: &str, headers: &[(&str, &str)]) -> Response {
    let request = server.request("GET", path);
    let request = headers.iter().fold(request, |request, (name, value)| {
        request.header(name, value)
    });
    request.send()
}

#[test]
fn browsers_get_them_compressed_and_others_as_they_are() {
    let server = Server::start();
    for path in [
        "/style.css",
        "/convert.css",
        "/app.js",
        "/usage.js",
        "/tokens.js",
        "/convert.js",
        "/start.js",
        "/browser/index.js",
        "/browser/worker.js",
        "/icon.svg",
    ] {
        let plain = get(&server, path, &[]);
        let gzip = get(&server, path, &[("Accept-Encoding", "gzip, deflate, br")]);
        assert_eq!((plain.status, gzip.status), (200, 200), "{path}");
        assert_eq!(plain.header("content-encoding"), None, "{path}");
        assert_eq!(gzip.header("content-encoding"), Some("gzip"), "{path}");
        for answer in [&plain, &gzip] {
            assert_eq!(answer.header("vary"), Some("Accept-Encoding"), "{path}");
        }
        assert_eq!(plain.header("content-type"), gzip.header("content-type"));
        assert!(gzip.body.len() < plain.body.len(), "{path}");
        assert_eq!(gunzip(&gzip.body), plain.body, "{path}");
        // Caches must not take the one for the other.
        let tags = [&plain, &gzip].map(|answer| answer.header("etag").expect("it has one"));
        assert_ne!(tags[0], tags[1], "{path}");
        for (headers, status) in [
            (vec![("If-None-Match", tags[0])], 304),
            (vec![("If-None-Match", tags[1])], 200),
            (
                vec![("If-None-Match", tags[1]), ("Accept-Encoding", "gzip")],
                304,
            ),
            (
                vec![("If-None-Match", tags[0]), ("Accept-Encoding", "gzip")],
                200,
            ),
        ] {
            let again = get(&server, path, &headers);
            assert_eq!(again.status, status, "{path}: {headers:?}");
            assert_eq!(again.body.is_empty(), status == 304, "{path}: {headers:?}");
        }
    }
}

/// What has a secret in it is never compressed: its length would tell of it.
#[test]
fn pages_and_answers_are_not_compressed() {
    let server = Server::start();
    for path in ["/", "/signin", "/docs", "/openapi.json"] {
        let answer = get(&server, path, &[("Accept-Encoding", "gzip, deflate, br")]);
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("content-encoding"), None, "{path}");
    }
}

/// What gzip makes of it, which also checks the checksum and the length.
fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut gunzip = Command::new("gzip")
        .args(["--decompress", "--stdout"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("gzip is part of every system");
    let mut input = gunzip.stdin.take().expect("its input is piped");
    // A pipe holds less than the module: both ends are served at once.
    let output = thread::scope(|scope| {
        scope.spawn(move || input.write_all(bytes).expect("it reads"));
        gunzip.wait_with_output().expect("it ends")
    });
    assert!(output.status.success(), "{}", output.status);
    output.stdout
}

/// The page compiles the module, and the worker runs it: each by the policy of its own response.
#[test]
fn a_worker_may_load_its_scripts_and_run_the_module() {
    let server = Server::start();
    let worker = get(&server, "/browser/worker.js", &[]);
    let policy = worker
        .header("content-security-policy")
        .expect("it has one");
    assert_eq!(
        policy,
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; frame-ancestors 'none'"
    );
    for (path, converts) in [("/", true), ("/docs", false)] {
        let page = get(&server, path, &[]);
        let policy = page.header("content-security-policy").expect("it has one");
        let script = if converts {
            "script-src 'self' 'wasm-unsafe-eval';"
        } else {
            "script-src 'self';"
        };
        assert!(policy.contains(script), "{path}: {policy}");
        assert!(!policy.contains("'unsafe-"), "{path}: {policy}");
    }
    let other = get(&server, "/browser/index.js", &[]);
    let policy = other.header("content-security-policy").expect("it has one");
    assert_eq!(policy, "default-src 'none'; frame-ancestors 'none'");
}

/// A program has the module and the fonts, or neither, and its start page offers what it has.
#[test]
fn the_module_is_sent_compressed_if_the_program_has_it() {
    let server = Server::start();
    let page = get(&server, "/", &[]).text().to_owned();
    let gzip = [("Accept-Encoding", "gzip")];
    let module = get(&server, "/browser/towebp.wasm", &gzip);
    let fonts = get(&server, "/browser/fonts.bin", &[]);
    if towebp::dashboard::MODULE.is_none() {
        assert_eq!((module.status, fonts.status), (404, 404));
        assert!(!page.contains("/browser/"), "{page}");
        return;
    }
    assert!(page.contains("data-module=\"/browser/index.js\""), "{page}");
    assert_eq!(module.header("content-type"), Some("application/wasm"));
    assert_eq!(module.header("content-encoding"), Some("gzip"));
    assert!(gunzip(&module.body).starts_with(b"\0asm"));
    let plain = get(&server, "/browser/towebp.wasm", &[]);
    assert!(plain.body.starts_with(b"\0asm"));
    let first = u32::from_le_bytes(fonts.body[..4].try_into().expect("four bytes"));
    assert!(fonts.body.len() > first as usize && first > 100_000);
}
