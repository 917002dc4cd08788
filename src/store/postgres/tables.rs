//! The tables, with each column once: these lists give the statements that make the tables, select
//! and write their rows, and read a whole table page by page ([`super::pages`]).
//!
//! Times are milliseconds since the epoch (UTC), days are days since it, and a month is its first
//! millisecond. Numbers of accounts and tokens are towebp's own. Where a time or a limit of 0 means
//! "none", the column's comment says so.

use std::collections::HashSet;
use std::error::Error;

use bytes::BytesMut;
use tokio_postgres::Row;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use uuid::Uuid;

use super::connection::{Link, Parameter, get};
use super::fault::{Class, Fault};

/// A table with its columns, the first of which are its primary key.
pub struct Table {
    /// The name.
    pub name: &'static str,
    /// The number of columns of the primary key.
    pub key: usize,
    /// The columns with their types.
    pub columns: &'static [(&'static str, Kind)],
}

/// The type of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Int,
    MaybeInt,
    Small,
    Text,
    MaybeText,
    Uuid,
    Bytes,
}

macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident $name:literal $key:literal: $($column:ident $kind:ident),*;)*) => {
        $(
            $(#[$doc])*
            pub const $table: Table = Table {
                name: $name,
                key: $key,
                columns: &[$((stringify!($column), Kind::$kind)),*],
            };
        )*
        const ALL: &[&Table] = &[$(&$table),*];
    };
}

// Name, number of columns of the primary key, columns.
tables! {
    /// Accounts.
    ACCOUNTS "accounts" 1:
        id Int, email Text, created Int,
        last_serial Int,     // the last serial number of its tokens
        password MaybeText;  // a PHC string; NULL if the account cannot sign in

    /// Tokens.
    TOKENS "tokens" 2:
        account Int,
        number Int,          // 0 is the one named "default"
        created Int,
        ends Int,            // 0: never
        previous_ends Int,   // 0: the previous serial number does not work
        monthly Int,         // conversions a month; 0: any number
        deleted Int,         // 0: it is not
        serial Int, previous_serial Int,
        per_minute Int,      // conversions a minute; 0: any number
        name Text, preset Text;

    /// What the operator has set for accounts.
    RESTRICTIONS "restrictions" 1:
        account Int,
        disabled Int,        // since when; 0: it is not
        monthly MaybeInt,    // NULL: the server's limit; 0: any number
        per_minute MaybeInt;

    /// Invitations by the hash of their code.
    INVITES "invites" 1: code Bytes, ends Int;

    /// Sessions by the hash of their cookie.
    SESSIONS "sessions" 1:
        cookie Bytes, account Int, created Int, used Int, ends Int, latest Int,
        browser Text, network Text;

    /// Failed attempts to sign in by an HMAC of the e-mail address and where they came from.
    ATTEMPTS "attempts" 1: key Bytes, failures Int, last Int;

    /// Histories.
    USAGE "usage" 2:
        account Int,
        id Uuid,             // version 7; orders the history
        time Int, token Int, input_bytes Int, output_bytes Int, width Int, height Int,
        milliseconds Int, quality Small,
        watermark Small,     // 0 none, 1 text, 2 picture, 3 both
        format Text;

    /// Sums over all entries that there have ever been, and between which keys of the history they
    /// are: that is how a page of few of them is found.
    DAYS "usage_days" 4:
        account Int, day Int, token Int, format Text,
        conversions Int, input_bytes Int, output_bytes Int,
        last_used Int,       // the latest time of one of them
        first_key Int,       // the milliseconds in the least key
        last_key Int;        // and in the greatest one

    /// Conversions by month, which quotas are compared with.
    MONTHS "usage_months" 3:
        account Int, month Int,
        token Int,           // -1: all tokens together
        conversions Int;

    /// Sums over the entries that were removed from histories.
    REMOVED "usage_removed" 1: account Int, conversions Int, input_bytes Int, output_bytes Int;

    /// Conversions that failed.
    FAILURES "failures" 2:
        account Int, id Uuid, time Int, input_bytes Int, token Int, status Int, code Text;

    /// Accounts that are deleted and whose histories are not removed yet.
    DELETIONS "deletions" 1: account Int;

    /// The processes that use the database.
    REPLICAS "replicas" 1:
        id Uuid,
        seen Int;            // by the database's clock
}

