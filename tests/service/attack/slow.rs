//! Clients that take their time.

use super::{BEARABLE, Bystander, connect, conversion, read_to_end, statuses};
use crate::support::picture::Picture;
use crate::support::service::Service;
use crate::support::try_read_response;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

/// Sends the bytes one by one, `pause` apart, until the server ends it; returns its answer, and
/// after what time it came.
fn drip(mut stream: TcpStream, bytes: &[u8], pause: Duration) -> (String, Duration) {
    let started = Instant::now();
    for byte in bytes {
        if stream.write_all(&[*byte]).is_err() {
            break;
        }
        stream
            .set_read_timeout(Some(pause))
            .expect("a positive time");
        let mut first = [0];
        if let Ok(count) = stream.peek(&mut first) {
            if count == 0 {
                break;
            }
            stream
                .set_read_timeout(Some(crate::support::TIMEOUT))
                .expect("a positive time");
            return (read_to_end(&mut stream), started.elapsed());
        }
    }
    (String::new(), started.elapsed())
}

#[test]
fn heads_that_drip_are_answered_408_in_time() {
    let service = Service::start_with(&["--head-timeout", "2"]);
    let bystander = Bystander::start(&service);
    let request = format!(
        "GET /healthz HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
        "y".repeat(200)
    );
    thread::scope(|scope| {
        for _ in 0..50 {
            let stream = connect(&service);
            let request = &request;
            scope.spawn(move || {
                let (answer, time) = drip(stream, request.as_bytes(), Duration::from_millis(100));
                assert_eq!(statuses(&answer), [408], "{answer}");
                assert!(answer.contains("request_timeout"), "{answer}");
                assert!(
                    time > Duration::from_millis(1900) && time < Duration::from_secs(8),
                    "{time:?}"
                );
            });
        }
    });
    bystander.finish("50 heads that drip", BEARABLE);
    let slow_but_in_time = drip(
        connect(&service),
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        Duration::from_millis(5),
    );
    assert_eq!(statuses(&slow_but_in_time.0), [200]);
}

#[test]
fn bodies_below_the_least_rate_are_given_up_and_those_above_are_not() {
    // Windows are 10 s long: 20 KB are needed in each.
    let service = Service::start_with(&["--min-rate", "2000"]);
    let bystander = Bystander::start(&service);
    let body = vec![0; 60_000];
    let mut message = conversion(&service, &body, "");
    message.truncate(message.len() - body.len());
    let head = &message;
    let sent_by = |bytes_a_second: usize| {
        let mut stream = connect(&service);
        stream.write_all(head).expect("the server reads");
        let started = Instant::now();
        for bytes in body.chunks(bytes_a_second / 10) {
            if stream.write_all(bytes).is_err() {
                break;
            }
            stream
                .set_read_timeout(Some(Duration::from_millis(100)))
                .expect("a positive time");
            if stream.peek(&mut [0]).is_ok() {
                break;
            }
        }
        stream
            .set_read_timeout(Some(crate::support::TIMEOUT))
            .expect("a positive time");
        let answer = try_read_response(&mut stream, false).expect("an answer");
        (answer.status, started.elapsed())
    };
    thread::scope(|scope| {
        let slow: Vec<_> = (0..20).map(|_| scope.spawn(|| sent_by(1000))).collect();
        let (status, time) = sent_by(5000);
        assert_eq!(status, 400, "12 s on the way, taken in, and no picture");
        assert!(time > Duration::from_secs(11), "{time:?}");
        for slow in slow {
            let (status, time) = slow.join().expect("an answer");
            assert_eq!(status, 408);
            assert!(
                time > Duration::from_secs(9) && time < Duration::from_secs(16),
                "{time:?}"
            );
        }
    });
    bystander.finish("20 bodies that drip", BEARABLE);
}

#[test]
fn bodies_have_a_deadline_however_they_come() {
    let service = Service::start_with(&["--body-timeout", "2"]);
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: a\r\nContent-Type: image/png\r\nTransfer-Encoding: chunked\r\n\r\n",
        service.target(&[])
    );
    let mut stream = connect(&service);
    stream.write_all(head.as_bytes()).expect("the server reads");
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(8) {
        stream
            .set_read_timeout(Some(Duration::from_millis(20)))
            .expect("a positive time");
        if stream
            .write_all(b"100\r\n")
            .and_then(|()| stream.write_all(&[b'x'; 256]))
            .and_then(|()| stream.write_all(b"\r\n"))
            .is_err()
            || stream.peek(&mut [0]).is_ok()
        {
            break;
        }
    }
    let time = started.elapsed();
    stream
        .set_read_timeout(Some(crate::support::TIMEOUT))
        .expect("a positive time");
    let answer = try_read_response(&mut stream, false).expect("an answer");
    assert_eq!(answer.status, 408, "{}", answer.text());
    assert!(
        time > Duration::from_millis(1900) && time < Duration::from_secs(7),
        "{time:?}"
    );
}

