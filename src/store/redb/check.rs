//! Checks whether the rows of all tables are consistent: all that the modules of the tables
//! promise.

mod history;

use std::panic::{AssertUnwindSafe, catch_unwind};

use redb::{ReadTransaction, ReadableTable};

use super::accounts::{ACCOUNTS, EMAILS};
use super::database::is_final;
use super::meta::{self, FORMAT, META};
use super::sessions::{ACCOUNT_SESSIONS, SESSION_ENDS, SESSIONS};
use super::tokens::{AccessReader, RESTRICTIONS, TOKENS};
use crate::auth::{AccountId, Email};
use crate::store::engine::Findings;
use crate::store::error::StoreError;
use crate::store::problems::Problems;
use crate::store::session::MAX_SESSIONS;
use crate::store::token::MAX_TOKENS;
use crate::store::token_number::TokenNumber;

/// Reads all rows and compares them with each other. The memory that this takes does not grow with
/// the history.
///
/// # Errors
/// The disk failed meanwhile. Damaged rows are no error but a finding.
pub fn check(read: &ReadTransaction) -> Result<Findings, StoreError> {
    let mut check = Check {
        read,
        findings: Findings::default(),
        faults: Problems::default(),
    };
    // redb's readers panic at bytes that are no row of their table.
    let outcome = catch_unwind(AssertUnwindSafe(|| check.all()));
    let unreadable = match outcome {
        Ok(Ok(())) => None,
        Ok(Err(error)) if is_final(&error) => {
            return Err(StoreError::Failed(format!("the database failed: {error}")));
        }
        Ok(Err(error)) => Some(format!("the tables cannot be read to the end: {error}")),
        Err(_) => Some("the tables cannot be read to the end: a row is damaged".to_owned()),
    };
    let mut findings = check.findings;
    findings.problems = check.faults.sentences();
    findings.problems.extend(unreadable);
    Ok(findings)
}

struct Check<'a> {
    read: &'a ReadTransaction,
    findings: Findings,
    faults: Problems,
}

