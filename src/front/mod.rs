//! The public socket: everything that the network sends arrives here first.
//!
//! One thread, the event loop ([`event_loop`]), waits for all sockets at once and applies
//! [`Settings`] to the received bytes: heads ([`head`]), chunked bodies ([`chunked`]), the least
//! transfer rate ([`min_rate`]) and the memory of all connections. It answers a bad request itself
//! ([`Rejection`]); the `http` module makes that response and decides by the head alone whether the
//! client should send the body ([`Admission`]). A complete request waits here, first for its
//! [`Ticket`], then for a worker, in the turn of its [`Owner`]. Then it goes to a worker as a
//! [`job`], and comes back as a [`Response`], or once more to wait for memory.

mod admission;
mod byte_queue;
mod chunked;
mod connection;
mod descriptors;
mod event_loop;
mod forwarded;
mod head;
mod heartbeat;
mod job;
mod kind;
mod listeners;
mod load;
mod min_rate;
mod reason_phrase;
mod rejection;
mod request;
mod response;
mod response_writer;
mod settings;
mod shutdown;
mod slab;
mod socket;
mod worker_queue;
mod workers;

pub use admission::{Admission, Admitted};
pub use byte_queue::ByteQueue;
pub use chunked::Chunked;
#[cfg(test)]
pub use event_loop::simulated::{ClientEnd, SimulatedFront};
pub use head::{Framing, Head, HeadLimits, read as read_head};
pub use heartbeat::Heartbeat;
pub use job::{Handover, Preparation, Reply, Ticket, Waker};
pub use kind::{Owner, WorkKind};
pub use listeners::{FrontHandle, Listeners};
pub use load::{Load, LoadGauge};
pub use reason_phrase::reason_phrase;
pub use rejection::Rejection;
pub use response::{PartFailed, Parts, Response};
pub use settings::Settings;
pub use shutdown::ShutdownHandle;
