//! Heads, good and bad, in one piece and byte by byte.

use super::scanner::HeadScanner;
use super::*;
use towebp_encoder::testing::Random;

const LIMITS: HeadLimits = HeadLimits {
    bytes: 1000,
    headers: 8,
};

/// Reads a head in one piece, and checks that reading it as it grows gives the same.
fn head(text: impl AsRef<[u8]>) -> Result<Option<(Head, usize)>, Rejection> {
    let bytes = text.as_ref();
    let whole = read(bytes, LIMITS);
    let mut scanner = HeadScanner::default();
    let mut end = Ok(None);
    for length in 0..=bytes.len() {
        end = scanner.find_end(&bytes[..length], LIMITS);
        if end != Ok(None) {
            break;
        }
    }
    let grown = end.and_then(|end| match end {
        Some(end) => parse(&bytes[..end], LIMITS).map(|head| Some((head, end))),
        None => Ok(None),
    });
    assert_eq!(
        whole,
        grown,
        "portions make no difference: {}",
        bytes.escape_ascii()
    );
    whole
}

#[track_caller]
fn good(text: impl AsRef<[u8]>) -> Head {
    let (head, length) = head(&text).expect("a good head").expect("a whole head");
    assert_eq!(length, text.as_ref().len());
    head
}

#[test]
fn a_head_is_read_and_normalized() {
    let head = good(
        "\r\nPOST /convert?a=b HTTP/1.1\r\nHost: a\r\nContent-Length: 007\r\nX-Name:  two words \t\r\n\
         X-Towebp-Peer: 192.0.2.1\r\nUpgrade: h2c\r\nExpect: 100-Continue\r\n\r\n",
    );
    assert_eq!(
        (head.method.as_str(), head.target.as_str()),
        ("POST", "/convert?a=b")
    );
    assert_eq!(head.framing, Framing::Length(7));
    assert!(head.keep_alive && head.expects_continue && !head.is_http10);
    let headers = [
        ("host", "a"),
        ("x-name", "two words"),
        ("x-towebp-peer", "192.0.2.1"),
    ];
    assert_eq!(
        head.headers,
        headers.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
}

#[test]
fn bytes_beyond_ascii_arrive_in_ascii() {
    let head = good("GET /?q=Käse HTTP/1.1\r\nHost: a\r\nX: Käse\r\n\r\n");
    assert_eq!(head.target, "/?q=K%C3%A4se");
    assert_eq!(head.headers[1].1, "K??se");
}

#[test]
fn the_connection_stays_open_as_both_sides_agree() {
    let cases = [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "Connection: foo, Close\r\n", false),
        (
            "1.1",
            "Connection: keep-alive\r\nConnection: close\r\n",
            false,
        ),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
    ];
    for (version, line, keep_alive) in cases {
        let head = good(format!("GET / HTTP/{version}\r\nHost: a\r\n{line}\r\n"));
        assert_eq!(head.keep_alive, keep_alive, "{version} {line}");
    }
}

#[test]
fn the_end_of_a_body_is_clear_or_the_request_is_refused() {
    let framing = |lines: &str| {
        head(format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}\r\n"))
            .map(|head| head.unwrap().0.framing)
    };
    assert_eq!(framing(""), Ok(Framing::Length(0)));
    assert_eq!(framing("content-LENGTH: 12\r\n"), Ok(Framing::Length(12)));
    assert_eq!(
        framing("Content-Length: 99999999999999999999\r\n"),
        Ok(Framing::Length(u64::MAX))
    );
    assert_eq!(
        framing("Transfer-Encoding: CHUNKED\r\n"),
        Ok(Framing::Chunked)
    );
    for length in ["5x", "+5", "-1", "", "5 5", "5,5", "0x5", "5.0", "\u{b2}"] {
        let rejected = framing(&format!("Content-Length: {length}\r\n"));
        assert!(
            matches!(rejected, Err(Rejection::Framing(_))),
            "{length:?}: {rejected:?}"
        );
    }
    for lines in [
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    ] {
        assert!(
            matches!(framing(lines), Err(Rejection::Framing(_))),
            "{lines}"
        );
    }
    for coding in [
        "gzip",
        "chunked, chunked",
        "gzip, chunked",
        "xchunked",
        "chunked;q=1",
        "identity",
        "",
        "\"chunked\"",
    ] {
        assert_eq!(
            framing(&format!("Transfer-Encoding: {coding}\r\n")),
            Err(Rejection::TransferCodingUnsupported),
            "{coding}"
        );
    }
}

