//! Values of columns, sent as parameters and read from rows.
//!
//! PostgreSQL has no unsigned integers. The program's numbers are less than 2^63, unless a caller
//! made one up, which is stored as 2^63 - 1.

use std::error::Error;

use bytes::BytesMut;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use uuid::Uuid;

use super::fault::{Class, Fault, Result};
use crate::auth::{AccountId, CodeHash};
use crate::store::token_number::TokenNumber;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    Int,
    MaybeInt,
    Small,
    Text,
    MaybeText,
    Uuid,
    Bytes,
}

impl ColumnType {
    /// The type as in a statement that makes a table.
    pub fn declaration(self) -> String {
        let is_null = matches!(self, ColumnType::MaybeInt | ColumnType::MaybeText);
        format!("{}{}", self.name(), if is_null { "" } else { " NOT NULL" })
    }

    /// The name of the type.
    pub fn name(self) -> String {
        self.types().0.name().to_uppercase()
    }

    /// The types of one value and of an array of them.
    fn types(self) -> (Type, Type) {
        match self {
            ColumnType::Int | ColumnType::MaybeInt => (Type::INT8, Type::INT8_ARRAY),
            ColumnType::Small => (Type::INT2, Type::INT2_ARRAY),
            ColumnType::Text | ColumnType::MaybeText => (Type::TEXT, Type::TEXT_ARRAY),
            ColumnType::Uuid => (Type::UUID, Type::UUID_ARRAY),
            ColumnType::Bytes => (Type::BYTEA, Type::BYTEA_ARRAY),
        }
    }
}

/// A value of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// No value. As a parameter of its own, it is a text.
    Null,
    Int(i64),
    /// A number that PostgreSQL cannot keep, since its integers have a sign. It is written as the
    /// greatest number.
    TooLarge(u64),
    Small(i16),
    Text(String),
    Uuid(Uuid),
    Bytes(Vec<u8>),
    /// The values of several rows.
    List(ColumnType, Vec<Cell>),
}

impl Cell {
    /// The type that it is sent as.
    pub fn sql_type(&self) -> Type {
        let kind = match self {
            Cell::Int(_) | Cell::TooLarge(_) => ColumnType::Int,
            Cell::Small(_) => ColumnType::Small,
            Cell::Null | Cell::Text(_) => ColumnType::Text,
            Cell::Uuid(_) => ColumnType::Uuid,
            Cell::Bytes(_) => ColumnType::Bytes,
            Cell::List(kind, _) => return kind.types().1,
        };
        kind.types().0
    }
}

impl ToSql for Cell {
    fn to_sql(
        &self,
        of: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Cell::Null => Ok(IsNull::Yes),
            Cell::Int(value) => value.to_sql(of, out),
            Cell::TooLarge(_) => i64::MAX.to_sql(of, out),
            Cell::Small(value) => value.to_sql(of, out),
            Cell::Text(value) => value.to_sql(of, out),
            Cell::Uuid(value) => value.to_sql(of, out),
            Cell::Bytes(value) => value.to_sql(of, out),
            Cell::List(_, values) => values.to_sql(of, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// Adjacent columns of a row: one value, or a tuple of columns.
pub trait Columns<'a>: Sized {
    /// Reads the next columns of a row.
    fn read(row: &mut Fields<'a>) -> Result<Self>;

    /// Adds a cell for each column.
    fn add_to(self, cells: &mut Vec<Cell>);
}

/// A slice of cells, as the parameters of a statement.
macro_rules! cells {
    ($($value:expr),*) => {
        &[$($crate::store::postgres::cell::Cell::from($value)),*]
    };
}
pub(super) use cells;

macro_rules! types {
    ($($of:ty: $value:ident => $cell:expr, $row:ident => $read:expr;)*) => {
        $(
            impl From<$of> for Cell {
                fn from($value: $of) -> Cell {
                    $cell
                }
            }

            impl<'a> Columns<'a> for $of {
                fn read($row: &mut Fields<'a>) -> Result<$of> {
                    $read
                }

                fn add_to(self, cells: &mut Vec<Cell>) {
                    cells.push(self.into());
                }
            }
        )*
    };
}

// Each type, a value of it as a cell, and how it is read.
types! {
    i64: value => Cell::Int(value), row => row.get();
    u64: value => i64::try_from(value).map_or(Cell::TooLarge(value), Cell::Int),
        row => row.number();
    u32: value => Cell::Int(value.into()), row => row.number();
    u16: value => Cell::Int(value.into()), row => row.number();
    u8: value => Cell::Small(value.into()),
        row => u8::try_from(row.get::<i16>()?).map_err(|_| row.damaged());
    String: value => Cell::Text(value), row => row.get();
    Uuid: value => Cell::Uuid(value), row => row.get();
    u128: value => Cell::Uuid(Uuid::from_u128(value)), row => row.get::<Uuid>().map(|value| value.as_u128());
    CodeHash: value => Cell::Bytes(value.into()),
        row => row.get::<&[u8]>()?.try_into().map_err(|_| row.damaged());
    AccountId: value => value.0.into(), row => row.number().map(AccountId);
    TokenNumber: value => value.0.into(), row => row.number().map(TokenNumber);
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Null, T::into)
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Cell {
        Cell::Text(value.to_owned())
    }
}

impl<'a> Columns<'a> for &'a str {
    fn read(row: &mut Fields<'a>) -> Result<&'a str> {
        row.get()
    }

    fn add_to(self, cells: &mut Vec<Cell>) {
        cells.push(self.into());
    }
}

macro_rules! tuples {
    ($(($($value:ident)*))*) => {
        $(
            impl<'a, $($value: Columns<'a>),*> Columns<'a> for ($($value,)*) {
                fn read(row: &mut Fields<'a>) -> Result<Self> {
                    Ok(($($value::read(row)?,)*))
                }

                #[expect(non_snake_case, reason = "the values have the names of their types")]
                fn add_to(self, cells: &mut Vec<Cell>) {
                    let ($($value,)*) = self;
                    $($value.add_to(cells);)*
                }
            }
        )*
    };
}

