//! The public socket: everything that the network sends arrives here first.
//!
//! `tiny_http` bounds neither connections nor headers, queues or waiting times, and it reads
//! requests more leniently than is safe. So this module owns the public sockets. One thread, the
//! event loop ([`event_loop`]), waits for all sockets at once and holds what it reads to
//! [`Settings`]: heads ([`head`]), chunked bodies ([`chunked`]), the least transfer rate
//! ([`min_rate`]) and the memory of all connections. It answers a bad request itself
//! ([`Rejection`]); the `http` module words that response and decides by the head alone whether
//! the body is worth being sent ([`Admission`]). Only the head of a complete request, written anew
//! in one plain form, goes on to `tiny_http` over a private upstream connection ([`upstream`]), and
//! the response comes back the same way. The worker takes the body and the ticket from [`Clients`],
//! so `tiny_http` sees no bodies. Until then the request waits here, first for what its [`Ticket`]
//! needs, then for a worker of its [`Pool`], in the turn of its [`Owner`].

mod admission;
mod byte_queue;
mod chunked;
mod clients;
mod connection;
mod descriptors;
mod event_loop;
mod forwarded;
mod head;
mod heartbeat;
mod internal_headers;
mod listeners;
mod load;
mod min_rate;
mod private_socket;
mod reason_phrase;
mod rejection;
mod request;
mod response;
mod response_writer;
mod settings;
mod shutdown;
mod slab;
mod upstream;
mod worker_queue;

pub use admission::{Admission, Admitted, Owner, Pool, Preparation, Ticket, Waker};
pub use byte_queue::ByteQueue;
pub use chunked::Chunked;
pub use clients::{Clients, Handover};
pub use head::{Framing, Head, HeadLimits, read as read_head};
pub use heartbeat::Heartbeat;
pub use internal_headers::{NEXT_PART, read as internal_headers};
pub use listeners::{FrontHandle, Listeners};
pub use load::{Load, LoadGauge};
pub use private_socket::PrivateSocket;
pub use reason_phrase::reason_phrase;
pub use rejection::Rejection;
pub use response::EarlyResponse;
pub use settings::Settings;
pub use shutdown::ShutdownHandle;
