//! API tokens as the rest of the program sees them.
//!
//! Every account has one token from its beginning, `default`, and may have others beside it, each
//! with a name, limits and a preset of its own. What a request needs of them is an
//! [`AccountAccess`], which is kept in memory ([`super::known`]).

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::clock;
use super::token_number::TokenNumber;
use super::usage::UsageTotals;
use crate::auth::AccountId;

/// The most tokens of an account, with `default`: a token each for the projects of a team. All of
/// them are looked through at each request.
pub const MAX_TOKENS: usize = 50;

/// The most deleted tokens of an account whose names are kept for its history. The names of tokens
/// that were deleted earlier are removed.
pub const MAX_DELETED_TOKENS: usize = 450;

/// The most characters of a name: the width of a column of the dashboard.
pub const MAX_NAME: usize = 40;

/// The most bytes of a preset: some twenty parameters with a watermark's text. It is kept in memory
/// and read at each request.
pub const MAX_PRESET_BYTES: usize = 2000;

/// The longest time for which a rotated token stays valid, in milliseconds: 72 hours, so that its
/// users can be changed from a Friday to a Monday.
pub const MAX_OVERLAP: u64 = 72 * 60 * 60 * 1000;

/// A token of an account. Its text is computed from `serial`, and not stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct ApiToken {
    /// Identifies it.
    pub number: TokenNumber,
    /// When it was made, to the millisecond.
    pub created: SystemTime,
    /// The serial number of its present text.
    pub serial: u32,
    /// The previous text, if it may still be valid.
    pub previous: Option<PreviousText>,
    /// Its settings.
    pub settings: TokenSettings,
}

/// The previous text of a rotated token, which stays valid for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct PreviousText {
    /// Its serial number.
    pub serial: u32,
    /// When it becomes invalid, to the millisecond.
    pub ends: SystemTime,
}

/// The settings of a token, made by the account's owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct TokenSettings {
    /// The name, 1 to [`MAX_NAME`] characters; no other token of the account has it.
    pub name: String,
    /// When the token ceases to work, to the millisecond; `None` for never.
    pub ends: Option<SystemTime>,
    /// Its own limits, beside those of the account.
    pub limits: Limits,
    /// Parameters of conversions, as `http` writes and reads them; at most [`MAX_PRESET_BYTES`].
    pub preset: String,
}

/// How many conversions there may be; `None` for any number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct Limits {
    /// In a minute.
    pub per_minute: Option<NonZeroU32>,
    /// In a calendar month (UTC).
    pub monthly: Option<NonZeroU64>,
}

/// The limits that the operator has set for an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct Restrictions {
    /// Conversions in a minute, 0 for any number; `None` for the server's limit.
    pub per_minute: Option<u32>,
    /// Conversions in a month, 0 for any number; `None` for the server's limit.
    pub monthly: Option<u64>,
    /// Since when the account may not convert; `None` if it may.
    pub disabled: Option<SystemTime>,
}

impl Restrictions {
    /// The account's limits on a server with these.
    pub fn limits(&self, server: Limits) -> Limits {
        Limits {
            per_minute: self.per_minute.map_or(server.per_minute, NonZeroU32::new),
            monthly: self.monthly.map_or(server.monthly, NonZeroU64::new),
        }
    }
}

/// The tokens and limits of an account, which decide about its requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountAccess {
    /// The tokens that are not deleted, `default` first.
    pub tokens: Vec<ApiToken>,
    /// The limits that the operator has set.
    pub restrictions: Restrictions,
}

/// The result of looking up a serial number in an [`AccountAccess`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SerialCheck {
    /// It is one of this token, which is at this index.
    Valid(usize),
    /// The token with it has ended.
    Ended,
    /// No token has it (any more).
    Unknown,
}

impl AccountAccess {
    /// The limits, and those of the tokens that are not deleted.
    pub fn new(tokens: Vec<(ApiToken, Option<u64>)>, restrictions: Restrictions) -> AccountAccess {
        let living = tokens.into_iter().filter(|(_, deleted)| deleted.is_none());
        AccountAccess {
            tokens: living.map(|(token, _)| token).collect(),
            restrictions,
        }
    }

    /// The tokens and limits of a new account.
    pub fn of_new_account(created: u64) -> AccountAccess {
        AccountAccess {
            tokens: vec![ApiToken::default_token(created, 0)],
            restrictions: Restrictions::default(),
        }
    }

