//! The sending side of a client's connection: framing of responses, and what the socket has not
//! taken yet.

use super::byte_queue::ByteQueue;
use super::head::Head;
use super::min_rate::MinRate;
use super::settings::Settings;
use mio::net::TcpStream;
use std::io::{self, ErrorKind, Write};
use std::time::Instant;

/// Writes responses to one client.
pub struct ResponseWriter {
    /// What the socket has not taken yet.
    buffer: ByteQueue,
    /// Since when the client is to read a response.
    since: Option<Instant>,
    rate: MinRate,
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

/// How the end of a response's body is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ResponseFraming {
    /// By its length, which the worker's head gives.
    #[default]
    ContentLength,
    /// By the last chunk (RFC 9112 section 7.1). The worker answers in parts.
    Chunked,
    /// By the end of the connection, for HTTP/1.0. The worker answers in parts.
    UntilClose,
}

impl ResponseWriter {
    /// A writer that has nothing to send.
    pub fn new(now: Instant) -> ResponseWriter {
        ResponseWriter {
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

    /// Since when the client is to read a response that the socket did not take at once.
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

    /// Sends a response's head, given without the empty line at its end.
    ///
    /// # Errors
    /// The client is gone.
    pub fn send_head(
        &mut self,
        stream: &TcpStream,
        mut head: Vec<u8>,
        rate: u64,
        now: Instant,
    ) -> io::Result<()> {
        head.extend_from_slice(self.options.connection_line().as_bytes());
        head.extend_from_slice(b"\r\n");
        self.send(stream, &head, rate, now)
    }

    /// Sends the head of a response in parts, given like that of [`ResponseWriter::send_head`].
    ///
    /// # Errors
    /// The client is gone.
    pub fn begin_parts(
        &mut self,
        stream: &TcpStream,
        mut head: Vec<u8>,
        rate: u64,
        now: Instant,
    ) -> io::Result<()> {
        let framing = if self.options.is_http10 {
            self.options.keep_alive = false;
            ResponseFraming::UntilClose
        } else {
            head.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
            ResponseFraming::Chunked
        };
        // The response to HEAD ends with its head.
        if !self.options.without_body {
            self.framing = framing;
        }
        self.send_head(stream, head, rate, now)
    }

    /// Sends bytes of a response's body.
    ///
    /// # Errors
    /// The client is gone.
    pub fn send_body(
        &mut self,
        stream: &TcpStream,
        bytes: &[u8],
        rate: u64,
        now: Instant,
    ) -> io::Result<()> {
        // An empty chunk would end the body.
        if self.framing != ResponseFraming::Chunked || bytes.is_empty() {
            return self.send(stream, bytes, rate, now);
        }
        let size = format!("{:x}\r\n", bytes.len());
        let chunk = [size.as_bytes(), bytes, b"\r\n"].concat();
        self.send(stream, &chunk, rate, now)
    }

    /// Sends what follows the last part, if the response came in parts.
    ///
    /// # Errors
    /// The client is gone.
    pub fn end_parts(&mut self, stream: &TcpStream, rate: u64, now: Instant) -> io::Result<()> {
        match std::mem::take(&mut self.framing) {
            ResponseFraming::Chunked => self.send(stream, b"0\r\n\r\n", rate, now),
            ResponseFraming::ContentLength | ResponseFraming::UntilClose => Ok(()),
        }
    }

    /// Sends bytes, now or as soon as the socket takes them. `rate` is the least rate of the
    /// client, in bytes a second.
    ///
    /// # Errors
    /// The client is gone.
    pub fn send(
        &mut self,
        mut stream: &TcpStream,
        mut bytes: &[u8],
        rate: u64,
        now: Instant,
    ) -> io::Result<()> {
        let was_empty = self.buffer.is_empty();
        while was_empty && !bytes.is_empty() {
            match stream.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if bytes.is_empty() {
            return Ok(());
        }
        if was_empty {
            self.rate = MinRate::new(now);
            self.since.get_or_insert(now);
        }
        self.buffer.push(bytes, None);
        self.flush(stream, rate, now)
    }

    /// Writes what the socket takes of what waits.
    ///
    /// # Errors
    /// The client is gone.
    pub fn flush(&mut self, mut stream: &TcpStream, rate: u64, now: Instant) -> io::Result<()> {
        while !self.buffer.is_empty() {
            match stream.write(self.buffer.first()) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.buffer.consume(count);
                    self.rate.record(count, rate, now);
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
    /// What a head asks for.
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
