//! Whatever one account does, or a client without one, the requests of other accounts do not wait
//! for it.

use super::{BEARABLE, connect};
use crate::support::animation::flicker;
use crate::support::picture::Picture;
use crate::support::service::{Service, send};
use crate::support::{Response, encode, read_response, until};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// What lets a hostile account's requests last as long as a test does.
const LASTING: [&str; 9] = [
    "--allow-private-watermark-hosts",
    "--watermark-timeout",
    "300",
    "--queue-timeout",
    "300",
    "--conversion-timeout",
    "3600",
    "--max-animation-pixels",
    "100000000000",
];

/// A host that answers at once and then sends a byte every 100 ms, for ever.
struct DrippingHost {
    address: SocketAddr,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    /// Connections that it ever had.
    accepted: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl DrippingHost {
    fn start() -> DrippingHost {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let host = DrippingHost {
            address: listener.local_addr().expect("bound"),
            streams: Arc::default(),
            accepted: Arc::default(),
            stop: Arc::default(),
        };
        let (streams, accepted) = (Arc::clone(&host.streams), Arc::clone(&host.accepted));
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                // A short request comes in one piece.
                let _: usize = stream.read(&mut [0; 4096]).unwrap_or(0);
                write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n").ok();
                streams.lock().expect("nobody panics").push(stream);
                accepted.fetch_add(1, Ordering::SeqCst);
            }
        });
        let (streams, stop) = (Arc::clone(&host.streams), Arc::clone(&host.stop));
        thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let mut streams = streams.lock().expect("nobody panics");
                streams.retain_mut(|stream| stream.write_all(b"x").is_ok());
                drop(streams);
                thread::sleep(Duration::from_millis(100));
            }
        });
        host
    }

    fn url(&self, number: usize) -> String {
        format!("http://{}/{number}.png", self.address)
    }

    /// Connections that are open still.
    fn open(&self) -> usize {
        self.streams.lock().expect("nobody panics").len()
    }
}

impl Drop for DrippingHost {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// `POST /convert` with this token.
fn message(token: &str, parameters: &str, media_type: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /convert?token={token}{parameters} HTTP/1.1\r\nHost: a\r\nContent-Type: {media_type}\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// A request whose answer is waited for later, or never.
fn begin(service: &Service, message: &[u8]) -> TcpStream {
    let mut stream = connect(service);
    stream.write_all(message).expect("the server reads");
    stream
}

/// Whether nothing has been answered yet.
fn is_unanswered(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("a socket can");
    let answered = stream.peek(&mut [0]);
    stream.set_nonblocking(false).expect("a socket can");
    answered.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

/// Forty conversions by the service's first account with watermarks at the host, once as many
/// watermarks are being fetched as the server allows.
fn forty_drips(service: &Service, host: &DrippingHost) -> Vec<TcpStream> {
    let png = Picture::waves(40, 30).png();
    let drips = (0..40).map(|number| {
        let parameter = format!("&watermark_image={}", encode(&host.url(number)));
        begin(
            service,
            &message(&service.token, &parameter, "image/png", &png),
        )
    });
    let drips = drips.collect();
    until(|| host.open() >= 2);
    drips
}

/// Four conversions of the service's first account that take minutes each.
fn four_heavy_files(service: &Service) -> Vec<TcpStream> {
    let animation = flicker(1800, 1500);
    let slow = "&mode=lossy&effort=high&animation=all";
    let message = message(&service.token, slow, "image/gif", &animation);
    (0..4).map(|_| begin(service, &message)).collect()
}

/// Converts a small picture again and again, so many times, and gives the sorted times.
fn times_of(service: &Service, token: &str, count: usize) -> Vec<Duration> {
    let message = message(token, "", "image/png", &Picture::waves(40, 30).png());
    let mut times: Vec<Duration> = (0..count)
        .map(|_| {
            let started = Instant::now();
            let answer = send(service.address(), &message).expect("an answer");
            assert_eq!(answer.status, 200, "{}", answer.text());
            started.elapsed()
        })
        .collect();
    times.sort();
    times
}

fn row(name: &str, times: &[Duration]) -> Duration {
    let p99 = times[(times.len() * 99 / 100).min(times.len() - 1)];
    let [p50, p99, longest] =
        [times[times.len() / 2], p99, times[times.len() - 1]].map(|time| time.as_secs_f64() * 1e3);
    println!("| {name} | {p50:.1} | {p99:.1} | {longest:.1} |");
    times[(times.len() * 99 / 100).min(times.len() - 1)]
}

#[test]
fn another_account_hardly_notices() {
    let service = Service::start_with(&[&LASTING[..], &["--signin-limit", "0"]].concat());
    let other = service.server.create_account("other@example.org");
    times_of(&service, &other, 20);
    println!(
        "| while another account, or somebody, | p50, ms | p99 | longest |\n|---|---|---|---|"
    );
    let quiet = row("does nothing", &times_of(&service, &other, 100));
    let most = BEARABLE.max(2 * quiet);

    let host = DrippingHost::start();
    let drips = forty_drips(&service, &host);
    let p99 = row(
        "has 40 watermarks at a host that drips",
        &times_of(&service, &other, 100),
    );
    assert!(p99 <= most, "{p99:?} beside drips, {quiet:?} without");
    let own = row(
        "has, and is the same",
        &times_of(&service, &service.token, 100),
    );
    assert!(own <= most, "{own:?} beside drips, {quiet:?} without");
    let waiting = drips.iter().filter(|drip| is_unanswered(drip)).count();
    assert!(
        waiting >= 4,
        "{waiting} of 40 wait for their watermarks still"
    );
    drop(drips);

    let heavy = four_heavy_files(&service);
    thread::sleep(Duration::from_millis(300));
    let p99 = row(
        "has four heavy files converted",
        &times_of(&service, &other, 100),
    );
    assert!(p99 <= most, "{p99:?} beside heavy files, {quiet:?} without");
    assert!(heavy.iter().all(is_unanswered), "they are converted still");
    drop(heavy);

    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    sign_in(&service);
                }
            });
        }
        let p99 = row(
            "tries passwords over 8 connections",
            &times_of(&service, &other, 100),
        );
        stop.store(true, Ordering::Relaxed);
        assert!(p99 <= most, "{p99:?} beside sign-ins, {quiet:?} without");
    });
}

