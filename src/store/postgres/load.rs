//! Fills an empty database from rows that belong to no engine ([`crate::store::rows`]).
//!
//! Rows are collected by table, and sent in groups of [`GROUP`]. All keys follow from the rows, so
//! that a group that was sent already changes nothing: whatever breaks a copy off, it is repeated.
//! Until it is complete, the number `copying` in `meta` keeps servers from the database.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use tokio_postgres::types::Type;
use uuid::Uuid;

use super::connection::{Link, Parameter, get};
use super::fault::Fault;
use super::ids;
use super::pool::{Pool, Purpose};
use super::record;
use super::row;
use super::schema;
use crate::store::clock;
use crate::store::error::StoreError;
use crate::store::failure::Failure;
use crate::store::rows::{AccountRow, Row};
use crate::store::token::{ApiToken, Restrictions};
use crate::store::usage::{UsageDay, UsageEntry, UsageTotals};

/// The rows of a statement.
const GROUP: usize = 1000;

/// How long removing what a copy that was broken off has left, except histories, may take.
const CLEARING: Duration = Duration::from_mins(10);

/// The tables whose rows are few beside those of histories.
const SMALL_TABLES: [&str; 8] = [
    "accounts",
    "tokens",
    "restrictions",
    "invites",
    "usage_days",
    "usage_months",
    "usage_removed",
    "failures",
];

/// Writes rows, in their order, into a database.
pub struct Loader<'a> {
    pool: &'a Pool,
    tables: HashMap<&'static str, Batch>,
    account: Option<Current>,
}

