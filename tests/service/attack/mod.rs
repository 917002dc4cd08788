//! Attacks on the public socket of the built server. While an attack goes on, the conversions of a
//! well-behaved client go on too.

mod accounts;
mod floods;
mod folders;
mod framing;
mod guessing;
mod history;
mod limits;
mod pictures;
mod slow;

use crate::support::TIMEOUT;
use crate::support::picture::Picture;
use crate::support::service::{Service, send};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A client that converts a small picture again and again, each time over a new connection.
struct Bystander {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Duration>>,
}

impl Bystander {
    fn start(service: &Service) -> Bystander {
        let stop = Arc::new(AtomicBool::new(false));
        let address = service.address();
        let request = conversion(
            service,
            &Picture::waves(40, 30).png(),
            "Connection: close\r\n",
        );
        let thread = thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                let mut times = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let started = Instant::now();
                    let answer = send(address, &request).expect("the bystander is answered");
                    assert_eq!(answer.status, 200, "the bystander: {}", answer.text());
                    times.push(started.elapsed());
                    thread::sleep(Duration::from_millis(10));
                }
                times
            }
        });
        Bystander { stop, thread }
    }

    /// Ends the conversions, and asserts that at least one succeeded, none failed, and 99 % of them
    /// took no longer
    /// than `most`.
    #[track_caller]
    fn finish(self, attack: &str, most: Duration) {
        self.stop.store(true, Ordering::Relaxed);
        let mut times = self
            .thread
            .join()
            .expect("the bystander's conversions succeed");
        times.sort();
        let p99 = times[(times.len() * 99 / 100).min(times.len() - 1)];
        println!(
            "{attack}: {} conversions beside it, p99 {p99:.1?}",
            times.len()
        );
        assert!(p99 <= most, "{attack}: p99 {p99:?}");
    }
}

/// On a machine whose cores are shared by several tests.
const BEARABLE: Duration = Duration::from_secs(5);

/// `POST /convert` of a PNG with the account's token.
fn conversion(service: &Service, png: &[u8], headers: &str) -> Vec<u8> {
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: image/png\r\nContent-Length: {}\r\n{headers}\r\n",
        service.target(&[]),
        service.address(),
        png.len()
    );
    [head.as_bytes(), png].concat()
}

fn connect(service: &Service) -> TcpStream {
    let stream = TcpStream::connect(service.address()).expect("the server accepts");
    stream
        .set_read_timeout(Some(TIMEOUT))
        .expect("a positive time");
    stream
        .set_write_timeout(Some(TIMEOUT))
        .expect("a positive time");
    stream
}

/// Sends the bytes, says that nothing more comes, and gives all that is answered. A server that
/// refuses may close before it has read all.
fn exchange(service: &Service, bytes: impl AsRef<[u8]>) -> String {
    let mut stream = connect(service);
    stream.write_all(bytes.as_ref()).ok();
    stream.shutdown(Shutdown::Write).ok();
    read_to_end(&mut stream)
}

/// All until the server closes; a reset counts as an end.
fn read_to_end(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let mut portion = [0; 4096];
        match stream.read(&mut portion) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&portion[..count]),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
            Err(error) => panic!("{error} after {}", String::from_utf8_lossy(&bytes)),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The status codes of all answers in a text.
fn statuses(answers: &str) -> Vec<u16> {
    let heads = answers.match_indices("HTTP/1.1 ");
    heads
        .filter_map(|(at, start)| answers[at + start.len()..].get(..3)?.parse().ok())
        .collect()
}

/// A number of the server's `/proc/PID/status`; sizes in bytes.
fn status_of(service: &Service, name: &str) -> usize {
    let path = format!("/proc/{}/status", service.server.process_id());
    let status = std::fs::read_to_string(path).expect("the server runs");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let value = line
        .unwrap_or_else(|| panic!("no {name} in {status}"))
        .trim();
    match value.strip_suffix(" kB") {
        Some(kibibytes) => kibibytes.parse::<usize>().expect("a number") * 1024,
        None => value.parse().expect("a number"),
    }
}

fn memory(service: &Service) -> usize {
    status_of(service, "VmRSS")
}

/// Threads, without those that help an encoder for a moment.
fn threads(service: &Service) -> usize {
    let folder = format!("/proc/{}/task", service.server.process_id());
    let tasks = std::fs::read_dir(folder).expect("the server runs");
    let names = tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.trim() != "encoder").count()
}

fn descriptors(service: &Service) -> usize {
    let folder = PathBuf::from(format!("/proc/{}/fd", service.server.process_id()));
    std::fs::read_dir(folder).expect("the server runs").count()
}

/// The server has had its first conversions, so that what it allocates once is allocated.
fn warmed_up(flags: &[&str]) -> Service {
    let service = Service::start_with(flags);
    let png = Picture::waves(40, 30).png();
    for _ in 0..10 {
        service.webp(&[], &png);
    }
    service
}
