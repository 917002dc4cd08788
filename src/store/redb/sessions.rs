//! Tables `sessions`, `session_ends` and `account_sessions`.
//!
//! ```text
//! sessions          key    0   32  SHA-256 of the cookie's value
//!                   value  0    1  length n of the browser's name, 0 to 240
//!                          1    8  account, u64
//!                          9    8  beginning, u64, milliseconds since the epoch
//!                         17    8  last use that was written, u64
//!                         25    8  end unless it is used again, u64
//!                         33    8  latest end, u64
//!                         41    n  the browser's name, UTF-8; empty if unknown
//!                       41+n    .  the network of its address, to the end; empty if unknown
//!
//! session_ends      key    0    8  end unless it is used again, u64
//!                          8   32  SHA-256 of the cookie's value
//!                   value          nothing
//!
//! account_sessions  key    0    8  account, u64
//!                          8   32  SHA-256 of the cookie's value
//!                   value          nothing
//! ```
//!
//! Numbers have their least significant byte first. The second and the third table are indexes: by
//! their end, so that sessions that have ended are found without reading all, and by their account.

use redb::{ReadTransaction, ReadableTable, Table, TableDefinition, WriteTransaction};

use super::accounts;
use crate::auth::{AccountId, CodeHash};
use crate::store::engine::SessionRecord;
use crate::store::session::{Browser, MAX_SESSIONS, SessionId, SessionTimes, StoredSession};

/// Sessions by the hash of the cookie.
pub const SESSIONS: TableDefinition<&CodeHash, Value> = TableDefinition::new("sessions");
/// The sessions by their end.
pub const SESSION_ENDS: TableDefinition<(u64, &CodeHash), ()> =
    TableDefinition::new("session_ends");
/// The sessions by their account.
pub const ACCOUNT_SESSIONS: TableDefinition<(u64, &CodeHash), ()> =
    TableDefinition::new("account_sessions");

/// Account, beginning, last use, end, latest end, the browser's name and its network.
pub type Value = (u64, u64, u64, u64, u64, &'static str, &'static str);
type ValueRef<'a> = (u64, u64, u64, u64, u64, &'a str, &'a str);

/// The most ended sessions that are removed at a time, so that no sign-in waits for a long removal.
const MAX_SWEPT: usize = 1000;

/// The session of the cookie with this hash; `None` if there is none, or its account is deleted.
pub fn find(
    read: &ReadTransaction,
    cookie: &CodeHash,
) -> Result<Option<SessionRecord>, redb::Error> {
    let Some(value) = read.open_table(SESSIONS)?.get(cookie)? else {
        return Ok(None);
    };
    let (account, session) = session(value.value());
    let record = accounts::by_id(read, account)?;
    Ok(record.map(|record| SessionRecord {
        record,
        times: session.times,
    }))
}

/// The sessions of an account with the hashes of their cookies.
pub fn all_of(
    read: &ReadTransaction,
    account: AccountId,
) -> Result<Vec<(CodeHash, StoredSession)>, redb::Error> {
    let sessions = read.open_table(SESSIONS)?;
    let mut all = Vec::new();
    let [first, last] = every_hash();
    let index = read.open_table(ACCOUNT_SESSIONS)?;
    for row in index.range((account.0, &first)..=(account.0, &last))? {
        let cookie = *row?.0.value().1;
        if let Some(value) = sessions.get(&cookie)? {
            all.push((cookie, session(value.value()).1));
        }
    }
    Ok(all)
}

/// All three tables, open for writing.
pub struct SessionTables<'t> {
    sessions: Table<'t, &'static CodeHash, Value>,
    ends: Table<'t, (u64, &'static CodeHash), ()>,
    by_account: Table<'t, (u64, &'static CodeHash), ()>,
}

