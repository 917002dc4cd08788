//! One client's connection: what it has sent, what it is owed, and how long it may take. It knows nothing of other
//! connections; [`super::watch`] asks it to [`Connection::step`] whenever its socket may have more.

use super::admitted::{Admitted, Owner};
use super::answer::{Answer, without_body};
use super::blocks::Blocks;
use super::chunked::Chunked;
use super::head::{self, Framing, Head, HeadLimits, Search};
use super::held::Share;
use super::limits::Limits;
use super::pace::Pace;
use super::refusal::Refusal;
use mio::net::TcpStream;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown};
use std::time::Instant;

/// A refused body up to this length is read and dropped, and the connection kept; a longer one costs more than a new
/// connection does.
const LONGEST_DISCARD: u64 = 256 << 10;

/// Read at once while a head is expected: what follows it is held too.
const HEAD_PORTION: usize = 16 << 10;

/// A connection.
pub struct Connection {
    stream: TcpStream,
    /// Its other end.
    pub peer: IpAddr,
    /// Whether it was let in, and is not only told that it was not.
    pub is_in: bool,
    /// Where in a request it is.
    pub stage: Stage,
    /// Whether the client has closed its sending side.
    pub input_closed: bool,
    /// Whether the connection ends with the present request, whatever the client wishes.
    pub is_last: bool,
    /// When it is called late, as the timers know it.
    pub deadline: Option<Instant>,
    /// Its memory, as the budget knows it.
    pub counted: Share,
    /// Read and not used yet.
    inbox: Vec<u8>,
    /// To be written.
    outbox: Blocks,
    /// Since when an answer is being written.
    answering: Option<Instant>,
    pace: Pace,
    wish: Wish,
    /// Whose request was admitted last.
    owner: Option<Owner>,
    /// How the present answer's body is sent.
    form: Form,
}

/// How the body of an answer is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Form {
    /// As it comes from the worker, with its length told before.
    #[default]
    Whole,
    /// In parts, each in chunks (RFC 9112 section 7.1).
    Chunked,
    /// In parts, up to the end of the connection, to HTTP/1.0.
    UntilClose,
}

/// How a client wants its answer.
#[derive(Clone, Copy, Debug, Default)]
struct Wish {
    keep_alive: bool,
    without_body: bool,
    /// HTTP/1.0.
    is_old: bool,
}

/// Where in a request a connection is. One request at a time: what comes meanwhile waits in the socket.
pub enum Stage {
    /// A head is expected, or has begun.
    Head {
        /// How far it was looked at.
        search: Search,
        /// When it began; when the connection became idle, if nothing has come.
        since: Instant,
    },
    /// The body is expected.
    Body(Box<Body>),
    /// The request is whole and waits for a worker.
    Queued {
        /// What waits.
        request: Box<Request>,
        /// Since when; what its ticket waited for is left out.
        since: Instant,
        /// What its ticket waits for, before a worker may have it.
        preparing: Option<Preparing>,
    },
    /// A worker has it.
    Working {
        /// Through this backend.
        slot: usize,
    },
    /// A part of the answer has to be written; then the next one is asked for by this request.
    PartSent(Box<Request>),
    /// The answer is complete here, and has to be written.
    Answering(Then),
    /// The answer was written; the rest of the request is dropped.
    Discarding {
        /// Bytes of it.
        left: u64,
        /// Since when.
        since: Instant,
    },
    /// The answer was written and our side closed; what comes is dropped until the client closes too.
    Lingering {
        /// Since when.
        since: Instant,
    },
}

/// A request's [`Ticket`](super::Ticket) waits for something.
#[derive(Clone, Copy, Debug)]
pub struct Preparing {
    /// When it was asked first.
    pub began: Instant,
    /// When it has to be asked again.
    pub until: Instant,
}

/// What comes after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The next request.
    Next,
    /// The next request, after this many bytes.
    Discard(u64),
    /// Nothing.
    Close,
}

/// A request that is or becomes whole.
pub struct Request {
    /// Its head.
    pub head: Head,
    /// Whose it is: the peer, or whom a trusted proxy speaks for.
    pub client: IpAddr,
    /// What was decided of it.
    pub admitted: Admitted,
    /// Its body, without any coding.
    pub body: Blocks,
    /// Bytes of the body.
    pub length: u64,
    /// Which part of the answer is asked for, as the worker named it; the first one, or the whole, if there is none.
    pub part: Option<String>,
}

