//! Which store the tests' servers have: the file in their data folder or, with
//! `TOWEBP_TEST_STORE=postgres` in the environment, a database of the PostgreSQL that the tests of
//! a process share. `scripts/test` runs the tests that can tell one from the other with both.

use super::postgres::{self, Postgres};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Whether it is PostgreSQL.
pub fn is_postgres() -> bool {
    match std::env::var("TOWEBP_TEST_STORE") {
        Err(_) => false,
        Ok(name) => match &*name {
            "postgres" => true,
            "redb" => false,
            _ => panic!("TOWEBP_TEST_STORE is {name:?}, and may be redb or postgres"),
        },
    }
}

/// The flags by which a command of `towebp` comes to the store of the server with this data folder.
/// A server that is started again in the folder has the same database.
pub fn flags(data: &Path) -> Vec<String> {
    if is_postgres() {
        return postgres_flags(data.parent().expect("it is in a folder of the test"));
    }
    let data = data.to_str().expect("a temporary folder in ASCII");
    vec!["--data".into(), data.into()]
}

/// The flags of `towebp serve` beside its `--data`, which it has in either case.
pub fn of_server(data: &Path) -> Vec<String> {
    if is_postgres() {
        return postgres_flags(data.parent().expect("it is in a folder of the test"));
    }
    Vec::new()
}

/// Writes a new secret into a file that only its owner may read.
pub fn new_secret(file: &Path) {
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    let mut written = options.open(file).expect("a new file");
    // Any bytes do: it is as good as the tests' other secrets.
    let digits = format!("{:016x}", std::process::id()).repeat(4);
    written.write_all(digits.as_bytes()).expect("it is ours");
}

fn postgres_flags(folder: &Path) -> Vec<String> {
    let server = server();
    let (named, secret) = (folder.join("database"), folder.join("secret"));
    let database = if let Ok(name) = fs::read_to_string(&named) {
        server.database_of(&name)
    } else {
        let database = server.database();
        fs::create_dir_all(folder).expect("a folder of the test");
        fs::write(&named, &database.name).expect("the folder is ours");
        new_secret(&secret);
        database
    };
    let mut flags = database.flags();
    flags.extend(["--secret-file".into(), text(secret)]);
    flags
}

fn server() -> &'static Postgres {
    postgres::shared().expect("TOWEBP_TEST_STORE=postgres needs PostgreSQL")
}

fn text(path: PathBuf) -> String {
    path.into_os_string().into_string().expect("ASCII")
}
