//! The servers under load: towebp's binaries, and the peer in Node.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// How a server is started.
#[derive(Clone, Debug)]
pub enum Program {
    /// A binary of towebp.
    Towebp(PathBuf),
    /// The folder in which the packages of `benches/service/peer` are installed, and the peer's
    /// numbers of threads.
    Peer {
        folder: PathBuf,
        concurrency: u32,
        pool: u32,
    },
}

/// A running server with its temporary folder; both end with the value.
pub struct Server {
    pub name: String,
    pub address: SocketAddr,
    process: Child,
    folder: PathBuf,
    /// One for each account; empty for the peer, which has none.
    tokens: Vec<String>,
}

impl Server {
    /// Starts it, with this many accounts.
    pub fn start(program: &Program, accounts: usize) -> Server {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "towebp-bench-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let folder = std::env::temp_dir().join(name);
        let mut command = match program {
            Program::Towebp(binary) => {
                let mut command = Command::new(binary);
                command.args(["serve", "--listen", "127.0.0.1:0", "--data"]);
                command.arg(&folder);
                command
            }
            Program::Peer {
                folder,
                concurrency,
                pool,
            } => {
                let mut command = Command::new("node");
                command
                    .arg(folder.join("server.mjs"))
                    .env("NODE_ENV", "production")
                    .env("SHARP_CONCURRENCY", concurrency.to_string())
                    .env("UV_THREADPOOL_SIZE", pool.to_string());
                command
            }
        };
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{program:?} does not start: {error}"));
        let output = process.stdout.take().expect("its output is piped");
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        let address = lines
            .find_map(|line| line.rsplit_once("http://")?.1.parse().ok())
            .unwrap_or_else(|| panic!("{program:?} does not say where it listens"));
        // Read on, so that the server never waits for a full pipe.
        thread::spawn(move || lines.for_each(drop));
        let (name, tokens) = match program {
            Program::Towebp(binary) => {
                let tokens = (0..accounts).map(|number| create_account(binary, &folder, number));
                (short_name(binary), tokens.collect())
            }
            Program::Peer {
                concurrency, pool, ..
            } => (format!("sharp {concurrency}/{pool}"), Vec::new()),
        };
        Server {
            name,
            address,
            process,
            folder,
            tokens,
        }
    }

    /// The token of an account; `None` for the peer.
    pub fn token(&self, account: usize) -> Option<&str> {
        self.tokens.get(account).map(String::as_str)
    }

    /// Seconds of CPU time so far: user and system of proc(5), which are in hundredths on Linux.
    pub fn cpu_seconds(&self) -> f64 {
        let stat = fs::read_to_string(self.proc("stat")).unwrap_or_default();
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let ticks = fields.split_whitespace().skip(11).take(2);
        ticks
            .filter_map(|ticks| ticks.parse::<f64>().ok())
            .sum::<f64>()
            / 100.0
    }

    /// A line of `/proc/PID/status` in MiB; NaN where there is none.
    pub fn memory_mib(&self, name: &str) -> f64 {
        let status = fs::read_to_string(self.proc("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok())
            .map_or(f64::NAN, |kib| kib / 1024.0)
    }

    /// Has the peak of resident memory (`VmHWM:`) begin anew.
    pub fn reset_peak(&self) {
        fs::write(self.proc("clear_refs"), "5").ok();
    }

    fn proc(&self, file: &str) -> String {
        format!("/proc/{}/{file}", self.process.id())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
        fs::remove_dir_all(&self.folder).ok();
    }
}

fn create_account(binary: &Path, data: &Path, number: usize) -> String {
    let output = Command::new(binary)
        .args(["account", "create", &format!("owner{number}@example.org")])
        .arg("--data")
        .arg(data)
        .output()
        .expect("the binary starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "account create: {told}");
    String::from_utf8(output.stdout)
        .expect("a token in ASCII")
        .trim()
        .to_owned()
}

/// The last two parts of a path that tell binaries apart.
fn short_name(binary: &Path) -> String {
    let mut parts: Vec<_> = binary.iter().rev().take(2).collect();
    parts.reverse();
    let parts: Vec<_> = parts.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}
