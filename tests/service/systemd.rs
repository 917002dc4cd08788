//! What a service manager sees, by the protocols of systemd.

use crate::support::command::{run, towebp};
use crate::support::{Folder, TIMEOUT};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A server that is killed at the end, if it has not ended by then.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl Service {
    fn start(command: &mut Command) -> Service {
        Service(command.stdout(Stdio::null()).spawn().expect("it starts"))
    }

    fn signal(&self, signal: Signal) {
        let number = i32::try_from(self.0.id()).expect("Linux has no more processes");
        kill_process(Pid::from_raw(number).expect("it is not 0"), signal).expect("it runs");
    }

    fn end(mut self) {
        self.signal(Signal::TERM);
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.0.try_wait().expect("it can be asked") {
                break status;
            }
            assert!(start.elapsed() < TIMEOUT, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        };
        assert_eq!(status.code(), Some(0), "{status}");
    }
}

fn serve(folder: &Folder, listen: &str) -> Command {
    let mut command = towebp();
    command
        .args(["serve", "--threads", "2", "--listen", listen, "--data"])
        .arg(folder.path.join("data"));
    for name in ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"] {
        command.env_remove(name);
    }
    command
}

fn hear(manager: &UnixDatagram) -> String {
    manager
        .set_read_timeout(Some(TIMEOUT))
        .expect("a positive time");
    let mut bytes = [0; 100];
    let count = manager.recv(&mut bytes).expect("something is told");
    String::from_utf8_lossy(&bytes[..count]).into_owned()
}

fn healthy(address: SocketAddr) -> bool {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream
        .set_read_timeout(Some(TIMEOUT))
        .expect("a positive time");
    write!(
        stream,
        "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    )
    .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer.starts_with("HTTP/1.1 200 ")
}

fn failed(output: &Output, words: &str) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(words), "no {words:?} in {text}");
}

#[test]
fn the_manager_hears_of_the_start_and_the_end() {
    let folder = Folder::new();
    let path = folder.path.join("notify");
    let abstract_name = format!("towebp-test-{}", std::process::id());
    let abstract_address = UnixAddress::from_abstract_name(&abstract_name).expect("a short name");
    for (name, manager) in [
        (path.display().to_string(), UnixDatagram::bind(&path)),
        (
            format!("@{abstract_name}"),
            UnixDatagram::bind_addr(&abstract_address),
        ),
    ] {
        let manager = manager.expect("a new socket");
        let service = Service::start(serve(&folder, "127.0.0.1:0").env("NOTIFY_SOCKET", &name));
        assert_eq!(hear(&manager), "READY=1", "{name}");
        service.signal(Signal::TERM);
        assert_eq!(hear(&manager), "STOPPING=1", "{name}");
    }
}

#[test]
fn the_watchdog_is_fed_if_it_is_for_this_process() {
    let folder = Folder::new();
    let path = folder.path.join("notify");
    let manager = UnixDatagram::bind(&path).expect("a new socket");
    let mut command = serve(&folder, "127.0.0.1:0");
    command
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "400000");
    let service = Service::start(&mut command);
    let told: Vec<String> = (0..4).map(|_| hear(&manager)).collect();
    let feeds = told.iter().filter(|word| *word == "WATCHDOG=1").count();
    assert_eq!(feeds, 3, "{told:?}");
    assert!(told.contains(&"READY=1".to_owned()), "{told:?}");
    drop(service);

    let path = folder.path.join("other");
    let manager = UnixDatagram::bind(&path).expect("a new socket");
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_PID", "1");
    let service = Service::start(&mut command);
    assert_eq!(hear(&manager), "READY=1");
    service.signal(Signal::TERM);
    assert_eq!(hear(&manager), "STOPPING=1", "nobody watches this process");
}

#[test]
fn a_socket_that_the_manager_holds_outlives_the_service() {
    let folder = Folder::new();
    let held = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = held.local_addr().expect("bound");
    let start = || {
        let socket = OwnedFd::from(held.try_clone().expect("a descriptor"));
        Service::start(serve(&folder, "stdin").stdin(socket))
    };
    let first = start();
    assert!(healthy(address));
    first.end();
    // Between the two, the connection waits in the socket.
    let waiting = std::thread::spawn(move || healthy(address));
    let second = start();
    assert!(waiting.join().expect("it is answered"));
    second.end();
}

#[test]
fn what_cannot_be_used_is_named() {
    let folder = Folder::new();
    let nothing = folder.path.join("nothing");
    let mut command = serve(&folder, "127.0.0.1:0");
    failed(
        &run(command.env("NOTIFY_SOCKET", &nothing), b""),
        "NOTIFY_SOCKET",
    );
    failed(
        &run(&mut serve(&folder, "stdin"), b""),
        "--listen stdin: standard input is no listening TCP socket",
    );
    for micros in ["0", "soon"] {
        let mut command = serve(&folder, "127.0.0.1:0");
        failed(
            &run(command.env("WATCHDOG_USEC", micros), b""),
            "WATCHDOG_USEC",
        );
    }
}
