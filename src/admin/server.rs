//! The server's side of the socket: one thread serves one connection at a time, each with a limit
//! on its time and on the length of its line. A request that takes long gets a thread of its own;
//! only one such request runs at a time.

use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::address::{Address, socket_path};
use super::protocol::{AdminRequest, Answer, answer};
use crate::store::Store;

/// How long a client may take to send its request or to take its answer. The command line sends a
/// request at once, and other clients wait meanwhile.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a client that writes a backup may take no rows, for instance because it waits for its
/// disk. Meanwhile the store keeps the pages of deleted rows.
const BACKUP_TIMEOUT: Duration = Duration::from_secs(30);

/// How often a backup whose client takes no rows looks whether the server is ending.
const STOP_INTERVAL: Duration = Duration::from_millis(100);

/// The most bytes of a request. A password of 1024 bytes, each escaped as `\u00XX`, and an e-mail
/// address need less than half of them.
const MAX_LINE_BYTES: usize = 16 * 1024;

/// The open socket. Dropping it ends its thread and removes its file.
pub struct AdminSocket {
    data: PathBuf,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Opens `DIR/admin.sock` and answers requests there. `store` must be the one of the folder `data`:
/// since it is open here, no other server runs there, so an existing socket file was left behind by
/// a server that has ended, and it is replaced.
///
/// # Errors
/// A sentence: the socket cannot be made.
pub fn serve(store: Arc<Store>, data: &Path) -> Result<AdminSocket, String> {
    let cannot = |error: io::Error| {
        format!(
            "the socket {} cannot be made: {error}",
            socket_path(data).display()
        )
    };
    let listener = listen(data).map_err(cannot)?;
    let ending = Arc::new(AtomicBool::new(false));
    let thread = thread::Builder::new()
        .name("admin".into())
        .spawn({
            let ending = Arc::clone(&ending);
            move || run(&store, &listener, &ending)
        })
        .map_err(cannot)?;
    Ok(AdminSocket {
        data: data.to_owned(),
        ending,
        thread: Some(thread),
    })
}

impl Drop for AdminSocket {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::SeqCst);
        let woken =
            Address::of_socket(&self.data).and_then(|address| UnixStream::connect(address.path()));
        let removed = fs::remove_file(socket_path(&self.data));
        if let Some(thread) = self.thread.take().filter(|_| woken.is_ok()) {
            // The thread catches panics. Nothing can be done about one that it does not catch.
            let _ = thread.join();
        }
        if let Err(error) = removed {
            log::warn!(
                "the socket {} cannot be removed: {error}",
                socket_path(&self.data).display()
            );
        }
    }
}

/// Makes the socket under another name and renames it, so that no client finds it before its mode
/// is set, and so that the file of an earlier server is replaced.
fn listen(data: &Path) -> io::Result<UnixListener> {
    let (draft, socket) = (Address::of_draft(data)?, Address::of_socket(data)?);
    match fs::remove_file(draft.path()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(draft.path())?;
    fs::set_permissions(draft.path(), Permissions::from_mode(0o600))?;
    fs::rename(draft.path(), socket.path())?;
    Ok(listener)
}

fn run(store: &Store, listener: &UnixListener, ending: &AtomicBool) {
    let is_busy = AtomicBool::new(false);
    thread::scope(|scope| {
        loop {
            let connection = listener.accept();
            if ending.load(Ordering::SeqCst) {
                return;
            }
            let served = log_failure(|| {
                let (mut stream, _) = connection?;
                match read_request(&mut stream)? {
                    None => Ok(()),
                    Some(request) if !request.takes_long() => {
                        send(&mut stream, &answer(store, request))
                    }
                    Some(_) if is_busy.swap(true, Ordering::SeqCst) => {
                        send(&mut stream, &Answer::Rejected(BUSY.into()))
                    }
                    Some(request) => {
                        let is_busy = &is_busy;
                        thread::Builder::new()
                            .name("admin-long".into())
                            .spawn_scoped(scope, move || {
                                log_failure(|| answer_long(store, stream, request, ending));
                                is_busy.store(false, Ordering::SeqCst);
                            })
                            .map(drop)
                            .inspect_err(|_| is_busy.store(false, Ordering::SeqCst))
                    }
                }
            });
            if !served {
                // Without free descriptors, `accept` fails at once again and again.
                thread::sleep(Duration::from_millis(50));
            }
        }
    });
}

const BUSY: &str = "another backup or check is under way: try again when it has ended";

/// Logs an error, and returns false then. A panic, for instance at damaged rows, ends only the one
/// request.
fn log_failure(serve: impl FnOnce() -> io::Result<()>) -> bool {
    let Ok(Err(error)) = catch_unwind(AssertUnwindSafe(serve)) else {
        return true;
    };
    log::warn!("administration socket: {error}");
    false
}

/// The request. `None` if the client sent nothing, or sent something else, which was rejected.
fn read_request(stream: &mut UnixStream) -> io::Result<Option<AdminRequest>> {
    let Some(line) = read_line(stream)? else {
        return Ok(None);
    };
    if let Ok(request) = serde_json::from_slice(&line) {
        return Ok(Some(request));
    }
    // The message of serde could quote a password.
    let rejection = Answer::Rejected("the request was not understood".into());
    send(stream, &rejection).map(|()| None)
}

fn send(stream: &mut UnixStream, answer: &Answer) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    stream.set_write_timeout(Some(REQUEST_TIMEOUT))?;
    stream.write_all(&line)
}

fn answer_long(
    store: &Store,
    mut stream: UnixStream,
    request: AdminRequest,
    ending: &AtomicBool,
) -> io::Result<()> {
    let answer = answer(store, request);
    send(&mut stream, &answer)?;
    let Answer::Backup = answer else {
        return Ok(());
    };
    stream.set_write_timeout(Some(STOP_INTERVAL))?;
    let rows = store.snapshot().map_err(io::Error::other)?;
    crate::store::send(&*rows, &mut StoppableStream { stream, ending })
}

/// A stream that fails once the server is ending.
struct StoppableStream<'a> {
    stream: UnixStream,
    ending: &'a AtomicBool,
}

impl Write for StoppableStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let deadline = Instant::now() + BACKUP_TIMEOUT;
        loop {
            if self.ending.load(Ordering::SeqCst) {
                let cause = "a backup was broken off because the server is ending";
                return Err(io::Error::other(cause));
            }
            match self.stream.write(bytes) {
                Err(error)
                    if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < deadline => {}
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// The line without its line feed. `None` if the client sent nothing, because it only finds out
/// whether a server runs.
fn read_line(stream: &mut UnixStream) -> io::Result<Option<Vec<u8>>> {
    let deadline = Instant::now() + REQUEST_TIMEOUT;
    let mut line = Vec::new();
    let mut part = [0; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::other("a request took too long to arrive"));
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part)? {
            0 if line.is_empty() => return Ok(None),
            0 => return Err(io::Error::other("a request broke off")),
            read => line.extend_from_slice(&part[..read]),
        }
        if let Some(end) = line.iter().position(|byte| *byte == b'\n') {
            line.truncate(end);
            return Ok(Some(line));
        }
        if line.len() > MAX_LINE_BYTES {
            return Err(io::Error::other("a request is too long"));
        }
    }
}
