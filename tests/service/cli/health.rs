//! `towebp health`, as supervisors and images call it.

use crate::support::command::{run, towebp};
use crate::support::{Server, TIMEOUT};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Output;
use std::thread;

#[track_caller]
fn ended(output: &Output, code: i32, words: &[&str]) {
    let said = [&output.stdout[..], &output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert_eq!(output.status.code(), Some(code), "{said}");
    for word in words {
        assert!(said.contains(word), "{word} is not in: {said}");
    }
}

fn health(arguments: &[&str]) -> Output {
    run(towebp().arg("health").args(arguments), b"")
}

#[test]
fn a_running_server_is_healthy() {
    let server = Server::start();
    let address = server.address.to_string();
    let url = format!("http://{address}");
    let seconds = TIMEOUT.as_secs().min(300).to_string();
    let timeout = ["--timeout", &seconds];
    let asked = |arguments: &[&str]| health(&[&timeout, arguments].concat());
    ended(&asked(&[&url]), 0, &["/readyz: ready"]);
    ended(&asked(&[&url, "--live"]), 0, &["/healthz: ok"]);
    ended(&asked(&["--listen", &address]), 0, &[&url]);
    // A container's server listens on all addresses.
    let port = server.address.port();
    ended(
        &asked(&["--listen", &format!("0.0.0.0:{port}")]),
        0,
        &[&url],
    );
}

#[test]
fn what_is_not_a_healthy_server_is_told() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", free.local_addr().expect("bound"));
    let answers = thread::spawn({
        let free = free.try_clone().expect("a socket");
        move || {
            for answer in [
                "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n\
                 Content-Length: 29\r\nConnection: close\r\n\r\n{\"detail\":\"The disk is full\"}",
                "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\
                 Connection: close\r\n\r\n",
            ] {
                let (mut client, _) = free.accept().expect("the command connects");
                let mut head = [0; 1024];
                let length = client.read(&mut head).expect("a request");
                assert!(length > 0, "nothing was asked");
                client.write_all(answer.as_bytes()).expect("it is read");
            }
        }
    });
    let long = ["--timeout", "300", &url];
    ended(&health(&long), 1, &["/readyz: 503: The disk is full"]);
    ended(&health(&long), 1, &["302"]);
    answers.join().expect("both were asked");
    // Nobody accepts the connection now.
    ended(&health(&["--timeout", "1", &url]), 1, &["within 1 second"]);
    drop(free);
    ended(&health(&[&url]), 1, &[&url, "refused"]);
}

#[test]
fn a_mistake_is_told_from_a_server_that_is_ill() {
    for (arguments, words) in [
        (&["127.0.0.1:8080"][..], "https://webp.example.org"),
        (&["http://127.0.0.1:1/readyz"], "without a path"),
        (&["--timeout", "0"], "1 to 300"),
        (&["--listen", "stdin"], "--listen stdin"),
        (&["--listen", "127.0.0.1:0"], "port 0"),
    ] {
        ended(&health(arguments), 2, &[words]);
    }
}
