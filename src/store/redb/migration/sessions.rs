//! From format 3 to 4: sessions know when they began, when they were used, and by which browser,
//! and are found by their account.
//!
//! Format 3 had the account and both ends of a session in its row. The beginning and the last use
//! follow from the ends; the browser and its network are unknown until the session is used again.

use redb::{ReadableTable, TableDefinition, WriteTransaction};

use crate::auth::{AccountId, CodeHash};
use crate::store::redb::sessions::SessionTables;
use crate::store::session::{Browser, MAX_SESSIONS, SessionTimes, StoredSession};

/// Account, end and latest end of the sessions of format 3, by the hash of the cookie.
const OLD: TableDefinition<&CodeHash, (u64, u64, u64)> = TableDefinition::new("sessions");

/// The name of the same table while it is read.
const RENAMED: TableDefinition<&CodeHash, (u64, u64, u64)> =
    TableDefinition::new("sessions_of_format_3");

/// Rewrites the sessions: some bytes for each browser that was signed in during the last week. Of
/// an account that has more than are allowed now, those end that were not used for the longest
/// time.
pub fn begin(write: &WriteTransaction) -> Result<(), redb::Error> {
    // A table is opened with the types of its rows, so one of the same name must not be there.
    write.rename_table(OLD, RENAMED)?;
    let old = write.open_table(RENAMED)?;
    let mut sessions = SessionTables::open(write)?;
    for row in old.iter()? {
        let (cookie, value) = row?;
        let (account, end, latest) = value.value();
        let session = StoredSession {
            times: SessionTimes::of_ends(end, latest),
            browser: Browser::default(),
        };
        let account = AccountId(account);
        sessions.put(cookie.value(), account, &session)?;
        sessions.end_unused(account, MAX_SESSIONS)?;
    }
    drop(old);
    write.delete_table(RENAMED)?;
    Ok(())
}

/// Gives an account of format 3 this many sessions more, each used a millisecond after the one
/// before; the last 31 bytes of each hash are zero.
#[cfg(test)]
pub fn add_sessions(
    write: &WriteTransaction,
    account: AccountId,
    count: u8,
) -> Result<(), redb::Error> {
    use crate::store::redb::sessions::SESSION_ENDS;
    let (mut sessions, mut ends) = (write.open_table(OLD)?, write.open_table(SESSION_ENDS)?);
    for i in 0..count {
        let mut cookie = [0; 32];
        cookie[0] = i;
        let times = SessionTimes::at_start(2_000_000_000_000 + u64::from(i));
        sessions.insert(&cookie, (account.0, times.end, times.latest))?;
        ends.insert((times.end, &cookie), ())?;
    }
    Ok(())
}

/// Undoes [`begin`], for tests.
#[cfg(test)]
pub fn set_back(write: &WriteTransaction) -> Result<(), redb::Error> {
    use crate::store::redb::sessions::{ACCOUNT_SESSIONS, SESSIONS};
    let mut old = write.open_table(RENAMED)?;
    let sessions = write.open_table(SESSIONS)?;
    for row in sessions.iter()? {
        let (cookie, value) = row?;
        let (account, _, _, end, latest, ..) = value.value();
        old.insert(cookie.value(), (account, end, latest))?;
    }
    drop((old, sessions));
    write.delete_table(SESSIONS)?;
    write.delete_table(ACCOUNT_SESSIONS)?;
    write.rename_table(RENAMED, OLD)?;
    Ok(())
}
