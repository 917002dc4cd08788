//! Checks whether all rows fit together, in one state of the database.
//!
//! Histories are added up by the database, some ten thousand entries at a time, and their sums are
//! compared here, account by account, with those by day and by month. So no question takes long,
//! and the memory that this takes does not grow with the histories.

use std::collections::{BTreeMap, VecDeque};

use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::connection::{Link, get};
use super::fault::{Class, Fault};
use super::ids;
use super::pages::{KeyColumn, Table};
use super::pool::Session;
use super::record::ALL_TOKENS;
use super::row::{self, number, small};
use super::schema;
use crate::auth::Email;
use crate::store::clock;
use crate::store::engine::Findings;
use crate::store::error::StoreError;
use crate::store::problems::Problems;
use crate::store::session::MAX_SESSIONS;
use crate::store::token::{ApiToken, MAX_TOKENS};
use crate::store::token_number::TokenNumber;
use crate::store::usage::UsageTotals;

/// The entries that are added up by one question.
const PAGE: i64 = 50_000;

/// The column that a table's rows have of their account.
const ACCOUNT: KeyColumn = KeyColumn::Int("account");

/// Reads all rows in the transaction of this session.
///
/// # Errors
/// The database is away.
pub fn check(session: &Session) -> Result<Findings, StoreError> {
    let mut check = Check {
        session,
        findings: Findings::default(),
        problems: Problems::default(),
    };
    let checked = check.all();
    check.findings.problems = check.problems.sentences();
    match checked {
        Ok(()) => {}
        // A column holds what was never stored: that is what a check is for.
        Err(StoreError::Failed(text)) => {
            let unreadable = format!("the tables cannot be read to the end: {text}");
            check.findings.problems.push(unreadable);
        }
        Err(away) => return Err(away),
    }
    Ok(check.findings)
}

struct Check<'a> {
    session: &'a Session,
    findings: Findings,
    problems: Problems,
}

