//! The private side: connections to `tiny_http`, made once at the start and kept.
//!
//! `tiny_http` accepts from a listener only, so for a moment there is a Unix socket in a folder of mode 0700. Once every
//! connection has been answered on, the folder is removed and the listener shut down: `tiny_http`'s accepting thread ends,
//! which it could not survive a lack of descriptors or threads with anyway, and nobody else can ever connect.

use super::admitted::{Admitted, Owner, Pool};
use super::answer::{AnswerReader, NEXT_PART};
use super::blocks::Blocks;
use super::connection::Request;
use super::head::INTERNAL;
use super::held::Share;
use super::slab::Key;
use mio::net::UnixStream;
use std::fmt::{Display, Write as _};
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream as StdUnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A new connection is answered within milliseconds; a machine may be busy.
const TIME_TO_ANSWER: Duration = Duration::from_secs(10);

/// Asked of each new connection. It has none of the door's headers, which every client's request has.
const KNOCK: &[u8] = b"OPTIONS * HTTP/1.1\r\nConnection: keep-alive\r\n\r\n";

/// Where `tiny_http` accepts until all connections are made.
pub struct Hatch {
    folder: PathBuf,
    /// Keeps a short way to the socket open where the folder's path is too long.
    reached_by: PathBuf,
    _folder: File,
    listener: UnixListener,
}

impl Hatch {
    /// Opens it in a new folder of this name inside `data`, which no other process may use at the same time.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn open(data: &Path, name: &str) -> Result<Hatch, String> {
        let folder = data.join(name);
        Hatch::open_in(&folder).map_err(|error| {
            format!(
                "the private socket in {} cannot be made: {error}",
                folder.display()
            )
        })
    }

    fn open_in(folder: &Path) -> io::Result<Hatch> {
        // What a process left behind that was killed just here.
        fs::remove_dir_all(folder).ok();
        DirBuilder::new().mode(0o700).create(folder)?;
        let held = File::open(folder)?;
        let mut reached_by = folder.join("socket");
        // sun_path holds 107 bytes (unix(7)).
        if reached_by.as_os_str().len() > 107 {
            reached_by = PathBuf::from(format!("/proc/self/fd/{}/socket", held.as_raw_fd()));
        }
        let listener = UnixListener::bind(&reached_by)?;
        Ok(Hatch {
            folder: folder.to_owned(),
            reached_by,
            _folder: held,
            listener,
        })
    }

    /// For `tiny_http` to accept from.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn listener(&self) -> Result<UnixListener, String> {
        let listener = self.listener.try_clone();
        listener.map_err(|error| format!("the private socket cannot be shared: {error}"))
    }

    /// Makes this many connections, sees each of them answer, and closes the hatch.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn connect(self, pool: Pool, count: usize) -> Result<Vec<Slot>, String> {
        let slots = (0..count)
            .map(|_| self.connect_one(pool))
            .collect::<io::Result<Vec<Slot>>>();
        let slots = slots.map_err(|error| {
            format!("the HTTP server behind the door did not start (is there a limit on threads?): {error}")
        })?;
        // The only type of the standard library that can shut a Unix socket down.
        let listener = self
            .listener
            .try_clone()
            .map(|listener| StdUnixStream::from(OwnedFd::from(listener)));
        listener
            .and_then(|listener| listener.shutdown(Shutdown::Both))
            .map_err(|error| format!("the private socket cannot be closed: {error}"))?;
        Ok(slots)
    }

    fn connect_one(&self, pool: Pool) -> io::Result<Slot> {
        let mut stream = StdUnixStream::connect(&self.reached_by)?;
        stream.set_read_timeout(Some(TIME_TO_ANSWER))?;
        stream.write_all(KNOCK)?;
        let mut answer = AnswerReader::default();
        let mut bytes = [0; 512];
        loop {
            let count = stream.read(&mut bytes)?;
            let portion = answer.read(&bytes[..count], false);
            match portion {
                Ok(portion) if portion.is_last => break,
                Ok(_) if count > 0 => {}
                _ => return Err(ErrorKind::UnexpectedEof.into()),
            }
        }
        stream.set_nonblocking(true)?;
        Ok(Slot::new(pool, UnixStream::from_std(stream)))
    }
}

impl Drop for Hatch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).ok();
    }
}

/// One connection to `tiny_http`, and so one request at a time.
pub struct Slot {
    stream: UnixStream,
    /// Whose workers it leads to.
    pub pool: Pool,
    /// Whose request it has.
    pub work: Option<Work>,
    /// Memory that it holds, as the budget knows it.
    pub counted: Share,
    /// Whether its connection broke.
    pub is_lost: bool,
}

/// A request on its way through a worker.
pub struct Work {
    /// Who waits for the answer; nobody, once the client is gone.
    pub client: Option<Key>,
    /// Whose request it is.
    pub owner: Owner,
    /// Since when.
    pub since: Instant,
    /// Whether a part of the answer was sent.
    pub begun: bool,
    /// Bytes of the body and beside it, which the worker has until it answers.
    handed: usize,
    /// What was asked for, without its body and its ticket.
    request: Request,
    /// Which part of the answer comes after this one.
    next_part: Option<String>,
    outgoing: Blocks,
    answer: AnswerReader,
    is_answered: bool,
}

/// What came out of a slot.
pub enum Output {
    /// Nothing for now.
    Wait,
    /// So many bytes of an answer, now in the scratch memory.
    Bytes(usize),
    /// The connection cannot be used any more.
    Broken(io::Error),
}

