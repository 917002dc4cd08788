//! One client's connection: the received bytes, the bytes to send, and the deadlines. It knows
//! nothing of other connections. The event loop calls [`Connection::step`] whenever the socket may
//! have more.

use super::admission::Admitted;
use super::byte_queue::ByteQueue;
use super::chunked::Chunked;
use super::head::{self, Framing, Head, HeadLimits, HeadScanner};
use super::job::{Ticket, Work};
use super::kind::{Owner, WorkKind};
use super::rejection::Rejection;
use super::request::{AdmittedRequest, IncomingBody, Remaining};
use super::response::{Parts, Response};
use super::response_writer::{ResponseOptions, ResponseWriter};
use super::settings::Settings;
use super::slab::Key;
use super::socket::Socket;
use crate::admission::Share;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::time::Instant;

/// Up to this length, in bytes, the body of a rejected request is read and dropped, and the
/// connection kept. A longer one costs more than a new connection does.
const MAX_DISCARD: u64 = 256 << 10;

/// Most bytes of one read while a head is expected, since bytes after the head are held too.
const HEAD_READ: usize = 16 << 10;

/// A client's connection.
pub struct Connection {
    socket: Box<dyn Socket>,
    /// The address at its other end.
    pub peer: IpAddr,
    /// Whether it exists only to get the response that there are too many connections.
    pub is_surplus: bool,
    /// Where in a request it is.
    pub stage: Stage,
    /// Whether the client has closed its sending side.
    pub input_closed: bool,
    /// Whether the connection ends with the present request, even if the client wants to keep it.
    pub is_last: bool,
    /// The deadline that its timer is set to.
    pub deadline: Option<Instant>,
    /// The memory that it was last counted with.
    pub counted: Share,
    /// Bytes that were read and not used yet.
    read_buffer: Vec<u8>,
    response: ResponseWriter,
    /// The kind and the owner of the request that was admitted last.
    pub queue: Option<(WorkKind, Owner)>,
}

/// Where in a request a connection is. It deals with one request at a time: further bytes wait in
/// the socket.
pub enum Stage {
    /// A head is expected, or has begun.
    Head {
        /// The progress of the scan.
        scanner: HeadScanner,
        /// When it began; if nothing has come, when the connection became idle.
        since: Instant,
    },
    /// The body is arriving.
    Body(Box<IncomingBody>),
    /// The request is complete and waits for a worker, or the next part of its response does.
    Queued {
        /// The work for the worker.
        work: Work,
        /// The start of its wait, without the time that its ticket waited.
        since: Instant,
        /// The wait of its ticket, if there is one.
        preparing: Option<Preparing>,
    },
    /// A worker has the request.
    Working {
        /// The key of the exchange.
        exchange: Key,
    },
    /// The response is complete, and is to be sent at this time.
    Due {
        /// The response.
        response: Box<Response>,
        /// When.
        at: Instant,
    },
    /// A part of the response has to be sent, before the next one is made.
    PartSent(Parts),
    /// The response is complete here and has to be sent.
    Responding(AfterResponse),
    /// The response was sent; the rest of the request is dropped.
    Discarding {
        /// Bytes of it that are still to come.
        left: u64,
        /// When the discarding began.
        since: Instant,
    },
    /// The response was sent and our side closed; received bytes are dropped until the client
    /// closes its side too.
    Lingering {
        /// When our side was closed.
        since: Instant,
    },
}

impl Stage {
    /// The ticket of the request, from admission on until a worker has it.
    pub fn ticket(&self) -> Option<&dyn Ticket> {
        match self {
            Stage::Body(body) => Some(&*body.request().admitted.ticket),
            Stage::Queued {
                work: Work::Request { ticket, .. },
                ..
            } => Some(&**ticket),
            _ => None,
        }
    }
}

/// A request's [`Ticket`] waits for something.
#[derive(Clone, Copy, Debug)]
pub struct Preparing {
    /// When it was prepared first.
    pub began: Instant,
    /// When it has to be prepared again; `None` if it waits for its turn.
    pub until: Option<Instant>,
}

/// The step after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterResponse {
    /// The next request.
    KeepAlive,
    /// The next request, after so many bytes that are dropped.
    Discard(u64),
    /// The end of the connection.
    Close,
}

/// The next need of a connection.
pub enum Step {
    /// Bytes from its socket, or space in it.
    Wait,
    /// Another step.
    Again,
    /// Admission by this head.
    Head(Box<Head>),
    /// A worker, for its complete request.
    Complete,
    /// A response to a request that cannot go on.
    Reject(Rejection),
    /// Memory for more bytes of the body.
    NeedsMemory,
    /// Its end.
    Close,
}

