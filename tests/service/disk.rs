//! Disks that are full or read-only, under a real server.

use crate::support::command::{run, towebp};
use crate::support::service::{OWNER, Service, Size, send};
use crate::support::skip;
use crate::support::{Folder, Response, Server, TOWEBP, create_account, read_response};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use std::collections::HashMap;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const CLIENTS: usize = 4;

/// For what may take a while on a busy machine.
const SOON: Duration = Duration::from_mins(2);

/// A limit on the size of files is what a full disk is to the database, and needs no rights: it
/// cannot grow, nor write beyond the limit.
#[test]
fn files_that_may_not_grow_refuse_conversions_until_they_may() {
    let server = Server::start_warning(Folder::new(), &[]);
    let token = server.create_account(OWNER);
    let process = i32::try_from(server.process_id()).expect("Linux has no more processes");
    let limit = |bytes| {
        let limit = Rlimit {
            current: bytes,
            maximum: None,
        };
        prlimit(Pid::from_raw(process), Resource::Fsize, limit).expect("it is our own process");
    };
    refuses_and_recovers(
        &Service { server, token },
        || limit(Some(64 << 10)),
        || limit(None),
    );
}

/// The real thing: a file system of its own that another file fills.
#[test]
fn a_full_disk_refuses_conversions_until_there_is_room() {
    let Some(disk) = Disk::new() else { return };
    let server = disk.start();
    let inside = format!("/proc/{}/root{}", server.process_id(), disk.mount());
    let token = create_account(format!("{inside}/data").as_ref(), OWNER);
    let fill = format!("{inside}/filler");
    refuses_and_recovers(
        &Service { server, token },
        || {
            let mut file = std::fs::File::create(&fill).expect("there is room");
            while file.write_all(&[1; 4096]).is_ok() {}
        },
        || std::fs::remove_file(&fill).expect("it was filled"),
    );
}

/// Has clients convert without a break, while the disk fills up and there is room again.
fn refuses_and_recovers(service: &Service, fill: impl FnOnce(), free: impl FnOnce()) {
    let (next, is_over) = (AtomicU32::new(0), AtomicBool::new(false));
    let answers = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    let size = (8 + number % 256, 8 + number / 256);
                    let answer = send(service.address(), &service.message(size));
                    let answer = answer.expect("every request is answered");
                    answers
                        .lock()
                        .expect("nobody panicked")
                        .push((size, answer));
                    thread::sleep(Duration::from_millis(2));
                }
            });
        }
        // A failure ends the clients too.
        let _end = OnDrop(|| is_over.store(true, Ordering::SeqCst));
        let count = |status| {
            let answers = answers.lock().expect("nobody panicked");
            let of_status = |(_, answer): &&(Size, Response)| answer.status == status;
            answers.iter().filter(of_status).count()
        };
        until("conversions", || count(200) >= 40);
        fill();
        until("the first refusal", || count(503) >= 1);
        // Those that were under way have failed by then.
        let refused = count(503);
        until("further refusals", || count(503) >= refused + 40);
        let converted = count(200);
        let ready = service.get("/readyz", &[]);
        assert_eq!(ready.status, 503, "{}", ready.text());
        assert!(ready.problem(503, "not_ready").contains("store"));
        assert_eq!(service.get("/healthz", &[]).status, 200, "it lives");
        refuses_before_the_body(service);
        thread::sleep(Duration::from_secs(2));
        assert_eq!(count(200), converted, "something was converted meanwhile");
        free();
        until("conversions again", || count(200) >= converted + 40);
        assert_eq!(service.get("/readyz", &[]).status, 200);
    });

    let sizes = service.sizes();
    let answers = answers.into_inner().expect("nobody panicked");
    holds_what_was_answered(&sizes, &answers);
    let log = service.server.log();
    for (line, times) in [
        ("the store cannot be written", 1),
        ("the store can be written again", 1),
        ("WARN", 1),
        ("ERROR", 1),
    ] {
        assert_eq!(log.matches(line).count(), times, "{line} in:\n{log}");
    }
}

fn holds_what_was_answered(sizes: &HashMap<Size, usize>, answers: &[(Size, Response)]) {
    for (size, answer) in answers {
        let times = sizes.get(size).copied().unwrap_or(0);
        match answer.status {
            200 => assert_eq!(times, 1, "{size:?} was answered and is there {times} times"),
            503 => {
                answer.problem(503, "storage_unavailable");
                let wait = answer.header("retry-after").expect("it says when");
                assert!(wait.parse::<u64>().is_ok_and(|wait| wait > 0), "{wait}");
                // That of a commit of which the disk took all but the end.
                assert!(times <= 1, "{size:?} is there {times} times");
            }
            other => panic!("{other}: {}", answer.text()),
        }
    }
    let converted = answers.iter().filter(|(_, answer)| answer.status == 200);
    assert!(
        sizes.len() <= converted.count() + CLIENTS,
        "conversions were recorded that were refused"
    );
}

fn refuses_before_the_body(service: &Service) {
    let head = |token: &str| {
        let mut client = service.server.send_raw(format!(
            "POST /convert?token={token} HTTP/1.1\r\nHost: a\r\nContent-Type: image/png\r\nContent-Length: 1000\r\n\
             Expect: 100-continue\r\n\r\n"
        ));
        read_response(&mut client, false)
    };
    head(&service.token).problem(503, "storage_unavailable");
    head("twp_nonsense").problem(401, "token_invalid");
}