impl Check<'_> {
    fn all(&mut self) -> Result<(), redb::Error> {
        self.format()?;
        self.accounts()?;
        self.emails()?;
        self.tokens()?;
        self.sessions()?;
        self.session_ends()?;
        self.account_sessions()?;
        self.history()?;
        self.sums_without_history()?;
        self.failures()
    }

    fn fault(&mut self, what: &'static str, name: impl Into<String>) {
        self.faults.add(what, name);
    }

    fn format(&mut self) -> Result<(), redb::Error> {
        let format = meta::format(self.read)?;
        if format != Some(FORMAT) {
            self.fault("wrong format numbers", format!("{format:?}"));
        }
        Ok(())
    }

    fn accounts(&mut self) -> Result<(), redb::Error> {
        let meta = self.read.open_table(META)?;
        let last = meta.get("last_account")?.map_or(0, |last| last.value());
        let emails = self.read.open_table(EMAILS)?;
        for row in self.read.open_table(ACCOUNTS)?.iter()? {
            let (id, value) = row?;
            let (id, (_, _, email, _)) = (id.value(), value.value());
            self.findings.accounts += 1;
            if id > last {
                self.fault("accounts above the last number given", name(id, email));
            }
            if Email::parse(email).ok().as_ref().map(Email::as_str) != Some(email) {
                self.fault("accounts with an invalid e-mail address", name(id, email));
            }
            if emails.get(email)?.map(|owner| owner.value()) != Some(id) {
                self.fault(
                    "accounts not found by their e-mail address",
                    name(id, email),
                );
            }
        }
        Ok(())
    }

    fn emails(&mut self) -> Result<(), redb::Error> {
        let accounts = self.read.open_table(ACCOUNTS)?;
        for row in self.read.open_table(EMAILS)?.iter()? {
            let (email, id) = row?;
            let (email, id) = (email.value(), id.value());
            if accounts
                .get(id)?
                .is_none_or(|value| value.value().2 != email)
            {
                self.fault("e-mail addresses without their account", name(id, email));
            }
        }
        Ok(())
    }

    fn tokens(&mut self) -> Result<(), redb::Error> {
        let accounts = self.read.open_table(ACCOUNTS)?;
        let reader = AccessReader::open(self.read)?;
        for row in accounts.iter()? {
            let (id, value) = row?;
            let (id, (_, last_serial, email, _)) = (id.value(), value.value());
            let access = reader.access(AccountId(id))?;
            if access.token(TokenNumber::DEFAULT).is_none() {
                self.fault("accounts without their first token", name(id, email));
            }
            if access.tokens.len() > MAX_TOKENS {
                self.fault("accounts with too many tokens", name(id, email));
            }
            if access.tokens.iter().any(|token| token.serial > last_serial) {
                self.fault("serial numbers above the last one given", name(id, email));
            }
            let mut names: Vec<_> = access.tokens.iter().map(|it| &it.settings.name).collect();
            names.sort_unstable();
            if names.windows(2).any(|pair| pair[0] == pair[1]) {
                self.fault("accounts with tokens of the same name", name(id, email));
            }
        }
        for row in self.read.open_table(TOKENS)?.iter()? {
            let (id, number) = row?.0.value();
            if accounts.get(id)?.is_none() {
                self.fault(
                    "tokens without an account",
                    format!("account {id}: {number}"),
                );
            }
        }
        for row in self.read.open_table(RESTRICTIONS)?.iter()? {
            let id = row?.0.value();
            if accounts.get(id)?.is_none() {
                self.fault("restrictions without an account", id.to_string());
            }
        }
        Ok(())
    }

    fn sessions(&mut self) -> Result<(), redb::Error> {
        let accounts = self.read.open_table(ACCOUNTS)?;
        let ends = self.read.open_table(SESSION_ENDS)?;
        let by_account = self.read.open_table(ACCOUNT_SESSIONS)?;
        for row in self.read.open_table(SESSIONS)?.iter()? {
            let (cookie, value) = row?;
            let (cookie, (account, _, _, end, latest, ..)) = (cookie.value(), value.value());
            self.findings.sessions += 1;
            if accounts.get(account)?.is_none() {
                self.fault("sessions without an account", account.to_string());
            }
            if end > latest {
                self.fault(
                    "sessions that end after their latest end",
                    account.to_string(),
                );
            }
            if ends.get((end, cookie))?.is_none() {
                self.fault(
                    "sessions missing from the index of ends",
                    account.to_string(),
                );
            }
            if by_account.get((account, cookie))?.is_none() {
                self.fault(
                    "sessions missing from the index of accounts",
                    account.to_string(),
                );
            }
        }
        Ok(())
    }

    fn session_ends(&mut self) -> Result<(), redb::Error> {
        let sessions = self.read.open_table(SESSIONS)?;
        for row in self.read.open_table(SESSION_ENDS)?.iter()? {
            let (key, _) = row?;
            let (end, cookie) = key.value();
            if sessions
                .get(cookie)?
                .is_none_or(|value| value.value().3 != end)
            {
                self.fault(
                    "entries in the index of ends without a session",
                    end.to_string(),
                );
            }
        }
        Ok(())
    }

    fn account_sessions(&mut self) -> Result<(), redb::Error> {
        let sessions = self.read.open_table(SESSIONS)?;
        let mut last = (0, 0);
        for row in self.read.open_table(ACCOUNT_SESSIONS)?.iter()? {
            let key = row?.0;
            let (account, cookie) = key.value();
            if sessions
                .get(cookie)?
                .is_none_or(|value| value.value().0 != account)
            {
                self.fault(
                    "entries in the index of accounts without a session",
                    account.to_string(),
                );
            }
            last = (account, if last.0 == account { last.1 + 1 } else { 1 });
            if last.1 == MAX_SESSIONS + 1 {
                self.fault("accounts with too many sessions", account.to_string());
            }
        }
        Ok(())
    }
}