impl Loader<'_> {
    /// Begins to fill this database with the rows of a store that has this mark of its secret.
    ///
    /// # Errors
    /// The database is used by a server, or holds something else than an earlier attempt to copy
    /// the same store; or it is away.
    pub fn begin(pool: &Pool, secret_mark: Option<u64>) -> Result<Loader<'_>, StoreError> {
        let mark = secret_mark.unwrap_or(0).cast_signed();
        let refused = |sentence: &str| Err(StoreError::Failed(sentence.to_owned()));
        let state = pool.ask(Purpose::Write, async |link: &Link| state(link).await)?;
        if state.replicas > 0 {
            return refused("servers run on the database that is copied to: stop them first");
        }
        if state.copying.is_none() && state.has_rows {
            return refused(
                "the database that is copied to has accounts, and a copy needs an empty one",
            );
        }
        if state.copying.is_some_and(|copying| copying != mark) {
            return refused(
                "the database that is copied to holds a part of another store, whose copying was \
                 broken off: go on with that, or take an empty database",
            );
        }
        let deadline = Instant::now() + CLEARING;
        pool.ask_by(Purpose::Write, deadline, async |link: &Link| {
            schema::set_number(link, schema::COPYING, mark).await?;
            for table in SMALL_TABLES {
                link.batch(&format!("DELETE FROM {table}")).await?;
            }
            Ok(())
        })?;
        Ok(Loader {
            pool,
            tables: HashMap::new(),
            account: None,
        })
    }

    /// Takes the next row.
    ///
    /// # Errors
    /// The rows do not fit together, or the database is away for longer than its timeout.
    pub fn add(&mut self, row: Row) -> Result<(), StoreError> {
        match row {
            Row::Store {
                last_account,
                secret_mark,
            } => return self.set_meta(last_account, secret_mark),
            Row::Invite { code, end } => {
                return self.push(&INVITES, &[Cell::Bytes(code.to_vec()), int(end)?]);
            }
            Row::Account(account) => return self.begin_account(account),
            _ => {}
        }
        let Some(current) = &mut self.account else {
            let sentence = "rows came before their account";
            return Err(StoreError::Failed(sentence.to_owned()));
        };
        let id = int(current.id)?;
        match row {
            Row::Token { token, deleted } => {
                let cells = token_cells(id, token, deleted)?;
                self.push(&TOKENS, &cells)
            }
            Row::Restrictions(Restrictions {
                per_minute,
                monthly,
                disabled,
            }) => {
                let monthly = monthly.map(number).transpose()?;
                let cells = [
                    id,
                    Cell::Int(row::optional_time(disabled)),
                    Cell::MaybeInt(monthly),
                    Cell::MaybeInt(per_minute.map(i64::from)),
                ];
                self.push(&RESTRICTIONS, &cells)
            }
            Row::Removed(totals) => {
                current.sequence = totals.conversions;
                let [conversions, input, output] = totals_cells(totals)?;
                self.push(&REMOVED, &[id, conversions, input, output])
            }
            Row::Day(day) => {
                current.add_day(day);
                Ok(())
            }
            Row::LastUse { token, time } => {
                current.set_last_use(token.0.into(), time);
                Ok(())
            }
            Row::Entry(entry) => {
                current.sequence += 1;
                let time = clock::to_milliseconds(entry.time);
                let key = current.history_key.next(time, current.sequence);
                current.add_key(&entry, ids::milliseconds(key));
                let cells = entry_cells(id, key, entry)?;
                self.push(&HISTORY, &cells)
            }
            Row::Failure(failure) => {
                current.failures += 1;
                let time = clock::to_milliseconds(failure.time);
                let key = current.failure_key.next(time, current.failures);
                let cells = failure_cells(id, key, failure)?;
                self.push(&FAILURES, &cells)
            }
            Row::Store { .. } | Row::Invite { .. } | Row::Account(_) => {
                unreachable!("it was written above")
            }
        }
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// As [`Loader::add`].
    pub fn finish(mut self) -> Result<(), StoreError> {
        self.end_account()?;
        for batch in self.tables.values_mut() {
            batch.send(self.pool)?;
        }
        Ok(())
    }

    fn set_meta(&self, last_account: u64, secret_mark: Option<u64>) -> Result<(), StoreError> {
        let last = number(last_account)?;
        self.pool.ask(Purpose::Write, async |link: &Link| {
            if last > 0 {
                schema::set_number(link, "last_account", last).await?;
            }
            match secret_mark {
                Some(mark) => schema::set_number(link, "secret", mark.cast_signed()).await,
                None => Ok(()),
            }
        })
    }

    fn begin_account(&mut self, account: AccountRow) -> Result<(), StoreError> {
        self.end_account()?;
        let AccountRow {
            id,
            email,
            created,
            last_serial,
            password,
        } = account;
        let cells = [
            int(id.0)?,
            Cell::Text(email),
            int(created)?,
            Cell::Int(last_serial.into()),
            Cell::MaybeText(password),
        ];
        self.push(&ACCOUNTS, &cells)?;
        self.account = Some(Current::new(id.0));
        Ok(())
    }

    /// Writes the sums by day, whose keys are known now, and those by month, which follow from
    /// them.
    fn end_account(&mut self) -> Result<(), StoreError> {
        let Some(Current {
            id, days, months, ..
        }) = self.account.take()
        else {
            return Ok(());
        };
        for ((day, token, format), (totals, first, last)) in days {
            let [conversions, input, output] = totals_cells(totals)?;
            let cells = [
                int(id)?,
                Cell::Int(day.into()),
                Cell::Int(token.into()),
                Cell::Text(format),
                conversions,
                input,
                output,
                // Of entries that were removed, no key is looked for.
                int(first.min(last))?,
                int(last)?,
            ];
            self.push(&DAYS, &cells)?;
        }
        for ((month, token), (totals, last_used)) in months {
            let [conversions, input, output] = totals_cells(totals)?;
            let cells = [
                int(id)?,
                int(month)?,
                Cell::Int(token),
                conversions,
                input,
                output,
                int(last_used)?,
            ];
            self.push(&MONTHS, &cells)?;
        }
        Ok(())
    }

    fn push(&mut self, table: &'static Table, cells: &[Cell]) -> Result<(), StoreError> {
        let batch = self.tables.entry(table.name);
        let batch = batch.or_insert_with(|| Batch::new(table));
        batch.push(cells);
        if batch.rows == GROUP {
            batch.send(self.pool)?;
        }
        Ok(())
    }
}

/// Lets servers use a database whose rows were compared with those that were copied.
///
/// # Errors
/// The database is away.
pub fn complete(pool: &Pool) -> Result<(), StoreError> {
    let sql = "DELETE FROM meta WHERE name = $1";
    pool.ask(Purpose::Write, async |link: &Link| {
        link.execute(sql, &[(&schema::COPYING, Type::TEXT)])
            .await
            .map(drop)
    })
}

/// Whether servers have used the database within the last half minute.
///
/// # Errors
/// The database is away.
pub fn is_in_use(pool: &Pool) -> Result<bool, StoreError> {
    let state = pool.ask(Purpose::Write, async |link: &Link| state(link).await)?;
    Ok(state.replicas > 0)
}

