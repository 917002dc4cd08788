//! The end of every request: its response gets the headers that all have, and is counted and
//! logged.

use super::metrics::Metrics;
use super::problem::{Kind, Problem};
use super::request::Request;
use super::response::{Response, TextParts};
use super::routes::{self, Route};
use super::state::AppState;
use super::{cors, failures};
use crate::front::{self, PartFailed, Reply};
use crate::store::RequestId;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Runs `answer`. A panic becomes a 500.
///
/// # Errors
/// The response to a request that failed.
pub fn answered<T>(
    route: Option<&Route>,
    request: &Request,
    answer: impl FnOnce() -> Result<T, Problem>,
) -> Result<T, Response> {
    let answered = catch_unwind(AssertUnwindSafe(answer)).unwrap_or_else(|panic| {
        let cause = format!("panic: {}", panic_message(&*panic));
        let problem = Problem::new(Kind::InternalError, "The request could not be handled.");
        Err(problem.with_cause(cause))
    });
    answered.map_err(|problem| routes::problem_response(route, request, problem))
}

/// Hands a response to the event loop.
pub fn send(
    state: &AppState,
    route: &Route,
    request: &Request,
    mut response: Response,
    reply: Reply,
) {
    let memory = response.memory.take();
    reply.send(finish(state, Some(route), request, response));
    // The event loop has the body now, and counts its memory.
    drop(memory);
}

/// Words the rejection of a request.
pub fn reject(
    state: &AppState,
    route: Option<&Route>,
    request: &Request,
    problem: Problem,
) -> front::Response {
    if route.is_some_and(Route::is_conversion) {
        failures::note_rejected(state, request, &problem);
    }
    let response = routes::problem_response(route, request, problem);
    finish(state, route, request, response)
}

/// Counts and logs a response, and adds the headers that every response has.
pub fn finish(
    state: &AppState,
    route: Option<&Route>,
    request: &Request,
    response: Response,
) -> front::Response {
    log(request, &response, &state.metrics);
    let settings = &state.settings;
    let warning = route.and_then(|route| route.warning(request));
    let response = response.for_request(request.id, warning, settings.is_behind_tls());
    let response = if route.is_some_and(Route::is_for_programs) {
        cors::allow(response, &settings.allowed_origins, request)
    } else {
        response
    };
    let parts = response.parts;
    front::Response {
        status: response.status,
        headers: response.headers,
        body: response.body,
        due: response.due,
        parts: parts.map(|parts| to_front(parts, request.id, state.metrics.clone())),
    }
}

fn log(request: &Request, response: &Response, metrics: &Metrics) {
    if let Some(cause) = &response.cause {
        log::error!(id:% = request.id; "{cause}");
    }
    let spent = request.started.map_or(Duration::ZERO, |at| at.elapsed());
    let tenths = (spent.as_secs_f64() * 10_000.0).round();
    let sent = match request.method.as_str() {
        "HEAD" => 0,
        _ => response.body.len(),
    };
    metrics.answered(response.status, request.received, sent as u64);
    log::info!(
        id:% = request.id,
        method = request.loggable_method(),
        path = request.loggable_path(),
        status = response.status,
        bytes_in = request.received,
        bytes_out = sent,
        milliseconds = tenths / 10.0,
        client:% = request.client;
        "request"
    );
}

/// The further parts of a response, counted; a failure is logged, and ends the response.
fn to_front(mut parts: TextParts, id: RequestId, metrics: Metrics) -> front::Parts {
    let failed = move |cause: &str| {
        log::error!(id:% = id; "a response broke off: {cause}");
        Err(PartFailed)
    };
    Box::new(std::iter::from_fn(move || {
        let next = catch_unwind(AssertUnwindSafe(|| parts.next()));
        Some(match next {
            Ok(None) => return None,
            Ok(Some(Ok(text))) => {
                metrics.sent(text.len() as u64);
                Ok(text.into_bytes())
            }
            Ok(Some(Err(problem))) => failed(problem.cause.as_ref().unwrap_or(&problem.detail)),
            Err(panic) => failed(&format!("panic: {}", panic_message(&*panic))),
        })
    }))
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
    use std::net::Ipv4Addr;

    #[test]
    fn a_panic_is_a_500_whose_cause_is_for_the_log() {
        let client = Ipv4Addr::LOCALHOST.into();
        let request = Request::new("GET", "/", client, std::iter::empty());
        let response = answered::<()>(None, &request, || panic!("a fault"));
        let response = response.expect_err("it failed");
        assert_eq!(response.status, 500);
        assert_eq!(response.cause.as_deref(), Some("panic: a fault"));
        let body = String::from_utf8(response.body).expect("JSON");
        assert!(!body.contains("fault"), "{body}");
    }

    #[test]
    fn parts_are_counted_and_end_with_a_failure() {
        let given = ["ab", "c"].map(|text| Ok(text.to_owned()));
        let id = || Request::new("GET", "/", Ipv4Addr::LOCALHOST.into(), std::iter::empty()).id;
        let mut whole = to_front(Box::new(given.into_iter()), id(), Metrics::default());
        assert_eq!(whole.next(), Some(Ok(b"ab".to_vec())));
        assert_eq!(whole.next(), Some(Ok(b"c".to_vec())));
        assert_eq!(whole.next(), None);
        let failing = [Err(Problem::token_missing())].into_iter();
        let mut failing = to_front(Box::new(failing), id(), Metrics::default());
        assert_eq!(failing.next(), Some(Err(PartFailed)));
        let panicking = std::iter::from_fn(|| panic!("a fault"));
        let mut panicking = to_front(Box::new(panicking), id(), Metrics::default());
        assert_eq!(panicking.next(), Some(Err(PartFailed)));
    }
}
