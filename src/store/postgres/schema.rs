//! Makes the tables, and checks existing ones.
//!
//! The lock is a row of the table `meta`, since not every database that speaks this protocol has
//! other locks, and poolers break those. A second program that wants to make the tables waits for
//! the row, and then finds nothing left to do.

use super::cell::{self, Cell, cells};
use super::connection::Link;
use super::fault::{Class, Fault, Result};
use super::tables;

/// The number of the schema: the tables as [`tables`] lists them. No other was ever released.
const SCHEMA: i64 = 1;

/// The oldest schema that a program has to know to work with the present one. While it stays the
/// same, programs of two schemas work side by side.
const NEEDS: i64 = 1;

/// The table of numbers by name: `schema` is the number of the schema, 0 until the tables are made;
/// `needs` the oldest schema that a program has to know to work with it; `secret` the mark of the
/// secret in use; `last_account` the last number of an account that was given; `system` and
/// `timeline` those of the primary (see [`Link::note_timeline`]). [`COPYING`] exists while a store
/// is being copied to the database.
const META: &str = "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value BIGINT NOT NULL)";

/// The name of the mark of the secret of the store that is being copied to the database.
pub const COPYING: &str = "copying";

/// Checks the tables. Makes them in an empty database if `may_make`.
///
/// # Errors
/// The database has no tables, or those of a schema that this program cannot work with.
pub async fn prepare(link: &Link, may_make: bool) -> Result<()> {
    // A role that may not make tables can work on existing ones.
    let sql = "SELECT 1 FROM information_schema.tables
               WHERE table_name = 'meta' AND table_schema = current_schema()";
    let has_meta = !link.query(sql, &[]).await?.is_empty();
    if !has_meta && !may_make {
        let text = "the database has no tables of towebp";
        return Err(Fault::new(Class::Refused, text));
    }
    // Without its number, the making of the tables was interrupted.
    if may_make && (!has_meta || number(link, "schema").await?.unwrap_or(0) == 0) {
        make(link).await?;
    }
    let schema = number(link, "schema").await?.unwrap_or(0);
    let needs = number(link, "needs").await?.unwrap_or(schema);
    if schema < SCHEMA || needs > SCHEMA {
        let text = format!(
            "the database has schema {schema}, which needs a towebp that knows schema {needs}; this \
             one knows {SCHEMA}"
        );
        return Err(Fault::new(Class::Refused, text));
    }
    tables::check(link).await
}

/// Makes the tables, unless another program has made them meanwhile.
async fn make(link: &Link) -> Result<()> {
    link.batch(META).await?;
    let sql = "INSERT INTO meta (name, value) VALUES ('schema', 0) ON CONFLICT DO NOTHING";
    link.batch(sql).await?;
    link.batch("BEGIN").await?;
    let sql = "SELECT value FROM meta WHERE name = 'schema' FOR UPDATE";
    let present: Option<i64> = link.first(sql, &[], cell::read).await?;
    if present == Some(0) {
        link.batch(&tables::make()).await?;
        set_number(link, "schema", SCHEMA).await?;
        set_number(link, "needs", NEEDS).await?;
    }
    link.batch("COMMIT").await
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

/// A number of the table `meta`.
pub async fn number(link: &Link, name: &str) -> Result<Option<i64>> {
    let sql = "SELECT value FROM meta WHERE name = $1";
    link.first(sql, cells![name], cell::read).await
}

/// Stores a number in the table `meta` unless there is one of this name. Returns whether there was
/// none.
pub async fn keep_number(link: &Link, name: &str, value: i64) -> Result<bool> {
    let sql = "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
    Ok(link.execute(sql, cells![name, value]).await? > 0)
}

/// Stores a number in the table `meta`.
pub async fn set_number(link: &Link, name: &str, value: impl Into<Cell>) -> Result<()> {
    let sql = "INSERT INTO meta (name, value) VALUES ($1, $2)
               ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    link.execute(sql, &[name.into(), value.into()])
        .await
        .map(drop)
}
