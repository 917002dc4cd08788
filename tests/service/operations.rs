//! What operators rely on, over real sockets and with a real process.

use crate::support::picture::Picture;
use crate::support::service::Service;
use crate::support::{Response, Server, encode, read_response, store, until};
use rustix::process::Signal;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

/// The longest that a process may take to end when it has nothing to wait for; the machine may be
/// busy.
const SOON: Duration = Duration::from_secs(20);

#[test]
fn sigterm_finishes_what_is_under_way_and_refuses_what_is_new() {
    let mut service = Service::start();
    let mut idle = service
        .server
        .send_raw("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(read_response(&mut idle, false).status, 200);
    let (mut client, mut held) = service.begin_conversion();

    service.server.signal(Signal::TERM);
    until(|| is_refused(service.address()));
    assert_eq!(
        idle.read(&mut [0]).expect("a clean end"),
        0,
        "an idle connection is closed"
    );
    assert!(service.server.is_alive(), "a conversion is under way");

    answer(&mut held);
    let converted = read_response(&mut client, false);
    assert_eq!(converted.status, 200, "{}", converted.text());
    assert_eq!(converted.header("connection"), Some("close"));
    assert!(converted.body.starts_with(b"RIFF"), "a WebP file");
    drop(client);
    let status = service.server.ended_within(SOON);
    assert_eq!(status.code(), Some(0), "{status}");
}

#[test]
fn a_body_on_its_way_is_waited_for() {
    let mut service = Service::start();
    let png = Picture::waves(16, 16).png();
    let (first, rest) = png.split_at(20);
    let mut client = service.server.send_raw(format!(
        "POST {} HTTP/1.1\r\nHost: a\r\nContent-Type: image/png\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n",
        service.target(&[]),
        png.len()
    ));
    let mut interim = [0; 25];
    client.read_exact(&mut interim).expect("100 Continue");
    client.write_all(first).expect("the server reads");
    service.server.signal(Signal::INT);
    until(|| is_refused(service.address()));
    client.write_all(rest).expect("the server reads on");
    assert_eq!(read_response(&mut client, false).status, 200);
    drop(client);
    let status = service.server.ended_within(SOON);
    assert_eq!(status.code(), Some(0), "{status}");
    let folder = service.server.kill();
    let resumed = Service::resume(folder, service.token);
    assert_eq!(resumed.conversions(), 1, "the conversion was recorded");
}

#[test]
fn a_second_signal_ends_at_once() {
    let mut service = Service::start();
    let (_client, _held) = service.begin_conversion();
    service.server.signal(Signal::TERM);
    until(|| is_refused(service.address()));
    service.server.signal(Signal::TERM);
    let status = service.server.ended_within(SOON);
    assert_eq!(status.signal(), Some(Signal::TERM.as_raw()), "{status}");
}

#[test]
fn requests_that_do_not_end_are_cut_off_after_the_stop_timeout() {
    let mut server = Server::start_with(&["--stop-timeout", "1"]);
    let mut slow = server.send_raw("GET /healthz HTTP/1.1\r\nHost: a\r\n");
    until_connected(&server);
    server.signal(Signal::INT);
    let status = server.ended_within(SOON);
    assert_eq!(status.code(), Some(0), "{status}");
    assert_eq!(slow.read(&mut [0]).unwrap_or(0), 0, "no answer");
}

#[test]
fn the_thread_of_a_database_runs_only_with_one() {
    let service = Service::start();
    service.webp(&[], &Picture::waves(16, 16).png());
    let tasks = format!("/proc/{}/task", service.server.process_id());
    let names: Vec<String> = fs::read_dir(tasks)
        .expect("it runs")
        .map(|task| fs::read_to_string(task.expect("listed").path().join("comm")))
        .map(|name| name.expect("its threads do not end").trim().to_owned())
        .collect();
    let has_one = names.iter().any(|name| name == "store-postgres");
    assert_eq!(has_one, store::is_postgres(), "{names:?}");
}

#[test]
fn readyz_converts_and_writes() {
    let service = Service::start_with(&["--threads", "1", "--max-pixels", "1"]);
    let ready = service.get("/readyz", &[]);
    assert_eq!((ready.status, ready.text()), (200, "ready"));
    assert_eq!(ready.header("cache-control"), Some("no-store"));
    let post = service.request("POST", "/readyz", &[], b"");
    assert_eq!(
        (post.status, post.header("allow")),
        (405, Some("GET, HEAD"))
    );
}

#[test]
fn readyz_and_healthz_do_not_wait_for_conversions() {
    let service = Service::start_with(&["--threads", "1", "--allow-private-watermark-hosts"]);
    let (mut client, mut held) = service.begin_conversion();
    for path in ["/readyz", "/healthz"] {
        assert_eq!(service.get(path, &[]).status, 200, "{path}");
    }
    answer(&mut held);
    assert_eq!(read_response(&mut client, false).status, 200);
}

#[test]
fn each_request_is_one_line_of_json() {
    let server = Server::start_logging(&["--log-format", "json"]);
    let token = server.create_account("owner@example.org");
    let png = Picture::waves(16, 16).png();
    let converted = server
        .request("POST", &format!("/convert?token={token}"))
        .header("Content-Type", "image/png")
        .body(png.clone())
        .send();
    let refused = server.request("HEAD", "/nothing").send();
    let lines: Vec<serde_json::Value> = server
        .log()
        .lines()
        .map(|line| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line:?}"))
        })
        .collect();
    let line_of = |answer: &Response| {
        let id = answer.header("x-request-id").expect("an id");
        let mut lines = lines.iter().filter(|line| line["id"] == id);
        let line = lines
            .next()
            .unwrap_or_else(|| panic!("no {id} in {lines:?}"));
        assert!(lines.next().is_none(), "one line a request");
        line.clone()
    };
    let line = line_of(&converted);
    assert_eq!(line["method"], "POST");
    assert_eq!(line["path"], "/convert");
    assert_eq!(line["status"], 200);
    assert_eq!(line["bytes_in"], png.len());
    assert_eq!(line["bytes_out"], converted.body.len());
    assert_eq!(line["client"], "127.0.0.1");
    assert!(line["milliseconds"].as_f64() > Some(0.0), "{line}");
    assert!(
        line["time"]
            .as_str()
            .is_some_and(|time| time.ends_with('Z')),
        "{line}"
    );
    let line = line_of(&refused);
    assert_eq!(
        (&line["status"], &line["bytes_out"]),
        (&404.into(), &0.into())
    );
}

