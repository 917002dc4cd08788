//! The contents of a head.

/// Limits of a head.
#[derive(Clone, Copy, Debug)]
pub struct HeadLimits {
    /// Most bytes of the request line and the headers together.
    pub bytes: usize,
    /// Most headers.
    pub headers: usize,
}

/// The head of a request, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The method as it was sent: a token, `GET` or any other.
    pub method: String,
    /// The path with an optional query; any other form, such as `*`, as it was sent. An absolute
    /// URL (RFC 9112 section 3.2.2) has lost its scheme, and its authority stands in `Host`. Bytes
    /// beyond ASCII are percent-encoded.
    pub target: String,
    /// Names in lower case; values in ASCII without white space around, each byte beyond ASCII
    /// replaced by `?`. Headers that concern the connection alone are left out: `Connection`,
    /// `Content-Length`, `Transfer-Encoding`, `Expect` and others.
    pub headers: Vec<(String, String)>,
    /// Where the body ends.
    pub framing: Framing,
    /// Whether the request is HTTP/1.0.
    pub is_http10: bool,
    /// Whether the client wants to send further requests.
    pub keep_alive: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
}

/// Where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// After this many bytes; 0 if there is no body.
    Length(u64),
    /// After the last chunk.
    Chunked,
}