#[test]
fn old_clients_declare_lengths() {
    let old = |lines: &str| {
        head(format!("POST / HTTP/1.0\r\n{lines}\r\n")).map(|head| head.unwrap().0.framing)
    };
    assert_eq!(old(""), Err(Rejection::LengthRequired));
    assert_eq!(old("Content-Length: 3\r\n"), Ok(Framing::Length(3)));
    assert!(matches!(
        old("Transfer-Encoding: chunked\r\n"),
        Err(Rejection::Framing(_))
    ));
}

#[test]
fn what_is_no_http_1_is_refused() {
    let malformed: &[&[u8]] = &[
        b"GET / HTTP/1.1\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        b"GET / HTTP/1.1\r\n Host: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost\r\n\r\n",
        b"GET / HTTP/1.1\r\n: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length\x0b: 5\r\n\r\n",
        b"GET  / HTTP/1.1\r\n\r\n",
        b"GET /a b HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1 \r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET / http/1.1\r\n\r\n",
        b"G\xc3\x84T / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
        b" GET / HTTP/1.1\r\n\r\n",
        b"\n",
        b"\r\r\n",
    ];
    for text in malformed {
        let rejected = head(text);
        assert!(
            matches!(rejected, Err(Rejection::Malformed(_))),
            "{}: {rejected:?}",
            text.escape_ascii()
        );
    }
    for (text, reason) in [
        (
            "GET /a b HTTP/1.1\r\n\r\n",
            "the request line does not end in HTTP/1.1",
        ),
        (
            "GET / http/1.1\r\n\r\n",
            "the request line does not end in HTTP/1.1",
        ),
        (
            "G\u{c4}T / HTTP/1.1\r\n\r\n",
            "the request line cannot be read",
        ),
        (
            "GET / HTTP/1.1\r\nA b: c\r\n\r\n",
            "a header's name cannot be read",
        ),
        (
            "GET / HTTP/1.1\r\nA: b\u{1}\r\n\r\n",
            "it contains a control character",
        ),
    ] {
        assert_eq!(head(text), Err(Rejection::Malformed(reason)), "{text:?}");
    }
    for version in ["2.0", "1.2", "0.9", "3.0"] {
        assert_eq!(
            head(format!("GET / HTTP/{version}\r\n\r\n")),
            Err(Rejection::VersionUnsupported)
        );
    }
    assert_eq!(
        head("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        Err(Rejection::VersionUnsupported)
    );
    assert_eq!(
        head("POST / HTTP/1.1\r\nExpect: 200-ok\r\n\r\n"),
        Err(Rejection::ExpectationUnsupported)
    );
}

#[test]
fn http_1_1_names_its_host_once() {
    let rejection = |lines: &str| {
        let outcome = head(format!("GET / HTTP/1.1\r\n{lines}\r\n"));
        outcome
            .err()
            .unwrap_or_else(|| panic!("{lines:?} was read"))
    };
    assert_eq!(rejection(""), Rejection::Malformed("Host is missing"));
    let twice = Rejection::Malformed("Host is given more than once");
    assert_eq!(rejection("Host: a\r\nHost: a\r\n"), twice);
    let unreadable = Rejection::Malformed("the host in Host cannot be read");
    for host in [
        "a b",
        "a/b",
        "a@b",
        "http://a",
        "a:b",
        "a:80:80",
        "a:-1",
        "a?b",
        "a#b",
        "a\\b",
        "%zz",
        "a%4",
        "[::1",
        "::1",
        "[::1]80",
        "[1.2.3.4]",
        "[::1%]",
        "[v1.a]",
        "k\u{e4}se",
        "a, b",
        "\"a\"",
        "<a>",
    ] {
        assert_eq!(
            rejection(&format!("Host: {host}\r\n")),
            unreadable,
            "{host:?}"
        );
    }
    for host in [
        "a",
        "",
        "localhost:8080",
        "a:",
        "192.0.2.1:80",
        "[::1]",
        "[2001:db8::7]:443",
        "a_b.example.org.",
        "[fe80::1%25eth0]:80",
        "k%C3%A4se.example.org",
    ] {
        let head = good(format!("GET / HTTP/1.1\r\nhOST: {host} \r\n\r\n"));
        assert_eq!(head.headers, [("host".to_owned(), host.to_owned())]);
    }
    assert_eq!(good("GET / HTTP/1.0\r\n\r\n").headers, []);
    for hosts in ["Host: a b\r\n", "Host: a\r\nHost: a\r\n"] {
        let outcome = head(format!("GET / HTTP/1.0\r\n{hosts}\r\n"));
        assert!(matches!(outcome, Err(Rejection::Malformed(_))), "{hosts:?}");
    }
}

#[test]
fn the_host_of_an_absolute_target_counts() {
    for (target, path) in [
        ("http://example.org/convert?a=1", "/convert?a=1"),
        ("HTTPS://example.org/x", "/x"),
        ("http://example.org", "/"),
        ("http://example.org?a=/b", "/?a=/b"),
    ] {
        let head = good(format!("GET {target} HTTP/1.1\r\nHost: other\r\n\r\n"));
        assert_eq!(head.target, path, "{target}");
        let host = ("host".to_owned(), "example.org".to_owned());
        assert_eq!(head.headers, [host], "{target}");
    }
    for target in [
        "http://",
        "http:///x",
        "http://a@b/",
        "http://a b/",
        "https://?a",
    ] {
        let outcome = head(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert!(matches!(outcome, Err(Rejection::Malformed(_))), "{target}");
    }
    let without_host = head("GET http://example.org/ HTTP/1.1\r\n\r\n");
    assert_eq!(without_host, Err(Rejection::Malformed("Host is missing")));
}

#[test]
fn limits_are_kept_to_the_byte() {
    let line = |length: usize| format!("GET /{} HTTP/1.0\r\n\r\n", "a".repeat(length - 18));
    assert!(matches!(head(line(1000)), Ok(Some(_))));
    assert_eq!(
        head(line(1001)),
        Err(Rejection::HeadTooLarge { limit: 1000 })
    );
    assert_eq!(
        head(line(1003)),
        Err(Rejection::TargetTooLong { limit: 1000 })
    );
    assert_eq!(head("a".repeat(999)), Ok(None));
    let headers = |count: usize| format!("GET / HTTP/1.0\r\n{}\r\n", "A: b\r\n".repeat(count));
    assert_eq!(good(headers(8)).headers.len(), 8);
    assert_eq!(
        head(headers(9)),
        Err(Rejection::TooManyHeaders { limit: 8 })
    );
    assert_eq!(
        head("\r\n".repeat(600)),
        Err(Rejection::TargetTooLong { limit: 1000 })
    );
}

#[test]
fn what_follows_a_head_is_left_alone() {
    let text = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n\0\n\xff";
    let (_, length) = read(text, LIMITS).unwrap().unwrap();
    assert_eq!(length, text.len() - 3);
}

#[test]
fn spoiled_heads_are_read_or_refused_the_same_in_any_portions() {
    let good = b"POST /convert?a=b HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\n\
        Expect: 100-continue\r\nConnection: close\r\n\r\nabcdefg";
    let mut random = Random::new(1);
    let (mut read, mut rejected) = (0, 0);
    for _ in 0..20_000 {
        let mut bytes = good.to_vec();
        for _ in 0..=random.index(3) {
            let at = random.index(bytes.len());
            match random.index(3) {
                0 => bytes[at] = random.byte(),
                1 => bytes.insert(at, b"\r\n :,\t\x00"[random.index(7)]),
                _ => drop(bytes.remove(at)),
            }
        }
        match head(&bytes) {
            Ok(Some((head, _))) => {
                read += 1;
                let plain = |text: &str| {
                    text.bytes()
                        .all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte))
                };
                assert!(
                    plain(&head.target) && !head.target.contains(' '),
                    "{head:?}"
                );
                assert!(
                    head.headers
                        .iter()
                        .all(|(name, value)| plain(name) && plain(value)),
                    "{head:?}"
                );
            }
            Ok(None) => {}
            Err(_) => rejected += 1,
        }
    }
    assert!(
        read > 100 && rejected > 100,
        "{read} read, {rejected} rejected"
    );
}
