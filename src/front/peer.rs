//! Who is at the other end: addresses, networks, and how many connections each has.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// An address or a range of them, such as `10.0.0.0/8` or `::1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

impl Network {
    /// Whether the address lies in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let differing = own.to_bits() ^ other.to_bits();
                differing.leading_zeros() >= u32::from(self.prefix)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let differing = own.to_bits() ^ other.to_bits();
                differing.leading_zeros() >= u32::from(self.prefix)
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Network, String> {
        let wrong =
            || "expected an address or a network, such as 10.0.0.1, 10.0.0.0/8 or ::1".to_owned();
        let (address, prefix) = text.split_once('/').unwrap_or((text, ""));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let whole = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            "" if !text.contains('/') => whole,
            _ => prefix.parse().map_err(|_| wrong())?,
        };
        if prefix > whole {
            return Err(wrong());
        }
        Ok(Network { address, prefix })
    }
}

/// Whose request it is. A trusted proxy appends to `X-Forwarded-For` the address that it was reached from, so the list
/// is read from its end, and the first address that no trusted proxy has is the client's. What stands before it was
/// written by the client.
pub fn client<'a>(
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

/// Some proxies add the port.
fn forwarded(text: &str) -> Option<IpAddr> {
    let address = text
        .parse::<IpAddr>()
        .or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip()));
    address.ok().map(|address| address.to_canonical())
}

/// How many connections each address has. IPv6 is counted by /64: a client has at least as many addresses.
#[derive(Default)]
pub struct Counts(HashMap<IpAddr, usize>);

impl Counts {
    /// Connections of this address.
    pub fn of(&self, address: IpAddr) -> usize {
        self.0.get(&group(address)).copied().unwrap_or(0)
    }

    /// One more.
    pub fn add(&mut self, address: IpAddr) {
        *self.0.entry(group(address)).or_default() += 1;
    }

    /// One fewer.
    pub fn remove(&mut self, address: IpAddr) {
        let group = group(address);
        if let Some(count) = self.0.get_mut(&group) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&group);
            }
        }
    }
}

/// Who is counted as one: an IPv4 address, or an IPv6 /64.
pub fn group(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)))
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect(text)
    }

    #[test]
    fn networks_have_an_inside_and_an_outside() {
        let cases = [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.6"),
            ("0.0.0.0/0", "203.0.113.9", "2001:db8::1"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"),
            ("::1", "::1", "::2"),
            ("127.0.0.0/8", "::ffff:127.0.0.1", "::1"),
        ];
        for (network, inside, outside) in cases {
            let network: Network = network.parse().expect(network);
            assert!(network.contains(ip(inside)), "{inside} in {network:?}");
            assert!(!network.contains(ip(outside)), "{outside} in {network:?}");
        }
        for wrong in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/",
            "example.org",
            "10.0.0.0/-1",
        ] {
            wrong.parse::<Network>().expect_err(wrong);
        }
    }

    #[test]
    fn forwarded_addresses_are_believed_from_trusted_proxies_alone() {
        let trusted = ["10.0.0.0/8".parse().unwrap(), "::1".parse().unwrap()];
        let client = |peer, lines: &[&str]| client(ip(peer), lines.iter().copied(), &trusted);
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

    #[test]
    fn a_v6_network_counts_as_one() {
        let mut counts = Counts::default();
        counts.add(ip("2001:db8::1"));
        counts.add(ip("2001:db8::ffff:1"));
        counts.add(ip("::ffff:192.0.2.1"));
        assert_eq!(counts.of(ip("2001:db8::2")), 2);
        assert_eq!(counts.of(ip("2001:db8:0:1::")), 0);
        assert_eq!(counts.of(ip("192.0.2.1")), 1);
        counts.remove(ip("2001:db8::3"));
        counts.remove(ip("192.0.2.1"));
        assert_eq!(counts.of(ip("2001:db8::1")), 1);
        assert_eq!(counts.0.len(), 1, "nothing is kept for those who left");
    }
}
