//! Clients of the simulation: the requests that they send, and the responses that they get.

use crate::front::ClientEnd;
use image_webp::WebPDecoder;
use std::collections::VecDeque;
use std::io::Cursor;

/// A client with a connection.
pub struct Client {
    /// The server that it has connected to.
    pub server: usize,
    /// Its end of the connection.
    pub end: ClientEnd,
    /// The bytes that it has not sent yet.
    pub to_send: VecDeque<u8>,
    /// The numbers of its requests that have no response yet, in the order in which it sends them.
    pub open: VecDeque<usize>,
    /// Whether it sends no more.
    pub has_left: bool,
    received: Vec<u8>,
}

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// A conversion of the picture that has this request's size.
    Conversion,
    /// A conversion of a file that breaks off.
    Damaged,
    /// A conversion by a token that does not exist.
    Forged,
    /// The history of the account.
    History,
    /// The check whether the server is alive.
    Health,
    /// Random bytes, which are no HTTP.
    Noise,
}

/// A response that is complete.
#[derive(Debug)]
pub struct Received {
    pub status: u16,
    head: String,
    pub body: Vec<u8>,
}

impl Client {
    /// A client that has sent nothing.
    pub fn new(server: usize, end: ClientEnd) -> Client {
        Client {
            server,
            end,
            to_send: VecDeque::new(),
            open: VecDeque::new(),
            has_left: false,
            received: Vec::new(),
        }
    }

    /// Whether it has all its responses, and may send another request.
    pub fn is_idle(&self) -> bool {
        self.open.is_empty() && self.to_send.is_empty() && !self.has_left
    }

    /// The next response that has arrived whole. A 100 is none.
    pub fn receive(&mut self) -> Option<Received> {
        self.received.extend(self.end.take());
        loop {
            let end = find(&self.received, b"\r\n\r\n")? + 4;
            let head = std::str::from_utf8(&self.received[..end]).expect("a head in ASCII");
            let head = head.to_ascii_lowercase();
            let status = head["http/1.1 ".len()..][..3].parse().expect("a status");
            if status == 100 {
                self.received.drain(..end);
                continue;
            }
            let rest = &self.received[end..];
            let (body, length) = if head.contains("\r\ntransfer-encoding: chunked\r\n") {
                whole_chunks(rest)?
            } else {
                let length = header(&head, "content-length").expect("a framing");
                let length: usize = length.parse().expect("a length");
                (rest.get(..length)?.to_vec(), length)
            };
            self.received.drain(..end + length);
            return Some(Received { status, head, body });
        }
    }
}

impl Received {
    /// The value of a header, whose name is lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    /// Width and height of the WebP that it has.
    pub fn size(&self) -> (u32, u32) {
        let decoder = WebPDecoder::new(Cursor::new(&self.body)).expect("a WebP");
        decoder.dimensions()
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines();
    let line = lines.find(|line| line.split_once(':').is_some_and(|(it, _)| it == name))?;
    Some(line[name.len() + 1..].trim())
}

/// The data of chunks, and the bytes that they take, if the last one is there.
fn whole_chunks(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (mut data, mut at) = (Vec::new(), 0);
    loop {
        let line = find(&bytes[at..], b"\r\n")?;
        let size = std::str::from_utf8(&bytes[at..at + line]).expect("a size in ASCII");
        let size = usize::from_str_radix(size, 16).expect("a size");
        let start = at + line + 2;
        let chunk = bytes.get(start..start + size + 2)?;
        at = start + size + 2;
        if size == 0 {
            return Some((data, at));
        }
        data.extend(&chunk[..size]);
    }
}

fn find(bytes: &[u8], sought: &[u8]) -> Option<usize> {
    bytes
        .windows(sought.len())
        .position(|window| window == sought)
}

/// A request for the history of the account of this token.
pub fn history(token: &str) -> Vec<u8> {
    let head = "GET /api/usage HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer";
    format!("{head} {token}\r\n\r\n").into_bytes()
}

/// A conversion of a BMP, which may come in a form. With `expects`, the head has
/// `Expect: 100-continue`; with `chunk`, the body comes in chunks of so many bytes.
pub fn conversion(
    token: &str,
    mut body: Vec<u8>,
    is_form: bool,
    expects: bool,
    chunk: Option<usize>,
) -> Vec<u8> {
    let mut media_type = "image/bmp";
    if is_form {
        media_type = "multipart/form-data; boundary=x";
        let start = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.bmp\"\r\n\
                     Content-Type: image/bmp\r\n\r\n";
        body = [start.as_bytes(), &body, b"\r\n--x--\r\n"].concat();
    }
    let expect = if expects {
        "Expect: 100-continue\r\n"
    } else {
        ""
    };
    let framing = match chunk {
        None => format!("Content-Length: {}", body.len()),
        Some(_) => "Transfer-Encoding: chunked".to_owned(),
    };
    let head = format!(
        "POST /convert?effort=low HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: {media_type}\r\n{expect}{framing}\r\n\r\n"
    );
    let mut bytes = head.into_bytes();
    let Some(size) = chunk else {
        bytes.extend(body);
        return bytes;
    };
    for chunk in body.chunks(size) {
        bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
        bytes.extend(chunk);
        bytes.extend(b"\r\n");
    }
    bytes.extend(b"0\r\n\r\n");
    bytes
}

/// A BMP of this size with 24 bits a pixel (BITMAPFILEHEADER and BITMAPINFOHEADER of Microsoft),
/// all of one color.
pub fn picture(width: u32, height: u32) -> Vec<u8> {
    let row = (3 * width as usize).next_multiple_of(4);
    let pixels = row * height as usize;
    let mut bytes = b"BM".to_vec();
    for number in [54 + pixels as u32, 0, 54, 40, width, height] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend([1, 0, 24, 0]);
    for number in [0, pixels as u32, 0, 0, 0, 0] {
        bytes.extend(u32::to_le_bytes(number));
    }
    bytes.resize(bytes.len() + pixels, width as u8);
    bytes
}