impl Check<'_> {
    fn all(&mut self) -> Result<(), StoreError> {
        self.durability()?;
        self.accounts()?;
        self.without_account()?;
        self.sessions()?;
        self.histories()
    }

    /// Whether the database keeps what it has confirmed when the power goes.
    fn durability(&mut self) -> Result<(), StoreError> {
        let sql = "SELECT current_setting('fsync', TRUE),
                          current_setting('full_page_writes', TRUE),
                          current_setting('synchronous_commit', TRUE),
                          coalesce(current_setting('synchronous_standby_names', TRUE), '')";
        let [fsync, pages, commit, standbys] = self.session.ask(async |link: &Link| {
            let row = link.query_opt(sql, &[]).await?;
            let setting = |column| match &row {
                Some(row) => get::<Option<String>>(row, column),
                None => Ok(None),
            };
            Ok([setting(0)?, setting(1)?, setting(2)?, setting(3)?])
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
                self.problems.add(what, name);
            }
        }
        Ok(())
    }

    fn accounts(&mut self) -> Result<(), StoreError> {
        let last = self
            .session
            .ask(async |link: &Link| schema::number(link, "last_account").await)?;
        let last = last.map_or(0, i64::cast_unsigned);
        let mut tokens = Table::new(
            "tokens t",
            &[ACCOUNT, KeyColumn::Int("number")],
            row::TOKEN,
            row::token,
        );
        let columns = "email, last_serial";
        let mut accounts = Table::new("accounts", &[KeyColumn::Int("id")], columns, account);
        while let Some((id, (email, last_serial))) = accounts.next_of(self.session)? {
            self.findings.accounts += 1;
            let name = || format!("{id} {email}");
            if id > last {
                self.problems
                    .add("accounts above the last number given", name());
            }
            if Email::parse(&email).ok().as_ref().map(Email::as_str) != Some(&*email) {
                self.problems
                    .add("accounts with an invalid e-mail address", name());
            }
            let mut working = Vec::new();
            tokens.each_of(self.session, id, &mut |(token, deleted)| {
                if deleted.is_none() {
                    working.push(token);
                }
                Ok(())
            })?;
            for what in token_problems(&working, last_serial) {
                self.problems.add(what, name());
            }
        }
        Ok(())
    }

    /// Rows of accounts that do not exist. Those of histories are expected while an account is
    /// being deleted.
    fn without_account(&mut self) -> Result<(), StoreError> {
        for (table, what, is_history) in [
            ("tokens", "tokens without an account", false),
            ("restrictions", "restrictions without an account", false),
            ("sessions", "sessions without an account", false),
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
            let (count, first) = self.session.ask(async |link: &Link| {
                let row = link.query_opt(&sql, &[]).await?;
                match row {
                    Some(row) => Ok((number(&row, 0)?, get::<i64>(&row, 1)?)),
                    None => Ok((0, 0)),
                }
            })?;
            let name = format!("account {first}");
            self.problems.add_many(what, count, name);
        }
        Ok(())
    }

    fn sessions(&mut self) -> Result<(), StoreError> {
        let sql = "SELECT count(*), count(*) FILTER (WHERE ends > latest) FROM sessions";
        let many = "SELECT account FROM sessions GROUP BY account HAVING count(*) > $1";
        let (counts, many) = self.session.ask(async |link: &Link| {
            let row = link.query_opt(sql, &[]).await?;
            let counts = match row {
                Some(row) => (number(&row, 0)?, number(&row, 1)?),
                None => (0, 0),
            };
            let most = MAX_SESSIONS as i64;
            let rows = link.query(many, &[(&most, Type::INT8)]).await?;
            let many = rows.iter().map(|row| get::<i64>(row, 0));
            Ok((counts, many.collect::<Result<Vec<_>, _>>()?))
        })?;
        let (all, late) = counts;
        self.findings.sessions = all;
        self.problems
            .add_many("sessions that end after their latest end", late, "");
        for account in many {
            self.problems
                .add("accounts with too many sessions", account.to_string());
        }
        Ok(())
    }

    /// Compares each account's history with the sums by day, and these with those by month.
    fn histories(&mut self) -> Result<(), StoreError> {
        let mut accounts = Table::new("accounts", &[KeyColumn::Int("id")], "id", |_, _| Ok(()));
        let mut entries = Entries::default();
        let mut days = Table::new(
            "usage_days",
            &[
                ACCOUNT,
                KeyColumn::Int("day"),
                KeyColumn::Int("token"),
                KeyColumn::Text("format"),
            ],
            "day, token, format, conversions, input_bytes, output_bytes, first_key, last_key",
            day,
        );
        let mut months = Table::new(
            "usage_months",
            &[ACCOUNT, KeyColumn::Int("month"), KeyColumn::Int("token")],
            "month, token, conversions, input_bytes, output_bytes",
            |row, first| {
                let key = (number(row, first)?, get(row, first + 1)?);
                Ok((key, row::totals(row, first + 2)?))
            },
        );
        let mut removed = Table::new(
            "usage_removed",
            &[ACCOUNT],
            "conversions, input_bytes, output_bytes",
            row::totals,
        );
        while let Some((id, ())) = accounts.next_of(self.session)? {
            let mut sums = Sums::default();
            while let Some(group) = entries.next_up_to(self.session, id)? {
                if group.account == id {
                    self.findings.entries += group.totals.conversions;
                    let name = format!("account {id}");
                    self.problems.add_many(DAMAGED, group.damaged, name);
                    sums.add_entries(group);
                } else {
                    self.strange(&group)?;
                }
            }
            days.each_of(self.session, id, &mut |(key, totals, keys)| {
                sums.days.insert(key, (totals, keys));
                Ok(())
            })?;
            months.each_of(self.session, id, &mut |(key, totals)| {
                sums.months.insert(key, totals);
                Ok(())
            })?;
            removed.each_of(self.session, id, &mut |totals| {
                sums.removed = totals;
                Ok(())
            })?;
            for what in sums.problems() {
                self.problems.add(what, format!("account {id}"));
            }
        }
        while let Some(group) = entries.next_up_to(self.session, u64::MAX)? {
            self.strange(&group)?;
        }
        Ok(())
    }

    /// Entries of an account that does not exist. They are removed after it, step by step.
    fn strange(&mut self, group: &Group) -> Result<(), StoreError> {
        let sql = "SELECT 1 FROM deletions WHERE account = $1";
        let account = group.account.cast_signed();
        let is_expected = self.session.ask(async |link: &Link| {
            let row = link.query_opt(sql, &[(&account, Type::INT8)]).await?;
            Ok(row.is_some())
        })?;
        if !is_expected {
            let (count, name) = (group.totals.conversions, format!("account {account}"));
            self.problems
                .add_many("history entries without an account", count, name);
        }
        Ok(())
    }
}

