//! What the tests share: the built server on a free port in a folder of its own, a small blocking
//! HTTP client that shows the bytes as they are, and pictures.

#![allow(
    dead_code,
    unused_imports,
    reason = "each test program uses its own part"
)]

pub mod animation;
pub mod command;
pub mod host;
pub mod hostile;
pub mod jpeg;
pub mod picture;
pub mod postgres;
pub mod service;
pub mod store;
pub mod tiff;
pub mod totp;
pub mod wasm;

pub use postgres::skip;

use std::fmt::Write as _;
use std::fs::DirBuilder;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Runs one test of this test program in a process of its own, with these variables in its
/// environment. Returns what it printed.
///
/// # Panics
/// If there is no such test or it fails, with what it wrote.
pub fn in_own_process(test: &str, environment: &[(&str, &str)]) -> String {
    let output = Command::new(std::env::current_exe().expect("this program has a file"))
        .args(["--exact", test, "--nocapture"])
        .envs(environment.iter().copied())
        .output()
        .expect("it starts");
    let [printed, errors] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(
        output.status.success() && printed.contains(" 1 passed;"),
        "{test} with {environment:?}: {}\n{printed}{errors}",
        output.status
    );
    printed
}

/// The built program.
pub const TOWEBP: &str = env!("CARGO_BIN_EXE_towebp");

/// How long an answer may take before the test fails; a conversion in a debug build on a busy
/// machine takes seconds.
pub const TIMEOUT: Duration = Duration::from_mins(1);

/// A folder that is deleted at the end.
pub struct Folder {
    pub path: PathBuf,
}

impl Folder {
    pub fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "towebp-test-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        // A data folder that the umask lets others write would be refused.
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .expect("a new folder in the temporary folder");
        Folder { path }
    }

    fn log(&self) -> Stdio {
        let file = std::fs::File::create(self.path.join("log")).expect("a new file");
        file.into()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.path).ok();
    }
}

/// `towebp serve` on a free port of 127.0.0.1; ends with the value.
pub struct Server {
    pub address: SocketAddr,
    pub folder: Folder,
    process: Child,
    output: Arc<Mutex<String>>,
}

impl Server {
    /// With the default settings, two workers, and private watermark hosts refused.
    pub fn start() -> Server {
        Server::start_with(&[])
    }

    /// With further flags.
    pub fn start_with(flags: &[&str]) -> Server {
        Server::start_in(Folder::new(), flags)
    }

    /// In a folder that may hold the data of a server before.
    pub fn start_in(folder: Folder, flags: &[&str]) -> Server {
        // One line per request would bury what a failed test has to say.
        let filter = std::env::var("RUST_LOG").unwrap_or_else(|_| "warn".to_owned());
        Server::spawn(folder, flags, &filter, Stdio::inherit())
    }

    /// With the log that a user has by default, in a file of the folder: [`Server::log`].
    pub fn start_logging(flags: &[&str]) -> Server {
        let folder = Folder::new();
        let log = folder.log();
        Server::spawn(folder, flags, "", log)
    }

    /// With warnings and errors alone in the log: [`Server::log`]. `launcher` is a command that
    /// takes the server's as its last arguments; none if it is empty.
    pub fn start_warning(folder: Folder, launcher: &[&str]) -> Server {
        let log = folder.log();
        Server::launch(folder, launcher, &[], "warn", log)
    }

    /// In a new folder and with further flags, with warnings and errors alone in the log:
    /// [`Server::log`].
    pub fn start_quietly(flags: &[&str]) -> Server {
        let folder = Folder::new();
        let log = folder.log();
        Server::spawn(folder, flags, "warn", log)
    }

