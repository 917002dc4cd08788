//! The command line's side: it sends requests to the server if one runs, else it opens the store
//! itself.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::address::{Address, socket_path};
use super::protocol::{AdminRequest, Answer, answer};
use crate::store::{self, Backup, Findings, OpenError, Settings, Store};

/// How long to wait for another command to release the data folder, or for a server that is
/// starting or ending to listen or to release it.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);
/// The time between two attempts meanwhile.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// How long the server may take to answer. It may serve other clients first, each of which may take
/// seconds to send its request.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);

/// How long the server may take to check its whole store, at some hundred thousand rows a second.
const CHECK_TIMEOUT: Duration = Duration::from_mins(10);

/// Gives access to the accounts of one data folder.
pub struct AdminClient(Access<Box<Store>>);

/// How a data folder is reached.
enum Access<T> {
    /// A server runs on this data folder, and requests go to it.
    Server(PathBuf),
    /// No server runs, and this process has the data open.
    Direct(T),
}

impl AdminClient {
    /// Connects to the server of the data folder. Opens the store itself if no server runs, or if
    /// several processes share the store. A server uses its own secret file and ignores that of
    /// `settings`.
    ///
    /// # Errors
    /// A sentence: the store cannot be opened, or it is in use by a process that does not answer.
    pub fn open(settings: &Settings) -> Result<AdminClient, String> {
        if settings.postgres.is_some() {
            // Any number of processes may use it at the same time.
            let store = Store::open(settings).map_err(|error| error.to_string())?;
            return Ok(AdminClient(Access::Direct(Box::new(store))));
        }
        open_data(&settings.data, || Store::open(settings).map(Box::new)).map(AdminClient)
    }

    /// Whether requests go to a running server.
    pub fn is_through_server(&self) -> bool {
        matches!(self.0, Access::Server(_))
    }

    /// Carries out a request.
    ///
    /// # Errors
    /// A sentence for the operator: the request was rejected, or the server gave no answer.
    pub fn send(&self, request: AdminRequest) -> Result<Answer, String> {
        let answer = match &self.0 {
            Access::Direct(store) => answer(store, request),
            Access::Server(data) => exchange(data, &request, ANSWER_TIMEOUT)?.0,
        };
        match answer {
            Answer::Rejected(sentence) => Err(sentence),
            answer => Ok(answer),
        }
    }
}

/// Fills a new database file with everything that the data folder's store holds but sessions, and
/// returns the number of rows. `progress` is called with the number of rows written so far and of
/// all rows.
///
/// # Errors
/// A sentence: the store cannot be read, or the file cannot be written.
pub fn backup(
    data: &Path,
    backup: Backup,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<u64, String> {
    match open_data(data, || store::open_snapshot(data))? {
        Access::Server(data) => match exchange(&data, &AdminRequest::Backup, ANSWER_TIMEOUT)? {
            (Answer::Backup, rows) => store::receive_backup(backup, rows, progress),
            (other, _) => Err(unexpected(other)),
        },
        Access::Direct(snapshot) => store::fill_backup(backup, &*snapshot, progress),
    }
}

/// Checks whether the rows of the data folder's store are consistent. Also returns whether a server
/// did it, since a server cannot compare the pages of the file with their checksums.
///
/// # Errors
/// A sentence: the store cannot be opened.
pub fn check(data: &Path) -> Result<(Findings, bool), String> {
    let path = store::database_path(data);
    match open_data(data, || store::check_file(&path))? {
        Access::Direct(findings) => Ok((findings, false)),
        Access::Server(data) => match exchange(&data, &AdminRequest::Check, CHECK_TIMEOUT)? {
            (Answer::Checked(findings), _) => Ok((findings, true)),
            (other, _) => Err(unexpected(other)),
        },
    }
}

/// Finds the server of the data folder, or calls `open` if no server runs.
fn open_data<T>(data: &Path, open: impl Fn() -> Result<T, OpenError>) -> Result<Access<T>, String> {
    let deadline = Instant::now() + OPEN_TIMEOUT;
    loop {
        if connect(data).is_ok() {
            return Ok(Access::Server(data.to_owned()));
        }
        match open() {
            Ok(opened) => return Ok(Access::Direct(opened)),
            Err(OpenError::InUse(_)) if Instant::now() < deadline => thread::sleep(RETRY_INTERVAL),
            Err(OpenError::InUse(path)) => {
                return Err(format!(
                    "{} is in use by another process, which does not answer at {}",
                    path.display(),
                    socket_path(data).display()
                ));
            }
            Err(OpenError::Failed(sentence)) => return Err(sentence),
        }
    }
}

/// Sends a request; returns the answer and the stream of what follows it.
fn exchange(
    data: &Path,
    request: &AdminRequest,
    timeout: Duration,
) -> Result<(Answer, BufReader<UnixStream>), String> {
    try_exchange(data, request, timeout).map_err(|error| {
        format!(
            "the server at {} gave no answer: {error}",
            socket_path(data).display()
        )
    })
}

fn try_exchange(
    data: &Path,
    request: &AdminRequest,
    timeout: Duration,
) -> io::Result<(Answer, BufReader<UnixStream>)> {
    let mut stream = connect(data)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let (mut answer, mut rest) = (String::new(), BufReader::new(stream));
    rest.read_line(&mut answer)?;
    Ok((serde_json::from_str(&answer)?, rest))
}

fn connect(data: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(Address::of_socket(data)?.path())
}

/// The error of a request that was rejected, or has an answer of another kind.
pub fn unexpected(answer: Answer) -> String {
    match answer {
        Answer::Rejected(sentence) => sentence,
        _ => "the server's answer does not belong to the request".into(),
    }
}