/// An attempt with a wrong password.
fn sign_in(service: &Service) -> Response {
    let form = "email=nobody%40example.org&password=wrong-wrong-wrong";
    let headers = [("Content-Type", "application/x-www-form-urlencoded")];
    service.request("POST", "/signin", &headers, form.as_bytes())
}

#[test]
fn a_watermark_that_does_not_come_holds_no_worker() {
    let flags = [&LASTING[..], &["--threads", "1"]].concat();
    let service = Service::start_with(&flags);
    let (mut client, mut held) = service.begin_conversion();
    for _ in 0..3 {
        service.webp(&[], &Picture::waves(20, 20).png());
    }
    assert!(is_unanswered(&client));
    let logo = Picture::flat(4, 4, [255, 0, 0]).png();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", logo.len());
    held.write_all(&[head.as_bytes(), &logo].concat())
        .expect("the server waits for it");
    let answer = read_response(&mut client, false);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(service.conversions(), 4);
}

#[test]
fn watermarks_of_one_account_are_fetched_and_wait_so_many_at_a_time() {
    let own = [
        "--watermark-fetches-per-account",
        "2",
        "--watermark-queue-per-account",
        "3",
    ];
    let service = Service::start_with(&[&LASTING[..], &own].concat());
    let other = service.server.create_account("other@example.org");
    let host = DrippingHost::start();
    let mut drips = forty_drips(&service, &host);
    // Five are fetched or wait; what is beyond is told so.
    until(|| drips.iter().filter(|drip| is_unanswered(drip)).count() == 5);
    let (mut waiting, mut refused) = (Vec::new(), 0);
    for mut drip in drips.drain(..) {
        if is_unanswered(&drip) {
            waiting.push(drip);
            continue;
        }
        let answer = read_response(&mut drip, false);
        answer.problem(503, "busy");
        assert!(answer.header("retry-after").is_some(), "{answer:?}");
        refused += 1;
    }
    assert_eq!((waiting.len(), refused), (5, 35));
    assert_eq!(
        host.accepted.load(Ordering::SeqCst),
        2,
        "no more are fetched"
    );

    // Another account's picture is fetched beside them.
    let logo = crate::support::host::Host::of(&Picture::flat(4, 4, [255, 0, 0]).png());
    let parameter = format!("&watermark_image={}", encode(&logo.url()));
    let png = Picture::waves(40, 30).png();
    let marked = |token: &str| message(token, &parameter, "image/png", &png);
    let answer = send(service.address(), &marked(&other)).expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text());

    // Whoever leaves gives up the place.
    drop(waiting);
    until(|| host.open() == 0);
    let answer = send(service.address(), &marked(&service.token)).expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(
        service.conversions(),
        1,
        "what was refused or left is not counted"
    );
}