    /// The log so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path.join("log")).expect("the log is UTF-8")
    }

    fn spawn(folder: Folder, flags: &[&str], log_filter: &str, log: Stdio) -> Server {
        Server::launch(folder, &[], flags, log_filter, log)
    }

    fn launch(
        folder: Folder,
        launcher: &[&str],
        flags: &[&str],
        log_filter: &str,
        log: Stdio,
    ) -> Server {
        let threads = if flags.contains(&"--threads") {
            &[][..]
        } else {
            &["--threads", "2"]
        };
        // Replicas of a test's own bring their store.
        let data = folder.path.join("data");
        let store = if flags.contains(&"--store") {
            Vec::new()
        } else {
            store::of_server(&data)
        };
        let words = [launcher, &[TOWEBP]].concat();
        let mut process = Command::new(words[0])
            .args(&words[1..])
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(threads)
            .arg("--data")
            .arg(&data)
            .args(store)
            .args(flags)
            .stderr(log)
            .envs((!log_filter.is_empty()).then_some(("RUST_LOG", log_filter)))
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut lines = BufReader::new(process.stdout.take().expect("its output is piped")).lines();
        let first = lines.next().unwrap_or_else(|| {
            let log = std::fs::read_to_string(folder.path.join("log"));
            panic!(
                "it does not say where it listens: {}",
                log.unwrap_or_default()
            )
        });
        let first = first.expect("in UTF-8");
        let address = first
            .strip_prefix("towebp listens on http://")
            .unwrap_or_else(|| panic!("the first line is {first:?}"))
            .parse()
            .expect("address and port");
        // Read on, so that the server never waits for a full pipe.
        let output = Arc::new(Mutex::new(first));
        let written = Arc::clone(&output);
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let mut written = written
                    .lock()
                    .expect("nobody panics while holding the lock");
                written.push('\n');
                written.push_str(&line);
            }
        });
        Server {
            address,
            folder,
            process,
            output,
        }
    }

    /// Its `--data`.
    pub fn data(&self) -> PathBuf {
        self.folder.path.join("data")
    }

    /// What it has written to standard output, once that contains `text`.
    pub fn output_with(&self, text: &str) -> String {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let output = self
                .output
                .lock()
                .expect("nobody panics while holding the lock")
                .clone();
            if output.contains(text) {
                return output;
            }
            assert!(Instant::now() < deadline, "no {text:?} in {output}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Makes an account by `towebp account create`, beside the running server, and gives its token.
    pub fn create_account(&self, email: &str) -> String {
        create_account(&self.data(), email)
    }

    /// The text of a token, by its number, of the account that is signed in by this cookie: pages
    /// show it by a form alone.
    pub fn token_of(&self, cookie: &str, number: &str) -> String {
        let between = |text: &str, start: &str, end: &str| {
            let (_, rest) = text.split_once(start)?;
            Some(rest.split_once(end)?.0.to_owned())
        };
        let page = self
            .request("GET", "/tokens")
            .header("Cookie", cookie)
            .send();
        let csrf = between(page.text(), "name=\"csrf\" value=\"", "\"").expect("a form");
        let shown = self
            .request("POST", "/token/reveal")
            .header("Cookie", cookie)
            .form(&[("csrf", &csrf), ("token", number)])
            .send();
        let text = between(shown.text(), "<textarea id=\"token\"", "</textarea>");
        let text = text.unwrap_or_else(|| panic!("no token: {}", shown.text()));
        let (_, token) = text.split_once('>').expect("the element has attributes");
        token.to_owned()
    }

    /// A request of this method and target (path and query).
    pub fn request(&self, method: &str, target: &str) -> Request<'_> {
        Request {
            server: self,
            method: method.into(),
            target: target.into(),
            headers: Vec::new(),
            body: None,
        }
    }

    /// Sends the bytes as they are on a new connection, and gives the connection.
    pub fn send_raw(&self, bytes: impl AsRef<[u8]>) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).expect("the server accepts connections");
        stream
            .set_read_timeout(Some(TIMEOUT))
            .expect("a positive time");
        stream.write_all(bytes.as_ref()).expect("the server reads");
        stream
    }

    /// Whether the process runs still.
    pub fn is_alive(&mut self) -> bool {
        self.process
            .try_wait()
            .expect("the process can be asked")
            .is_none()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let number = i32::try_from(self.process.id()).expect("Linux has no more processes");
        let process = rustix::process::Pid::from_raw(number).expect("it is not 0");
        rustix::process::kill_process(process, signal).expect("the process is there still");
    }

    /// How it ended; it has this long to do so.
    #[track_caller]
    pub fn ended_within(&mut self, time: Duration) -> ExitStatus {
        let deadline = Instant::now() + time;
        loop {
            if let Some(status) = self.process.try_wait().expect("the process can be asked") {
                return status;
            }
            assert!(Instant::now() < deadline, "it did not end within {time:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends it without warning, as kill -9 does, and keeps the folder.
    pub fn kill(mut self) -> Folder {
        self.process.kill().ok();
        self.process.wait().ok();
        std::mem::replace(
            &mut self.folder,
            Folder {
                path: PathBuf::new(),
            },
        )
    }

    /// Its process's number.
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Makes an account by `towebp account create`, and gives its token.
pub fn create_account(data: &Path, email: &str) -> String {
    let output = Command::new(TOWEBP)
        .args(["account", "create", email])
        .args(store::flags(data))
        .output()
        .expect("it starts");
    assert!(
        output.status.success(),
        "account create: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout)
        .expect("a token in ASCII")
        .trim()
        .to_owned()
}

/// A request in the making.
pub struct Request<'s> {
    server: &'s Server,
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Request<'_> {
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// With these bytes and their Content-Length.
    pub fn body(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.body = Some(bytes.into());
        self
    }

    /// With these fields as a form.
    pub fn form(self, fields: &[(&str, &str)]) -> Self {
        let body = fields
            .iter()
            .map(|(name, value)| format!("{}={}", encode(name), encode(value)));
        let body = body.collect::<Vec<_>>().join("&");
        self.header("Content-Type", "application/x-www-form-urlencoded")
            .body(body)
    }

    /// Sends it on a connection of its own, and waits for the answer.
    pub fn send(self) -> Response {
        let mut head = format!(
            "{} {} HTTP/1.1\r\nHost: {}\r\n",
            self.method, self.target, self.server.address
        );
        for (name, value) in &self.headers {
            write!(head, "{name}: {value}\r\n").expect("a String takes everything");
        }
        if let Some(body) = &self.body {
            write!(head, "Content-Length: {}\r\n", body.len()).expect("a String takes everything");
        }
        head.push_str("Connection: close\r\n\r\n");
        let mut stream = self.server.send_raw(head);
        // A server that refuses without reading may close before all is sent: the answer counts.
        stream.write_all(&self.body.unwrap_or_default()).ok();
        read_response(&mut stream, self.method == "HEAD")
    }
}

/// An answer.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    /// The status line's phrase.
    pub reason: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    /// The first header of this lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(given, _)| given == name)
            .map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap_or("(bytes that are no text)")
    }

    /// The body, which must be JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in {:?}", self.text()))
    }

    /// The session that the answer starts, as a `Cookie` header's value.
    pub fn session_cookie(&self) -> String {
        let cookie = self
            .header("set-cookie")
            .expect("the answer starts a session");
        cookie
            .split(';')
            .next()
            .expect("split gives at least one")
            .to_owned()
    }
}

