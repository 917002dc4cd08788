//! Requests a second and latency of the built server under clients that keep their connections:
//! `cargo bench --bench service [-- CLIENTS SECONDS]`. See `benches/README.md`.

#[path = "../tests/support/mod.rs"]
mod support;

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use support::Server;

const PICTURES: [(&str, &str); 3] = [
    ("astronaut.jpg", "image/jpeg"),
    ("coffee.jpg", "image/jpeg"),
    ("graphic.png", "image/png"),
];

fn main() {
    // cargo adds `--bench`.
    let numbers: Vec<u64> = std::env::args()
        .skip(1)
        .filter_map(|argument| argument.parse().ok())
        .collect();
    let clients = numbers.first().copied().unwrap_or(4);
    let time = Duration::from_secs(numbers.get(1).copied().unwrap_or(10));

    let server = Server::start();
    let token = server.create_account("owner@example.org");
    let idle = memory_mib(&server, "VmRSS:");
    let requests: Vec<Vec<u8>> = PICTURES
        .iter()
        .map(|(name, media_type)| request(&server, &token, name, media_type))
        .collect();

    let began = Instant::now();
    let mut latencies: Vec<Duration> = thread::scope(|scope| {
        let running: Vec<_> = (0..clients as usize)
            .map(|client| {
                scope.spawn({
                    let (server, requests) = (&server, &requests);
                    move || converse(server, requests, client, began + time)
                })
            })
            .collect();
        running
            .into_iter()
            .flat_map(|client| client.join().expect("every request is answered"))
            .collect()
    });
    let seconds = began.elapsed().as_secs_f64();
    latencies.sort();

    let names = PICTURES.map(|(name, _)| name).join(", ");
    println!("{clients} clients, 2 workers, {seconds:.1} s, {names} in turn");
    println!("{:>10.1} requests/s", latencies.len() as f64 / seconds);
    for (name, share) in [("p50", 0.50), ("p90", 0.90), ("p99", 0.99)] {
        println!(
            "{:>10.1} ms {name}",
            quantile(&latencies, share).as_secs_f64() * 1e3
        );
    }
    println!(
        "{:>10.1} MiB peak resident memory, {idle:.1} before the first request, {:.1} after the last",
        memory_mib(&server, "VmHWM:"),
        memory_mib(&server, "VmRSS:"),
    );
}

/// Sends one request after the other over one connection until `end`, and gives how long each
/// answer took.
fn converse(server: &Server, requests: &[Vec<u8>], client: usize, end: Instant) -> Vec<Duration> {
    let mut latencies = Vec::new();
    let mut stream = TcpStream::connect(server.address).expect("the server accepts connections");
    stream
        .set_nodelay(true)
        .expect("a TCP connection has the option");
    for request in requests.iter().cycle().skip(client) {
        if Instant::now() >= end {
            break;
        }
        let start = Instant::now();
        stream
            .write_all(request)
            .expect("the server keeps the connection");
        let answer = support::read_response(&mut stream, false);
        latencies.push(start.elapsed());
        assert_eq!(
            answer.status,
            200,
            "{}",
            String::from_utf8_lossy(&answer.body)
        );
    }
    latencies
}

fn request(server: &Server, token: &str, name: &str, media_type: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("testdata")
        .join(name);
    let body = std::fs::read(path).expect("testdata has the pictures");
    let mut request = format!(
        "POST /convert?token={token} HTTP/1.1\r\nHost: {}\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\n\r\n",
        server.address,
        body.len()
    )
    .into_bytes();
    request.extend(body);
    request
}

/// The value below which this share of the sorted values lies.
fn quantile(sorted: &[Duration], share: f64) -> Duration {
    let index = (sorted.len() as f64 * share) as usize;
    sorted
        .get(index.min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or_default()
}

/// A line of the server's `/proc/PID/status` in MiB; NaN where there is none.
fn memory_mib(server: &Server, name: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process_id()));
    let status = status.unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok())
        .map_or(f64::NAN, |kib| kib / 1024.0)
}
