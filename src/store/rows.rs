//! All stored data as rows that are independent of the engine, for backups, copies and checks.
//!
//! A snapshot gives its rows in one order ([`super::engine::Snapshot::rows`]), in which they can be
//! loaded in one pass with little memory:
//!
//! 1. [`Row::Store`];
//! 2. the invitations;
//! 3. each account by its number, and directly after it its rows: tokens by number, restrictions,
//!    sums of removed entries, sums by day in order, the history with its oldest entry first, and
//!    failed conversions, the oldest first.
//!
//! Sums by day are kept for ever, and sums over months, tokens and accounts follow from them.
//! Neither these nor indexes are rows: a loader makes them again. The keys by which engines order
//! histories are not in the rows either. Sessions are left out: whoever restores a backup after a
//! theft does not want the thief's sessions back.

use std::hash::{DefaultHasher, Hash};

use serde::{Deserialize, Serialize};

use super::account::Account;
use super::clock;
use super::failure::Failure;
use super::token::{ApiToken, Restrictions};
use super::usage::{UsageDay, UsageEntry, UsageTotals};
use crate::auth::{AccountId, CodeHash};

/// One row.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Row {
    /// Values of the whole store.
    Store {
        /// The last account number given; 0 before the first.
        last_account: u64,
        /// The mark of the secret last used.
        secret_mark: Option<u64>,
    },
    /// An invitation.
    Invite {
        /// The hash of its code.
        code: CodeHash,
        /// When it ends, in milliseconds since the epoch.
        end: u64,
    },
    /// An account.
    Account(AccountRow),
    /// A token.
    Token {
        /// The token.
        token: ApiToken,
        /// When it was deleted, in milliseconds since the epoch.
        deleted: Option<u64>,
    },
    /// The limits that the operator has set for the account.
    Restrictions(Restrictions),
    /// The sums over the entries that were removed from the history, if there are any.
    Removed(UsageTotals),
    /// Sums by day, token and format.
    Day {
        /// The sums.
        day: UsageDay,
        /// The latest time of a conversion in them, in milliseconds since the epoch.
        last_used: u64,
    },
    /// An entry of the history.
    Entry(UsageEntry),
    /// A conversion that failed.
    Failure(Failure),
}

/// An account with all of its own columns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct AccountRow {
    /// Its number.
    pub id: AccountId,
    /// Its e-mail address.
    pub email: String,
    /// When it was made, in milliseconds since the epoch.
    pub created: u64,
    /// The last serial number of a token of it.
    pub last_serial: u32,
    /// The password's PHC string, if it has one.
    pub password: Option<String>,
    /// The text of [`crate::auth::SecondFactor`], if it has one.
    pub second_factor: Option<String>,
}

impl From<AccountRow> for Account {
    fn from(row: AccountRow) -> Account {
        Account {
            id: row.id,
            email: row.email,
            created: clock::from_milliseconds(row.created),
            has_password: row.password.is_some(),
            has_second_factor: row.second_factor.is_some(),
        }
    }
}

impl Row {
    /// Whether it has what holds without it, so that snapshots leave it out: no limit, or no
    /// removed entry, which is left by a search for old entries that found none.
    pub fn is_empty(&self) -> bool {
        match self {
            Row::Restrictions(restrictions) => *restrictions == Restrictions::default(),
            Row::Removed(removed) => *removed == UsageTotals::default(),
            _ => false,
        }
    }

    /// The bytes of memory that the row takes, roughly.
    pub fn memory(&self) -> usize {
        let texts = match self {
            Row::Account(account) => {
                let texts = [&account.password, &account.second_factor];
                let texts = texts.into_iter().flatten().map(String::len);
                account.email.len() + texts.sum::<usize>()
            }
            Row::Token { token, .. } => token.settings.name.len() + token.settings.preset.len(),
            Row::Day { day, .. } => day.format.len(),
            Row::Entry(entry) => entry.format.len(),
            Row::Failure(failure) => failure.code.len(),
            Row::Store { .. } | Row::Invite { .. } | Row::Restrictions(_) | Row::Removed(_) => 0,
        };
        size_of::<Row>() + texts
    }
}

