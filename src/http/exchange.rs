//! One request and its answer, on `tiny_http`'s side.
//!
//! `tiny_http`'s `Drop` of a request whose body was not read reads that body to its end: it allocates the declared
//! `Content-Length` in one piece (which ends the process when it is huge, and panics above `isize::MAX`), and it waits
//! for a client that never sends. So an unread body never reaches that `Drop`: see [`part`].

use super::error::{Kind, Problem};
use super::request::{Body, Declared, Request, Source, Unread};
use super::response::Response;
use std::any::Any;
use std::io::{self, Read, Write};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Instant;

/// A body up to this length has been read by `tiny_http` before we see the request, unless `Expect` was sent.
const READ_AHEAD: u64 = 1024;

/// The longest rest of a body that `tiny_http` may be left with when a connection ends: it asks the allocator for that
/// many zeroed bytes at once, which costs nothing until they are written to. Also the bound on `--max-body`.
pub const LONGEST_REST: u64 = 1 << 30;

/// Reads the request, has it answered, sends the answer and writes one line to the log. A panic of `answer` becomes
/// a 500; nothing here unwinds into the worker.
pub fn run(
    mut incoming: tiny_http::Request,
    answer: impl FnOnce(&Request, &mut Body<'_>) -> Response,
) {
    let started = Instant::now();
    let request = read_head(&incoming);
    let declared = declared(&incoming, &request);
    let held = incoming.body_length().map_or(0, |length| length as u64);
    let mut body = Body::new(&mut incoming, declared);

    let answered = catch_unwind(AssertUnwindSafe(|| answer(&request, &mut body)));
    let response = answered.unwrap_or_else(|panic| {
        let cause = format!("panic: {}", panic_message(&*panic));
        Response::from(
            Problem::new(Kind::InternalError, "The request could not be handled.")
                .with_cause(cause),
        )
    });
    let received = body.received();
    let unread = match body.unread() {
        Unread::Length(_) if held <= READ_AHEAD && request.header("expect").is_none() => {
            Unread::Nothing
        }
        unread => unread,
    };

    if let Some(cause) = &response.cause {
        log::error!("{} {cause}", request.id);
    }
    log::info!(
        "{} {} {} {:.1} ms, {received} bytes in, {} bytes out, {}",
        request.method,
        request.loggable_path(),
        response.status,
        started.elapsed().as_secs_f64() * 1000.0,
        if request.method == "HEAD" {
            0
        } else {
            response.body.len()
        },
        request.id,
    );
    let response = response.header("X-Request-Id", request.id.as_str());
    let sent = catch_unwind(AssertUnwindSafe(|| send(incoming, &response, unread)));
    if let Err(panic) = sent {
        log::error!(
            "{} the answer was not sent: panic: {}",
            request.id,
            panic_message(&*panic)
        );
    }
}

impl Source for tiny_http::Request {
    fn open(&mut self) -> &mut dyn Read {
        self.as_reader()
    }
}

fn read_head(incoming: &tiny_http::Request) -> Request {
    let headers = incoming
        .headers()
        .iter()
        .map(|header| (header.field.as_str().as_str(), header.value.as_str()));
    Request::new(incoming.method().as_str(), incoming.url(), headers)
}

/// What the head says of the body. `tiny_http` takes an unreadable `Content-Length` for none, and lets `+5` pass.
fn declared(incoming: &tiny_http::Request, request: &Request) -> Declared {
    let held = incoming.body_length().map_or(0, |length| length as u64);
    let lengths: Vec<&str> = request.headers("content-length").collect();
    if request.header("transfer-encoding").is_some() {
        return if lengths.is_empty() {
            Declared::Chunked
        } else {
            Declared::Contradictory { held: None }
        };
    }
    match lengths[..] {
        [] => Declared::Nothing,
        [length]
            if length.bytes().all(|byte| byte.is_ascii_digit()) && length.parse() == Ok(held) =>
        {
            Declared::Length(held)
        }
        _ => Declared::Contradictory { held: Some(held) },
    }
}

fn send(incoming: tiny_http::Request, response: &Response, unread: Unread) {
    match unread {
        Unread::Nothing => {
            let length = response.body.len();
            // 32 KiB and more would go out in chunks, without a Content-Length, if no threshold were set.
            let answer = head(response)
                .with_data(&response.body[..], Some(length))
                .with_chunked_threshold(usize::MAX);
            // A client that has gone away is no fault of ours.
            incoming.respond(answer).ok();
        }
        Unread::Length(rest) => part(incoming, response, Some(rest)),
        Unread::Unknown => part(incoming, response, None),
    }
}

fn head(response: &Response) -> tiny_http::Response<io::Empty> {
    let headers = response.headers.iter().map(|(name, value)| {
        tiny_http::Header::from_bytes(name.as_bytes(), value.as_bytes())
            .expect("Response keeps headers plain ASCII")
    });
    tiny_http::Response::new(
        response.status.into(),
        headers.collect(),
        io::empty(),
        Some(0),
        None,
    )
}

/// Answers a request whose body was not read, and takes its connection away from `tiny_http`.
///
/// `upgrade` is the only call that gives the body's reader out of the request. It writes the head of an answer as
/// for a change of protocol: without a `Content-Length`, and with `Connection: upgrade` and `Upgrade: HTTP/1.1`, which
/// RFC 9110 section 7.8 allows in any answer and which promises no more than what is spoken already. The two header
/// lines that `tiny_http` does not let through are passed behind the protocol's name, since it copies that verbatim.
/// Then a thread of its own reads on until the client has sent all or has gone, so that no worker waits for it and
/// the client sees the answer rather than a reset; such a thread costs what an idle connection costs in `tiny_http`.
///
/// If more than [`LONGEST_REST`] was declared, not even that will do, because the reader drops itself where it meets
/// the connection's end. It is forgotten: one thread and two descriptors stay behind, where `Drop` would end the
/// process. The front door, which refuses such requests before `tiny_http` sees them, makes this unreachable.
fn part(incoming: tiny_http::Request, response: &Response, rest: Option<u64>) {
    let without_body = *incoming.method() == tiny_http::Method::Head;
    let lines = format!(
        "HTTP/1.1\r\nConnection: close\r\nContent-Length: {}",
        response.body.len()
    );
    let mut stream = ManuallyDrop::new(incoming.upgrade(&lines, head(response)));
    if !without_body {
        stream.write_all(&response.body).ok();
    }
    stream.flush().ok();
    if rest.is_some_and(|rest| rest > LONGEST_REST) {
        return;
    }
    let linger = move || {
        let mut stream = ManuallyDrop::into_inner(stream);
        // Whether the client sends all or goes away makes no difference.
        io::copy(&mut stream, &mut io::sink()).ok();
    };
    // A closure that finds no thread is dropped: with the stream still inside ManuallyDrop.
    if let Err(error) = thread::Builder::new()
        .name("linger".to_owned())
        .spawn(linger)
    {
        log::warn!("a refused connection stays behind unread: {error}");
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    /// Answers two requests on one connection each, and gives the statuses.
    fn statuses(
        first: &str,
        handler: impl Fn(&Request, &mut Body<'_>) -> Response + Send + 'static,
    ) -> [String; 2] {
        let server = tiny_http::Server::http("127.0.0.1:0").expect("a free port");
        let address = server.server_addr().to_ip().expect("an address of TCP");
        let worker = thread::spawn(move || {
            for _ in 0..2 {
                run(server.recv().expect("a request"), &handler);
            }
        });
        let answers = [first, "GET /second HTTP/1.0\r\n\r\n"].map(|request| {
            let mut stream = TcpStream::connect(address).expect("the server accepts");
            stream
                .write_all(request.as_bytes())
                .expect("the server reads");
            let mut status = [0; 12];
            stream.read_exact(&mut status).expect("an answer");
            String::from_utf8_lossy(&status[9..]).into_owned()
        });
        worker.join().expect("the worker lives");
        answers
    }

    fn panics_at_first(request: &Request, _: &mut Body<'_>) -> Response {
        assert!(request.path == "/second", "a fault");
        Response::new(200, "text/plain", "")
    }

    #[test]
    fn a_panic_ends_the_request_alone() {
        let requests = [
            "GET / HTTP/1.0\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 5000\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 18446744073709551615\r\n\r\n",
        ];
        for request in requests {
            assert_eq!(
                statuses(request, panics_at_first),
                ["500", "200"],
                "{request}"
            );
        }
    }

    #[test]
    fn an_unreadable_length_is_told_apart_from_none() {
        let declared_of = |headers: &str| {
            let server = tiny_http::Server::http("127.0.0.1:0").expect("a free port");
            let address = server.server_addr().to_ip().expect("an address of TCP");
            let mut stream = TcpStream::connect(address).expect("the server accepts");
            write!(stream, "POST / HTTP/1.1\r\n{headers}\r\n12345").expect("the server reads");
            let incoming = server.recv().expect("a request");
            let declared = declared(&incoming, &read_head(&incoming));
            drop(stream);
            declared
        };
        assert_eq!(declared_of(""), Declared::Nothing);
        assert_eq!(declared_of("Content-Length: 5\r\n"), Declared::Length(5));
        assert_eq!(
            declared_of("Transfer-Encoding: chunked\r\n"),
            Declared::Chunked
        );
        for unreadable in ["5x", "-1", "", "99999999999999999999"] {
            let declared = declared_of(&format!("Content-Length: {unreadable}\r\n"));
            assert_eq!(
                declared,
                Declared::Contradictory { held: Some(0) },
                "{unreadable}"
            );
        }
        assert_eq!(
            declared_of("Content-Length: +5\r\n"),
            Declared::Contradictory { held: Some(5) }
        );
        let twice = "Content-Length: 5\r\nContent-Length: 4\r\n";
        assert_eq!(
            declared_of(twice),
            Declared::Contradictory { held: Some(5) }
        );
        let both = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n";
        assert_eq!(declared_of(both), Declared::Contradictory { held: None });
    }
}
