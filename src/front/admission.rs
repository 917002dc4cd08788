//! Decisions about a request by its head alone.

use super::head::Head;
use super::job::Ticket;
use super::kind::{Owner, WorkKind};
use super::rejection::Rejection;
use super::response::Response;
use std::net::IpAddr;

/// The decisions that the event loop needs from the module that answers requests. Both functions
/// run on the event loop's thread, so every connection waits for them.
pub trait Admission: Send + 'static {
    /// Decides by the head whether the client should send the body.
    ///
    /// # Errors
    /// The response that rejects the request, or that needs no worker.
    fn admit(&self, head: &Head, client: IpAddr) -> Result<Admitted, Response>;

    /// Makes the response to a request that was not admitted. `head` is missing if it could not be
    /// read.
    fn reject(&self, rejection: Rejection, head: Option<&Head>, client: IpAddr) -> Response;
}

/// A request whose body the client should send.
pub struct Admitted {
    /// Most bytes that the body may have.
    pub body_limit: u64,
    /// The kind of work.
    pub kind: WorkKind,
    /// The owner, who takes turns with other owners.
    pub owner: Owner,
    /// The results of admission, and the way to the response.
    pub ticket: Box<dyn Ticket>,
}