/// Reads one answer: head, then as many bytes as Content-Length says.
pub fn read_response(stream: &mut TcpStream, without_body: bool) -> Response {
    try_read_response(stream, without_body).unwrap_or_else(|error| panic!("no answer: {error}"))
}

/// As [`read_response`], of a server that may end before it has answered.
pub fn try_read_response(stream: &mut TcpStream, without_body: bool) -> io::Result<Response> {
    read_from(&mut BufReader::new(stream), without_body)
}

/// As [`try_read_response`], of a connection with further answers to come.
pub fn read_next(reader: &mut impl BufRead) -> io::Result<Response> {
    read_from(reader, false)
}

fn read_from(reader: &mut impl BufRead, without_body: bool) -> io::Result<Response> {
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.strip_suffix("\r\n") {
            Some(line) => Ok(line.to_owned()),
            None => Err(broken(format!("the head ended at {line:?}"))),
        }
    };
    let status_line = line()?;
    let status = status_line.split(' ').nth(1);
    let status = status.and_then(|code| code.parse::<u16>().ok());
    let status = status.ok_or_else(|| broken(format!("no status in {status_line:?}")))?;
    let mut headers = Vec::new();
    loop {
        let header = line()?;
        if header.is_empty() {
            break;
        }
        let named = header.split_once(": ");
        let (name, value) = named.ok_or_else(|| broken(format!("not a header: {header:?}")))?;
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    if status == 100 {
        return read_from(reader, without_body);
    }
    let mut response = Response {
        status,
        reason: status_line
            .splitn(3, ' ')
            .nth(2)
            .unwrap_or_default()
            .to_owned(),
        headers,
        body: Vec::new(),
    };
    if response.header("transfer-encoding") == Some("chunked") && !without_body {
        response.body = read_chunks(reader)?;
    } else if !without_body {
        let length = response
            .header("content-length")
            .and_then(|length| length.parse().ok());
        let length = length.ok_or_else(|| broken(format!("no Content-Length: {response:?}")))?;
        response.body = vec![0; length];
        reader.read_exact(&mut response.body)?;
    }
    Ok(response)
}

/// A chunked body, which must not end before its last chunk.
fn read_chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let size = usize::from_str_radix(line.trim_end(), 16);
        let size = size.map_err(|error| broken(format!("{error}: no chunk's size: {line:?}")))?;
        let start = body.len();
        body.resize(start + size + 2, 0);
        reader.read_exact(&mut body[start..])?;
        if body.split_off(start + size) != b"\r\n" {
            return Err(broken("a chunk has no end".to_owned()));
        }
        if size == 0 {
            return Ok(body);
        }
    }
}

fn broken(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Reads everything until the server closes, for answers that are no HTTP.
pub fn read_all(stream: &mut TcpStream) -> Vec<u8> {
    stream.shutdown(Shutdown::Write).ok();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("the server closes");
    bytes
}

/// Waits until `it_is_so`, for 10 s at most.
#[track_caller]
pub fn until(mut it_is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !it_is_so() {
        assert!(
            Instant::now() < deadline,
            "it did not become so within 10 s"
        );
        thread::sleep(Duration::from_millis(10));
    }
}

/// Encodes a value for a query or a form.
pub fn encode(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