impl Connection {
    /// A connection that was accepted now. `least_rate` is the client's least rate, in bytes a
    /// second.
    pub fn new(
        socket: Box<dyn Socket>,
        peer: IpAddr,
        is_surplus: bool,
        least_rate: u64,
        now: Instant,
    ) -> Connection {
        Connection {
            socket,
            peer,
            is_surplus,
            stage: Stage::idle(now),
            input_closed: false,
            is_last: false,
            deadline: None,
            counted: Share::default(),
            queue: None,
            read_buffer: Vec::new(),
            response: ResponseWriter::new(least_rate, now),
        }
    }

    /// Whether there is no unanswered request.
    pub fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Head { .. }) && self.read_buffer.is_empty()
    }

    /// The time of the last complete head or of the start. Connections that have begun one sort
    /// behind idle ones.
    pub fn without_request(&self) -> Option<(bool, Instant)> {
        match self.stage {
            Stage::Head { since, .. } => Some((!self.is_idle(), since)),
            _ => None,
        }
    }

    /// The memory that it holds.
    pub fn share(&self) -> Share {
        Share {
            bytes: self.held() as u64,
            account: self.queue.and_then(|(_, owner)| owner.account()),
        }
    }

    fn held(&self) -> usize {
        let body = match &self.stage {
            Stage::Body(body) => body.held(),
            Stage::Queued { work, .. } => work.held(),
            Stage::Due { response, .. } => response.body.len(),
            _ => 0,
        };
        body + self.response.held() + self.read_buffer.capacity()
    }

    /// How much it stands in the way of others: the memory of an incomplete request or an unread
    /// response, in bytes, times the milliseconds that it has been held.
    pub fn eviction_cost(&self, now: Instant) -> u128 {
        let since = match &self.stage {
            Stage::Head { since, .. } => Some(*since),
            Stage::Body(body) => Some(body.began()),
            Stage::Queued { .. } => None,
            _ => self.response.since(),
        };
        since.map_or(0, |since| {
            self.held() as u128 * (now.saturating_duration_since(since).as_millis() + 1)
        })
    }

    /// Takes the steps that need no waiting. `has_memory` is whether more bytes of a body may be
    /// read.
    pub fn step(
        &mut self,
        scratch: &mut [u8],
        settings: &Settings,
        has_memory: bool,
        now: Instant,
    ) -> Step {
        let flushed = self.response.flush(&*self.socket, now);
        if flushed.is_err() {
            return Step::Close;
        }
        match self.stage {
            Stage::Head { .. } => self.read_head(scratch, settings, now),
            Stage::Body(_) => self.read_body(scratch, settings, has_memory, now),
            Stage::Queued { .. } | Stage::Working { .. } | Stage::Due { .. } => Step::Wait,
            Stage::PartSent(_) => self.after_part(now),
            Stage::Responding(then) => self.after_response(then, now),
            Stage::Discarding { left, since } => self.discard(scratch, left, since, now),
            Stage::Lingering { .. } => match self.socket.read(scratch) {
                Ok(0) => Step::Close,
                Ok(_) => Step::Again,
                Err(error) => wait_or_close(&error),
            },
        }
    }

    /// The deadline of its stage.
    pub fn next_deadline(&self, settings: &Settings) -> Option<Instant> {
        let of_stage = match &self.stage {
            Stage::Head { since, .. } if self.is_idle() => Some(*since + settings.idle_time),
            Stage::Head { since, .. } | Stage::Discarding { since, .. } => {
                Some(*since + settings.head_time)
            }
            Stage::Body(body) => Some(body.deadline(settings)),
            Stage::Queued {
                since, preparing, ..
            } => {
                let until = preparing.and_then(|preparing| preparing.until);
                Some(until.unwrap_or(*since + settings.queue_time))
            }
            Stage::Due { at, .. } => Some(*at),
            Stage::Working { .. } | Stage::PartSent(_) | Stage::Responding(_) => None,
            Stage::Lingering { since } => Some(*since + settings.linger_time),
        };
        of_stage
            .into_iter()
            .chain(self.response.deadline(settings))
            .min()
    }

    /// Begins to receive the body of an admitted request, which is complete at once if it has none.
    pub fn begin_body(&mut self, head: &Head, admitted: Admitted, now: Instant) -> Step {
        self.response.options = ResponseOptions::of(head);
        self.queue = Some((admitted.kind, admitted.owner));
        let framing = head.framing;
        let must_be_asked_for = head.expects_continue && self.read_buffer.is_empty();
        let request = AdmittedRequest {
            admitted,
            body: ByteQueue::default(),
            length: 0,
        };
        let remaining = match framing {
            Framing::Length(0) => {
                self.queue_request(request, now);
                return Step::Complete;
            }
            Framing::Length(length) => Remaining::Length(length),
            Framing::Chunked => Remaining::Chunks(Chunked::START),
        };
        self.stage = Stage::Body(Box::new(IncomingBody::new(request, remaining, now)));
        if must_be_asked_for {
            let line = b"HTTP/1.1 100 Continue\r\n\r\n".to_vec();
            let sent = self.response.send(&*self.socket, vec![line], now);
            if sent.is_err() {
                return Step::Close;
            }
        }
        Step::Again
    }

    /// Answers a request that no worker gets. If its `head` could be read and the rest of the
    /// request is short, the rest is dropped and the connection kept.
    pub fn respond_early(&mut self, response: Response, head: Option<&Head>, now: Instant) -> Step {
        let then = match head {
            Some(head) if head.keep_alive && !head.expects_continue && !self.is_last => {
                match head.framing {
                    Framing::Length(0) => AfterResponse::KeepAlive,
                    Framing::Length(length) if length <= MAX_DISCARD => {
                        AfterResponse::Discard(length)
                    }
                    _ => AfterResponse::Close,
                }
            }
            _ => AfterResponse::Close,
        };
        self.response.options = ResponseOptions {
            keep_alive: then != AfterResponse::Close,
            ..head.map_or(self.response.options, ResponseOptions::of)
        };
        self.stage = Stage::Responding(then);
        let sent = self.response.respond(&*self.socket, response, now);
        sent.map_or(Step::Close, |_| Step::Again)
    }

    /// Takes the work that waits for a worker, and the start of its wait. The worker has it as this
    /// exchange.
    pub fn take_work(&mut self, exchange: Key) -> Option<(Work, Instant)> {
        match std::mem::replace(&mut self.stage, Stage::Working { exchange }) {
            Stage::Queued { work, since, .. } => Some((work, since)),
            other => {
                self.stage = other;
                None
            }
        }
    }

    /// Has a request wait again, which a worker has handed back. It has waited since `since`.
    pub fn queue_again(&mut self, ticket: Box<dyn Ticket>, since: Instant) {
        let body = ByteQueue::default();
        self.stage = Stage::queued(Work::Request { ticket, body }, since);
    }

    /// Takes the response that is due.
    pub fn take_due(&mut self, now: Instant) -> Option<Response> {
        match std::mem::replace(&mut self.stage, Stage::idle(now)) {
            Stage::Due { response, .. } => Some(*response),
            other => {
                self.stage = other;
                None
            }
        }
    }

    /// Sends a worker's response, or its head and first part.
    pub fn respond(&mut self, response: Response, now: Instant) -> Step {
        if let Some(at) = response.due.filter(|at| *at > now) {
            let response = Box::new(response);
            self.stage = Stage::Due { response, at };
            return Step::Wait;
        }
        self.response.options.keep_alive &= !self.is_last;
        let sent = self.response.respond(&*self.socket, response, now);
        match sent {
            Err(_) => return Step::Close,
            Ok(Some(parts)) => self.stage = Stage::PartSent(parts),
            Ok(None) => self.stage = self.responding(),
        }
        Step::Again
    }

    /// Sends a further part of a worker's response.
    pub fn send_part(&mut self, part: Vec<u8>, rest: Parts, now: Instant) -> Step {
        self.stage = Stage::PartSent(rest);
        let sent = self.response.send_part(&*self.socket, part, now);
        sent.map_or(Step::Close, |()| Step::Again)
    }

    /// Ends a response in parts.
    pub fn end_parts(&mut self, now: Instant) -> Step {
        self.stage = self.responding();
        let sent = self.response.end_parts(&*self.socket, now);
        sent.map_or(Step::Close, |()| Step::Again)
    }

    /// Whether the present response comes in parts, of which at least one was sent.
    pub fn is_in_parts(&self) -> bool {
        self.response.is_in_parts()
    }

    /// The stage after a worker's response.
    fn responding(&self) -> Stage {
        Stage::Responding(if self.response.options.keep_alive && !self.is_last {
            AfterResponse::KeepAlive
        } else {
            AfterResponse::Close
        })
    }

    /// Has a complete request wait for a worker.
    fn queue_request(&mut self, request: AdmittedRequest, now: Instant) {
        self.stage = Stage::queued(
            Work::Request {
                ticket: request.admitted.ticket,
                body: request.body,
            },
            now,
        );
    }

    fn read_head(&mut self, scratch: &mut [u8], settings: &Settings, now: Instant) -> Step {
        let Stage::Head { scanner, since } = &mut self.stage else {
            return Step::Wait;
        };
        let limits = HeadLimits {
            bytes: settings.head_bytes,
            headers: settings.headers,
        };
        match scanner.find_end(&self.read_buffer, limits) {
            Ok(Some(end)) => {
                let parsed = head::parse(&self.read_buffer[..end], limits);
                self.read_buffer.drain(..end);
                return match parsed {
                    Ok(head) => Step::Head(Box::new(head)),
                    Err(rejection) => Step::Reject(rejection),
                };
            }
            Ok(None) => {}
            Err(rejection) => return Step::Reject(rejection),
        }
        let most = scratch.len().min(HEAD_READ);
        match self.socket.read(&mut scratch[..most]) {
            Ok(0) => Step::Close,
            Ok(count) => {
                if self.read_buffer.is_empty() {
                    *since = now;
                }
                self.read_buffer.extend_from_slice(&scratch[..count]);
                Step::Again
            }
            Err(error) => wait_or_close(&error),
        }
    }

    fn read_body(
        &mut self,
        scratch: &mut [u8],
        settings: &Settings,
        has_memory: bool,
        now: Instant,
    ) -> Step {
        let Stage::Body(body) = &mut self.stage else {
            return Step::Wait;
        };
        let early = std::mem::take(&mut self.read_buffer);
        let bytes = if !early.is_empty() {
            &early[..]
        } else if !has_memory {
            return Step::NeedsMemory;
        } else {
            let most = scratch.len().min(body.readable());
            match self.socket.read(&mut scratch[..most]) {
                Ok(0) => {
                    let received = body.received();
                    return Step::Reject(Rejection::BodyIncomplete { received });
                }
                Ok(count) => &scratch[..count],
                Err(error) => return wait_or_close(&error),
            }
        };
        let used = match body.take(bytes, settings.rate, now) {
            Ok(used) => used,
            Err(rejection) => return Step::Reject(rejection),
        };
        self.read_buffer = bytes[used..].to_vec();
        if !body.is_complete() {
            return Step::Again;
        }
        if let Stage::Body(body) = std::mem::replace(&mut self.stage, Stage::idle(now)) {
            self.queue_request(body.into_request(), now);
        }
        Step::Complete
    }

    fn after_part(&mut self, now: Instant) -> Step {
        if !self.response.is_empty() {
            return Step::Wait;
        }
        if let Stage::PartSent(parts) = std::mem::replace(&mut self.stage, Stage::idle(now)) {
            self.stage = Stage::queued(Work::Parts(parts), now);
        }
        Step::Complete
    }

    fn after_response(&mut self, then: AfterResponse, now: Instant) -> Step {
        if !self.response.is_empty() {
            return Step::Wait;
        }
        self.response.finish();
        match then {
            AfterResponse::KeepAlive | AfterResponse::Discard(_) if self.is_last => {
                return Step::Close;
            }
            AfterResponse::KeepAlive => {
                // An idle connection keeps no memory.
                self.read_buffer.shrink_to_fit();
                self.stage = Stage::idle(now);
            }
            AfterResponse::Discard(left) => self.stage = Stage::Discarding { left, since: now },
            AfterResponse::Close => {
                self.read_buffer = Vec::new();
                self.stage = Stage::Lingering { since: now };
                if self.socket.shut_down_write().is_err() {
                    return Step::Close;
                }
            }
        }
        Step::Again
    }

    fn discard(&mut self, scratch: &mut [u8], left: u64, since: Instant, now: Instant) -> Step {
        let most = usize::try_from(left).unwrap_or(usize::MAX);
        let count = if self.read_buffer.is_empty() {
            let most = most.min(scratch.len());
            match self.socket.read(&mut scratch[..most]) {
                Ok(0) => return Step::Close,
                Ok(count) => count,
                Err(error) => return wait_or_close(&error),
            }
        } else {
            let most = most.min(self.read_buffer.len());
            self.read_buffer.drain(..most);
            most
        };
        self.stage = match left - count as u64 {
            0 if self.is_last => return Step::Close,
            0 => Stage::idle(now),
            left => Stage::Discarding { left, since },
        };
        Step::Again
    }
}

impl Stage {
    fn idle(now: Instant) -> Stage {
        Stage::Head {
            scanner: HeadScanner::default(),
            since: now,
        }
    }

    fn queued(work: Work, now: Instant) -> Stage {
        Stage::Queued {
            work,
            since: now,
            preparing: None,
        }
    }
}

fn wait_or_close(error: &io::Error) -> Step {
    match error.kind() {
        ErrorKind::WouldBlock => Step::Wait,
        ErrorKind::Interrupted => Step::Again,
        _ => Step::Close,
    }
}
