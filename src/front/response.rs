//! Responses: early ones, which no worker gives, and those that come from a worker.

use super::internal_headers::NEXT_PART;
use super::reason_phrase::reason_phrase;
use std::fmt::Write;
use std::time::SystemTime;

/// The response to a request that is not passed on to a worker.
pub struct EarlyResponse {
    /// The status code.
    pub status: u16,
    /// Names and values of the headers, without `Connection`, `Content-Length` and `Date`, which
    /// are added here.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl EarlyResponse {
    /// The bytes that are sent. `connection` is a header line or empty.
    pub fn to_bytes(&self, connection: &str) -> Vec<u8> {
        let mut head = format!(
            "HTTP/1.1 {} {}\r\nDate: {}\r\nContent-Length: {}\r\n{connection}",
            self.status,
            reason_phrase(self.status),
            httpdate::fmt_http_date(SystemTime::now()),
            self.body.len()
        );
        for (name, value) in &self.headers {
            write!(head, "{name}: {value}\r\n").expect("a String takes everything");
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// The number of bytes of a response that are its head.
pub fn head_length(response: &[u8]) -> usize {
    let end = response.windows(4).position(|four| four == b"\r\n\r\n");
    end.map_or(response.len(), |end| end + 4)
}

/// Reads a response as `tiny_http` writes it.
#[derive(Debug, Default)]
pub struct ResponseReader {
    /// What has arrived of the head.
    head: Vec<u8>,
    /// Bytes of the body that are still to come, once the head has arrived.
    left: Option<u64>,
}

/// The head of a worker's response.
#[derive(Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// The status code.
    pub status: u16,
    /// The bytes that are sent, without the empty line, and without `Content-Length` if the
    /// response has further parts.
    pub bytes: Vec<u8>,
    /// The value of [`NEXT_PART`].
    pub next_part: Option<String>,
}

/// What one read brings of a worker's response.
#[derive(Debug, PartialEq, Eq)]
pub struct Portion<'b> {
    /// The head, if these bytes complete it.
    pub head: Option<ResponseHead>,
    /// Bytes of the body.
    pub body: &'b [u8],
    /// Whether the response is complete.
    pub is_last: bool,
}

/// The bytes are no response that a worker should give.
#[derive(Debug, PartialEq, Eq)]
pub struct UnreadableResponse;

impl ResponseReader {
    /// Reads on. `is_head` says that the method of the request is HEAD, so that no body follows.
    ///
    /// # Errors
    /// [`UnreadableResponse`].
    pub fn read<'b>(
        &mut self,
        bytes: &'b [u8],
        is_head: bool,
    ) -> Result<Portion<'b>, UnreadableResponse> {
        let (head, bytes) = match self.left {
            Some(_) => (None, bytes),
            None => match self.read_head(bytes, is_head)? {
                Some((head, used)) => (Some(head), &bytes[used..]),
                None => (None, &[][..]),
            },
        };
        let Some(left) = &mut self.left else {
            return Ok(Portion {
                head: None,
                body: bytes,
                is_last: false,
            });
        };
        *left = left
            .checked_sub(bytes.len() as u64)
            .ok_or(UnreadableResponse)?;
        Ok(Portion {
            head,
            body: bytes,
            is_last: *left == 0,
        })
    }

    /// The head, once it is complete, and how many of the bytes belong to it and its empty line.
    fn read_head(
        &mut self,
        bytes: &[u8],
        is_head: bool,
    ) -> Result<Option<(ResponseHead, usize)>, UnreadableResponse> {
        let before = self.head.len();
        self.head.extend_from_slice(bytes);
        let end = head_length(&self.head);
        if !self.head[..end].ends_with(b"\r\n\r\n") {
            return Ok(None);
        }
        let mut bytes = std::mem::take(&mut self.head);
        bytes.truncate(end);
        let (mut head, length) = parse_head(&bytes)?;
        self.left = Some(if is_head {
            0
        } else {
            length.ok_or(UnreadableResponse)?
        });
        bytes.truncate(end - 2);
        head.bytes = with_our_reason(bytes, head.status);
        if head.next_part.is_some() {
            head.bytes = without_lines(&head.bytes, &[NEXT_PART, "content-length"]);
        }
        Ok(Some((head, end - before)))
    }
}

/// The head with the reason phrase of [`reason_phrase`]. `tiny_http` takes its phrases from a table
/// of its own, in which 413 is `Payload Too Large`.
fn with_our_reason(head: Vec<u8>, status: u16) -> Vec<u8> {
    let line_end = head.iter().position(|&byte| byte == b'\r');
    match (line_end, reason_phrase(status)) {
        // `HTTP/1.1 200`, then a space and the phrase.
        (Some(line_end @ 12..), phrase) if !phrase.is_empty() => {
            [&head[..12], b" ", phrase.as_bytes(), &head[line_end..]].concat()
        }
        _ => head,
    }
}

