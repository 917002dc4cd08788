//! `--memory`: what fits is converted, what does not fit now waits, what never fits is refused, and
//! the process stays below it whatever comes.

use crate::support::animation::{flicker, growing_gif, growing_png};
use crate::support::hostile::{
    bmp_with_profile, gif_beyond_its_screen, gif_with_extensions, jpeg_with_concealed_scans,
};
use crate::support::jpeg::{Kind, jpeg};
use crate::support::picture::Picture;
use crate::support::service::{Service, send};
use crate::support::{TIMEOUT, read_response};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

/// Flags by which an animation of thousands of frames is converted until its client leaves, and
/// parameters by which that takes longest.
const LONG_CONVERSIONS: [&str; 6] = [
    "--conversion-timeout",
    "3600",
    "--max-frames",
    "100000",
    "--max-animation-pixels",
    "1000000000000",
];
const SLOW: &str = "&mode=lossy&effort=high";

#[test]
fn a_crowd_of_large_pictures_stays_below_the_memory() {
    const CLIENTS: usize = 18;
    let (service, memory) = start(110 * MIB, &["--threads", "4", "--buffer", "64MiB"]);
    let noise = Picture::noise(2500, 2000);
    let clear = Picture::of(2500, 2000, |x, y| {
        let [red, green, blue, _] = noise.at(x, y);
        [red, green, blue, (x ^ y) as u8]
    });
    let large = Picture::waves(4000, 3000);
    let pictures = [
        ("image/png", noise.png()),
        ("image/png", clear.png()),
        ("image/jpeg", jpeg(&large, Kind::Progressive)),
        ("image/jpeg", jpeg(&large, Kind::Sequential)),
        ("image/gif", Picture::waves(2000, 1500).gif()),
        ("image/bmp", Picture::waves(2800, 2000).bmp()),
    ];
    let (converted, busy) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (service, pictures) = (&service, &pictures);
            let (converted, busy) = (&converted, &busy);
            scope.spawn(move || {
                for number in 0..2 {
                    let (media_type, body) = &pictures[(client + number) % pictures.len()];
                    let answer = send(service.address(), &request(service, "", media_type, body))
                        .unwrap_or_else(|error| panic!("{media_type}: {error}"));
                    match answer.status {
                        200 => converted.fetch_add(1, Ordering::Relaxed),
                        503 => {
                            let seconds = answer.header("retry-after");
                            let seconds = seconds.and_then(|seconds| seconds.parse().ok());
                            assert!(matches!(seconds, Some(1..=60)), "{answer:?}");
                            busy.fetch_add(1, Ordering::Relaxed)
                        }
                        _ => panic!("{media_type}: {}", answer.text()),
                    };
                }
            });
        }
    });
    let (converted, busy) = (converted.into_inner(), busy.into_inner());
    let peak = peak(&service);
    println!(
        "{converted} converted, {busy} told to come again, peak {} MiB",
        peak / MIB
    );
    assert!(peak <= memory, "{peak} bytes of {memory}");
    assert!(
        converted >= pictures.len(),
        "{converted} of {} were converted",
        2 * CLIENTS
    );
    assert_eq!(service.conversions(), converted, "each counts once");
}

/// The WebP is many times as large as the animation, which no header tells.
#[test]
fn animations_that_grow_stay_below_the_memory() {
    let files = [
        ("image/png", growing_png(300, 300, 500), ""),
        ("image/gif", growing_gif(300, 300, 300), ""),
        (
            "image/png",
            growing_png(60, 60, 2000),
            "&width=300&enlarge=true",
        ),
    ];
    let (service, memory) = start(40 * MIB, &["--threads", "2"]);
    let target = "&mode=lossy&quality=100&effort=low";
    thread::scope(|scope| {
        for (number, (media_type, body, parameters)) in files.iter().chain(&files).enumerate() {
            let service = &service;
            // The first one is too large for all of the memory; others may fit in the end.
            let may_fit = number % files.len() != 0;
            scope.spawn(move || {
                let parameters = &format!("{target}{parameters}");
                let answer = send(
                    service.address(),
                    &request(service, parameters, media_type, body),
                )
                .unwrap_or_else(|error| panic!("{media_type}: {error}"));
                assert!(
                    [413, 503].contains(&answer.status) || (may_fit && answer.status == 200),
                    "{} for {media_type} of {} bytes",
                    answer.status,
                    body.len()
                );
            });
        }
    });
    // Alone, one of them would have to have more than there is.
    let (media_type, body, _) = &files[0];
    let answer = send(
        service.address(),
        &request(&service, target, media_type, body),
    );
    let answer = answer.expect("an answer");
    assert_eq!(answer.status, 413, "{}", answer.text());
    assert!(
        answer.text().contains(&(40 * MIB).to_string()),
        "{}",
        answer.text()
    );
    let peak = peak(&service);
    println!("peak {} MiB of {}", peak / MIB, memory / MIB);
    assert!(peak <= memory, "{peak} bytes of {memory}");
    until(&service, |gauges| gauges.reserved == 0);
    let small = growing_png(300, 300, 20);
    let answer = service.convert(
        &[("quality", "100"), ("mode", "lossy")],
        "image/png",
        &small,
    );
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.body.len() > 4 * small.len(), "it grows");
}