#[test]
fn a_folder_on_a_read_only_disk_is_named_at_the_start() {
    let Some(disk) = Disk::new() else { return };
    let mount = disk.mount();
    // One folder with a database, and one without.
    let script = format!(
        "mount -t tmpfs towebp {mount} && mkdir -m 700 {mount}/new && {TOWEBP} account create {OWNER} --data {mount}/data && \
         mount -o remount,ro {mount} && exec {TOWEBP} serve --listen 127.0.0.1:0 --data {mount}/"
    );
    for folder in ["data", "new", "missing"] {
        let said = ended(unshare(&format!("{script}{folder}")));
        let text = String::from_utf8_lossy(&said.stderr);
        assert_eq!(said.status.code(), Some(1), "{text}");
        let expected = format!("the data folder {mount}/{folder} cannot be ");
        assert!(
            text.contains(&expected) && text.contains("Read-only file system"),
            "{text}"
        );
    }
}

#[test]
fn of_two_servers_that_make_a_folder_one_gets_it() {
    for round in 0..5 {
        let folder = Folder::new();
        let data = folder.path.join("data");
        let mut servers = [(); 2].map(|()| {
            towebp()
                .args(["serve", "--listen", "127.0.0.1:0", "--data"])
                .arg(&data)
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .expect("it starts")
        });
        let mut loser = None;
        until("one has given up", || {
            loser = servers
                .iter_mut()
                .position(|server| server.try_wait().expect("it can be asked").is_some());
            loser.is_some()
        });
        let loser = loser.expect("it was found");
        let token = create_account(&data, OWNER);
        assert!(token.starts_with("twp_"), "the other serves");
        let [first, second] = servers;
        let (lost, mut won) = if loser == 0 {
            (first, second)
        } else {
            (second, first)
        };
        let lost = lost.wait_with_output().expect("it has ended");
        let said = String::from_utf8_lossy(&lost.stderr);
        let still_runs = won.try_wait().expect("it can be asked").is_none();
        won.kill().ok();
        won.wait().ok();
        assert!(still_runs, "round {round}: both gave up");
        assert_eq!(lost.status.code(), Some(1), "{said}");
        assert!(
            said.contains("--data") && said.contains(data.to_str().expect("UTF-8")),
            "{said}"
        );
    }
}

#[test]
fn commands_that_make_a_folder_at_once_take_turns() {
    let folder = Folder::new();
    let data = folder.path.join("data");
    let emails: Vec<String> = (0..6).map(|i| format!("{i}@example.org")).collect();
    let tokens: Vec<String> = thread::scope(|scope| {
        let data = &data;
        let create = |email| scope.spawn(move || create_account(data, email));
        let threads: Vec<_> = emails.iter().map(String::as_str).map(create).collect();
        let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
        joined.map(|token| token.expect("it made one")).collect()
    });
    for (email, token) in emails.iter().zip(&tokens) {
        let shown = run(
            towebp()
                .args(["account", "token", email, "--data"])
                .arg(&data),
            b"",
        );
        assert_eq!(
            String::from_utf8_lossy(&shown.stdout).trim(),
            token,
            "one secret for all"
        );
    }
    let checked = run(towebp().arg("check").arg("--data").arg(&data), b"");
    assert_eq!(
        String::from_utf8_lossy(&checked.stdout),
        "6 accounts, 0 sessions, 0 conversions\n"
    );
}

/// A small file system that only a server sees which is started on it.
struct Disk(Folder);

impl Disk {
    /// None, and a word about it, where this user may have no file systems of his own.
    fn new() -> Option<Disk> {
        let disk = Disk(Folder::new());
        std::fs::create_dir(disk.mount()).expect("a new folder");
        let mounted = ended(unshare(&format!("mount -t tmpfs towebp {}", disk.mount())));
        if mounted.status.success() {
            return Some(disk);
        }
        let why = String::from_utf8_lossy(&mounted.stderr);
        skip::report(&format!(
            "no disk became full, because `unshare -Urm` gives no file system of one's own: {why}"
        ));
        None
    }

    /// Where the server sees it; its `--data` is the folder `data` in there.
    fn mount(&self) -> String {
        let path = self.0.path.join("disk");
        path.to_str().expect("UTF-8").to_owned()
    }

    fn start(&self) -> Server {
        let folder = Folder::new();
        // The server is told to use `data` in a folder of the test, which leads to the disk.
        std::os::unix::fs::symlink(format!("{}/data", self.mount()), folder.path.join("data"))
            .expect("a new link");
        let script = format!(
            "mount -t tmpfs -o size=4m towebp {0} && mkdir -m 700 {0}/data && exec \"$0\" \"$@\"",
            self.mount()
        );
        Server::start_warning(folder, &["unshare", "-Urm", "sh", "-c", &script])
    }
}

fn unshare(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["-Urm", "sh", "-c", script]);
    command.env_remove("RUST_LOG");
    command
}

fn ended(mut command: Command) -> Output {
    // Where there is no such program, it cannot be done either.
    command.output().unwrap_or_else(|error| Output {
        status: ExitStatus::from_raw(127 << 8),
        stdout: Vec::new(),
        stderr: error.to_string().into_bytes(),
    })
}

struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[track_caller]
fn until(what: &str, mut it_is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + SOON;
    while !it_is_so() {
        assert!(Instant::now() < deadline, "no {what} within {SOON:?}");
        thread::sleep(Duration::from_millis(5));
    }
}
