//! Networks of addresses, which of them count as one client, and how many connections each has.

use ipnet::IpNet;
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An address or a range of them, such as `10.0.0.0/8` or `::1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network(IpNet);

impl Network {
    /// Whether the address belongs to it. An IPv4 address may be given as an IPv6 one.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Network {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Network, &'static str> {
        let network = text.parse::<IpNet>().ok();
        network
            .or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
            .map(Network)
            .ok_or("expected an address or a network, such as 10.0.0.1, 10.0.0.0/8 or ::1")
    }
}

/// The number of connections of each client, and of each network around it.
#[derive(Default)]
pub struct ConnectionCounts(HashMap<Network, usize>);

impl ConnectionCounts {
    /// Whether this address may have one connection more, if `most` is the limit of one client.
    pub fn allows(&self, address: IpAddr, most: usize) -> bool {
        client_networks(address)
            .zip(CLIENT_FACTORS)
            .all(|(network, factor)| self.of(network) < most.saturating_mul(factor as usize))
    }

    /// Counts a connection.
    pub fn add(&mut self, address: IpAddr) {
        for network in client_networks(address) {
            *self.0.entry(network).or_default() += 1;
        }
    }

    /// Counts a connection no longer.
    pub fn remove(&mut self, address: IpAddr) {
        for network in client_networks(address) {
            if let Some(count) = self.0.get_mut(&network) {
                *count -= 1;
                if *count == 0 {
                    self.0.remove(&network);
                }
            }
        }
    }

    fn of(&self, network: Network) -> usize {
        self.0.get(&network).copied().unwrap_or(0)
    }
}

/// The address that stands for one client: an IPv4 address itself, or the first one of an IPv6 /64.
pub fn client_group(address: IpAddr) -> IpAddr {
    let mut networks = client_networks(address);
    networks
        .next()
        .map_or(address, |Network(network)| network.addr())
}

/// The limits of the [`client_networks`], as multiples of one client's limit.
///
/// Providers give a home a /56 and a company a /48 (RIPE-690), of which a client picks its /64s at
/// will: counted by /64 alone, one customer would have 256 or 65,536 times the limit. With these
/// factors it has 4 or 16 times the limit. They are not 1, since some hosting companies and
/// universities give each of their many customers one /64 of a common /48: it takes 4 or 16 of them
/// together, each at its limit, to stop their neighbors.
pub const CLIENT_FACTORS: [u32; 3] = [1, 4, 16];

/// The networks for which a client counts: of an IPv4 address the address itself; of an IPv6
/// address, whose lower half a client picks at will, the /64, the /56 and the /48.
pub fn client_networks(address: IpAddr) -> impl Iterator<Item = Network> {
    let address = address.to_canonical();
    let prefixes: &[u8] = match address {
        IpAddr::V4(_) => &[32],
        IpAddr::V6(_) => &[64, 56, 48],
    };
    prefixes.iter().map(move |&prefix| {
        let network = IpNet::new(address, prefix).expect("no prefix is longer than its address");
        Network(network.trunc())
    })
}

/// The network around an address that is kept in place of the address: people can distinguish their
/// home from elsewhere, and not a household from its neighbors. It is the /24 of an IPv4 address,
/// and of an IPv6 address the /56, which providers give a home.
pub fn surrounding_network(address: IpAddr) -> Network {
    let address = address.to_canonical();
    let prefix = match address {
        IpAddr::V4(_) => 24,
        IpAddr::V6(_) => 56,
    };
    let network = IpNet::new(address, prefix).expect("no prefix is longer than its address");
    Network(network.trunc())
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
    fn an_address_is_told_by_its_surroundings_only() {
        for (address, network) in [
            ("192.0.2.77", "192.0.2.0/24"),
            ("::ffff:192.0.2.77", "192.0.2.0/24"),
            ("2001:db8:1234:56ff::1", "2001:db8:1234:5600::/56"),
            ("::1", "::/56"),
        ] {
            assert_eq!(surrounding_network(ip(address)).to_string(), network);
        }
    }

    #[test]
    fn a_v6_network_of_64_bits_counts_as_one_client() {
        let mut counts = ConnectionCounts::default();
        counts.add(ip("2001:db8::1"));
        counts.add(ip("2001:db8::ffff:1"));
        counts.add(ip("::ffff:192.0.2.1"));
        assert!(!counts.allows(ip("2001:db8::2"), 2));
        assert!(counts.allows(ip("2001:db8::2"), 3));
        assert!(counts.allows(ip("2001:db8:0:1::"), 2));
        assert!(!counts.allows(ip("192.0.2.1"), 1));
        assert!(counts.allows(ip("192.0.2.2"), 1));
        counts.remove(ip("2001:db8::3"));
        counts.remove(ip("192.0.2.1"));
        assert!(counts.allows(ip("2001:db8::1"), 2));
        assert_eq!(counts.0.len(), 3, "nothing is kept for those who left");
    }

    #[test]
    fn a_customer_s_v6_prefix_multiplies_its_limit_by_4_or_16_and_no_more() {
        const MOST: usize = 2;
        for (prefix, subnets, factor) in [("a /56", 256, 4), ("a /48", 65_536, 16)] {
            let mut counts = ConnectionCounts::default();
            let mut allowed = 0;
            // Spread over the prefix as widely as possible.
            for subnet in (0..subnets).step_by(subnets as usize / 64) {
                let address = ip(&format!("2001:db8:7:{subnet:x}::1"));
                while counts.allows(address, MOST) {
                    counts.add(address);
                    allowed += 1;
                }
            }
            assert_eq!(allowed, factor * MOST, "{prefix}");
            assert!(!counts.allows(ip("2001:db8:7:1::1"), MOST), "{prefix}");
            assert!(
                counts.allows(ip("2001:db8:8::1"), MOST),
                "{prefix}: a neighbor waits"
            );
        }
        let mut counts = ConnectionCounts::default();
        for host in 0..100 {
            let address = ip(&format!("192.0.2.{host}"));
            assert!(counts.allows(address, 1), "IPv4 addresses are scarce");
            counts.add(address);
        }
    }
}
