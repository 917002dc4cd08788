//! Responses as values, and the bytes of their heads.

use super::reason_phrase::reason_phrase;
use std::fmt::Write;
use std::time::{Instant, SystemTime};

/// A response.
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Names and values of the headers, without `Connection`, `Content-Length`, `Date` and
    /// `Transfer-Encoding`, which are added here.
    pub headers: Vec<(&'static str, String)>,
    /// The body, or its first part.
    pub body: Vec<u8>,
    /// Makes the further parts of the body, if there are any.
    pub parts: Option<Parts>,
    /// When it is to be sent; `None` for at once.
    pub due: Option<Instant>,
}

/// The parts of a body after the first one. A worker makes the next part once the client has read
/// the one before, so that neither a worker nor a large buffer waits for a client.
pub type Parts = Box<dyn Iterator<Item = Result<Vec<u8>, PartFailed>> + Send>;

/// A part cannot be made, so the response breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartFailed;

impl Response {
    /// The bytes of the head. `framing` and `connection` are header lines or empty.
    pub(super) fn head(&self, framing: &str, connection: &str) -> Vec<u8> {
        let mut head = format!(
            "HTTP/1.1 {} {}\r\nDate: {}\r\n{framing}{connection}",
            self.status,
            reason_phrase(self.status),
            httpdate::fmt_http_date(SystemTime::now()),
        );
        for (name, value) in &self.headers {
            write!(head, "{name}: {value}\r\n").expect("a String takes everything");
        }
        head.push_str("\r\n");
        head.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_complete() {
        let response = Response {
            status: 413,
            headers: vec![("Content-Type", "text/plain".to_owned())],
            body: b"no".to_vec(),
            parts: None,
            due: None,
        };
        let head = response.head("Content-Length: 2\r\n", "Connection: close\r\n");
        let text = String::from_utf8(head).expect("it is text");
        assert!(
            text.starts_with("HTTP/1.1 413 Content Too Large\r\nDate: "),
            "{text}"
        );
        let lines = "Content-Length: 2\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\n";
        assert!(text.ends_with(lines), "{text}");
    }
}