#[test]
fn files_that_hide_their_size_stay_below_the_memory() {
    const CLIENTS: usize = 16;
    let (service, memory) = start(128 * MIB, &["--threads", "4"]);
    let files = [
        ("image/gif", gif_beyond_its_screen(16383, 6103), 200),
        ("image/gif", gif_with_extensions(4 << 20), 200),
        ("image/bmp", bmp_with_profile(8 << 20), 200),
        ("image/jpeg", jpeg_with_concealed_scans(4000, 3000), 413),
    ];
    let converted = AtomicUsize::new(0);
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (service, files, converted) = (&service, &files, &converted);
            scope.spawn(move || {
                let (media_type, body, expected) = &files[client % files.len()];
                let answer = send(service.address(), &request(service, "", media_type, body))
                    .unwrap_or_else(|error| panic!("{media_type}: {error}"));
                // Who found no place within the time is told to come again.
                assert!(
                    [*expected, 503].contains(&answer.status),
                    "{media_type}: {}",
                    answer.text()
                );
                converted.fetch_add(usize::from(answer.status == 200), Ordering::Relaxed);
            });
        }
    });
    let peak = peak(&service);
    println!("peak {} MiB of {}", peak / MIB, memory / MIB);
    assert!(peak <= memory, "{peak} bytes of {memory}");
    assert!(converted.into_inner() >= 3, "one of each that is valid");
}

#[test]
fn what_never_fits_is_refused_at_once_and_what_just_fits_is_not() {
    let png = Picture::flat(3000, 3000, [90, 100, 110]).png();
    let (needed, total) = refused(&start(40 * MIB, &[]).0, &png);
    assert!(needed > total, "{needed} of {total}");
    assert_eq!(total, 40 * MIB);
    let (service, _) = start(needed - 1, &[]);
    assert_eq!(refused(&service, &png), (needed, needed - 1));
    let (service, _) = start(needed, &[]);
    let answer = service.convert(&[], "image/png", &png);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(service.conversions(), 1);
}

/// Refused with 413, which names both numbers: what was needed and what there is.
fn refused(service: &Service, png: &[u8]) -> (u64, u64) {
    let asked = Instant::now();
    let answer = service.convert(&[], "image/png", png);
    assert!(
        asked.elapsed() < Duration::from_secs(10),
        "{:?}",
        asked.elapsed()
    );
    let detail = answer.problem(413, "too_much_memory");
    assert!(detail.contains("--memory"), "{detail}");
    assert_eq!(service.conversions(), 0);
    let mut numbers = detail.split(' ').filter_map(|word| word.parse().ok());
    let mut number = || {
        numbers
            .next()
            .unwrap_or_else(|| panic!("two numbers in {detail}"))
    };
    (number(), number())
}

