//! The command line's side: it sends requests to the server if one runs, else it opens the store
//! itself.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::address::{Address, socket_path};
use super::protocol::{AccountSummary, AccountUsage, Answer, LimitChange, Request, answer};
use crate::store::{
    self, Backup, Findings, OpenError, Settings, Store, TokenSettings, to_milliseconds,
};

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
    /// Connects to the server of the data folder, or opens the store if no server runs, or if it is
    /// one that several processes share. A server
    /// uses its own secret file, whatever `settings` says.
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

    /// Makes an account and returns its token. An account without a password cannot sign in to the
    /// dashboard.
    ///
    /// # Errors
    /// A sentence for the operator, here and in the other functions.
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
    pub fn list(&self) -> Result<Vec<AccountSummary>, String> {
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

    /// The present text of an account's token, of `default` without a name.
    ///
    /// # Errors
    /// A sentence; also if there is no such account or no such token.
    pub fn token(&self, email: &str, name: Option<&str>) -> Result<String, String> {
        self.token_of(Request::Token {
            email: email.to_owned(),
            name: name.map(str::to_owned),
        })
    }

    /// Replaces an account's token, `default` without a name, and returns the new text; the old one
    /// is invalid after so many hours.
    ///
    /// # Errors
    /// A sentence; also if there is no such account or no such token.
    pub fn rotate(
        &self,
        email: &str,
        name: Option<&str>,
        overlap_hours: u32,
    ) -> Result<String, String> {
        self.token_of(Request::Rotate {
            email: email.to_owned(),
            name: name.map(str::to_owned),
            overlap_hours,
        })
    }

    /// Makes a token, or replaces what is set for the one of this name, and returns its text.
    ///
    /// # Errors
    /// A sentence; also if there is no such account, or the token cannot be so.
    pub fn set_token(&self, email: &str, settings: TokenSettings) -> Result<String, String> {
        let TokenSettings {
            name,
            ends,
            limits,
            preset,
        } = settings;
        self.token_of(Request::SetToken {
            email: email.to_owned(),
            name,
            ends_milliseconds: ends.map(to_milliseconds),
            per_minute: limits.per_minute,
            monthly: limits.monthly,
            preset,
        })
    }

    /// Deletes a token of the account.
    ///
    /// # Errors
    /// A sentence; also if there is no such account or no such token.
    pub fn delete_token(&self, email: &str, name: &str) -> Result<(), String> {
        match self.ask(Request::DeleteToken {
            email: email.to_owned(),
            name: name.to_owned(),
        })? {
            Answer::Deleted => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// What the account has done, and may do.
    ///
    /// # Errors
    /// A sentence; also if there is no such account.
    pub fn usage(&self, email: &str) -> Result<AccountUsage, String> {
        match self.ask(Request::Usage {
            email: email.to_owned(),
        })? {
            Answer::Usage(usage) => Ok(*usage),
            other => Err(unexpected(other)),
        }
    }

    /// Limits, disables or enables the account.
    ///
    /// # Errors
    /// A sentence; also if there is no such account.
    pub fn restrict(
        &self,
        email: &str,
        per_minute: LimitChange,
        monthly: LimitChange,
        disable: Option<bool>,
    ) -> Result<(), String> {
        match self.ask(Request::Restrict {
            email: email.to_owned(),
            per_minute,
            monthly,
            disable,
        })? {
            Answer::Changed => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// Gives the account another e-mail address; its tokens, sessions and history stay.
    ///
    /// # Errors
    /// A sentence; also if the address is none or taken, or there is no such account.
    pub fn set_email(&self, email: &str, new: &str) -> Result<(), String> {
        match self.ask(Request::Email {
            email: email.to_owned(),
            new: new.to_owned(),
        })? {
            Answer::Changed => Ok(()),
            other => Err(unexpected(other)),
        }
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
            Access::Direct(store) => Ok(answer(store, request)),
            Access::Server(data) => Ok(exchange(data, &request, ANSWER_TIMEOUT)?.0),
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
        Access::Server(data) => match exchange(&data, &Request::Backup, ANSWER_TIMEOUT)? {
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
        Access::Server(data) => match exchange(&data, &Request::Check, CHECK_TIMEOUT)? {
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
    request: &Request,
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
    request: &Request,
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

fn unexpected(answer: Answer) -> String {
    match answer {
        Answer::Rejected(sentence) => sentence,
        _ => "the server gave an answer to another question".into(),
    }
}
