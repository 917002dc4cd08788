//! What admission finds out about a request by its head, and the hand-over to a worker.

use super::convert::{self, AdmittedConversion};
use super::cors;
use super::request::{Body, Request, RequestId};
use super::response::Response;
use super::routes::{self, Handler, PageHandler, Route};
use super::settings::Settings;
use super::state::AppState;
use crate::admission::client_group;
use crate::front::{self, ByteQueue, Owner, Pool, Preparation, Waker};
use std::net::IpAddr;

/// A request that was admitted, with all that its head says. It is made by the event loop, waits
/// there until the request is whole, and goes to the worker, which checks nothing of it again but
/// what may have changed meanwhile.
pub struct Admitted {
    /// The id that admission gave to the request.
    pub request_id: RequestId,
    route: &'static Route,
    work: Work,
}

/// What a worker has to do.
enum Work {
    Conversion(Box<AdmittedConversion>),
    Page(PageHandler),
}

/// Decides whether a request is worth its body, so that nobody sends one in vain. It waits for
/// nothing.
///
/// # Errors
/// The response, if the request is rejected, or needs no worker.
pub fn admit(state: &AppState, request: &Request) -> Result<Admitted, Response> {
    let to_response = |problem| routes::problem_response(request, problem);
    let allowed = &state.settings.allowed_origins;
    if let Some(preflight) = routes::preflight(request, allowed) {
        return Err(preflight);
    }
    if routes::is_for_programs(request) {
        cors::check(allowed, request).map_err(to_response)?;
    }
    let route = routes::find(request).map_err(to_response)?;
    let work = match route.handler {
        Handler::EventLoop(answer) => return Err(answer()),
        Handler::Conversion => {
            convert::admit(state, request).map(|it| Work::Conversion(Box::new(it)))
        }
        Handler::Page { admit, answer } => admit(state, request).map(|()| Work::Page(answer)),
    };
    Ok(Admitted {
        request_id: request.id.clone(),
        route,
        work: work.map_err(to_response)?,
    })
}

impl Admitted {
    /// The names of the fields of the request's form.
    pub fn field_names(&self) -> Vec<String> {
        match &self.work {
            Work::Conversion(conversion) => conversion.field_names(),
            Work::Page(_) => Vec::new(),
        }
    }

    /// The admission as the front takes it; `client` is the address of the request's client.
    pub fn into_front(self, settings: &Settings, client: IpAddr) -> front::Admitted {
        let (pool, owner) = match &self.work {
            Work::Conversion(conversion) => {
                (Pool::Conversions, Owner::Account(conversion.account.0))
            }
            Work::Page(_) => (Pool::Pages, Owner::Address(client_group(client))),
        };
        front::Admitted {
            body_limit: self.route.body_limit.bytes(settings),
            pool,
            owner,
            ticket: Some(Box::new(self)),
        }
    }
}

/// Answers an admitted request on a worker thread. One without a ticket, such as a later part of a
/// long response, is admitted first.
pub fn answer(
    state: &AppState,
    request: &Request,
    admitted: Option<Admitted>,
    body: &mut Body,
) -> Response {
    let admitted = match admitted.map_or_else(|| admit(state, request), Ok) {
        Ok(admitted) => admitted,
        Err(response) => return response,
    };
    let answered = match admitted.work {
        Work::Conversion(conversion) => convert::answer(state, request, *conversion, body),
        Work::Page(answer) => answer(state, request, body),
    };
    answered.unwrap_or_else(|problem| routes::problem_response(request, problem))
}

impl front::Ticket for Admitted {
    fn receive(&mut self, bytes: &[u8], to_come: Option<u64>, body: &mut ByteQueue) {
        match &mut self.work {
            Work::Conversion(conversion) => conversion.receive(bytes, to_come, body),
            Work::Page(_) => body.push(bytes, to_come),
        }
    }

    fn prepare(&mut self, waker: &Waker) -> Preparation {
        match &mut self.work {
            Work::Conversion(conversion) => conversion.prepare(waker),
            Work::Page(_) => Preparation::Ready,
        }
    }

    fn held(&self) -> usize {
        match &self.work {
            Work::Conversion(conversion) => conversion.held(),
            Work::Page(_) => 0,
        }
    }
}