/// A body on its way in.
pub struct Body {
    request: Request,
    rest: Rest,
    began: Instant,
    pace: Pace,
}

enum Rest {
    Length(u64),
    Chunked(Chunked),
}

/// What the connection needs next.
pub enum Step {
    /// Bytes, or room in the socket.
    Wait,
    /// Another step.
    Again,
    /// To be told what to do with this head.
    Head(Box<Head>),
    /// A worker.
    Whole,
    /// An answer to a request that cannot be read.
    Refuse(Refusal),
    /// Room for more bytes of the body.
    Room,
    /// Its end.
    Close,
}

impl Connection {
    /// A connection that was accepted now.
    pub fn new(stream: TcpStream, peer: IpAddr, is_in: bool, now: Instant) -> Connection {
        Connection {
            stream,
            peer,
            is_in,
            stage: Connection::idle(now),
            input_closed: false,
            is_last: false,
            deadline: None,
            counted: Share::default(),
            owner: None,
            inbox: Vec::new(),
            outbox: Blocks::default(),
            answering: None,
            pace: Pace::new(now),
            wish: Wish::default(),
            form: Form::Whole,
        }
    }

    /// Whether nothing has been asked, or all that was asked is answered.
    pub fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Head { .. }) && self.inbox.is_empty()
    }

    /// Since when there has been no request; what has begun one sorts behind what is idle.
    pub fn without_request(&self) -> Option<(bool, Instant)> {
        match self.stage {
            Stage::Head { since, .. } => Some((!self.is_idle(), since)),
            _ => None,
        }
    }

    /// Memory that it holds.
    pub fn held(&self) -> Share {
        Share {
            bytes: self.held_bytes(),
            owner: self.owner,
        }
    }

    fn held_bytes(&self) -> usize {
        let body = match &self.stage {
            Stage::Body(body) => body.request.body.held(),
            Stage::Queued { request, .. } => {
                let ticket = request.admitted.ticket.as_ref();
                request.body.held() + ticket.map_or(0, |ticket| ticket.held())
            }
            _ => 0,
        };
        body + self.outbox.held() + self.inbox.capacity()
    }

    /// How much it stands in the way of others: memory times time, of what is not whole yet or not read by its client.
    pub fn burden(&self, now: Instant) -> u128 {
        let since = match &self.stage {
            Stage::Head { since, .. } => Some(*since),
            Stage::Body(body) => Some(body.began),
            Stage::Queued { .. } => None,
            _ => self.answering,
        };
        since.map_or(0, |since| {
            self.held_bytes() as u128 * (now.saturating_duration_since(since).as_millis() + 1)
        })
    }

    /// Does what can be done without waiting. `has_room` says whether the budget bears more bytes.
    pub fn step(
        &mut self,
        scratch: &mut [u8],
        limits: &Limits,
        has_room: bool,
        now: Instant,
    ) -> Step {
        match self.flush(limits, now) {
            Ok(()) => {}
            Err(_) => return Step::Close,
        }
        match self.stage {
            Stage::Head { .. } => self.read_head(scratch, limits, now),
            Stage::Body(_) => self.read_body(scratch, limits, has_room, now),
            Stage::Queued { .. } | Stage::Working { .. } => Step::Wait,
            Stage::PartSent(_) => self.after_part(now),
            Stage::Answering(then) => self.after_answer(then, now),
            Stage::Discarding { left, since } => self.discard(scratch, left, since, now),
            Stage::Lingering { .. } => match self.stream.read(scratch) {
                Ok(0) => Step::Close,
                Ok(_) => Step::Again,
                Err(error) => wait_or_close(&error),
            },
        }
    }

    /// When its time is over.
    pub fn time_over(&self, limits: &Limits) -> Option<Instant> {
        let by_stage = match &self.stage {
            Stage::Head { since, .. } if self.is_idle() => Some(*since + limits.idle_time),
            Stage::Head { since, .. } | Stage::Discarding { since, .. } => {
                Some(*since + limits.head_time)
            }
            Stage::Body(body) => Some(body.pace.deadline().min(body.began + limits.body_time)),
            Stage::Queued {
                since, preparing, ..
            } => Some(preparing.map_or(*since + limits.queue_time, |preparing| preparing.until)),
            Stage::Working { .. } | Stage::PartSent(_) | Stage::Answering(_) => None,
            Stage::Lingering { since } => Some(*since + limits.linger_time),
        };
        let reading = self.answering.filter(|_| !self.outbox.is_empty());
        let by_reading = reading.map(|since| self.pace.deadline().min(since + limits.answer_time));
        by_stage.into_iter().chain(by_reading).min()
    }

    /// Begins to take the body in, or has the request whole at once if there is none.
    pub fn take_body(
        &mut self,
        head: Head,
        client: IpAddr,
        admitted: Admitted,
        limits: &Limits,
        now: Instant,
    ) -> Step {
        self.wish = Wish::of(&head);
        self.owner = Some(admitted.owner);
        let framing = head.framing;
        let asks = head.expects_continue && self.inbox.is_empty();
        let request = Request {
            head,
            client,
            admitted,
            body: Blocks::default(),
            length: 0,
            part: None,
        };
        let rest = match framing {
            Framing::Length(0) => {
                self.queue(request, now);
                return Step::Whole;
            }
            Framing::Length(length) => Rest::Length(length),
            Framing::Chunked => Rest::Chunked(Chunked::START),
        };
        self.stage = Stage::Body(Box::new(Body {
            request,
            rest,
            began: now,
            pace: Pace::new(now),
        }));
        if asks
            && self
                .send(b"HTTP/1.1 100 Continue\r\n\r\n", limits, now)
                .is_err()
        {
            return Step::Close;
        }
        Step::Again
    }

    /// Answers a request that was not passed on. `head` is there if it could be read; the rest of the request is then
    /// dropped and the connection kept, if that is cheap.
    pub fn refuse(
        &mut self,
        answer: &Answer,
        head: Option<&Head>,
        limits: &Limits,
        now: Instant,
    ) -> Step {
        let then = match head {
            Some(head) if head.keep_alive && !head.expects_continue && !self.is_last => {
                match head.framing {
                    Framing::Length(0) => Then::Next,
                    Framing::Length(length) if length <= LONGEST_DISCARD => Then::Discard(length),
                    _ => Then::Close,
                }
            }
            _ => Then::Close,
        };
        let wish = Wish {
            keep_alive: then != Then::Close,
            ..head.map_or(self.wish, Wish::of)
        };
        self.stage = Stage::Answering(then);
        let mut bytes = answer.to_bytes(wish.connection_line());
        if wish.without_body {
            bytes.truncate(without_body(&bytes));
        }
        match self.send(&bytes, limits, now) {
            Ok(()) => Step::Again,
            Err(_) => Step::Close,
        }
    }

    /// Takes the request that waits for a worker, and since when it does.
    pub fn take_request(&mut self, slot: usize) -> Option<(Box<Request>, Instant)> {
        match std::mem::replace(&mut self.stage, Stage::Working { slot }) {
            Stage::Queued { request, since, .. } => Some((request, since)),
            other => {
                self.stage = other;
                None
            }
        }
    }

    /// Sends the head of the worker's answer, given without the empty line at its end.
    ///
    /// # Errors
    /// The client is gone.
    pub fn send_head(
        &mut self,
        mut head: Vec<u8>,
        limits: &Limits,
        now: Instant,
    ) -> io::Result<()> {
        self.wish.keep_alive &= !self.is_last;
        head.extend_from_slice(self.wish.connection_line().as_bytes());
        head.extend_from_slice(b"\r\n");
        self.send(&head, limits, now)
    }

    /// Sends the head of an answer in parts: in chunks, or, to HTTP/1.0, up to the end of the connection.
    ///
    /// # Errors
    /// The client is gone.
    pub fn begin_parts(
        &mut self,
        mut head: Vec<u8>,
        limits: &Limits,
        now: Instant,
    ) -> io::Result<()> {
        let form = if self.wish.is_old {
            self.wish.keep_alive = false;
            Form::UntilClose
        } else {
            head.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
            Form::Chunked
        };
        // To HEAD, the head is all.
        if !self.wish.without_body {
            self.form = form;
        }
        self.send_head(head, limits, now)
    }

    /// Whether the present answer comes in parts, of which at least one was sent.
    pub fn is_in_parts(&self) -> bool {
        self.form != Form::Whole
    }

    /// Sends bytes of an answer's body.
    ///
    /// # Errors
    /// The client is gone.
    pub fn send_body(&mut self, bytes: &[u8], limits: &Limits, now: Instant) -> io::Result<()> {
        // An empty chunk would end the body.
        if self.form != Form::Chunked || bytes.is_empty() {
            return self.send(bytes, limits, now);
        }
        let size = format!("{:x}\r\n", bytes.len());
        let chunk = [size.as_bytes(), bytes, b"\r\n"].concat();
        self.send(&chunk, limits, now)
    }

    /// The worker's part is complete; `request` asks for the next one.
    pub fn part_sent(&mut self, request: Box<Request>) {
        self.stage = Stage::PartSent(request);
    }

    /// Sends what follows the last part.
    ///
    /// # Errors
    /// The client is gone.
    pub fn end_parts(&mut self, limits: &Limits, now: Instant) -> io::Result<()> {
        match std::mem::take(&mut self.form) {
            Form::Chunked => self.send(b"0\r\n\r\n", limits, now),
            Form::Whole | Form::UntilClose => Ok(()),
        }
    }

    /// Sends bytes, now or as soon as the socket takes them.
    ///
    /// # Errors
    /// The client is gone.
    pub fn send(&mut self, mut bytes: &[u8], limits: &Limits, now: Instant) -> io::Result<()> {
        let was_empty = self.outbox.is_empty();
        while was_empty && !bytes.is_empty() {
            match self.stream.write(bytes) {
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
            self.pace = Pace::new(now);
            self.answering.get_or_insert(now);
        }
        self.outbox.push(bytes, None);
        self.flush(limits, now)
    }

    /// The worker's answer is complete.
    pub fn answered(&mut self) {
        self.stage = Stage::Answering(if self.wish.keep_alive && !self.is_last {
            Then::Next
        } else {
            Then::Close
        });
    }

    fn idle(now: Instant) -> Stage {
        Stage::Head {
            search: Search::default(),
            since: now,
        }
    }

    fn queue(&mut self, request: Request, now: Instant) {
        self.stage = Stage::Queued {
            request: Box::new(request),
            since: now,
            preparing: None,
        };
    }

    fn flush(&mut self, limits: &Limits, now: Instant) -> io::Result<()> {
        while !self.outbox.is_empty() {
            match self.stream.write(self.outbox.first()) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.outbox.take(count);
                    self.pace.moved(count, limits.rate, now);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn read_head(&mut self, scratch: &mut [u8], limits: &Limits, now: Instant) -> Step {
        let Stage::Head { search, since } = &mut self.stage else {
            return Step::Wait;
        };
        let bounds = HeadLimits {
            bytes: limits.head_bytes,
            headers: limits.headers,
        };
        match search.end(&self.inbox, bounds) {
            Ok(Some(end)) => {
                let parsed = head::parse(&self.inbox[..end], bounds);
                self.inbox.drain(..end);
                return match parsed {
                    Ok(head) => Step::Head(Box::new(head)),
                    Err(refusal) => Step::Refuse(refusal),
                };
            }
            Ok(None) => {}
            Err(refusal) => return Step::Refuse(refusal),
        }
        let portion = scratch.len().min(HEAD_PORTION);
        match self.stream.read(&mut scratch[..portion]) {
            Ok(0) => Step::Close,
            Ok(count) => {
                if self.inbox.is_empty() {
                    *since = now;
                }
                self.inbox.extend_from_slice(&scratch[..count]);
                Step::Again
            }
            Err(error) => wait_or_close(&error),
        }
    }

    fn read_body(
        &mut self,
        scratch: &mut [u8],
        limits: &Limits,
        has_room: bool,
        now: Instant,
    ) -> Step {
        let Stage::Body(body) = &mut self.stage else {
            return Step::Wait;
        };
        let early = std::mem::take(&mut self.inbox);
        let bytes = if !early.is_empty() {
            &early[..]
        } else if !has_room {
            return Step::Room;
        } else {
            // Not beyond the body's end, so that the next request waits in the socket.
            let portion = match body.rest {
                Rest::Length(left) => scratch
                    .len()
                    .min(usize::try_from(left).unwrap_or(usize::MAX)),
                Rest::Chunked(_) => scratch.len(),
            };
            match self.stream.read(&mut scratch[..portion]) {
                Ok(0) => {
                    let received = body.request.length;
                    return Step::Refuse(Refusal::CutShort { received });
                }
                Ok(count) => &scratch[..count],
                Err(error) => return wait_or_close(&error),
            }
        };
        let used = match body.take(bytes, limits.rate, now) {
            Ok(used) => used,
            Err(refusal) => return Step::Refuse(refusal),
        };
        self.inbox = bytes[used..].to_vec();
        if !body.is_whole() {
            return Step::Again;
        }
        if let Stage::Body(body) = std::mem::replace(&mut self.stage, Connection::idle(now)) {
            self.queue(body.request, now);
        }
        Step::Whole
    }

    fn after_part(&mut self, now: Instant) -> Step {
        if !self.outbox.is_empty() {
            return Step::Wait;
        }
        if let Stage::PartSent(request) = std::mem::replace(&mut self.stage, Connection::idle(now))
        {
            self.queue(*request, now);
        }
        Step::Whole
    }

    fn after_answer(&mut self, then: Then, now: Instant) -> Step {
        if !self.outbox.is_empty() {
            return Step::Wait;
        }
        self.answering = None;
        match then {
            Then::Next | Then::Discard(_) if self.is_last => return Step::Close,
            Then::Next => {
                // An idle connection keeps no memory.
                self.inbox.shrink_to_fit();
                self.stage = Connection::idle(now);
            }
            Then::Discard(left) => self.stage = Stage::Discarding { left, since: now },
            Then::Close => {
                self.inbox = Vec::new();
                self.stage = Stage::Lingering { since: now };
                if self.stream.shutdown(Shutdown::Write).is_err() {
                    return Step::Close;
                }
            }
        }
        Step::Again
    }

    fn discard(&mut self, scratch: &mut [u8], left: u64, since: Instant, now: Instant) -> Step {
        let mut portion = usize::try_from(left).unwrap_or(usize::MAX);
        let count = if self.inbox.is_empty() {
            portion = portion.min(scratch.len());
            match self.stream.read(&mut scratch[..portion]) {
                Ok(0) => return Step::Close,
                Ok(count) => count,
                Err(error) => return wait_or_close(&error),
            }
        } else {
            portion = portion.min(self.inbox.len());
            self.inbox.drain(..portion);
            portion
        };
        self.stage = match left - count as u64 {
            0 if self.is_last => return Step::Close,
            0 => Connection::idle(now),
            left => Stage::Discarding { left, since },
        };
        Step::Again
    }
}

impl Wish {
    fn of(head: &Head) -> Wish {
        Wish {
            keep_alive: head.keep_alive,
            without_body: head.method == "HEAD",
            is_old: head.is_old,
        }
    }

    /// HTTP/1.1 stays open by default, HTTP/1.0 does not.
    fn connection_line(self) -> &'static str {
        match (self.keep_alive, self.is_old) {
            (false, _) => "Connection: close\r\n",
            (true, true) => "Connection: keep-alive\r\n",
            (true, false) => "",
        }
    }
}

impl Body {
    /// Takes what belongs to the body, and gives how many bytes that was.
    fn take(&mut self, bytes: &[u8], rate: u64, now: Instant) -> Result<usize, Refusal> {
        let limit = self.request.admitted.body_limit;
        let Request { body, length, .. } = &mut self.request;
        let before = *length;
        let used = match &mut self.rest {
            Rest::Length(left) => {
                let count = (*left).min(bytes.len() as u64);
                *left -= count;
                *length += count;
                body.push(&bytes[..count as usize], Some(*left));
                count as usize
            }
            Rest::Chunked(decoder) => decoder.read(bytes, |data| {
                *length += data.len() as u64;
                body.push(data, None);
            })?,
        };
        if *length > limit {
            return Err(Refusal::BodyTooLarge { limit });
        }
        self.pace.moved((*length - before) as usize, rate, now);
        Ok(used)
    }

    fn is_whole(&self) -> bool {
        match &self.rest {
            Rest::Length(left) => *left == 0,
            Rest::Chunked(decoder) => decoder.is_whole(),
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
