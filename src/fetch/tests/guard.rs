//! The hosts that may be reached, from the URL to the connection, on a network that the test makes
//! up: it chooses the addresses of names, and every connection ends at a server on 127.0.0.1.

use super::*;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::sync::Mutex;
use ureq::unversioned::transport::ConnectionDetails;

const PUBLIC: &str = "93.184.216.34";

/// The names that were looked up, and the addresses that were dialed.
#[derive(Default)]
struct Record {
    lookups: Mutex<Vec<String>>,
    dialed: Mutex<Vec<Vec<SocketAddr>>>,
}

impl Record {
    fn lookups(&self) -> Vec<String> {
        self.lookups.lock().expect("nobody panicked").clone()
    }

    /// All addresses that were dialed, without their ports.
    fn dialed(&self) -> Vec<String> {
        let dialed = self.dialed.lock().expect("nobody panicked");
        let all = dialed.iter().flatten();
        all.map(|address| address.ip().to_string()).collect()
    }
}

/// A connector that reaches one server, whatever the address.
struct Dial {
    record: Arc<Record>,
    server: SocketAddr,
}

impl fmt::Debug for Dial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dial({})", self.server)
    }
}

impl Connector for Dial {
    type Out = <TcpConnector as Connector>::Out;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<()>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        let mut dialed = self.record.dialed.lock().expect("nobody panicked");
        dialed.push(details.addrs.iter().copied().collect());
        drop(dialed);
        let mut addrs = details.resolver.empty();
        addrs.push(self.server);
        let to_server = ConnectionDetails {
            addrs,
            current_time: Arc::clone(&details.current_time),
            run_connector: Arc::clone(&details.run_connector),
            register_shutdown: Arc::clone(&details.register_shutdown),
            ..*details
        };
        TcpConnector::default().connect(&to_server, chained)
    }
}

/// A fetcher on a network where `names` returns the addresses of a name, and all servers call
/// `answer`.
fn guarded(
    names: impl Fn(&str) -> Vec<IpAddr> + Send + Sync + 'static,
    answer: impl Fn(&str, &mut dyn Write) + Send + 'static,
) -> (Fetcher, Arc<Record>) {
    let record = Arc::new(Record::default());
    let server: SocketAddr = serve(answer)["http://".len()..].parse().expect("bound");
    let (asked, dialing) = (Arc::clone(&record), Arc::clone(&record));
    let network = Network {
        // Like getaddrinfo: the address of an address is itself.
        lookup: Arc::new(move |host: &str, port| {
            let mut lookups = asked.lookups.lock().expect("nobody panicked");
            lookups.push(host.to_owned());
            let addresses = host.parse().map_or_else(|_| names(host), |ip| vec![ip]);
            let sockets = addresses.into_iter().map(|ip| SocketAddr::new(ip, port));
            Ok(sockets.collect())
        }),
        connector: move || Dial {
            record: Arc::clone(&dialing),
            server,
        },
    };
    let settings = Settings {
        allow_private: false,
        cache_bytes: 0,
        ..settings()
    };
    let fetcher =
        Fetcher::on(&network, &settings, crate::tls::available()).expect("no certificates' file");
    (fetcher, record)
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect(text)
}

/// The addresses of names as in /etc/hosts and in the public DNS.
fn names(name: &str) -> Vec<IpAddr> {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    match name.as_str() {
        "localhost" | "a.localhost" | "ip6-localhost" => vec![ip("127.0.0.1"), ip("::1")],
        "metadata.google.internal" => vec![ip("169.254.169.254")],
        "intranet.example" => vec![ip("10.1.2.3")],
        "rebound.example" => vec![ip("::ffff:127.0.0.1")],
        "nowhere.example" => vec![],
        _ => vec![ip(PUBLIC)],
    }
}