const INDEXES: &str = "CREATE UNIQUE INDEX IF NOT EXISTS accounts_email_key ON accounts (email);
     CREATE INDEX IF NOT EXISTS sessions_of_account ON sessions (account);
     CREATE INDEX IF NOT EXISTS sessions_by_end ON sessions (ends)";

/// The statements that make all tables.
pub fn make() -> String {
    let statements = ALL.iter().map(|table| {
        format!(
            "CREATE TABLE IF NOT EXISTS {} ({});\n",
            table.name,
            table.declaration()
        )
    });
    statements.collect::<String>() + INDEXES
}

/// Checks whether the tables of the database have all columns.
///
/// # Errors
/// A table lacks one.
pub async fn check(link: &Link) -> Result<(), Fault> {
    let sql = "SELECT table_name::TEXT, column_name::TEXT FROM information_schema.columns
               WHERE table_schema = current_schema()";
    let rows = link.query(sql, &[]).await?;
    let found = rows.iter().map(|row| Ok((get(row, 0)?, get(row, 1)?)));
    let found: HashSet<(&str, &str)> = found.collect::<Result<_, Fault>>()?;
    for table in ALL {
        let mut columns = table.columns.iter();
        if let Some((column, _)) = columns.find(|(name, _)| !found.contains(&(table.name, *name))) {
            let text = format!(
                "the database's table {} has no column {column}: the tables were made by another \
                 version of towebp",
                table.name
            );
            return Err(Fault::new(Class::Refused, text));
        }
    }
    Ok(())
}

impl Table {
    /// All columns of the table under this alias, as a list for a `SELECT`.
    pub fn columns(&self, alias: &str) -> String {
        let names = self.columns.iter();
        let names: Vec<_> = names.map(|(name, _)| format!("{alias}.{name}")).collect();
        names.join(", ")
    }

    /// A statement that selects all columns of the rows for which `condition` holds.
    pub fn select(&self, condition: &str) -> String {
        format!(
            "SELECT {} FROM {} t WHERE {condition}",
            self.columns("t"),
            self.name
        )
    }

    /// Writes a row in the place of the one with its key, if there is one.
    pub async fn put<const N: usize>(
        &'static self,
        link: &Link,
        row: [Cell; N],
    ) -> Result<(), Fault> {
        let mut rows = Rows::new(self);
        rows.push(row);
        rows.send(link, Conflict::Replace).await
    }

    /// The columns and the primary key, as in a statement that makes the table.
    fn declaration(&self) -> String {
        let columns = self.columns.iter();
        let columns = columns.map(|(name, kind)| format!("{name} {}, ", kind.declaration()));
        let key = self.key_columns();
        columns.collect::<String>() + &format!("PRIMARY KEY ({key})")
    }

    /// The columns of the primary key, as a list.
    pub fn key_columns(&self) -> String {
        let names: Vec<_> = self.columns[..self.key].iter().map(|it| it.0).collect();
        names.join(", ")
    }
}

impl Kind {
    fn declaration(self) -> String {
        let is_null = matches!(self, Kind::MaybeInt | Kind::MaybeText);
        format!("{}{}", self.name(), if is_null { "" } else { " NOT NULL" })
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Int | Kind::MaybeInt => "INT8",
            Kind::Small => "INT2",
            Kind::Text | Kind::MaybeText => "TEXT",
            Kind::Uuid => "UUID",
            Kind::Bytes => "BYTEA",
        }
    }

    /// The types of one value and of an array of them.
    pub fn types(self) -> [Type; 2] {
        match self {
            Kind::Int | Kind::MaybeInt => [Type::INT8, Type::INT8_ARRAY],
            Kind::Small => [Type::INT2, Type::INT2_ARRAY],
            Kind::Text | Kind::MaybeText => [Type::TEXT, Type::TEXT_ARRAY],
            Kind::Uuid => [Type::UUID, Type::UUID_ARRAY],
            Kind::Bytes => [Type::BYTEA, Type::BYTEA_ARRAY],
        }
    }

    /// The value of a column of a primary key.
    pub fn cell(self, row: &Row, column: usize) -> Result<Cell, Fault> {
        Ok(match self {
            Kind::Int | Kind::MaybeInt => Cell::Int(get(row, column)?),
            Kind::Small => Cell::Small(get(row, column)?),
            Kind::Text | Kind::MaybeText => Cell::Text(get(row, column)?),
            Kind::Uuid => Cell::Uuid(get(row, column)?),
            Kind::Bytes => Cell::Bytes(get(row, column)?),
        })
    }
}

