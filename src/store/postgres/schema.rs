//! Makes the tables, and checks those that are there.
//!
//! The lock is a row of the table `meta`, since not every database that speaks this protocol has
//! other locks, and poolers break those. A second program that wants to make the tables waits for
//! the row, and then finds nothing left to do.

use super::cell::{self, Cell};
use super::connection::Link;
use super::fault::{Class, Fault, Result};
use super::tables;

/// The number of the schema: the tables as [`tables`] lists them. No other was ever released.
const SCHEMA: i64 = 1;

/// The oldest schema that a program has to know to work on the present one. As long as it stays the
/// same, programs of two schemas work side by side.
const NEEDS: i64 = 1;

/// The table of numbers by name: `schema` is the number of the schema, `needs` the oldest one that
/// a program must know, `secret` the mark of the secret in use, `last_account` the last number
/// of an account that was given, `system` and `timeline` those of the primary (see
/// [`Link::note_timeline`]), and [`COPYING`] is there while a store is being copied to it.
const META: &str = "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value BIGINT NOT NULL)";

/// The name of the mark of the secret of the store that is being copied to the database.
pub const COPYING: &str = "copying";

/// What opening a database may do to its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migrate {
    /// Nothing.
    Never,
    /// It makes them in an empty database.
    IfEmpty,
    /// It also brings older ones forward.
    Always,
}

/// Brings the tables to what this program knows. Returns the numbers of the last step before and
/// now.
///
/// # Errors
/// The schema is newer than this program, or older and may not be changed.
pub async fn bring_forward(link: &Link, migrate: Migrate) -> Result<(i64, i64)> {
    // Asked first, since a role that may not make tables can work on those that are there.
    let sql = "SELECT 1 FROM information_schema.tables
               WHERE table_name = 'meta' AND table_schema = current_schema()";
    if link.query(sql, &[]).await?.is_empty() {
        if migrate == Migrate::Never {
            let text = "the database has no tables of towebp";
            return Err(Fault::new(Class::Refused, text));
        }
        link.batch(META).await?;
        let sql = "INSERT INTO meta (name, value) VALUES ('schema', 0) ON CONFLICT DO NOTHING";
        link.batch(sql).await?;
    }
    let known = SCHEMA;
    let before = number(link, "schema").await?.unwrap_or(0);
    check(before, number(link, "needs").await?.unwrap_or(0))?;
    if before >= known {
        tables::check(link).await?;
        return Ok((before, before));
    }
    if migrate != Migrate::Always && (before > 0 || migrate == Migrate::Never) {
        return Err(Fault::new(
            Class::Refused,
            format!(
                "the database has schema {before}, and this towebp needs {known}: \"towebp store \
                 migrate\" brings it forward; other replicas go on working meanwhile"
            ),
        ));
    }
    link.batch("BEGIN").await?;
    let sql = "SELECT value FROM meta WHERE name = 'schema' FOR UPDATE";
    // Another program may have been here while this one waited.
    let present: i64 = link.first(sql, &[], cell::number).await?.unwrap_or(0);
    if present < known {
        link.batch(&tables::make()).await?;
        let sql = "INSERT INTO meta (name, value) VALUES ('schema', $1), ('needs', $2)
                   ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        link.execute(sql, &[known.into(), NEEDS.into()]).await?;
    }
    link.batch("COMMIT").await?;
    Ok((present, known.max(present)))
}

/// Rejects a database to which a store is being copied.
///
/// # Errors
/// It is one.
pub async fn reject_copying(link: &Link) -> Result<()> {
    if number(link, COPYING).await?.is_none() {
        return Ok(());
    }
    let text = "a store is being copied to the database; if that was broken off, repeat it: \
                \"towebp store copy\" goes on with it";
    Err(Fault::new(Class::Refused, text))
}

fn check(schema: i64, needs: i64) -> Result<()> {
    let known = SCHEMA;
    if needs > known {
        let text = format!(
            "the database has schema {schema}, which needs a towebp that knows schema {needs}; \
             this one knows {known}"
        );
        return Err(Fault::new(Class::Refused, text));
    }
    Ok(())
}

/// A number of the table `meta`.
pub async fn number(link: &Link, name: &str) -> Result<Option<i64>> {
    let sql = "SELECT value FROM meta WHERE name = $1";
    link.first(sql, &[name.into()], cell::number).await
}

/// Stores a number in the table `meta` unless there is one of this name. Returns whether there was
/// none.
pub async fn keep_number(link: &Link, name: &str, value: i64) -> Result<bool> {
    let sql = "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
    Ok(link.execute(sql, &[name.into(), value.into()]).await? > 0)
}

/// Stores a number in the table `meta`.
pub async fn set_number(link: &Link, name: &str, value: impl Into<Cell>) -> Result<()> {
    let sql = "INSERT INTO meta (name, value) VALUES ($1, $2)
               ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    let parameters = [name.into(), value.into()];
    link.execute(sql, &parameters).await.map(drop)
}
