//! Sessions of signed-in browsers, and how long they last.
//!
//! Each use of a session moves its end to 7 days from then, but never past 30 days from its start.
//! The new end is written only if it differs from the stored one by at least an hour, so there is
//! at most one commit an hour for each session. The same rule corrects ends in the far future that
//! were written while the clock was ahead.

use subtle::ConstantTimeEq;

use super::account::Account;

const HOUR: u64 = 60 * 60 * 1000;

/// How long a session lasts at most, in milliseconds: 30 days.
const MAX_LIFETIME: u64 = 30 * 24 * HOUR;

/// How long a session lasts without being used, in milliseconds: 7 days. People who come every week
/// stay signed in, and a browser that was left somewhere does not for long.
const MAX_IDLE: u64 = 7 * 24 * HOUR;

/// The least change of a session's end that is written, in milliseconds.
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

/// When a session ends. Times are milliseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionEnds {
    /// When the session ends unless it is used again.
    pub end: u64,
    /// When the session ends even if it is used.
    pub latest: u64,
}

impl SessionEnds {
    /// The ends of a session that starts now.
    pub fn at_start(now: u64) -> SessionEnds {
        SessionEnds {
            end: 0,
            latest: u64::MAX,
        }
        .after_use(now)
    }

    /// The ends of this session once it is used now. No session lasts longer than one that starts
    /// now.
    pub fn after_use(self, now: u64) -> SessionEnds {
        let latest = self.latest.min(now.saturating_add(MAX_LIFETIME));
        SessionEnds {
            end: latest.min(now.saturating_add(MAX_IDLE)),
            latest,
        }
    }

    /// Whether the session has ended.
    pub fn is_over(self, now: u64) -> bool {
        self.end <= now
    }

    /// The ends to write because of a use now; `None` if they differ too little from the stored
    /// ones.
    pub fn worth_writing(self, now: u64) -> Option<SessionEnds> {
        let used = self.after_use(now);
        (used.end.abs_diff(self.end) >= MIN_WRITTEN_CHANGE).then_some(used)
    }
}