fn name(id: u64, email: &str) -> String {
    format!("{id} {email}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::redb::Database;
    use crate::store::redb::blocks::HISTORY_BLOCKS;
    use crate::store::redb::failures::FAILURES;
    use crate::store::redb::sessions::SessionTables;
    use crate::store::redb::usage::{
        HISTORY, HISTORY_REMOVED, USAGE_DAYS, USAGE_MONTHS, USAGE_TOTALS,
    };
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
        check(&database.begin_read().unwrap()).unwrap().problems
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
                    "accounts with an invalid e-mail address: 1 (",
                    "e-mail addresses without their account: 1 (",
                ],
                |write, a, _| {
                    let value = (a, 0, "nowhere", None);
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
                let mut tables = SessionTables::open(write)?;
                let session = StoredSession {
                    times: SessionTimes::at_start(1),
                    browser: Browser::default(),
                };
                for i in 0..=MAX_SESSIONS as u8 {
                    tables.put(&[i; 32], AccountId(a), &session)?;
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
                    "monthly counts that differ from the history: 1 (account ",
                    "sums by day that differ from the history: 1 (",
                    "sums by token that differ from the history: 1 (",
                    "totals that differ from the history: 1 (account ",
                ],
                |write, a, _| Ok(write.open_table(HISTORY)?.remove((a, 2)).map(drop)?),
            ),
            (
                &["history entries that cannot be read: 1 (account "],
                |write, a, _| {
                    let mut usage = write.open_table(HISTORY)?;
                    let row = usage.remove((a, 3))?.expect("there are three");
                    let sums = row.value();
                    let format = sums.9.to_owned();
                    let value = (sums.0, sums.1, sums.2, 1, 1, 1, 0, 85, 9, &*format);
                    drop(row);
                    Ok(usage.insert((a, 3), value).map(drop)?)
                },
            ),
            (
                &["totals that differ from the history: 1 (account "],
                |write, a, _| {
                    Ok(write
                        .open_table(USAGE_TOTALS)?
                        .insert(a, (3, 1, 1))
                        .map(drop)?)
                },
            ),
            (
                &["monthly counts that differ from the history: 1 (account "],
                |write, a, _| {
                    Ok(write
                        .open_table(USAGE_MONTHS)?
                        .insert((a, 0), 1)
                        .map(drop)?)
                },
            ),
            (
                &[
                    "blocks without entries: 1 (account ",
                    "monthly counts without a history: 1 (account ",
                    "sums by day without a history: 1 (account ",
                    "sums by token without a history: 1 (account ",
                    "totals without a history: 1 (",
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
                &["failures without an account: 1 (account 7: 1)"],
                |write, _, _| {
                    let mut failures = write.open_table(FAILURES)?;
                    Ok(failures.insert((7, 1), (0, 0, 0, 400, "x")).map(drop)?)
                },
            ),
            (
                &[
                    "gaps in a history: 1 (account ",
                    "sums that differ from each other: 1 (",
                    "totals that differ from the history: 1 (account ",
                ],
                |write, a, _| {
                    let mut removed = write.open_table(HISTORY_REMOVED)?;
                    removed.insert(a, (1, 5, 5))?;
                    let mut days = write.open_table(USAGE_DAYS)?;
                    let key = (a, 0, 0, "png");
                    Ok(days.insert(key, (1, 5, 5)).map(drop)?)
                },
            ),
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
                &["restrictions without an account: 1 (7)"],
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
            assert_eq!(problems.len(), expected.len(), "{problems:#?}");
            for (problem, expected) in problems.iter().zip(*expected) {
                assert!(problem.starts_with(expected), "{problem} for {expected}");
            }
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
        // The input format in a row of the history.
        let at = bytes
            .windows(4)
            .rposition(|window| window == b"jpeg")
            .unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(b"jqeg", at as u64).unwrap();
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
