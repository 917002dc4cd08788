//! The client's address behind trusted proxies, from `X-Forwarded-For`.

use crate::admission::Network;
use std::net::{IpAddr, SocketAddr};

/// The client's address. A trusted proxy appends to `X-Forwarded-For` the address that it was
/// reached from, so the list is read from its end, and the first address that no trusted proxy has
/// is the client's. Addresses before it were written by the client.
pub fn client_address<'a>(
    peer: IpAddr,
    forwarded_for: impl DoubleEndedIterator<Item = &'a str>,
    trusted: &[Network],
) -> IpAddr {
    let is_trusted = |address| trusted.iter().any(|network| network.contains(address));
    let mut client = peer;
    for text in forwarded_for.rev().flat_map(|line| line.rsplit(',')) {
        if !is_trusted(client) {
            break;
        }
        let Some(address) = forwarded(text.trim()) else {
            break;
        };
        client = address;
    }
    client
}

/// An address of the list, to which some proxies add the port.
fn forwarded(text: &str) -> Option<IpAddr> {
    let address = text
        .parse::<IpAddr>()
        .or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip()));
    address.ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect(text)
    }

    #[test]
    fn forwarded_addresses_are_believed_from_trusted_proxies_alone() {
        let trusted = ["10.0.0.0/8".parse().unwrap(), "::1".parse().unwrap()];
        let client =
            |peer, lines: &[&str]| client_address(ip(peer), lines.iter().copied(), &trusted);
        assert_eq!(
            client("192.0.2.1", &["203.0.113.5"]),
            ip("192.0.2.1"),
            "an outsider"
        );
        assert_eq!(client("10.0.0.1", &["203.0.113.5"]), ip("203.0.113.5"));
        assert_eq!(client("10.0.0.1", &[]), ip("10.0.0.1"));
        let forged = ["198.51.100.1, 203.0.113.5", "10.0.0.2"];
        assert_eq!(
            client("10.0.0.1", &forged),
            ip("203.0.113.5"),
            "two proxies, one lie"
        );
        assert_eq!(client("10.0.0.1", &["203.0.113.5:4711"]), ip("203.0.113.5"));
        assert_eq!(client("::1", &["[2001:db8::1]:80"]), ip("2001:db8::1"));
        assert_eq!(
            client("10.0.0.1", &["203.0.113.5, unknown"]),
            ip("10.0.0.1")
        );
    }
}
