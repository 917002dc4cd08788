//! Clients that keep their connections, and what they measured.

use crate::server::{Api, Server};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A picture that clients send.
pub struct Picture {
    pub name: String,
    /// Where its file is.
    pub file: PathBuf,
    /// The width, and the height if there is one, of the box that it is to fit into.
    fit: Option<(u32, Option<u32>)>,
    media_type: &'static str,
    bytes: Vec<u8>,
}

impl Picture {
    /// Reads a file, whose name may be followed by `@` and the width, or the width and height, of
    /// the box that it is to fit into.
    pub fn read(path: &Path) -> Picture {
        let text = path.to_str().unwrap_or_default();
        let (file, fit) = match text.rsplit_once('@') {
            Some((file, size)) if !path.exists() => (Path::new(file), Some(parse_box(size))),
            _ => (path, None),
        };
        let bytes = std::fs::read(file);
        let bytes = bytes.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let media_type = match bytes.first_chunk() {
            Some(b"\x89PNG") => "image/png",
            Some(b"GIF8") => "image/gif",
            Some([b'B', b'M', ..]) => "image/bmp",
            _ => "image/jpeg",
        };
        let name = path.file_name().map(PathBuf::from).unwrap_or_default();
        Picture {
            name: name.display().to_string(),
            file: file.to_owned(),
            fit,
            media_type,
            bytes,
        }
    }

    /// The name of its file, without its folder.
    pub fn file_name(&self) -> String {
        let name = self.file.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// The whole request for a server.
    fn request(&self, server: &Server, account: usize) -> Vec<u8> {
        let host = server.address(0);
        if server.api == Api::Oximg {
            let (width, height) = self.fit.unwrap_or_default();
            let height = height.unwrap_or(0);
            let file = self.file_name();
            let target = format!("/resize/{width}/{height}/{file}@webp");
            return format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes();
        }
        let query = [
            Some(server.query.clone()),
            self.fit.map(|(width, _)| format!("width={width}")),
            self.fit
                .and_then(|(_, height)| Some(format!("height={}", height?))),
            server.token(account).map(|token| format!("token={token}")),
        ];
        let query = query.into_iter().flatten().collect::<Vec<_>>().join("&");
        let mut request = format!(
            "POST /convert?{query} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n",
            self.media_type,
            self.bytes.len()
        )
        .into_bytes();
        request.extend(&self.bytes);
        request
    }
}

/// The width and height of `512x512`, or the width of `512`.
fn parse_box(text: &str) -> (u32, Option<u32>) {
    let number = |side: &str| {
        side.parse()
            .unwrap_or_else(|_| panic!("@{text}: not WIDTH or WIDTHxHEIGHT"))
    };
    match text.split_once('x') {
        Some((width, height)) => (number(width), Some(number(height))),
        None => (number(text), None),
    }
}

/// One client: sends its requests in turn, each once the one before was answered.
pub struct Client {
    stream: BufReader<TcpStream>,
    requests: Vec<Vec<u8>>,
    next: usize,
}

impl Client {
    /// The client of this number; it begins with the picture of this number.
    pub fn connect(server: &Server, account: usize, pictures: &[&Picture], first: usize) -> Client {
        let stream =
            TcpStream::connect(server.address(first)).expect("the server accepts connections");
        stream.set_nodelay(true).expect("TCP has the option");
        let requests = pictures
            .iter()
            .map(|picture| picture.request(server, account));
        Client {
            stream: BufReader::new(stream),
            requests: requests.collect(),
            next: first,
        }
    }

