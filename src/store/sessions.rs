//! Tables `sessions` and `session_ends`, and the cookie.
//!
//! ```text
//! sessions      key    0   32  SHA-256 of the cookie's value
//!               value  0    8  account, u64
//!                      8    8  end unless it is used again, u64, milliseconds since the epoch
//!                     16    8  end at the latest, u64
//!
//! session_ends  key    0    8  end unless it is used again, u64
//!                      8   32  SHA-256 of the cookie's value
//!               value          nothing
//! ```
//!
//! Numbers have their least significant byte first. The second table orders the sessions by their end, so that
//! expired ones are found without reading all.
//!
//! Using a session moves its end to 7 days from now, but not past 30 days from its start. That is written when it makes a
//! difference of an hour. The same hour moves ends back to where they belong that a clock which was ahead has put into
//! the far future.
//!
//! The cookie's value is 256 random bits as 43 base-62 digits. Only its hash is stored: the database gives no way
//! into a session.

use redb::{ReadTransaction, ReadableTable, Table, TableDefinition, WriteTransaction};
use subtle::ConstantTimeEq;

use super::accounts::{self, Account};
use crate::auth::AccountId;

/// Account, end unless it is used again, end at the latest.
pub const SESSIONS: TableDefinition<&[u8; 32], (u64, u64, u64)> = TableDefinition::new("sessions");
/// The sessions by their end.
pub const SESSION_ENDS: TableDefinition<(u64, &[u8; 32]), ()> =
    TableDefinition::new("session_ends");

const HOUR: u64 = 60 * 60 * 1000;

/// How long a session lasts at most, in milliseconds: 30 days.
const LIFETIME: u64 = 30 * 24 * HOUR;

/// How long a session lasts that is not used, in milliseconds: 7 days, so that who comes every week stays signed in, and a
/// browser that was left somewhere does not for long.
const IDLE: u64 = 7 * 24 * HOUR;

/// A use is written when it moves the end by so much: at most one commit an hour for each session.
const WORTH_WRITING: u64 = HOUR;

/// Expired sessions removed at a time: no sign-in waits long for a big sweep.
const SWEPT_AT_ONCE: usize = 1000;

/// A signed-in browser.
#[derive(Clone, Debug)]
pub struct Session {
    /// Whose it is.
    pub account: Account,
    /// Must come back with every form.
    pub csrf: String,
}

impl Session {
    /// Whether a form brought back the right `csrf`, in constant time.
    pub fn csrf_matches(&self, given: &str) -> bool {
        self.csrf.as_bytes().ct_eq(given.as_bytes()).into()
    }
}

/// Whose the session is, and whether this use of it is worth writing; `None` if it is unknown, expired, or its account is
/// deleted.
///
/// # Errors
/// Those of redb.
pub fn find(
    read: &ReadTransaction,
    cookie: &[u8; 32],
    now: u64,
) -> Result<Option<(Account, bool)>, redb::Error> {
    let sessions = read.open_table(SESSIONS)?;
    match sessions.get(cookie)?.map(|value| value.value()) {
        Some((id, end, latest)) if end > now => {
            let (used, _) = ends(now, latest);
            let is_worth_writing = used.abs_diff(end) >= WORTH_WRITING;
            let record = accounts::by_id(read, AccountId(id))?;
            Ok(record.map(|record| (record.account, is_worth_writing)))
        }
        _ => Ok(None),
    }
}

/// The end of a session that is used now, and its end at the latest. No session lasts longer than one that begins now.
fn ends(now: u64, latest: u64) -> (u64, u64) {
    let latest = latest.min(now.saturating_add(LIFETIME));
    (latest.min(now.saturating_add(IDLE)), latest)
}

/// The tables, open to write.
pub struct Tables<'t> {
    sessions: Table<'t, &'static [u8; 32], (u64, u64, u64)>,
    ends: Table<'t, (u64, &'static [u8; 32]), ()>,
}

impl<'t> Tables<'t> {
    /// Opens them, making them if missing.
    ///
    /// # Errors
    /// Those of redb.
    pub fn open(write: &'t WriteTransaction) -> Result<Tables<'t>, redb::Error> {
        Ok(Tables {
            sessions: write.open_table(SESSIONS)?,
            ends: write.open_table(SESSION_ENDS)?,
        })
    }

    /// Starts a session.
    ///
    /// # Errors
    /// Those of redb.
    pub fn start(
        &mut self,
        cookie: &[u8; 32],
        account: AccountId,
        now: u64,
    ) -> Result<(), redb::Error> {
        self.put(cookie, account, ends(now, u64::MAX))
    }

    /// Moves the end of a session that is used now; nothing happens if there is none.
    ///
    /// # Errors
    /// Those of redb.
    pub fn renew(&mut self, cookie: &[u8; 32], now: u64) -> Result<(), redb::Error> {
        let Some((account, end, latest)) = self.sessions.get(cookie)?.map(|value| value.value())
        else {
            return Ok(());
        };
        self.ends.remove((end, cookie))?;
        self.put(cookie, AccountId(account), ends(now, latest))
    }

    /// Puts sessions, each with its account and its end at the latest, in the place of all that there are. They count as
    /// used now.
    ///
    /// # Errors
    /// Those of redb.
    pub fn refill(
        &mut self,
        sessions: &[([u8; 32], (u64, u64))],
        now: u64,
    ) -> Result<(), redb::Error> {
        self.sessions.retain(|_, _| false)?;
        self.ends.retain(|_, ()| false)?;
        for (cookie, (account, latest)) in sessions {
            self.put(cookie, AccountId(*account), ends(now, *latest))?;
        }
        Ok(())
    }

    fn put(
        &mut self,
        cookie: &[u8; 32],
        account: AccountId,
        (end, latest): (u64, u64),
    ) -> Result<(), redb::Error> {
        self.sessions.insert(cookie, (account.0, end, latest))?;
        self.ends.insert((end, cookie), ())?;
        Ok(())
    }

    /// Ends a session; false if there is none.
    ///
    /// # Errors
    /// Those of redb.
    pub fn end(&mut self, cookie: &[u8; 32]) -> Result<bool, redb::Error> {
        let Some((_, end, _)) = self.sessions.remove(cookie)?.map(|value| value.value()) else {
            return Ok(false);
        };
        self.ends.remove((end, cookie))?;
        Ok(true)
    }

    /// Ends all sessions of an account but that of the cookie `kept`. Reads all sessions: it is rare.
    ///
    /// # Errors
    /// Those of redb.
    pub fn end_all_of(
        &mut self,
        account: AccountId,
        kept: Option<&[u8; 32]>,
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

    /// Removes expired sessions, up to a thousand; whether there were any.
    ///
    /// # Errors
    /// Those of redb.
    pub fn sweep(&mut self, now: u64) -> Result<bool, redb::Error> {
        let mut expired = Vec::new();
        for row in self.ends.iter()?.take(SWEPT_AT_ONCE) {
            let (key, _) = row?;
            let (end, cookie) = key.value();
            if end > now {
                break;
            }
            expired.push(*cookie);
        }
        for cookie in &expired {
            self.end(cookie)?;
        }
        Ok(!expired.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_as_drawn() {
        let cookie = [9; 32];
        let end = 258_u64;
        assert_eq!(
            <(u64, &[u8; 32]) as redb::Value>::as_bytes(&(end, &cookie)),
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