tuples! {
    (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) (A B C D E F G) (A B C D E F G H I J)
}

/// All columns of a row.
pub fn read<T: for<'a> Columns<'a>>(row: &mut Fields<'_>) -> Result<T> {
    row.read()
}

/// The columns of a row, read one after the other.
pub struct Fields<'a> {
    row: &'a Row,
    next: usize,
}

impl<'a> Fields<'a> {
    /// Begins at the first column.
    pub fn of(row: &'a Row) -> Fields<'a> {
        Fields { row, next: 0 }
    }

    /// The next columns.
    ///
    /// # Errors
    /// A column has another type, or a value that no towebp stores.
    pub fn read<T: Columns<'a>>(&mut self) -> Result<T> {
        T::read(self)
    }

    /// The next column.
    ///
    /// # Errors
    /// The column has another type: the tables are not this program's.
    pub fn get<T: FromSql<'a>>(&mut self) -> Result<T> {
        self.next += 1;
        let value = self.row.try_get(self.next - 1);
        value.map_err(|error| Fault::new(Class::Unexpected, error.to_string()))
    }

    /// The next column as a cell. It is not null.
    pub fn cell(&mut self, kind: ColumnType) -> Result<Cell> {
        Ok(match kind {
            ColumnType::Int | ColumnType::MaybeInt => Cell::Int(self.get()?),
            ColumnType::Small => Cell::Small(self.get()?),
            ColumnType::Text | ColumnType::MaybeText => Cell::Text(self.get()?),
            ColumnType::Uuid => Cell::Uuid(self.get()?),
            ColumnType::Bytes => Cell::Bytes(self.get()?),
        })
    }

    /// The next column, a number of these bits, 0 or more.
    fn number<T: TryFrom<i64>>(&mut self) -> Result<T> {
        T::try_from(self.get()?).map_err(|_| self.damaged())
    }

    /// An error: the column that was read last has a value that no towebp stores.
    fn damaged(&self) -> Fault {
        let name = self.row.columns()[self.next - 1].name();
        let text = format!("the column {name} holds what was never stored");
        Fault::new(Class::Unexpected, text)
    }
}

impl<'a, T: Columns<'a> + Into<Cell>> Columns<'a> for Option<T> {
    fn read(row: &mut Fields<'a>) -> Result<Option<T>> {
        let value = row.row.try_get::<_, Option<AnyValue>>(row.next);
        let is_null = value.is_ok_and(|value| value.is_none());
        if is_null {
            row.next += 1;
            return Ok(None);
        }
        T::read(row).map(Some)
    }

    fn add_to(self, cells: &mut Vec<Cell>) {
        cells.push(self.into());
    }
}

/// A value of any type, which is not read.
struct AnyValue;

impl FromSql<'_> for AnyValue {
    fn from_sql(_: &Type, _: &[u8]) -> std::result::Result<AnyValue, Box<dyn Error + Sync + Send>> {
        Ok(AnyValue)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}
