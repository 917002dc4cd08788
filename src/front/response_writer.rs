//! The sending side of a client's connection: framing of responses, and bytes that the socket has
//! not taken yet.

use super::byte_queue::ByteQueue;
use super::head::Head;
use super::min_rate::MinRate;
use super::response::{Parts, Response};
use super::settings::Settings;
use super::socket::Socket;
use std::io::{self, ErrorKind};
use std::time::Instant;

/// Writes responses to one client.
pub struct ResponseWriter {
    /// Bytes that the socket has not taken yet.
    buffer: ByteQueue,
    /// The start of a response that the client has to read.
    since: Option<Instant>,
    rate: MinRate,
    /// The least rate of the client, in bytes a second.
    least_rate: u64,
    /// How the present request wants its response.
    pub options: ResponseOptions,
    framing: ResponseFraming,
}

/// How a request wants its response.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResponseOptions {
    /// Whether the connection stays open afterwards.
    pub keep_alive: bool,
    /// Whether the request is HEAD, whose response has no body.
    pub without_body: bool,
    /// Whether the request is HTTP/1.0.
    pub is_http10: bool,
}

/// How a response's body ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ResponseFraming {
    /// After the number of bytes in the head.
    #[default]
    ContentLength,
    /// With the last chunk (RFC 9112 section 7.1). The worker answers in parts.
    Chunked,
    /// With the connection, for HTTP/1.0. The worker answers in parts.
    UntilClose,
}

impl ResponseWriter {
    /// A writer that has nothing to send, to a client that reads at `least_rate` bytes a second.
    pub fn new(least_rate: u64, now: Instant) -> ResponseWriter {
        ResponseWriter {
            least_rate,
            buffer: ByteQueue::default(),
            since: None,
            rate: MinRate::new(now),
            options: ResponseOptions::default(),
            framing: ResponseFraming::default(),
        }
    }

    /// Whether the socket has taken everything.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Bytes of memory that it holds.
    pub fn held(&self) -> usize {
        self.buffer.held()
    }

    /// The start of a response that the socket did not take at once.
    pub fn since(&self) -> Option<Instant> {
        self.since
    }

    /// The response has been sent.
    pub fn finish(&mut self) {
        self.since = None;
    }

    /// When the client's time to read is over.
    pub fn deadline(&self, settings: &Settings) -> Option<Instant> {
        let since = self.since.filter(|_| !self.buffer.is_empty())?;
        Some(self.rate.deadline().min(since + settings.answer_time))
    }

    /// Whether the present response comes in parts, of which at least one was sent.
    pub fn is_in_parts(&self) -> bool {
        self.framing != ResponseFraming::ContentLength
    }

    /// Sends a response, or its head and the first part of its body. Returns the iterator of the
    /// further parts, if the client is to get any.
    pub fn respond(
        &mut self,
        socket: &dyn Socket,
        mut response: Response,
        now: Instant,
    ) -> io::Result<Option<Parts>> {
        let parts = response.parts.take();
        let framing = match (&parts, self.options.is_http10) {
            (None, _) => ResponseFraming::ContentLength,
            (Some(_), false) => ResponseFraming::Chunked,
            (Some(_), true) => {
                self.options.keep_alive = false;
                ResponseFraming::UntilClose
            }
        };
        let framing_line = match framing {
            ResponseFraming::ContentLength => {
                format!("Content-Length: {}\r\n", response.body.len())
            }
            ResponseFraming::Chunked => "Transfer-Encoding: chunked\r\n".to_owned(),
            ResponseFraming::UntilClose => String::new(),
        };
        let head = response.head(&framing_line, self.options.connection_line());
        // The response to HEAD ends with its head.
        if self.options.without_body {
            self.send(socket, vec![head], now)?;
            return Ok(None);
        }
        self.framing = framing;
        let mut bytes = vec![head];
        bytes.extend(self.framed(response.body));
        self.send(socket, bytes, now)?;
        Ok(parts)
    }

    /// Sends a further part of a response's body.
    pub fn send_part(
        &mut self,
        socket: &dyn Socket,
        part: Vec<u8>,
        now: Instant,
    ) -> io::Result<()> {
        let bytes = self.framed(part);
        self.send(socket, bytes, now)
    }

    /// Sends the end after the last part.
    pub fn end_parts(&mut self, socket: &dyn Socket, now: Instant) -> io::Result<()> {
        match std::mem::take(&mut self.framing) {
            ResponseFraming::Chunked => self.send(socket, vec![b"0\r\n\r\n".to_vec()], now),
            ResponseFraming::ContentLength | ResponseFraming::UntilClose => Ok(()),
        }
    }

    /// The bytes of a part of the body, as they are sent.
    fn framed(&self, part: Vec<u8>) -> Vec<Vec<u8>> {
        // An empty chunk would end the body.
        if self.framing != ResponseFraming::Chunked || part.is_empty() {
            return vec![part];
        }
        let size = format!("{:x}\r\n", part.len());
        vec![size.into_bytes(), part, b"\r\n".to_vec()]
    }

    /// Sends blocks of bytes, now or as soon as the socket takes them.
    pub fn send(
        &mut self,
        socket: &dyn Socket,
        blocks: Vec<Vec<u8>>,
        now: Instant,
    ) -> io::Result<()> {
        let was_empty = self.buffer.is_empty();
        for block in blocks {
            self.buffer.push_block(block);
        }
        self.flush(socket, now)?;
        if was_empty && !self.buffer.is_empty() {
            self.rate = MinRate::new(now);
            self.since.get_or_insert(now);
        }
        Ok(())
    }

    /// Writes waiting bytes as far as the socket takes them.
    pub fn flush(&mut self, socket: &dyn Socket, now: Instant) -> io::Result<()> {
        while !self.buffer.is_empty() {
            match socket.write(self.buffer.first()) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.buffer.consume(count);
                    self.rate.record(count, self.least_rate, now);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl ResponseOptions {
    /// The options of a head.
    pub fn of(head: &Head) -> ResponseOptions {
        ResponseOptions {
            keep_alive: head.keep_alive,
            without_body: head.method == "HEAD",
            is_http10: head.is_http10,
        }
    }

    /// The `Connection` line of the response: HTTP/1.1 stays open by default, HTTP/1.0 does not.
    pub fn connection_line(self) -> &'static str {
        match (self.keep_alive, self.is_http10) {
            (false, _) => "Connection: close\r\n",
            (true, true) => "Connection: keep-alive\r\n",
            (true, false) => "",
        }
    }
}
