//! Watermark pictures from a host, as a whole server fetches them.

use crate::support::picture::Picture;
use crate::support::read_response;
use crate::support::service::Service;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Answers every request with a small picture, and counts them.
fn counting_host() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/logo.png", listener.local_addr().expect("bound"));
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    thread::spawn(move || {
        for stream in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
            answer(&mut stream.expect("accepted"));
        }
    });
    (url, count)
}

fn answer(stream: &mut TcpStream) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
        head.push(byte[0]);
    }
    let logo = Picture::flat(4, 4, [255, 0, 0]).png();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
        logo.len()
    )
    .and_then(|()| stream.write_all(&logo))
    .expect("the server reads");
}

#[test]
fn many_conversions_with_one_logo_fetch_it_once() {
    let (url, count) = counting_host();
    let flags = [
        "--allow-private-watermark-hosts",
        "--metrics",
        "127.0.0.1:0",
    ];
    let service = Service::start_with(&flags);
    let png = Picture::waves(16, 16).png();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10 {
                    service.webp(&[("watermark_image", &url)], &png);
                }
            });
        }
    });
    assert_eq!(count.load(Ordering::SeqCst), 1);
    let output = service.server.output_with("/metrics");
    let address = output.split("Metrics: http://").nth(1).expect("an address");
    let address = address.split('/').next().expect("split gives one");
    let mut metrics = TcpStream::connect(address).expect("it listens");
    write!(metrics, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").expect("it reads");
    let text = read_response(&mut metrics, false).text().to_owned();
    let value = |source: &str| -> u64 {
        let name = format!("towebp_watermark_fetches_total{{source=\"{source}\"}} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&name));
        line.map_or(0, |value| value.parse().expect("a number"))
    };
    assert_eq!(value("host"), 1, "{text}");
    assert_eq!(value("shared") + value("cache"), 39, "{text}");
}

#[test]
fn without_a_cache_every_conversion_fetches() {
    let (url, count) = counting_host();
    let flags = ["--allow-private-watermark-hosts", "--watermark-cache", "0"];
    let service = Service::start_with(&flags);
    let png = Picture::waves(16, 16).png();
    for fetches in 1..=3 {
        service.webp(&[("watermark_image", &url)], &png);
        assert_eq!(count.load(Ordering::SeqCst), fetches);
    }
}

#[test]
fn a_client_that_leaves_frees_its_worker_from_a_silent_host() {
    let service = Service::start_with(&[
        "--allow-private-watermark-hosts",
        "--threads",
        "1",
        "--watermark-timeout",
        "300",
        "--queue-timeout",
        "300",
    ]);
    let (client, _silent) = service.begin_conversion();
    drop(client);
    // The only worker would wait for five minutes, longer than the test waits.
    service.webp(&[], &Picture::waves(16, 16).png());
}

#[test]
fn a_host_on_this_machine_is_refused_unasked() {
    let host = TcpListener::bind("127.0.0.1:0").expect("a free port");
    host.set_nonblocking(true).expect("a socket can");
    let address: SocketAddr = host.local_addr().expect("bound");
    let service = Service::start_with(&[]);
    let png = Picture::waves(16, 16).png();
    let port = address.port();
    for (url, code) in [
        (format!("http://127.0.0.1:{port}/"), "watermark_url_invalid"),
        ("http://127.0.0.1/".to_owned(), "watermark_forbidden"),
        ("http://localhost/".to_owned(), "watermark_forbidden"),
        ("http://[::ffff:7f00:1]/".to_owned(), "watermark_forbidden"),
        ("http://2130706433/".to_owned(), "watermark_url_invalid"),
    ] {
        service
            .convert(&[("watermark_image", &url)], "image/png", &png)
            .problem(400, code);
    }
    let asked = host.accept().expect_err("nobody asks");
    assert_eq!(asked.kind(), ErrorKind::WouldBlock);
}