#[test]
fn readers_that_do_not_read_are_cut_off_and_hold_up_no_worker() {
    let service = Service::start_with(&["--answer-timeout", "2"]);
    let png = Picture::noise(700, 700).png();
    let request = conversion(&service, &png, "");
    let answer_length = service.convert(&[], "image/png", &png).body.len();
    // This is more than the sockets' buffers hold, which are 4 MB at each end of the loopback.
    let requests = (10 << 20) / answer_length + 1;
    let bystander = Bystander::start(&service);
    let cut = thread::scope(|scope| {
        let deaf: Vec<_> = (0..3)
            .map(|_| {
                let mut stream = connect(&service);
                let request = &request;
                scope.spawn(move || {
                    // Fails once the server has closed.
                    let sent = (0..requests)
                        .map_while(|_| stream.write_all(request).ok())
                        .count();
                    let mut received = 0;
                    let mut portion = vec![0; 64 << 10];
                    thread::sleep(Duration::from_secs(4));
                    while let Ok(count @ 1..) = stream.read(&mut portion) {
                        received += count;
                    }
                    (sent, received)
                })
            })
            .collect();
        deaf.into_iter()
            .map(|deaf| deaf.join().expect("it ends"))
            .collect::<Vec<_>>()
    });
    for (sent, received) in cut {
        assert!(
            received < requests * answer_length,
            "{received} bytes for {sent} requests: it was not cut off"
        );
    }
    bystander.finish("3 clients that do not read", BEARABLE);
}

/// The connection of a request that is answered by a picture, none of which is read. Uploads share
/// the budget as well, so that one may be refused for the sake of others when it is slow, and is
/// sent again.
fn converted(service: &Service, message: &[u8]) -> TcpStream {
    for _ in 0..10 {
        let mut stream = connect(service);
        let sent = stream.write_all(message);
        let mut status = [0; 12];
        while matches!(stream.peek(&mut status), Ok(1..12)) {
            thread::sleep(Duration::from_millis(10));
        }
        if sent.is_ok() && status == *b"HTTP/1.1 200" {
            return stream;
        }
    }
    panic!("10 uploads in a row were refused");
}

#[test]
fn answers_that_nobody_reads_share_the_budget_too() {
    let service = Service::start_with(&["--max-body", "4MiB", "--buffer", "5MiB"]);
    // Gray makes a smaller file, and as large an answer.
    let noise = Picture::noise(2400, 2400);
    let gray = Picture::of(2400, 2400, |x, y| {
        let [sample, ..] = noise.at(x, y);
        [sample, sample, sample, 255]
    });
    let png = gray.png();
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: image/png\r\nContent-Length: {}\r\n\r\n",
        service.target(&[("quality", "100"), ("mode", "lossy")]),
        png.len()
    );
    let message = [head.as_bytes(), &png].concat();
    let deaf: Vec<TcpStream> = (0..6).map(|_| converted(&service, &message)).collect();
    let bystander = Bystander::start(&service);
    thread::sleep(Duration::from_secs(1));
    bystander.finish("6 large answers that nobody reads", BEARABLE);
    let mut cut = 0;
    for mut stream in deaf {
        let mut answer = Vec::new();
        // A connection that was cut off may end in a reset.
        stream.read_to_end(&mut answer).ok();
        let head = String::from_utf8_lossy(&answer[..answer.len().min(1000)]).into_owned();
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        let length = head.split_once("Content-Length: ").expect("a length").1;
        let length: usize = length
            .lines()
            .next()
            .and_then(|text| text.parse().ok())
            .expect("digits");
        cut += usize::from(answer.len() < length);
    }
    println!("{cut} of 6 large answers were cut off");
    assert!((1..6).contains(&cut), "{cut} of 6");
}

#[test]
fn idle_connections_are_closed_in_time_and_busy_ones_kept() {
    let service = Service::start_with(&["--idle-timeout", "2"]);
    let mut silent = connect(&service);
    let mut busy = connect(&service);
    let started = Instant::now();
    for _ in 0..4 {
        busy.write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            .expect("it is open still");
        assert_eq!(
            try_read_response(&mut busy, false)
                .expect("an answer")
                .status,
            200
        );
        thread::sleep(Duration::from_millis(800));
    }
    assert_eq!(read_to_end(&mut silent), "", "closed without a word");
    assert_eq!(read_to_end(&mut busy), "", "closed without a word");
    let time = started.elapsed();
    assert!(
        time > Duration::from_secs(4) && time < Duration::from_secs(9),
        "{time:?}"
    );
}
