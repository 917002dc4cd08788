//! Every limit of the HTTP parser and of connections, from both sides.

use super::{
    BEARABLE, Bystander, connect, conversion, exchange, memory, read_to_end, statuses, warmed_up,
};
use crate::support::picture::Picture;
use crate::support::service::{Service, send};
use crate::support::{TIMEOUT, try_read_response, until};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

fn get(target: &str, lines: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: a\r\n{lines}\r\n")
}

fn status(stream: &mut TcpStream) -> u16 {
    try_read_response(stream, false).expect("an answer").status
}

#[test]
fn heads_may_have_so_many_bytes() {
    let service = Service::start_with(&["--max-head", "2KiB"]);
    let of_length = |length: usize| {
        let empty = get("/healthz", "X: \r\n").len();
        get(
            "/healthz",
            &format!("X: {}\r\n", "y".repeat(length - empty)),
        )
    };
    assert_eq!(statuses(&exchange(&service, of_length(2048))), [200]);
    let over = exchange(&service, of_length(2049));
    assert_eq!(statuses(&over), [431], "{over}");
    assert!(over.contains("2048 bytes"), "the limit is named: {over}");
    let target = exchange(&service, get(&format!("/{}", "a".repeat(2100)), ""));
    assert_eq!(statuses(&target), [414], "{target}");
    let default = Service::start();
    assert_eq!(statuses(&exchange(&default, of_length(16 << 10))), [200]);
    assert_eq!(
        statuses(&exchange(&default, of_length((16 << 10) + 1))),
        [431]
    );
}

#[test]
fn requests_may_have_so_many_headers() {
    for (flags, most) in [(&[][..], 64), (&["--max-headers", "10"][..], 10)] {
        let service = Service::start_with(flags);
        assert_eq!(
            statuses(&exchange(
                &service,
                get("/healthz", &"A: b\r\n".repeat(most - 1))
            )),
            [200]
        );
        assert_eq!(
            statuses(&exchange(
                &service,
                get("/healthz", &"A: b\r\n".repeat(most))
            )),
            [431]
        );
    }
}

#[test]
fn a_body_is_asked_for_only_if_it_is_wanted() {
    let service = Service::start_with(&["--max-body", "60MB"]);
    let target = service.target(&[]);
    let cases = [
        ("POST", "/convert", "image/png", 50_000_000, 401),
        ("POST", "/convert?token=wrong", "image/png", 50_000_000, 401),
        ("PUT", &target, "image/png", 50_000_000, 405),
        ("POST", &target, "image/tiff", 50_000_000, 400),
        (
            "POST",
            &format!("{target}&quality=high"),
            "image/png",
            50_000_000,
            400,
        ),
        ("POST", &target, "image/png", 60_000_001, 413),
        (
            "POST",
            "/signin",
            "application/x-www-form-urlencoded",
            50_000_000,
            413,
        ),
    ];
    for (method, target, content_type, length, expected) in cases {
        let mut stream = connect(&service);
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: a\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
             Expect: 100-continue\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).expect("the server reads");
        let answer = read_to_end_with(&mut stream);
        assert_eq!(statuses(&answer), [expected], "{method} {target}: {answer}");
    }
    let png = Picture::waves(30, 20).png();
    let request = conversion(&service, &png, "Expect: 100-continue\r\n");
    let mut stream = connect(&service);
    stream
        .write_all(&request[..request.len() - png.len()])
        .expect("the server reads");
    let mut go_on = [0; 25];
    stream.read_exact(&mut go_on).expect("an interim answer");
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(&png).expect("the server reads");
    assert_eq!(status(&mut stream), 200);
}

