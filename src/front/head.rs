//! Heads of requests: bytes in, a [`Head`] or a [`Refusal`] out, without a socket.
//!
//! HTTP/1.1 (RFC 9112) lets servers be lenient in many places; wherever two servers in a row could disagree on where
//! a request ends, this one refuses. [`read`] is the whole of it, for fuzzing and tests; the door calls its two steps,
//! since most of its reading is finding the end.

use super::refusal::Refusal;
use std::borrow::Cow;
use std::net::Ipv6Addr;

/// Bounds on a head.
#[derive(Clone, Copy, Debug)]
pub struct HeadLimits {
    /// Request line and headers, in bytes.
    pub bytes: usize,
    /// Headers.
    pub headers: usize,
}

/// The head of a request, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// As it was sent: a token, `GET` or any other.
    pub method: String,
    /// The path with an optional query; any other form, such as `*`, as it was sent. An absolute URL (RFC 9112
    /// section 3.2.2) has lost its scheme, and its authority stands in `Host`. Bytes beyond ASCII are percent-encoded.
    pub target: String,
    /// Names in lower case, and values in ASCII without white space around, bytes beyond it having become `?`. What
    /// concerns the connection alone is left out: `Connection`, `Content-Length`, `Transfer-Encoding`, `Expect` ...
    pub headers: Vec<(String, String)>,
    /// Where the body ends.
    pub framing: Framing,
    /// Whether it is HTTP/1.0.
    pub is_old: bool,
    /// Whether the client wants to send further requests.
    pub keep_alive: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
}

/// Where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// After this many bytes; 0 if there is none.
    Length(u64),
    /// After the last chunk.
    Chunked,
}

/// Reads the head at the start of the bytes, and gives it with the number of bytes before the body; `None` if there is
/// no end of a head yet.
///
/// # Errors
/// What is wrong with it, as soon as that is clear.
pub fn read(bytes: &[u8], limits: HeadLimits) -> Result<Option<(Head, usize)>, Refusal> {
    let mut search = Search::default();
    match search.end(bytes, limits)? {
        Some(end) => Ok(Some((parse(&bytes[..end], limits)?, end))),
        None => Ok(None),
    }
}

/// Looks for the end of a head that grows, each byte once.
#[derive(Debug, Default)]
pub struct Search {
    /// Bytes looked at.
    at: usize,
    /// Where the present line begins.
    line: usize,
    /// Lines that are no empty ones before the request line.
    lines: usize,
}

impl Search {
    /// The number of bytes up to the end of the empty line behind the headers, once it is there. `bytes` is what was
    /// given before, and more.
    ///
    /// # Errors
    /// What cannot be a head any more, however it goes on.
    pub fn end(&mut self, bytes: &[u8], limits: HeadLimits) -> Result<Option<usize>, Refusal> {
        while let Some(&byte) = bytes.get(self.at) {
            if self.at == limits.bytes {
                return Err(match self.lines {
                    0 => Refusal::TargetTooLong {
                        limit: limits.bytes,
                    },
                    _ => Refusal::HeadTooLarge {
                        limit: limits.bytes,
                    },
                });
            }
            self.check(bytes, byte)?;
            self.at += 1;
            if byte != b'\n' {
                continue;
            }
            let is_empty = self.at - self.line == 2;
            self.line = self.at;
            if !is_empty {
                self.lines += 1;
                if self.lines > limits.headers + 1 {
                    return Err(Refusal::TooManyHeaders {
                        limit: limits.headers,
                    });
                }
            } else if self.lines > 0 {
                return Ok(Some(self.at));
            }
        }
        Ok(None)
    }

    /// Lines end in CR LF, and these two come together only.
    fn check(&self, bytes: &[u8], byte: u8) -> Result<(), Refusal> {
        let after_return = self.at > self.line && bytes[self.at - 1] == b'\r';
        let message = match byte {
            b'\n' if after_return => return Ok(()),
            b'\n' => "a line ends without a carriage return",
            _ if after_return => "a carriage return stands inside a line",
            b'\r' | b'\t' => return Ok(()),
            0..0x20 | 0x7f => "it contains a control character",
            // Told at once, since what speaks another protocol (TLS begins with 0x16) may wait for an answer.
            _ if self.lines == 0 && self.at == self.line && !is_token(byte) => {
                "it does not begin with a method"
            }
            _ => return Ok(()),
        };
        Err(Refusal::Malformed(message))
    }
}