    /// The token of this number.
    pub fn token(&self, number: TokenNumber) -> Option<&ApiToken> {
        self.tokens.iter().find(|token| token.number == number)
    }

    /// Whether a token of this name exists, other than `except`.
    pub fn has_name(&self, name: &str, except: Option<TokenNumber>) -> bool {
        let mut tokens = self.tokens.iter();
        tokens.any(|token| token.settings.name == name && Some(token.number) != except)
    }

    /// The token with this serial number at the time `now`.
    pub fn check(&self, serial: u32, now: u64) -> SerialCheck {
        let is_over = |end: SystemTime| clock::to_milliseconds(end) <= now;
        let has_it = |token: &ApiToken| {
            let is_it =
                |previous: PreviousText| previous.serial == serial && !is_over(previous.ends);
            token.serial == serial || token.previous.is_some_and(is_it)
        };
        match self.tokens.iter().position(has_it) {
            Some(index) if self.tokens[index].settings.ends.is_some_and(is_over) => {
                SerialCheck::Ended
            }
            Some(index) => SerialCheck::Valid(index),
            None => SerialCheck::Unknown,
        }
    }

    /// The serial number if there is nothing else to know: only `default`, without any settings.
    pub fn plain_serial(&self) -> Option<u32> {
        match &self.tokens[..] {
            [only]
                if only.settings == TokenSettings::of_default()
                    && only.previous.is_none()
                    && self.restrictions == Restrictions::default() =>
            {
                Some(only.serial)
            }
            _ => None,
        }
    }

    /// The bytes that it takes in a map: those on the heap, and two places, of which one may be
    /// empty.
    pub fn heap_bytes(&self) -> usize {
        const PLACES: usize = 2 * (size_of::<AccountId>() + size_of::<usize>() + 1);
        let texts = |token: &ApiToken| token.settings.name.len() + token.settings.preset.len();
        self.tokens.capacity() * size_of::<ApiToken>()
            + self.tokens.iter().map(texts).sum::<usize>()
            + size_of::<AccountAccess>()
            + PLACES
    }
}

impl ApiToken {
    /// The token that an account has from its beginning.
    pub fn default_token(created: u64, serial: u32) -> ApiToken {
        ApiToken {
            number: TokenNumber::DEFAULT,
            created: clock::from_milliseconds(created),
            serial,
            previous: None,
            settings: TokenSettings::of_default(),
        }
    }

    /// The deleted token, of which only the name is kept.
    #[must_use]
    pub fn deleted(&self) -> ApiToken {
        ApiToken {
            previous: None,
            settings: TokenSettings {
                name: self.settings.name.clone(),
                ..TokenSettings::of_default()
            },
            ..self.clone()
        }
    }

    /// Gives the token another serial number. The present one stays valid until `overlap_ends`,
    /// in milliseconds since the epoch, if that is given.
    pub fn rotate(&mut self, serial: u32, overlap_ends: Option<u64>) {
        self.previous = overlap_ends.map(|ends| PreviousText {
            serial: self.serial,
            ends: clock::from_milliseconds(ends),
        });
        self.serial = serial;
    }
}

impl TokenSettings {
    /// The initial settings of the token `default`.
    pub fn of_default() -> TokenSettings {
        TokenSettings {
            name: TokenNumber::DEFAULT_NAME.to_owned(),
            ends: None,
            limits: Limits::default(),
            preset: String::new(),
        }
    }
}

/// The serial number after `last`: the seconds since the epoch, or one more than `last` if that is
/// greater. So it is not given twice, even if an old copy of the database is put back.
pub fn next_serial(last: u32, now: u64) -> u32 {
    let seconds = u32::try_from(now / 1000).unwrap_or(u32::MAX);
    last.saturating_add(1).max(seconds)
}

/// A token with its usage.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct TokenUsage {
    /// The token.
    pub token: ApiToken,
    /// When it was deleted, if it was.
    pub deleted: Option<SystemTime>,
    /// The sums over its conversions.
    pub totals: UsageTotals,
    /// When its last conversion ended.
    pub last_used: Option<SystemTime>,
}

/// The name of one of an account's tokens, also of a deleted one, unless its name was removed.
pub fn token_name(tokens: &[TokenUsage], number: TokenNumber) -> &str {
    let mut tokens = tokens.iter().map(|usage| &usage.token);
    let token = tokens.find(|token| token.number == number);
    token.map_or("(deleted)", |token| &token.settings.name)
}