fn ok(_: &str, out: &mut dyn Write) {
    write(out, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
}

#[derive(Debug, PartialEq)]
enum Verdict {
    /// The URL itself is rejected, and nothing is looked up.
    BadUrl,
    /// The host is looked up, and not dialed.
    Forbidden,
    /// This address is dialed, and no other.
    Dialed(&'static str),
}
use Verdict::{BadUrl, Dialed, Forbidden};

#[track_caller]
fn assert_verdict(url: &str, verdict: &Verdict) {
    let (fetcher, record) = guarded(names, ok);
    let outcome = get(&fetcher, url);
    let (lookups, dialed) = (record.lookups(), record.dialed());
    let (is_right, expected_lookups, expected_dials) = match verdict {
        BadUrl => (matches!(outcome, Err(FetchError::Url(_))), 0, vec![]),
        Forbidden => (matches!(outcome, Err(FetchError::Forbidden(_))), 1, vec![]),
        Dialed(address) => (outcome == Ok(b"ok".to_vec()), 1, vec![*address]),
    };
    assert!(is_right, "{url:?}: {outcome:?} instead of {verdict:?}");
    assert_eq!(lookups.len(), expected_lookups, "{url:?}: {lookups:?}");
    assert_eq!(dialed, expected_dials, "{url:?}");
}

const SPELLINGS: &[(&str, Verdict)] = &[
    // Names.
    ("http://example.org/", Dialed(PUBLIC)),
    ("http://EXAMPLE.org/", Dialed(PUBLIC)),
    ("http://example.org./", Dialed(PUBLIC)),
    ("http://xn--exmple-cua.org/", Dialed(PUBLIC)),
    ("http://127.0.0.1.example/", Dialed(PUBLIC)),
    ("http://localhost/", Forbidden),
    ("http://LocalHost/", Forbidden),
    ("http://localhost./", Forbidden),
    ("http://a.localhost/", Forbidden),
    ("http://ip6-localhost/", Forbidden),
    ("http://metadata.google.internal/", Forbidden),
    ("http://intranet.example/", Forbidden),
    ("http://rebound.example/", Forbidden),
    // IPv4 in its usual form, and in forms that only inet_aton(3) reads.
    ("http://8.8.8.8/", Dialed("8.8.8.8")),
    ("http://127.0.0.1/", Forbidden),
    ("http://127.0.0.1:8080/", Forbidden),
    ("http://169.254.169.254/latest/meta-data/", Forbidden),
    ("http://0.0.0.0/", Forbidden),
    ("http://8.8.8.8./", BadUrl),
    ("http://127.0.0.1./", BadUrl),
    ("http://127.0.0.1../", BadUrl),
    ("http://2130706433/", BadUrl),
    ("http://2130706433./", BadUrl),
    ("http://4294967296/", BadUrl),
    ("http://0x7f000001/", BadUrl),
    ("http://0X7F000001/", BadUrl),
    ("http://0x7f.0x0.0x0.0x1/", BadUrl),
    ("http://0x7f.1/", BadUrl),
    ("http://0177.0.0.1/", BadUrl),
    ("http://017700000001/", BadUrl),
    ("http://0177.0x0.0.1/", BadUrl),
    ("http://127.0.0.01/", BadUrl),
    ("http://127.1/", BadUrl),
    ("http://127.0.1/", BadUrl),
    ("http://0/", BadUrl),
    ("http://0./", BadUrl),
    ("http://10.1/", BadUrl),
    ("http://127.0.0.256/", BadUrl),
    ("http://127.0.0.1.1/", BadUrl),
    ("http://example.1/", BadUrl),
    ("http://example.0x7f/", BadUrl),
    // IPv6, and IPv4 wrapped in it.
    ("http://[2606:4700::1111]/", Dialed("2606:4700::1111")),
    (
        "http://[2606:4700:0:0:0:0:0:1111]/",
        Dialed("2606:4700::1111"),
    ),
    (
        "http://[2A00:1450:4001::200E]/",
        Dialed("2a00:1450:4001::200e"),
    ),
    ("http://[::]/", Forbidden),
    ("http://[::1]/", Forbidden),
    ("http://[0:0:0:0:0:0:0:1]/", Forbidden),
    (
        "http://[0000:0000:0000:0000:0000:0000:0000:0001]/",
        Forbidden,
    ),
    ("http://[::ffff:127.0.0.1]/", Forbidden),
    ("http://[::ffff:7f00:1]/", Forbidden),
    ("http://[::FFFF:7F00:1]/", Forbidden),
    ("http://[::ffff:8.8.8.8]/", Forbidden),
    ("http://[::127.0.0.1]/", Forbidden),
    ("http://[::7f00:1]/", Forbidden),
    ("http://[64:ff9b::127.0.0.1]/", Forbidden),
    ("http://[64:ff9b::a9fe:a9fe]/", Forbidden),
    ("http://[64:ff9b:1::a00:1]/", Forbidden),
    ("http://[2002:7f00:1::]/", Forbidden),
    ("http://[2002:a00:1::1]/", Forbidden),
    ("http://[2001:0:7f00:1::]/", Forbidden),
    ("http://[2001:0:4136:e378:8000:63bf:80ff:fffe]/", Forbidden),
    ("http://[2a00:1450:4001::5efe:127.0.0.1]/", Forbidden),
    ("http://[2a00:1450:4001:0:200:5efe:a00:1]/", Forbidden),
    ("http://[fe80::1]/", Forbidden),
    ("http://[fd00:ec2::254]/", Forbidden),
    ("http://[::1%25lo]/", BadUrl),
    ("http://[fe80::1%25eth0]/", BadUrl),
    ("http://[fe80::1%eth0]/", BadUrl),
    ("http://[::1/", BadUrl),
    ("http://::1/", BadUrl),
    ("http://[127.0.0.1]/", BadUrl),
    ("http://[v1.fe80]/", BadUrl),
    ("http://[[::1]]/", BadUrl),
    // Spellings that other parsers of URLs turn into those above.
    ("http://%31%32%37.0.0.1/", BadUrl),
    ("http://127%2e0.0.1/", BadUrl),
    ("http://loc%61lhost/", BadUrl),
    ("http://\u{ff11}\u{ff12}\u{ff17}.0.0.1/", BadUrl),
    ("http://\u{2460}\u{2461}\u{2466}.0.0.1/", BadUrl),
    ("http://127\u{3002}0\u{ff0e}0\u{ff61}1/", BadUrl),
    ("http://local\u{ad}host/", BadUrl),
    ("http://\u{217}ocalhost/", BadUrl),
    ("http://user@127.0.0.1/", BadUrl),
    ("http://user:password@example.org/", BadUrl),
    ("http://example.org@127.0.0.1/", BadUrl),
    ("http://example.org%40127.0.0.1/", BadUrl),
    ("http://127.0.0.1\\@example.org/", BadUrl),
    ("http://example.org\\.127.0.0.1/", BadUrl),
    ("http:\\\\127.0.0.1/", BadUrl),
    ("http:/\\127.0.0.1/", BadUrl),
    ("http://127.0.\t0.1/", BadUrl),
    ("http://127.0.\n0.1/", BadUrl),
    ("http://127.0.\r\n0.1/", BadUrl),
    ("ht\ntp://example.org/", BadUrl),
    ("http://example.org/\r\nHost: 127.0.0.1", BadUrl),
    ("http://example.org 127.0.0.1/", BadUrl),
    ("http://example.org\0.127.0.0.1/", BadUrl),
    ("http:///127.0.0.1/", BadUrl),
    ("http://", BadUrl),
    ("http://:80/", BadUrl),
    ("http://./", BadUrl),
    ("http:127.0.0.1/", BadUrl),
    ("//127.0.0.1/", BadUrl),
    ("127.0.0.1", BadUrl),
    // Schemes and ports.
    ("ftp://example.org/", BadUrl),
    ("file:///etc/passwd", BadUrl),
    ("gopher://example.org/", BadUrl),
    ("http://example.org:22/", BadUrl),
    ("http://example.org:6379/", BadUrl),
    ("http://example.org:0/", BadUrl),
    ("http://example.org:65616/", BadUrl),
    ("http://example.org:+80/", BadUrl),
    ("http://example.org:0080/", Dialed(PUBLIC)),
    // The characters behind the host are not part of it.
    ("http://example.org/@127.0.0.1", Dialed(PUBLIC)),
    ("http://example.org?@127.0.0.1/", Dialed(PUBLIC)),
    ("http://example.org#@127.0.0.1/", Dialed(PUBLIC)),
    (" http://example.org/ \n", Dialed(PUBLIC)),
];

#[test]
fn every_spelling_of_a_host_gets_its_verdict() {
    for (url, verdict) in SPELLINGS {
        assert_verdict(url, verdict);
    }
}

/// The first and the last address of a range, and the neighbors outside that may be reached.
const RANGES: &[(&str, &str, &str, &str)] = &[
    ("0.0.0.0", "0.255.255.255", "", "1.0.0.0"),
    ("10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0"),
    (
        "100.64.0.0",
        "100.127.255.255",
        "100.63.255.255",
        "100.128.0.0",
    ),
    (
        "127.0.0.0",
        "127.255.255.255",
        "126.255.255.255",
        "128.0.0.0",
    ),
    (
        "168.63.129.16",
        "168.63.129.16",
        "168.63.129.15",
        "168.63.129.17",
    ),
    (
        "169.254.0.0",
        "169.254.255.255",
        "169.253.255.255",
        "169.255.0.0",
    ),
    (
        "172.16.0.0",
        "172.31.255.255",
        "172.15.255.255",
        "172.32.0.0",
    ),
    ("192.0.0.0", "192.0.0.255", "191.255.255.255", "192.0.1.0"),
    ("192.0.2.0", "192.0.2.255", "192.0.1.255", "192.0.3.0"),
    (
        "192.88.99.0",
        "192.88.99.255",
        "192.88.98.255",
        "192.88.100.0",
    ),
    (
        "192.168.0.0",
        "192.168.255.255",
        "192.167.255.255",
        "192.169.0.0",
    ),
    (
        "198.18.0.0",
        "198.19.255.255",
        "198.17.255.255",
        "198.20.0.0",
    ),
    (
        "198.51.100.0",
        "198.51.100.255",
        "198.51.99.255",
        "198.51.101.0",
    ),
    (
        "203.0.113.0",
        "203.0.113.255",
        "203.0.112.255",
        "203.0.114.0",
    ),
    ("224.0.0.0", "255.255.255.255", "223.255.255.255", ""),
    (
        "::",
        "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        "",
        "2000::",
    ),
    (
        "2001::",
        "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff",
        "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        "2001:200::",
    ),
    (
        "2001:db8::",
        "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
        "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff",
        "2001:db9::",
    ),
    (
        "2002::",
        "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        "2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        "2003::",
    ),
    (
        "3fff::",
        "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff",
        "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        "3fff:1000::",
    ),
    (
        "4000::",
        "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        "",
    ),
    // Ranges inside what is not global unicast anyway, which have a reason of their own.
    ("64:ff9b::", "64:ff9b::ffff:ffff", "", ""),
    ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "", ""),
    ("100::", "100::ffff:ffff:ffff:ffff", "", ""),
    ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "", ""),
    ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "", ""),
    ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "", ""),
    ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "", ""),
];

