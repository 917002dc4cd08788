//! Sessions of signed-in browsers, and how long they last.
//!
//! Each use of a session moves its end to 7 days from then, but never past 30 days from its start.
//! A use is written only if it differs from the one that is stored by at least an hour, so there is
//! at most one commit an hour for each session. The same rule corrects times in the far future that
//! were written while the clock was ahead.

use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

use subtle::ConstantTimeEq;

use super::account::Account;
use crate::auth::CodeHash;

/// The most sessions of an account; then the least recently used one ends. A person has some ten
/// browsers. A program that signs in for each request, instead of using a token, must neither fill
/// the database nor make the list endless.
pub const MAX_SESSIONS: usize = 100;

/// The most characters of a browser's name.
pub const MAX_BROWSER_NAME: usize = 60;

/// The most characters of a network, as `2001:db8:1234:5600::/56`.
pub const MAX_NETWORK: usize = 45;

const HOUR: u64 = 60 * 60 * 1000;

/// How long a session lasts at most, in milliseconds: 30 days.
const MAX_LIFETIME: u64 = 30 * 24 * HOUR;

/// How long a session lasts without being used, in milliseconds: 7 days. People who come every week
/// stay signed in, and a browser that was left somewhere does not for long.
const MAX_IDLE: u64 = 7 * 24 * HOUR;

/// The least change of a session's last use that is written, in milliseconds.
const MIN_WRITTEN_CHANGE: u64 = HOUR;

/// A signed-in browser.
#[derive(Clone, Debug)]
pub struct Session {
    /// The account that is signed in.
    pub account: Account,
    /// The value that every form of this session must send back.
    pub csrf: String,
}

impl Session {
    /// Whether a form sent back the right `csrf`, compared in constant time.
    pub fn csrf_matches(&self, given: &str) -> bool {
        self.csrf.as_bytes().ct_eq(given.as_bytes()).into()
    }
}

/// The name and the network of a browser. They are text from outside, which must be escaped in
/// pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Browser {
    /// Its name and system, at most [`MAX_BROWSER_NAME`] characters; empty if they are unknown.
    pub name: String,
    /// The network of its address, at most [`MAX_NETWORK`] characters; empty if it is unknown.
    pub network: String,
}

impl Browser {
    /// The browser with both texts cut to their maximum lengths.
    #[must_use]
    pub fn bounded(&self) -> Browser {
        let cut = |text: &str, most| text.chars().take(most).collect();
        Browser {
            name: cut(&self.name, MAX_BROWSER_NAME),
            network: cut(&self.network, MAX_NETWORK),
        }
    }
}

/// When a session began, was used, and ends. Times are milliseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionTimes {
    /// When it began.
    pub created: u64,
    /// When it was used last, as far as that was written.
    pub used: u64,
    /// When it ends unless it is used again.
    pub end: u64,
    /// When it ends even if it is used.
    pub latest: u64,
}

impl SessionTimes {
    /// The times of a session that starts now.
    pub fn at_start(now: u64) -> SessionTimes {
        SessionTimes {
            created: now,
            used: now,
            end: 0,
            latest: u64::MAX,
        }
        .after_use(now)
    }

    /// The times of this session once it is used now. No session lasts longer than one that starts
    /// now, and none began later.
    pub fn after_use(self, now: u64) -> SessionTimes {
        let latest = self.latest.min(now.saturating_add(MAX_LIFETIME));
        SessionTimes {
            created: self.created.min(now),
            used: now,
            end: latest.min(now.saturating_add(MAX_IDLE)),
            latest,
        }
    }

    /// Whether the session has ended.
    pub fn is_over(self, now: u64) -> bool {
        self.end <= now
    }

    /// The times to write because of a use now; `None` if they differ too little from the stored
    /// ones.
    pub fn worth_writing(self, now: u64) -> Option<SessionTimes> {
        (self.used.abs_diff(now) >= MIN_WRITTEN_CHANGE).then(|| self.after_use(now))
    }
}

/// A session as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSession {
    /// Its times.
    pub times: SessionTimes,
    /// The browser at its last written use.
    pub browser: Browser,
}

/// Names a session to its owner: the first half of the hash of its cookie. Neither the cookie nor
/// the whole hash can be computed from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionId(pub [u8; 16]);

impl SessionId {
    /// The id of the session whose cookie has this hash.
    pub fn of(cookie: &CodeHash) -> SessionId {
        let mut id = [0; 16];
        id.copy_from_slice(&cookie[..16]);
        SessionId(id)
    }

    /// The first and the last hash of a cookie that a session of this name can have.
    pub fn hashes(self) -> [CodeHash; 2] {
        [0, u8::MAX].map(|filler| {
            let mut hash = [filler; 32];
            hash[..16].copy_from_slice(&self.0);
            hash
        })
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl FromStr for SessionId {
    type Err = ();

    /// Reads what [`SessionId`] writes: 32 hexadecimal digits.
    fn from_str(text: &str) -> Result<SessionId, ()> {
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u128::from_str_radix(text, 16).ok().filter(|_| is_hex);
        number
            .map(|number| SessionId(number.to_be_bytes()))
            .ok_or(())
    }
}

/// A session as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSession {
    /// Names it.
    pub id: SessionId,
    /// When it began, to the millisecond.
    pub created: SystemTime,
    /// When it was used last; at most an hour earlier than it really was.
    pub used: SystemTime,
    /// The browser at its last written use.
    pub browser: Browser,
    /// Whether it is the caller's session.
    pub is_own: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_s_name_is_written_and_read() {
        let mut hash = [0; 32];
        for (i, byte) in (0..).zip(&mut hash) {
            *byte = i;
        }
        let id = SessionId::of(&hash);
        let text = id.to_string();
        assert_eq!(text, "000102030405060708090a0b0c0d0e0f");
        assert_eq!(text.parse(), Ok(id));
        let [first, last] = id.hashes();
        assert!(first < hash && hash < last);
        for wrong in ["", "0", &text[1..], &format!("+{}", &text[1..]), "ä"] {
            assert_eq!(wrong.parse::<SessionId>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn texts_of_browsers_are_cut() {
        let browser = Browser {
            name: "é".repeat(MAX_BROWSER_NAME + 1),
            network: "1".repeat(MAX_NETWORK + 1),
        };
        let cut = browser.bounded();
        assert_eq!(cut.name.chars().count(), MAX_BROWSER_NAME);
        assert_eq!(cut.network.len(), MAX_NETWORK);
        assert_eq!(cut.bounded(), cut);
    }
}
