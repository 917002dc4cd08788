//! One request and its response, on `tiny_http`'s side. The front sends heads in one plain form,
//! and hands bodies over beside it, so `tiny_http`'s weaknesses with unread, endless or ambiguous
//! bodies are out of reach.

use super::admitted::Admitted;
use super::metrics::Metrics;
use super::problem::{Kind, Problem};
use super::request::{Body, Request};
use super::response::Response;
use super::settings::Settings;
use super::{cors, routes};
use crate::front::{self, Clients, NEXT_PART};
use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// Reads the request, calls `answer`, sends the response and writes one line to the log. A panic
/// of `answer` becomes a 500; nothing here unwinds into the worker. `settings` are those
/// of the service.
pub fn run(
    incoming: tiny_http::Request,
    clients: &Clients,
    metrics: &Metrics,
    settings: &Settings,
    answer: impl FnOnce(&Request, Option<Admitted>, &mut Body) -> Response,
) {
    let started = Instant::now();
    let Some((request, admitted, mut body)) = read(&incoming, clients) else {
        // The front itself, which checks a new connection to a worker.
        incoming.respond(tiny_http::Response::empty(204)).ok();
        return;
    };

    let answered = catch_unwind(AssertUnwindSafe(|| answer(&request, admitted, &mut body)));
    let response = answered.unwrap_or_else(|panic| {
        let cause = format!("panic: {}", panic_message(&*panic));
        let problem = Problem::new(Kind::InternalError, "The request could not be handled.");
        routes::problem_response(&request, problem.with_cause(cause))
    });
    log(&request, &response, body.received(), started, metrics);
    let response = complete(response, &request, settings);
    let sent = catch_unwind(AssertUnwindSafe(|| send(incoming, &response)));
    if let Err(panic) = sent {
        log::error!(
            id = request.id.as_str();
            "the answer was not sent: panic: {}",
            panic_message(&*panic)
        );
    }
    // The front has the body now, and counts its memory.
    drop(response.memory);
}

/// Writes a response's line to the log, and counts the response.
pub fn log(
    request: &Request,
    response: &Response,
    received: u64,
    started: Instant,
    metrics: &Metrics,
) {
    if let Some(cause) = &response.cause {
        log::error!(id = request.id.as_str(); "{cause}");
    }
    let tenths = (started.elapsed().as_secs_f64() * 10_000.0).round();
    let sent = match request.method.as_str() {
        "HEAD" => 0,
        _ => response.body.len(),
    };
    if request.header(NEXT_PART).is_some() {
        // A later part of a response that was counted and logged with its first part.
        return metrics.sent(sent as u64);
    }
    metrics.answered(response.status, received, sent as u64);
    log::info!(
        id = request.id.as_str(),
        method = request.loggable_method(),
        path = request.loggable_path(),
        status = response.status,
        bytes_in = received,
        bytes_out = sent,
        milliseconds = tenths / 10.0,
        client:% = request.client;
        "request"
    );
}

/// Adds the headers that every response has.
pub fn complete(response: Response, request: &Request, settings: &Settings) -> Response {
    let warning = routes::warning(request);
    let response = response.for_request(&request.id, warning, settings.is_behind_tls());
    if routes::is_for_programs(request) {
        cors::allow(response, &settings.allowed_origins, request)
    } else {
        response
    }
}

/// The head, what admission has found out, and the body; `None` if it is no client's request.
fn read(
    incoming: &tiny_http::Request,
    clients: &Clients,
) -> Option<(Request, Option<Admitted>, Body)> {
    let headers = incoming.headers().iter();
    let headers = headers.map(|header| (header.field.as_str().as_str(), header.value.as_str()));
    let (upstream, client) = front::internal_headers(headers.clone())?;
    let mut request = Request::new(incoming.method().as_str(), incoming.url(), client, headers);
    let handover = clients.take(upstream);
    request.cancel = handover.cancel;
    request.queued_since = handover.queued_since;
    let ticket: Option<Box<dyn Any>> = handover.ticket.map(|ticket| ticket as _);
    let admitted = ticket.and_then(|ticket| ticket.downcast::<Admitted>().ok());
    if let Some(admitted) = &admitted {
        request.id = admitted.request_id.clone();
        request.field_names = admitted.field_names();
    }
    let body = Body::new(handover.body);
    Some((request, admitted.map(|admitted| *admitted), body))
}

