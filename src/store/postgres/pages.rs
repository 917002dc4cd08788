//! Tables that are read from beginning to end.

use std::collections::VecDeque;

use tokio_postgres::Row;

use super::cell::{Cell, ColumnType, Fields};
use super::connection::Link;
use super::fault::{Fault, Result};
use super::pool::Session;
use super::tables::Table;
use crate::store::error::StoreError;

/// The rows of a page: some megabytes of a history.
const PAGE: usize = 10_000;

/// A table that is read from beginning to end, a page at a time and by its primary key, so that no
/// query takes long and little is in memory.
pub struct Pages<T> {
    table: &'static Table,
    read: fn(&mut Fields<'_>) -> Result<T, Fault>,
    /// The key of the last row that was read.
    last: Vec<Cell>,
    rows: VecDeque<(u64, T)>,
    is_end: bool,
}

impl<T> Pages<T> {
    /// Begins to read. `read` makes an item of all columns of a row.
    pub fn new(table: &'static Table, read: fn(&mut Fields<'_>) -> Result<T, Fault>) -> Pages<T> {
        Pages {
            table,
            read,
            last: Vec::new(),
            rows: VecDeque::new(),
            is_end: false,
        }
    }

    /// The next item with the first number of its key, or 0 if it begins with no number.
    ///
    /// # Errors
    /// The database is unavailable, or the row is damaged.
    pub fn next(&mut self, session: &Session) -> Result<Option<(u64, T)>, StoreError> {
        self.fill(session)?;
        Ok(self.rows.pop_front())
    }

    /// Calls `each` with those of the items whose key begins with this number. Items of lower
    /// numbers are passed over.
    ///
    /// # Errors
    /// As [`Pages::next`], or that of `each`.
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
            let page = session.query(async |link: &Link| self.fetch(link).await)?;
            self.add_page(&page).map_err(Fault::into_error)?;
        }
        Ok(())
    }

    async fn fetch(&self, link: &Link) -> Result<Vec<Row>> {
        let key = self.table.key_columns();
        let places: Vec<_> = (1..=self.last.len())
            .map(|place| format!("${place}"))
            .collect();
        let after = match places.len() {
            0 => "TRUE".to_owned(),
            _ => format!("({key}) > ({})", places.join(", ")),
        };
        let sql = format!("{} ORDER BY {key} LIMIT {PAGE}", self.table.select(&after));
        link.query(&sql, &self.last).await
    }

    fn add_page(&mut self, page: &[Row]) -> Result<()> {
        self.is_end = page.len() < PAGE;
        for row in page {
            let first = match self.table.columns[0].1 {
                ColumnType::Int => Fields::of(row).read::<i64>()?.cast_unsigned(),
                _ => 0,
            };
            self.rows
                .push_back((first, (self.read)(&mut Fields::of(row))?));
        }
        if let Some(mut row) = page.last().map(Fields::of) {
            let key = self.table.columns[..self.table.key].iter();
            self.last = key
                .map(|(_, kind)| row.cell(*kind))
                .collect::<Result<_>>()?;
        }
        Ok(())
    }
}
