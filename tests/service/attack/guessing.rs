//! Guessed passwords and revoked tokens: what strangers try over and over costs its owners nothing.

use super::{BEARABLE, Bystander, connect};
use crate::support::picture::Picture;
use crate::support::service::Service;
use crate::support::{Response, TOWEBP, try_read_response};
use std::io::Write;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const PASSWORD: &str = "correct horse battery";

#[test]
fn strangers_who_guess_at_an_account_from_everywhere_do_not_stop_its_owner() {
    const STRANGERS: usize = 4;
    const GUESSES: usize = 10;
    let service = Service::start_with(&["--trusted-proxy", "127.0.0.1"]);
    let form = |path: &str, client: &str, cookies: &str, password: &str| {
        service
            .server
            .request("POST", path)
            .header("X-Forwarded-For", client)
            .header("Cookie", cookies)
            .form(&[("email", "victim@example.org"), ("password", password)])
            .send()
    };
    let signed_up = form("/signup", "192.0.2.1", "", PASSWORD);
    assert_eq!(signed_up.status, 303, "{}", signed_up.text());
    let device = device_cookie(&signed_up);
    let bystander = Bystander::start(&service);
    let told_to_wait = AtomicUsize::new(0);
    thread::scope(|scope| {
        for stranger in 0..STRANGERS {
            let (form, told_to_wait) = (&form, &told_to_wait);
            scope.spawn(move || {
                for guess in 0..GUESSES {
                    let client = format!("198.51.100.{}", stranger * GUESSES + guess);
                    match form("/signin", &client, "", "wrong horse").status {
                        400 => {}
                        429 => _ = told_to_wait.fetch_add(1, Ordering::Relaxed),
                        other => panic!("a guess got {other}"),
                    }
                }
            });
        }
        // While they guess, and after it.
        let mut device = device.clone();
        for _ in 0..3 {
            let signed_in = form("/signin", "192.0.2.1", &device, PASSWORD);
            assert_eq!(signed_in.status, 303, "{}", signed_in.text());
            device = device_cookie(&signed_in);
        }
    });
    assert!(
        told_to_wait.load(Ordering::Relaxed) > 0,
        "nobody slows strangers down"
    );
    let signed_in = form("/signin", "192.0.2.1", &device, PASSWORD);
    assert_eq!(signed_in.status, 303, "{}", signed_in.text());
    bystander.finish("guessed passwords", BEARABLE);
}

#[test]
fn floods_of_revoked_tokens_are_refused_unread_while_pages_read_the_disk() {
    const FLOODERS: usize = 4;
    const EACH: usize = 50;
    let service = Service::start();
    let revoked = service.server.create_account("revoked@example.org");
    for _ in 0..20 {
        service.webp(&[], &Picture::waves(8, 8).png());
    }
    let rotated = Command::new(TOWEBP)
        .args(["account", "rotate", "revoked@example.org", "--data"])
        .arg(service.data())
        .output()
        .expect("it starts");
    assert!(rotated.status.success());
    let bystander = Bystander::start(&service);
    thread::scope(|scope| {
        for _ in 0..FLOODERS {
            scope.spawn(|| {
                for _ in 0..EACH {
                    // The body never comes.
                    let mut stream = connect(&service);
                    let head = format!(
                        "POST /convert?token={revoked} HTTP/1.1\r\nHost: a\r\nContent-Type: image/png\r\n\
                         Content-Length: 9999\r\n\r\n"
                    );
                    stream.write_all(head.as_bytes()).expect("it is read");
                    let answer = try_read_response(&mut stream, false).expect("an answer");
                    assert_eq!(answer.status, 401, "{}", answer.text());
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..EACH {
                service.usage();
                assert_eq!(service.get("/healthz", &[]).status, 200);
            }
        });
    });
    bystander.finish("revoked tokens", BEARABLE);
}

fn device_cookie(response: &Response) -> String {
    let set = response.headers.iter();
    let mut values = set.filter_map(|(_, value)| value.split(';').next());
    let device = values.find(|pair| pair.starts_with("towebp_device="));
    device.expect("a device cookie").to_owned()
}
