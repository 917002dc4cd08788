//! From one format of the database to the next, each step in the one transaction that also changes the number of the
//! format: whatever breaks it off leaves the old format, whole.
//!
//! | format | what it brought |
//! |---|---|
//! | 1 | the first |
//! | 2 | sessions know their latest end apart from their end; the history is counted by month |

use redb::{ReadableTable, TableDefinition, WriteTransaction};

use super::{accounts, invites, sessions, usage};

/// Account and end of a session, in format 1.
const SESSIONS_1: TableDefinition<&[u8; 32], (u64, u64)> = TableDefinition::new("sessions");

/// From format 1 to format 2. A session counts as used just now: nobody is signed out by it.
///
/// # Errors
/// Those of redb.
pub fn from_1_to_2(write: &WriteTransaction, now: u64) -> Result<(), redb::Error> {
    let mut rows = Vec::new();
    for row in write.open_table(SESSIONS_1)?.iter()? {
        let (cookie, value) = row?;
        rows.push((*cookie.value(), value.value()));
    }
    write.delete_table(SESSIONS_1)?;
    sessions::Tables::open(write)?.refill(&rows, now)?;
    usage::Tables::open(write)?.count_months()?;
    // A database of before there were invitations has no such table.
    invites::Tables::open(write)?;
    accounts::Tables::open(write)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::database::{Database, META};
    use crate::store::folder::{create_private, open_private};
    use crate::store::tests::{Folder, disk::Disk};
    use crate::store::{OpenError, Snapshot, Store, clock, database_path};
    use redb::ReadableDatabase;
    use std::path::Path;
    use std::time::SystemTime;

    const USAGE_1: TableDefinition<(u64, u64), UsageValue> = TableDefinition::new("usage");
    const TOTALS_1: TableDefinition<u64, (u64, u64, u64)> = TableDefinition::new("usage_totals");
    const ACCOUNTS_1: TableDefinition<u64, (u64, u32, &str, Option<&str>)> =
        TableDefinition::new("accounts");
    const EMAILS_1: TableDefinition<&str, u64> = TableDefinition::new("emails");
    const SESSION_ENDS_1: TableDefinition<(u64, &[u8; 32]), ()> =
        TableDefinition::new("session_ends");
    type UsageValue = (u64, u64, u64, u32, u32, u32, u8, u8, &'static str);

    const OWNER: u64 = 1_795_000_000_000;
    const DAY: u64 = 24 * 60 * 60 * 1000;

    /// What a towebp of format 1, of before there were invitations, would have left behind: one account with a
    /// session, and 300 conversions that end in the present month and began in the one before.
    fn write_format_1(redb: &redb::Database, cookie: &[u8; 32], now: u64) {
        let (month, _) = clock::month(now);
        let write = redb.begin_write().unwrap();
        {
            let mut meta = write.open_table(META).unwrap();
            meta.insert("format", 1).unwrap();
            meta.insert("last_account", OWNER).unwrap();
            let mut accounts = write.open_table(ACCOUNTS_1).unwrap();
            accounts
                .insert(OWNER, (OWNER, 7, "owner@example.org", None))
                .unwrap();
            let mut emails = write.open_table(EMAILS_1).unwrap();
            emails.insert("owner@example.org", OWNER).unwrap();
            let end = now + 20 * DAY;
            let mut sessions = write.open_table(SESSIONS_1).unwrap();
            sessions.insert(cookie, (OWNER, end)).unwrap();
            let mut ends = write.open_table(SESSION_ENDS_1).unwrap();
            ends.insert((end, cookie), ()).unwrap();
            let mut usage = write.open_table(USAGE_1).unwrap();
            for sequence in 1..=300 {
                let time = if sequence <= 100 { month - 1 } else { month };
                let value = (time, 2, 1, 1, 1, 1, 85, 0, "png");
                usage.insert((OWNER, sequence), value).unwrap();
            }
            let mut totals = write.open_table(TOTALS_1).unwrap();
            totals.insert(OWNER, (300, 600, 300)).unwrap();
        }
        write.commit().unwrap();
    }

    /// An empty database that only its owner may write, whatever the umask says.
    fn create(path: &Path) -> redb::Database {
        redb::Database::builder()
            .create_file(open_private(path).unwrap())
            .unwrap()
    }

    #[test]
    fn a_database_of_format_1_is_brought_up_to_date_at_opening() {
        let folder = Folder::new();
        drop(folder.store());
        let path = database_path(&folder.settings().data);
        std::fs::remove_file(&path).unwrap();
        let cookie = crate::auth::Code::random().unwrap();
        let now = clock::to_milliseconds(SystemTime::now());
        write_format_1(&create(&path), &cookie.hash(), now);
        for opening in 1..=2 {
            let store = folder.store();
            let owner = store
                .account_by_email("owner@example.org")
                .unwrap()
                .unwrap();
            assert_eq!((owner.id.0, owner.token_generation), (OWNER, 7));
            assert!(store.authenticate(&store.token(&owner)).is_ok());
            let session = store.session(cookie.as_str()).unwrap();
            assert_eq!(session.unwrap().account, owner, "opening {opening}");
            assert_eq!(store.usage_totals(owner.id).unwrap().conversions, 300);
            let month = |now| store.usage_in_month(owner.id, now).unwrap();
            let present = month(clock::from_milliseconds(now));
            assert_eq!(present.conversions, 200);
            let last = month(present.start - std::time::Duration::from_millis(1));
            assert_eq!(last.conversions, 100);
            let code = store.invite().unwrap();
            assert_eq!(code.len(), 43, "invitations work");
            let findings = store.snapshot().unwrap().check().unwrap();
            assert_eq!(findings.problems, [""; 0]);
        }
    }

    #[test]
    fn a_migration_that_breaks_off_leaves_one_format_or_the_other_whole() {
        let now = clock::to_milliseconds(SystemTime::now());
        let mut left_old = 0;
        for operations in 0..10_000 {
            let disk = Disk::default();
            {
                let redb = redb::Database::builder()
                    .create_with_backend(disk.clone())
                    .unwrap();
                write_format_1(&redb, &[9; 32], now);
            }
            let database = disk.open();
            disk.break_after(operations);
            let migrated = database.ensure_format().is_ok();
            // As after the end of the process: what the disk has is all there is.
            drop(database);
            disk.mend();

            let redb = redb::Database::builder()
                .create_with_backend(disk.clone())
                .unwrap();
            let read = redb.begin_read().unwrap();
            let format = read.open_table(META).unwrap().get("format").unwrap();
            let format = format.unwrap().value();
            match format {
                1 => {
                    assert!(!migrated, "lost after {operations} operations");
                    left_old += 1;
                    let sessions = read.open_table(SESSIONS_1).unwrap();
                    let session = sessions.get(&[9; 32]).unwrap().unwrap();
                    assert_eq!(session.value(), (OWNER, now + 20 * DAY));
                }
                2 => {}
                other => panic!("format {other} after {operations} operations"),
            }
            drop(read);
            drop(redb);

            let database = disk.open();
            database.ensure_format().unwrap();
            let findings = Snapshot::of(&database).unwrap().check().unwrap();
            assert_eq!(findings.problems, [""; 0], "after {operations} operations");
            assert_eq!(findings.entries, 300);
            if migrated {
                assert!(left_old > 0, "no failure left the old format");
                return;
            }
        }
        panic!("the migration never succeeds");
    }

    #[test]
    fn formats_that_are_not_known_are_refused_and_left_alone() {
        for (format, expected) in [(0, "format is 0"), (3, "newer towebp (format 3")] {
            let folder = Folder::new();
            let path = folder.path().join("towebp.redb");
            let database = Database::open(&path).unwrap();
            database
                .write(|write| Ok(write.open_table(META)?.insert("format", format).map(drop)?))
                .unwrap();
            drop(database);
            for _ in 0..2 {
                let Err(OpenError::Failed(sentence)) = Database::open(&path) else {
                    panic!("format {format} was accepted")
                };
                assert!(sentence.contains(expected), "{sentence}");
            }
        }
    }

    #[test]
    fn a_database_of_another_program_is_refused_and_left_alone() {
        let folder = Folder::new();
        create_private(&folder.settings().data).unwrap();
        let path = database_path(&folder.settings().data);
        let redb = create(&path);
        let write = redb.begin_write().unwrap();
        write
            .open_table(TableDefinition::<u64, u64>::new("other"))
            .unwrap();
        write.commit().unwrap();
        drop(redb);
        let Err(OpenError::Failed(sentence)) = Store::open(&folder.settings()) else {
            panic!("it was opened")
        };
        assert!(sentence.contains("another program"), "{sentence}");
        let redb = redb::Database::open(&path).unwrap();
        let tables = redb.begin_read().unwrap().list_tables().unwrap().count();
        assert_eq!(tables, 1, "tables were added");
    }
}