#[test]
fn special_ranges_end_where_they_should() {
    let url = |address: &str| match ip(address) {
        IpAddr::V4(v4) => format!("http://{v4}/"),
        IpAddr::V6(v6) => format!("http://[{v6}]/"),
    };
    for (first, last, before, after) in RANGES {
        for inside in [*first, last] {
            assert_verdict(&url(inside), &Forbidden);
        }
        for outside in [*before, after] {
            if !outside.is_empty() {
                assert_verdict(&url(outside), &Dialed(outside));
            }
        }
    }
}

#[test]
fn one_private_address_among_public_ones_rejects_the_host() {
    let private = ["10.0.0.1", "::1", "::ffff:127.0.0.1", "fe80::1"];
    for (private, publics) in private.iter().flat_map(|p| [(p, 1), (p, 3), (p, 40)]) {
        for position in [0, publics / 2, publics] {
            let mut answers = vec![ip(PUBLIC); publics];
            answers.insert(position, ip(private));
            let (fetcher, record) = guarded(move |_| answers.clone(), ok);
            let outcome = get(&fetcher, "http://example.org/");
            assert!(
                matches!(outcome, Err(FetchError::Forbidden(_))),
                "{private} at {position} of {publics}: {outcome:?}"
            );
            assert!(record.dialed().is_empty());
        }
    }
}