#[test]
fn who_waits_is_next_and_who_leaves_makes_room() {
    // For one of the large ones at a time.
    // The account may hold three quarters of the buffer: the animation and two large ones.
    let own = ["--threads", "4", "--buffer", "96MiB"];
    let (service, _) = start(130 * MIB, &[&own, &LONG_CONVERSIONS[..]].concat());
    let animation = flicker(1800, 1500);
    let large = Picture::noise(3000, 2500).png();
    let small = Picture::noise(1000, 1000).png();
    let first = begin(&service, SLOW, "image/gif", &animation);
    until(&service, |gauges| gauges.reserved > 0);
    let leaving = begin(&service, "", "image/png", &large);
    until(&service, |gauges| gauges.waiting == 1);
    let mut second = begin(&service, "", "image/png", &large);
    until(&service, |gauges| gauges.waiting == 2);
    drop(leaving);
    until(&service, |gauges| gauges.waiting == 1);
    // Would fit, and is behind one that does not.
    let mut third = begin(&service, "", "image/png", &small);
    until(&service, |gauges| gauges.waiting == 2);
    drop(first);
    for stream in [&mut second, &mut third] {
        let answer = read_response(stream, false);
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    until(&service, |gauges| {
        gauges.reserved == 0 && gauges.waiting == 0
    });
    assert_eq!(service.conversions(), 2, "who left is not counted");
}

#[test]
fn who_waits_too_long_is_told_when_to_come_again() {
    let flags = [&["--queue-timeout", "1"], &LONG_CONVERSIONS[..]].concat();
    let (service, _) = start(130 * MIB, &flags);
    let _first = begin(&service, SLOW, "image/gif", &flicker(1800, 1500));
    until(&service, |gauges| gauges.reserved > 0);
    let large = Picture::noise(3000, 2500).png();
    let second = service.convert(&[], "image/png", &large);
    let detail = second.problem(503, "busy");
    assert!(detail.contains("memory"), "{detail}");
    let seconds = second
        .header("retry-after")
        .and_then(|text| text.parse().ok());
    assert!(matches!(seconds, Some(1..=60)), "{second:?}");
    assert_eq!(service.conversions(), 0);
}

#[test]
fn memory_that_cannot_be_divided_is_refused_at_the_start() {
    for (flags, named) in [
        (
            &["--memory", "100MiB"][..],
            &["--memory 104857600", "--buffer", "--threads"][..],
        ),
        (
            &["--memory", "1GiB", "--threads", "1000"],
            &["--memory 1073741824", "--threads 1000"],
        ),
        (
            &["--memory", "1GiB", "--buffer", "1GiB"],
            &["--memory 1073741824", "--buffer"],
        ),
        (
            &["--memory", "1GiB", "--max-body", "1GiB"],
            &["--memory 1073741824", "--max-body"],
        ),
        (&["--memory", "lots"], &["--memory"]),
    ] {
        let folder = crate::support::Folder::new();
        let output = std::process::Command::new(crate::support::TOWEBP)
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(folder.path.join("data"))
            .args(flags)
            .output()
            .expect("it starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{flags:?}");
        for name in named {
            assert!(error.contains(name), "{flags:?}: {error}");
        }
    }
}

/// A server whose conversions may take so many bytes together, and its `--memory`.
fn start(conversions: u64, flags: &[&str]) -> (Service, u64) {
    let with = |memory: u64| {
        let memory = memory.to_string();
        let own = ["--memory", &memory, "--metrics", "127.0.0.1:0"];
        let buffer = if flags.contains(&"--buffer") {
            &[][..]
        } else {
            &["--buffer", "64MiB"]
        };
        Service::start_with(&[&own, buffer, flags].concat())
    };
    let much = 1 << 30;
    let memory = much - gauges(&with(much)).budget + conversions;
    let service = with(memory);
    assert_eq!(gauges(&service).budget, conversions);
    (service, memory)
}

/// Sends a request whose answer is waited for later, or never.
fn begin(service: &Service, parameters: &str, media_type: &str, body: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(service.address()).expect("it listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a time");
    let message = request(service, parameters, media_type, body);
    stream.write_all(&message).expect("it reads");
    stream
}

fn request(service: &Service, parameters: &str, media_type: &str, body: &[u8]) -> Vec<u8> {
    let (target, length) = (service.target(&[]), body.len());
    let head = format!(
        "POST {target}{parameters} HTTP/1.1\r\nHost: a\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// What `GET /metrics` says of memory.
#[derive(Debug)]
struct Gauges {
    budget: u64,
    reserved: u64,
    waiting: u64,
}

fn gauges(service: &Service) -> Gauges {
    let output = service.server.output_with("/metrics");
    let address: SocketAddr = output
        .lines()
        .find_map(|line| {
            line.strip_prefix("Metrics: http://")?
                .strip_suffix("/metrics")
        })
        .and_then(|address| address.parse().ok())
        .unwrap_or_else(|| panic!("no address of metrics in {output}"));
    let answer = send(address, b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").expect("an answer");
    let text = answer.text();
    let gauge = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name));
        value
            .and_then(|value| value.trim().parse().ok())
            .unwrap_or_else(|| panic!("no {name} in {text}"))
    };
    Gauges {
        budget: gauge("towebp_memory_budget_bytes "),
        reserved: gauge("towebp_memory_reserved_bytes "),
        waiting: gauge("towebp_memory_waiting "),
    }
}

fn until(service: &Service, is_so: impl Fn(&Gauges) -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let gauges = gauges(service);
        if is_so(&gauges) {
            return;
        }
        assert!(Instant::now() < deadline, "{gauges:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Most bytes that the server ever had.
fn peak(service: &Service) -> u64 {
    let path = format!("/proc/{}/status", service.server.process_id());
    let status = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let kibibytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|value| value.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kibibytes.unwrap_or_else(|| panic!("no VmHWM in {status}")) * 1024
}
