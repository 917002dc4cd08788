//! Clients that come in numbers, or send without an end.

use super::{
    BEARABLE, Bystander, connect, conversion, descriptors, exchange, memory, read_to_end, statuses,
    threads, warmed_up,
};
use crate::support::command::towebp;
use crate::support::picture::Picture;
use crate::support::service::Service;
use crate::support::{Folder, TIMEOUT, create_account, try_read_response, until};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZero;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The wanted number of connections, or as many as the limit of open files allows; a test that can
/// open fewer says so.
fn as_many_as_allowed(wanted: usize) -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").expect("Linux has it");
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let soft = line
        .and_then(|line| line.split_whitespace().next())
        .and_then(|soft| soft.parse().ok());
    let allowed = soft.map_or(wanted, |soft: usize| soft.saturating_sub(300) / 2);
    if allowed < wanted {
        println!("the limit of open files leaves room for {allowed} connections, not {wanted}");
    }
    wanted.min(allowed)
}

const MANY: &[&str] = &["--max-connections-per-address", "4096"];

#[test]
fn two_thousand_idle_connections_cost_little_and_no_thread() {
    let service = warmed_up(MANY);
    let (before, threads_before) = (memory(&service), threads(&service));
    let count = as_many_as_allowed(2000);
    let started = Instant::now();
    let mut idle: Vec<TcpStream> = (0..count).map(|_| connect(&service)).collect();
    // A connection that finds the listener's queue full tries again after a second.
    let time = started.elapsed();
    assert!(time < Duration::from_secs(5), "{time:?} to connect");
    until(|| descriptors(&service) >= count);
    // Half of them have asked something before.
    for stream in idle.iter_mut().take(count / 2) {
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            .expect("the server reads");
        assert_eq!(
            try_read_response(stream, false).expect("an answer").status,
            200
        );
    }
    let grown = memory(&service).saturating_sub(before);
    println!("{count} idle connections: {grown} bytes");
    assert!(
        grown <= 8 << 20,
        "{grown} bytes for {count} idle connections"
    );
    assert!(threads(&service) <= threads_before);

    let spent = processor_ticks(&service);
    thread::sleep(Duration::from_secs(1));
    let ticks = processor_ticks(&service) - spent;
    assert!(
        ticks <= 1,
        "{ticks} hundredths of a second for doing nothing"
    );

    let bystander = Bystander::start(&service);
    thread::sleep(Duration::from_secs(1));
    bystander.finish("2000 idle connections", BEARABLE);
    drop(idle);
    until(|| descriptors(&service) < 100);
}

/// Hundredths of a second, in all threads.
fn processor_ticks(service: &Service) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", service.server.process_id()))
        .expect("it runs");
    let fields = stat
        .rsplit_once(')')
        .expect("behind the name")
        .1
        .split_whitespace();
    // utime and stime are the 14th and 15th field (proc(5)), the third being the first here.
    fields
        .skip(11)
        .take(2)
        .map(|ticks| ticks.parse::<u64>().expect("a number"))
        .sum()
}

#[test]
fn a_thousand_bodies_that_only_begin_cost_little() {
    let service = warmed_up(MANY);
    let before = memory(&service);
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: a\r\nContent-Type: image/png\r\nContent-Length: 30000000\r\n\r\n",
        service.target(&[])
    );
    let message = [head.as_bytes(), &[0; 1000]].concat();
    let count = as_many_as_allowed(1000);
    let bystander = Bystander::start(&service);
    let held: Vec<TcpStream> = (0..count)
        .map(|_| {
            let mut stream = connect(&service);
            stream.write_all(&message).expect("the server reads");
            stream
        })
        .collect();
    thread::sleep(Duration::from_secs(1));
    let grown = memory(&service).saturating_sub(before);
    println!("{count} bodies that only began: {grown} bytes");
    assert!(
        grown <= 12 << 20,
        "{grown} bytes for {count} bodies that only began"
    );
    bystander.finish("1000 bodies that only begin", BEARABLE);
    drop(held);
    until(|| descriptors(&service) < 100);
}

