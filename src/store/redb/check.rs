//! The checks of this engine only: indexes, blocks of histories, and rows whose account is missing.
//! The rows themselves are checked like those of every engine ([`crate::store::check`]).

use std::panic::{AssertUnwindSafe, catch_unwind};

use redb::{Key, ReadTransaction, ReadableTable, TableDefinition, Value};

use super::accounts::{ACCOUNTS, EMAILS};
use super::blocks::{self, HISTORY_BLOCKS};
use super::database::is_final;
use super::failures::FAILURES;
use super::meta::{self, FORMAT};
use super::result::Result;
use super::sessions::{ACCOUNT_SESSIONS, SESSION_ENDS, SESSIONS};
use super::tokens::{RESTRICTIONS, TOKENS};
use super::usage::{self, HISTORY, HISTORY_REMOVED, USAGE_DAYS};
use crate::auth::AccountId;
use crate::store::check::RowCheck;
use crate::store::clock;
use crate::store::error::StoreError;
use crate::store::session::MAX_SESSIONS;
use crate::store::token_number::TokenNumber;

/// Adds problems of indexes and of rows whose account is missing.
///
/// # Errors
/// [`StoreError::Unavailable`] if the disk failed meanwhile, [`StoreError::Failed`] if rows are
/// damaged.
pub fn check(read: &ReadTransaction, rows: &mut RowCheck) -> Result<(), StoreError> {
    readable(|| Check { read, rows }.all())
}

/// Does `work`, which reads rows: redb's readers panic at bytes that are no row of their table.
///
/// # Errors
/// As [`check`].
pub fn readable(work: impl FnOnce() -> Result<()>) -> Result<(), StoreError> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) if is_final(&error) => Err(StoreError::Unavailable(format!(
            "the database failed: {error}"
        ))),
        Ok(Err(error)) => Err(StoreError::Failed(format!("the database failed: {error}"))),
        Err(_) => Err(StoreError::Failed("a row is damaged".to_owned())),
    }
}

struct Check<'a> {
    read: &'a ReadTransaction,
    rows: &'a mut RowCheck,
}

