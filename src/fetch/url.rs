//! Reads URLs and checks that they may be fetched: scheme, user, spelling of the host, and port.

use super::error::FetchError;
use percent_encoding::{AsciiSet, utf8_percent_encode};
use std::net::{Ipv4Addr, Ipv6Addr};
use ureq::http::Uri;

/// The settings of the checks of every URL, redirects included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    /// Whether private addresses and all ports are allowed (`Settings::allow_private`).
    pub(super) allow_private: bool,
    /// Whether this machine can do TLS.
    pub(super) tls: bool,
}

/// Ports from which pictures are fetched on the public network: those of http and https, and their
/// usual alternatives. With all ports the service could be used to talk to mail servers and
/// databases.
const PUBLIC_PORTS: [u16; 4] = [80, 443, 8080, 8443];

/// The ASCII characters that are percent-encoded in paths and queries.
const SPACE: AsciiSet = AsciiSet::EMPTY.add(b' ');

/// Reads an absolute URL. Spaces and characters beyond ASCII after the host are percent-encoded
/// (RFC 3986, 2.1): they are there if a client encoded the URL once, for the query, instead of
/// twice.
///
/// # Errors
/// [`FetchError::Url`].
pub(super) fn parse(text: &str) -> Result<Uri, FetchError> {
    let text = text.trim();
    let authority_end = text.find("://").map_or(0, |scheme_end| {
        let rest = &text[scheme_end + 3..];
        scheme_end + 3 + rest.find(['/', '?', '#']).unwrap_or(rest.len())
    });
    let (origin, path) = text.split_at(authority_end);
    if !origin.is_ascii() {
        return Err(FetchError::Url(
            "The URL's host has letters beyond ASCII: write it in its xn-- form.".into(),
        ));
    }
    let encoded = format!("{origin}{}", utf8_percent_encode(path, &SPACE));
    encoded.parse().map_err(|_| FetchError::no_url())
}

/// Checks the URL of one hop and returns its host (an IPv6 address without brackets) and its port.
/// The addresses of the host are checked after they are looked up.
///
/// # Errors
/// [`FetchError::Url`], or [`FetchError::TlsUnavailable`].
pub(super) fn check(uri: &Uri, policy: Policy) -> Result<(&str, u16), FetchError> {
    let reject = |detail: String| Err(FetchError::Url(detail));
    let tls = match uri.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        Some(other) => {
            return reject(format!(
                "The URL's scheme is {other}: only http and https are fetched."
            ));
        }
        None => {
            return reject(
                "The URL is not absolute: it must start with https:// or http://.".into(),
            );
        }
    };
    let Some(authority) = uri.authority() else {
        return reject("The URL has no host.".into());
    };
    if authority.as_str().contains('@') {
        return reject("The URL has a user name or password: leave them out.".into());
    }
    let host = authority.host();
    if !is_host(host) {
        return reject(
            "The URL's host is neither a name nor an IP address in its usual form.".into(),
        );
    }
    // `Authority::port_u16` ignores a port that is no number, and the default port would be used.
    let port = match &authority.as_str()[host.len()..] {
        "" if tls => 443,
        "" => 80,
        // `parse` would accept a sign.
        rest if rest.contains('+') => 0,
        rest => rest[1..].parse().unwrap_or(0),
    };
    if port == 0 {
        return reject("The URL's port is not a number from 1 to 65535.".into());
    }
    if !policy.allow_private && !PUBLIC_PORTS.contains(&port) {
        return reject(format!(
            "The URL's port is {port}: only 80, 443, 8080 and 8443 are fetched from."
        ));
    }
    if tls && !policy.tls {
        return Err(FetchError::TlsUnavailable);
    }
    Ok((host.trim_matches(['[', ']']), port))
}

