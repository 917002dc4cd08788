//! The servers under load: towebp's binaries, and the peer in Node.

use crate::postgres::Postgres;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// What replicas share. It syncs its commits, as the engine with a file does.
static DATABASE: OnceLock<Option<Postgres>> = OnceLock::new();

/// How a server is started.
#[derive(Clone, Debug)]
pub enum Program {
    /// A binary of towebp, with so many threads, if not as many as there are cores.
    Towebp(PathBuf, Option<u32>),
    /// So many replicas of a binary over one PostgreSQL, with so many threads each.
    Replicas {
        binary: PathBuf,
        count: u32,
        threads: u32,
    },
    /// The folder in which the packages of `benches/service/peer` are installed, and the peer's
    /// numbers of threads.
    Peer {
        folder: PathBuf,
        concurrency: u32,
        pool: u32,
    },
}

/// A running server, or several that share their data, with its temporary folder; all end with the
/// value.
pub struct Server {
    pub name: String,
    addresses: Vec<SocketAddr>,
    processes: Vec<Child>,
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
        let mut commands = Vec::new();
        // Where the data is, for commands of every kind.
        let mut data = vec!["--data".to_owned(), folder.display().to_string()];
        match program {
            Program::Towebp(binary, threads) => {
                let mut command = serve(binary, &data);
                if let Some(threads) = threads {
                    command.args(["--threads", &threads.to_string()]);
                }
                commands.push(command);
            }
            Program::Replicas {
                binary,
                count,
                threads,
            } => {
                fs::create_dir(&folder).expect("a new folder");
                let secret = folder.join("secret");
                fs::write(&secret, format!("{}\n", "7".repeat(64))).expect("a new file");
                let database = DATABASE.get_or_init(|| Postgres::start_with(&["fsync = on"]));
                let database = database.as_ref().expect("PostgreSQL is installed");
                data = database.database().flags();
                data.extend(["--secret-file".to_owned(), secret.display().to_string()]);
                for number in 0..*count {
                    let mut command = serve(binary, &data);
                    command.arg("--data").arg(folder.join(number.to_string()));
                    command.args(["--threads", &threads.to_string()]);
                    commands.push(command);
                }
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
                commands.push(command);
            }
        }
        let started = commands.iter_mut().map(|command| start(program, command));
        let (processes, addresses) = started.unzip();
        let make_accounts = |binary: &Path| {
            let accounts = (0..accounts).map(|number| create_account(binary, &data, number));
            accounts.collect()
        };
        let (name, tokens) = match program {
            Program::Towebp(binary, threads) => {
                let threads = threads.map_or(String::new(), |threads| format!(" x {threads}"));
                (short_name(binary) + &threads, make_accounts(binary))
            }
            Program::Replicas {
                binary,
                count,
                threads,
            } => (
                format!("{count} x {threads} on PostgreSQL"),
                make_accounts(binary),
            ),
            Program::Peer {
                concurrency, pool, ..
            } => (format!("sharp {concurrency}/{pool}"), Vec::new()),
        };
        Server {
            name,
            addresses,
            processes,
            folder,
            tokens,
        }
    }

    /// Where the client of this number connects to.
    pub fn address(&self, client: usize) -> SocketAddr {
        self.addresses[client % self.addresses.len()]
    }

    /// The token of an account; `None` for the peer.
    pub fn token(&self, account: usize) -> Option<&str> {
        self.tokens.get(account).map(String::as_str)
    }

    /// Seconds of CPU time so far: user and system of proc(5), which are in hundredths on Linux.
    pub fn cpu_seconds(&self) -> f64 {
        let ticks = |process| {
            let stat = fs::read_to_string(proc(process, "stat")).unwrap_or_default();
            let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
            let ticks = fields.split_whitespace().skip(11).take(2);
            ticks
                .filter_map(|ticks| ticks.parse::<f64>().ok())
                .sum::<f64>()
        };
        self.processes.iter().map(ticks).sum::<f64>() / 100.0
    }

    /// A line of `/proc/PID/status` in MiB, of all processes; NaN where there is none.
    pub fn memory_mib(&self, name: &str) -> f64 {
        let memory = |process| {
            let status = fs::read_to_string(proc(process, "status")).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok())
                .map_or(f64::NAN, |kib| kib / 1024.0)
        };
        self.processes.iter().map(memory).sum()
    }

    /// Has the peak of resident memory (`VmHWM:`) begin anew.
    pub fn reset_peak(&self) {
        for process in &self.processes {
            fs::write(proc(process, "clear_refs"), "5").ok();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for process in &mut self.processes {
            process.kill().ok();
            process.wait().ok();
        }
        fs::remove_dir_all(&self.folder).ok();
    }
}

fn proc(process: &Child, file: &str) -> String {
    format!("/proc/{}/{file}", process.id())
}

/// The command of a server on a free port.
fn serve(binary: &Path, data: &[String]) -> Command {
    let mut command = Command::new(binary);
    command
        .args(["serve", "--listen", "127.0.0.1:0"])
        .args(data);
    command
}

/// Starts a server, and waits until it tells where it listens.
fn start(program: &Program, command: &mut Command) -> (Child, SocketAddr) {
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
    (process, address)
}

fn create_account(binary: &Path, data: &[String], number: usize) -> String {
    let output = Command::new(binary)
        .args(["account", "create", &format!("owner{number}@example.org")])
        .args(data)
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
