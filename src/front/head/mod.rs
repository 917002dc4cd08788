//! Heads of requests: bytes in, a [`Head`] or a [`Rejection`] out, without a socket.
//!
//! HTTP/1.1 (RFC 9112) lets servers be lenient in many places. Wherever two servers in a row could
//! disagree on where a request ends, this one rejects it. [`read`] does all of it, for fuzzing and
//! tests; a connection calls its two steps, [`HeadScanner::find_end`] and [`parse`], since most of
//! the reading is finding the end.

mod fields;
mod scanner;
mod target;
#[cfg(test)]
mod tests;
mod types;

pub use scanner::HeadScanner;
pub use types::{Framing, Head, HeadLimits};

use super::rejection::Rejection;
use fields::Fields;
use target::split_authority;

/// Reads the head at the start of the bytes, and gives it with the number of bytes before the body;
/// `None` if there is no end of a head yet.
///
/// # Errors
/// The fault of the head, as soon as it is clear.
pub fn read(bytes: &[u8], limits: HeadLimits) -> Result<Option<(Head, usize)>, Rejection> {
    let mut scanner = HeadScanner::default();
    match scanner.find_end(bytes, limits)? {
        Some(end) => Ok(Some((parse(&bytes[..end], limits)?, end))),
        None => Ok(None),
    }
}

/// Parses a head whose end [`HeadScanner`] found.
///
/// # Errors
/// The fault of the head.
pub fn parse(bytes: &[u8], limits: HeadLimits) -> Result<Head, Rejection> {
    let mut headers = vec![httparse::EMPTY_HEADER; limits.headers];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Err(Rejection::Malformed("it ends too early")),
        Err(error) => return Err(rejection_of(error, bytes, limits)),
    }
    let method = request.method.unwrap_or_default();
    let target = request.path.unwrap_or_default();
    let is_http10 = request.version == Some(0);
    let fields = Fields(request.headers);
    let framing = fields.framing(method, is_http10)?;
    let expects_continue = fields.expects_continue(is_http10)?;
    fields.check_host(is_http10)?;
    let (authority, target) = split_authority(target)?;
    let mut headers = fields.passed_on();
    if let Some(authority) = authority {
        headers.retain(|(name, _)| name != "host");
        headers.push(("host".to_owned(), authority.to_owned()));
    }
    Ok(Head {
        method: method.to_owned(),
        target: target::encode(&target),
        headers,
        framing,
        is_http10,
        keep_alive: fields.keep_alive(is_http10),
        expects_continue,
    })
}

fn rejection_of(error: httparse::Error, bytes: &[u8], limits: HeadLimits) -> Rejection {
    match error {
        httparse::Error::TooManyHeaders => Rejection::TooManyHeaders {
            limit: limits.headers,
        },
        httparse::Error::Version if names_a_version(bytes) => Rejection::VersionUnsupported,
        httparse::Error::Version | httparse::Error::NewLine => {
            Rejection::Malformed("the request line does not end in HTTP/1.1")
        }
        httparse::Error::HeaderName => Rejection::Malformed("a header's name cannot be read"),
        httparse::Error::HeaderValue => Rejection::Malformed("a header's value cannot be read"),
        _ => Rejection::Malformed("the request line cannot be read"),
    }
}

/// Whether the request line has three words, the third of which is `HTTP/`, a digit, a dot and a
/// digit.
fn names_a_version(bytes: &[u8]) -> bool {
    let line = bytes.trim_ascii_start().split(|&byte| byte == b'\r').next();
    let words: Vec<&[u8]> = line
        .unwrap_or_default()
        .split(|&byte| byte == b' ')
        .collect();
    matches!(words[..], [_, _, [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]]
        if major.is_ascii_digit() && minor.is_ascii_digit())
}