#[test]
fn heavy_files_of_one_account_leave_workers_memory_and_pages_to_others() {
    // For two of them at a time.
    let own = [
        "--memory",
        "420MiB",
        "--buffer",
        "64MiB",
        "--max-frames",
        "100000",
    ];
    for threads in ["1", "2"] {
        let flags = [&LASTING[..], &own, &["--threads", threads]].concat();
        let service = Service::start_with(&flags);
        let other = service.server.create_account("other@example.org");
        let heavy = four_heavy_files(&service);
        thread::sleep(Duration::from_millis(300));
        for _ in 0..3 {
            times_of(&service, &other, 1);
            assert_eq!(service.get("/readyz", &[]).status, 200);
            assert_eq!(service.get("/signin", &[]).status, 200);
            // Computed and refused; the status is what the page says.
            let refused = sign_in(&service).status;
            assert!((400..500).contains(&refused), "{refused}");
        }
        assert!(
            heavy.iter().all(is_unanswered),
            "{threads} threads: all of them are converted or wait still"
        );
    }
}

#[test]
fn bodies_of_one_account_leave_a_quarter_of_the_buffer_to_others() {
    let own = ["--max-body", "1MiB", "--buffer", "4MiB"];
    let service = Service::start_with(&[&LASTING[..], &own].concat());
    let other = service.server.create_account("other@example.org");
    let host = DrippingHost::start();
    let png = Picture::noise(500, 500).png();
    let (least, most) = (700_000, 900_000);
    assert!((least..most).contains(&png.len()), "{} bytes", png.len());
    // They wait for their watermarks, whole.
    let waiting: Vec<TcpStream> = (0..10)
        .map(|number| {
            let parameter = format!("&watermark_image={}", encode(&host.url(number)));
            let stream = begin(
                &service,
                &message(&service.token, &parameter, "image/png", &png),
            );
            // One after the other: of two that come at once, neither may be over.
            let held = || host.open() == 4.min(number + 1) || !is_unanswered(&stream);
            until(|| held() || number > 3);
            stream
        })
        .collect();
    until_answered(&waiting, 5);
    let (waiting, refused): (Vec<_>, Vec<_>) = waiting.into_iter().partition(is_unanswered);
    for mut stream in refused {
        read_response(&mut stream, false).problem(503, "busy");
    }
    let plain = |token: &str| {
        send(service.address(), &message(token, "", "image/png", &png)).expect("an answer")
    };
    let answer = plain(&other);
    assert_eq!(answer.status, 200, "{}", answer.text());
    plain(&service.token).problem(503, "busy");
    drop(waiting);
    until(|| plain(&service.token).status == 200);
}

#[test]
fn what_a_thread_has_waits_no_longer_than_the_queue_timeout() {
    let flags = [
        "--threads",
        "1",
        "--queue-timeout",
        "1",
        "--conversion-timeout",
        "3600",
        "--max-animation-pixels",
        "100000000000",
    ];
    let service = Service::start_with(&flags);
    let heavy = four_heavy_files(&service);
    until_answered(&heavy, 3);
    let (mut refused, mut running) = (0, 0);
    for mut stream in heavy {
        if is_unanswered(&stream) {
            running += 1;
            continue;
        }
        read_response(&mut stream, false).problem(503, "busy");
        refused += 1;
    }
    assert_eq!((running, refused), (1, 3), "one worker for one account");
}

fn until_answered(streams: &[TcpStream], count: usize) {
    let deadline = Instant::now() + crate::support::TIMEOUT;
    while streams
        .iter()
        .filter(|stream| !is_unanswered(stream))
        .count()
        < count
    {
        assert!(Instant::now() < deadline, "{count} answers");
        thread::sleep(Duration::from_millis(20));
    }
}
