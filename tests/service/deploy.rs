//! The files of `deploy/`: nginx and Caddy run with them, where they are installed, and the metrics
//! that alerts and the board ask for are those of a server. Where nothing may be skipped, both
//! proxies, curl and openssl have to be installed. `scripts/check-deploy` has what other programs
//! say of the files.

use crate::support::picture::Picture;
use crate::support::service::{OWNER, Service, Webp};
use crate::support::skip::{self, skipped};
use crate::support::{Folder, Server, TIMEOUT, until};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy");

/// The name in the files.
const HOST: &str = "webp.example.org";

/// What the server behind a proxy is started with, as the guides have it, and `--max-body`, which
/// the tests exceed.
const FLAGS: [&str; 6] = [
    "--trusted-proxy",
    "127.0.0.1",
    "--public-url",
    "https://webp.example.org",
    "--max-body",
    "12MiB",
];

/// A proxy in front of a server.
struct Proxy {
    service: Service,
    process: Child,
    port: u16,
    folder: Folder,
    /// The certificate by which clients know it.
    certificate: PathBuf,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// What curl was answered.
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Proxy {
    /// Starts `command` in `folder`, which serves `port` by TLS, and waits until it does.
    fn start(
        service: Service,
        folder: Folder,
        port: u16,
        certificate: &str,
        command: &mut Command,
    ) -> Proxy {
        let log = std::fs::File::create(folder.path.join("errors")).expect("a new file");
        let process = command
            .current_dir(&folder.path)
            .env("HOME", &folder.path)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("it was there for the probe");
        let certificate = folder.path.join(certificate);
        let mut proxy = Proxy {
            service,
            process,
            port,
            folder,
            certificate,
        };
        let deadline = Instant::now() + TIMEOUT;
        while TcpStream::connect(("127.0.0.1", port)).is_err() || !proxy.certificate.exists() {
            let ended = proxy.process.try_wait().expect("it can be asked");
            let is_late = Instant::now() > deadline;
            assert!(
                ended.is_none() && !is_late,
                "{ended:?}: {}",
                proxy.file("errors")
            );
            thread::sleep(Duration::from_millis(20));
        }
        proxy
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path.join(name)).unwrap_or_default()
    }

    /// Asks the proxy from the address 127.0.0.2, with a forged `X-Forwarded-For`.
    fn curl(&self, target: &str, arguments: &[&str], body: &[u8]) -> Answer {
        self.try_curl(target, arguments, body)
            .unwrap_or_else(|said| panic!("{target}: {said}"))
    }

    /// The same for a body that is rejected before it is read. Caddy closes the connection half a
    /// second after such an answer, as Go's servers do, and if its client is still sending then,
    /// the answer may be cut short: so it is asked for again.
    fn rejection(&self, arguments: &[&str], body: &[u8]) -> Answer {
        let mut said = String::new();
        for _ in 0..10 {
            match self.try_curl("/convert", arguments, body) {
                Ok(answer) => return answer,
                Err(failure) => said = failure,
            }
        }
        panic!("no whole answer, ten times: {said}");
    }

    fn try_curl(&self, target: &str, arguments: &[&str], body: &[u8]) -> Result<Answer, String> {
        let url = format!("https://{HOST}:{}{target}", self.port);
        let resolve = format!("{HOST}:{}:127.0.0.1", self.port);
        let path = |name| self.folder.path.join(name);
        std::fs::write(path("request"), body).expect("a new file");
        std::fs::write(path("head"), "").expect("a new file");
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--noproxy", "*", "--cacert"])
            .arg(&self.certificate)
            .args(["--resolve", &resolve, "--interface", "127.0.0.2"])
            .args([
                "-H",
                "X-Forwarded-For: 203.0.113.9",
                "--write-out",
                "%{http_code}",
            ])
            .args([
                "--data-binary",
                "@request",
                "--output",
                "body",
                "--dump-header",
                "head",
            ])
            .args(arguments)
            .arg(&url)
            .current_dir(&self.folder.path)
            .output()
            .expect("it was there for the probe");
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let status = String::from_utf8_lossy(&output.stdout).parse();
        Ok(Answer {
            status: status.expect("three digits"),
            head: self.file("head").to_ascii_lowercase(),
            body: std::fs::read(path("body")).unwrap_or_default(),
        })
    }

