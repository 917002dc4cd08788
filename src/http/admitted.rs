//! A request that was admitted, with the contents of its head, and the hand-over to a worker.

use super::convert::{self, AdmittedConversion, Progress};
use super::problem::Problem;
use super::request::{Body, Request};
use super::response::Response;
use super::routes::{self, Handler, Route, Task};
use super::state::AppState;
use super::{cors, exchange};
use crate::admission::client_group;
use crate::front::{self, ByteQueue, Handover, Kind, Owner, Preparation, Rejection, Waker};
use std::sync::Arc;
use std::time::Instant;

/// A request that was admitted, with its parsed head. The event loop makes it and keeps it until
/// the request is complete. Then it goes to the worker, which checks again only the state that may
/// have changed meanwhile.
pub struct Admitted {
    state: Arc<AppState>,
    request: Request,
    route: &'static Route,
    work: Work,
}

/// The work for a worker.
pub enum Work {
    /// A conversion.
    Conversion(Box<AdmittedConversion>),
    /// Anything else.
    Task(Task),
}

/// Decides whether a request is worth its body, so that nobody sends one in vain. It waits for
/// nothing.
///
/// # Errors
/// The response, if the request is rejected, or needs no worker.
pub fn admit(
    state: &AppState,
    route: Option<&'static Route>,
    request: &Request,
) -> Result<(&'static Route, Work), Response> {
    let to_response = |problem| routes::problem_response(route, request, problem);
    let allowed = &state.settings.allowed_origins;
    if let Some(preflight) = route.and_then(|route| route.preflight(request, allowed)) {
        return Err(preflight);
    }
    if route.is_some_and(Route::is_for_programs) {
        cors::check(allowed, request).map_err(to_response)?;
    }
    let route = Route::check(route, request).map_err(to_response)?;
    let work = match route.handler {
        Handler::EventLoop(answer) => return Err(answer()),
        Handler::Conversion => {
            convert::admit(state, request).map(|it| Work::Conversion(Box::new(it)))
        }
        Handler::Worker(task) => task.admit(state, request).map(|()| Work::Task(task)),
    };
    Ok((route, work.map_err(to_response)?))
}

impl Admitted {
    /// A request that [`admit`] has admitted.
    pub fn new(
        state: Arc<AppState>,
        request: Request,
        route: &'static Route,
        work: Work,
    ) -> Admitted {
        Admitted {
            state,
            request,
            route,
            work,
        }
    }

    /// The admission as the front takes it.
    pub fn into_front(self) -> front::Admitted {
        let address = || Owner::Address(client_group(self.request.client));
        let (kind, owner) = match &self.work {
            Work::Conversion(conversion) => {
                (Kind::Conversion, Owner::Account(conversion.account.0))
            }
            Work::Task(Task::Readiness) => (Kind::Readiness, address()),
            Work::Task(_) => (Kind::Page, address()),
        };
        front::Admitted {
            body_limit: self.route.body_limit.bytes(&self.state.settings),
            kind,
            owner,
            ticket: Box::new(self),
        }
    }
}

/// Answers an admitted request on a worker's thread, or goes on with it. `wake` is called when a
/// request that waits can go on.
///
/// # Errors
/// Why the request failed.
pub fn answer(
    state: &AppState,
    request: &Request,
    work: Work,
    body: &mut Body,
    wake: impl Fn() + Clone + Send + 'static,
) -> Result<Progress, Problem> {
    match work {
        Work::Conversion(conversion) => convert::answer(state, request, conversion, body, wake),
        Work::Task(task) => task.answer(state, request, body).map(Progress::Done),
    }
}

impl front::Ticket for Admitted {
    fn receive(&mut self, bytes: &[u8], to_come: Option<u64>, body: &mut ByteQueue) {
        match &mut self.work {
            Work::Conversion(conversion) => conversion.receive(bytes, to_come, body),
            Work::Task(_) => body.push(bytes, to_come),
        }
    }

    fn prepare(&mut self, waker: &Waker) -> Preparation {
        match &mut self.work {
            Work::Conversion(conversion) => conversion.prepare(waker),
            Work::Task(_) => Preparation::Ready,
        }
    }

    fn held(&self) -> usize {
        match &self.work {
            Work::Conversion(conversion) => conversion.held(),
            Work::Task(_) => 0,
        }
    }

    fn answer(self: Box<Self>, body: ByteQueue, handover: Handover) {
        let Admitted {
            state,
            mut request,
            route,
            work,
        } = *self;
        let Handover {
            cancel,
            queued_since,
            waker,
            reply,
        } = handover;
        request.cancel = cancel;
        request.queued_since = queued_since;
        request.started.get_or_insert_with(Instant::now);
        if let Work::Conversion(conversion) = &work {
            request.field_names = conversion.field_names();
        }
        let mut body = Body::new(body);
        let wake = move || waker.wake();
        let answered = exchange::answered(Some(route), &request, || {
            answer(&state, &request, work, &mut body, wake)
        });
        request.received += body.received();
        match answered {
            Ok(Progress::Waits(conversion)) => {
                let work = Work::Conversion(conversion);
                reply.wait(Box::new(Admitted::new(state, request, route, work)));
            }
            Ok(Progress::Done(response)) | Err(response) => {
                exchange::send(&state, route, &request, response, reply);
            }
        }
    }

    fn reject(&self, rejection: Rejection) -> front::Response {
        let problem = match (&self.work, rejection) {
            (Work::Conversion(conversion), Rejection::Busy { .. }) => conversion.busy(),
            _ => None,
        };
        let problem = problem.unwrap_or_else(|| rejection.into());
        exchange::reject(&self.state, Some(self.route), &self.request, problem)
    }
}
