//! The limits of the event loop, with their defaults and the reasons for the numbers.

use crate::admission::Network;
use std::time::Duration;

/// The time over which the rate of a sender or reader is measured. A client may stall for as long:
/// mobile networks lose contact for some seconds and come back.
pub const WINDOW: Duration = Duration::from_secs(10);

/// Limits of the bytes and the time that the network may take. Times are wall time, sizes are
/// bytes.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Most connections at a time. An idle one costs some hundred bytes here and a few KiB in the
    /// kernel; 4096 are more clients than the cores can serve. Lowered to the number that the limit
    /// of open files leaves.
    pub connections: usize,
    /// Most connections of one IPv4 address or one IPv6 /64, so that no single client takes all.
    /// The networks around a /64 may have multiples of it ([`crate::admission::CLIENT_FACTORS`]).
    /// 256 suffice for an office behind one address.
    pub connections_per_address: usize,
    /// Most bytes of a request line and its headers together. 16 KiB is twice as much as common
    /// servers take, since the watermark's text stands in the query.
    pub head_bytes: usize,
    /// Most headers of a request. Browsers send about 20, proxies add some.
    pub headers: usize,
    /// Longest time from a head's first byte to its last. A head is sent in one go; 10 s allow for
    /// several lost packets.
    pub head_time: Duration,
    /// Longest time between two requests of a connection, and before the first. 75 s is the limit
    /// of nginx gives, and outlives the 60 s after which most clients' pools drop a connection.
    pub idle_time: Duration,
    /// Bytes a second that a client that sends a body or reads a response must reach in every
    /// [`WINDOW`]. 4 KiB is below the slowest mobile network that would bring 1 MB in four minutes.
    pub rate: u64,
    /// Longest time from a body's first byte to its last: 32 MiB at 1 Mbit/s take 270 s.
    pub body_time: Duration,
    /// Longest time from a response's first byte to its last, for the same reason.
    pub answer_time: Duration,
    /// Longest time that a complete request may wait for a worker. Clients rarely wait longer than
    /// 30 s.
    pub queue_time: Duration,
    /// How long the connection of a rejected request is still read, so that its client sees the
    /// response rather than a reset. nginx gives the same 5 s.
    pub linger_time: Duration,
    /// Longest time that requests in progress may take after a shutdown was requested. 60 s suffice
    /// for the longest conversion, and are less than the 90 s after which systemd kills.
    pub stop_time: Duration,
    /// Most bytes of all requests and responses in transit, including bodies that workers have.
    /// 256 MiB hold eight bodies of the largest size.
    pub buffer: usize,
    /// Proxies whose `X-Forwarded-For` is trusted, and which are not held to
    /// `connections_per_address`.
    pub trusted_proxies: Vec<Network>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            connections: 4096,
            connections_per_address: 256,
            head_bytes: 16 << 10,
            headers: 64,
            head_time: Duration::from_secs(10),
            idle_time: Duration::from_secs(75),
            rate: 4 << 10,
            body_time: Duration::from_mins(5),
            answer_time: Duration::from_mins(5),
            queue_time: Duration::from_secs(30),
            linger_time: Duration::from_secs(5),
            stop_time: Duration::from_mins(1),
            buffer: 256 << 20,
            trusted_proxies: Vec::new(),
        }
    }
}
