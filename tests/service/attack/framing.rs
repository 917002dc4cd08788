//! Requests that two servers could divide differently, and requests that are none.

use super::{connect, conversion, descriptors, exchange, statuses, threads};
use crate::support::picture::Picture;
use crate::support::service::Service;
use crate::support::try_read_response;
use std::io::Write;

/// What an attacker wants to be taken for a request of its own.
const SMUGGLED: &str = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn every_smuggling_form_is_refused_and_nothing_after_it_is_read() {
    let service = Service::start();
    let heads: &[(&str, u16)] = &[
        ("Content-Length: 5x", 400),
        ("Content-Length: +5", 400),
        ("Content-Length: -5", 400),
        ("Content-Length: 0x5", 400),
        ("Content-Length: 5,5", 400),
        ("Content-Length: 5 5", 400),
        ("Content-Length:", 400),
        ("Content-Length: 5\r\nContent-Length: 5", 400),
        ("Content-Length: 5\r\nContent-Length: 6", 400),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", 400),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5", 400),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            400,
        ),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
            400,
        ),
        ("Transfer-Encoding: xchunked", 501),
        ("Transfer-Encoding: gzip", 501),
        ("Transfer-Encoding: identity", 501),
        ("Transfer-Encoding: gzip, chunked", 501),
        ("Transfer-Encoding: chunked, chunked", 501),
        ("Transfer-Encoding: \"chunked\"", 501),
        ("Transfer-Encoding: chunked;a=b", 501),
        ("Transfer-Encoding:", 501),
        ("Transfer-Encoding: \x0bchunked", 400),
        ("Transfer-Encoding : chunked", 400),
        ("Transfer-Encoding\t: chunked", 400),
        (" Transfer-Encoding: chunked", 400),
        ("X: y\r\n Transfer-Encoding: chunked", 400),
        ("Transfer-Encoding:\r\n chunked", 400),
        ("Transfer-Encoding: chunked\nX: y", 400),
        ("X: y\nTransfer-Encoding: chunked", 400),
        ("X: y\rTransfer-Encoding: chunked", 400),
        ("X: y\0Transfer-Encoding: chunked", 400),
        ("Transfer-Encoding", 400),
        (": 5", 400),
        ("Host: a\r\nHost: b", 400),
        ("Expect: 200-maybe", 417),
    ];
    for (lines, status) in heads {
        let request = format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n0\r\n\r\n{SMUGGLED}");
        let answers = exchange(&service, request);
        assert_eq!(statuses(&answers), [*status], "{lines:?}: {answers}");
        assert!(
            answers.contains("application/problem+json"),
            "{lines:?}: {answers}"
        );
        assert!(
            answers.contains("Connection: close"),
            "{lines:?}: {answers}"
        );
    }
    let old = format!("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{SMUGGLED}");
    assert_eq!(statuses(&exchange(&service, old)), [400]);
    let old = format!("POST / HTTP/1.0\r\n\r\n{SMUGGLED}");
    assert_eq!(statuses(&exchange(&service, old)), [411]);
}

