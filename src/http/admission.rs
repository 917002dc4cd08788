//! The answers to the front's questions about requests.

use super::problem::Problem;
use super::request::Request;
use super::response::Response;
use super::state::AppState;
use super::{admitted, exchange, failures, routes};
use crate::front::{self, EarlyResponse, Framing, Head, Rejection};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

/// Admits and rejects requests on the front's event loop.
pub struct HttpAdmission {
    state: Arc<AppState>,
}

impl HttpAdmission {
    /// With the state that the workers have.
    pub fn new(state: Arc<AppState>) -> HttpAdmission {
        HttpAdmission { state }
    }

    /// Logs and counts a response that no worker has given.
    fn respond(&self, request: &Request, response: Response, started: Instant) -> EarlyResponse {
        exchange::log(request, &response, 0, started, &self.state.metrics);
        let response = exchange::complete(response, request, &self.state.settings);
        EarlyResponse {
            status: response.status,
            headers: response.headers,
            body: response.body,
        }
    }
}

impl front::Admission for HttpAdmission {
    fn admit(&self, head: &Head, client: IpAddr) -> Result<front::Admitted, EarlyResponse> {
        let started = Instant::now();
        let request = request(head, client);
        let admitted = admitted::admit(&self.state, &request)
            .map_err(|response| self.respond(&request, response, started))?;
        Ok(admitted.into_front(&self.state.settings, client))
    }

    fn reject(&self, rejection: Rejection, head: Option<&Head>, client: IpAddr) -> EarlyResponse {
        let started = Instant::now();
        // A head that could not be read has no method and no path, in the log either.
        let request = head.map_or_else(
            || Request::new("-", "-", client, std::iter::empty()),
            |head| request(head, client),
        );
        let problem = Problem::from(rejection);
        if routes::is_conversion(&request) {
            failures::note_rejected(&self.state, &request, &problem);
        }
        let response = routes::problem_response(&request, problem);
        self.respond(&request, response, started)
    }
}

fn request(head: &Head, client: IpAddr) -> Request {
    let headers = head.headers.iter();
    let headers = headers.map(|(name, value)| (name.as_str(), value.as_str()));
    let mut request = Request::new(&head.method, &head.target, client, headers);
    if let Framing::Length(length) = head.framing {
        request.announced = length;
    }
    request
}
