//! Why the door turns a request away. What is said to the client is up to the rooms behind.

/// A request that is not passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// This is no HTTP/1.1 head or no chunked body: what is wrong with it.
    Malformed(&'static str),
    /// Where the body ends is not clear: why.
    Framing(&'static str),
    /// The client ended its side inside the body.
    CutShort {
        /// Bytes of the body that came.
        received: u64,
    },
    /// The head took too long.
    SlowHead,
    /// The body took too long, or came below the least rate.
    SlowBody,
    /// HTTP/1.0 tells the end of a body by `Content-Length` alone, and there is none.
    LengthRequired,
    /// The body is longer than what asked for it takes.
    BodyTooLarge {
        /// In bytes.
        limit: u64,
    },
    /// The request line alone fills the head.
    TargetTooLong {
        /// Of the head, in bytes.
        limit: usize,
    },
    /// `Expect` with anything but `100-continue`.
    Expectation,
    /// Too many bytes before the body.
    HeadTooLarge {
        /// In bytes.
        limit: usize,
    },
    /// Too many headers.
    TooManyHeaders {
        /// How many may come.
        limit: usize,
    },
    /// `Transfer-Encoding` with anything but `chunked`.
    TransferEncoding,
    /// Not HTTP/1.0 and not HTTP/1.1.
    Version,
    /// No worker became free in time, or there is no room for the body.
    Busy {
        /// When it may be worth another try, in seconds.
        retry_after: u64,
    },
    /// There are too many connections already, in all or from this address.
    TooManyConnections,
    /// The client left while its request waited.
    ClientGone,
    /// The service behind the door broke off.
    Broken,
}
