//! Admission and rejection of requests, on the front's event loop.

use super::admitted::{self, Admitted};
use super::request::Request;
use super::state::AppState;
use super::{exchange, routes};
use crate::front::{self, Framing, Head, Rejection};
use std::net::IpAddr;
use std::sync::Arc;

/// Admits and rejects requests on the front's event loop.
pub struct HttpAdmission {
    state: Arc<AppState>,
}

impl HttpAdmission {
    /// Makes an admission with the state that the workers share.
    pub fn new(state: Arc<AppState>) -> HttpAdmission {
        HttpAdmission { state }
    }
}

impl front::Admission for HttpAdmission {
    fn admit(&self, head: &Head, client: IpAddr) -> Result<front::Admitted, front::Response> {
        let request = request(head, client);
        let route = routes::by_path(&request.path);
        match admitted::admit(&self.state, route, &request) {
            Ok((route, work)) => {
                let state = Arc::clone(&self.state);
                Ok(Admitted::new(state, request, route, work).into_front())
            }
            Err(response) => Err(exchange::finish(&self.state, route, &request, response)),
        }
    }

    fn reject(&self, rejection: Rejection, head: Option<&Head>, client: IpAddr) -> front::Response {
        // A head that could not be read has no method and no path, in the log either.
        let request = head.map_or_else(
            || Request::new("-", "-", client, std::iter::empty()),
            |head| request(head, client),
        );
        exchange::reject(
            &self.state,
            routes::by_path(&request.path),
            &request,
            rejection.into(),
        )
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
