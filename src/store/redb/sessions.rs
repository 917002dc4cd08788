//! Tables `sessions` and `session_ends`.
//!
//! ```text
//! sessions      key    0   32  SHA-256 of the cookie's value
//!               value  0    8  account, u64
//!                      8    8  end unless it is used again, u64, milliseconds since the epoch
//!                     16    8  latest end, u64
//!
//! session_ends  key    0    8  end unless it is used again, u64
//!                      8   32  SHA-256 of the cookie's value
//!               value          nothing
//! ```
//!
//! Numbers have their least significant byte first. The second table is an index: it orders the
//! sessions by their end, so that those that have ended are found without reading all.

use redb::{ReadTransaction, ReadableTable, Table, TableDefinition, WriteTransaction};

use super::accounts;
use crate::auth::{AccountId, CodeHash};
use crate::store::engine::SessionRecord;
use crate::store::session::SessionEnds;

/// Account, end and latest end, by the hash of the cookie.
pub const SESSIONS: TableDefinition<&CodeHash, (u64, u64, u64)> = TableDefinition::new("sessions");
/// The sessions by their end.
pub const SESSION_ENDS: TableDefinition<(u64, &CodeHash), ()> =
    TableDefinition::new("session_ends");

/// The most ended sessions that are removed at a time, so that no sign-in waits for a long removal.
const MAX_SWEPT: usize = 1000;

/// The session of the cookie with this hash; `None` if there is none, or its account is deleted.
pub fn find(
    read: &ReadTransaction,
    cookie: &CodeHash,
) -> Result<Option<SessionRecord>, redb::Error> {
    let session = read.open_table(SESSIONS)?.get(cookie)?;
    let Some((id, end, latest)) = session.map(|value| value.value()) else {
        return Ok(None);
    };
    let record = accounts::by_id(read, AccountId(id))?;
    Ok(record.map(|record| SessionRecord {
        record,
        ends: SessionEnds { end, latest },
    }))
}

/// Both tables, open for writing.
pub struct SessionTables<'t> {
    sessions: Table<'t, &'static CodeHash, (u64, u64, u64)>,
    ends: Table<'t, (u64, &'static CodeHash), ()>,
}

impl<'t> SessionTables<'t> {
    /// Opens the tables, and makes them if they are missing.
    pub fn open(write: &'t WriteTransaction) -> Result<SessionTables<'t>, redb::Error> {
        Ok(SessionTables {
            sessions: write.open_table(SESSIONS)?,
            ends: write.open_table(SESSION_ENDS)?,
        })
    }

    /// Starts a session.
    pub fn start(
        &mut self,
        cookie: &CodeHash,
        account: AccountId,
        ends: SessionEnds,
    ) -> Result<(), redb::Error> {
        let SessionEnds { end, latest } = ends;
        self.sessions.insert(cookie, (account.0, end, latest))?;
        self.ends.insert((end, cookie), ())?;
        Ok(())
    }

    /// Moves the end of a session; nothing happens if there is none.
    pub fn renew(&mut self, cookie: &CodeHash, ends: SessionEnds) -> Result<(), redb::Error> {
        let Some((account, end, _)) = self.sessions.get(cookie)?.map(|value| value.value()) else {
            return Ok(());
        };
        self.ends.remove((end, cookie))?;
        self.start(cookie, AccountId(account), ends)
    }

    /// Ends a session; false if there is none.
    pub fn end(&mut self, cookie: &CodeHash) -> Result<bool, redb::Error> {
        let Some((_, end, _)) = self.sessions.remove(cookie)?.map(|value| value.value()) else {
            return Ok(false);
        };
        self.ends.remove((end, cookie))?;
        Ok(true)
    }

    /// Ends all sessions of an account but the one of the cookie `kept`. This reads all sessions,
    /// which is acceptable because it is rare.
    pub fn end_all_of(
        &mut self,
        account: AccountId,
        kept: Option<&CodeHash>,
    ) -> Result<(), redb::Error> {
        let mut cookies = Vec::new();
        for row in self.sessions.iter()? {
            let (cookie, value) = row?;
            if value.value().0 == account.0 && kept != Some(cookie.value()) {
                cookies.push(*cookie.value());
            }
        }
        for cookie in cookies {
            self.end(&cookie)?;
        }
        Ok(())
    }

    /// Removes sessions that have ended, at most a thousand; false if there was none.
    pub fn sweep(&mut self, now: u64) -> Result<bool, redb::Error> {
        let mut ended = Vec::new();
        for row in self.ends.iter()?.take(MAX_SWEPT) {
            let (key, _) = row?;
            let (end, cookie) = key.value();
            if end > now {
                break;
            }
            ended.push(*cookie);
        }
        for cookie in &ended {
            self.end(cookie)?;
        }
        Ok(!ended.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_have_the_layout_that_is_drawn() {
        let cookie = [9; 32];
        let end = 258_u64;
        assert_eq!(
            <(u64, &CodeHash) as redb::Value>::as_bytes(&(end, &cookie)),
            [&[2, 1, 0, 0, 0, 0, 0, 0][..], &cookie].concat()
        );
        assert_eq!(
            <(u64, u64, u64) as redb::Value>::as_bytes(&(7, end, 3)),
            [
                7, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0
            ]
        );
    }
}
