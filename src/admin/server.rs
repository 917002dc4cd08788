//! The server's side of the socket: one thread, one connection at a time, each with a time limit and a line limit. What
//! takes long has a thread of its own, one at a time.

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
use super::protocol::{Answer, Request, answer};
use crate::store::Store;

/// A request is sent in one go by the command line; who takes longer would keep others waiting.
const TIME_TO_ASK: Duration = Duration::from_secs(2);

/// Those who write a backup wait for their disk now and then. For as long the store keeps what was deleted meanwhile.
const TIME_TO_TAKE: Duration = Duration::from_secs(30);

/// How long the end of the server waits for a backup whose reader waits.
const PAUSE: Duration = Duration::from_millis(100);

/// A password of 1024 bytes, each escaped as `\u00XX`, and an address, with room to spare.
const LONGEST_LINE: usize = 16 * 1024;

/// The open socket. Dropping it ends its thread and removes its file.
pub struct AdminSocket {
    data: PathBuf,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Opens `DIR/admin.sock` and answers there. `store` must be the one of the folder `data`: having it open proves that
/// no other server runs there, so a socket file that exists is a dead one's and is replaced.
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
            // It catches its own panics; if one got past, there is nobody left to tell.
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

/// Made under another name and then renamed: nobody finds it before its mode is set, and a dead one is replaced.
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
            let talked = caught(|| {
                let (mut stream, _) = connection?;
                match read_request(&mut stream)? {
                    None => Ok(()),
                    Some(request) if !request.takes_long() => {
                        send(&mut stream, &answer(store, request))
                    }
                    Some(_) if is_busy.swap(true, Ordering::SeqCst) => {
                        send(&mut stream, &Answer::Refused(BUSY.into()))
                    }
                    Some(request) => {
                        let is_busy = &is_busy;
                        thread::Builder::new()
                            .name("admin-long".into())
                            .spawn_scoped(scope, move || {
                                caught(|| answer_at_length(store, stream, request, ending));
                                is_busy.store(false, Ordering::SeqCst);
                            })
                            .map(drop)
                            .inspect_err(|_| is_busy.store(false, Ordering::SeqCst))
                    }
                }
            });
            if !talked {
                // When descriptors run out, accept fails at once, again and again.
                thread::sleep(Duration::from_millis(50));
            }
        }
    });
}

const BUSY: &str = "another backup or check is under way: try again when it has ended";

/// Whether it went well. A panic, in a damaged database say, ends the one request and not the thread.
fn caught(talk: impl FnOnce() -> io::Result<()>) -> bool {
    let Ok(Err(error)) = catch_unwind(AssertUnwindSafe(talk)) else {
        return true;
    };
    log::warn!("administration socket: {error}");
    false
}

/// `None` if the other side says nothing, or was told that it was not understood.
fn read_request(stream: &mut UnixStream) -> io::Result<Option<Request>> {
    let Some(line) = read_line(stream)? else {
        return Ok(None);
    };
    if let Ok(request) = serde_json::from_slice(&line) {
        return Ok(Some(request));
    }
    // serde's own message could quote a password.
    let refused = Answer::Refused("the request was not understood".into());
    send(stream, &refused).map(|()| None)
}

fn send(stream: &mut UnixStream, answer: &Answer) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    stream.set_write_timeout(Some(TIME_TO_ASK))?;
    stream.write_all(&line)
}

fn answer_at_length(
    store: &Store,
    mut stream: UnixStream,
    request: Request,
    ending: &AtomicBool,
) -> io::Result<()> {
    let answer = answer(store, request);
    send(&mut stream, &answer)?;
    let Answer::Backup = answer else {
        return Ok(());
    };
    stream.set_write_timeout(Some(PAUSE))?;
    let rows = store.snapshot().map_err(io::Error::other)?;
    rows.export(UntilTheEnd { stream, ending })
}

/// Takes no more once the server ends.
struct UntilTheEnd<'a> {
    stream: UnixStream,
    ending: &'a AtomicBool,
}

impl Write for UntilTheEnd<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let deadline = Instant::now() + TIME_TO_TAKE;
        loop {
            if self.ending.load(Ordering::SeqCst) {
                let ends = "a backup broke off, since the server ends";
                return Err(io::Error::other(ends));
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

/// The line without its end; `None` if the other side says nothing, as one does that only looks whether a server runs.
fn read_line(stream: &mut UnixStream) -> io::Result<Option<Vec<u8>>> {
    let deadline = Instant::now() + TIME_TO_ASK;
    let mut line = Vec::new();
    let mut part = [0; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "a request took too long to arrive",
            ));
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part)? {
            0 if line.is_empty() => return Ok(None),
            0 => {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "a request broke off",
                ));
            }
            read => line.extend_from_slice(&part[..read]),
        }
        if let Some(end) = line.iter().position(|byte| *byte == b'\n') {
            line.truncate(end);
            return Ok(Some(line));
        }
        if line.len() > LONGEST_LINE {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a request is too long",
            ));
        }
    }
}
