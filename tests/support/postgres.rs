//! PostgreSQL beside the tests: a server of its own in a temporary folder, on a free port of
//! 127.0.0.1, with TLS and SCRAM, as another user if the tests run as root (PostgreSQL refuses
//! root). A process that watches the test ends the server and removes the folder, however the test
//! ends.
//!
//! The programs are looked for on the PATH and where Debian has them. Without them, a test is
//! skipped (see [`skip`]).

// Benches and tests of the library include this file alone.
#[path = "skip.rs"]
pub mod skip;

use self::skip::skipped;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The role that towebp connects as; it may log in and owns its databases, and no more.
pub const ROLE: &str = "towebp";

/// Its password, with characters that a URL or a shell would not take as they are.
pub const PASSWORD: &str = "sc ram@%/'7";

/// How long PostgreSQL may take to start, to stop and to catch up, on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Waits for the end of its standard input, which only the test holds, and cleans up.
const WATCHER: &str = r#"
trap '' INT TERM HUP
cat >/dev/null
if pid=$(cat "$1/pid" 2>/dev/null); then
    kill -KILL "$pid" $(cat "/proc/$pid/task/$pid/children" 2>/dev/null)
fi 2>/dev/null
umount "$1/data" 2>/dev/null
for wait in 0 0.1 0.5 2; do
    sleep $wait
    rm -rf "$1" 2>/dev/null && break
done
"#;

/// Which certificate a server shows.
#[derive(Clone, Copy, Debug)]
pub enum Certificate {
    /// For 127.0.0.1 and localhost.
    Good,
    /// As good, but it ended yesterday.
    Expired,
    /// For another host.
    OtherHost,
}

/// One server, which may be stopped and started again.
pub struct Postgres {
    home: PathBuf,
    port: u16,
    process: Option<Child>,
    watcher: Child,
    /// Its end is what the watcher waits for.
    held: Option<ChildStdin>,
}

/// A database of its own, and how towebp is told of it.
#[derive(Clone, Debug)]
pub struct Database {
    pub name: String,
    pub url: String,
    pub password_file: PathBuf,
    pub ca: PathBuf,
}

impl Database {
    /// The flags of `towebp` that lead to it.
    pub fn flags(&self) -> Vec<String> {
        let path = |path: &Path| path.to_str().expect("a temporary folder in ASCII").into();
        vec![
            "--store".into(),
            self.url.clone(),
            "--store-password-file".into(),
            path(&self.password_file),
            "--store-ca".into(),
            path(&self.ca),
        ]
    }

    /// The same database behind other addresses, such as those of proxies.
    pub fn behind(&self, ports: &[u16]) -> Database {
        Database {
            url: url(ports, &self.name),
            ..self.clone()
        }
    }
}

/// The server that all tests of this process share; `None` where PostgreSQL is not installed.
pub fn shared() -> Option<&'static Postgres> {
    static SHARED: OnceLock<Option<Postgres>> = OnceLock::new();
    SHARED.get_or_init(Postgres::start).as_ref()
}

impl Postgres {
    /// A new, empty server; `None` where PostgreSQL is not installed.
    pub fn start() -> Option<Postgres> {
        Postgres::start_with(&[])
    }

    /// With these lines of `postgresql.conf`.
    pub fn start_with(settings: &[&str]) -> Option<Postgres> {
        programs()?;
        let mut server = Postgres::prepare(free_port());
        server.initialize(settings);
        server.resume();
        server.create_role();
        Some(server)
    }