#[test]
fn all_checked_addresses_may_be_dialed_and_no_others() {
    let answers = [PUBLIC, "2606:4700::1111", "1.1.1.1"];
    let (fetcher, record) = guarded(move |_| answers.map(ip).to_vec(), ok);
    assert_eq!(get(&fetcher, "http://example.org/"), Ok(b"ok".to_vec()));
    assert_eq!(record.dialed(), answers);
    let (fetcher, record) = guarded(|_| vec![], ok);
    let outcome = get(&fetcher, "http://nowhere.example/");
    assert!(
        matches!(&outcome, Err(FetchError::Unreachable(detail)) if detail.contains("no address")),
        "{outcome:?}"
    );
    assert!(record.dialed().is_empty());
}

#[test]
fn a_scope_makes_no_local_address_reachable() {
    let record = Arc::new(Record::default());
    let dialing = Arc::clone(&record);
    let local: Ipv6Addr = "fe80::1".parse().expect("an address");
    let network = Network {
        lookup: Arc::new(move |_: &str, port| {
            Ok(vec![SocketAddr::V6(SocketAddrV6::new(local, port, 0, 2))])
        }),
        connector: move || Dial {
            record: Arc::clone(&dialing),
            server: SocketAddr::new(ip("127.0.0.1"), 1),
        },
    };
    let settings = Settings {
        allow_private: false,
        ..settings()
    };
    let fetcher = Fetcher::on(&network, &settings, false).expect("no certificates' file");
    let outcome = get(&fetcher, "http://example.org/");
    assert!(
        matches!(outcome, Err(FetchError::Forbidden(_))),
        "{outcome:?}"
    );
    assert!(record.dialed().is_empty());
}

