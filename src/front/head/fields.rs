//! The headers that decide how a request is read.

use super::target::is_host;
use super::types::Framing;
use crate::front::rejection::Rejection;

/// Headers that concern this connection alone (RFC 9110 section 7.6.1), or that have been dealt
/// with here.
const HOP_BY_HOP: [&str; 9] = [
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

/// The headers as they were sent.
pub struct Fields<'h>(pub &'h [httparse::Header<'h>]);

impl Fields<'_> {
    /// The values of all headers of this name.
    fn all(&self, name: &'static str) -> impl Iterator<Item = &[u8]> {
        self.0
            .iter()
            .filter(move |header| header.name.eq_ignore_ascii_case(name))
            .map(|header| header.value.trim_ascii())
    }

    /// Checks that a request names its host once, which HTTP/1.0 need not (RFC 9112 section 3.2).
    ///
    /// # Errors
    /// [`Rejection::Malformed`].
    pub fn check_host(&self, is_http10: bool) -> Result<(), Rejection> {
        let mut hosts = self.all("host");
        let message = match (hosts.next(), hosts.next()) {
            (None, _) if is_http10 => return Ok(()),
            (None, _) => "Host is missing",
            (Some(_), Some(_)) => "Host is given more than once",
            (Some(host), None) if is_host(host) => return Ok(()),
            (Some(_), None) => "the host in Host cannot be read",
        };
        Err(Rejection::Malformed(message))
    }

    /// Where the body ends (RFC 9112 section 6.3).
    ///
    /// # Errors
    /// It is not clear, or the coding is not supported.
    pub fn framing(&self, method: &str, is_http10: bool) -> Result<Framing, Rejection> {
        let mut lengths = self.all("content-length");
        let length = lengths.next();
        if lengths.next().is_some() {
            return Err(Rejection::Framing("Content-Length is given more than once"));
        }
        let mut codings = self.all("transfer-encoding");
        let Some(coding) = codings.next() else {
            return match length {
                Some(length) => parse_length(length).map(Framing::Length),
                None if is_http10 && matches!(method, "POST" | "PUT" | "PATCH") => {
                    Err(Rejection::LengthRequired)
                }
                None => Ok(Framing::Length(0)),
            };
        };
        if length.is_some() {
            return Err(Rejection::Framing(
                "Content-Length and Transfer-Encoding are both given",
            ));
        }
        if is_http10 {
            return Err(Rejection::Framing("HTTP/1.0 has no Transfer-Encoding"));
        }
        if codings.next().is_some() {
            return Err(Rejection::Framing(
                "Transfer-Encoding is given more than once",
            ));
        }
        if coding.eq_ignore_ascii_case(b"chunked") {
            Ok(Framing::Chunked)
        } else {
            Err(Rejection::TransferCodingUnsupported)
        }
    }

    /// Whether the connection stays open after the response (RFC 9112 section 9.3).
    pub fn keep_alive(&self, is_http10: bool) -> bool {
        let says = |option: &str| {
            self.all("connection").any(|line| {
                line.split(|&byte| byte == b',')
                    .any(|given| given.trim_ascii().eq_ignore_ascii_case(option.as_bytes()))
            })
        };
        !says("close") && (!is_http10 || says("keep-alive"))
    }

    /// Whether the client waits for `100 Continue`.
    ///
    /// # Errors
    /// Something else is expected.
    pub fn expects_continue(&self, is_http10: bool) -> Result<bool, Rejection> {
        let mut expected = false;
        for expectation in self.all("expect") {
            if !expectation.eq_ignore_ascii_case(b"100-continue") {
                return Err(Rejection::ExpectationUnsupported);
            }
            // RFC 9110 section 10.1.1: to be ignored from HTTP/1.0.
            expected = !is_http10;
        }
        Ok(expected)
    }

    /// The headers that the workers get.
    pub fn passed_on(&self) -> Vec<(String, String)> {
        let ascii = |byte: &u8| if byte.is_ascii() { *byte as char } else { '?' };
        self.0
            .iter()
            .map(|header| (header.name.to_ascii_lowercase(), header.value.trim_ascii()))
            .filter(|(name, _)| !HOP_BY_HOP.contains(&name.as_str()))
            .map(|(name, value)| (name, value.iter().map(ascii).collect()))
            .collect()
    }
}

/// A length in decimal digits. A larger number than 64 bits hold becomes their maximum, which is
/// too large as well.
fn parse_length(text: &[u8]) -> Result<u64, Rejection> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return Err(Rejection::Framing("Content-Length is not a whole number"));
    }
    let digit = |value: u64, byte: &u8| {
        value
            .saturating_mul(10)
            .saturating_add(u64::from(byte - b'0'))
    };
    Ok(text.iter().fold(0, digit))
}