impl Check<'_> {
    fn all(&mut self) -> Result<()> {
        let format = meta::format(self.read)?;
        if format != Some(FORMAT) {
            self.fault("wrong format numbers", format!("{format:?}"));
        }
        self.emails()?;
        self.owners(TOKENS, "tokens without an account", |(id, _)| id)?;
        self.owners(RESTRICTIONS, "restrictions without an account", |id| id)?;
        self.owners(USAGE_DAYS, "sums by day without an account", |(id, ..)| id)?;
        let removed = "sums of removed entries without an account";
        self.owners(HISTORY_REMOVED, removed, |id| id)?;
        self.owners(FAILURES, "failures without an account", |(id, _)| id)?;
        self.sessions()?;
        self.session_indexes()?;
        self.history()?;
        self.blocks()
    }

    fn fault(&mut self, what: &'static str, name: impl Into<String>) {
        self.rows.problems.add(what, name);
    }

    /// Finds rows whose account does not exist.
    fn owners<K: Key + 'static, V: Value + 'static>(
        &mut self,
        table: TableDefinition<'static, K, V>,
        what: &'static str,
        owner: impl for<'a> Fn(K::SelfType<'a>) -> u64,
    ) -> Result<()> {
        let accounts = self.read.open_table(ACCOUNTS)?;
        let mut known = None;
        for row in self.read.open_table(table)?.iter()? {
            let id = owner(row?.0.value());
            if known != Some(id) && accounts.get(id)?.is_none() {
                self.fault(what, format!("account {id}"));
            } else {
                known = Some(id);
            }
        }
        Ok(())
    }

    fn emails(&mut self) -> Result<()> {
        let accounts = self.read.open_table(ACCOUNTS)?;
        let emails = self.read.open_table(EMAILS)?;
        for row in accounts.iter()? {
            let (id, value) = row?;
            let (id, (_, _, email, ..)) = (id.value(), value.value());
            if emails.get(email)?.map(|owner| owner.value()) != Some(id) {
                let what = "accounts not found by their e-mail address";
                self.fault(what, format!("{id} {email}"));
            }
        }
        for row in emails.iter()? {
            let (email, id) = row?;
            let (email, id) = (email.value(), id.value());
            let owner = accounts.get(id)?;
            if owner.is_none_or(|value| value.value().2 != email) {
                let what = "e-mail addresses without their account";
                self.fault(what, format!("{id} {email}"));
            }
        }
        Ok(())
    }

    fn sessions(&mut self) -> Result<()> {
        let accounts = self.read.open_table(ACCOUNTS)?;
        let ends = self.read.open_table(SESSION_ENDS)?;
        let by_account = self.read.open_table(ACCOUNT_SESSIONS)?;
        for row in self.read.open_table(SESSIONS)?.iter()? {
            let (cookie, value) = row?;
            let (cookie, (account, _, _, end, latest, ..)) = (cookie.value(), value.value());
            self.rows.sessions += 1;
            for (is_wrong, what) in [
                (
                    accounts.get(account)?.is_none(),
                    "sessions without an account",
                ),
                (end > latest, "sessions that end after their latest end"),
                (
                    ends.get((end, cookie))?.is_none(),
                    "sessions missing from the index of ends",
                ),
                (
                    by_account.get((account, cookie))?.is_none(),
                    "sessions missing from the index of accounts",
                ),
            ] {
                if is_wrong {
                    self.fault(what, account.to_string());
                }
            }
        }
        Ok(())
    }

    fn session_indexes(&mut self) -> Result<()> {
        let sessions = self.read.open_table(SESSIONS)?;
        for row in self.read.open_table(SESSION_ENDS)?.iter()? {
            let key = row?.0;
            let (end, cookie) = key.value();
            let session = sessions.get(cookie)?;
            if session.is_none_or(|value| value.value().3 != end) {
                let what = "entries in the index of ends without a session";
                self.fault(what, end.to_string());
            }
        }
        let mut last = (0, 0);
        for row in self.read.open_table(ACCOUNT_SESSIONS)?.iter()? {
            let key = row?.0;
            let (account, cookie) = key.value();
            let session = sessions.get(cookie)?;
            if session.is_none_or(|value| value.value().0 != account) {
                let what = "entries in the index of accounts without a session";
                self.fault(what, account.to_string());
            }
            last = (account, if last.0 == account { last.1 + 1 } else { 1 });
            if last.1 == MAX_SESSIONS + 1 {
                self.fault("accounts with too many sessions", account.to_string());
            }
        }
        Ok(())
    }

    /// Each history's account, numbers and blocks.
    fn history(&mut self) -> Result<()> {
        let accounts = self.read.open_table(ACCOUNTS)?;
        let block_rows = self.read.open_table(HISTORY_BLOCKS)?;
        let (mut last, mut block) = (None, None);
        for row in self.read.open_table(HISTORY)?.iter()? {
            let (key, value) = row?;
            let ((account, sequence), value) = (key.value(), value.value());
            let entry = || format!("account {account}: {sequence}");
            let before = match last {
                Some((of, before)) if of == account => before,
                _ => {
                    if accounts.get(account)?.is_none() {
                        self.fault("histories without an account", account.to_string());
                    }
                    usage::removed(self.read, AccountId(account))?.0
                }
            };
            if sequence != before + 1 {
                self.fault("gaps in a history", format!("{} after {before}", entry()));
            }
            last = Some((account, sequence));
            if usage::entry(value).is_err() {
                self.fault("history entries that cannot be read", entry());
            }
            let key = (account, blocks::block_of(sequence));
            if block.as_ref().is_none_or(|(of, _)| *of != key) {
                block = Some((key, block_rows.get(key)?));
            }
            let row = block.as_ref().and_then(|(_, row)| row.as_ref());
            let (day, token, format) = (clock::day(value.0), TokenNumber(value.6), value.10);
            if !row.is_some_and(|row| blocks::includes(row.value(), day, token, format)) {
                self.fault("history entries that no block tells of", entry());
            }
        }
        Ok(())
    }

    fn blocks(&mut self) -> Result<()> {
        let history = self.read.open_table(HISTORY)?;
        for row in self.read.open_table(HISTORY_BLOCKS)?.iter()? {
            let (id, block) = row?.0.value();
            let last = blocks::first_of(block + 1) - 1;
            let entries = (id, blocks::first_of(block))..=(id, last);
            if history.range(entries)?.next().is_some() {
                continue;
            }
            // The block in which the next entry will be keeps its row when all before it are
            // removed.
            let (removed, ..) = usage::removed(self.read, AccountId(id))?;
            if removed == 0 || block != blocks::block_of(removed + 1) {
                let name = format!("account {id}: {block}");
                self.fault("blocks without entries", name);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::apply::Transaction;
    use crate::store::columns;
    use crate::store::engine::{Findings, Snapshot};
    use crate::store::redb::meta::META;
    use crate::store::redb::tables::{Tables, ready};
    use crate::store::redb::{Database, FileSnapshot};
    use crate::store::session::{Browser, SessionTimes, StoredSession};
    use crate::store::tests::{Folder, entry};
    use crate::store::{OpenError, Store, check_file, database_path};
    use redb::WriteTransaction;
    use std::os::unix::fs::FileExt;

    /// Two accounts with a session and three conversions each.
    fn filled(folder: &Folder) -> Store {
        let store = folder.store();
        for email in ["a@example.org", "b@example.org"] {
            let account = store.create_account(email, None).unwrap();
            store
                .start_session(account.id, &Browser::default())
                .unwrap();
            for i in 1..=3 {
                store.record_usage(account.id, &entry(i)).unwrap();
            }
        }
        store
    }

    #[test]
    fn a_consistent_store_has_no_problem() {
        let folder = Folder::new();
        let store = filled(&folder);
        let expected = Findings {
            accounts: 2,
            sessions: 2,
            entries: 6,
            problems: Vec::new(),
        };
        assert_eq!(store.snapshot().unwrap().check().unwrap(), expected);
        drop(store);
        let path = database_path(&folder.settings().data);
        assert_eq!(check_file(&path).unwrap(), expected);
    }

    /// What the check finds in a store whose tables `change` has changed; it gets the numbers of
    /// both accounts.
    fn problems(
        change: impl FnOnce(&WriteTransaction, u64, u64) -> Result<(), redb::Error>,
    ) -> Vec<String> {
        let folder = Folder::new();
        let store = filled(&folder);
        let [a, b] = store.accounts().unwrap().try_into().unwrap();
        drop(store);
        let path = database_path(&folder.settings().data);
        let database = Database::open(&path).unwrap();
        let changed = database.write(|write| change(write, a.id.0, b.id.0));
        changed.unwrap();
        let snapshot = FileSnapshot::of(&database).unwrap();
        snapshot.check().unwrap().problems
    }

    type Change = fn(&WriteTransaction, u64, u64) -> Result<(), redb::Error>;

    #[test]
    #[expect(clippy::too_many_lines, reason = "one table of cases")]
    fn each_kind_of_damage_is_found_and_named() {
        let cases: &[(&[&str], Change)] = &[
            (&["wrong format numbers: 1 (Some(1))"], |write, _, _| {
                Ok(write.open_table(META)?.insert("format", 1).map(drop)?)
            }),
            (
                &["accounts above the last number given: 1 ("],
                |write, a, _| {
                    Ok(write
                        .open_table(META)?
                        .insert("last_account", a)
                        .map(drop)?)
                },
            ),
            (
                &[
                    "accounts not found by their e-mail address: 1 (",
                    "accounts with a damaged second factor: 1 (",
                    "accounts with an invalid e-mail address: 1 (",
                    "e-mail addresses without their account: 1 (",
                ],
                |write, a, _| {
                    let value = (a, 0, "nowhere", None, Some("x"));
                    Ok(write.open_table(ACCOUNTS)?.insert(a, value).map(drop)?)
                },
            ),
            (
                &["accounts not found by their e-mail address: 1 ("],
                |write, _, _| {
                    Ok(write
                        .open_table(EMAILS)?
                        .remove("a@example.org")
                        .map(drop)?)
                },
            ),
            (
                &[
                    "e-mail addresses without their account: 1 (",
                    "histories without an account: 1 (",
                    "sessions without an account: 1 (",
                    "sums by day without an account: 1 (account ",
                    "tokens without an account: 1 (account ",
                ],
                |write, a, _| Ok(write.open_table(ACCOUNTS)?.remove(a).map(drop)?),
            ),
            (
                &["sessions missing from the index of ends: 2 ("],
                |write, _, _| Ok(write.open_table(SESSION_ENDS)?.retain(|_, ()| false)?),
            ),
            (
                &["sessions missing from the index of accounts: 2 ("],
                |write, _, _| Ok(write.open_table(ACCOUNT_SESSIONS)?.retain(|_, ()| false)?),
            ),
            (
                &[
                    "entries in the index of accounts without a session: 2 (",
                    "entries in the index of ends without a session: 2 (",
                ],
                |write, _, _| Ok(write.open_table(SESSIONS)?.retain(|_, _| false)?),
            ),
            (&["accounts with too many sessions: 1 ("], |write, a, _| {
                let mut tables = Tables::open(write)?;
                let session = StoredSession {
                    times: SessionTimes::at_start(1),
                    browser: Browser::default(),
                };
                for i in 0..=MAX_SESSIONS as u8 {
                    ready(tables.put_session(&[i; 32], AccountId(a), &session))?;
                }
                Ok(())
            }),
            (
                &[
                    "entries in the index of accounts without a session: 1 (",
                    "entries in the index of ends without a session: 1 (",
                    "sessions missing from the index of accounts: 1 (",
                    "sessions missing from the index of ends: 1 (",
                    "sessions that end after their latest end: 1 (",
                ],
                |write, a, b| {
                    let mut sessions = write.open_table(SESSIONS)?;
                    let (cookie, owner) = {
                        let (cookie, value) = sessions.first()?.expect("there are two");
                        (*cookie.value(), value.value().0)
                    };
                    let other = if owner == a { b } else { a };
                    let value = (other, 1, 1, 9, 8, "", "");
                    Ok(sessions.insert(&cookie, value).map(drop)?)
                },
            ),
            (
                &[
                    "gaps in a history: 1 (account ",
                    "sums by day that differ from the history: 1 (account ",
                ],
                |write, a, _| Ok(write.open_table(HISTORY)?.remove((a, 2)).map(drop)?),
            ),
            (
                &[
                    "history entries that cannot be read: 1 (account ",
                    "the tables cannot be read to the end: the database failed: ",
                ],
                |write, a, _| {
                    let mut usage = write.open_table(HISTORY)?;
                    let row = usage.remove((a, 3))?.expect("there are three");
                    let sums = row.value();
                    let format = sums.10.to_owned();
                    let value = (sums.0, sums.1, sums.2, 1, 1, 1, 0, 85, 9, 0, &*format);
                    drop(row);
                    Ok(usage.insert((a, 3), value).map(drop)?)
                },
            ),
            (
                &["sums by day that differ from the history: 1 (account "],
                |write, a, _| {
                    let mut days = write.open_table(USAGE_DAYS)?;
                    Ok(days.insert((a, 0, 0, "png"), (1, 5, 5, 0)).map(drop)?)
                },
            ),
            (
                &["sums of removed entries without an account: 1 (account 7)"],
                |write, _, _| {
                    let mut removed = write.open_table(HISTORY_REMOVED)?;
                    Ok(removed.insert(7, (1, 5, 5)).map(drop)?)
                },
            ),
            (
                &[
                    "blocks without entries: 1 (account ",
                    "sums by day that differ from the history: 1 (account ",
                ],
                |write, a, _| {
                    let mut usage = write.open_table(HISTORY)?;
                    Ok(usage.retain_in((a, 0)..=(a, u64::MAX), |_, _| false)?)
                },
            ),
            (
                &["history entries that no block tells of: 3 (account "],
                |write, a, _| {
                    let mut blocks = write.open_table(HISTORY_BLOCKS)?;
                    let kinds = b"\0\0\0\0\x03gif";
                    Ok(blocks.insert((a, 0), (0, u32::MAX, &kinds[..])).map(drop)?)
                },
            ),
            (&["blocks without entries: 1 (account "], |write, a, _| {
                let mut blocks = write.open_table(HISTORY_BLOCKS)?;
                Ok(blocks.insert((a, 1), (0, 0, &[][..])).map(drop)?)
            }),
            (
                &["failures without an account: 1 (account 7)"],
                |write, _, _| {
                    let mut failures = write.open_table(FAILURES)?;
                    Ok(failures.insert((7, 1), (0, 0, 0, 400, 0, "x")).map(drop)?)
                },
            ),
            (&["gaps in a history: 1 (account "], |write, a, _| {
                let mut removed = write.open_table(HISTORY_REMOVED)?;
                removed.insert(a, (1, 5, 5))?;
                let mut days = write.open_table(USAGE_DAYS)?;
                let key = (a, 0, 0, "png");
                Ok(days.insert(key, (1, 5, 5, 0)).map(drop)?)
            }),
            (
                &["accounts without their first token: 1 ("],
                |write, a, _| Ok(write.open_table(TOKENS)?.remove((a, 0)).map(drop)?),
            ),
            (
                &[
                    "accounts with tokens of the same name: 1 (",
                    "serial numbers above the last one given: 1 (",
                ],
                |write, a, _| {
                    let value = (1, 0, 0, 0, 0, 9, 0, 0, "default", "");
                    Ok(write.open_table(TOKENS)?.insert((a, 9), value).map(drop)?)
                },
            ),
            (
                &["restrictions without an account: 1 (account 7)"],
                |write, _, _| {
                    Ok(write
                        .open_table(RESTRICTIONS)?
                        .insert(7, (1, 0, 0))
                        .map(drop)?)
                },
            ),
        ];
        for (expected, change) in cases {
            let problems = problems(change);
            assert_eq!(
                problems.len(),
                expected.len(),
                "{problems:#?} for {expected:?}"
            );
            for (problem, expected) in problems.iter().zip(*expected) {
                assert!(problem.starts_with(expected), "{problem} for {expected}");
            }
        }
    }

    #[test]
    fn a_block_has_an_entry_or_is_the_one_of_the_next_entry() {
        for (removed, left, block, is_right) in [
            (1022, None, 0, true),
            (1023, None, 0, false),
            (1023, None, 1, true),
            (1024, None, 0, false),
            (1024, None, 1, true),
            (1023, Some(1024), 0, false),
            (1023, Some(1024), 1, true),
            (1023, Some(2047), 1, true),
            (1, Some(2048), 1, false),
        ] {
            let problems = problems(|write, a, _| {
                let mut history = write.open_table(HISTORY)?;
                history.retain_in((a, 0)..=(a, u64::MAX), |_, _| false)?;
                if let Some(sequence) = left {
                    history.insert((a, sequence), columns::of_entry(&entry(1)))?;
                }
                write
                    .open_table(HISTORY_REMOVED)?
                    .insert(a, (removed, 0, 0))?;
                let mut blocks = write.open_table(HISTORY_BLOCKS)?;
                blocks.retain_in((a, 0)..=(a, u64::MAX), |_, _| false)?;
                Ok(blocks.insert((a, block), (0, 0, &[][..])).map(drop)?)
            });
            let found = problems
                .iter()
                .any(|problem| problem.starts_with("blocks without entries: 1 "));
            let named = format!("{removed} removed, {left:?} left, block {block}");
            assert_eq!(found, !is_right, "{named}: {problems:#?}");
        }
    }

    #[test]
    fn many_rows_are_counted_and_some_named() {
        let problems = problems(|write, _, _| {
            let mut emails = write.open_table(EMAILS)?;
            for i in 0..8 {
                emails.insert(&*format!("{i}@example.org"), 7)?;
            }
            Ok(())
        });
        let named =
            "7 0@example.org, 7 1@example.org, 7 2@example.org, 7 3@example.org, 7 4@example.org";
        let expected = format!("e-mail addresses without their account: 8 ({named} and 3 more)");
        assert_eq!(problems, [expected]);
    }

    #[test]
    fn bytes_that_are_no_row_are_found() {
        // What a file has that was damaged on the disk: a value of the right type name, but too
        // short.
        #[derive(Debug)]
        struct Short;
        impl redb::Value for Short {
            type SelfType<'a> = ();
            type AsBytes<'a> = [u8; 3];
            fn fixed_width() -> Option<usize> {
                <crate::store::redb::accounts::Value as redb::Value>::fixed_width()
            }
            fn from_bytes<'a>(_: &'a [u8])
            where
                Self: 'a,
            {
            }
            fn as_bytes<'a, 'b: 'a>((): &'a ()) -> [u8; 3]
            where
                Self: 'b,
            {
                [9; 3]
            }
            fn type_name() -> redb::TypeName {
                <crate::store::redb::accounts::Value as redb::Value>::type_name()
            }
        }
        let problems = problems(|write, _, _| {
            let table = redb::TableDefinition::<u64, Short>::new("accounts");
            Ok(write.open_table(table)?.insert(5, ()).map(drop)?)
        });
        assert_eq!(
            problems,
            ["the tables cannot be read to the end: a row is damaged"]
        );
    }

    #[test]
    fn pages_that_were_changed_on_the_disk_are_found() {
        let folder = Folder::new();
        let store = filled(&folder);
        let owner = store.accounts().unwrap()[0].id;
        for i in 0..500 {
            store.record_usage(owner, &entry(i)).unwrap();
        }
        drop(store);
        let path = database_path(&folder.settings().data);
        let bytes = std::fs::read(&path).unwrap();
        // The input formats in all copies of the rows of the history.
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        for (at, window) in bytes.windows(4).enumerate() {
            if window == b"jpeg" {
                file.write_all_at(b"jqeg", at as u64).unwrap();
            }
        }
        match check_file(&path) {
            Ok(findings) => assert!(
                findings
                    .problems
                    .iter()
                    .any(|problem| problem.starts_with("pages ")),
                "{findings:?}"
            ),
            Err(OpenError::Failed(sentence)) => {
                assert!(sentence.contains("towebp.redb"), "{sentence}");
            }
            Err(OpenError::InUse(_)) => panic!("no process has it open"),
        }
    }
}