/// What is in a database that is to be copied to.
struct State {
    /// The mark of the secret of the store whose copying was begun.
    copying: Option<i64>,
    has_rows: bool,
    /// The processes that have used it within the last half minute.
    replicas: i64,
}

async fn state(link: &Link) -> Result<State, Fault> {
    let sql = "SELECT EXISTS (SELECT 1 FROM accounts) OR EXISTS (SELECT 1 FROM usage)
                   OR EXISTS (SELECT 1 FROM invites),
                   (SELECT count(*) FROM replicas
                    WHERE seen > (extract(epoch FROM clock_timestamp()) * 1000)::INT8 - 30000)";
    let row = link.query_opt(sql, &[]).await?;
    let (has_rows, replicas) = match &row {
        Some(row) => (get(row, 0)?, get(row, 1)?),
        None => (true, 0),
    };
    Ok(State {
        copying: schema::number(link, schema::COPYING).await?,
        has_rows,
        replicas,
    })
}

/// The account whose rows are being written.
struct Current {
    id: u64,
    /// The last sequence number of its history, which counts removed entries too.
    sequence: u64,
    history_key: Keys,
    failures: u64,
    failure_key: Keys,
    /// The sums, and the milliseconds in the first and in the last key, by day, token and format.
    days: BTreeMap<(u32, u32, String), (UsageTotals, u64, u64)>,
    /// The sums, and the time of the last conversion, by month and token or [`record::ALL_TOKENS`].
    months: BTreeMap<(u64, i64), (UsageTotals, u64)>,
}

impl Current {
    fn new(id: u64) -> Current {
        Current {
            id,
            sequence: 0,
            history_key: Keys::default(),
            failures: 0,
            failure_key: Keys::default(),
            days: BTreeMap::new(),
            months: BTreeMap::new(),
        }
    }

    fn add_day(&mut self, day: UsageDay) {
        let (month, _) = clock::month(u64::from(day.day) * clock::DAY);
        for token in [record::ALL_TOKENS, day.token.0.into()] {
            let (totals, _) = self.months.entry((month, token)).or_default();
            *totals += day.totals;
        }
        let key = (day.day, day.token.0, day.format);
        self.days.insert(key, (day.totals, u64::MAX, 0));
    }

    fn add_key(&mut self, entry: &UsageEntry, milliseconds: u64) {
        let day = clock::day(clock::to_milliseconds(entry.time));
        let key = (day, entry.token.0, entry.format.clone());
        if let Some((_, first, last)) = self.days.get_mut(&key) {
            *first = milliseconds.min(*first);
            *last = milliseconds.max(*last);
        }
    }

    /// The other months of the token have no time: the greatest one counts.
    fn set_last_use(&mut self, token: i64, time: u64) {
        let (month, _) = clock::month(time);
        for token in [record::ALL_TOKENS, token] {
            if let Some((_, last)) = self.months.get_mut(&(month, token)) {
                *last = time.max(*last);
            }
        }
    }
}

/// Makes the keys of an account's history. They follow from the times and the sequence numbers of
/// the entries alone.
#[derive(Default)]
struct Keys {
    milliseconds: u64,
    count: u32,
}

impl Keys {
    fn next(&mut self, time: u64, sequence: u64) -> Uuid {
        if time > self.milliseconds {
            (self.milliseconds, self.count) = (time, 0);
        } else if self.count == ids::MAX_COUNT {
            (self.milliseconds, self.count) = (self.milliseconds + 1, 0);
        } else {
            self.count += 1;
        }
        ids::key(self.milliseconds, self.count, sequence)
    }
}

/// A table with its columns.
struct Table {
    name: &'static str,
    columns: &'static [(&'static str, Kind)],
}

/// The type of a column.
#[derive(Clone, Copy)]
enum Kind {
    Int,
    Small,
    Text,
    Uuid,
    Bytes,
}

const INVITES: Table = Table {
    name: "invites",
    columns: &[("code", Kind::Bytes), ("ends", Kind::Int)],
};

const ACCOUNTS: Table = Table {
    name: "accounts",
    columns: &[
        ("id", Kind::Int),
        ("email", Kind::Text),
        ("created", Kind::Int),
        ("last_serial", Kind::Int),
        ("password", Kind::Text),
    ],
};

const TOKENS: Table = Table {
    name: "tokens",
    columns: &[
        ("account", Kind::Int),
        ("number", Kind::Int),
        ("created", Kind::Int),
        ("ends", Kind::Int),
        ("previous_ends", Kind::Int),
        ("monthly", Kind::Int),
        ("deleted", Kind::Int),
        ("serial", Kind::Int),
        ("previous_serial", Kind::Int),
        ("per_minute", Kind::Int),
        ("name", Kind::Text),
        ("preset", Kind::Text),
    ],
};

