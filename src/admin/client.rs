//! The command line's side: through the server if one runs, else on the store itself.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::address::{Address, socket_path};
use super::protocol::{AccountLine, Answer, Checked, Request, answer};
use crate::store::{self, Backup, OpenError, Settings, Snapshot, Store};

/// How long to wait for another command, or a server that is starting or ending, to leave the data folder or to listen.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(50);

/// How long the server may take to answer: others may be before us, each with seconds to ask.
const TIME_TO_ANSWER: Duration = Duration::from_mins(1);

/// How long the server may take to read its whole store: some hundred thousand rows a second.
const TIME_TO_CHECK: Duration = Duration::from_mins(10);

/// A way to the accounts of one data folder.
pub struct Session(Way<Box<Store>>);

enum Way<T> {
    /// Through the server that runs there.
    Server(PathBuf),
    /// No server runs: it is ours meanwhile.
    Here(T),
}

impl Session {
    /// Finds the server of the data folder, or else opens the store. A server uses its own secret file, whatever
    /// `settings` says.
    ///
    /// # Errors
    /// A sentence: the store cannot be opened, or is in use by a process that does not answer.
    pub fn open(settings: &Settings) -> Result<Session, String> {
        reach(&settings.data, || Store::open(settings).map(Box::new)).map(Session)
    }

    /// Whether a server runs and is asked.
    pub fn is_through_server(&self) -> bool {
        matches!(self.0, Way::Server(_))
    }

    /// Makes an account and returns its token. Without a password it cannot sign in to the dashboard.
    ///
    /// # Errors
    /// A sentence.
    pub fn create(&self, email: &str, password: Option<&str>) -> Result<String, String> {
        self.token_of(Request::Create {
            email: email.to_owned(),
            password: password.map(str::to_owned),
        })
    }

    /// All accounts, oldest first.
    ///
    /// # Errors
    /// A sentence.
    pub fn list(&self) -> Result<Vec<AccountLine>, String> {
        match self.ask(Request::List)? {
            Answer::Accounts(accounts) => Ok(accounts),
            other => Err(unexpected(other)),
        }
    }

    /// Makes an invitation for one account and returns its code.
    ///
    /// # Errors
    /// A sentence.
    pub fn invite(&self) -> Result<String, String> {
        match self.ask(Request::Invite)? {
            Answer::Invite(code) => Ok(code),
            other => Err(unexpected(other)),
        }
    }

    /// The account's present token.
    ///
    /// # Errors
    /// A sentence; also if there is no such account.
    pub fn token(&self, email: &str) -> Result<String, String> {
        self.token_of(Request::Token {
            email: email.to_owned(),
        })
    }

    /// Replaces the account's token and returns the new one; the old one is refused from now on.
    ///
    /// # Errors
    /// A sentence; also if there is no such account.
    pub fn rotate(&self, email: &str) -> Result<String, String> {
        self.token_of(Request::Rotate {
            email: email.to_owned(),
        })
    }

    /// Gives the account a password, whether it had one or not, and ends its sessions.
    ///
    /// # Errors
    /// A sentence; also if the password is too short or too long, or there is no such account.
    pub fn set_password(&self, email: &str, password: &str) -> Result<(), String> {
        match self.ask(Request::Password {
            email: email.to_owned(),
            password: password.to_owned(),
        })? {
            Answer::Changed => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// Deletes the account with its sessions and history.
    ///
    /// # Errors
    /// A sentence; also if there is no such account.
    pub fn delete(&self, email: &str) -> Result<(), String> {
        match self.ask(Request::Delete {
            email: email.to_owned(),
        })? {
            Answer::Deleted => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    fn token_of(&self, request: Request) -> Result<String, String> {
        match self.ask(request)? {
            Answer::Token(token) => Ok(token),
            other => Err(unexpected(other)),
        }
    }

    fn ask(&self, request: Request) -> Result<Answer, String> {
        match &self.0 {
            Way::Here(store) => Ok(answer(store, request)),
            Way::Server(data) => Ok(exchange(data, &request, TIME_TO_ANSWER)?.0),
        }
    }
}

/// Fills a new database file with all that is stored in the data folder but sessions, and gives the number of rows. `progress`
/// is told how many of how many are there.
///
/// # Errors
/// A sentence: the store cannot be read, or the file cannot be written.
pub fn backup(
    data: &Path,
    backup: Backup,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<u64, String> {
    match reach(data, || Snapshot::open(&store::database_path(data)))? {
        Way::Server(data) => match exchange(&data, &Request::Backup, TIME_TO_ANSWER)? {
            (Answer::Backup, rows) => backup.fill(rows, progress),
            (other, _) => Err(unexpected(other)),
        },
        Way::Here(snapshot) => {
            let (ours, theirs) = UnixStream::pair().map_err(|error| error.to_string())?;
            thread::scope(|scope| {
                let export = scope.spawn(move || snapshot.export(theirs));
                let filled = backup.fill(ours, progress);
                match export.join() {
                    Ok(Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => {
                        Err(format!("the store cannot be read to its end: {error}"))
                    }
                    _ => filled,
                }
            })
        }
    }
}

/// Holds all that is stored in the data folder against itself; and whether a server did it, which cannot compare the pages
/// of the file with their checksums meanwhile.
///
/// # Errors
/// A sentence: the store cannot be opened.
pub fn check(data: &Path) -> Result<(Checked, bool), String> {
    let path = store::database_path(data);
    match reach(data, || store::check_file(&path))? {
        Way::Here(findings) => Ok((findings.into(), false)),
        Way::Server(data) => match exchange(&data, &Request::Check, TIME_TO_CHECK)? {
            (Answer::Checked(checked), _) => Ok((checked, true)),
            (other, _) => Err(unexpected(other)),
        },
    }
}

/// Finds the server of the data folder, or else opens what is there itself.
fn reach<T>(data: &Path, open: impl Fn() -> Result<T, OpenError>) -> Result<Way<T>, String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if connect(data).is_ok() {
            return Ok(Way::Server(data.to_owned()));
        }
        match open() {
            Ok(opened) => return Ok(Way::Here(opened)),
            Err(OpenError::InUse(_)) if Instant::now() < deadline => thread::sleep(PAUSE),
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

/// The answer, and what follows it.
fn exchange(
    data: &Path,
    request: &Request,
    patience: Duration,
) -> Result<(Answer, BufReader<UnixStream>), String> {
    try_exchange(data, request, patience).map_err(|error| {
        format!(
            "the server at {} gave no answer: {error}",
            socket_path(data).display()
        )
    })
}

fn try_exchange(
    data: &Path,
    request: &Request,
    patience: Duration,
) -> io::Result<(Answer, BufReader<UnixStream>)> {
    let mut stream = connect(data)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(TIME_TO_ANSWER))?;
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

fn unexpected(answer: Answer) -> String {
    match answer {
        Answer::Refused(sentence) => sentence,
        _ => "the server gave an answer to another question".into(),
    }
}
