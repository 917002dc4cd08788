//! Work of some accounts that takes long, and the others beside it.

use crate::support::picture::Picture;
use crate::support::service::{Service, send};
use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

/// What a picture of one pixel can ask for, within the limit of an enlarged one.
const LONG: &str = "&width=2500&height=2500&fit=fill&enlarge=true&mode=lossy&effort=max&target=95";

fn message(token: &str, parameters: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /convert?token={token}{parameters} HTTP/1.1\r\nHost: a\r\nContent-Type: {content_type}\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn is_unanswered(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("TCP has the option");
    let peeked = stream.peek(&mut [0]);
    peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

#[test]
fn as_many_accounts_as_threads_with_long_work_let_another_account_go_on() {
    let service = Service::start_with(&["--threads", "2"]);
    let pixel = Picture::flat(1, 1, [200, 100, 50]).png();
    let greedy: Vec<TcpStream> = ["a@example.org", "b@example.org"]
        .map(|email| service.server.create_account(email))
        .iter()
        .flat_map(|token| [token, token])
        .map(|token| {
            let mut stream = TcpStream::connect(service.address()).expect("it listens");
            let message = message(token, LONG, "image/png", &pixel);
            stream.write_all(&message).expect("the server reads");
            stream
        })
        .collect();
    thread::sleep(Duration::from_millis(300));
    // Not small, so that it does not go before them.
    let bmp = Picture::waves(800, 800).bmp();
    for _ in 0..3 {
        let message = message(&service.token, "", "image/bmp", &bmp);
        let answer = send(service.address(), &message).expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let waiting = greedy.iter().filter(|stream| is_unanswered(stream)).count();
    assert_eq!(waiting, 4, "it waited until others were done");
}

#[test]
fn enlarged_pictures_have_a_limit_of_their_own_where_they_take_long() {
    let service = Service::start_with(&["--max-enlarged-pixels", "100"]);
    let pixel = Picture::flat(1, 1, [200, 100, 50]).png();
    let convert = |width: &str, more: &[(&str, &str)]| {
        let size = [
            ("width", width),
            ("height", "10"),
            ("fit", "fill"),
            ("enlarge", "true"),
        ];
        service.convert(&[&size, more].concat(), "image/png", &pixel)
    };
    let long: [&[(&str, &str)]; 3] = [
        &[("effort", "max")],
        &[("target", "60")],
        &[("max_bytes", "5000")],
    ];
    for more in long {
        let answer = convert("10", more);
        assert_eq!(answer.status, 200, "{more:?}: {}", answer.text());
        let detail = convert("11", more).problem(400, "too_many_pixels");
        let says = "11 x 10 pixels, 110 in all; with target, max_bytes or effort=max an enlarged picture may have at \
                    most 100.";
        assert!(detail.contains(says), "{detail}");
    }
    assert_eq!(convert("11", &[("effort", "high")]).status, 200);
    // A picture that has as many pixels by itself is not enlarged.
    let own = Picture::waves(40, 40).png();
    let answer = service.convert(&[("effort", "max"), ("width", "30")], "image/png", &own);
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn a_file_of_some_bytes_may_not_ask_for_the_largest_picture_at_the_highest_effort() {
    let service = Service::start();
    let pixel = Picture::flat(1, 1, [200, 100, 50]).png();
    let parameters = [
        ("width", "6000"),
        ("height", "6000"),
        ("fit", "fill"),
        ("enlarge", "true"),
        ("effort", "max"),
        ("target", "95"),
    ];
    let detail = service
        .convert(&parameters, "image/png", &pixel)
        .problem(400, "too_many_pixels");
    assert!(detail.contains("at most 8388608"), "{detail}");
}