const RESTRICTIONS: Table = Table {
    name: "restrictions",
    columns: &[
        ("account", Kind::Int),
        ("disabled", Kind::Int),
        ("monthly", Kind::Int),
        ("per_minute", Kind::Int),
    ],
};

const REMOVED: Table = Table {
    name: "usage_removed",
    columns: &[
        ("account", Kind::Int),
        ("conversions", Kind::Int),
        ("input_bytes", Kind::Int),
        ("output_bytes", Kind::Int),
    ],
};

const DAYS: Table = Table {
    name: "usage_days",
    columns: &[
        ("account", Kind::Int),
        ("day", Kind::Int),
        ("token", Kind::Int),
        ("format", Kind::Text),
        ("conversions", Kind::Int),
        ("input_bytes", Kind::Int),
        ("output_bytes", Kind::Int),
        ("first_key", Kind::Int),
        ("last_key", Kind::Int),
    ],
};

const MONTHS: Table = Table {
    name: "usage_months",
    columns: &[
        ("account", Kind::Int),
        ("month", Kind::Int),
        ("token", Kind::Int),
        ("conversions", Kind::Int),
        ("input_bytes", Kind::Int),
        ("output_bytes", Kind::Int),
        ("last_used", Kind::Int),
    ],
};

const HISTORY: Table = Table {
    name: "usage",
    columns: &[
        ("account", Kind::Int),
        ("id", Kind::Uuid),
        ("time", Kind::Int),
        ("token", Kind::Int),
        ("input_bytes", Kind::Int),
        ("output_bytes", Kind::Int),
        ("width", Kind::Int),
        ("height", Kind::Int),
        ("milliseconds", Kind::Int),
        ("quality", Kind::Small),
        ("watermark", Kind::Small),
        ("format", Kind::Text),
    ],
};

const FAILURES: Table = Table {
    name: "failures",
    columns: &[
        ("account", Kind::Int),
        ("id", Kind::Uuid),
        ("time", Kind::Int),
        ("input_bytes", Kind::Int),
        ("token", Kind::Int),
        ("status", Kind::Int),
        ("code", Kind::Text),
    ],
};

/// A value of a column.
#[derive(Clone)]
enum Cell {
    Int(i64),
    MaybeInt(Option<i64>),
    Small(i16),
    Text(String),
    MaybeText(Option<String>),
    Uuid(Uuid),
    Bytes(Vec<u8>),
}

/// Rows of a table that were not sent yet.
struct Batch {
    sql: String,
    columns: Vec<Values>,
    rows: usize,
}

/// The values of a column.
enum Values {
    Int(Vec<Option<i64>>),
    Small(Vec<i16>),
    Text(Vec<Option<String>>),
    Uuid(Vec<Uuid>),
    Bytes(Vec<Vec<u8>>),
}

impl Batch {
    fn new(table: &Table) -> Batch {
        let names: Vec<_> = table.columns.iter().map(|(name, _)| *name).collect();
        let arrays = table.columns.iter().enumerate();
        let arrays: Vec<_> = arrays
            .map(|(index, (_, kind))| format!("${}::{}[]", index + 1, kind.name()))
            .collect();
        let columns = table.columns.iter().map(|(_, kind)| match kind {
            Kind::Int => Values::Int(Vec::new()),
            Kind::Small => Values::Small(Vec::new()),
            Kind::Text => Values::Text(Vec::new()),
            Kind::Uuid => Values::Uuid(Vec::new()),
            Kind::Bytes => Values::Bytes(Vec::new()),
        });
        Batch {
            sql: format!(
                "INSERT INTO {} ({}) SELECT * FROM unnest({}) ON CONFLICT DO NOTHING",
                table.name,
                names.join(", "),
                arrays.join(", ")
            ),
            columns: columns.collect(),
            rows: 0,
        }
    }

