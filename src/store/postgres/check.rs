//! The checks of this engine only: settings of the database, sessions, keys of days, counts of
//! months, and rows whose account is missing. The rows themselves are checked like those of every
//! engine ([`crate::store::check`]), in the same pass.

use std::collections::HashMap;

use super::cell::{self, cells};
use super::connection::Link;
use super::pages::Pages;
use super::pool::Session;
use super::record::{self, MonthCounts};
use super::row;
use super::tables;
use crate::store::check::RowCheck;
use crate::store::error::Result;
use crate::store::rows::Row;
use crate::store::session::MAX_SESSIONS;
use crate::store::usage::DayKey;

const LOSES_ON_POWER: &str = "settings by which a loss of power loses what was answered";

/// Adds problems of the database's settings, of sessions, and of rows that belong to no account.
///
/// # Errors
/// The database is unavailable, or a column has a value that no towebp stores.
pub fn check(session: &Session, rows: &mut RowCheck) -> Result<()> {
    durability(session, rows)?;
    without_account(session, rows)?;
    sessions(session, rows)
}

/// Values of `fsync`, `full_page_writes`, `synchronous_commit` and `synchronous_standby_names`, as
/// far as the database has such settings.
type DurabilitySettings = (
    Option<String>,
    Option<String>,
    Option<String>,
    Option<String>,
);

/// Checks that confirmed changes survive a loss of power.
fn durability(session: &Session, rows: &mut RowCheck) -> Result<()> {
    let sql = "SELECT current_setting('fsync', TRUE),
                      current_setting('full_page_writes', TRUE),
                      current_setting('synchronous_commit', TRUE),
                      coalesce(current_setting('synchronous_standby_names', TRUE), '')";
    let (fsync, pages, commit, standbys): DurabilitySettings =
        session.query(async |link: &Link| {
            let settings = link.first(sql, &[], cell::read).await?;
            Ok(settings.unwrap_or_default())
        })?;
    let is = |setting: &Option<String>, value| setting.as_deref() == Some(value);
    let has_standbys = standbys.is_some_and(|names| !names.is_empty());
    for (is_wrong, what, name) in [
        (is(&fsync, "off"), LOSES_ON_POWER, "fsync = off"),
        (is(&pages, "off"), LOSES_ON_POWER, "full_page_writes = off"),
        (
            is(&commit, "off"),
            LOSES_ON_POWER,
            "synchronous_commit = off",
        ),
        (
            is(&commit, "local") && has_standbys,
            "settings by which a failover loses what was answered",
            "synchronous_commit = local",
        ),
    ] {
        if is_wrong {
            rows.problems.add(what, name);
        }
    }
    Ok(())
}

/// Rows of accounts that do not exist. Those of histories are expected while an account is being
/// deleted.
fn without_account(session: &Session, rows: &mut RowCheck) -> Result<()> {
    for (table, what, is_history) in [
        ("tokens", "tokens without an account", false),
        ("restrictions", "restrictions without an account", false),
        ("sessions", "sessions without an account", false),
        ("usage", "history entries without an account", true),
        ("usage_days", "sums by day without an account", true),
        ("usage_months", "sums by month without an account", true),
        (
            "usage_removed",
            "sums of removed entries without an account",
            true,
        ),
        ("failures", "failures without an account", true),
    ] {
        let of_history = if is_history {
            "AND NOT EXISTS (SELECT 1 FROM deletions d WHERE d.account = t.account)"
        } else {
            ""
        };
        let sql = format!(
            "SELECT count(*), coalesce(min(t.account), 0) FROM {table} t
             WHERE NOT EXISTS (SELECT 1 FROM accounts a WHERE a.id = t.account) {of_history}"
        );
        let (count, first) = session.query(async |link: &Link| {
            let counts = link.first(&sql, &[], cell::read::<(u64, i64)>);
            Ok(counts.await?.unwrap_or_default())
        })?;
        rows.problems
            .add_many(what, count, format!("account {first}"));
    }
    Ok(())
}

fn sessions(session: &Session, rows: &mut RowCheck) -> Result<()> {
    let sql = "SELECT count(*), count(*) FILTER (WHERE ends > latest) FROM sessions";
    let many = "SELECT account FROM sessions GROUP BY account HAVING count(*) > $1";
    let ((all, late), many) = session.query(async |link: &Link| {
        let counts = link.first(sql, &[], cell::read);
        let counts = counts.await?.unwrap_or_default();
        Ok((
            counts,
            link.all(many, cells![MAX_SESSIONS as u64], cell::read::<i64>)
                .await?,
        ))
    })?;
    rows.sessions = all;
    rows.problems
        .add_many("sessions that end after their latest end", late, "");
    for account in many {
        rows.problems
            .add("accounts with too many sessions", account.to_string());
    }
    Ok(())
}

/// Compares the sums by day of each account with the keys of its entries, and with its counts of
/// months.
pub struct DayCheck<'a> {
    session: &'a Session,
    months: Pages<((u64, i64), u64)>,
    account: Option<u64>,
    /// The milliseconds in the first and in the last key, by day.
    keys: HashMap<DayKey, [u64; 2]>,
    /// The conversions by month and token, from the days.
    counts: MonthCounts,
    /// Whether an entry of the account was beyond the keys of its day.
    is_beyond: bool,
}

impl DayCheck<'_> {
    pub fn new(session: &Session) -> DayCheck<'_> {
        DayCheck {
            session,
            months: Pages::new(&tables::MONTHS, row::month),
            account: None,
            keys: HashMap::new(),
            counts: MonthCounts::new(),
            is_beyond: false,
        }
    }

    /// Takes the next row. `keys` are the milliseconds in the first and in the last key of a day,
    /// or in the key of an entry, twice.
    pub fn add(&mut self, row: &Row, keys: [u64; 2], rows: &mut RowCheck) -> Result<()> {
        match row {
            Row::Account(account) => {
                self.end_account(rows)?;
                self.account = Some(account.id.0);
            }
            Row::Day { day, .. } => {
                record::count(&mut self.counts, day);
                self.keys.insert(day.key(), keys);
            }
            Row::Entry(entry) => {
                let [first, last] = self.keys.get(&entry.day_key()).copied().unwrap_or(keys);
                self.is_beyond |= keys[0] < first || keys[1] > last;
            }
            _ => {}
        }
        Ok(())
    }

    /// Compares the rows of the last account.
    pub fn end_account(&mut self, rows: &mut RowCheck) -> Result<()> {
        let Some(account) = self.account.take() else {
            return Ok(());
        };
        let mut stored = MonthCounts::new();
        self.months
            .each_of(self.session, account, &mut |(month, conversions)| {
                stored.insert(month, conversions);
                Ok(())
            })?;
        self.keys.clear();
        for (is_wrong, what) in [
            (
                std::mem::take(&mut self.is_beyond),
                "history entries beyond the keys of their day",
            ),
            (
                std::mem::take(&mut self.counts) != stored,
                "sums by month that differ from those by day",
            ),
        ] {
            if is_wrong {
                rows.problems.add(what, format!("account {account}"));
            }
        }
        Ok(())
    }
}
