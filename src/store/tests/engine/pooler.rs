//! Engines behind `PgBouncer`, which gives each transaction another connection.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{account, changed, entry, one, record, settings};
use crate::store::engine::{Command as Change, Engine, TokenChange};
use crate::store::postgres::{PostgresEngine, PostgresSettings};
use crate::store::tests::Folder;
use crate::store::tests::postgres::TestDatabase;
use crate::store::tests::postgres::server::{self, PASSWORD, ROLE};

/// A user who exists everywhere and may do nothing: the pooler refuses root.
const NOBODY: u32 = 65_534;

/// A pooler with two connections to a database; it ends with the value.
struct Pooler {
    process: Child,
    port: u16,
    _folder: Folder,
}

impl Pooler {
    /// `None` if it is not installed, which is told.
    fn start(of: u16) -> Option<Pooler> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path)
            .chain(["/usr/sbin".into()])
            .map(|folder| folder.join("pgbouncer"))
            .find(|file| file.exists());
        let Some(program) = found else {
            server::skip::skipped("PgBouncer is not installed, so nothing ran behind a pooler");
            return None;
        };
        let (folder, port) = (Folder::new(), server::free_port());
        let users = folder.path().join("users");
        let quoted = PASSWORD.replace('"', "\"\"");
        let ini = folder.path().join("ini");
        let text = format!(
            "[databases]\n* = host=127.0.0.1 port={of}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {}\n\
             pool_mode = transaction\ndefault_pool_size = 2\nserver_tls_sslmode = require\n",
            users.display()
        );
        fs::write(&users, format!("\"{ROLE}\" \"{quoted}\"\n")).expect("a folder of its own");
        fs::write(&ini, text).expect("a folder of its own");
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("ours");
        let mut command = Command::new(program);
        command.arg("-q").arg(&ini);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        Some(Pooler {
            process: command.spawn().expect("it starts"),
            port,
            _folder: folder,
        })
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn open(settings: &PostgresSettings) -> PostgresEngine {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match PostgresEngine::open(settings) {
            Ok(engine) => return engine,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn everything_works_behind_a_pooler_of_transactions() {
    let (Some(database), Some(server)) = (TestDatabase::new(), server::shared()) else {
        return;
    };
    let Some(pooler) = Pooler::start(server.port()) else {
        return;
    };
    let mut behind = database.behind(&[pooler.port]);
    behind.tls = false;
    let engines = [open(&behind), open(&behind), open(&behind)];
    let owner = account(&engines[0], "owner@example.org", 5).id;
    thread::scope(|scope| {
        for engine in &engines {
            scope.spawn(move || {
                for i in 0..100 {
                    let group: Vec<_> = (0..=(i % 4)).map(|i| record(owner, entry(i))).collect();
                    engine
                        .apply(&group, Instant::now())
                        .expect("it is recorded");
                    assert!(engine.account(owner).expect("it is read").is_some());
                }
            });
        }
        scope.spawn(|| {
            for i in 0..20 {
                let create = TokenChange::Create {
                    settings: settings(&format!("token {i}")),
                    now: 7_000,
                };
                assert!(changed(&engines[0], owner, create).changed());
            }
        });
    });
    let totals = engines[1].usage_totals(owner).unwrap();
    assert_eq!(totals.conversions, 3 * 250);
    assert_eq!(engines[2].tokens(owner).unwrap().len(), 21);
    assert!(one(&engines[1], Change::DeleteAccount(owner)).changed());
    assert!(engines[2].account(owner).unwrap().is_none());
}