/// The end of a day (UTC) that is written such as `2026-12-31`, when a token ends whose last day it
/// is; `None` if the text is no day.
pub fn end_of_day(text: &str) -> Option<SystemTime> {
    clock::start_of_day(text)?.checked_add(Duration::from_hours(24))
}

/// The caller of a request: an account and one of its tokens.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The account.
    pub account: AccountId,
    /// The token.
    pub token: TokenNumber,
    /// The account's tokens and limits; `None` if it has only `default` and no limits.
    access: Option<(Arc<AccountAccess>, usize)>,
}

impl Caller {
    /// The caller with the token `default` of an account without settings.
    pub fn plain(account: AccountId) -> Caller {
        Caller {
            account,
            token: TokenNumber::DEFAULT,
            access: None,
        }
    }

    /// The token at this index.
    pub fn new(account: AccountId, access: Arc<AccountAccess>, index: usize) -> Caller {
        Caller {
            account,
            token: access.tokens[index].number,
            access: Some((access, index)),
        }
    }

    /// The token's settings, if there are any.
    fn settings(&self) -> Option<&TokenSettings> {
        let (access, index) = self.access.as_ref()?;
        Some(&access.tokens[*index].settings)
    }

    /// The token's name.
    pub fn token_name(&self) -> &str {
        self.settings()
            .map_or(TokenNumber::DEFAULT_NAME, |settings| &settings.name)
    }

    /// The token's own limits.
    pub fn token_limits(&self) -> Limits {
        self.settings()
            .map_or_else(Limits::default, |settings| settings.limits)
    }

    /// The token's preset.
    pub fn preset(&self) -> &str {
        self.settings().map_or("", |settings| &settings.preset)
    }

    /// The limits that the operator has set for the account.
    pub fn restrictions(&self) -> Restrictions {
        let access = self.access.as_ref();
        access.map_or_else(Restrictions::default, |(access, _)| access.restrictions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_numbers_follow_the_clock_and_never_go_back() {
        for (last, now, expected) in [
            (0, 0, 1),
            (0, 1_795_000_000_999, 1_795_000_000),
            (1_795_000_000, 1_795_000_000_999, 1_795_000_001),
            (1_795_000_000, 5_000, 1_795_000_001),
            (7, u64::MAX, u32::MAX),
        ] {
            assert_eq!(next_serial(last, now), expected, "{last} at {now}");
        }
    }

    #[test]
    fn a_serial_number_is_good_while_its_token_and_its_text_are() {
        let mut access = AccountAccess::of_new_account(5);
        assert_eq!(access.plain_serial(), Some(0));
        access.tokens[0].rotate(9, Some(100));
        assert_eq!(access.plain_serial(), None);
        access.tokens.push(ApiToken {
            number: TokenNumber(10),
            created: clock::from_milliseconds(10),
            serial: 10,
            previous: None,
            settings: TokenSettings {
                name: "shop".to_owned(),
                ends: Some(clock::from_milliseconds(50)),
                ..TokenSettings::of_default()
            },
        });
        for (serial, now, expected) in [
            (9, 0, SerialCheck::Valid(0)),
            (9, u64::MAX, SerialCheck::Valid(0)),
            (0, 99, SerialCheck::Valid(0)),
            (0, 100, SerialCheck::Unknown),
            (10, 49, SerialCheck::Valid(1)),
            (10, 50, SerialCheck::Ended),
            (11, 0, SerialCheck::Unknown),
        ] {
            assert_eq!(access.check(serial, now), expected, "{serial} at {now}");
        }
        access.tokens[0].rotate(11, None);
        assert_eq!(access.check(9, 0), SerialCheck::Unknown, "without overlap");
    }

    #[test]
    fn an_account_s_limits_stand_in_for_the_server_s() {
        let server = Limits {
            per_minute: NonZeroU32::new(10),
            monthly: NonZeroU64::new(100),
        };
        let restricted = |per_minute, monthly| {
            let restrictions = Restrictions {
                per_minute,
                monthly,
                disabled: None,
            };
            let limits = restrictions.limits(server);
            (
                limits.per_minute.map(NonZeroU32::get),
                limits.monthly.map(NonZeroU64::get),
            )
        };
        assert_eq!(restricted(None, None), (Some(10), Some(100)));
        assert_eq!(restricted(Some(3), Some(0)), (Some(3), None));
        assert_eq!(restricted(Some(0), Some(7)), (None, Some(7)));
    }
}
