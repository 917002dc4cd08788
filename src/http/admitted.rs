//! A request that was admitted, with the contents of its head, and the hand-over to a worker.

use super::convert::{self, AdmittedConversion, Progress};
use super::problem::Problem;
use super::request::Request;
use super::response::Response;
use super::routes::{self, Handler, Route, Task};
use super::state::AppState;
use super::{cors, exchange};
use crate::admission::client_group;
use crate::front::{
    self, ByteQueue, Framing, Handover, Head, Owner, Preparation, Rejection, Waker, WorkKind,
};
use std::net::IpAddr;
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

/// Admits and rejects requests on the front's event loop, with the state that the workers share.
pub struct HttpAdmission(pub Arc<AppState>);

impl front::Admission for HttpAdmission {
    fn admit(&self, head: &Head, client: IpAddr) -> Result<front::Admitted, front::Response> {
        let request = to_request(head, client);
        let route = routes::by_path(&request.path);
        match admit(&self.0, route, &request) {
            Ok((route, work)) => {
                let state = Arc::clone(&self.0);
                let admitted = Admitted {
                    state,
                    request,
                    route,
                    work,
                };
                Ok(admitted.into_front())
            }
            Err(response) => Err(exchange::finish(&self.0, route, &request, response)),
        }
    }

    fn reject(&self, rejection: Rejection, head: Option<&Head>, client: IpAddr) -> front::Response {
        // A head that could not be read has no method and no path, in the log either.
        let request = head.map_or_else(
            || Request::new("-", "-", client, std::iter::empty()),
            |head| to_request(head, client),
        );
        let route = routes::by_path(&request.path);
        exchange::reject(&self.0, route, &request, rejection.into())
    }
}

fn to_request(head: &Head, client: IpAddr) -> Request {
    let headers = head.headers.iter();
    let headers = headers.map(|(name, value)| (name.as_str(), value.as_str()));
    let mut request = Request::new(&head.method, &head.target, client, headers);
    if let Framing::Length(length) = head.framing {
        request.announced = length;
    }
    request
}

impl Admitted {
    /// The admission as the front takes it.
    fn into_front(self) -> front::Admitted {
        let address = || Owner::Address(client_group(self.request.client));
        let (kind, owner) = match &self.work {
            Work::Conversion(conversion) => {
                (WorkKind::Conversion, Owner::Account(conversion.account.0))
            }
            Work::Task(Task::Readiness) => (WorkKind::Readiness, address()),
            Work::Task(_) => (WorkKind::Page, address()),
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
    body: &mut ByteQueue,
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

    fn answer(self: Box<Self>, mut body: ByteQueue, handover: Handover) {
        let Admitted {
            state,
            mut request,
            route,
            work,
        } = *self;
        let (waker, reply) = (handover.waker, handover.reply);
        request.cancel = handover.cancel;
        request.queued_since = handover.queued_since;
        request.started.get_or_insert_with(Instant::now);
        if let Work::Conversion(conversion) = &work {
            request.field_names = conversion.field_names();
        }
        let length = body.len();
        let wake = move || waker.wake();
        let answered = exchange::answered(Some(route), &request, || {
            answer(&state, &request, work, &mut body, wake)
        });
        request.received += (length - body.len()) as u64;
        match answered {
            Ok(Progress::Waits(conversion)) => {
                let work = Work::Conversion(conversion);
                reply.wait(Box::new(Admitted {
                    state,
                    request,
                    route,
                    work,
                }));
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
