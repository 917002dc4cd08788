//! Why the event loop rejects a request. The `http` module words the response.

/// Why the event loop answers a request by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The bytes are no HTTP/1.1 head or no chunked body; the text has the fault.
    Malformed(&'static str),
    /// The end of the body is not clear; the text has the reason.
    Framing(&'static str),
    /// The client closed its side before the end of the body.
    BodyIncomplete {
        /// Bytes of the body that arrived.
        received: u64,
    },
    /// The head took too long.
    HeadTimeout,
    /// The body took too long, or arrived below the least rate.
    BodyTimeout,
    /// An HTTP/1.0 request has a body but no `Content-Length`, without which its end is unknown.
    LengthRequired,
    /// The body is longer than the route accepts.
    BodyTooLarge {
        /// In bytes.
        limit: u64,
    },
    /// The request line alone exceeds the limit of the head.
    TargetTooLong {
        /// Limit of the head, in bytes.
        limit: usize,
    },
    /// `Expect` has a value other than `100-continue`.
    ExpectationUnsupported,
    /// The head has too many bytes.
    HeadTooLarge {
        /// In bytes.
        limit: usize,
    },
    /// The head has too many headers.
    TooManyHeaders {
        /// Headers that are allowed.
        limit: usize,
    },
    /// `Transfer-Encoding` has a value other than `chunked`.
    TransferCodingUnsupported,
    /// The request speaks neither HTTP/1.0 nor HTTP/1.1.
    VersionUnsupported,
    /// No worker became free in time, or there is no memory for the body.
    Busy {
        /// Seconds until another try may succeed.
        retry_after: u64,
    },
    /// There are too many connections, in all or from this address.
    TooManyConnections,
    /// The client left while its request waited.
    ClientDisconnected,
    /// A worker ended without a response.
    WorkerFailed,
}