#[test]
fn the_log_has_no_secrets() {
    for format in ["text", "json"] {
        let flags = ["--log-format", format, "--allow-private-watermark-hosts"];
        let server = Server::start_logging(&flags);
        let token = server.create_account("owner@example.org");
        let private = "PRIVATE-words";
        let png = Picture::waves(16, 16).png();
        let closed = format!("http://{private}:{private}@127.0.0.1:1/{private}?{private}");
        let targets = [
            format!("/convert?token={token}&watermark={private}"),
            format!("/convert?token={token}&watermark_image={}", encode(&closed)),
            format!("/convert?token={token}x&quality={private}"),
            format!("/convert?token={token}&quality={private}"),
            format!("/convert&token={token}"),
            format!("/convert/{token}"),
            format!("/{token}?{private}"),
            format!("http://{private}:{token}@example.org/api/usage?token={token}"),
        ];
        for target in &targets {
            server
                .request("POST", target)
                .header("Content-Type", "image/png")
                .header("Authorization", &format!("Bearer {token}"))
                .header("Cookie", &format!("towebp_session={private}"))
                .header("Referer", &format!("http://example.org/{private}"))
                .header("User-Agent", private)
                .header("X-Request-Id", private)
                .body(png.clone())
                .send();
        }
        server.request(private, "/convert").send();
        for path in ["/signup", "/signin", "/signin"] {
            let fields = [("email", "other@example.org"), ("password", private)];
            server.request("POST", path).form(&fields).send();
        }
        // This is not HTTP, and has secrets in it.
        let mut broken = server.send_raw(format!("POST /?{token} HTTP/3\r\n{private}\r\n\r\n"));
        assert!(read_response(&mut broken, false).status >= 400);
        let log = server.log();
        assert!(log.contains("/convert"), "{log}");
        // Every token has the same beginning; the digits after it are the secret.
        let digits = &token["twp_".len()..];
        for secret in [digits, &digits[..12], private, "other@example.org"] {
            assert!(!log.contains(secret), "{secret} stands in the log:\n{log}");
        }
    }
}