fn send(incoming: tiny_http::Request, response: &Response) {
    let headers = response.headers.iter().map(|(name, value)| {
        tiny_http::Header::from_bytes(name.as_bytes(), value.as_bytes())
            .expect("Response keeps headers plain ASCII")
    });
    let answer = tiny_http::Response::new(
        response.status.into(),
        headers.collect(),
        &response.body[..],
        Some(response.body.len()),
        None,
    );
    // 32 KiB and more would go out in chunks, without a Content-Length, if no threshold were set.
    let answer = answer.with_chunked_threshold(usize::MAX);
    // If this fails, the client has gone away, which is no fault of the server.
    let sent: io::Result<()> = incoming.respond(answer);
    sent.ok();
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
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::thread;

    /// Answers two requests in the form that the front sends, on one connection, and gives the
    /// statuses.
    fn statuses(
        first: &str,
        handler: impl Fn(&Request, &mut Body) -> Response + Send + 'static,
    ) -> [String; 2] {
        let server = tiny_http::Server::http("127.0.0.1:0").expect("a free port");
        let address = server.server_addr().to_ip().expect("an address of TCP");
        let worker = thread::spawn(move || {
            for _ in 0..2 {
                run(
                    server.recv().expect("a request"),
                    &Clients::default(),
                    &Metrics::default(),
                    &Settings::default(),
                    |request, _, body| handler(request, body),
                );
            }
        });
        let mut stream = TcpStream::connect(address).expect("the server accepts");
        let head = "x-towebp-upstream: 0\r\nx-towebp-client: ::1\r\n";
        let answers = [first, "GET /second HTTP/1.1\r\n"].map(|request| {
            let (line, rest) = request.split_once("\r\n").expect("a request line");
            write!(stream, "{line}\r\n{head}{rest}").expect("the server reads");
            if !rest.contains("\r\n\r\n") {
                write!(stream, "\r\n").expect("the server reads");
            }
            let mut answer = Vec::new();
            let mut byte = [0];
            while !answer.ends_with(b"}") && !answer.ends_with(b"\r\n\r\nfine") {
                stream.read_exact(&mut byte).expect("an answer");
                answer.push(byte[0]);
            }
            String::from_utf8_lossy(&answer[9..12]).into_owned()
        });
        worker.join().expect("the worker lives");
        answers
    }

    #[test]
    fn a_panic_ends_the_request_alone() {
        let handler = |request: &Request, _: &mut Body| {
            assert!(request.path == "/second", "a fault");
            Response::new(200, "text/plain", "fine")
        };
        let unread = format!(
            "POST / HTTP/1.1\r\nContent-Length: 5000\r\n\r\n{}",
            "x".repeat(5000)
        );
        for request in ["GET / HTTP/1.1\r\n", &unread] {
            assert_eq!(statuses(request, handler), ["500", "200"], "{request}");
        }
    }

    #[test]
    fn what_the_front_did_not_send_reaches_no_handler() {
        let server = tiny_http::Server::http("127.0.0.1:0").expect("a free port");
        let mut stream =
            TcpStream::connect(server.server_addr().to_ip().expect("TCP")).expect("accepted");
        write!(stream, "OPTIONS * HTTP/1.1\r\nConnection: close\r\n\r\n")
            .expect("the server reads");
        run(
            server.recv().expect("a request"),
            &Clients::default(),
            &Metrics::default(),
            &Settings::default(),
            |_, _, _| panic!("it has no client"),
        );
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 204 "), "{answer}");
    }
}