/// Parses a head whose end was found by [`Search`].
///
/// # Errors
/// What is wrong with it.
pub fn parse(bytes: &[u8], limits: HeadLimits) -> Result<Head, Refusal> {
    let mut headers = vec![httparse::EMPTY_HEADER; limits.headers];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Err(Refusal::Malformed("it ends too early")),
        Err(error) => return Err(refusal(error, bytes, limits)),
    }
    let method = request.method.unwrap_or_default();
    let target = request.path.unwrap_or_default();
    let is_old = request.version == Some(0);
    let fields = Fields(request.headers);
    let framing = fields.framing(method, is_old)?;
    let expects_continue = fields.expects_continue(is_old)?;
    fields.check_host(is_old)?;
    let (authority, target) = without_authority(target)?;
    let mut headers = fields.passed_on();
    if let Some(authority) = authority {
        headers.retain(|(name, _)| name != "host");
        headers.push(("host".to_owned(), authority.to_owned()));
    }
    Ok(Head {
        method: method.to_owned(),
        target: encoded(&target),
        headers,
        framing,
        is_old,
        keep_alive: fields.keep_alive(is_old),
        expects_continue,
    })
}

fn refusal(error: httparse::Error, bytes: &[u8], limits: HeadLimits) -> Refusal {
    match error {
        httparse::Error::TooManyHeaders => Refusal::TooManyHeaders {
            limit: limits.headers,
        },
        httparse::Error::Version if names_a_version(bytes) => Refusal::Version,
        httparse::Error::Version | httparse::Error::NewLine => {
            Refusal::Malformed("the request line does not end in HTTP/1.1")
        }
        httparse::Error::HeaderName => Refusal::Malformed("a header's name cannot be read"),
        httparse::Error::HeaderValue => Refusal::Malformed("a header's value cannot be read"),
        _ => Refusal::Malformed("the request line cannot be read"),
    }
}

/// Whether the request line has three words, the third of which is `HTTP/`, a digit, a dot and a digit.
fn names_a_version(bytes: &[u8]) -> bool {
    let line = bytes.trim_ascii_start().split(|&byte| byte == b'\r').next();
    let words: Vec<&[u8]> = line
        .unwrap_or_default()
        .split(|&byte| byte == b' ')
        .collect();
    matches!(words[..], [_, _, [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]]
        if major.is_ascii_digit() && minor.is_ascii_digit())
}

/// RFC 9110 section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Divides `http://host/path?query` into `host` and `/path?query`, and leaves every other target as it is.
fn without_authority(target: &str) -> Result<(Option<&str>, Cow<'_, str>), Refusal> {
    let scheme = ["http://", "https://"].into_iter().find(|scheme| {
        let start = target.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    });
    let Some(scheme) = scheme else {
        return Ok((None, target.into()));
    };
    let rest = &target[scheme.len()..];
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    // RFC 9110 section 4.2.1: a URL without a host is invalid.
    if authority.is_empty() || !is_host(authority.as_bytes()) {
        return Err(Refusal::Malformed("the URL's host cannot be read"));
    }
    let path = if path.starts_with('/') {
        path.into()
    } else {
        format!("/{path}").into()
    };
    Ok((Some(authority), path))
}

/// `Host` without the white space around it (RFC 9110 section 7.2): a name, an IPv4 address or an IPv6 address in
/// brackets, then maybe a colon and a port. It may be empty: then the client's URL has no host.
fn is_host(value: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(value) else {
        return false;
    };
    let literal = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let (is_named, port) = literal.map_or_else(
        || {
            let (name, port) = text.split_at(text.find(':').unwrap_or(text.len()));
            (is_registered_name(name), port)
        },
        |(address, port)| (is_ipv6(address), port),
    );
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    is_named && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
}

/// An address of RFC 3986 section 3.2.2. The zone of a link-local one is of no concern here (RFC 6874).
fn is_ipv6(text: &str) -> bool {
    let (address, zone) = text.split_once('%').unwrap_or((text, "0"));
    address.parse::<Ipv6Addr>().is_ok() && !zone.is_empty() && is_registered_name(zone)
}

/// `reg-name` of RFC 3986 section 3.2.2, of which IPv4 addresses are a part.
fn is_registered_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte);
        let is_encoded = |bytes: &mut std::str::Bytes<'_>| {
            byte == b'%' && (0..2).all(|_| bytes.next().is_some_and(|b| b.is_ascii_hexdigit()))
        };
        if !is_plain && !is_encoded(&mut bytes) {
            return false;
        }
    }
    true
}

fn encoded(target: &str) -> String {
    let mut encoded = String::with_capacity(target.len());
    for byte in target.bytes() {
        if byte.is_ascii_graphic() {
            encoded.push(byte as char);
        } else {
            encoded.push('%');
            for digit in [byte >> 4, byte & 15] {
                let digit = char::from_digit(u32::from(digit), 16).expect("four bits");
                encoded.push(digit.to_ascii_uppercase());
            }
        }
    }
    encoded
}