/// Counts and sums over rows, by which two engines are compared.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// The number of accounts.
    pub accounts: u64,
    /// The number of tokens, with those that are deleted.
    pub tokens: u64,
    /// The number of invitations.
    pub invites: u64,
    /// The number of entries in all histories.
    pub entries: u64,
    /// Their bytes in.
    pub input_bytes: u64,
    /// Their bytes out.
    pub output_bytes: u64,
    /// The number of sums by day, token and format.
    pub days: u64,
    /// The conversions in these, which are all that there have ever been.
    pub conversions: u64,
    /// The number of failed conversions.
    pub failures: u64,
    /// The mark of the secret last used.
    pub secret_mark: Option<u64>,
    /// Its keys are constant, so that digests can be compared.
    digest: DefaultHasher,
}

impl Tally {
    /// Adds a row.
    pub fn add(&mut self, row: &Row) {
        match row {
            Row::Store { secret_mark, .. } => self.secret_mark = *secret_mark,
            Row::Invite { .. } => self.invites += 1,
            Row::Account(_) => self.accounts += 1,
            Row::Token { .. } => self.tokens += 1,
            Row::Day { day, .. } => {
                self.days += 1;
                self.conversions = self.conversions.saturating_add(day.totals.conversions);
            }
            Row::Entry(entry) => {
                self.entries += 1;
                self.input_bytes = self.input_bytes.saturating_add(entry.input_bytes);
                self.output_bytes = self.output_bytes.saturating_add(entry.output_bytes);
            }
            Row::Failure(_) => self.failures += 1,
            Row::Restrictions(_) | Row::Removed(_) => {}
        }
        row.hash(&mut self.digest);
    }

    /// A number that differs, but for one case in 2^64, if any row differs or if their order does.
    #[cfg(any(test, feature = "postgres"))]
    pub fn digest(&self) -> u64 {
        std::hash::Hasher::finish(&self.digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::token_number::TokenNumber;
    use std::time::SystemTime;

    fn day() -> Row {
        Row::Day {
            day: UsageDay {
                day: 1,
                token: TokenNumber::DEFAULT,
                format: "jpeg".to_owned(),
                totals: UsageTotals {
                    conversions: 5,
                    ..UsageTotals::default()
                },
            },
            last_used: 0,
        }
    }

    fn token() -> Row {
        let mut token = ApiToken::default_token(0, 0);
        token.settings.name = "shop".to_owned();
        token.settings.preset = "quality=80".to_owned();
        Row::Token {
            token,
            deleted: None,
        }
    }

    fn account() -> Row {
        Row::Account(AccountRow {
            email: "a@b.org".to_owned(),
            password: Some("12345".to_owned()),
            ..AccountRow::default()
        })
    }

    fn entry() -> Row {
        Row::Entry(UsageEntry::example(SystemTime::UNIX_EPOCH))
    }

    #[test]
    fn rows_that_say_nothing_are_empty() {
        let limited = Restrictions {
            monthly: Some(1),
            ..Restrictions::default()
        };
        let removed = UsageTotals {
            conversions: 1,
            ..UsageTotals::default()
        };
        for (row, is_empty) in [
            (Row::Restrictions(Restrictions::default()), true),
            (Row::Restrictions(limited), false),
            (Row::Removed(UsageTotals::default()), true),
            (Row::Removed(removed), false),
            (account(), false),
        ] {
            assert_eq!(row.is_empty(), is_empty, "{row:?}");
        }
    }

    #[test]
    fn a_row_takes_its_own_bytes_and_those_of_its_texts() {
        let failure = Failure::example(400, "body_empty");
        for (row, texts) in [
            (account(), 7 + 5),
            (token(), 4 + 10),
            (day(), 4),
            (entry(), 3),
            (Row::Failure(failure), 10),
            (Row::Removed(UsageTotals::default()), 0),
        ] {
            assert_eq!(row.memory(), size_of::<Row>() + texts, "{row:?}");
        }
    }

    #[test]
    fn a_tally_counts_each_kind_of_row() {
        let mut tally = Tally::default();
        let code = CodeHash::default();
        let rows = [
            Row::Invite { code, end: 0 },
            account(),
            token(),
            day(),
            entry(),
            Row::Failure(Failure::example(400, "body_empty")),
        ];
        for (row, times) in rows.iter().zip(2..) {
            (0..times).for_each(|_| tally.add(row));
        }
        let counts = [
            tally.invites,
            tally.accounts,
            tally.tokens,
            tally.days,
            tally.entries,
            tally.failures,
        ];
        assert_eq!(counts, [2, 3, 4, 5, 6, 7]);
        assert_eq!(tally.conversions, 5 * 5);
        assert_eq!((tally.input_bytes, tally.output_bytes), (6 * 2, 6));
    }
}