    fn push(&mut self, cells: &[Cell]) {
        debug_assert_eq!(cells.len(), self.columns.len());
        for (values, cell) in self.columns.iter_mut().zip(cells) {
            match (values, cell.clone()) {
                (Values::Int(values), Cell::Int(value)) => values.push(Some(value)),
                (Values::Int(values), Cell::MaybeInt(value)) => values.push(value),
                (Values::Small(values), Cell::Small(value)) => values.push(value),
                (Values::Text(values), Cell::Text(value)) => values.push(Some(value)),
                (Values::Text(values), Cell::MaybeText(value)) => values.push(value),
                (Values::Uuid(values), Cell::Uuid(value)) => values.push(value),
                (Values::Bytes(values), Cell::Bytes(value)) => values.push(value),
                _ => unreachable!("each table's cells are made for its columns"),
            }
        }
        self.rows += 1;
    }

    fn send(&mut self, pool: &Pool) -> Result<(), StoreError> {
        if self.rows == 0 {
            return Ok(());
        }
        let parameters: Vec<_> = self.columns.iter().map(Values::parameter).collect();
        pool.ask(Purpose::Write, async |link: &Link| {
            link.execute(&self.sql, &parameters).await?;
            link.confirm()
        })?;
        self.rows = 0;
        self.columns.iter_mut().for_each(Values::clear);
        Ok(())
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Int => "INT8",
            Kind::Small => "INT2",
            Kind::Text => "TEXT",
            Kind::Uuid => "UUID",
            Kind::Bytes => "BYTEA",
        }
    }
}

impl Values {
    fn parameter(&self) -> Parameter<'_> {
        match self {
            Values::Int(values) => (values, Type::INT8_ARRAY),
            Values::Small(values) => (values, Type::INT2_ARRAY),
            Values::Text(values) => (values, Type::TEXT_ARRAY),
            Values::Uuid(values) => (values, Type::UUID_ARRAY),
            Values::Bytes(values) => (values, Type::BYTEA_ARRAY),
        }
    }

    fn clear(&mut self) {
        match self {
            Values::Int(values) => values.clear(),
            Values::Small(values) => values.clear(),
            Values::Text(values) => values.clear(),
            Values::Uuid(values) => values.clear(),
            Values::Bytes(values) => values.clear(),
        }
    }
}

fn token_cells(
    account: Cell,
    token: ApiToken,
    deleted: Option<u64>,
) -> Result<[Cell; 12], StoreError> {
    let ApiToken {
        number: id,
        created,
        serial,
        previous,
        settings,
    } = token;
    let limits = settings.limits;
    Ok([
        account,
        Cell::Int(id.0.into()),
        Cell::Int(row::time(created)),
        Cell::Int(row::optional_time(settings.ends)),
        Cell::Int(row::optional_time(previous.map(|previous| previous.ends))),
        int(limits.monthly.map_or(0, std::num::NonZeroU64::get))?,
        int(deleted.unwrap_or(0))?,
        Cell::Int(serial.into()),
        Cell::Int(previous.map_or(0, |previous| previous.serial.into())),
        Cell::Int(limits.per_minute.map_or(0, |most| most.get().into())),
        Cell::Text(settings.name),
        Cell::Text(settings.preset),
    ])
}

fn entry_cells(account: Cell, key: Uuid, entry: UsageEntry) -> Result<[Cell; 12], StoreError> {
    Ok([
        account,
        Cell::Uuid(key),
        Cell::Int(row::time(entry.time)),
        Cell::Int(entry.token.0.into()),
        int(entry.input_bytes)?,
        int(entry.output_bytes)?,
        Cell::Int(entry.width.into()),
        Cell::Int(entry.height.into()),
        Cell::Int(entry.milliseconds.into()),
        Cell::Small(entry.quality.into()),
        Cell::Small(record::watermark_number(entry.watermark)),
        Cell::Text(entry.format),
    ])
}

fn failure_cells(account: Cell, key: Uuid, failure: Failure) -> Result<[Cell; 7], StoreError> {
    Ok([
        account,
        Cell::Uuid(key),
        Cell::Int(row::time(failure.time)),
        int(failure.input_bytes)?,
        Cell::Int(failure.token.0.into()),
        Cell::Int(failure.status.into()),
        Cell::Text(failure.code),
    ])
}

fn totals_cells(totals: UsageTotals) -> Result<[Cell; 3], StoreError> {
    Ok([
        int(totals.conversions)?,
        int(totals.input_bytes)?,
        int(totals.output_bytes)?,
    ])
}

fn int(value: u64) -> Result<Cell, StoreError> {
    number(value).map(Cell::Int)
}

fn number(value: u64) -> Result<i64, StoreError> {
    i64::try_from(value).map_err(|_| {
        StoreError::Failed(format!(
            "the number {value} cannot be copied: PostgreSQL keeps those below 2^63"
        ))
    })
}