const LOSES_ON_POWER: &str = "settings by which a loss of power loses what was answered";

const DAMAGED: &str = "history entries that cannot be read";

fn account(row: &Row, first: usize) -> Result<(String, u32), Fault> {
    Ok((get(row, first)?, small(row, first + 1)?))
}

/// What is wrong with an account's tokens, of which none is deleted.
fn token_problems(tokens: &[ApiToken], last_serial: u32) -> Vec<&'static str> {
    let mut problems = Vec::new();
    if !tokens
        .iter()
        .any(|token| token.number == TokenNumber::DEFAULT)
    {
        problems.push("accounts without their first token");
    }
    if tokens.len() > MAX_TOKENS {
        problems.push("accounts with too many tokens");
    }
    if tokens.iter().any(|token| token.serial > last_serial) {
        problems.push("serial numbers above the last one given");
    }
    let mut names: Vec<_> = tokens.iter().map(|it| &it.settings.name).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        problems.push("accounts with tokens of the same name");
    }
    problems
}

/// Day, token and format.
type DayKey = (u32, u32, String);

/// The milliseconds in the first and in the last key of some entries.
type Keys = (u64, u64);

fn day(row: &Row, first: usize) -> Result<(DayKey, UsageTotals, Keys), Fault> {
    let key = (
        small(row, first)?,
        small(row, first + 1)?,
        get(row, first + 2)?,
    );
    let keys = (number(row, first + 6)?, number(row, first + 7)?);
    Ok((key, row::totals(row, first + 3)?, keys))
}

/// The sums of an account.
#[derive(Default)]
struct Sums {
    /// Over the entries that are there.
    entries: BTreeMap<DayKey, (UsageTotals, Keys)>,
    removed: UsageTotals,
    days: BTreeMap<DayKey, (UsageTotals, Keys)>,
    months: BTreeMap<(u64, i64), UsageTotals>,
}

impl Sums {
    fn add_entries(&mut self, group: Group) {
        let none = (UsageTotals::default(), (u64::MAX, 0));
        let (totals, (first, last)) = self.entries.entry(group.key).or_insert(none);
        *totals += group.totals;
        *first = group.keys.0.min(*first);
        *last = group.keys.1.max(*last);
    }