#[test]
fn a_wrong_path_is_404_whatever_its_body_which_nobody_waits_for() {
    let service = warmed_up(&[]);
    let bystander = Bystander::start(&service);
    let before = memory(&service);
    let token = &service.token;
    let bodies = [
        "Content-Type: image/png\r\nContent-Length: 5000000\r\n\r\n",
        "Content-Length: 18446744073709551615\r\nExpect: 100-continue\r\n\r\nabc",
        "Content-Type: image/png\r\nContent-Length: 5000\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n",
    ];
    for path in ["/convert/", "/shrink", "/convert%3f", "/api/usage/x"] {
        for method in ["POST", "PUT", "GET"] {
            for rest in bodies {
                let mut stream = connect(&service);
                let head = format!("{method} {path}?token={token} HTTP/1.1\r\nHost: a\r\n{rest}");
                // The connection stays open: an answer that waits for the body would not come.
                stream.write_all(head.as_bytes()).expect("the server reads");
                let answer = try_read_response(&mut stream, false).expect("an answer");
                answer.problem(404, "not_found");
            }
        }
    }
    let picture = Picture::noise(300, 200).png();
    assert!(picture.len() > 16 << 10, "more than a form may have");
    let head = format!(
        "POST /convert/?token={token} HTTP/1.1\r\nHost: a\r\nContent-Type: image/png\r\n\
         Content-Length: {}\r\n\r\n",
        picture.len()
    );
    let answer = send(service.address(), &[head.as_bytes(), &picture].concat());
    answer
        .expect("an answer, not a reset")
        .problem(404, "not_found");
    let wrong_method = service.request("PUT", "/convert", &[], &picture);
    wrong_method.problem(405, "method_not_allowed");
    let wrong_method = service.request("POST", "/dashboard", &[], &picture);
    wrong_method.problem(405, "method_not_allowed");
    bystander.finish("bodies for wrong paths", BEARABLE);
    let grown = memory(&service).saturating_sub(before);
    assert!(grown < 8 << 20, "{grown} bytes for bodies of wrong paths");
}

/// As much as comes before our side closes, which a refused client does once it has its answer.
fn read_to_end_with(stream: &mut TcpStream) -> String {
    stream.shutdown(std::net::Shutdown::Write).ok();
    read_to_end(stream)
}

#[test]
fn a_refused_upload_costs_nothing_and_its_client_sees_why() {
    let service = warmed_up(&["--max-body", "60MB"]);
    let before = memory(&service);
    let head = "POST /convert?token=wrong HTTP/1.1\r\nHost: a\r\nContent-Type: image/png\r\nContent-Length: 50000000\r\n\r\n";
    let message = [head.as_bytes(), &vec![0; 50_000_000]].concat();
    for _ in 0..3 {
        // It sends all before it looks for an answer.
        let answer = send(service.address(), &message).expect("an answer, not a reset");
        assert_eq!(answer.status, 401);
    }
    let grown = super::status_of(&service, "VmHWM").saturating_sub(before);
    assert!(
        grown < 2 << 20,
        "{grown} bytes for refused uploads of 50 MB"
    );
}

#[test]
fn a_body_is_held_once() {
    let service = warmed_up(&[]);
    let before = memory(&service);
    let mut body = b"GIF89a".to_vec();
    body.resize(32 << 20, 0);
    let answer = service.convert(&[], "image/gif", &body);
    assert_eq!(answer.status, 400, "it is no picture: {}", answer.text());
    let grown = super::status_of(&service, "VmHWM").saturating_sub(before);
    println!("a body of {} bytes: {grown} bytes", body.len());
    assert!(
        grown < body.len() + (6 << 20),
        "{grown} bytes for a body of {}",
        body.len()
    );
}

#[test]
fn refused_clients_are_listened_to_for_so_long() {
    let service = Service::start_with(&["--linger-timeout", "2"]);
    let mut stream = connect(&service);
    stream
        .write_all(b"GET / HTTP/2.0\r\n\r\n")
        .expect("the server reads");
    assert_eq!(statuses(&read_to_end(&mut stream)), [505]);
    let started = Instant::now();
    // The client has the answer and goes on sending, until a reset tells it that nothing reads it.
    while stream.write_all(b"x").is_ok() {
        assert!(started.elapsed() < TIMEOUT, "it is listened to for ever");
        thread::sleep(Duration::from_millis(50));
    }
    let time = started.elapsed();
    assert!(
        time > Duration::from_millis(1500) && time < Duration::from_secs(6),
        "{time:?}"
    );
}

