//! Rows on their way from a snapshot to somewhere else, in this process or through a stream of
//! JSON, one value a line:
//!
//! ```text
//! {"head":{"format":1,"entries":2}}  the form of the stream, and the number of histories' entries
//! {"row":{"store":{...}}}            the rows, in their order ([`super::rows`])
//! {"row":{"account":{...}}}
//! ...
//! {"end":7}                          the number of rows
//! ```
//!
//! A server sends such a stream to the command that makes a backup, and the command writes the file
//! as its user. If the server wrote the file, the path would be one in the server's name space (a
//! container, or a unit with a private /tmp), and the file would belong to another user.

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};

use serde::{Deserialize, Serialize};

use super::engine::{EachRow, Snapshot};
use super::error::{Result, StoreError};
use super::redb::Backup;
use super::rows::{Row, Tally};

/// The number of entries of histories after which the progress is reported.
const REPORT_EVERY: u64 = 1000;

/// The number of the form of the stream.
const FORMAT: u64 = 2;

/// The most bytes of a line: a token's preset and a password's hash have some kilobytes.
const MAX_LINE: u64 = 64 << 10;

/// A line of a stream.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Head { format: u64, entries: u64 },
    Row(Row),
    End(u64),
}

/// Calls `each` with all rows, and adds them up. `progress` is called with the number of entries of
/// histories that are done.
///
/// # Errors
/// The error of `each`, or the rows cannot be read.
pub fn read(
    snapshot: &dyn Snapshot,
    progress: &mut dyn FnMut(u64),
    mut each: impl FnMut(Row) -> Result<()>,
) -> Result<Tally> {
    let mut tally = Tally::default();
    progress(0);
    snapshot.rows(&mut |row| {
        tally.add(&row);
        if matches!(row, Row::Entry(_)) && tally.entries.is_multiple_of(REPORT_EVERY) {
            progress(tally.entries);
        }
        each(row)
    })?;
    progress(tally.entries);
    Ok(tally)
}

/// Completes a backup file from a snapshot of any engine, and returns the number of its rows.
/// `progress` is called with the number of entries of histories that are done, and their number.
///
/// # Errors
/// A sentence. No file is left then.
pub fn fill_backup(
    backup: Backup,
    snapshot: &dyn Snapshot,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<u64, String> {
    let entries = snapshot.entries().map_err(|error| error.to_string())?;
    let mut rows = 0;
    backup.load(|each| {
        let mut progress = |done| progress(done, entries);
        let read = read(snapshot, &mut progress, |row| {
            rows += 1;
            each(row)
        });
        read.map(drop)
    })?;
    Ok(rows)
}

/// As [`fill_backup`], from the stream that [`send`] writes.
///
/// # Errors
/// A sentence. No file is left then.
pub fn receive_backup(
    backup: Backup,
    rows: impl Read,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<u64, String> {
    let mut count = 0;
    backup.load(|each| {
        count = receive(rows, progress, each)?;
        Ok(())
    })?;
    Ok(count)
}

/// Writes all rows of a snapshot as a stream.
///
/// # Errors
/// The rows cannot be read, or `out` takes no more.
pub fn send(snapshot: &dyn Snapshot, out: &mut dyn Write) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(64 << 10, out);
    let mut write = |line: &Line| {
        serde_json::to_writer(&mut out, line)?;
        out.write_all(b"\n")
    };
    write(&Line::Head {
        format: FORMAT,
        entries: snapshot.entries().map_err(io::Error::other)?,
    })?;
    let (mut rows, mut broken) = (0, None);
    let read = snapshot.rows(&mut |row| {
        rows += 1;
        write(&Line::Row(row)).map_err(|error| {
            broken = Some(error);
            StoreError::Failed("the stream broke".to_owned())
        })
    });
    match (broken, read) {
        (Some(error), _) => return Err(error),
        (None, read) => read.map_err(io::Error::other)?,
    }
    write(&Line::End(rows))?;
    out.flush()
}

/// Calls `each` with the rows of a stream that [`send`] has written, and returns their number.
///
/// # Errors
/// The error of `each`, or the stream ends early or has another form.
pub fn receive(
    stream: impl Read,
    progress: &mut dyn FnMut(u64, u64),
    each: &mut EachRow<'_>,
) -> Result<u64> {
    let mut input = BufReader::with_capacity(64 << 10, stream);
    let mut bytes = Vec::new();
    let Line::Head { format, entries } = read_line(&mut input, &mut bytes)? else {
        return Err(failed("the rows have no head"));
    };
    if format != FORMAT {
        return Err(StoreError::Failed(format!(
            "the server sends rows of format {format}, and this towebp reads format {FORMAT}: use \
             the server's own version"
        )));
    }
    let (mut rows, mut done) = (0, 0);
    progress(0, entries);
    loop {
        match read_line(&mut input, &mut bytes)? {
            Line::Row(row) => {
                rows += 1;
                if matches!(row, Row::Entry(_)) {
                    done += 1;
                    if done % REPORT_EVERY == 0 {
                        progress(done, entries);
                    }
                }
                each(row)?;
            }
            Line::End(expected) if expected == rows => {
                progress(done, entries);
                return Ok(rows);
            }
            Line::End(expected) => {
                let text = format!("{rows} rows came of {expected}");
                return Err(StoreError::Failed(text));
            }
            Line::Head { .. } => return Err(failed("the rows have two heads")),
        }
    }
}

fn read_line(input: &mut impl BufRead, bytes: &mut Vec<u8>) -> Result<Line> {
    bytes.clear();
    let read = input.take(MAX_LINE).read_until(b'\n', bytes);
    read.map_err(|error| StoreError::Failed(error.to_string()))?;
    if bytes.last() != Some(&b'\n') {
        return Err(failed(if bytes.len() as u64 == MAX_LINE {
            "a row is too long"
        } else {
            "the rows ended too early"
        }));
    }
    serde_json::from_slice(bytes)
        .map_err(|error| StoreError::Failed(format!("a row cannot be read: {error}")))
}

fn failed(sentence: &str) -> StoreError {
    StoreError::Failed(sentence.to_owned())
}