#[test]
fn a_name_that_changes_its_address_is_dialed_where_it_was_checked() {
    let asked = AtomicUsize::new(0);
    let (fetcher, record) = guarded(
        move |_| match asked.fetch_add(1, Ordering::SeqCst) {
            0 => vec![ip(PUBLIC)],
            _ => vec![ip("127.0.0.1")],
        },
        |head, out| {
            if head.starts_with("GET /again ") {
                write(
                    out,
                    "HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n",
                );
            } else {
                ok(head, out);
            }
        },
    );
    assert_eq!(get(&fetcher, "http://example.org/"), Ok(b"ok".to_vec()));
    assert_eq!(record.lookups(), ["example.org"], "asked once");
    assert_eq!(record.dialed(), [PUBLIC]);
    let outcome = get(&fetcher, "http://example.org/again");
    assert!(
        matches!(outcome, Err(FetchError::Forbidden(_))),
        "{outcome:?}"
    );
    assert_eq!(record.dialed(), [PUBLIC], "not dialed again");
}

#[test]
fn the_rules_hold_at_every_hop_of_redirects() {
    let forbidden = [
        "http://127.0.0.1/",
        "http://10.0.0.1:8080/x",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://localhost/",
        "http://intranet.example/",
        "http://169.254.169.254/latest/",
        "//127.0.0.1/",
        "https://10.0.0.1/",
    ];
    let bad = [
        "http://example.org:22/",
        "http://example.org:6379/",
        "http://user@example.org/",
        "http://2130706433/",
        "//0x7f.1/",
        "http://127.1/",
    ];
    let not_http = ["ftp://127.0.0.1/", "gopher://127.0.0.1:6379/_x"];
    let all = forbidden.map(|to| (to, "Forbidden")).into_iter();
    let all = all
        .chain(bad.map(|to| (to, "Url")))
        .chain(not_http.map(|to| (to, "Unreachable")));
    for (location, kind) in all {
        if location.starts_with("https") && !crate::tls::available() {
            continue;
        }
        // The forbidden hop is the first, second or third of at most three redirects.
        for hops in 1..=3 {
            let (fetcher, record) = guarded(names, move |head, out| {
                let hop: usize = head["GET /".len()..][..1].parse().expect("paths are /N");
                let to = if hop == hops {
                    location.to_owned()
                } else {
                    format!("http://{hop}.example/{}", hop + 1)
                };
                write(
                    out,
                    &format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n"),
                );
            });
            let outcome = format!("{:?}", get(&fetcher, "http://example.org/1"));
            assert!(
                outcome.starts_with(&format!("Err({kind}")),
                "{location} at hop {hops}: {outcome}"
            );
            let dialed = record.dialed();
            assert_eq!(dialed, vec![PUBLIC; hops], "{location} at hop {hops}");
            let lookups = record.lookups();
            let expected = hops + usize::from(kind == "Forbidden");
            assert_eq!(lookups.len(), expected, "{location}: {lookups:?}");
        }
    }
}

#[test]
fn a_location_that_is_no_url_leads_no_further_than_the_host_itself() {
    for location in [
        "file:///etc/passwd",
        "data:,x",
        "\\\\127.0.0.1\\x",
        "127.0.0.1",
    ] {
        let (fetcher, record) = guarded(names, move |_, out| {
            write(
                out,
                &format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"),
            );
        });
        let outcome = get(&fetcher, "http://example.org/");
        assert!(
            matches!(outcome, Err(FetchError::Unreachable(_))),
            "{location}: {outcome:?}"
        );
        let others = |address: &String| address != PUBLIC;
        assert!(
            !record.dialed().iter().any(others),
            "{location}: {:?}",
            record.dialed()
        );
    }
}

#[test]
fn redirects_may_lead_to_the_other_ports_for_pictures() {
    let (fetcher, record) = guarded(names, |head, out| {
        if head.starts_with("GET /1 ") {
            write(
                out,
                "HTTP/1.1 301 Moved\r\nLocation: http://cdn.example:8080/2\r\nContent-Length: 0\r\n\r\n",
            );
        } else {
            ok(head, out);
        }
    });
    assert_eq!(get(&fetcher, "http://example.org/1"), Ok(b"ok".to_vec()));
    assert_eq!(record.lookups(), ["example.org", "cdn.example"]);
    let dialed = record.dialed.lock().expect("nobody panicked");
    let ports: Vec<u16> = dialed.iter().flatten().map(SocketAddr::port).collect();
    assert_eq!(ports, [80, 8080]);
}
