//! The IP addresses that may be reached: global unicast only (IANA's special-purpose registries,
//! RFC 6890).

use ipnet::IpNet;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::LazyLock;

/// Networks that a public service must not reach, and what each of them is. Narrow networks come
/// before the wide ones that hold them, so that the reason is exact.
const SPECIAL: [(&str, &str); 30] = [
    ("0.0.0.0/8", "this network (RFC 791)"),
    ("10.0.0.0/8", "private (RFC 1918)"),
    ("100.64.0.0/10", "shared by carriers (RFC 6598)"),
    ("127.0.0.0/8", "loopback (RFC 1122)"),
    (
        "168.63.129.16/32",
        "the platform's own service inside Azure",
    ),
    ("169.254.0.0/16", "link-local, cloud metadata (RFC 3927)"),
    ("172.16.0.0/12", "private (RFC 1918)"),
    ("192.0.0.0/24", "protocol assignments (RFC 6890)"),
    ("192.0.2.0/24", "documentation (RFC 5737)"),
    ("192.88.99.0/24", "6to4 relays, deprecated (RFC 7526)"),
    ("192.168.0.0/16", "private (RFC 1918)"),
    ("198.18.0.0/15", "benchmarks (RFC 2544)"),
    ("198.51.100.0/24", "documentation (RFC 5737)"),
    ("203.0.113.0/24", "documentation (RFC 5737)"),
    ("224.0.0.0/4", "multicast (RFC 5771)"),
    ("240.0.0.0/4", "reserved (RFC 1112)"),
    ("::/128", "unspecified (RFC 4291)"),
    ("::1/128", "loopback (RFC 4291)"),
    ("::ffff:0:0/96", "IPv4-mapped (RFC 4291)"),
    ("::/96", "IPv4-compatible (RFC 4291)"),
    ("64:ff9b::/96", "NAT64 (RFC 6052)"),
    ("64:ff9b:1::/48", "local NAT64 (RFC 8215)"),
    ("2001::/32", "Teredo (RFC 4380)"),
    ("2001::/23", "protocol assignments (RFC 2928)"),
    ("2001:db8::/32", "documentation (RFC 3849)"),
    ("2002::/16", "6to4 (RFC 3056)"),
    ("3fff::/20", "documentation (RFC 9637)"),
    ("fc00::/7", "unique local (RFC 4193)"),
    ("fe80::/9", "link-local or site-local (RFC 4291, RFC 3879)"),
    ("ff00::/8", "multicast (RFC 4291)"),
];

static NETWORKS: LazyLock<Vec<(IpNet, &str)>> = LazyLock::new(|| {
    let parse = |(network, reason): (&str, &'static str)| {
        let network = network.parse().expect("the table holds networks only");
        (network, reason)
    };
    SPECIAL.map(parse).to_vec()
});

/// Returns why `address` may not be reached from a public service, or `None` if it may.
pub(super) fn forbidden(address: IpAddr) -> Option<&'static str> {
    let special = NETWORKS
        .iter()
        .find(|(network, _)| network.contains(&address))
        .map(|&(_, reason)| reason);
    special.or_else(|| match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => forbidden_v6(address),
    })
}

/// The rules of IPv6 that are no prefixes.
fn forbidden_v6(address: Ipv6Addr) -> Option<&'static str> {
    // RFC 5214, 6.1: the interface identifiers 0000:5efe and 0200:5efe are followed by an IPv4
    // address.
    let segments = address.segments();
    if segments[4] & !0x0200 == 0 && segments[5] == 0x5efe {
        return Some("ISATAP (RFC 5214)");
    }
    // IANA assigns global unicast addresses from 2000::/3 alone.
    if segments[0] >> 13 != 0b001 {
        return Some("not global unicast (RFC 4291)");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_addresses_are_forbidden_for_the_right_reason() {
        let cases = [
            ("0.0.0.0", "this network"),
            ("0.255.255.255", "this network"),
            ("10.0.0.0", "private"),
            ("10.255.255.255", "private"),
            ("100.64.0.1", "shared"),
            ("100.100.100.200", "shared"),
            ("100.127.255.255", "shared"),
            ("127.0.0.1", "loopback"),
            ("127.255.255.254", "loopback"),
            ("168.63.129.16", "Azure"),
            ("169.254.0.1", "link-local"),
            ("169.254.169.254", "metadata"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.0.0.192", "protocol"),
            ("192.0.2.1", "documentation"),
            ("192.88.99.1", "6to4"),
            ("192.168.0.1", "private"),
            ("192.168.255.255", "private"),
            ("198.18.0.1", "benchmarks"),
            ("198.19.255.255", "benchmarks"),
            ("198.51.100.7", "documentation"),
            ("203.0.113.7", "documentation"),
            ("224.0.0.1", "multicast"),
            ("239.255.255.255", "multicast"),
            ("240.0.0.1", "reserved"),
            ("255.255.255.255", "reserved"),
            ("::", "unspecified"),
            ("::1", "loopback"),
            ("0:0:0:0:0:0:0:1", "loopback"),
            ("::2", "IPv4-compatible"),
            ("::127.0.0.1", "IPv4-compatible"),
            ("::8.8.8.8", "IPv4-compatible"),
            ("::ffff:127.0.0.1", "IPv4-mapped"),
            ("::ffff:7f00:1", "IPv4-mapped"),
            ("::ffff:8.8.8.8", "IPv4-mapped"),
            ("::ffff:0:127.0.0.1", "not global"),
            ("64:ff9b::7f00:1", "NAT64"),
            ("64:ff9b::169.254.169.254", "NAT64"),
            ("64:ff9b:1::1", "local NAT64"),
            ("64:ff9b:1:ffff::a00:1", "local NAT64"),
            ("64:ff9b:2::1", "not global"),
            ("100::1", "not global"),
            ("2001::1", "Teredo"),
            ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "Teredo"),
            ("2001:2::1", "protocol"),
            ("2001:20::1", "protocol"),
            ("2001:db8::1", "documentation"),
            ("2002:7f00:1::", "6to4"),
            ("2002:c0a8:101::1", "6to4"),
            ("3fff::1", "documentation"),
            ("4000::1", "not global"),
            ("5f00::1", "not global"),
            ("fc00::1", "unique local"),
            ("fd00:ec2::254", "unique local"),
            ("fdff:ffff::1", "unique local"),
            ("fe80::1", "link-local"),
            ("febf::1", "link-local"),
            ("fec0::1", "site-local"),
            ("feff::1", "site-local"),
            ("ff02::1", "multicast"),
            ("2a00:1450:4001::5efe:10.0.0.1", "ISATAP"),
            ("2a00:1450:4001:0:200:5efe:7f00:1", "ISATAP"),
        ];
        for (text, expected) in cases {
            let reason = forbidden(text.parse().expect(text));
            assert!(
                reason.is_some_and(|r| r.contains(expected)),
                "{text}: {reason:?} instead of {expected}"
            );
        }
    }

    #[test]
    fn neighbors_of_special_ranges_may_be_reached() {
        let cases = [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.1",
            "168.63.129.15",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.1",
            "192.0.3.1",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "198.51.101.0",
            "203.0.114.0",
            "223.255.255.255",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2001:db9::1",
            "2003::1",
            "2606:4700::1111",
            "2a00:1450:4001::200e",
            "3ffe:ffff::1",
            "3fff:1000::1",
        ];
        for text in cases {
            assert_eq!(forbidden(text.parse().expect(text)), None, "{text}");
        }
    }
}