#[test]
fn old_clients_get_one_answer_unless_they_ask_for_more() {
    let service = Service::start();
    let mut stream = connect(&service);
    stream
        .write_all(b"GET /healthz HTTP/1.0\r\n\r\n")
        .expect("the server reads");
    assert_eq!(
        statuses(&read_to_end(&mut stream)),
        [200],
        "and then it is closed"
    );
    let mut stream = connect(&service);
    for _ in 0..2 {
        stream
            .write_all(b"GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            .expect("it is open still");
        let answer = try_read_response(&mut stream, false).expect("an answer");
        assert_eq!(
            (answer.status, answer.header("connection")),
            (200, Some("keep-alive"))
        );
    }
}

#[test]
fn answers_to_head_have_no_body() {
    let service = Service::start();
    let requests = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\nHEAD /convert HTTP/1.1\r\nHost: a\r\n\r\nHEAD /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
    let answers = exchange(&service, requests);
    assert_eq!(statuses(&answers), [200, 405, 200], "{answers}");
    assert!(
        !answers.contains('{') && !answers.contains("<html") && !answers.ends_with("ok"),
        "{answers}"
    );
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let service = Service::start();
    let mut stream = connect(&service);
    let (wide, high) = (Picture::waves(90, 10).png(), Picture::waves(10, 90).png());
    let mut message = Vec::new();
    for _ in 0..5 {
        message.extend(conversion(&service, &wide, ""));
        message.extend(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
        message.extend(
            b"POST /convert?token=wrong HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
        );
        message.extend(conversion(&service, &high, ""));
    }
    stream.write_all(&message).expect("the server reads");
    let mut reader = std::io::BufReader::new(stream);
    for _ in 0..5 {
        let mut next = || crate::support::read_next(&mut reader).expect("an answer");
        assert_eq!(next().header("image-width"), Some("90"));
        assert_eq!(next().body, b"ok");
        assert_eq!(next().status, 401);
        assert_eq!(next().header("image-width"), Some("10"));
    }
}

#[test]
fn there_is_room_for_so_many_connections() {
    let service = Service::start_with(&["--max-connections", "20"]);
    let mut silent: Vec<TcpStream> = (0..20).map(|_| connect(&service)).collect();
    until(|| super::descriptors(&service) > 20);
    // One more: the one that has been silent for longest makes room.
    assert_eq!(statuses(&exchange(&service, get("/healthz", ""))), [200]);
    assert_eq!(read_to_end(&mut silent.remove(0)), "");
    drop(silent);
    // Heads that have begun make room too.
    let begun: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut stream = connect(&service);
            stream.write_all(b"GET /").expect("the server reads");
            stream
        })
        .collect();
    assert_eq!(statuses(&exchange(&service, get("/healthz", ""))), [200]);
    drop(begun);
    let head = conversion(&service, b"a body", "");
    let busy: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut stream = connect(&service);
            stream
                .write_all(&head[..head.len() - 1])
                .expect("the server reads");
            stream
        })
        .collect();
    // Nobody is without a request: the next one is told.
    let mut refused = 0;
    until(|| {
        let answer = send(
            service.address(),
            get("/healthz", "Connection: close\r\n").as_bytes(),
        );
        let answer = answer.expect("an answer, not a reset");
        refused += usize::from(answer.status == 503);
        answer.status == 503
            && answer
                .problem(503, "too_many_connections")
                .contains("connections")
    });
    drop(busy);
    until(|| statuses(&exchange(&service, get("/healthz", ""))) == [200]);
    assert!(refused > 0);
}

#[test]
fn one_address_has_room_for_so_many_connections_unless_it_is_a_trusted_proxy() {
    let flags = ["--max-connections-per-address", "5"];
    let service = Service::start_with(&flags);
    let mut own: Vec<TcpStream> = (0..5).map(|_| connect(&service)).collect();
    for stream in &mut own {
        stream
            .write_all(get("/healthz", "").as_bytes())
            .expect("the server reads");
        assert_eq!(status(stream), 200);
    }
    let answer = send(service.address(), get("/healthz", "").as_bytes()).expect("an answer");
    answer.problem(503, "too_many_connections");
    assert!(answer.header("retry-after").is_some(), "{answer:?}");
    own.pop();
    until(|| statuses(&exchange(&service, get("/healthz", ""))) == [200]);
    // The others were not disturbed.
    own[0]
        .write_all(get("/healthz", "").as_bytes())
        .expect("it is open still");
    assert_eq!(status(&mut own[0]), 200);

    let behind_proxy =
        Service::start_with(&[&flags[..], &["--trusted-proxy", "127.0.0.0/8"]].concat());
    let _proxy: Vec<TcpStream> = (0..10).map(|_| connect(&behind_proxy)).collect();
    assert_eq!(
        statuses(&exchange(&behind_proxy, get("/healthz", ""))),
        [200]
    );
}