/// Whether the text is a DNS name, a dotted IPv4 address or a bracketed IPv6 address. A name that
/// ends in a number is rejected, since resolvers read `2130706433`, `0x7f.1`, `0177.0.0.1` and
/// `127.1` as addresses (WHATWG URL, "ends in a number").
fn is_host(host: &str) -> bool {
    if let Some(bracketed) = host.strip_prefix('[') {
        return bracketed
            .strip_suffix(']')
            .is_some_and(|inner| inner.parse::<Ipv6Addr>().is_ok());
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    if name.is_empty()
        || !name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'))
    {
        return false;
    }
    let last = name.rsplit('.').next().unwrap_or(name).to_ascii_lowercase();
    let hexadecimal = last
        .strip_prefix("0x")
        .is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
    let number = hexadecimal || last.bytes().all(|b| b.is_ascii_digit());
    !number || host.parse::<Ipv4Addr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: Policy = Policy {
        allow_private: false,
        tls: true,
    };

    fn check_text(text: &str, policy: Policy) -> Result<(), FetchError> {
        check(&parse(text)?, policy).map(drop)
    }

    #[test]
    fn plain_urls_pass() {
        for text in [
            "http://example.org/logo.png",
            "https://example.org/a/b.png?size=2&x=%20#top",
            "HTTPS://EXAMPLE.ORG/logo.png",
            " https://example.org ",
            "https://example.org:8443/x",
            "http://example.org:8080/x",
            "http://example.org./x",
            "http://sub_domain.example.org/x",
            "http://8.8.8.8/x",
            "http://[2606:4700::1111]/x",
            "http://1.example/x",
            "http://0xen.example.org/x",
        ] {
            assert_eq!(check_text(text, PUBLIC), Ok(()), "{text}");
        }
    }

    #[test]
    fn a_port_that_is_not_named_is_that_of_the_scheme() {
        for (text, port) in [
            ("http://example.org/", 80),
            ("https://example.org/", 443),
            ("https://example.org:8080/", 8080),
        ] {
            let uri = parse(text).expect("a URL");
            assert_eq!(check(&uri, PUBLIC), Ok(("example.org", port)), "{text}");
        }
    }

    #[test]
    fn other_urls_are_rejected_whatever_the_settings() {
        let open = Policy {
            allow_private: true,
            tls: true,
        };
        for text in [
            "",
            "logo.png",
            "/logo.png",
            "//example.org/logo.png",
            "ftp://example.org/logo.png",
            "file:///etc/passwd",
            "data:image/png;base64,AAAA",
            "gopher://example.org/",
            "http://",
            "http:///logo.png",
            "http://user@example.org/",
            "http://user:pass@example.org/",
            "http://example.org@127.0.0.1/",
            "http://example.org:/",
            "http://example.org:0/",
            "http://example.org:65536/",
            "http://example.org:http/",
            "http://example.org:-80/",
            "http://example.org:+80/",
            "http://2130706433/",
            "http://017700000001/",
            "http://0x7f000001/",
            "http://0x7f.1/",
            "http://0x7f.0.0.0x1/",
            "http://0X7F.1/",
            "http://0x/",
            "http://127.1/",
            "http://127.0.1/",
            "http://127.0.0.1.1/",
            "http://0177.0.0.1/",
            "http://127.0.0.01/",
            "http://127.1./",
            "http://8.8.8.8./",
            "http://256.1.1.1/",
            "http://example.123/",
            "http://[::1/",
            "http://[::1%25lo]/",
            "http://[v1.a]/",
            "http://exa mple.org/",
            "http://exa$mple.org/",
            "http://exa~mple.org/",
            "http://ex%61mple.org/",
            "http://ex\u{e4}mple.org/",
            "http://\u{2460}\u{2461}\u{2466}.0.0.1/",
            "http://example.org\\@127.0.0.1/",
            "http://example.org/a\nb",
        ] {
            let answer = check_text(text, open);
            assert!(
                matches!(answer, Err(FetchError::Url(_))),
                "{text:?}: {answer:?}"
            );
        }
    }

    #[test]
    fn ports_are_limited_on_the_public_network() {
        for port in [21, 22, 25, 6379, 9200] {
            let url = format!("http://example.org:{port}/");
            assert!(
                matches!(check_text(&url, PUBLIC), Err(FetchError::Url(_))),
                "{url}"
            );
            assert_eq!(
                check_text(
                    &url,
                    Policy {
                        allow_private: true,
                        tls: true
                    }
                ),
                Ok(()),
                "{url}"
            );
        }
    }

    #[test]
    fn https_needs_tls() {
        let without = Policy {
            allow_private: false,
            tls: false,
        };
        assert_eq!(
            check_text("https://example.org/", without),
            Err(FetchError::TlsUnavailable)
        );
        assert_eq!(check_text("http://example.org/", without), Ok(()));
    }

    #[test]
    fn paths_that_were_encoded_once_are_encoded_again() {
        let uri = parse("https://example.org/my l\u{f6}go%20.png?q=\u{20ac}").expect("a URL");
        assert_eq!(uri.path(), "/my%20l%C3%B6go%20.png");
        assert_eq!(uri.query(), Some("q=%E2%82%AC"));
    }
}
