//! The clients of `examples/`, each run where its language is installed. Where
//! nothing may be skipped, Python and Node have to be.

use crate::support::picture::Picture;
use crate::support::service::{Service, Webp};
use crate::support::skip;
use crate::support::{Folder, Server};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");

/// A client and what runs it.
struct Client {
    /// The command, before the program's own arguments.
    command: Vec<String>,
    folder: Folder,
}

impl Client {
    /// A client, if `probe` shows that what it needs is installed.
    fn of(probe: &[&str], command: &[&str], program: &str) -> Option<Client> {
        if !skip::succeeds(probe) {
            let what = format!("examples/{program} was not run: {probe:?} fails");
            if ["python3", "node"].contains(&probe[0]) {
                skip::skipped(&what);
            } else {
                skip::report(&what);
            }
            return None;
        }
        let program = format!("{EXAMPLES}/{program}");
        let command = command.iter().copied().chain([&*program]);
        Some(Client {
            command: command.map(str::to_owned).collect(),
            folder: Folder::new(),
        })
    }

    /// Runs it with a picture, `webp` to be written, and these parameters.
    fn run(&self, address: SocketAddr, token: &str, parameters: &[&str]) -> Output {
        let path = |name| self.folder.path.join(name);
        std::fs::write(path("a.png"), picture()).expect("a new file");
        std::fs::remove_file(path("a.webp")).ok();
        Command::new(&self.command[0])
            .args(&self.command[1..])
            .args([path("a.png"), path("a.webp")])
            .args(parameters)
            .env("TOWEBP_URL", format!("http://{address}"))
            .env("TOWEBP_TOKEN", token)
            // The server is on this machine, whatever proxy others go through.
            .envs(["NO_PROXY", "no_proxy"].map(|name| (name, "127.0.0.1")))
            // What languages keep between runs.
            .env("GOCACHE", path("cache"))
            .env("GO111MODULE", "off")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .output()
            .expect("it was there for the probe")
    }

    /// Checks that it converts as a plain request does, says why it cannot, and waits once.
    fn check(&self) {
        let service = Service::start();
        let parameters = [
            ("quality", "60"),
            ("width", "40"),
            ("watermark", "© 1 & 2+3"),
        ];
        let expected = service.webp(&parameters, &picture());
        let arguments = parameters.map(|(name, value)| format!("{name}={value}"));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = self.run(service.address(), &service.token, &arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
        let webp = std::fs::read(self.folder.path.join("a.webp")).expect("it was written");
        let decoded = Picture::decode(&webp);
        assert_eq!((decoded.width, decoded.height), (40, 27));
        assert_eq!(Webp(webp), expected);

        self.assert_fails(
            service.address(),
            "twp_wrong",
            "",
            "The API token is not valid: ",
        );
        let quality = "quality=high";
        let detail = "A parameter cannot be used: Parameter quality: \"high\" was given";
        self.assert_fails(service.address(), &service.token, quality, detail);
        let (busy, requests) = busy_host();
        self.assert_fails(busy, "twp_any", "a=b", "There is too much: Ask later.");
        assert_eq!(requests.load(Ordering::SeqCst), 2, "it waits once");
    }

    #[track_caller]
    fn assert_fails(&self, address: SocketAddr, token: &str, parameter: &str, text: &str) {
        let output = self.run(address, token, &[parameter]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(text), "{said}");
        assert!(
            !said.contains("twp_"),
            "the token is no one's business: {said}"
        );
        assert!(!self.folder.path.join("a.webp").exists());
    }
}

fn picture() -> Vec<u8> {
    Picture::waves(60, 40).png()
}

/// Answers every request with a 429 that asks to wait for no time, and counts them.
fn busy_host() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("accepted");
            read_request(&stream);
            counted.fetch_add(1, Ordering::SeqCst);
            let body = r#"{"title":"There is too much","detail":"Ask later."}"#;
            let head = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0\r\nConnection: close\r\n\
                Content-Type: application/problem+json\r\n";
            let length = body.len();
            write!(stream, "{head}Content-Length: {length}\r\n\r\n{body}").expect("it reads");
        }
    });
    (address, count)
}

