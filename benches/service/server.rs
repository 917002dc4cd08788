//! The servers under load: towebp's binaries, the peer in Node, and oximg.

use crate::client::Picture;
use crate::postgres::Postgres;
use std::fs;
use std::io::{BufRead, BufReader, Read};
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
    /// A binary of oximg, which reads the pictures from a folder and joins equal requests.
    Oximg(PathBuf),
}

/// How a server is addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// `POST /convert` with the picture as the body.
    Convert,
    /// `GET /resize/WIDTH/HEIGHT/FILE@webp`.
    Oximg,
}

/// A running server, or several that share their data, with its temporary folder; all end with the
/// value.
pub struct Server {
    pub name: String,
    pub api: Api,
    /// The query of each request, without size and token.
    pub query: String,
    addresses: Vec<SocketAddr>,
    processes: Vec<Child>,
    folder: PathBuf,
    /// One for each account; empty for the peer, which has none.
    tokens: Vec<String>,
}

impl Server {
    /// Starts it, with this many accounts, for requests of this query. Oximg takes `quality` from
    /// it, and finds `pictures` in its folder.
    pub fn start(
        (program, query): &(Program, String),
        accounts: usize,
        pictures: &[Picture],
    ) -> Server {
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
            Program::Oximg(binary) => commands.push(oximg(binary, query, pictures, &folder)),
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
            Program::Oximg(_) => ("oximg".to_owned(), Vec::new()),
        };
        Server {
            name: format!("{name} {query}"),
            api: match program {
                Program::Oximg(_) => Api::Oximg,
                _ => Api::Convert,
            },
            query: query.clone(),
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

/// The command of oximg on a free port, with the pictures in its folder.
fn oximg(binary: &Path, query: &str, pictures: &[Picture], folder: &Path) -> Command {
    fs::create_dir(folder).expect("a new folder");
    for picture in pictures {
        let file = folder.join(picture.file_name());
        fs::copy(&picture.file, file).expect("the picture can be copied");
    }
    let quality = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("quality="));
    let mut command = Command::new(binary);
    command
        .env("OXIMG_BIND", "127.0.0.1")
        .env("PORT", "0")
        .env("IMAGES_DIR", folder)
        .env("OXIMG_WEBP_QUALITY", quality.unwrap_or("75"));
    command
}

/// Starts a server, and waits until it prints where it listens.
fn start(program: &Program, command: &mut Command) -> (Child, SocketAddr) {
    command.stdin(Stdio::null());
    let process = match program {
        Program::Oximg(_) => command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn(),
        _ => command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn(),
    };
    let mut process = process.unwrap_or_else(|error| panic!("{program:?} does not start: {error}"));
    let output: Box<dyn Read + Send> = match (process.stdout.take(), process.stderr.take()) {
        (Some(output), _) => Box::new(output),
        (None, errors) => Box::new(errors.expect("one of both is piped")),
    };
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    let address = lines
        .find_map(|line| {
            if let Some((_, address)) = line.rsplit_once("http://") {
                return address.parse().ok();
            }
            let (port, _) = line.strip_prefix("oximg listening on :")?.split_once(' ')?;
            Some(SocketAddr::from(([127, 0, 0, 1], port.parse().ok()?)))
        })
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
