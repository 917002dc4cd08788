//! What is decided about a request by its head alone.

use super::head::Head;
use super::job::Ticket;
use super::kind::{Kind, Owner};
use super::rejection::Rejection;
use super::response::Response;
use std::net::IpAddr;

/// What the event loop asks of the module that answers requests. Both functions run on the event
/// loop's thread, so every connection waits for them.
pub trait Admission: Send + 'static {
    /// Decides by the head whether the request's body is worth being sent.
    ///
    /// # Errors
    /// The response that rejects the request, or that needs no worker.
    fn admit(&self, head: &Head, client: IpAddr) -> Result<Admitted, Response>;

    /// Words the rejection of a request that was not admitted. `head` is missing if it could not be
    /// read.
    fn reject(&self, rejection: Rejection, head: Option<&Head>, client: IpAddr) -> Response;
}

/// A request whose body is worth being sent.
pub struct Admitted {
    /// Most bytes that the body may have.
    pub body_limit: u64,
    /// What kind of work it is.
    pub kind: Kind,
    /// Among whose requests it waits, and with whom that owner takes turns.
    pub owner: Owner,
    /// What admission found out, and the way to the response.
    pub ticket: Box<dyn Ticket>,
}
