//! Checks whether all rows of a store are consistent. The rules of all engines are checked here,
//! over the rows of a snapshot ([`super::rows`]); engines add their own checks, such as indexes.

use std::collections::BTreeMap;

use super::engine::Findings;
use super::error::{Result, StoreError};
use super::problems::Problems;
use super::rows::{AccountRow, Row};
use super::token::{ApiToken, MAX_TOKENS};
use super::token_number::TokenNumber;
use super::usage::{DayKey, UsageTotals};
use crate::auth::{Email, SecondFactor};

/// A check of rows that come one after the other. The memory that this takes does not grow with the
/// history.
#[derive(Default)]
pub struct RowCheck {
    /// The problems found so far; an engine adds its own.
    pub problems: Problems,
    /// The number of sessions, which are not among the rows.
    pub sessions: u64,
    accounts: u64,
    entries: u64,
    last_account: u64,
    account: Option<Current>,
}

/// The account whose rows are being read.
#[derive(Default)]
struct Current {
    row: AccountRow,
    /// The tokens that are not deleted.
    tokens: Vec<ApiToken>,
    removed: UsageTotals,
    days: BTreeMap<DayKey, UsageTotals>,
    /// The sums over the entries.
    entries: BTreeMap<DayKey, UsageTotals>,
}

impl RowCheck {
    /// Takes the next row.
    pub fn add(&mut self, row: Row) {
        match (row, &mut self.account) {
            (Row::Store { last_account, .. }, _) => self.last_account = last_account,
            (Row::Account(row), _) => {
                self.end_account();
                self.accounts += 1;
                self.account = Some(Current {
                    row,
                    ..Current::default()
                });
            }
            (
                Row::Token {
                    token,
                    deleted: None,
                },
                Some(account),
            ) => account.tokens.push(token),
            (Row::Removed(totals), Some(account)) => account.removed = totals,
            (Row::Day { day, .. }, Some(account)) => {
                account.days.insert(day.key(), day.totals);
            }
            (Row::Entry(entry), Some(account)) => {
                self.entries += 1;
                *account.entries.entry(entry.day_key()).or_default() += UsageTotals::from(&entry);
            }
            _ => {}
        }
    }

    /// The findings in rows that were `read` to their end, or up to an error.
    ///
    /// # Errors
    /// The storage failed meanwhile. Damaged rows are no error but a finding.
    pub fn findings(mut self, read: Result<()>) -> Result<Findings> {
        if read.is_ok() {
            self.end_account();
        }
        let mut problems = self.problems.sentences();
        match read {
            Ok(()) => {}
            Err(StoreError::Failed(text)) => {
                problems.push(format!("the tables cannot be read to the end: {text}"));
            }
            Err(away) => return Err(away),
        }
        Ok(Findings {
            accounts: self.accounts,
            sessions: self.sessions,
            entries: self.entries,
            problems,
        })
    }

    fn end_account(&mut self) {
        let Some(account) = self.account.take() else {
            return;
        };
        let AccountRow {
            id,
            email,
            second_factor,
            ..
        } = &account.row;
        let name = format!("{} {email}", id.0);
        if id.0 > self.last_account {
            self.problems
                .add("accounts above the last number given", &*name);
        }
        if Email::parse(email).ok().as_ref().map(Email::as_str) != Some(&**email) {
            self.problems
                .add("accounts with an invalid e-mail address", &*name);
        }
        let is_damaged = |text: &String| SecondFactor::parse(text).is_none();
        if second_factor.as_ref().is_some_and(is_damaged) {
            self.problems
                .add("accounts with a damaged second factor", &*name);
        }
        for what in account.token_problems() {
            self.problems.add(what, &*name);
        }
        if !account.days_fit() {
            let what = "sums by day that differ from the history";
            self.problems.add(what, format!("account {}", id.0));
        }
    }
}

