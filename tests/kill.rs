//! `kill -9` in the middle of the work: every answered conversion is in the history, none twice.

mod support;

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use support::picture::Picture;
use support::service::{Service, send};

const CLIENTS: usize = 4;
const CONVERSIONS: usize = 200;

/// A request's picture is told from all others by its width and height.
type Size = (u64, u64);

#[test]
fn answered_conversions_survive_kill_9_exactly_once() {
    for answers_before in [10, 100] {
        let service = Service::start();
        let requests = requests(&service);
        let (answered, service) = kill_in_the_middle(service, &requests, answers_before);
        assert!(
            answered.len() < CONVERSIONS,
            "the kill came too late to be a test"
        );

        let times = times_in_history(&service);
        for size in &answered {
            let times = times.get(size).copied().unwrap_or(0);
            assert_eq!(times, 1, "{size:?} was answered and is there {times} times");
        }
        assert!(
            times.values().all(|&times| times == 1),
            "entries are there twice: {times:?}"
        );
        // One of each client may have been recorded when the kill cut off its answer.
        assert!(
            times.len() <= answered.len() + CLIENTS,
            "{} entries for {} answers to {CLIENTS} clients",
            times.len(),
            answered.len()
        );
    }
}

fn requests(service: &Service) -> Vec<(Size, Vec<u8>)> {
    let request = |number: u32| {
        // Large enough that the kill comes long before the last of them.
        let (width, height) = (100 + number % 20, 100 + number / 20);
        let png = Picture::waves(width, height).png();
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: image/png\r\n\
             Content-Length: {}\r\n\r\n",
            service.target(&[]),
            service.address(),
            png.len()
        );
        let size = (u64::from(width), u64::from(height));
        (size, [head.as_bytes(), &png].concat())
    };
    (0..CONVERSIONS as u32).map(request).collect()
}

/// Sends the requests from several clients, kills the server after some answers, and starts it again on its data.
/// Gives what was answered.
fn kill_in_the_middle(
    service: Service,
    requests: &[(Size, Vec<u8>)],
    answers_before: usize,
) -> (Vec<Size>, Service) {
    let next = AtomicUsize::new(0);
    let answered = Mutex::new(Vec::new());
    let address = service.address();
    let client = || {
        while let Some((size, message)) = requests.get(next.fetch_add(1, Ordering::SeqCst)) {
            // After the kill nothing is answered any more.
            let Ok(answer) = send(address, message) else {
                break;
            };
            assert_eq!(answer.status, 200, "{}", answer.text());
            answered.lock().expect("no client panicked").push(*size);
        }
    };
    let Service { server, token } = service;
    let folder = thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(client);
        }
        let started = Instant::now();
        while answered.lock().expect("no client panicked").len() < answers_before {
            assert!(
                started.elapsed() < Duration::from_secs(30),
                "the conversions take too long"
            );
            thread::sleep(Duration::from_millis(1));
        }
        server.kill()
    });
    let answered = answered.into_inner().expect("no client panicked");
    (answered, Service::resume(folder, token))
}

fn times_in_history(service: &Service) -> HashMap<Size, usize> {
    let usage = service.usage();
    let mut times = HashMap::new();
    for entry in usage["entries"].as_array().expect("a list") {
        let side = |name: &str| entry[name].as_u64().expect("a number of pixels");
        *times.entry((side("width"), side("height"))).or_default() += 1;
    }
    times
}
