//! One connection to `tiny_http`, made at the start and kept, and the request that it has.

use super::admission::{Admitted, Owner, Pool};
use super::byte_queue::ByteQueue;
use super::internal_headers::{self, NEXT_PART};
use super::request::Request;
use super::response::{Portion, ResponseReader};
use super::slab::Key;
use crate::admission::Share;
use mio::net::UnixStream;
use std::fmt::{Display, Write as _};
use std::io::{self, ErrorKind, Read, Write};
use std::time::Instant;

/// A connection to a worker, which has one request at a time.
pub struct UpstreamConnection {
    stream: UnixStream,
    /// The pool that the worker belongs to.
    pub pool: Pool,
    /// The request that the worker has.
    pub exchange: Option<Exchange>,
    /// The memory that it was last counted with.
    pub counted: Share,
    /// Whether the connection broke.
    pub is_lost: bool,
}

/// A request on its way through a worker, and the response to it.
pub struct Exchange {
    /// The connection of the client that waits for the response; `None` once it is gone.
    pub client: Option<Key>,
    /// The owner of the request.
    pub owner: Owner,
    /// When the request was handed over.
    pub since: Instant,
    /// Whether bytes of the response were passed on.
    pub has_begun: bool,
    /// Bytes of the body and of the ticket, which the worker has until it answers.
    handed_over: usize,
    /// The request, without its body and its ticket.
    request: Request,
    /// The part of the response that comes after this one.
    next_part: Option<String>,
    /// What is still to be written of the request.
    outgoing: ByteQueue,
    response: ResponseReader,
    is_answered: bool,
}

/// The outcome of a step.
pub enum Output {
    /// The connection has nothing at the moment.
    Wait,
    /// The number of bytes of the response that were read.
    Bytes(usize),
    /// The connection cannot be used any more.
    Broken(io::Error),
}

impl UpstreamConnection {
    /// A connection without a request, to a worker of this pool.
    pub fn new(pool: Pool, stream: UnixStream) -> UpstreamConnection {
        UpstreamConnection {
            stream,
            pool,
            exchange: None,
            counted: Share::default(),
            is_lost: false,
        }
    }

    /// Whether it can take a request.
    pub fn is_free(&self) -> bool {
        self.exchange.is_none() && !self.is_lost
    }

    /// Whether it can take a request of this pool.
    pub fn is_free_for(&self, pool: Pool) -> bool {
        self.pool == pool && self.is_free()
    }

    /// The socket, to be registered.
    pub fn stream(&mut self) -> &mut UnixStream {
        &mut self.stream
    }

    /// The memory that it holds or has handed to the worker.
    pub fn share(&self) -> Share {
        self.exchange.as_ref().map_or(Share::default(), |exchange| {
            let handed_over = if exchange.has_begun {
                0
            } else {
                exchange.handed_over
            };
            Share {
                bytes: exchange.outgoing.held().max(handed_over) as u64,
                account: exchange.owner.account(),
            }
        })
    }

    /// Begins to write the head of a request. `ticket_bytes` is the size of its ticket, which the
    /// worker gets by [`Clients`](super::Clients), as it gets the body; `number` is this
    /// connection's own.
    pub fn begin(
        &mut self,
        request: Request,
        ticket_bytes: usize,
        number: usize,
        client: Key,
        now: Instant,
    ) {
        let head = &request.head;
        let mut text = format!("{} {} HTTP/1.1\r\n", head.method, head.target);
        text.push_str(&internal_headers::write(number, request.client));
        let mut add = |name: &str, value: &dyn Display| {
            write!(text, "{name}: {value}\r\n").expect("a String takes everything");
        };
        for (name, value) in &head.headers {
            add(name, value);
        }
        if let Some(part) = &request.part {
            add(NEXT_PART, part);
        }
        text.push_str("\r\n");
        let mut outgoing = ByteQueue::default();
        outgoing.push(text.as_bytes(), Some(0));
        let body_bytes = usize::try_from(request.length).unwrap_or(usize::MAX);
        self.exchange = Some(Exchange {
            client: Some(client),
            owner: request.admitted.owner,
            since: now,
            has_begun: false,
            handed_over: body_bytes.saturating_add(ticket_bytes),
            request,
            next_part: None,
            outgoing,
            response: ResponseReader::default(),
            is_answered: false,
        });
    }

    /// Writes as much of the request as the socket takes, and reads what it has of the response.
    pub fn step(&mut self, scratch: &mut [u8]) -> Output {
        if let Some(exchange) = &mut self.exchange {
            while !exchange.outgoing.is_empty() {
                match self.stream.write(exchange.outgoing.first()) {
                    Ok(count) => exchange.outgoing.consume(count),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Output::Broken(error),
                }
            }
        }
        loop {
            return match self.stream.read(scratch) {
                Ok(0) => Output::Broken(ErrorKind::UnexpectedEof.into()),
                Ok(count) => Output::Bytes(count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => Output::Wait,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => Output::Broken(error),
            };
        }
    }
}

impl Exchange {
    /// Reads bytes of the response.
    ///
    /// # Errors
    /// It is none that a worker should give.
    pub fn read<'b>(&mut self, bytes: &'b [u8]) -> io::Result<Portion<'b>> {
        if self.is_answered {
            return Err(ErrorKind::InvalidData.into());
        }
        let portion = self
            .response
            .read(bytes, self.request.head.method == "HEAD")
            .map_err(|_| ErrorKind::InvalidData)?;
        self.is_answered = portion.is_last;
        if let Some(head) = &portion.head {
            self.next_part.clone_from(&head.next_part);
        }
        Ok(portion)
    }

    /// The request for the part of the response after this one, if there is one.
    pub fn next_request(&self) -> Option<Box<Request>> {
        let part = self.next_part.clone()?;
        let Request {
            head,
            client,
            admitted,
            ..
        } = &self.request;
        Some(Box::new(Request {
            head: head.clone(),
            client: *client,
            admitted: Admitted {
                ticket: None,
                ..*admitted
            },
            body: ByteQueue::default(),
            length: 0,
            part: Some(part),
        }))
    }

    /// Whether the response was read and the request written to their ends.
    pub fn is_done(&self) -> bool {
        self.is_answered && self.outgoing.is_empty()
    }

    /// Whether the response was read to its end.
    pub fn is_answered(&self) -> bool {
        self.is_answered
    }
}
