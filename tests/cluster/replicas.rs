//! Replicas: processes of `towebp serve` with one database and one secret.

use crate::support::command::{run, towebp};
use crate::support::picture::Picture;
use crate::support::postgres::Database;
use crate::support::{Folder, Response, Server, store};
use std::path::PathBuf;
use std::process::Output;
use std::time::{Duration, Instant};

/// The e-mail address of accounts of which there is one.
pub const OWNER: &str = "owner@example.org";

/// What replicas have in common.
pub struct Replicas {
    pub database: Database,
    folder: Folder,
}

impl Replicas {
    pub fn of(database: Database) -> Replicas {
        let folder = Folder::new();
        store::new_secret(&folder.path.join("secret"));
        Replicas { database, folder }
    }

    /// The flags by which a command comes to the database, with the secret.
    pub fn flags(&self) -> Vec<String> {
        self.flags_over(&self.database)
    }

    /// Starts a replica with further flags.
    pub fn start(&self, flags: &[&str]) -> Server {
        self.start_over(&self.database, flags)
    }

    /// As [`Replicas::start`], with its own way to the database.
    pub fn start_over(&self, database: &Database, flags: &[&str]) -> Server {
        let own = self.flags_over(database);
        let own: Vec<&str> = own
            .iter()
            .map(String::as_str)
            .chain(flags.iter().copied())
            .collect();
        Server::start_quietly(&own)
    }

    /// Runs `towebp` with these words and the flags of the store.
    pub fn command(&self, words: &[&str]) -> Output {
        self.command_over(&self.database, words)
    }

    /// As [`Replicas::command`], with its own way to the database.
    pub fn command_over(&self, database: &Database, words: &[&str]) -> Output {
        let flags = match words {
            ["account", ..] => self.flags_over(database),
            _ => database.flags(),
        };
        run(towebp().args(words).args(flags), b"")
    }

    /// As [`Replicas::command`], which has to succeed; gives what it printed.
    #[track_caller]
    pub fn done(&self, words: &[&str]) -> String {
        let output = self.command(words);
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        let (printed, complaint) = (said(&output.stdout), said(&output.stderr));
        assert!(output.status.success(), "{words:?}: {printed}\n{complaint}");
        printed
    }

    /// `towebp check`, which has to find everything as it should be; gives what it counted.
    #[track_caller]
    pub fn check(&self) -> String {
        self.check_over(&self.database)
    }

    /// As [`Replicas::check`], with its own way to the database.
    #[track_caller]
    pub fn check_over(&self, database: &Database) -> String {
        let output = self.command_over(database, &["check"]);
        let said = String::from_utf8_lossy(&output.stdout);
        let (counted, problems) = said.split_once('\n').unwrap_or_default();
        // The tests' servers have it off, which has to be told.
        let settings = "settings by which a loss of power loses what was answered: 1 (fsync = off)";
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(problems.trim_end(), settings, "{said}{complaint}");
        counted.to_owned()
    }

    /// Makes an account, and gives its token.
    pub fn create_account(&self, email: &str) -> String {
        self.done(&["account", "create", email])
    }

    pub fn secret(&self) -> PathBuf {
        self.folder.path.join("secret")
    }

    fn flags_over(&self, database: &Database) -> Vec<String> {
        let secret = self.secret();
        let mut flags = database.flags();
        flags.extend([
            "--secret-file".into(),
            secret.to_str().expect("ASCII").into(),
        ]);
        flags
    }
}

/// `POST /convert` of a small picture.
pub fn convert(server: &Server, token: &str) -> Response {
    convert_query(server, token, "")
}

/// As [`convert`], with further parameters, such as `&quality=1`.
pub fn convert_query(server: &Server, token: &str, query: &str) -> Response {
    server
        .request("POST", &format!("/convert?token={token}{query}"))
        .header("Content-Type", "image/png")
        .body(Picture::waves(24, 16).png())
        .send()
}

/// `GET` with this token.
pub fn get(server: &Server, token: &str, target: &str) -> Response {
    let bearer = format!("Bearer {token}");
    server
        .request("GET", target)
        .header("Authorization", &bearer)
        .send()
}

/// Waits until each of these replicas is ready; nobody helps it.
#[track_caller]
pub fn until_ready<'s>(servers: impl IntoIterator<Item = &'s Server>) -> Duration {
    let begun = Instant::now();
    for server in servers {
        loop {
            let answer = server.request("GET", "/readyz").send();
            if answer.status == 200 {
                break;
            }
            let waited = begun.elapsed();
            assert!(waited < Duration::from_mins(1), "{}", answer.text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    begun.elapsed()
}