impl Current {
    fn token_problems(&self) -> Vec<&'static str> {
        let tokens = &self.tokens;
        let mut problems = Vec::new();
        if !tokens.iter().any(|it| it.number == TokenNumber::DEFAULT) {
            problems.push("accounts without their first token");
        }
        if tokens.len() > MAX_TOKENS {
            problems.push("accounts with too many tokens");
        }
        if tokens.iter().any(|it| it.serial > self.row.last_serial) {
            problems.push("serial numbers above the last one given");
        }
        let mut names: Vec<_> = tokens.iter().map(|it| &it.settings.name).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            problems.push("accounts with tokens of the same name");
        }
        problems
    }

    /// Whether the sums by day are those of the entries and of what was removed. The sums of a day
    /// of which entries were removed are greater than those of the entries that are left.
    fn days_fit(&self) -> bool {
        let mut of_history = self.removed;
        let mut of_days = UsageTotals::default();
        self.entries.values().for_each(|it| of_history += *it);
        self.days.values().for_each(|it| of_days += *it);
        of_days == of_history
            && self.entries.iter().all(|(key, entries)| {
                self.days.get(key).is_some_and(|day| {
                    day.conversions >= entries.conversions
                        && day.input_bytes >= entries.input_bytes
                        && day.output_bytes >= entries.output_bytes
                })
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::AccountId;
    use crate::store::tests::entry;
    use crate::store::usage::UsageDay;

    /// The problems that a check finds in an account with these rows.
    fn problems(rows: impl IntoIterator<Item = Row>) -> Vec<String> {
        let mut check = RowCheck::default();
        check.add(Row::Store {
            last_account: 1,
            secret_mark: None,
        });
        check.add(Row::Account(AccountRow {
            id: AccountId(1),
            email: "owner@example.org".to_owned(),
            last_serial: 1000,
            ..AccountRow::default()
        }));
        rows.into_iter().for_each(|row| check.add(row));
        check.findings(Ok(())).unwrap().problems
    }

    fn token(number: usize) -> Row {
        let mut token = ApiToken::default_token(0, 0);
        token.number = TokenNumber(number as u32);
        token.settings.name = format!("token {number}");
        Row::Token {
            token,
            deleted: None,
        }
    }

    #[test]
    fn an_account_may_have_so_many_tokens_and_no_more() {
        assert_eq!(problems((0..MAX_TOKENS).map(token)), [""; 0]);
        for too_many in [MAX_TOKENS + 1, MAX_TOKENS + 2] {
            let expected = "accounts with too many tokens: 1 (1 owner@example.org)";
            assert_eq!(problems((0..too_many).map(token)), [expected]);
        }
    }

    #[test]
    fn no_sum_of_a_day_is_below_that_of_its_entries() {
        let entry = entry(500);
        let totals = UsageTotals::from(&entry);
        let day = entry.day_key().0;
        // One entry is left, and one of the day before was removed. The sums of both days are right
        // together, so that one that is too small makes the other one too great.
        let changes: [(i64, i64, i64); 4] = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)];
        for (conversions, input, output) in changes {
            let moved = |sign: i64| UsageTotals {
                conversions: totals.conversions.strict_add_signed(sign * conversions),
                input_bytes: totals.input_bytes.strict_add_signed(sign * input),
                output_bytes: totals.output_bytes.strict_add_signed(sign * output),
            };
            let of_day = |day, totals| Row::Day {
                day: UsageDay {
                    day,
                    token: entry.token,
                    format: entry.format.clone(),
                    totals,
                },
                last_used: 0,
            };
            let found = problems([
                token(0),
                Row::Removed(totals),
                of_day(day - 1, moved(1)),
                of_day(day, moved(-1)),
                Row::Entry(entry.clone()),
            ]);
            let expected: &[&str] = match (conversions, input, output) {
                (0, 0, 0) => &[],
                _ => &["sums by day that differ from the history: 1 (account 1)"],
            };
            assert_eq!(found, expected, "{conversions}, {input}, {output}");
        }
    }
}
