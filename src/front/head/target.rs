//! The request target and the host (RFC 9112 section 3.2).

use crate::front::rejection::Rejection;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use std::borrow::Cow;
use std::net::Ipv6Addr;

/// Splits `http://host/path?query` into `host` and `/path?query`, and leaves every other target as
/// it is.
///
/// # Errors
/// The URL's host cannot be read.
pub fn split_authority(target: &str) -> Result<(Option<&str>, Cow<'_, str>), Rejection> {
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
        return Err(Rejection::Malformed("the URL's host cannot be read"));
    }
    let path = if path.starts_with('/') {
        path.into()
    } else {
        format!("/{path}").into()
    };
    Ok((Some(authority), path))
}

/// Whether a value of `Host`, without the white space around it, is one (RFC 9110 section 7.2): a
/// name, an IPv4 address or an IPv6 address in brackets, then maybe a colon and a port. It may be
/// empty: then the client's URL has no host.
pub fn is_host(value: &[u8]) -> bool {
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

/// Whether the text is an IPv6 address (RFC 3986 section 3.2.2), maybe with a zone (RFC 6874),
/// which has no meaning here.
fn is_ipv6(text: &str) -> bool {
    let (address, zone) = text.split_once('%').unwrap_or((text, "0"));
    address.parse::<Ipv6Addr>().is_ok() && !zone.is_empty() && is_registered_name(zone)
}

/// Whether the text is a `reg-name` (RFC 3986 section 3.2.2), as IPv4 addresses are too.
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

/// Characters that no target may contain: control characters and spaces. Bytes beyond ASCII are
/// always encoded.
const NOT_GRAPHIC: &AsciiSet = &CONTROLS.add(b' ');

/// The target in printable ASCII, percent-encoded where it was not.
pub fn encode(target: &str) -> String {
    utf8_percent_encode(target, NOT_GRAPHIC).to_string()
}
