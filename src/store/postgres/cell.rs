//! Values of columns: what is sent as parameters, and what is read from rows.
//!
//! PostgreSQL has no integers without a sign. What is stored of them is less than 2^63, unless a
//! caller made it up: that is stored as the greatest number.

use std::error::Error;
use std::time::SystemTime;

use bytes::BytesMut;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use uuid::Uuid;

use super::fault::{Class, Fault, Result};
use crate::auth::{AccountId, CodeHash};
use crate::store::clock;
use crate::store::token_number::TokenNumber;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Int,
    MaybeInt,
    Small,
    Text,
    MaybeText,
    Uuid,
    Bytes,
}

impl Kind {
    /// The type as in a statement that makes a table.
    pub fn declaration(self) -> String {
        let is_null = matches!(self, Kind::MaybeInt | Kind::MaybeText);
        format!("{}{}", self.name(), if is_null { "" } else { " NOT NULL" })
    }

    /// The name of the type.
    pub fn name(self) -> String {
        self.types().0.name().to_uppercase()
    }

    /// The types of one value and of an array of them.
    fn types(self) -> (Type, Type) {
        match self {
            Kind::Int | Kind::MaybeInt => (Type::INT8, Type::INT8_ARRAY),
            Kind::Small => (Type::INT2, Type::INT2_ARRAY),
            Kind::Text | Kind::MaybeText => (Type::TEXT, Type::TEXT_ARRAY),
            Kind::Uuid => (Type::UUID, Type::UUID_ARRAY),
            Kind::Bytes => (Type::BYTEA, Type::BYTEA_ARRAY),
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
    List(Kind, Vec<Cell>),
}

impl Cell {
    /// The type that it is sent as.
    pub fn sql_type(&self) -> Type {
        let kind = match self {
            Cell::Int(_) | Cell::TooLarge(_) => Kind::Int,
            Cell::Small(_) => Kind::Small,
            Cell::Null | Cell::Text(_) => Kind::Text,
            Cell::Uuid(_) => Kind::Uuid,
            Cell::Bytes(_) => Kind::Bytes,
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

macro_rules! cells {
    ($($value:ident: $of:ty => $cell:expr;)*) => {
        $(impl From<$of> for Cell {
            fn from($value: $of) -> Cell {
                $cell
            }
        })*
    };
}

cells! {
    value: i64 => Cell::Int(value);
    value: u32 => Cell::Int(value.into());
    value: u16 => Cell::Int(value.into());
    value: i16 => Cell::Small(value);
    value: u8 => Cell::Small(value.into());
    value: &str => Cell::Text(value.to_owned());
    value: String => Cell::Text(value);
    value: Uuid => Cell::Uuid(value);
    value: CodeHash => Cell::Bytes(value.into());
    value: u64 => i64::try_from(value).map_or(Cell::TooLarge(value), Cell::Int);
    value: AccountId => value.0.into();
    value: TokenNumber => value.0.into();
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Null, T::into)
    }
}

/// A time as it is stored.
pub fn time(time: SystemTime) -> i64 {
    i64::try_from(clock::to_milliseconds(time)).unwrap_or(i64::MAX)
}

/// A time as it is stored where 0 stands for none.
pub fn optional_time(at: Option<SystemTime>) -> i64 {
    at.map_or(0, |at| time(at).max(1))
}

/// The next column of a row, a number.
pub fn number<T: TryFrom<i64>>(row: &mut Fields<'_>) -> Result<T> {
    row.number()
}

/// The next column of a row, the number of an account.
pub fn account(row: &mut Fields<'_>) -> Result<AccountId> {
    row.number().map(AccountId)
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
    pub fn cell(&mut self, kind: Kind) -> Result<Cell> {
        Ok(match kind {
            Kind::Int | Kind::MaybeInt => Cell::Int(self.get()?),
            Kind::Small => Cell::Small(self.get()?),
            Kind::Text | Kind::MaybeText => Cell::Text(self.get()?),
            Kind::Uuid => Cell::Uuid(self.get()?),
            Kind::Bytes => Cell::Bytes(self.get()?),
        })
    }

    /// The next column, a number of these bits, 0 or more.
    pub fn number<T: TryFrom<i64>>(&mut self) -> Result<T> {
        T::try_from(self.get()?).map_err(|_| self.damaged())
    }

    /// The next column, a number or null.
    pub fn optional_number<T: TryFrom<i64>>(&mut self) -> Result<Option<T>> {
        let number = self.get::<Option<i64>>()?.map(T::try_from);
        number.transpose().map_err(|_| self.damaged())
    }

    /// The next column, a time.
    pub fn time(&mut self) -> Result<SystemTime> {
        self.number().map(clock::from_milliseconds)
    }

    /// The next column, a time in which 0 stands for none.
    pub fn optional_time(&mut self) -> Result<Option<SystemTime>> {
        let time = self.number()?;
        Ok((time != 0).then(|| clock::from_milliseconds(time)))
    }

    /// The next column, a hash.
    pub fn hash(&mut self) -> Result<CodeHash> {
        let bytes: &[u8] = self.get()?;
        bytes.try_into().map_err(|_| self.damaged())
    }

    /// The next column, the number of a token.
    pub fn token(&mut self) -> Result<TokenNumber> {
        self.number().map(TokenNumber)
    }

    /// The fault of a column, the last one that was read, with a value that was never stored.
    pub fn damaged(&self) -> Fault {
        let name = self.row.columns()[self.next - 1].name();
        let text = format!("the column {name} holds what was never stored");
        Fault::new(Class::Unexpected, text)
    }
}