impl Slot {
    fn new(pool: Pool, stream: UnixStream) -> Slot {
        Slot {
            stream,
            pool,
            work: None,
            counted: Share::default(),
            is_lost: false,
        }
    }

    /// Whether it can take a request.
    pub fn is_free(&self) -> bool {
        self.work.is_none() && !self.is_lost
    }

    /// Whether it can take a request for this pool.
    pub fn is_free_for(&self, pool: Pool) -> bool {
        self.pool == pool && self.is_free()
    }

    /// The socket, to be registered.
    pub fn stream(&mut self) -> &mut UnixStream {
        &mut self.stream
    }

    /// Memory that it holds, or has handed to the worker.
    pub fn held(&self) -> Share {
        self.work.as_ref().map_or(Share::default(), |work| {
            let handed = if work.begun { 0 } else { work.handed };
            Share {
                bytes: work.outgoing.held().max(handed),
                owner: Some(work.owner),
            }
        })
    }

    /// Gives it a request; `beside` is how many bytes the worker has of it already, `number` is the slot's own.
    pub fn begin(
        &mut self,
        mut request: Request,
        beside: usize,
        number: usize,
        client: Key,
        now: Instant,
    ) {
        let Request {
            head,
            client: address,
            length,
            part,
            ..
        } = &request;
        let handed = usize::try_from(*length).unwrap_or(usize::MAX);
        let mut text = format!(
            "{} {} HTTP/1.1\r\n{INTERNAL}slot: {number}\r\n{INTERNAL}client: {address}\r\n",
            head.method, head.target
        );
        let mut add = |name: &str, value: &dyn Display| {
            write!(text, "{name}: {value}\r\n").expect("a String takes everything");
        };
        for (name, value) in &head.headers {
            add(name, value);
        }
        if *length > 0 {
            add("content-length", length);
        }
        if let Some(part) = part {
            add(NEXT_PART, part);
        }
        text.push_str("\r\n");
        let body = std::mem::take(&mut request.body);
        self.work = Some(Work {
            client: Some(client),
            owner: request.admitted.owner,
            since: now,
            begun: false,
            handed: handed.saturating_add(beside),
            request,
            next_part: None,
            outgoing: body.behind(text.into_bytes()),
            answer: AnswerReader::default(),
            is_answered: false,
        });
    }

    /// Writes of the request what the socket takes, and reads of the answer what it has.
    pub fn step(&mut self, scratch: &mut [u8]) -> Output {
        if let Some(work) = &mut self.work {
            while !work.outgoing.is_empty() {
                match self.stream.write(work.outgoing.first()) {
                    Ok(count) => work.outgoing.take(count),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Output::Broken(error),
                }
            }
        }
        loop {
            return match self.stream.read(scratch) {
                Ok(0) => Output::Broken(ErrorKind::UnexpectedEof.into()),
                Ok(count) => Output::Bytes(count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => Output::Wait,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => Output::Broken(error),
            };
        }
    }
}

impl Work {
    /// Reads bytes of the answer.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read<'b>(&mut self, bytes: &'b [u8]) -> io::Result<super::answer::Portion<'b>> {
        if self.is_answered {
            return Err(ErrorKind::InvalidData.into());
        }
        let portion = self
            .answer
            .read(bytes, self.request.head.method == "HEAD")
            .map_err(|_| ErrorKind::InvalidData)?;
        self.is_answered = portion.is_last;
        if let Some(head) = &portion.head {
            self.next_part.clone_from(&head.next_part);
        }
        Ok(portion)
    }

    /// The request for the part of the answer after this one, if there is one.
    pub fn next_request(&self) -> Option<Box<Request>> {
        let part = self.next_part.clone()?;
        let Request {
            head,
            client,
            admitted,
            ..
        } = &self.request;
        Some(Box::new(Request {
            head: head.clone(),
            client: *client,
            admitted: Admitted {
                ticket: None,
                ..*admitted
            },
            body: Blocks::default(),
            length: 0,
            part: Some(part),
        }))
    }

    /// Whether the answer was read and the request written to their ends.
    pub fn is_done(&self) -> bool {
        self.is_answered && self.outgoing.is_empty()
    }

    /// Whether the answer was read to its end.
    pub fn is_answered(&self) -> bool {
        self.is_answered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::thread;

    fn folder(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("towebp-hatch-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).expect("a new folder");
        folder
    }

    #[test]
    fn nobody_can_connect_after_the_slots() {
        for name in ["short".to_owned(), "long".repeat(40)] {
            let data = folder(&name);
            let hatch = Hatch::open(&data, "private").expect("a private socket");
            let mode = fs::metadata(&hatch.folder)
                .expect("it is there")
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o700, "its owner alone may enter");
            let server = tiny_http::Server::from_listener(hatch.listener().unwrap(), None).unwrap();
            let worker = thread::spawn(move || {
                for _ in 0..3 {
                    let request = server.recv().expect("a knock");
                    request
                        .respond(tiny_http::Response::empty(204))
                        .expect("it is read");
                }
                assert!(server.recv().is_err(), "the accepting thread has ended");
            });
            let (path, inside) = (hatch.reached_by.clone(), hatch.folder.clone());
            let slots = hatch.connect(Pool::Pages, 3).expect("three connections");
            assert_eq!(slots.len(), 3);
            worker.join().expect("three knocks");
            assert!(!inside.exists(), "nothing is left on disk");
            StdUnixStream::connect(path).expect_err("the socket is gone");
            fs::remove_dir_all(data).ok();
        }
    }
}
