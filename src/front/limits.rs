//! Every bound that the door sets, with its default and the reason for the number.

use crate::admission::Network;
use std::time::Duration;

/// The time over which the rate of a sender or reader is taken. It is also how long one may stall: mobile networks
/// lose contact for some seconds and come back.
pub const WINDOW: Duration = Duration::from_secs(10);

/// Bounds on what the network may send and hold. Times are wall time, sizes bytes.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at a time. An idle one costs some hundred bytes here and a few KiB in the kernel; 4096 are more
    /// clients than the cores behind can serve. Lowered to what the limit of open files leaves.
    pub connections: usize,
    /// Connections of one IPv4 address or one IPv6 /64, so that no single client takes all; the networks around a /64 may
    /// have multiples of it ([`crate::admission::CLIENT_FACTORS`]). 256 leave room for an office behind one address.
    pub connections_per_address: usize,
    /// Request line and headers together. 16 KiB is twice what the common servers take, since the watermark's text
    /// stands in the query.
    pub head_bytes: usize,
    /// Headers of a request. Browsers send about 20, proxies add some.
    pub headers: usize,
    /// From a head's first byte to its last. A head is sent in one go; 10 s bear several lost packets.
    pub head_time: Duration,
    /// Between two requests of a connection, and before the first. 75 s is what nginx gives, and outlives the 60 s
    /// after which most pools of clients drop a connection.
    pub idle_time: Duration,
    /// Bytes a second that a sender of a body or a reader of an answer must reach in every [`WINDOW`]. 4 KiB is
    /// below the slowest mobile network that would bring 1 MB in four minutes.
    pub rate: u64,
    /// From a body's first byte to its last: 32 MiB at 1 Mbit/s take 270 s.
    pub body_time: Duration,
    /// From an answer's first byte to its last, for the same reason.
    pub answer_time: Duration,
    /// How long a whole request may wait for a worker. Clients rarely wait longer than 30 s.
    pub queue_time: Duration,
    /// How long a refused connection is read on, so that its client sees the answer rather than a reset. nginx
    /// gives the same 5 s.
    pub linger_time: Duration,
    /// How long requests that are under way when the door is asked to close may take to their ends. 60 s hold the
    /// longest conversion, and are less than the 90 after which systemd kills.
    pub stop_time: Duration,
    /// Bytes of all requests and answers on their way, bodies that workers have included. 256 MiB hold eight bodies of
    /// the largest size.
    pub buffer: usize,
    /// Proxies whose `X-Forwarded-For` is believed, and who are not held to `connections_per_address`.
    pub trusted_proxies: Vec<Network>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
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