    /// Sends one picture, and gives how long the answer took, and the answer.
    pub fn convert(&mut self) -> (Duration, Vec<u8>) {
        let request = &self.requests[self.next % self.requests.len()];
        self.next += 1;
        let start = Instant::now();
        self.stream.get_mut().write_all(request).expect("it reads");
        let answer = read_answer(&mut self.stream);
        let answer = answer.unwrap_or_else(|error| panic!("no answer: {error}"));
        (start.elapsed(), answer)
    }
}

/// Reads a 200, and gives its body, which has a Content-Length.
fn read_answer(stream: &mut BufReader<TcpStream>) -> io::Result<Vec<u8>> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let status = line.trim_end().to_owned();
    let mut length = 0;
    loop {
        line.clear();
        if stream.read_line(&mut line)? <= 2 {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = Vec::with_capacity(length as usize);
    stream.take(length).read_to_end(&mut body)?;
    if !status.starts_with("HTTP/1.1 200 ") || body.len() as u64 != length || length == 0 {
        let said = String::from_utf8_lossy(&body[..body.len().min(300)]);
        return Err(io::Error::other(format!("{status}: {said}")));
    }
    Ok(body)
}

/// What clients got of a server in one turn.
pub struct Turn {
    pub requests_per_second: f64,
    pub latencies: Vec<Duration>,
    /// Of the server, for each request.
    pub cpu_milliseconds: f64,
    /// Of the answers, together.
    pub bytes: usize,
}

/// Has this many clients of one account convert the pictures for some time.
pub fn saturate(server: &Server, pictures: &[&Picture], clients: usize, time: Duration) -> Turn {
    let cpu = server.cpu_seconds();
    let done: Vec<(f64, Vec<Duration>, usize)> = thread::scope(|scope| {
        let running: Vec<_> = (0..clients)
            .map(|number| {
                let mut client = Client::connect(server, 0, pictures, number);
                // Clients are far from each other, so that no server can join their requests.
                client.next = number * pictures.len() / clients;
                scope.spawn(move || {
                    let began = Instant::now();
                    let (mut latencies, mut bytes) = (Vec::new(), 0);
                    while began.elapsed() < time {
                        let (latency, answer) = client.convert();
                        latencies.push(latency);
                        bytes += answer.len();
                    }
                    let rate = latencies.len() as f64 / began.elapsed().as_secs_f64();
                    (rate, latencies, bytes)
                })
            })
            .collect();
        let clients = running.into_iter().map(thread::ScopedJoinHandle::join);
        clients
            .map(|done| done.expect("every request is answered"))
            .collect()
    });
    let cpu = server.cpu_seconds() - cpu;
    let requests_per_second = done.iter().map(|(rate, ..)| rate).sum();
    let bytes = done.iter().map(|(.., bytes)| bytes).sum();
    let latencies: Vec<Duration> = done.into_iter().flat_map(|(_, each, _)| each).collect();
    Turn {
        requests_per_second,
        cpu_milliseconds: cpu * 1e3 / latencies.len() as f64,
        latencies,
        bytes,
    }
}

/// What one client of account 0 waits for `picture`, with pauses of `pause`, while for each of
/// `accounts` four clients convert `large` without a pause.
pub fn latencies_beside(
    server: &Server,
    picture: &Picture,
    large: &[&Picture],
    accounts: &[usize],
    (pause, time): (Duration, Duration),
) -> (Vec<Duration>, usize) {
    const LARGE_CLIENTS: usize = 4;
    let is_over = &AtomicBool::new(false);
    thread::scope(|scope| {
        let numbers = accounts
            .iter()
            .flat_map(|account| [*account; LARGE_CLIENTS]);
        let running: Vec<_> = numbers
            .enumerate()
            .map(|(number, account)| {
                let mut client = Client::connect(server, account, large, number);
                scope.spawn(move || {
                    let mut done = 0;
                    while !is_over.load(Ordering::Relaxed) {
                        client.convert();
                        done += usize::from(!is_over.load(Ordering::Relaxed));
                    }
                    done
                })
            })
            .collect();
        if !running.is_empty() {
            thread::sleep(Duration::from_millis(300));
        }
        let mut client = Client::connect(server, 0, &[picture], 0);
        let began = Instant::now();
        let mut latencies = Vec::new();
        while began.elapsed() < time {
            latencies.push(client.convert().0);
            thread::sleep(pause);
        }
        is_over.store(true, Ordering::Relaxed);
        let clients = running.into_iter().map(thread::ScopedJoinHandle::join);
        let large = clients.map(|done| done.expect("every request is answered"));
        (latencies, large.sum())
    })
}
