//! Headers between the event loop and the workers. Those of a client's request that have the same
//! prefix are dropped, so none of these can be forged.

use std::net::IpAddr;

/// What the names of all of these headers begin with, in lower case.
pub const PREFIX: &str = "x-towebp-";

/// In a response: this is one part of a longer response, and the next part goes on from the value.
/// In a request: the part of the response that is asked for. The event loop asks for the next part
/// once the client has read the one before, so that neither a worker nor a large buffer waits for
/// a client. Clients never see this header.
pub const NEXT_PART: &str = "x-towebp-next-part";

/// Writes the headers that [`read`] reads.
pub fn write(upstream: usize, client: IpAddr) -> String {
    format!("{PREFIX}upstream: {upstream}\r\n{PREFIX}client: {client}\r\n")
}

/// Reads from a request's headers the number of the upstream connection that it came over, which
/// names it in [`Clients`](super::Clients), and the client's address. `None` if the request is the
/// event loop's own.
pub fn read<'h>(headers: impl Iterator<Item = (&'h str, &'h str)>) -> Option<(usize, IpAddr)> {
    let (mut upstream, mut client) = (None, None);
    for (name, value) in headers {
        match name.strip_prefix(PREFIX) {
            Some("upstream") => upstream = value.parse().ok(),
            Some("client") => client = value.parse().ok(),
            _ => {}
        }
    }
    upstream.zip(client)
}