impl<'t> SessionTables<'t> {
    /// Opens the tables, and makes them if they are missing.
    pub fn open(write: &'t WriteTransaction) -> Result<SessionTables<'t>, redb::Error> {
        Ok(SessionTables {
            sessions: write.open_table(SESSIONS)?,
            ends: write.open_table(SESSION_ENDS)?,
            by_account: write.open_table(ACCOUNT_SESSIONS)?,
        })
    }

    /// Starts a session. If the account has [`MAX_SESSIONS`] already, those end that were not used
    /// for the longest time.
    pub fn start(
        &mut self,
        cookie: &CodeHash,
        account: AccountId,
        session: &StoredSession,
    ) -> Result<(), redb::Error> {
        self.end_unused(account, MAX_SESSIONS - 1)?;
        self.put(cookie, account, session)
    }

    /// Ends those sessions of an account that were not used for the longest time, until there are
    /// at most `most`.
    pub fn end_unused(&mut self, account: AccountId, most: usize) -> Result<(), redb::Error> {
        let cookies = self.cookies_of(account, every_hash())?;
        let ended = cookies.len().saturating_sub(most);
        if ended == 0 {
            return Ok(());
        }
        let mut all = Vec::new();
        for cookie in cookies {
            let used = self.sessions.get(&cookie)?.map(|value| value.value().2);
            all.push((used, cookie));
        }
        all.sort_unstable();
        for (_, cookie) in &all[..ended] {
            self.end(cookie)?;
        }
        Ok(())
    }

    /// Writes the use of a session; nothing happens if there is none.
    pub fn renew(
        &mut self,
        cookie: &CodeHash,
        times: SessionTimes,
        browser: Option<&Browser>,
    ) -> Result<(), redb::Error> {
        let Some((account, mut stored)) = self
            .sessions
            .get(cookie)?
            .map(|value| session(value.value()))
        else {
            return Ok(());
        };
        self.ends.remove((stored.times.end, cookie))?;
        stored.times = times;
        if let Some(browser) = browser {
            stored.browser = browser.clone();
        }
        self.put(cookie, account, &stored)
    }

    /// Ends a session; false if there is none.
    pub fn end(&mut self, cookie: &CodeHash) -> Result<bool, redb::Error> {
        let removed = self.sessions.remove(cookie)?;
        let Some((account, end)) = removed.map(|value| (value.value().0, value.value().3)) else {
            return Ok(false);
        };
        self.ends.remove((end, cookie))?;
        self.by_account.remove((account, cookie))?;
        Ok(true)
    }

    /// Ends the session of this name, if it is one of the account; false if it is none.
    pub fn end_of(&mut self, account: AccountId, id: SessionId) -> Result<bool, redb::Error> {
        let mut ended = false;
        for cookie in self.cookies_of(account, id.hashes())? {
            ended |= self.end(&cookie)?;
        }
        Ok(ended)
    }

    /// Ends all sessions of an account but the one of the cookie `kept`.
    pub fn end_all_of(
        &mut self,
        account: AccountId,
        kept: Option<&CodeHash>,
    ) -> Result<(), redb::Error> {
        for cookie in self.cookies_of(account, every_hash())? {
            if kept != Some(&cookie) {
                self.end(&cookie)?;
            }
        }
        Ok(())
    }

    /// The account's cookies between two hashes.
    fn cookies_of(
        &self,
        account: AccountId,
        [first, last]: [CodeHash; 2],
    ) -> Result<Vec<CodeHash>, redb::Error> {
        let keys = (account.0, &first)..=(account.0, &last);
        let mut cookies = Vec::new();
        for row in self.by_account.range(keys)? {
            cookies.push(*row?.0.value().1);
        }
        Ok(cookies)
    }

    /// Writes a row, and its entries in the indexes.
    pub fn put(
        &mut self,
        cookie: &CodeHash,
        account: AccountId,
        session: &StoredSession,
    ) -> Result<(), redb::Error> {
        let StoredSession { times, browser } = session;
        let value: ValueRef = (
            account.0,
            times.created,
            times.used,
            times.end,
            times.latest,
            &browser.name,
            &browser.network,
        );
        self.sessions.insert(cookie, value)?;
        self.ends.insert((times.end, cookie), ())?;
        self.by_account.insert((account.0, cookie), ())?;
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

/// The first and the last hash of a cookie.
fn every_hash() -> [CodeHash; 2] {
    [[0; 32], [u8::MAX; 32]]
}

/// The account and the session of a row.
fn session(
    (account, created, used, end, latest, name, network): ValueRef,
) -> (AccountId, StoredSession) {
    let session = StoredSession {
        times: SessionTimes {
            created,
            used,
            end,
            latest,
        },
        browser: Browser {
            name: name.to_owned(),
            network: network.to_owned(),
        },
    };
    (AccountId(account), session)
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
        let drawn = [
            &[1][..],                  // length of the name
            &[7, 0, 0, 0, 0, 0, 0, 0], // account
            &[1, 0, 0, 0, 0, 0, 0, 0], // beginning
            &[2, 0, 0, 0, 0, 0, 0, 0], // last use
            &[2, 1, 0, 0, 0, 0, 0, 0], // end
            &[3, 0, 0, 0, 0, 0, 0, 0], // latest end
            b"F",                      // name
            b"10",                     // network
        ];
        let value: ValueRef = (7, 1, 2, end, 3, "F", "10");
        assert_eq!(<Value as redb::Value>::as_bytes(&value), drawn.concat());
    }
}
