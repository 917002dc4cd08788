//! Databases of older formats, made by undoing the steps.

use super::{advance, sessions, set_back};
use crate::auth::{Code, Token};
use crate::store::engine::Engine;
use crate::store::redb::accounts::{self, ACCOUNTS};
use crate::store::redb::meta::{FORMAT, OLDEST_FORMAT};
use crate::store::redb::{Database, RedbEngine, check_file, database_path};
use crate::store::session::{Browser, MAX_SESSIONS};
use crate::store::tests::{Folder, all_usage, entry};
use crate::store::{Store, TokenNumber, secret_file};
use redb::ReadableTable;
use std::path::PathBuf;

/// A data folder of an older format with two accounts, of which the first has some entries, a token
/// that was replaced once, and a session.
struct Old {
    folder: Folder,
    token: String,
    cookie: String,
    entries: u64,
}

impl Old {
    fn new(format: u64, entries: u64) -> Old {
        let folder = Folder::new();
        let store = folder.store();
        let owner = store.create_account("owner@example.org", None).unwrap().id;
        store.create_account("other@example.org", None).unwrap();
        for i in 0..entries {
            store.record_usage(owner, &entry(i)).unwrap();
        }
        let cookie = store.start_session(owner, &browser()).unwrap();
        if format > 2 {
            store
                .rotate_token(owner, TokenNumber::DEFAULT, std::time::Duration::ZERO)
                .unwrap();
        }
        let mut token = store.token(owner).unwrap();
        drop(store);
        let path = database_path(&folder.settings().data);
        let database = Database::open(&path).unwrap();
        let undone = database.write(|write| set_back(write, format));
        undone.unwrap();
        if format == 2 {
            // The serial number was in the account's row alone.
            let generation = 3;
            let replaced = database.write(|write| {
                let mut accounts = write.open_table(ACCOUNTS)?;
                let (created, email) = {
                    let row = accounts.get(owner.0)?.expect("it was made");
                    (row.value().0, row.value().2.to_owned())
                };
                accounts.insert(owner.0, (created, generation, &*email, None))?;
                Ok(())
            });
            replaced.unwrap();
            let secret = secret_file::open(&folder.settings().data.join("secret"), true);
            let serial = generation;
            token = Token {
                account: owner,
                serial,
            }
            .text(&secret.unwrap());
        }
        Old {
            folder,
            token,
            cookie,
            entries,
        }
    }

    fn path(&self) -> PathBuf {
        database_path(&self.folder.settings().data)
    }

    /// Whoever does not bring it forward is told who does.
    fn assert_rejected(&self) {
        let rejection = check_file(&self.path()).expect_err("it is old");
        let rejection = rejection.to_string();
        assert!(rejection.contains("towebp serve"), "{rejection}");
    }

    /// The database is sound, and all that was in it is there.
    fn assert_brought_forward(&self) {
        let findings = check_file(&self.path()).unwrap();
        assert_eq!(
            (findings.accounts, findings.entries, findings.sessions),
            (2, self.entries, 1)
        );
        assert_eq!(findings.problems, [""; 0]);
        let store = Store::open(&self.folder.settings()).unwrap();
        let caller = store.authenticate(&self.token).unwrap();
        let page = all_usage(&store, caller.account, None, 10_000).unwrap();
        assert_eq!(page.entries.len() as u64, self.entries);
        for (id, found) in page.entries {
            assert_eq!(found, entry(id.0 as u64 - 1));
        }
        let [token] = &store.tokens(caller.account).unwrap()[..] else {
            panic!("one token");
        };
        assert_eq!(token.totals, store.usage_totals(caller.account).unwrap());

        let hash = Code::parse(&self.cookie).unwrap().hash();
        let times = store.engine.session(&hash).unwrap().unwrap().times;
        let [(_, session)] = &store.engine.sessions(caller.account).unwrap()[..] else {
            panic!("one session");
        };
        assert_eq!(session.browser, Browser::default(), "it was not stored");
        assert_eq!(session.times, times);
        let lifetimes = (times.end - times.used, times.latest - times.created);
        let day = 24 * 60 * 60 * 1000;
        assert_eq!(lifetimes, (7 * day, 30 * day));
        let open = store.session(&self.cookie).unwrap().expect("it goes on");
        assert_eq!(open.account.id, caller.account);
    }
}

fn browser() -> Browser {
    Browser {
        name: "Firefox on Linux".to_owned(),
        network: "192.0.2.0/24".to_owned(),
    }
}

#[test]
fn databases_of_older_formats_are_brought_forward_and_keep_everything() {
    for format in OLDEST_FORMAT..FORMAT {
        let old = Old::new(format, 30);
        old.assert_rejected();
        drop(Store::open(&old.folder.settings()).unwrap());
        old.assert_brought_forward();
    }
}

#[test]
fn of_too_many_sessions_those_go_on_that_were_used_last() {
    let old = Old::new(3, 0);
    let database = Database::open_unchecked(&old.path()).unwrap();
    let owner = database.read(accounts::all).unwrap()[0].id;
    let count = MAX_SESSIONS as u8 + 50;
    let added = database.write(|write| sessions::add_sessions(write, owner, count));
    added.unwrap();
    drop(database);
    drop(RedbEngine::open(&old.path()).unwrap());
    let findings = check_file(&old.path()).unwrap();
    assert_eq!(findings.problems, [""; 0]);
    let engine = RedbEngine::open(&old.path()).unwrap();
    let kept = engine.sessions(owner).unwrap();
    let mut kept: Vec<_> = kept.iter().map(|(cookie, _)| cookie[0]).collect();
    kept.sort_unstable();
    assert_eq!(kept, (50..count).collect::<Vec<_>>());
}

#[test]
fn a_migration_that_was_killed_after_any_commit_goes_on() {
    for format in OLDEST_FORMAT..FORMAT {
        let mut commits = 1;
        loop {
            let old = Old::new(format, 5);
            let database = Database::open_unchecked(&old.path()).unwrap();
            for _ in 0..commits {
                assert!(advance(&database).unwrap());
            }
            if database.ensure_format().is_ok() {
                assert!(!advance(&database).unwrap(), "there is more to do");
                break;
            }
            drop(database);
            old.assert_rejected();
            drop(RedbEngine::open(&old.path()).unwrap());
            old.assert_brought_forward();
            commits += 1;
        }
    }
}