    /// All that a proxy has to do.
    fn check(&self, log: &str) {
        let bearer = format!("Authorization: Bearer {}", self.service.token);
        let bmp = ["-H", "Content-Type: image/bmp", "-H", &bearer];
        let picture = Picture::waves(2000, 1750).bmp();
        assert!(picture.len() > 10 << 20, "{}", picture.len());
        let parameters = [("effort", "low"), ("watermark", "© example.org")];
        let expected = self.service.convert(&parameters, "image/bmp", &picture);
        assert_eq!(expected.status, 200, "{}", expected.text());
        let target = self.service.target(&parameters);
        let answer = self.curl(&target, &bmp, &picture);
        assert_eq!(answer.status, 200, "{}", answer.head);
        assert_eq!(
            Webp(answer.body),
            Webp(expected.body),
            "10 MB through the proxy"
        );
        assert!(answer.head.contains("image-width: 2000"), "{}", answer.head);
        assert!(
            answer.head.contains("strict-transport-security: "),
            "{}",
            answer.head
        );
        // The line is written after the answer.
        until(|| self.service.server.log().contains("client=127.0.0.2"));
        let lines = self.service.server.log();
        assert!(!lines.contains("203.0.113.9"), "a forged address: {lines}");

        // Answers that come before the body is read reach the client.
        let large = vec![b'B'; 20 << 20];
        for arguments in [&[][..], &["-H", "Transfer-Encoding: chunked", "--http1.1"]] {
            let answer = self.rejection(&[&bmp, arguments].concat(), &large);
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            assert_eq!(answer.status, 413, "{text}");
            assert!(text.contains("\"body_too_large\""), "{text}");
            let answer = self.rejection(&[&bmp[..2], arguments].concat(), &large);
            assert_eq!(answer.status, 401, "{}", answer.head);
        }

        let origin = format!("Origin: https://{HOST}");
        let form = b"email=other@example.org&password=correct+horse+battery";
        let answer = self.curl("/signup", &["-H", &origin], form);
        assert_eq!(
            answer.status,
            303,
            "{}",
            String::from_utf8_lossy(&answer.body)
        );
        let mut cookies = answer
            .head
            .lines()
            .filter(|line| line.starts_with("set-cookie: "));
        let session = cookies.next().expect("a session begins");
        assert!(
            session.starts_with("set-cookie: __host-towebp_session="),
            "{session}"
        );
        assert!(session.contains("; secure"), "{session}");

        let mut written = String::new();
        let deadline = Instant::now() + TIMEOUT;
        while !written.contains("/signup") {
            assert!(
                Instant::now() < deadline,
                "{log} has no line of /signup: {written}"
            );
            written = self.file(log);
        }
        assert!(written.contains("/convert"), "{written}");
        assert!(!written.contains("twp_"), "a token is in {log}: {written}");
    }
}

/// A server as the guides have it, and its log.
fn service() -> Service {
    let server = Server::start_logging(&FLAGS);
    let token = server.create_account(OWNER);
    Service { server, token }
}

/// Whether these programs are installed; says so if not, and fails if nothing may be skipped.
fn are_installed(probes: &[&[&str]]) -> bool {
    for probe in probes {
        if !skip::succeeds(probe) {
            let program = probe[0];
            skipped(&format!(
                "{program} is not installed, so its file in deploy/ was not tried"
            ));
            return false;
        }
    }
    true
}

/// A file of `deploy/` with other ports and folders; all of them have to be in it.
fn changed(file: &str, changes: &[(&str, String)]) -> String {
    let mut text = std::fs::read_to_string(format!("{DEPLOY}/{file}")).expect(file);
    for (from, to) in changes {
        assert!(text.contains(from), "{file} has no {from:?}");
        text = text.replace(from, to);
    }
    text
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("bound").port()
}