#[test]
fn requests_whose_bodies_are_withheld_hold_up_nobody() {
    let service = Service::start();
    let bystander = Bystander::start(&service);
    let held: Vec<TcpStream> = ["", "Expect: 100-continue\r\n"]
        .iter()
        .cycle()
        .take(40)
        .map(|line| {
            let mut stream = connect(&service);
            let head =
                format!("POST /convert?token=wrong HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n{line}\r\n");
            stream.write_all(head.as_bytes()).expect("the server reads");
            assert_eq!(
                try_read_response(&mut stream, false)
                    .expect("an answer")
                    .status,
                401
            );
            stream
        })
        .collect();
    thread::sleep(Duration::from_millis(500));
    bystander.finish("40 refused requests whose bodies never come", BEARABLE);
    drop(held);
}

#[test]
fn pipelined_floods_wait_in_the_socket() {
    let service = warmed_up(&[]);
    let before = memory(&service);
    let bystander = Bystander::start(&service);
    let end = Instant::now() + Duration::from_secs(3);
    let floods = [
        "GET /icon.svg HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /convert HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\n",
        "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx",
    ];
    thread::scope(|scope| {
        for flood in floods {
            let (mut deaf, mut hearing) = (connect(&service), connect(&service));
            let portion = flood.repeat(1000);
            let sends = portion.clone();
            scope.spawn(move || {
                deaf.set_write_timeout(Some(Duration::from_millis(100)))
                    .expect("a positive time");
                while Instant::now() < end {
                    // What does not fit is not sent: the server does not read on.
                    deaf.write_all(portion.as_bytes()).ok();
                }
            });
            let mut reads = hearing.try_clone().expect("a descriptor");
            scope.spawn(move || {
                hearing
                    .set_write_timeout(Some(Duration::from_millis(100)))
                    .expect("a positive time");
                while Instant::now() < end {
                    hearing.write_all(sends.as_bytes()).ok();
                }
                hearing.shutdown(std::net::Shutdown::Both).ok();
            });
            scope.spawn(move || {
                let mut portion = vec![0; 64 << 10];
                while matches!(reads.read(&mut portion), Ok(1..)) {}
            });
        }
        thread::sleep(Duration::from_millis(2500));
        let grown = memory(&service).saturating_sub(before);
        println!("pipelined floods: {grown} bytes");
        assert!(grown <= 8 << 20, "{grown} bytes");
    });
    bystander.finish("10 pipelined floods", BEARABLE);
}

#[test]
fn endless_heads_end() {
    let service = warmed_up(&[]);
    let before = memory(&service);
    let endless = "a".repeat(10 << 20);
    for (start, status) in [
        ("GET /", 414),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: ", 431),
        ("", 414),
    ] {
        let answers = exchange(&service, format!("{start}{endless}"));
        assert_eq!(statuses(&answers), [status], "{start:?}: {answers}");
    }
    let headers = "A: b\r\n".repeat(1 << 20);
    assert_eq!(
        statuses(&exchange(
            &service,
            format!("GET / HTTP/1.1\r\nHost: a\r\n{headers}")
        )),
        [431]
    );
    let grown = memory(&service).saturating_sub(before);
    assert!(grown < 2 << 20, "{grown} bytes");
}

