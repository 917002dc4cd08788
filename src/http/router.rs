//! Who answers which path.

use super::error::{Kind, Problem};
use super::request::{Body, Request};
use super::response::Response;
use super::{Rooms, convert, pages, usage};

/// Finds the handler by path and method, and turns its error into an answer.
pub fn answer(rooms: &Rooms, request: &Request, body: &mut Body<'_>) -> Response {
    let api = match request.path.as_str() {
        "/convert" => method(request, "POST").and_then(|()| convert::answer(rooms, request, body)),
        "/api/usage" => method(request, READ).and_then(|()| usage::json(rooms, request)),
        "/api/usage.csv" => method(request, READ).and_then(|()| usage::csv(rooms, request)),
        "/healthz" => method(request, READ).map(|()| healthy()),
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