#[test]
fn bodies_on_their_way_share_a_budget() {
    let service = warmed_up(&["--max-body", "1MiB", "--buffer", "3MiB"]);
    let before = memory(&service);
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: a\r\nContent-Type: image/png\r\nContent-Length: 1000000\r\n\r\n",
        service.target(&[])
    );
    let message = [head.as_bytes(), &vec![0; 900_000]].concat();
    let bystander = Bystander::start(&service);
    let mut held: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut stream = connect(&service);
            stream.write_all(&message).ok();
            stream
        })
        .collect();
    thread::sleep(Duration::from_millis(300));
    let grown = memory(&service).saturating_sub(before);
    assert!(grown < 8 << 20, "{grown} bytes for a budget of 3 MiB");
    let mut refused = 0;
    for stream in &mut held {
        stream
            .set_read_timeout(Some(Duration::from_millis(50)))
            .expect("a positive time");
        if let Ok(answer) = try_read_response(stream, false) {
            answer.problem(503, "busy");
            assert!(answer.header("retry-after").is_some(), "{answer:?}");
            refused += 1;
        }
    }
    assert!((10..20).contains(&refused), "{refused} of 20");
    bystander.finish("20 bodies of 1 MB for a budget of 3 MiB", BEARABLE);
}

#[test]
fn whoever_waits_too_long_for_a_worker_is_told_when_to_come_again() {
    let service = Service::start_with(&["--threads", "1", "--queue-timeout", "1"]);
    let request = conversion(
        &service,
        &Picture::noise(1500, 1500).png(),
        "Connection: close\r\n",
    );
    let answers: Vec<_> = thread::scope(|scope| {
        let clients: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| send(service.address(), &request).expect("an answer")))
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().expect("an answer"))
            .collect()
    });
    let converted = answers.iter().filter(|answer| answer.status == 200).count();
    // On a starved machine one conversion may take as long as the queue waits.
    assert!((1..8).contains(&converted), "{converted} of 8");
    for answer in answers.iter().filter(|answer| answer.status != 200) {
        answer.problem(503, "busy");
        let seconds = answer
            .header("retry-after")
            .and_then(|seconds| seconds.parse::<u64>().ok());
        assert!(
            seconds.is_some_and(|seconds| (1..=60).contains(&seconds)),
            "{answer:?}"
        );
    }
    assert_eq!(
        service.conversions(),
        converted,
        "what was refused is not counted"
    );
}

#[test]
fn a_conversion_ends_when_its_client_leaves() {
    let service = Service::start_with(&["--threads", "1"]);
    let bmp = Picture::noise(3000, 3000).bmp();
    let started = Instant::now();
    assert_eq!(service.convert(&[], "image/bmp", &bmp).status, 200);
    let alone = started.elapsed();

    let head = format!(
        "POST {} HTTP/1.1\r\nHost: a\r\nContent-Type: image/bmp\r\nContent-Length: {}\r\n\r\n",
        service.target(&[]),
        bmp.len()
    );
    let mut leaves = connect(&service);
    leaves
        .write_all(&[head.as_bytes(), &bmp].concat())
        .expect("the server reads");
    thread::sleep(alone / 4);
    drop(leaves);
    let started = Instant::now();
    service.webp(&[], &Picture::waves(20, 20).png());
    let waited = started.elapsed();
    assert!(
        waited < alone / 3,
        "{waited:?} for a conversion that takes {alone:?} alone"
    );
    assert_eq!(service.conversions(), 2, "what was left is not counted");
}

#[test]
fn nothing_is_converted_for_clients_that_have_gone() {
    let service = Service::start_with(&["--threads", "1"]);
    let request = conversion(&service, &Picture::noise(1200, 1200).png(), "");
    let gone: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut stream = connect(&service);
            stream.write_all(&request).expect("the server reads");
            stream
        })
        .collect();
    thread::sleep(Duration::from_millis(100));
    drop(gone);
    let started = Instant::now();
    service.webp(&[], &Picture::waves(20, 20).png());
    let conversions = service.conversions();
    assert!(
        conversions <= 4,
        "{conversions} conversions, {:?}",
        started.elapsed()
    );
}