#[test]
fn nginx_passes_everything_on() {
    let probes: [&[&str]; 3] = [
        &["nginx", "-v"],
        &["curl", "--version"],
        &["openssl", "version"],
    ];
    if !are_installed(&probes) {
        return;
    }
    let (service, folder, port, plain) = (service(), Folder::new(), free_port(), free_port());
    // As docs/deploy.md has it.
    let made = Command::new("openssl")
        .args([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "365",
        ])
        .args(["-subj", &format!("/CN={HOST}"), "-addext"])
        .arg(format!("subjectAltName=DNS:{HOST}"))
        .args(["-keyout", "key.pem", "-out", "certificate.pem"])
        .current_dir(&folder.path)
        .output()
        .expect("it was there for the probe");
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let path = folder.path.display().to_string();
    let changes = [
        ("127.0.0.1:8080", service.address().to_string()),
        ("    listen [::]:80;\n", String::new()),
        ("    listen [::]:443 ssl http2;\n", String::new()),
        ("listen 80;", format!("listen 127.0.0.1:{plain};")),
        ("listen 443 ", format!("listen 127.0.0.1:{port} ")),
        ("/etc/ssl/towebp", path.clone()),
        ("/var/log/nginx", path.clone()),
    ];
    let kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let folders = kinds.map(|kind| format!("{kind}_temp_path {path}/{kind};\n"));
    let text = format!(
        "daemon off; pid {path}/pid; error_log stderr;\nevents {{}}\nhttp {{\n{}{}\n}}\n",
        folders.concat(),
        changed("nginx.conf", &changes)
    );
    std::fs::write(folder.path.join("nginx.conf"), text).expect("a new file");
    let mut command = Command::new("nginx");
    command.args(["-p", &path, "-c", &format!("{path}/nginx.conf")]);
    let proxy = Proxy::start(service, folder, port, "certificate.pem", &mut command);
    proxy.check("towebp.log");

    let mut stream = TcpStream::connect(("127.0.0.1", plain)).expect("it listens");
    write!(stream, "GET /docs HTTP/1.0\r\nHost: {HOST}\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    assert!(
        answer.contains(&format!("Location: https://{HOST}/docs")),
        "{answer}"
    );
}

#[test]
fn caddy_passes_everything_on() {
    let probes: [&[&str]; 2] = [&["caddy", "version"], &["curl", "--version"]];
    if !are_installed(&probes) {
        return;
    }
    let (service, folder, port) = (service(), Folder::new(), free_port());
    let path = folder.path.display().to_string();
    let changes = [
        ("127.0.0.1:8080", service.address().to_string()),
        (
            "\nwebp.example.org {\n",
            format!("\nhttps://{HOST}:{port} {{\n\tbind 127.0.0.1\n"),
        ),
        ("# tls internal", "tls internal".to_owned()),
        ("/var/log/caddy", path.clone()),
    ];
    let global = format!(
        "{{\n\tadmin off\n\tskip_install_trust\n\tauto_https disable_redirects\n\tstorage file_system {path}/data\n}}\n"
    );
    let text = global + &changed("Caddyfile", &changes);
    std::fs::write(folder.path.join("Caddyfile"), text).expect("a new file");
    let mut command = Command::new("caddy");
    command.args(["run", "--adapter", "caddyfile", "--config", "Caddyfile"]);
    let certificate = "data/pki/authorities/local/root.crt";
    let proxy = Proxy::start(service, folder, port, certificate, &mut command);
    proxy.check("towebp.log");
}

#[test]
fn alerts_and_the_board_ask_for_metrics_that_a_server_has() {
    let service = Service::start_with(&["--metrics", "127.0.0.1:0"]);
    let output = service.server.output_with("/metrics");
    let address = output.split("Metrics: http://").nth(1).expect("an address");
    let address = address.split('/').next().expect("split gives one");
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "GET /metrics HTTP/1.0\r\nHost: a\r\n\r\n").expect("it reads");
    let mut metrics = String::new();
    stream.read_to_string(&mut metrics).expect("text");
    let known: BTreeSet<&str> = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# HELP ")?.split(' ').next())
        .collect();
    assert!(known.len() > 20, "{known:?}");
    for (file, least) in [("prometheus/alerts.yaml", 9), ("grafana/board.json", 20)] {
        let text = std::fs::read_to_string(format!("{DEPLOY}/{file}")).expect(file);
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let asked: BTreeSet<&str> = words
            .filter(|word| word.starts_with("towebp_") || word.starts_with("process_"))
            .map(|word| word.strip_suffix("_bucket").unwrap_or(word))
            .collect();
        let missing: Vec<_> = asked.difference(&known).collect();
        assert!(
            missing.is_empty(),
            "{file} asks for {missing:?}, which no server has"
        );
        assert!(asked.len() >= least, "{file} asks for {asked:?} alone");
    }
    let board = std::fs::read(format!("{DEPLOY}/grafana/board.json")).expect("the board");
    let board: serde_json::Value = serde_json::from_slice(&board).expect("JSON");
    let panels = board["panels"].as_array().expect("a list");
    let ids: BTreeSet<u64> = panels
        .iter()
        .filter_map(|panel| panel["id"].as_u64())
        .collect();
    assert_eq!(ids.len(), panels.len(), "each panel has an id of its own");
}
