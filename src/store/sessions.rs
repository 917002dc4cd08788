//! Sessions: the store starts, renews, lists and ends them.

use std::cmp::Reverse;

use super::Store;
use super::clock;
use super::engine::Command;
use super::error::{Result, StoreError};
use super::session::{Browser, ListedSession, Session, SessionId, SessionTimes, StoredSession};
use crate::auth::{AccountId, Code, CodeHash};

impl Store {
    /// Starts a session and returns the cookie's value: 43 letters and digits. The session ends
    /// after 7 days without use, and after 30 days at the latest. If the account has more than
    /// [`super::MAX_SESSIONS`], the least recently used one ends.
    ///
    /// # Errors
    /// There is no such account, or the store failed.
    pub fn start_session(&self, id: AccountId, browser: &Browser) -> Result<String> {
        let (cookie, now) = (Code::random()?, self.clock.now());
        let started = self.writer.write(Command::StartSession {
            cookie: cookie.hash(),
            account: id,
            session: StoredSession {
                times: SessionTimes::at_start(now),
                browser: browser.bounded(),
            },
            now,
        })?;
        if !started.changed() {
            return Err(StoreError::Failed(format!(
                "no session started: account {} does not exist",
                id.0
            )));
        }
        Ok(cookie.as_str().to_owned())
    }

    /// [`Store::session_of`] without a browser to write.
    pub fn session(&self, cookie: &str) -> Result<Option<Session>> {
        self.session_of(cookie, None)
    }

    /// The session of this cookie; `None` if it is unknown or has ended. This counts as a use of
    /// it, which is written at most once an hour, together with the browser.
    pub fn session_of(&self, cookie: &str, browser: Option<&Browser>) -> Result<Option<Session>> {
        let Some(cookie) = Code::parse(cookie) else {
            return Ok(None);
        };
        let (hash, now) = (cookie.hash(), self.clock.now());
        let found = self
            .read(|engine| engine.session(&hash))?
            .filter(|found| !found.times.is_over(now));
        let Some(found) = found else {
            return Ok(None);
        };
        if let Some(times) = found.times.worth_writing(now) {
            let renewed = self.writer.write(Command::RenewSession {
                cookie: hash,
                times,
                browser: browser.map(Browser::bounded),
            });
            match renewed {
                // A session does not end because the disk is full.
                Ok(_) | Err(StoreError::Unavailable(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Some(Session {
            account: found.account.into(),
            csrf: cookie.csrf(&self.secret),
        }))
    }

    /// The open sessions of the account: first the one of `cookie`, which is the caller's, then the
    /// others, the most recently used one first.
    pub fn sessions(&self, id: AccountId, cookie: &str) -> Result<Vec<ListedSession>> {
        let own = Code::parse(cookie).map(|cookie| cookie.hash());
        let now = self.clock.now();
        let mut sessions = self.read(|engine| engine.sessions(id))?;
        sessions.retain(|(_, session)| !session.times.is_over(now));
        sessions.sort_unstable_by_key(|(hash, session)| {
            (own != Some(*hash), Reverse(session.times.used), *hash)
        });
        let listed = |(hash, session): (CodeHash, StoredSession)| ListedSession {
            id: SessionId::of(&hash),
            created: clock::from_milliseconds(session.times.created),
            used: clock::from_milliseconds(session.times.used),
            browser: session.browser,
            is_own: own == Some(hash),
        };
        Ok(sessions.into_iter().map(listed).collect())
    }

    /// Ends the session of this name; false if the account has none.
    pub fn end_session_of(&self, account: AccountId, id: SessionId) -> Result<bool> {
        let ended = self.writer.write(Command::EndSessionOf {
            account,
            session: id,
        })?;
        Ok(ended.changed())
    }

    /// Ends the session of this cookie, if there is one.
    pub fn end_session(&self, cookie: &str) -> Result<()> {
        let Some(cookie) = Code::parse(cookie) else {
            return Ok(());
        };
        self.writer.write(Command::EndSession {
            cookie: cookie.hash(),
        })?;
        Ok(())
    }

    /// Ends all sessions of the account, in every browser.
    pub fn end_all_sessions(&self, id: AccountId) -> Result<()> {
        self.writer.write(Command::EndSessionsOf(id))?;
        Ok(())
    }
}