/// Reads a request with its body, and gives the request line.
fn read_request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let (mut lines, mut length) = (Vec::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("text");
        let line = line.trim_end().to_owned();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a number");
        }
        lines.push(line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("the whole body");
    lines.into_iter().next().unwrap_or_default()
}

#[test]
fn python_converts() {
    let probe = ["python3", "-c", "import requests"];
    if let Some(client) = Client::of(&probe, &["python3"], "convert.py") {
        client.check();
    }
}

#[test]
fn node_converts() {
    if let Some(client) = Client::of(&["node", "--version"], &["node"], "convert.mjs") {
        client.check();
    }
}

#[test]
fn php_converts() {
    let probe = ["php", "-r", "exit(function_exists('curl_init') ? 0 : 1);"];
    if let Some(client) = Client::of(&probe, &["php"], "convert.php") {
        client.check();
    }
}

#[test]
fn go_converts() {
    let program = format!("{EXAMPLES}/convert.go");
    let Some(mut client) = Client::of(&["go", "version"], &["go"], "convert.go") else {
        return;
    };
    // `go run` gives no code of the program's own.
    let built = client.folder.path.join("convert");
    let output = Command::new("go")
        .args(["build", "-o"])
        .args([&built, Path::new(&program)])
        .env("GOCACHE", client.folder.path.join("cache"))
        .env("GO111MODULE", "off")
        .output()
        .expect("it was there for the probe");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    client.command = vec![built.to_string_lossy().into_owned()];
    client.check();
}

/// Serves the page, with a script that fills in its form, and a picture; gives the page's origin.
fn page_host(server: SocketAddr, token: &str) -> String {
    let page = std::fs::read_to_string(format!("{EXAMPLES}/browser.html")).expect("the page");
    let script = format!(
        r#"<script type="module">
        const form = document.forms[0].elements;
        form.server.value = "http://{server}";
        form.token.value = "{token}";
        form.width.value = "40";
        const files = new DataTransfer();
        const bytes = await (await fetch("/a.png")).arrayBuffer();
        files.items.add(new File([bytes], "a.png", {{ type: "image/png" }}));
        form.file.files = files.files;
        document.forms[0].requestSubmit();
        </script></html>"#
    );
    let page = page.replace("</html>", &script);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("accepted");
            let line = read_request(&stream);
            let (media_type, body) = if line.starts_with("GET /a.png ") {
                ("image/png", picture())
            } else {
                ("text/html", page.clone().into_bytes())
            };
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            // A browser may close a connection that it opened beside another.
            let _ = stream.write_all(&[head.as_bytes(), &body].concat());
        }
    });
    // Another origin than the server's, even if the ports were the same.
    format!("http://localhost:{}", address.port())
}

#[test]
fn a_page_of_another_origin_converts() {
    let known = ["chromium", "chromium-browser", "google-chrome"];
    let is_there = |name: &&&str| skip::succeeds(&[name, "--version"]);
    let Some(chromium) = known.iter().find(is_there) else {
        return skip::skipped("Chromium is not installed, so examples/browser.html was not tried");
    };
    let service = Service::start();
    let expected = service.webp(&[("width", "40")], &picture()).0.len();
    let converted = format!(
        "40 x 27 pixels, {} bytes became {expected}",
        picture().len()
    );
    let server = Server::start_with(&["--allow-origin", "*"]);
    let token = server.create_account("page@example.org");
    for (token, text) in [
        (&*token, &*converted),
        ("twp_wrong", "The API token is not valid: "),
    ] {
        let origin = page_host(server.address, token);
        let folder = Folder::new();
        let output = Command::new(chromium)
            .args(["--headless", "--no-sandbox", "--disable-gpu"])
            .args(["--disable-dev-shm-usage", "--no-proxy-server"])
            .arg(format!("--user-data-dir={}", folder.path.display()))
            .args(["--virtual-time-budget=60000", "--dump-dom", &origin])
            .output()
            .expect("it was there for the probe");
        let page = String::from_utf8_lossy(&output.stdout);
        assert!(page.contains(text), "no {text:?} in {page}");
    }
}