    fn problems(&self) -> Vec<&'static str> {
        let mut problems = Vec::new();
        let total = |sums: &BTreeMap<DayKey, (UsageTotals, Keys)>| {
            let mut total = UsageTotals::default();
            for (sums, _) in sums.values() {
                total += *sums;
            }
            total
        };
        let mut of_history = total(&self.entries);
        of_history += self.removed;
        // Of a day of which entries were removed, the sums are greater than what is there.
        let is_part = |(key, (entries, _)): (&DayKey, &(UsageTotals, Keys))| {
            self.days.get(key).is_some_and(|(stored, _)| {
                stored.conversions >= entries.conversions
                    && stored.input_bytes >= entries.input_bytes
                    && stored.output_bytes >= entries.output_bytes
            })
        };
        if total(&self.days) != of_history || !self.entries.iter().all(is_part) {
            problems.push("sums by day that differ from the history");
        }
        let is_found = |(key, (_, entries)): (&DayKey, &(UsageTotals, Keys))| {
            let stored = self.days.get(key);
            stored.is_none_or(|(_, keys)| keys.0 <= entries.0 && keys.1 >= entries.1)
        };
        if !self.entries.iter().all(is_found) {
            problems.push("history entries beyond the keys of their day");
        }
        let mut months = BTreeMap::<(u64, i64), UsageTotals>::new();
        for ((day, token, _), (totals, _)) in &self.days {
            let (month, _) = clock::month(u64::from(*day) * clock::DAY);
            for token in [ALL_TOKENS, i64::from(*token)] {
                *months.entry((month, token)).or_default() += *totals;
            }
        }
        if months != self.months {
            problems.push("sums by month that differ from those by day");
        }
        problems
    }
}

/// Entries of one account, day, token and format, added up.
struct Group {
    account: u64,
    key: DayKey,
    totals: UsageTotals,
    keys: Keys,
    /// How many of them hold what was never stored.
    damaged: u64,
}

/// All entries, added up page by page.
#[derive(Default)]
struct Entries {
    last: Option<(i64, Uuid)>,
    groups: VecDeque<Group>,
    is_end: bool,
}

impl Entries {
    /// The next group, if its account is not beyond this one.
    fn next_up_to(&mut self, session: &Session, account: u64) -> Result<Option<Group>, StoreError> {
        if self.groups.is_empty() && !self.is_end {
            let rows = session.ask(async |link: &Link| self.fetch(link).await)?;
            self.add_page(&rows).map_err(Fault::into_error)?;
        }
        match self.groups.front() {
            Some(group) if group.account <= account => Ok(self.groups.pop_front()),
            _ => Ok(None),
        }
    }

    async fn fetch(&self, link: &Link) -> Result<Vec<Row>, Fault> {
        let after = match self.last {
            Some(_) => "WHERE (account, id) > ($1, $2)",
            None => "",
        };
        let sql = format!(
            "SELECT account, greatest(time, 0) / 86400000, token, format, count(*),
                    sum(input_bytes)::INT8, sum(output_bytes)::INT8, max(id::TEXT),
                    count(*) FILTER (WHERE time < 0 OR width < 0 OR height < 0
                        OR milliseconds < 0 OR quality NOT BETWEEN 0 AND 100
                        OR watermark NOT BETWEEN 0 AND 3), min(id::TEXT)
             FROM (SELECT * FROM usage {after} ORDER BY account, id LIMIT {PAGE}) AS page
             GROUP BY 1, 2, 3, 4 ORDER BY 1"
        );
        match &self.last {
            Some((account, id)) => {
                let parameters = [(account as _, Type::INT8), (id as _, Type::UUID)];
                link.query(&sql, &parameters).await
            }
            None => link.query(&sql, &[]).await,
        }
    }

    fn add_page(&mut self, rows: &[Row]) -> Result<(), Fault> {
        let mut read: u64 = 0;
        for row in rows {
            let account = get::<i64>(row, 0)?;
            let [first, last] = [key(row, 9)?, key(row, 7)?];
            self.last = self.last.max(Some((account, last)));
            let totals = row::totals(row, 4)?;
            read += totals.conversions;
            self.groups.push_back(Group {
                account: account.cast_unsigned(),
                key: (small(row, 1)?, small(row, 2)?, get(row, 3)?),
                totals,
                keys: (ids::milliseconds(first), ids::milliseconds(last)),
                damaged: number(row, 8)?,
            });
        }
        self.is_end = read < PAGE.unsigned_abs();
        Ok(())
    }
}

/// A key that is given as text, since databases find no least or greatest UUID.
fn key(row: &Row, column: usize) -> Result<Uuid, Fault> {
    let text: &str = get(row, column)?;
    Uuid::parse_str(text).map_err(|error| Fault::new(Class::Unexpected, error.to_string()))
}