/// Headers that concern the connection between the client and the door (RFC 9110 section 7.6.1), or that the door has
/// dealt with.
const KEPT_HERE: [&str; 9] = [
    "connection",
    "content-length",
    "expect",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// What the door itself says to the rooms behind: nobody else may.
pub const INTERNAL: &str = "x-towebp-";

struct Fields<'h>(&'h [httparse::Header<'h>]);

impl Fields<'_> {
    fn all(&self, name: &'static str) -> impl Iterator<Item = &[u8]> {
        self.0
            .iter()
            .filter(move |header| header.name.eq_ignore_ascii_case(name))
            .map(|header| header.value.trim_ascii())
    }

    /// RFC 9112 section 3.2: a request names its host once, and HTTP/1.0 need not.
    fn check_host(&self, is_old: bool) -> Result<(), Refusal> {
        let mut hosts = self.all("host");
        let message = match (hosts.next(), hosts.next()) {
            (None, _) if is_old => return Ok(()),
            (None, _) => "Host is missing",
            (Some(_), Some(_)) => "Host is given more than once",
            (Some(host), None) if is_host(host) => return Ok(()),
            (Some(_), None) => "the host in Host cannot be read",
        };
        Err(Refusal::Malformed(message))
    }

    fn framing(&self, method: &str, is_old: bool) -> Result<Framing, Refusal> {
        let mut lengths = self.all("content-length");
        let length = lengths.next();
        if lengths.next().is_some() {
            return Err(Refusal::Framing("Content-Length is given more than once"));
        }
        let mut codings = self.all("transfer-encoding");
        let Some(coding) = codings.next() else {
            return match length {
                Some(length) => digits(length).map(Framing::Length),
                None if is_old && matches!(method, "POST" | "PUT" | "PATCH") => {
                    Err(Refusal::LengthRequired)
                }
                None => Ok(Framing::Length(0)),
            };
        };
        if length.is_some() {
            return Err(Refusal::Framing(
                "Content-Length and Transfer-Encoding are both given",
            ));
        }
        if is_old {
            return Err(Refusal::Framing("HTTP/1.0 has no Transfer-Encoding"));
        }
        if codings.next().is_some() {
            return Err(Refusal::Framing(
                "Transfer-Encoding is given more than once",
            ));
        }
        if coding.eq_ignore_ascii_case(b"chunked") {
            Ok(Framing::Chunked)
        } else {
            Err(Refusal::TransferEncoding)
        }
    }

    fn keep_alive(&self, is_old: bool) -> bool {
        let says = |option: &str| {
            self.all("connection").any(|line| {
                line.split(|&byte| byte == b',')
                    .any(|given| given.trim_ascii().eq_ignore_ascii_case(option.as_bytes()))
            })
        };
        !says("close") && (!is_old || says("keep-alive"))
    }

    fn expects_continue(&self, is_old: bool) -> Result<bool, Refusal> {
        let mut expected = false;
        for expectation in self.all("expect") {
            if !expectation.eq_ignore_ascii_case(b"100-continue") {
                return Err(Refusal::Expectation);
            }
            // RFC 9110 section 10.1.1: to be ignored from HTTP/1.0.
            expected = !is_old;
        }
        Ok(expected)
    }

    fn passed_on(&self) -> Vec<(String, String)> {
        let ascii = |byte: &u8| if byte.is_ascii() { *byte as char } else { '?' };
        self.0
            .iter()
            .map(|header| (header.name.to_ascii_lowercase(), header.value.trim_ascii()))
            .filter(|(name, _)| !KEPT_HERE.contains(&name.as_str()) && !name.starts_with(INTERNAL))
            .map(|(name, value)| (name, value.iter().map(ascii).collect()))
            .collect()
    }
}

/// More than 64 bits hold is the most that they hold: too large either way.
fn digits(text: &[u8]) -> Result<u64, Refusal> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return Err(Refusal::Framing("Content-Length is not a whole number"));
    }
    let digit = |value: u64, byte: &u8| {
        value
            .saturating_mul(10)
            .saturating_add(u64::from(byte - b'0'))
    };
    Ok(text.iter().fold(0, digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: HeadLimits = HeadLimits {
        bytes: 1000,
        headers: 8,
    };

    /// Reads it whole, and checks that reading it as it grows comes to the same.
    fn head(text: impl AsRef<[u8]>) -> Result<Option<(Head, usize)>, Refusal> {
        let bytes = text.as_ref();
        let whole = read(bytes, LIMITS);
        let mut search = Search::default();
        let mut end = Ok(None);
        for length in 0..=bytes.len() {
            end = search.end(&bytes[..length], LIMITS);
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
    fn a_head_is_read_and_normalised() {
        let head = good(
            "\r\nPOST /convert?a=b HTTP/1.1\r\nHost: a\r\nContent-Length: 007\r\nX-Name:  two words \t\r\n\
             X-Towebp-Peer: 192.0.2.1\r\nUpgrade: h2c\r\nExpect: 100-Continue\r\n\r\n",
        );
        assert_eq!(
            (head.method.as_str(), head.target.as_str()),
            ("POST", "/convert?a=b")
        );
        assert_eq!(head.framing, Framing::Length(7));
        assert!(head.keep_alive && head.expects_continue && !head.is_old);
        let headers = [("host", "a"), ("x-name", "two words")];
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
            let refused = framing(&format!("Content-Length: {length}\r\n"));
            assert!(
                matches!(refused, Err(Refusal::Framing(_))),
                "{length:?}: {refused:?}"
            );
        }
        for lines in [
            "Content-Length: 5\r\nContent-Length: 5\r\n",
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: gzip\r\nContent-Length: 5\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        ] {
            assert!(
                matches!(framing(lines), Err(Refusal::Framing(_))),
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
                Err(Refusal::TransferEncoding),
                "{coding}"
            );
        }
    }

    #[test]
    fn old_clients_declare_lengths() {
        let old = |lines: &str| {
            head(format!("POST / HTTP/1.0\r\n{lines}\r\n")).map(|head| head.unwrap().0.framing)
        };
        assert_eq!(old(""), Err(Refusal::LengthRequired));
        assert_eq!(old("Content-Length: 3\r\n"), Ok(Framing::Length(3)));
        assert!(matches!(
            old("Transfer-Encoding: chunked\r\n"),
            Err(Refusal::Framing(_))
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
            let refused = head(text);
            assert!(
                matches!(refused, Err(Refusal::Malformed(_))),
                "{}: {refused:?}",
                text.escape_ascii()
            );
        }
        for version in ["2.0", "1.2", "0.9", "3.0"] {
            assert_eq!(
                head(format!("GET / HTTP/{version}\r\n\r\n")),
                Err(Refusal::Version)
            );
        }
        assert_eq!(
            head("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
            Err(Refusal::Version)
        );
        assert_eq!(
            head("POST / HTTP/1.1\r\nExpect: 200-ok\r\n\r\n"),
            Err(Refusal::Expectation)
        );
    }

    #[test]
    fn http_1_1_names_its_host_once() {
        let refusal = |lines: &str| {
            let outcome = head(format!("GET / HTTP/1.1\r\n{lines}\r\n"));
            outcome
                .err()
                .unwrap_or_else(|| panic!("{lines:?} was read"))
        };
        assert_eq!(refusal(""), Refusal::Malformed("Host is missing"));
        let twice = Refusal::Malformed("Host is given more than once");
        assert_eq!(refusal("Host: a\r\nHost: a\r\n"), twice);
        let unreadable = Refusal::Malformed("the host in Host cannot be read");
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
                refusal(&format!("Host: {host}\r\n")),
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
            assert!(matches!(outcome, Err(Refusal::Malformed(_))), "{hosts:?}");
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
            assert!(matches!(outcome, Err(Refusal::Malformed(_))), "{target}");
        }
        let without_host = head("GET http://example.org/ HTTP/1.1\r\n\r\n");
        assert_eq!(without_host, Err(Refusal::Malformed("Host is missing")));
    }

    #[test]
    fn limits_are_kept_to_the_byte() {
        let line = |length: usize| format!("GET /{} HTTP/1.0\r\n\r\n", "a".repeat(length - 18));
        assert!(matches!(head(line(1000)), Ok(Some(_))));
        assert_eq!(head(line(1001)), Err(Refusal::HeadTooLarge { limit: 1000 }));
        assert_eq!(
            head(line(1003)),
            Err(Refusal::TargetTooLong { limit: 1000 })
        );
        assert_eq!(head("a".repeat(999)), Ok(None));
        let headers = |count: usize| format!("GET / HTTP/1.0\r\n{}\r\n", "A: b\r\n".repeat(count));
        assert_eq!(good(headers(8)).headers.len(), 8);
        assert_eq!(head(headers(9)), Err(Refusal::TooManyHeaders { limit: 8 }));
        assert_eq!(
            head("\r\n".repeat(600)),
            Err(Refusal::TargetTooLong { limit: 1000 })
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
        let mut state = 1_u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % below
        };
        let (mut read, mut refused) = (0, 0);
        for _ in 0..20_000 {
            let mut bytes = good.to_vec();
            for _ in 0..=random(3) {
                let at = random(bytes.len());
                match random(3) {
                    0 => bytes[at] = random(256) as u8,
                    1 => bytes.insert(at, b"\r\n :,\t\x00"[random(7)]),
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
                Err(_) => refused += 1,
            }
        }
        assert!(
            read > 100 && refused > 100,
            "{read} read, {refused} refused"
        );
    }
}
