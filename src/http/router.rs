//! Who answers which path.

use super::error::{Kind, Problem};
use super::request::{Body, Request};
use super::response::Response;
use super::ticket::Ticket;
use super::{Rooms, convert, pages, ready, usage};
use crate::front::{self, Admitted, Owner, Pool, group};

/// Decides by a request's head whether it is worth its body, and by whom and in whose turn it is answered. All that a
/// handler checks before it reads the body is checked here too, so that nobody sends one in vain.
///
/// # Errors
/// The answer that refuses the request; or that says that the server is alive, however busy its workers are.
pub fn admit(rooms: &Rooms, request: &Request) -> Result<Admitted, Response> {
    let admitted = match request.path.as_str() {
        "/convert" => method(request, "POST")
            .and_then(|()| convert::admit(rooms, request))
            .map(|ticket| Admitted {
                body_limit: rooms.settings.max_body,
                pool: Pool::Conversions,
                owner: Owner::Account(ticket.account().0),
                ticket: Some(Box::new(ticket)),
            }),
        "/healthz" => match method(request, READ) {
            Ok(()) => return Err(healthy()),
            Err(problem) => Err(problem),
        },
        _ => pages::admit(rooms, request).map(|body_limit| Admitted {
            body_limit,
            pool: Pool::Pages,
            owner: Owner::Address(group(request.client)),
            ticket: None,
        }),
    };
    admitted.map_err(|problem| refusal(request, problem))
}

/// A problem as those who sent the request would like to see it.
pub fn refusal(request: &Request, problem: Problem) -> Response {
    match request.path.as_str() {
        "/convert" | "/api/usage" | "/api/usage.csv" | "/healthz" | "/readyz" => problem.into(),
        _ => pages::refusal(request, problem),
    }
}

/// Finds the handler by path and method, and turns its error into an answer.
pub fn answer(
    rooms: &Rooms,
    request: &Request,
    ticket: Option<Box<dyn front::Ticket>>,
    body: &mut Body<'_>,
) -> Response {
    let api = match request.path.as_str() {
        "/convert" => method(request, "POST")
            .and_then(|()| Ticket::from_front(ticket))
            .and_then(|ticket| convert::answer(rooms, request, ticket, body)),
        "/readyz" => {
            method(request, READ).and_then(|()| ready::answer(&rooms.readiness, &rooms.store))
        }
        "/api/usage" => method(request, READ).and_then(|()| usage::json(rooms, request)),
        "/api/usage.csv" => method(request, READ).and_then(|()| usage::csv(rooms, request)),
        _ => return pages::answer(rooms, request, body),
    };
    api.unwrap_or_else(Response::from)
}

/// The methods of what can only be looked at. `tiny_http` leaves out the body of an answer to HEAD.
pub const READ: &str = "GET, HEAD";

/// Holds the request to the allowed methods, written as in `Allow`.
pub fn method(request: &Request, allowed: &'static str) -> Result<(), Problem> {
    if allowed.split(", ").any(|method| method == request.method) {
        return Ok(());
    }
    Err(Problem::method_not_allowed(&request.method, allowed))
}

/// 404.
pub fn not_found() -> Problem {
    Problem::new(
        Kind::NotFound,
        "Pictures are converted by POST /convert; the start page is at /.",
    )
}

fn healthy() -> Response {
    Response::new(200, "text/plain; charset=utf-8", "ok").header("Cache-Control", "no-store")
}
