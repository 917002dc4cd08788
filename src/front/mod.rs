//! The front door: the one place that owns the public address.
//!
//! `tiny_http` has no bound on connections, headers, queues or waiting, so it must never face a network. Until this
//! room checks and bounds what arrives, it opens loopback addresses only, and hands the listener straight to
//! [`crate::http`]. This is the seam: the finished door keeps the public socket to itself, answers what is broken or
//! over a limit, and passes only whole, checked requests on to `tiny_http` over a private socket.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;

/// Binds `address`; port 0 takes a free port.
///
/// # Errors
/// A sentence for the operator: the address is not loopback, or cannot be bound.
pub fn open(address: SocketAddr) -> Result<TcpListener, String> {
    if !address.ip().to_canonical().is_loopback() {
        return Err(format!(
            "--listen {address}: only loopback addresses (127.0.0.1, [::1]) are served for now, because the server \
             does not yet bound what a network may send it; put a reverse proxy on the public address"
        ));
    }
    TcpListener::bind(address)
        .and_then(sending_at_once)
        .map_err(|error| format!("--listen {address}: cannot listen there: {error}"))
}

/// Has accepted connections send what is written to them at once.
///
/// An answer is written in pieces. By default the last waits until the client acknowledges those before, for which
/// clients in turn wait 40 ms: more than most conversions take. Connections inherit the option from their listener, and
/// `TcpStream` is the type that can set it.
fn sending_at_once(listener: TcpListener) -> io::Result<TcpListener> {
    let socket = TcpStream::from(OwnedFd::from(listener));
    socket.set_nodelay(true)?;
    Ok(TcpListener::from(OwnedFd::from(socket)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_addresses_that_others_can_reach() {
        for address in ["0.0.0.0:0", "192.0.2.1:8080", "[::]:0", "[2001:db8::1]:80"] {
            let refused = open(address.parse().unwrap()).expect_err(address);
            assert!(
                refused.contains(address) && refused.contains("loopback"),
                "{refused}"
            );
        }
    }

    #[test]
    fn connections_send_at_once() {
        let listener = open("127.0.0.1:0".parse().unwrap()).expect("a free port on loopback");
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (connection, _) = listener.accept().unwrap();
        assert!(connection.nodelay().unwrap(), "the option is inherited");
    }

    #[test]
    fn opens_loopback_and_says_when_the_port_is_taken() {
        let first = open("127.0.0.1:0".parse().unwrap()).expect("a free port on loopback");
        let taken = first.local_addr().unwrap();
        let refused = open(taken).expect_err("the port is taken");
        assert!(refused.contains(&taken.to_string()), "{refused}");
    }
}