/// A value of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    Null,
    Int(i64),
    /// A number that PostgreSQL cannot keep, since its integers have a sign. It is written as the
    /// greatest number.
    TooLarge(u64),
    Small(i16),
    Text(String),
    Uuid(Uuid),
    Bytes(Vec<u8>),
}

impl ToSql for Cell {
    fn to_sql(
        &self,
        of: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Cell::Null => Ok(IsNull::Yes),
            Cell::Int(value) => value.to_sql(of, out),
            Cell::TooLarge(_) => i64::MAX.to_sql(of, out),
            Cell::Small(value) => value.to_sql(of, out),
            Cell::Text(value) => value.to_sql(of, out),
            Cell::Uuid(value) => value.to_sql(of, out),
            Cell::Bytes(value) => value.to_sql(of, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

macro_rules! cells {
    ($($kind:ident $of:ty;)*) => {
        $(impl From<$of> for Cell {
            fn from(value: $of) -> Cell {
                Cell::$kind(value.into())
            }
        })*
    };
}

cells! {
    Int i64;
    Int u32;
    Int u16;
    Small i16;
    Small u8;
    Text &str;
    Text String;
    Uuid Uuid;
    Bytes [u8; 32];
}

impl From<u64> for Cell {
    fn from(number: u64) -> Cell {
        i64::try_from(number).map_or(Cell::TooLarge(number), Cell::Int)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Null, T::into)
    }
}

/// Rows of a table that are written by one statement.
pub struct Rows {
    table: &'static Table,
    columns: Vec<Vec<Cell>>,
}

/// What becomes of a row whose key is there already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// The old row stays.
    Keep,
    /// The new row takes its place.
    Replace,
}

impl Rows {
    /// No rows yet.
    pub fn new(table: &'static Table) -> Rows {
        Rows {
            table,
            columns: vec![Vec::new(); table.columns.len()],
        }
    }

    /// Adds a row, whose cells are in the order of the table's columns.
    pub fn push<const N: usize>(&mut self, cells: [Cell; N]) {
        assert_eq!(N, self.columns.len(), "columns of {}", self.table.name);
        for (values, cell) in self.columns.iter_mut().zip(cells) {
            values.push(cell);
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.columns[0].len()
    }

    /// Forgets the rows.
    pub fn clear(&mut self) {
        self.columns.iter_mut().for_each(Vec::clear);
    }

    /// Writes the rows.
    pub async fn send(&self, link: &Link, conflict: Conflict) -> Result<(), Fault> {
        let Table { name, columns, key } = self.table;
        let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
        let arrays = columns.iter().zip(1..);
        let arrays: Vec<_> = arrays
            .map(|((_, kind), place)| format!("${place}::{}[]", kind.name()))
            .collect();
        let update = match conflict {
            Conflict::Keep => "NOTHING".to_owned(),
            Conflict::Replace => {
                let set = names[*key..].iter();
                let set: Vec<_> = set.map(|it| format!("{it} = excluded.{it}")).collect();
                format!("UPDATE SET {}", set.join(", "))
            }
        };
        let sql = format!(
            "INSERT INTO {name} ({}) SELECT * FROM unnest({}) ON CONFLICT ({}) DO {update}",
            names.join(", "),
            arrays.join(", "),
            self.table.key_columns()
        );
        let parameters = self.columns.iter().zip(*columns);
        let parameters: Vec<Parameter<'_>> = parameters
            .map(|(values, (_, kind))| (values as _, kind.types()[1].clone()))
            .collect();
        link.execute(&sql, &parameters).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_that_operators_divide_by_month_is_the_one_of_the_manual() {
        let manual = include_str!("../../../docs/cluster.md");
        let words: Vec<_> = manual.split_whitespace().collect();
        assert!(words.join(" ").contains(&USAGE.declaration()));
    }
}
