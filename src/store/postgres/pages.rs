//! Tables that are read from beginning to end, a page at a time and by their primary keys, so that
//! no question takes long and little is in memory.

use std::collections::VecDeque;

use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::connection::{Link, Parameter, get};
use super::fault::Fault;
use super::pool::Session;
use super::row::number;
use crate::store::error::StoreError;

/// The rows of a page: some megabytes of a history.
const PAGE: usize = 10_000;

/// A column of a primary key.
#[derive(Clone, Copy, Debug)]
pub enum KeyColumn {
    /// A number.
    Int(&'static str),
    /// A text.
    Text(&'static str),
    /// A key of a history.
    Uuid(&'static str),
    /// A hash.
    Bytes(&'static str),
}

/// The value of a column of a primary key.
#[derive(Clone, Debug)]
enum Key {
    Int(i64),
    Text(String),
    Uuid(Uuid),
    Bytes(Vec<u8>),
}

/// A table that is being read.
pub struct Table<T> {
    name: &'static str,
    key: &'static [KeyColumn],
    columns: &'static str,
    read: fn(&Row, usize) -> Result<T, Fault>,
    /// The key of the last row that was read.
    last: Vec<Key>,
    rows: VecDeque<(u64, T)>,
    is_end: bool,
}

impl<T> Table<T> {
    /// Reads the table of this name by its primary key. `read` makes an item of `columns`, the
    /// first of which has the index that it is given.
    pub fn new(
        name: &'static str,
        key: &'static [KeyColumn],
        columns: &'static str,
        read: fn(&Row, usize) -> Result<T, Fault>,
    ) -> Table<T> {
        Table {
            name,
            key,
            columns,
            read,
            last: Vec::new(),
            rows: VecDeque::new(),
            is_end: false,
        }
    }

    /// The next item with the first number of its key, or 0 if it begins with no number.
    ///
    /// # Errors
    /// The database is away, or the row is damaged.
    pub fn next_of(&mut self, session: &Session) -> Result<Option<(u64, T)>, StoreError> {
        self.fill(session)?;
        Ok(self.rows.pop_front())
    }

    /// Calls `each` with those of the items whose key begins with this number. The table is at the
    /// first of them, or at those of lower numbers, which are passed over.
    ///
    /// # Errors
    /// As [`Table::next_of`], or that of `each`.
    pub fn each_of(
        &mut self,
        session: &Session,
        first: u64,
        each: &mut dyn FnMut(T) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        loop {
            self.fill(session)?;
            match self.rows.front() {
                Some((number, _)) if *number <= first => {
                    if let Some((number, item)) = self.rows.pop_front()
                        && number == first
                    {
                        each(item)?;
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    /// Reads the next page if there is nothing left of the last one.
    fn fill(&mut self, session: &Session) -> Result<(), StoreError> {
        if self.rows.is_empty() && !self.is_end {
            let page = session.ask(async |link: &Link| self.fetch(link).await)?;
            self.add_page(&page).map_err(Fault::into_error)?;
        }
        Ok(())
    }

    async fn fetch(&self, link: &Link) -> Result<Vec<Row>, Fault> {
        let names: Vec<_> = self.key.iter().map(|column| column.name()).collect();
        let names = names.join(", ");
        let places = (1..=self.last.len()).map(|place| format!("${place}"));
        let places: Vec<_> = places.collect();
        let after = match places.len() {
            0 => String::new(),
            _ => format!("WHERE ({names}) > ({})", places.join(", ")),
        };
        let sql = format!(
            "SELECT {names}, {} FROM {} {after} ORDER BY {names} LIMIT {PAGE}",
            self.columns, self.name
        );
        let parameters: Vec<_> = self.last.iter().map(Key::parameter).collect();
        link.query(&sql, &parameters).await
    }

    fn add_page(&mut self, page: &[Row]) -> Result<(), Fault> {
        self.is_end = page.len() < PAGE;
        for row in page {
            let first = match self.key[0] {
                KeyColumn::Int(_) => number(row, 0)?,
                _ => 0,
            };
            let item = (self.read)(row, self.key.len())?;
            self.rows.push_back((first, item));
        }
        if let Some(row) = page.last() {
            let key = self.key.iter().enumerate();
            self.last = key
                .map(|(index, column)| column.value(row, index))
                .collect::<Result<_, _>>()?;
        }
        Ok(())
    }
}

impl KeyColumn {
    fn name(self) -> &'static str {
        match self {
            KeyColumn::Int(name)
            | KeyColumn::Text(name)
            | KeyColumn::Uuid(name)
            | KeyColumn::Bytes(name) => name,
        }
    }

    fn value(self, row: &Row, index: usize) -> Result<Key, Fault> {
        Ok(match self {
            KeyColumn::Int(_) => Key::Int(get(row, index)?),
            KeyColumn::Text(_) => Key::Text(get(row, index)?),
            KeyColumn::Uuid(_) => Key::Uuid(get(row, index)?),
            KeyColumn::Bytes(_) => Key::Bytes(get(row, index)?),
        })
    }
}

impl Key {
    fn parameter(&self) -> Parameter<'_> {
        match self {
            Key::Int(value) => (value, Type::INT8),
            Key::Text(value) => (value, Type::TEXT),
            Key::Uuid(value) => (value, Type::UUID),
            Key::Bytes(value) => (value, Type::BYTEA),
        }
    }
}
