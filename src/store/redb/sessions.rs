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

use redb::{ReadTransaction, ReadableTable, TableDefinition};

use super::accounts::{self, ACCOUNTS};
use super::result::Result;
use crate::auth::{AccountId, CodeHash};
use crate::store::columns::{self, SessionColumns};
use crate::store::engine::SessionRecord;
use crate::store::session::StoredSession;

/// Sessions by the hash of the cookie.
pub const SESSIONS: TableDefinition<&CodeHash, Value> = TableDefinition::new("sessions");
/// The sessions by their end.
pub const SESSION_ENDS: TableDefinition<(u64, &CodeHash), ()> =
    TableDefinition::new("session_ends");
/// The sessions by their account.
pub const ACCOUNT_SESSIONS: TableDefinition<(u64, &CodeHash), ()> =
    TableDefinition::new("account_sessions");

/// All columns but the hash of the cookie.
pub type Value = SessionColumns<'static>;

/// The session of the cookie with this hash; `None` if there is none, or its account is deleted.
pub fn find(read: &ReadTransaction, cookie: &CodeHash) -> Result<Option<SessionRecord>> {
    let Some(value) = read.open_table(SESSIONS)?.get(cookie)? else {
        return Ok(None);
    };
    let (account, session) = columns::session(value.value());
    let account = accounts::by_id(&read.open_table(ACCOUNTS)?, account)?;
    Ok(account.map(|account| SessionRecord {
        account,
        times: session.times,
    }))
}

/// The sessions of an account with the hashes of their cookies.
pub fn all_of(
    index: &impl ReadableTable<(u64, &'static CodeHash), ()>,
    sessions: &impl ReadableTable<&'static CodeHash, Value>,
    account: AccountId,
) -> Result<Vec<(CodeHash, StoredSession)>> {
    let mut all = Vec::new();
    let [first, last] = [[0; 32], [u8::MAX; 32]];
    for row in index.range((account.0, &first)..=(account.0, &last))? {
        let cookie = *row?.0.value().1;
        if let Some(value) = sessions.get(&cookie)? {
            all.push((cookie, columns::session(value.value()).1));
        }
    }
    Ok(all)
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
        let value: SessionColumns<'_> = (7, 1, 2, end, 3, "F", "10");
        assert_eq!(<Value as redb::Value>::as_bytes(&value), drawn.concat());
    }
}
