//! Who answers which path.

use super::error::{Kind, Problem};
use super::request::{Body, Request};
use super::response::Response;
use super::ticket::Ticket;
use super::{Rooms, convert, pages, ready, usage};
use crate::admission::client_group;
use crate::front::{self, Admitted, Owner, Pool};

/// A path that is answered.
struct Route {
    path: &'static str,
    /// The methods that it is answered by, as in `Allow`.
    methods: &'static str,
}

/// The methods of what can only be read. `tiny_http` leaves out the body of an answer to HEAD.
const READ: &str = "GET, HEAD";

/// The methods of a page with a form.
const FORM: &str = "GET, HEAD, POST";

/// All paths. Any other path is a 404, whatever the method and the body.
const ROUTES: [Route; 19] = [
    route("/convert", "POST"),
    route("/healthz", READ),
    route("/readyz", READ),
    route("/api/usage", READ),
    route("/api/usage.csv", READ),
    route("/", READ),
    route("/dashboard", READ),
    route("/signup", FORM),
    route("/signin", FORM),
    route("/signout", "POST"),
    route("/signout/everywhere", "POST"),
    route("/token/rotate", "POST"),
    route("/account/password", "POST"),
    route("/account/delete", "POST"),
    route("/account/changed", READ),
    route("/account/deleted", READ),
    route("/style.css", READ),
    route("/app.js", READ),
    route("/icon.svg", READ),
];

const fn route(path: &'static str, methods: &'static str) -> Route {
    Route { path, methods }
}

/// Decides by a request's head whether it is worth its body, and by whom and in whose turn it is answered. All that a
/// handler checks before it reads the body is checked here too, so that nobody sends one in vain.
///
/// # Errors
/// The answer that refuses the request; or that says that the server is alive, however busy its workers are.
pub fn admit(rooms: &Rooms, request: &Request) -> Result<Admitted, Response> {
    let admitted = check_route(request).and_then(|()| match request.path.as_str() {
        "/convert" => convert::admit(rooms, request).map(|ticket| Admitted {
            body_limit: rooms.settings.max_body,
            pool: Pool::Conversions,
            owner: Owner::Account(ticket.account().0),
            ticket: Some(Box::new(ticket)),
        }),
        _ => pages::admit(rooms, request).map(|body_limit| Admitted {
            body_limit,
            pool: Pool::Pages,
            owner: Owner::Address(client_group(request.client)),
            ticket: None,
        }),
    });
    match admitted {
        Ok(_) if request.path == "/healthz" => Err(healthy()),
        admitted => admitted.map_err(|problem| refusal(request, problem)),
    }
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
    let answer = check_route(request).and_then(|()| match request.path.as_str() {
        "/convert" => Ticket::from_front(ticket)
            .and_then(|ticket| convert::answer(rooms, request, ticket, body)),
        "/readyz" => ready::answer(&rooms.readiness, &rooms.store),
        "/api/usage" => usage::json(rooms, request),
        "/api/usage.csv" => usage::csv(rooms, request),
        _ => pages::answer(rooms, request, body),
    });
    answer.unwrap_or_else(|problem| refusal(request, problem))
}

/// Holds the request to the routes and their methods.
fn check_route(request: &Request) -> Result<(), Problem> {
    let route = ROUTES.iter().find(|route| route.path == request.path);
    let methods = route.ok_or_else(not_found)?.methods;
    if methods.split(", ").any(|method| method == request.method) {
        return Ok(());
    }
    Err(Problem::method_not_allowed(&request.method, methods))
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

/// The paths that forms are sent to.
#[cfg(test)]
pub fn forms() -> impl Iterator<Item = &'static str> {
    let takes_forms = |route: &&Route| route.path != "/convert" && route.methods.contains("POST");
    ROUTES.iter().filter(takes_forms).map(|route| route.path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn checked(method: &str, path: &str) -> Result<(), (Kind, Option<&'static str>)> {
        let client = Ipv4Addr::LOCALHOST.into();
        let request = Request::new(method, path, client, std::iter::empty());
        check_route(&request).map_err(|problem| (problem.kind, problem.allow))
    }

    #[test]
    fn a_wrong_path_is_not_found_and_a_wrong_method_not_allowed() {
        for method in ["GET", "POST", "PUT", "BREW"] {
            for path in [
                "/convert/",
                "/shrink",
                "/Convert",
                "",
                "*",
                "/api",
                "/api/usage/",
            ] {
                let outcome = checked(method, path);
                assert_eq!(outcome, Err((Kind::NotFound, None)), "{method} {path}");
            }
        }
        assert_eq!(checked("POST", "/convert"), Ok(()));
        assert_eq!(checked("POST", "/convert?a=b"), Ok(()));
        let refused = Err((Kind::MethodNotAllowed, Some("POST")));
        assert_eq!(checked("GET", "/convert"), refused);
        for route in &ROUTES {
            for method in route.methods.split(", ") {
                assert_eq!(
                    checked(method, route.path),
                    Ok(()),
                    "{method} {}",
                    route.path
                );
            }
            let refused = Err((Kind::MethodNotAllowed, Some(route.methods)));
            assert_eq!(checked("DELETE", route.path), refused, "{}", route.path);
        }
    }
}