#[test]
fn metrics_count_on_an_address_of_their_own() {
    let service = Service::start_with(&[
        "--metrics",
        "127.0.0.1:0",
        "--allow-private-watermark-hosts",
    ]);
    let output = service.server.output_with("/metrics");
    let address = output.split("Metrics: http://").nth(1).expect("an address");
    let address = address.split('/').next().expect("split gives one");
    let png = Picture::waves(16, 16).png();
    let webp = service.webp(&[], &png);
    service.get("/nothing", &[]);
    assert_eq!(service.get("/metrics", &[]).status, 404, "not in public");
    let ask = |target: &str| {
        let mut stream = TcpStream::connect(address).expect("it listens");
        write!(stream, "GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").expect("it reads");
        read_response(&mut stream, false)
    };
    // The gauges show the event loop after its last turn, which may be the one that sent the last
    // response.
    until(|| {
        let answer = ask("/metrics");
        answer.text().contains("\ntowebp_requests_working 0\n")
    });
    let answer = ask("/metrics");
    let text = answer.text();
    for line in [
        "towebp_requests_total{status=\"200\"} 1".to_owned(),
        "towebp_requests_total{status=\"404\"} 2".to_owned(),
        format!("towebp_request_bytes_total {}", png.len()),
        "towebp_conversions_total{format=\"png\"} 1".to_owned(),
        "towebp_stage_seconds_count{stage=\"encode\"} 1".to_owned(),
    ] {
        assert!(
            text.lines().any(|given| given == line),
            "no {line} in\n{text}"
        );
    }
    let value = |name: &str| -> usize {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| value.trim().parse().ok())
            .unwrap_or_else(|| panic!("no {name} in {text}"))
    };
    assert!(value("towebp_response_bytes_total") > webp.0.len());
    assert!(value("process_resident_memory_bytes") > 1 << 20);
    assert_eq!(ask("/").status, 404);

    let _idle = service.server.send_raw("GET /");
    let _waiting = service.begin_conversion();
    until(|| {
        let answer = ask("/metrics");
        let shows = |line| answer.text().lines().any(|given| given == line);
        shows("towebp_watermark_fetches_running 1")
            && shows("towebp_requests_working 0")
            && shows("towebp_connections 2")
    });
}

/// Answers the request for the watermark.
fn answer(held: &mut TcpStream) {
    let logo = Picture::flat(4, 4, [255, 0, 0]).png();
    write!(
        held,
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        logo.len()
    )
    .and_then(|()| held.write_all(&logo))
    .expect("the server waits for the watermark");
}

fn is_refused(address: SocketAddr) -> bool {
    match TcpStream::connect(address) {
        Ok(_) => false,
        Err(error) => error.kind() == ErrorKind::ConnectionRefused,
    }
}

/// Returns once everything that was sent before has been read: the event loop accepts connections
/// in the order in which they came.
fn until_connected(server: &Server) {
    assert_eq!(server.request("GET", "/healthz").send().status, 200);
}

#[test]
fn behind_https_every_answer_says_to_stay_there() {
    let flags = ["--public-url", "https://webp.example.org"];
    let server = Server::start_with(&flags);
    for path in [
        "/",
        "/healthz",
        "/nothing",
        "/style.css",
        "/api/usage",
        "/convert",
    ] {
        let answer = server.request("GET", path).send();
        let policy = answer.header("strict-transport-security");
        assert_eq!(
            policy,
            Some("max-age=31536000"),
            "{path}: {}",
            answer.status
        );
    }
    let server = Server::start_with(&["--public-url", "http://webp.example.org"]);
    let answer = server.request("GET", "/").send();
    assert_eq!(
        answer.header("strict-transport-security"),
        None,
        "plain http"
    );
}