/// The head without the headers of these lower-case names.
fn without_lines(head: &[u8], names: &[&str]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(head.len());
    for line in head.split_inclusive(|&byte| byte == b'\n') {
        let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
        if !names
            .iter()
            .any(|given| name.eq_ignore_ascii_case(given.as_bytes()))
        {
            kept.extend_from_slice(line);
        }
    }
    kept
}

/// The head, whose `bytes` are left empty, and the length of the body.
fn parse_head(bytes: &[u8]) -> Result<(ResponseHead, Option<u64>), UnreadableResponse> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    response.parse(bytes).map_err(|_| UnreadableResponse)?;
    let status = response.code.ok_or(UnreadableResponse)?;
    let value = |name: &str| {
        let mut headers = response.headers.iter();
        let header = headers.find(|header| header.name.eq_ignore_ascii_case(name));
        header.and_then(|header| str::from_utf8(header.value).ok())
    };
    let length = match status {
        204 | 304 => Some(0),
        _ => value("content-length").and_then(|value| value.parse().ok()),
    };
    let head = ResponseHead {
        status,
        bytes: Vec::new(),
        next_part: value(NEXT_PART).map(str::to_owned),
    };
    Ok((head, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

    #[test]
    fn responses_are_read_in_any_portions() {
        for size in 1..=RESPONSE.len() {
            let mut reader = ResponseReader::default();
            let (mut head, mut body, mut last) = (None, Vec::new(), false);
            for bytes in RESPONSE.chunks(size) {
                assert!(!last, "nothing comes after the last portion");
                let portion = reader.read(bytes, false).expect("it is readable");
                head = portion.head.or(head);
                body.extend_from_slice(portion.body);
                last = portion.is_last;
            }
            let head = head.expect("it has a head");
            assert_eq!(head.bytes, RESPONSE[..36], "by {size}");
            assert_eq!((head.status, head.next_part), (200, None), "by {size}");
            assert_eq!((body.as_slice(), last), (&b"hello"[..], true), "by {size}");
        }
    }

    #[test]
    fn heads_alone_and_nonsense_are_told_apart() {
        let read = |text: &'static str, is_head| {
            let mut reader = ResponseReader::default();
            reader
                .read(text.as_bytes(), is_head)
                .map(|portion| portion.is_last)
        };
        assert_eq!(
            read("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true),
            Ok(true)
        );
        assert_eq!(read("HTTP/1.1 204 No Content\r\n\r\n", false), Ok(true));
        assert_eq!(
            read("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", false),
            Ok(false)
        );
        assert_eq!(
            read("HTTP/1.1 200 OK\r\n\r\n", false),
            Err(UnreadableResponse)
        );
        assert_eq!(
            read("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab", false),
            Err(UnreadableResponse)
        );
        assert_eq!(read("nonsense\r\n\r\n", false), Err(UnreadableResponse));
    }

    #[test]
    fn reason_phrases_are_ours() {
        for (line, expected) in [
            ("413 Payload Too Large", "413 Content Too Large"),
            ("200 OK", "200 OK"),
            ("499 Unknown", "499 Client Closed Request"),
            ("299 Something", "299 Something"),
            ("413", "413 Content Too Large"),
        ] {
            let text = format!("HTTP/1.1 {line}\r\nContent-Length: 0\r\n\r\n");
            let portion = ResponseReader::default().read(text.as_bytes(), false);
            let head = portion.expect("it is readable").head.expect("it is whole");
            let expected = format!("HTTP/1.1 {expected}\r\nContent-Length: 0\r\n");
            assert_eq!(String::from_utf8_lossy(&head.bytes), expected);
        }
    }

    #[test]
    fn a_part_has_no_length_of_the_whole() {
        let text = b"HTTP/1.1 200 OK\r\nA: b\r\nX-Towebp-Next-Part: 17\r\nContent-Length: 2\r\nC: d\r\n\r\nab";
        let portion = ResponseReader::default()
            .read(text, false)
            .expect("it is readable");
        let head = portion.head.expect("it is whole");
        assert_eq!(head.next_part.as_deref(), Some("17"));
        assert_eq!(
            String::from_utf8_lossy(&head.bytes),
            "HTTP/1.1 200 OK\r\nA: b\r\nC: d\r\n"
        );
        assert_eq!((portion.body, portion.is_last), (&b"ab"[..], true));
    }

    #[test]
    fn an_early_response_is_complete() {
        let response = EarlyResponse {
            status: 413,
            headers: vec![("Content-Type", "text/plain".to_owned())],
            body: b"no".to_vec(),
        };
        let bytes = response.to_bytes("Connection: close\r\n");
        let text = String::from_utf8(bytes.clone()).expect("it is text");
        assert!(
            text.starts_with("HTTP/1.1 413 Content Too Large\r\nDate: "),
            "{text}"
        );
        assert!(
            text.ends_with(
                "Content-Length: 2\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\nno"
            ),
            "{text}"
        );
        assert_eq!(head_length(&bytes), bytes.len() - 2);
    }
}