    /// As [`Postgres::start`], with the data, but not the log of writes, on a file system of so
    /// many MiB, which [`Postgres::fill_disk`] fills; `None` also where none can be mounted.
    pub fn start_on_small_disk(mib: u32) -> Option<Postgres> {
        programs()?;
        let mut server = Postgres::prepare(free_port());
        let disk = server.home.join("data");
        fs::create_dir(&disk).expect("a new folder");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "tmpfs"])
            .arg(&disk)
            .output();
        if !mounted.is_ok_and(|mounted| mounted.status.success()) {
            // It is the machine's nature, which nothing that can be installed changes.
            skip::report(
                "no file system can be mounted here, so no disk of PostgreSQL became full",
            );
            return None;
        }
        if let Some((user, group)) = other_user() {
            chown(&disk, Some(user), Some(group)).expect("root may");
        }
        server.initialize(&[]);
        server.resume();
        server.create_role();
        Some(server)
    }

    /// Takes all the space of a small disk that is left.
    pub fn fill_disk(&self) {
        let mut file = fs::File::create(self.home.join("data/filling")).expect("a new file");
        while file.write_all(&[1; 4096]).is_ok() {}
    }

    /// Gives that space back.
    pub fn empty_disk(&self) {
        fs::remove_file(self.home.join("data/filling")).expect("it was made before");
    }

    /// A standby that follows this server, which must run. Commits of this server wait for it from
    /// now on, if `synchronous`.
    pub fn standby(&self, synchronous: bool) -> Postgres {
        let mut standby = Postgres::prepare(free_port());
        standby.become_standby(self, synchronous);
        standby
    }

    /// Throws away what this server has, and makes it a standby of that primary.
    pub fn become_standby(&mut self, primary: &Postgres, synchronous: bool) {
        self.kill();
        fs::remove_dir_all(self.data()).ok();
        let port = primary.port.to_string();
        self.tool(
            "pg_basebackup",
            &[
                "--host",
                primary.home_text(),
                "--port",
                &port,
                "--username=postgres",
                "--checkpoint=fast",
                "--wal-method=stream",
                "--no-sync",
                "--write-recovery-conf",
                "--pgdata",
                &self.data(),
            ],
        );
        // What ALTER SYSTEM has set at the primary; the line of pg_basebackup stays.
        let path = self.home.join("data/postgresql.auto.conf");
        let set = fs::read_to_string(&path).expect("pg_basebackup wrote it");
        let kept: Vec<&str> = set
            .lines()
            .filter(|line| !line.starts_with("synchronous"))
            .collect();
        self.write("data/postgresql.auto.conf", &(kept.join("\n") + "\n"));
        self.write_settings(&[]);
        self.resume();
        primary.until("SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'");
        if synchronous {
            primary.set("synchronous_standby_names", "*");
            primary.wait_for_standby();
        }
    }

    /// A new database of the role, with a name of its own.
    pub fn database(&self) -> Database {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("test{}", COUNT.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name} OWNER {ROLE}"));
        self.database_of(&name)
    }

    /// The database of this name.
    pub fn database_of(&self, name: &str) -> Database {
        Database {
            url: url(&[self.port], name),
            name: name.to_owned(),
            password_file: self.home.join("password"),
            ca: self.ca(),
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The certificate of the authority that signed the server's.
    pub fn ca(&self) -> PathBuf {
        self.home.join("ca.crt")
    }

    /// The certificate of another authority.
    pub fn other_ca(&self) -> PathBuf {
        self.home.join("other.crt")
    }

    /// Has the server show this certificate from now on.
    pub fn show(&self, certificate: Certificate) {
        let name = match certificate {
            Certificate::Good => "server",
            Certificate::Expired => "expired",
            Certificate::OtherHost => "elsewhere",
        };
        self.set("ssl_cert_file", &format!("{name}.crt"));
    }

    /// Changes a setting that needs no restart.
    pub fn set(&self, name: &str, value: &str) {
        self.sql("postgres", &format!("ALTER SYSTEM SET {name} = '{value}'"));
        self.sql("postgres", "SELECT pg_reload_conf()");
        // The processes learn of it one after the other.
        self.until(&format!("SELECT current_setting('{name}') = '{value}'"));
    }

    /// Carries out a statement as superuser, on the server's own socket; gives the rows, columns
    /// divided by `|`.
    #[track_caller]
    pub fn sql(&self, database: &str, statement: &str) -> String {
        match self.try_sql(database, statement) {
            Ok(rows) => rows,
            Err(complaint) => panic!("{statement}: {complaint}"),
        }
    }

    /// As [`Postgres::sql`], of a statement that may fail.
    pub fn try_sql(&self, database: &str, statement: &str) -> Result<String, String> {
        let port = self.port.to_string();
        let output = self.try_tool(
            "psql",
            &[
                "--no-psqlrc",
                "--quiet",
                "--tuples-only",
                "--no-align",
                "--set=ON_ERROR_STOP=1",
                "--host",
                self.home_text(),
                "--port",
                &port,
                "--username=postgres",
                "--dbname",
                database,
                "--command",
                statement,
            ],
        );
        if output.status.success() {
            Ok(text(&output.stdout).trim_end().to_owned())
        } else {
            Err(text(&output.stderr))
        }
    }

    /// Waits until this query gives `t`.
    #[track_caller]
    pub fn until(&self, query: &str) {
        let deadline = Instant::now() + TIMEOUT;
        while self.try_sql("postgres", query).as_deref() != Ok("t") {
            assert!(Instant::now() < deadline, "{query}\n{}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Starts it again, and waits until it takes connections.
    #[track_caller]
    pub fn resume(&mut self) {
        self.launch();
        self.wait_until_ready();
    }

    /// Starts it again without waiting.
    pub fn launch(&mut self) {
        self.launch_with(&[]);
    }

    /// As [`Postgres::launch`], with these arguments.
    pub fn launch_with(&mut self, arguments: &[&str]) {
        assert!(self.process.is_none(), "it runs already");
        let mut options = fs::OpenOptions::new();
        let log = options.append(true).create(true);
        let log = log.open(self.home.join("log")).expect("a log");
        let errors = log.try_clone().expect("a second descriptor");
        let child = self
            .command("postgres")
            .args(["-D", &self.data()])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .expect("postgres starts");
        fs::write(self.home.join("pid"), child.id().to_string()).expect("the folder is ours");
        self.process = Some(child);
    }

    /// Waits until it takes connections.
    #[track_caller]
    pub fn wait_until_ready(&mut self) {
        let deadline = Instant::now() + TIMEOUT;
        while self.try_sql("postgres", "SELECT 1").is_err() {
            let process = self.process.as_mut().expect("it was started");
            let ended = process.try_wait().expect("the process can be asked");
            assert!(ended.is_none(), "it ended: {}", self.log());
            assert!(Instant::now() < deadline, "no start: {}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Shuts it down as `pg_ctl stop -m fast` does: it ends its connections, and then itself.
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            signal(process.id(), Signal::INT);
            process.wait().expect("it ends");
            fs::remove_file(self.home.join("pid")).ok();
        }
    }

    /// Kills all of its processes as a power loss does.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            // It must not start another while its children are counted.
            signal(process.id(), Signal::STOP);
            let children = children_of(process.id());
            signal(process.id(), Signal::KILL);
            for child in children {
                signal(child, Signal::KILL);
            }
            process.wait().ok();
            fs::remove_file(self.home.join("pid")).ok();
        }
    }

    /// Stops all of its processes where they are.
    pub fn freeze(&self) {
        self.signal_all(Signal::STOP);
    }

    /// Lets frozen processes go on.
    pub fn thaw(&self) {
        self.signal_all(Signal::CONT);
    }

    /// Waits until a standby follows for which commits wait.
    pub fn wait_for_standby(&self) {
        self.until("SELECT coalesce(bool_or(sync_state = 'sync'), false) FROM pg_stat_replication");
    }

    /// Makes a standby the primary.
    pub fn promote(&self) {
        self.sql("postgres", "SELECT pg_promote(true, 60)");
    }

    pub fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// The end of what it has logged.
    pub fn log(&self) -> String {
        let log = fs::read(self.home.join("log")).unwrap_or_default();
        text(&log[log.len().saturating_sub(4000)..])
    }

    fn prepare(port: u16) -> Postgres {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("towebp-postgres-{}-{number}", std::process::id());
        let home = std::env::temp_dir().join(name);
        fs::create_dir(&home).expect("a new folder in the temporary folder");
        let mut watcher = Command::new("sh")
            .args(["-c", WATCHER, "sh"])
            .arg(&home)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let held = watcher.stdin.take();
        if let Some((user, group)) = other_user() {
            chown(&home, Some(user), Some(group)).expect("root may");
        }
        fs::set_permissions(&home, PermissionsExt::from_mode(0o755)).expect("it is ours");
        Postgres {
            home,
            port,
            process: None,
            watcher,
            held,
        }
    }

    fn create_role(&self) {
        let quoted = PASSWORD.replace('\'', "''");
        self.sql(
            "postgres",
            &format!("CREATE ROLE {ROLE} LOGIN PASSWORD '{quoted}'"),
        );
    }

    /// Makes the files of a new server.
    fn initialize(&self, settings: &[&str]) {
        self.tool(
            "initdb",
            &[
                "--username=postgres",
                "--auth=trust",
                "--encoding=UTF8",
                "--no-locale",
                "--no-sync",
                "--waldir",
                &format!("{}/wal", self.home_text()),
                "--pgdata",
                &self.data(),
            ],
        );
        self.make_certificates();
        // The superuser comes by the socket in its folder alone, and the role by TLS alone.
        self.write(
            "data/pg_hba.conf",
            &format!(
                "local all postgres trust\n\
                 local replication postgres trust\n\
                 hostssl all {ROLE} 127.0.0.1/32 scram-sha-256\n"
            ),
        );
        self.write_settings(settings);
    }

    fn write_settings(&self, settings: &[&str]) {
        let home = self.home_text();
        let common = [
            "listen_addresses = '127.0.0.1'".into(),
            format!("port = {}", self.port),
            format!("unix_socket_directories = '{home}'"),
            "password_encryption = 'scram-sha-256'".into(),
            "ssl = on".into(),
            "max_connections = 200".into(),
            "shared_buffers = 32MB".into(),
            "wal_sender_timeout = 5s".into(),
            // A standby whose primary was away comes back at once, and not after 5 s.
            "wal_retrieve_retry_interval = 200ms".into(),
            // What a killed process has written stays; the machine does not lose its power here.
            "fsync = off".into(),
            "wal_init_zero = off".into(),
            "log_line_prefix = '%m [%p] '".into(),
        ];
        let given = settings.iter().map(|&line| line.to_owned());
        let lines: Vec<String> = common.into_iter().chain(given).collect();
        self.write("own.conf", &lines.join("\n"));
        // A standby has the line from its primary, with another folder.
        let path = self.home.join("data/postgresql.conf");
        let before = fs::read_to_string(&path).expect("initdb or pg_basebackup wrote it");
        let kept = before.lines().filter(|line| !line.contains("own.conf"));
        let kept: Vec<&str> = kept.collect();
        let text = format!("{}\ninclude '{home}/own.conf'\n", kept.join("\n"));
        self.write("data/postgresql.conf", &text);
        let password = self.home.join("password");
        fs::write(&password, format!("{PASSWORD}\n")).expect("the folder is ours");
        fs::set_permissions(&password, PermissionsExt::from_mode(0o600)).expect("it is ours");
        for name in ["ca.crt", "other.crt"] {
            fs::copy(self.home.join("data").join(name), self.home.join(name)).expect("both");
        }
    }

    /// An authority, another one, and the server's certificates, by openssl.
    fn make_certificates(&self) {
        let end = |names: &str| {
            format!(
                "basicConstraints = critical, CA:FALSE\nextendedKeyUsage = serverAuth\n\
                 subjectAltName = {names}\n"
            )
        };
        self.write("data/here.cnf", &end("DNS:localhost, IP:127.0.0.1"));
        self.write("data/elsewhere.cnf", &end("DNS:elsewhere.example.org"));
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
        for name in ["ca", "other"] {
            self.openssl(&format!(
                "req -x509 {key} -keyout {name}.key -out {name}.crt -days 30 -subj /CN={name} \
                 -addext basicConstraints=critical,CA:TRUE \
                 -addext keyUsage=critical,keyCertSign"
            ));
        }
        self.openssl(&format!(
            "req {key} -keyout server.key -out server.csr -subj /CN=server"
        ));
        let sign = |name: &str, names: &str, lasts: &str| {
            self.try_openssl(&format!(
                "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial \
                 -extfile {names}.cnf -out {name}.crt {lasts}"
            ))
        };
        assert!(sign("server", "here", "-days 30"));
        assert!(sign("elsewhere", "elsewhere", "-days 30"));
        // openssl 3.4 knows dates, and may take no negative days any more.
        let dates = "-not_before 20200101000000Z -not_after 20200102000000Z";
        assert!(sign("expired", "here", "-days -1") || sign("expired", "here", dates));
    }

    fn openssl(&self, arguments: &str) {
        assert!(self.try_openssl(arguments), "openssl {arguments}");
    }

    fn try_openssl(&self, arguments: &str) -> bool {
        let output = self
            .command("openssl")
            .args(arguments.split_whitespace())
            .current_dir(self.home.join("data"))
            .output()
            .expect("openssl is installed wherever PostgreSQL is");
        output.status.success()
    }

    fn tool(&self, name: &str, arguments: &[&str]) {
        let output = self.try_tool(name, arguments);
        let complaint = text(&output.stderr);
        assert!(output.status.success(), "{name}: {complaint}");
    }

    fn try_tool(&self, name: &str, arguments: &[&str]) -> Output {
        let mut command = self.command(name);
        let output = command.args(arguments).stdin(Stdio::null()).output();
        output.unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// One of PostgreSQL's programs, or openssl, as the user whose the files are.
    fn command(&self, name: &str) -> Command {
        let folder = programs().expect("it was found before");
        let path = folder.join(name);
        let mut command = Command::new(if path.exists() { path } else { name.into() });
        if let Some((user, group)) = other_user() {
            command.uid(user).gid(group);
        }
        // A password file or a host of whoever runs the tests must not matter.
        for name in [
            "PGHOST",
            "PGPORT",
            "PGUSER",
            "PGDATABASE",
            "PGOPTIONS",
            "PGSERVICE",
        ] {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C").current_dir(&self.home);
        command
    }

    fn write(&self, name: &str, content: &str) {
        let path = self.home.join(name);
        fs::write(&path, content).expect("the folder is there");
        if let Some((user, group)) = other_user() {
            chown(&path, Some(user), Some(group)).expect("root may");
        }
    }

    fn signal_all(&self, what: Signal) {
        if let Some(process) = &self.process {
            signal(process.id(), what);
            for child in children_of(process.id()) {
                signal(child, what);
            }
        }
    }

    fn data(&self) -> String {
        format!("{}/data", self.home_text())
    }

    fn home_text(&self) -> &str {
        self.home.to_str().expect("a temporary folder in ASCII")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill();
        // The watcher removes the folder.
        drop(self.held.take());
        self.watcher.wait().ok();
    }
}

/// The folder of PostgreSQL's programs; without one, says so.
fn programs() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut debian: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
            .into_iter()
            .flatten()
            .flatten()
            .map(|version| version.path().join("bin"))
            .collect();
        debian.sort();
        // The newest version of several.
        let mut folders = debian.into_iter().rev().chain(std::env::split_paths(&path));
        folders.find(|folder| folder.join("initdb").exists() && folder.join("postgres").exists())
    });
    if folder.is_none() {
        skipped("PostgreSQL is not installed, so nothing was run over it (scripts/install-tools)");
    }
    folder.as_deref()
}

/// Whom PostgreSQL runs as if the tests run as root: user and group.
fn other_user() -> Option<(u32, u32)> {
    static USER: OnceLock<Option<(u32, u32)>> = OnceLock::new();
    *USER.get_or_init(|| {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let users = fs::read_to_string("/etc/passwd").expect("it is text");
        let ids = |name: &str| {
            let mut fields = users
                .lines()
                .map(|line| line.split(':').collect::<Vec<_>>());
            let of_name = fields.find(|fields| fields.first() == Some(&name))?;
            Some((of_name.get(2)?.parse().ok()?, of_name.get(3)?.parse().ok()?))
        };
        let found = ids("postgres").or_else(|| ids("nobody"));
        Some(found.expect("a user that is not root"))
    })
}

/// A free port that no connection takes by itself: those come from the range above.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = std::process::id() as u16 % 1000 * 16;
    loop {
        let port = 16_000 + (start + NEXT.fetch_add(1, Ordering::Relaxed)) % 16_000;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

fn url(ports: &[u16], database: &str) -> String {
    let hosts: Vec<String> = ports
        .iter()
        .map(|port| format!("127.0.0.1:{port}"))
        .collect();
    format!("postgres://{ROLE}@{}/{database}", hosts.join(","))
}

/// The processes whose parent is this one.
fn children_of(process: u32) -> Vec<u32> {
    let mut children = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(number) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // The second field, a name in parentheses, may have blanks and parentheses.
        let line = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = line
            .rsplit_once(')')
            .and_then(|(_, fields)| fields.split_whitespace().nth(1)?.parse().ok());
        if parent == Some(process) {
            children.push(number);
        }
    }
    children
}

/// Sends a signal to a process that may have ended.
fn signal(process: u32, what: Signal) {
    let number = i32::try_from(process).expect("Linux has no more processes");
    if let Some(process) = Pid::from_raw(number) {
        kill_process(process, what).ok();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