#[test]
fn running_out_of_descriptors_is_survived() {
    let folder = Folder::new();
    let data = folder.path.join("data");
    let token = create_account(&data, "owner@example.org");
    // 12 descriptors more than the server needs by itself, whatever it inherits, and fewer than the
    // connections that its flags allow. `ls` has four of its own.
    let limited = "ulimit -n $((80 + $(ls /proc/self/fd | wc -l))); exec \"$0\" \"$@\"";
    let mut server = Command::new("sh")
        .args(["-c", limited])
        .arg(towebp().get_program())
        .args([
            "serve",
            "--threads",
            "2",
            "--listen",
            "127.0.0.1:0",
            "--data",
        ])
        .arg(&data)
        .env("RUST_LOG", "warn")
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let address = address_of(&mut server);

    let get = |connection: &mut TcpStream| {
        connection
            .set_read_timeout(Some(TIMEOUT))
            .expect("a positive time");
        connection
            .write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            .ok();
        try_read_response(connection, false).map(|answer| answer.status)
    };
    let begun = |_| {
        let mut stream = TcpStream::connect(address).expect("the system accepts");
        stream.write_all(b"GET /").expect("a buffer has room");
        stream
    };
    // All of them have begun a request, so that none can be closed to make room.
    let held: Vec<TcpStream> = (0..100).map(begun).collect();
    thread::sleep(Duration::from_millis(500));
    assert!(
        server.try_wait().expect("it can be asked").is_none(),
        "it ended"
    );
    drop(held);
    let mut stream = TcpStream::connect(address).expect("the system accepts");
    let after = get(&mut stream);

    // Idle ones make room for those who ask.
    let idle: Vec<TcpStream> = (0..100)
        .map(|_| TcpStream::connect(address).expect("the system accepts"))
        .collect();
    let beside = get(&mut TcpStream::connect(address).expect("the system accepts"));
    drop(idle);

    let png = Picture::waves(30, 20).png();
    let head = format!(
        "POST /convert?token={token} HTTP/1.1\r\nHost: a\r\nContent-Type: image/png\r\nContent-Length: {}\r\n\r\n",
        png.len()
    );
    let converted = super::send(address, &[head.as_bytes(), &png].concat());
    let alive = server.try_wait().expect("it can be asked").is_none();
    server.kill().ok();
    server.wait().ok();
    assert!(alive, "it ended");
    assert!(
        matches!((&after, &beside), (Ok(200), Ok(200))),
        "{after:?} {beside:?}"
    );
    assert_eq!(converted.expect("an answer").status, 200);
}

#[test]
fn no_thread_is_started_for_a_client() {
    let service = warmed_up(&[]);
    // A thread that helps an encoder bears its worker's name for a moment.
    let most = threads(&service) + thread::available_parallelism().map_or(1, NonZero::get);
    let png = Picture::waves(300, 200).png();
    let request = conversion(&service, &png, "");
    thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                let mut stream = connect(&service);
                for _ in 0..3 {
                    stream.write_all(&request).expect("the server reads");
                    assert_eq!(
                        try_read_response(&mut stream, false)
                            .expect("an answer")
                            .status,
                        200
                    );
                }
                assert!(threads(&service) <= most);
            });
        }
    });
    assert_eq!(service.conversions(), 70, "each is counted once");
}

#[test]
fn nobody_else_names_a_client() {
    let folder = Folder::new();
    let mut server = towebp()
        .args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--trusted-proxy",
            "127.0.0.1",
            "--data",
        ])
        .arg(folder.path.join("data"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let address = address_of(&mut server);
    let lines = [
        "X-Towebp-Client: 203.0.113.1\r\nX-Towebp-Upstream: 7\r\n",
        "x-towebp-client: 203.0.113.2\r\nX-Forwarded-For: 198.51.100.1, 203.0.113.3\r\n",
    ];
    for line in lines {
        let mut stream = TcpStream::connect(address).expect("it accepts");
        write!(
            stream,
            "GET /healthz HTTP/1.1\r\nHost: a\r\n{line}Connection: close\r\n\r\n"
        )
        .expect("it reads");
        assert_eq!(statuses(&read_to_end(&mut stream)), [200]);
    }
    server.kill().ok();
    let log = String::from_utf8(server.wait_with_output().expect("its log").stderr).expect("text");
    let clients: Vec<&str> = log
        .lines()
        .filter_map(|line| line.rsplit_once(" client="))
        .map(|(_, client)| client)
        .collect();
    assert_eq!(clients, ["127.0.0.1", "203.0.113.3"], "{log}");
}

/// Where a server that was just started says that it listens.
fn address_of(server: &mut Child) -> SocketAddr {
    let mut first = String::new();
    BufReader::new(server.stdout.take().expect("piped"))
        .read_line(&mut first)
        .expect("its address");
    first
        .trim()
        .rsplit('/')
        .next()
        .and_then(|text| text.parse().ok())
        .expect(&first)
}
