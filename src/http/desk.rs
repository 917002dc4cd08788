//! What the front door asks: whether a request is worth its body, and how to word a refusal.

use super::Rooms;
use super::error::Problem;
use super::exchange;
use super::pages;
use super::request::Request;
use super::response::Response;
use super::router;
use crate::front::{Admission, Admitted, EarlyResponse, Head, Rejection};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

/// Stands between the door and the handlers.
pub struct Desk {
    rooms: Arc<Rooms>,
}

impl Desk {
    /// With the rooms that the workers have.
    pub fn new(rooms: Arc<Rooms>) -> Desk {
        Desk { rooms }
    }
}

impl Admission for Desk {
    fn admit(&self, head: &Head, client: IpAddr) -> Result<Admitted, EarlyResponse> {
        let started = Instant::now();
        let request = request(head, client);
        router::admit(&self.rooms, &request)
            .map_err(|response| self.answer(&request, response, started))
    }

    fn reject(&self, rejection: Rejection, head: Option<&Head>, client: IpAddr) -> EarlyResponse {
        let started = Instant::now();
        // What could not be read has no method and no path, in the log either.
        let request = head.map_or_else(
            || Request::new("-", "-", client, std::iter::empty()),
            |head| request(head, client),
        );
        let response = router::refusal(&request, Problem::from(rejection));
        self.answer(&request, response, started)
    }
}

impl Desk {
    fn answer(&self, request: &Request, response: Response, started: Instant) -> EarlyResponse {
        exchange::log(request, &response, 0, started, &self.rooms.metrics);
        let is_https = pages::is_behind_tls(&self.rooms.settings);
        let response = response.for_request(request, is_https);
        EarlyResponse {
            status: response.status,
            headers: response.headers,
            body: response.body,
        }
    }
}

fn request(head: &Head, client: IpAddr) -> Request {
    let headers = head.headers.iter();
    Request::new(
        &head.method,
        &head.target,
        client,
        headers.map(|(name, value)| (name.as_str(), value.as_str())),
    )
}
