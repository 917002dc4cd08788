//! The tables, with each column once: these lists give the statements that make the tables, select
//! and write their rows, and read a whole table page by page ([`super::pages`]).
//!
//! Times are milliseconds since the epoch (UTC), days are days since it, and a month is its first
//! millisecond. Numbers of accounts and tokens are towebp's own. Where a time or a limit of 0 means
//! "none", the column has a comment.

use std::collections::HashSet;

use super::cell::{self, Cell, ColumnType, Columns};
use super::connection::Link;
use super::fault::{Class, Fault, Result};

/// A table with its columns, the first of which are its primary key.
pub struct Table {
    /// The name.
    pub name: &'static str,
    /// The number of columns of the primary key.
    pub key: usize,
    /// The columns with their types.
    pub columns: &'static [(&'static str, ColumnType)],
}

macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident $name:literal $key:literal: $($column:ident $kind:ident),*;)*) => {
        $(
            $(#[$doc])*
            pub const $table: Table = Table {
                name: $name,
                key: $key,
                columns: &[$((stringify!($column), ColumnType::$kind)),*],
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
        password MaybeText,  // a PHC string; NULL if the account cannot sign in
        second_factor MaybeText;

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

    /// The limits that the operator has set for accounts.
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
        format Text,
        request Uuid;        // random bits, as the response named them

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
        account Int, id Uuid, time Int, input_bytes Int, token Int, status Int,
        request Uuid, code Text;

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
pub async fn check(link: &Link) -> Result<()> {
    let sql = "SELECT table_name::TEXT, column_name::TEXT FROM information_schema.columns
               WHERE table_schema = current_schema()";
    let found = link.all(sql, &[], cell::read).await?.into_iter();
    let found: HashSet<(String, String)> = found.collect();
    for table in ALL {
        let is_missing = |name: &str| !found.contains(&(table.name.to_owned(), name.to_owned()));
        if let Some((column, _)) = table.columns.iter().find(|(name, _)| is_missing(name)) {
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

    /// Inserts a row, or replaces the one with its key.
    pub async fn put<'a>(&'static self, link: &Link, row: impl Columns<'a>) -> Result<()> {
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

/// Rows of a table that are written by one statement.
pub struct Rows {
    table: &'static Table,
    count: usize,
    /// A [`Cell::List`] for each column.
    columns: Vec<Cell>,
}

/// The rule for a row whose key exists already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// The old row stays.
    Keep,
    /// The new row replaces it.
    Replace,
}

impl Rows {
    /// No rows yet.
    pub fn new(table: &'static Table) -> Rows {
        let kinds = table.columns.iter().map(|(_, kind)| *kind);
        Rows {
            table,
            count: 0,
            columns: kinds.map(|kind| Cell::List(kind, Vec::new())).collect(),
        }
    }

    /// Adds a row, whose columns are in the order of the table's. Returns its first number that
    /// PostgreSQL cannot store, if it has one.
    pub fn push<'a>(&mut self, row: impl Columns<'a>) -> Option<u64> {
        let mut cells = Vec::with_capacity(self.columns.len());
        row.add_to(&mut cells);
        let (count, all) = (cells.len(), self.columns.len());
        assert_eq!(count, all, "columns of {}", self.table.name);
        self.count += 1;
        let too_large = cells.iter().find_map(|cell| match cell {
            Cell::TooLarge(number) => Some(*number),
            _ => None,
        });
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            if let Cell::List(_, values) = column {
                values.push(cell);
            }
        }
        too_large
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Forgets the rows.
    pub fn clear(&mut self) {
        *self = Rows::new(self.table);
    }

    /// The columns as parameters.
    pub fn into_columns(self) -> Vec<Cell> {
        self.columns
    }

    /// Writes the rows.
    pub async fn send(&self, link: &Link, conflict: Conflict) -> Result<()> {
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
        link.execute(&sql, &self.columns).await.map(drop)
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
