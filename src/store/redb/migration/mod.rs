//! Brings a database of an older format forward, one format after another.
//!
//! The first commit of a [`Step`] writes the number of the step's format, which no older towebp
//! opens, and does all that is short. If there are rows to move that may be many, it also sets the
//! mark `migrating`; they are moved in commits of their own, so that memory stays flat however long
//! the histories are, and the last of these commits removes the mark. A process that was killed
//! between two commits goes on where it was.

mod history;
mod sessions;
mod tokens;

#[cfg(test)]
mod tests;

use redb::WriteTransaction;

use super::database::Database;
use super::meta;
use crate::store::error::StoreError;

/// What brings a database of one format to the next.
struct Step {
    /// The format that the database has afterwards.
    format: u64,
    /// All that is short, in one commit.
    begin: fn(&WriteTransaction) -> Result<(), redb::Error>,
    /// Moves some rows, and returns how many are left; once it returns 0, it has also removed what
    /// they were moved from. `None` if there are none to move.
    move_rows: Option<MoveRows>,
}

type MoveRows = fn(&WriteTransaction) -> Result<u64, redb::Error>;

/// The steps from format 2 on. Each has its number and the formats that it knows in its own module.
/// All that came with one format is one step.
const STEPS: &[Step] = &[
    Step {
        format: 3,
        begin: tokens::begin,
        move_rows: Some(tokens::move_rows),
    },
    Step {
        format: 4,
        begin: |write| {
            sessions::begin(write)?;
            history::begin(write)
        },
        move_rows: None,
    },
];

/// Brings a database of an older format forward, or goes on with that; leaves others alone.
///
/// # Errors
/// The file cannot be read or written; what was moved is moved.
pub fn run(database: &Database) -> Result<(), StoreError> {
    while advance(database)? {}
    Ok(())
}

/// Makes the next commit; false if there is nothing (more) to do.
fn advance(database: &Database) -> Result<bool, StoreError> {
    let Some(format) = database.read(meta::format)? else {
        return Ok(false);
    };
    let is_migrating = database.read(meta::is_migrating)?;
    let next = if is_migrating { format } else { format + 1 };
    let Some(step) = STEPS.iter().find(|step| step.format == next) else {
        return Ok(false);
    };
    let left = if is_migrating {
        database.write(|write| {
            let left = step.move_rows.map_or(Ok(0), |move_rows| move_rows(write))?;
            meta::set_migrating(write, left > 0)?;
            Ok(left)
        })?
    } else {
        log::info!("the database has format {format}, and is brought to format {next}");
        database.write(|write| {
            (step.begin)(write)?;
            meta::set_format(write, next)?;
            meta::set_migrating(write, step.move_rows.is_some())
        })?;
        u64::from(step.move_rows.is_some())
    };
    if is_migrating && left > 0 {
        log::info!("{left} rows are left to be moved");
    } else if left == 0 {
        log::info!("the database has format {next} now");
    }
    Ok(true)
}

/// Undoes the steps after `format`, for tests.
#[cfg(test)]
pub fn set_back(write: &WriteTransaction, format: u64) -> Result<(), redb::Error> {
    sessions::set_back(write)?;
    history::set_back(write)?;
    if format == 2 {
        tokens::set_back(write)?;
    }
    meta::set_format(write, format)
}