#[test]
fn request_lines_are_read_strictly() {
    let service = Service::start();
    let lines: &[(&[u8], u16)] = &[
        (b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET / HTTP/1.1 \r\n\r\n", 400),
        (b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /\r\n\r\n", 400),
        (b"GET / HTTP/1.1\n\n", 400),
        (b"GET / HTTP/1.1\r\rHost: a\r\n\r\n", 400),
        (b"\0\0\0\0", 400),
        // TLS, to a server that speaks none.
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"GET / HTTP/0.9\r\n\r\n", 505),
        (b"GET / HTTP/1.2\r\n\r\n", 505),
        (b"GET / HTTP/3.0\r\n\r\n", 505),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    ];
    for (line, status) in lines {
        let request = [line, SMUGGLED.as_bytes()].concat();
        let answers = exchange(&service, request);
        assert_eq!(
            statuses(&answers),
            [*status],
            "{}: {answers}",
            line.escape_ascii()
        );
    }
}

#[test]
fn every_request_names_one_host() {
    let service = Service::start();
    let cases: &[(&str, &str, &str, u16)] = &[
        ("/healthz", "1.1", "", 400),
        ("/healthz", "1.1", "Host: a\r\nHost: a\r\n", 400),
        ("/healthz", "1.1", "Host: a\r\nhost: b\r\n", 400),
        ("/healthz", "1.1", "Host: a b\r\n", 400),
        ("/healthz", "1.1", "Host: a/b\r\n", 400),
        ("/healthz", "1.1", "Host: user@a\r\n", 400),
        ("/healthz", "1.1", "Host: a:b\r\n", 400),
        ("/healthz", "1.1", "Host: [::1\r\n", 400),
        ("/healthz", "1.0", "Host: a\r\nHost: a\r\n", 400),
        ("/healthz", "1.0", "Host: a b\r\n", 400),
        ("http://example.org/healthz", "1.1", "", 400),
        ("http://user@example.org/healthz", "1.1", "Host: a\r\n", 400),
        ("/healthz", "1.0", "", 200),
        ("/healthz", "1.1", "Host:\r\n", 200),
        ("/healthz", "1.1", "Host: [::1]:8080\r\n", 200),
        ("http://example.org/healthz", "1.1", "Host: a\r\n", 200),
        ("http://example.org/healthz", "1.0", "", 200),
    ];
    for (target, version, lines, status) in cases {
        let request = format!("GET {target} HTTP/{version}\r\n{lines}\r\n");
        let answers = exchange(&service, &request);
        assert_eq!(statuses(&answers), [*status], "{request:?}: {answers}");
        let says_why = answers.contains("malformed_request") && answers.contains("ost ");
        assert_eq!(says_why, *status == 400, "{request:?}: {answers}");
    }
    // Of two hosts, that of the URL is the one that the pages show.
    let page = "GET http://shown.example.org/ HTTP/1.1\r\nHost: other.example.org\r\n\r\n";
    let answers = exchange(&service, page);
    assert!(
        answers.contains("http://shown.example.org/convert"),
        "{answers}"
    );
    assert!(!answers.contains("other.example.org"), "{answers}");
}

#[test]
fn chunked_bodies_are_read_strictly() {
    let service = Service::start();
    let bodies = [
        "3\nabc\r\n0\r\n\r\n",
        "3 \r\nabc\r\n0\r\n\r\n",
        "0x3\r\nabc\r\n0\r\n\r\n",
        "3\r\nabcd\r\n0\r\n\r\n",
        "3\r\nabc0\r\n\r\n",
        "-1\r\n\r\n",
        "11111111111111111\r\n",
        "3;a=\"\n\"\r\nabc\r\n0\r\n\r\n",
        "0\r\nX: y\nZ: w\r\n\r\n",
    ];
    for body in bodies {
        let request = format!(
            "POST {} HTTP/1.1\r\nHost: a\r\nContent-Type: image/png\r\nTransfer-Encoding: chunked\r\n\r\n{body}{SMUGGLED}",
            service.target(&[])
        );
        let answers = exchange(&service, request);
        assert_eq!(statuses(&answers), [400], "{body:?}: {answers}");
        assert!(answers.contains("malformed_request"), "{body:?}: {answers}");
    }
    // The largest size that can be said is no size that can be had.
    let huge = format!(
        "POST {} HTTP/1.1\r\nHost: a\r\nContent-Type: image/png\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nabc",
        service.target(&[])
    );
    assert_eq!(statuses(&exchange(&service, huge)), [400], "cut short");
}

#[test]
fn declared_lengths_allocate_nothing() {
    let mut service = super::warmed_up(&[]);
    let before = super::memory(&service);
    for length in [
        "200000000000",
        "18446744073709551615",
        "9223372036854775807",
        "99999999999999999999",
    ] {
        for (target, status) in [
            (service.target(&[]), 413),
            ("/convert?token=wrong".to_owned(), 401),
        ] {
            let head = format!(
                "POST {target} HTTP/1.1\r\nHost: a\r\nContent-Type: image/png\r\nContent-Length: {length}\r\n\r\nabc"
            );
            let answers = exchange(&service, head);
            assert_eq!(statuses(&answers), [status], "{length}: {answers}");
            assert!(service.server.is_alive(), "{length} ended the process");
        }
    }
    let grown = super::memory(&service).saturating_sub(before);
    assert!(grown < 2 << 20, "{grown} bytes more");
}

#[test]
fn http_2_takes_no_thread_and_no_descriptor() {
    let service = Service::start();
    let (threads_before, before) = (threads(&service), descriptors(&service));
    let held: Vec<_> = (0..100)
        .map(|_| {
            let mut stream = connect(&service);
            stream
                .write_all(b"GET / HTTP/2.0\r\n\r\n")
                .expect("the server reads");
            let answer = try_read_response(&mut stream, false).expect("an answer");
            assert_eq!(answer.status, 505);
            stream
        })
        .collect();
    assert!(threads(&service) <= threads_before);
    drop(held);
    crate::support::until(|| descriptors(&service) <= before);
}

#[test]
fn a_body_cut_short_is_no_picture() {
    let service = Service::start();
    let request = conversion(&service, &Picture::waves(30, 20).png(), "");
    let body = request
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .expect("a head")
        + 4;
    for end in [body, body + 1, body + 100, request.len() - 1] {
        let answers = exchange(&service, &request[..end]);
        assert_eq!(statuses(&answers), [400], "{end}: {answers}");
        assert!(answers.contains("body_cut_short"), "{end}: {answers}");
    }
    let head_only = exchange(&service, &request[..body - 3]);
    assert_eq!(head_only, "", "nobody is told that half a head is none");
    assert_eq!(service.conversions(), 0);
}

#[test]
fn raw_utf_8_in_the_url_is_text() {
    let service = Service::start();
    let png = Picture::waves(200, 60).png();
    let proper = service.webp(&[("watermark", "Käse")], &png);
    let head = format!(
        "POST /convert?token={}&watermark=Käse HTTP/1.1\r\nHost: a\r\nContent-Type: image/png\r\nContent-Length: {}\r\n\r\n",
        service.token,
        png.len()
    );
    let mut stream = connect(&service);
    stream
        .write_all(&[head.as_bytes(), &png].concat())
        .expect("the server reads");
    let raw = try_read_response(&mut stream, false).expect("an answer");
    assert_eq!(raw.status, 200, "{}", raw.text());
    assert!(raw.body == proper.0, "the same text gives the same picture");
}

#[test]
fn what_is_not_utf_8_is_named_and_not_drawn() {
    let service = Service::start();
    let png = Picture::waves(200, 60).png();
    let post =
        |target: &str| service.request("POST", target, &[("Content-Type", "image/png")], &png);
    let target = service.target(&[]);
    for (query, name) in [
        ("watermark=%ff%fe", "watermark"),
        ("watermark=caf%E9", "watermark"),
        ("watermark=%ED%A0%80", "watermark"),
        ("watermark=%C0%AF", "watermark"),
        ("watermark=%F4%90%80%80", "watermark"),
        ("quality=80%ff", "quality"),
        ("download=%e4.png", "download"),
        ("unknown=%80", "unknown"),
        ("water%ffmark=a", "water\u{fffd}mark"),
    ] {
        let detail = post(&format!("{target}&{query}")).problem(400, "invalid_parameter");
        assert!(
            detail.contains(&format!("Parameter {name}:")),
            "{query}: {detail}"
        );
    }
    // An unknown token is a 401 before anything else is looked at; one that is no text is unknown.
    post("/convert?token=%ff&watermark=%ff").problem(401, "token_invalid");
    let form = service.request(
        "POST",
        "/signin",
        &[("Content-Type", "application/x-www-form-urlencoded")],
        b"email=owner%40example.org&password=%ff%fe%fd%fc%fb%fa%f9%f8",
    );
    form.problem(400, "invalid_form");
    assert_eq!(service.conversions(), 0);
    assert_eq!(post(&format!("{target}&watermark=%C3%A4%zz%")).status, 200);
}

#[test]
fn long_answers_have_a_length() {
    let service = Service::start();
    let answer = service.convert(
        &[("quality", "100")],
        "image/png",
        &Picture::noise(400, 300).png(),
    );
    assert!(answer.body.len() > 32 << 10, "{} bytes", answer.body.len());
    assert_eq!(answer.header("transfer-encoding"), None);
    let injected = service.get("/nothing%0d%0aX-Injected:%201?a=%0d%0aX-Injected:%202", &[]);
    assert_eq!(injected.header("x-injected"), None);
}
