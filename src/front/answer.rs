//! Answers: those that the rooms behind give for a refused request, and heads of those that come from a worker.

use super::reason::reason;
use std::fmt::Write;
use std::time::SystemTime;

/// An answer to a request that is not passed on.
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Names and values, without those that the door itself adds: `Connection`, `Content-Length`, `Date`.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// As it is sent; `connection` is a header line or nothing.
    pub fn to_bytes(&self, connection: &str) -> Vec<u8> {
        let mut head = format!(
            "HTTP/1.1 {} {}\r\nDate: {}\r\nContent-Length: {}\r\n{connection}",
            self.status,
            reason(self.status),
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

/// How many bytes of an answer are its head.
pub fn without_body(answer: &[u8]) -> usize {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    end.map_or(answer.len(), |end| end + 4)
}

/// Reads an answer as `tiny_http` writes it.
#[derive(Debug, Default)]
pub struct AnswerReader {
    head: Vec<u8>,
    left: Option<u64>,
}

/// The header by which a worker says that its answer is a part of a longer one, and from where the next part goes on.
/// The event loop asks for the next part, with the same header, once the client has read this one: so neither a worker nor
/// a large buffer waits for a client. Clients neither see it nor can they send it.
pub const NEXT_PART: &str = "x-towebp-next-part";

/// The head of an answer.
#[derive(Debug, PartialEq, Eq)]
pub struct AnswerHead {
    /// The status code.
    pub status: u16,
    /// As it is sent, without its empty line. Without `Content-Length` if the answer has further parts.
    pub bytes: Vec<u8>,
    /// The value of [`NEXT_PART`].
    pub next_part: Option<String>,
}

/// A portion of an answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Portion<'b> {
    /// The head, once it is there.
    pub head: Option<AnswerHead>,
    /// Bytes of the body.
    pub body: &'b [u8],
    /// Whether that was all.
    pub is_last: bool,
}

/// This is no answer that the rooms behind should give.
#[derive(Debug, PartialEq, Eq)]
pub struct Unreadable;

impl AnswerReader {
    /// Reads on. `is_head` says that the request was HEAD, so that no body follows.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn read<'b>(&mut self, bytes: &'b [u8], is_head: bool) -> Result<Portion<'b>, Unreadable> {
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
        *left = left.checked_sub(bytes.len() as u64).ok_or(Unreadable)?;
        Ok(Portion {
            head,
            body: bytes,
            is_last: *left == 0,
        })
    }

    /// The head, and how many of the bytes belong to it and its empty line.
    fn read_head(
        &mut self,
        bytes: &[u8],
        is_head: bool,
    ) -> Result<Option<(AnswerHead, usize)>, Unreadable> {
        let before = self.head.len();
        self.head.extend_from_slice(bytes);
        let end = without_body(&self.head);
        if !self.head[..end].ends_with(b"\r\n\r\n") {
            return Ok(None);
        }
        let mut bytes = std::mem::take(&mut self.head);
        bytes.truncate(end);
        let (mut head, length) = parse_head(&bytes)?;
        self.left = Some(if is_head {
            0
        } else {
            length.ok_or(Unreadable)?
        });
        bytes.truncate(end - 2);
        head.bytes = with_our_reason(bytes, head.status);
        if head.next_part.is_some() {
            head.bytes = without_lines(&head.bytes, &[NEXT_PART, "content-length"]);
        }
        Ok(Some((head, end - before)))
    }
}

/// `tiny_http` takes its reason phrases from a table of its own (413 is `Payload Too Large` there).
fn with_our_reason(head: Vec<u8>, status: u16) -> Vec<u8> {
    let line_end = head.iter().position(|&byte| byte == b'\r');
    match (line_end, reason(status)) {
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

/// The head, whose `bytes` are left to the caller, and the length of the body.
fn parse_head(bytes: &[u8]) -> Result<(AnswerHead, Option<u64>), Unreadable> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    response.parse(bytes).map_err(|_| Unreadable)?;
    let status = response.code.ok_or(Unreadable)?;
    let value = |name: &str| {
        let mut headers = response.headers.iter();
        let header = headers.find(|header| header.name.eq_ignore_ascii_case(name));
        header.and_then(|header| str::from_utf8(header.value).ok())
    };
    let length = match status {
        204 | 304 => Some(0),
        _ => value("content-length").and_then(|value| value.parse().ok()),
    };
    let head = AnswerHead {
        status,
        bytes: Vec::new(),
        next_part: value(NEXT_PART).map(str::to_owned),
    };
    Ok((head, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

    #[test]
    fn answers_are_read_in_any_portions() {
        for size in 1..=ANSWER.len() {
            let mut reader = AnswerReader::default();
            let (mut head, mut body, mut last) = (None, Vec::new(), false);
            for bytes in ANSWER.chunks(size) {
                assert!(!last, "nothing comes after the last portion");
                let portion = reader.read(bytes, false).expect("it is readable");
                head = portion.head.or(head);
                body.extend_from_slice(portion.body);
                last = portion.is_last;
            }
            let head = head.expect("it has a head");
            assert_eq!(head.bytes, ANSWER[..36], "by {size}");
            assert_eq!((head.status, head.next_part), (200, None), "by {size}");
            assert_eq!((body.as_slice(), last), (&b"hello"[..], true), "by {size}");
        }
    }

    #[test]
    fn heads_alone_and_nonsense_are_told_apart() {
        let read = |text: &'static str, is_head| {
            let mut reader = AnswerReader::default();
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
        assert_eq!(read("HTTP/1.1 200 OK\r\n\r\n", false), Err(Unreadable));
        assert_eq!(
            read("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab", false),
            Err(Unreadable)
        );
        assert_eq!(read("nonsense\r\n\r\n", false), Err(Unreadable));
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
            let portion = AnswerReader::default().read(text.as_bytes(), false);
            let head = portion.expect("it is readable").head.expect("it is whole");
            let expected = format!("HTTP/1.1 {expected}\r\nContent-Length: 0\r\n");
            assert_eq!(String::from_utf8_lossy(&head.bytes), expected);
        }
    }

    #[test]
    fn a_part_has_no_length_of_the_whole() {
        let text = b"HTTP/1.1 200 OK\r\nA: b\r\nX-Towebp-Next-Part: 17\r\nContent-Length: 2\r\nC: d\r\n\r\nab";
        let portion = AnswerReader::default()
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
    fn a_refusal_is_a_whole_answer() {
        let answer = Answer {
            status: 413,
            headers: vec![("Content-Type", "text/plain".to_owned())],
            body: b"no".to_vec(),
        };
        let bytes = answer.to_bytes("Connection: close\r\n");
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
        assert_eq!(without_body(&bytes), bytes.len() - 2);
    }
}
