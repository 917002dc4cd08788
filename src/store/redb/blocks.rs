//! Table `history_blocks`: a summary of each 1024 entries of a history, so that a page of entries
//! of one token, one format or some days is found without reading the others.
//!
//! ```text
//! key    0  8  account, u64
//!        8  8  block, u64: the sequence numbers of its entries, divided by 1024
//! value  0  4  earliest day (UTC) since the epoch of an entry, u32
//!        4  4  latest day, u32
//!        8  .  kinds of entries, to the end, in order and each once:
//!              0  4  token, u32
//!              4  1  length of the input format
//!              5  .  input format, UTF-8
//! ```
//!
//! Numbers have their least significant byte first. A row changes with the first entry of a day and
//! with the first of a kind: most entries only read it. It may count entries that were removed.

use redb::{ReadableTable, Table, TableDefinition};

use super::result::Result;
use crate::auth::AccountId;
use crate::store::clock;
use crate::store::token_number::TokenNumber;
use crate::store::usage::{UsageEntry, UsageFilter};

/// Earliest day, latest day and kinds by account and block.
pub const HISTORY_BLOCKS: TableDefinition<(u64, u64), Value> =
    TableDefinition::new("history_blocks");

/// Earliest day, latest day, kinds.
pub type Value = (u32, u32, &'static [u8]);

/// The entries of a block: few enough to be read for one that passes a filter, and so many that ten
/// million entries have ten thousand blocks.
const BLOCK: u64 = 1024;

/// The block of an entry.
pub fn block_of(sequence: u64) -> u64 {
    sequence / BLOCK
}

/// The first sequence number of a block.
pub fn first_of(block: u64) -> u64 {
    block.saturating_mul(BLOCK)
}

/// Whether an entry of the block may pass the filter.
pub fn may_pass((first, last, kinds): (u32, u32, &[u8]), filter: &UsageFilter) -> bool {
    first <= filter.days.last
        && last >= filter.days.first
        && each_kind(kinds).any(|(token, format)| filter.passes_kind(token, format))
}

/// Whether a row includes an entry of this day, token and format.
pub fn includes(
    (first, last, kinds): (u32, u32, &[u8]),
    day: u32,
    token: TokenNumber,
    format: &str,
) -> bool {
    (first..=last).contains(&day) && each_kind(kinds).any(|kind| kind == (token, format))
}

/// Adds an entry to the row of its block.
pub fn add(
    table: &mut Table<'_, (u64, u64), Value>,
    account: AccountId,
    sequence: u64,
    entry: &UsageEntry,
) -> Result<()> {
    let day = clock::day(clock::to_milliseconds(entry.time));
    let key = (account.0, block_of(sequence));
    let changed = {
        let row = table.get(key)?;
        let row = row.as_ref().map(redb::AccessGuard::value);
        if row.is_some_and(|row| includes(row, day, entry.token, &entry.format)) {
            return Ok(());
        }
        let (first, last, kinds) = row.unwrap_or((day, day, &[]));
        let kinds = with_kind(kinds, entry.token, &entry.format);
        (first.min(day), last.max(day), kinds)
    };
    table.insert(key, (changed.0, changed.1, &*changed.2))?;
    Ok(())
}

/// The kinds with one more, unless it is one of them.
fn with_kind(kinds: &[u8], token: TokenNumber, format: &str) -> Vec<u8> {
    let mut all: Vec<_> = each_kind(kinds).collect();
    if let Err(place) = all.binary_search(&(token, format)) {
        all.insert(place, (token, format));
    }
    let mut bytes = Vec::with_capacity(kinds.len() + 9);
    for (TokenNumber(token), format) in all {
        bytes.extend(token.to_le_bytes());
        // No format has a name of more than four letters.
        let length = u8::try_from(format.len()).unwrap_or(0);
        bytes.push(length);
        bytes.extend(&format.as_bytes()[..length.into()]);
    }
    bytes
}

/// Token and format of each kind, up to the first one that is damaged.
fn each_kind(mut kinds: &[u8]) -> impl Iterator<Item = (TokenNumber, &str)> {
    std::iter::from_fn(move || {
        let (token, rest) = kinds.split_first_chunk()?;
        let (length, rest) = rest.split_first()?;
        let (format, rest) = rest.split_at_checked((*length).into())?;
        kinds = rest;
        Some((
            TokenNumber(u32::from_le_bytes(*token)),
            str::from_utf8(format).ok()?,
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::usage::Days;

    #[test]
    fn a_block_has_1024_sequence_numbers() {
        for (sequence, block) in [(0, 0), (1023, 0), (1024, 1), (2047, 1), (2048, 2)] {
            assert_eq!(block_of(sequence), block, "{sequence}");
        }
        assert_eq!([0, 1, 2].map(first_of), [0, 1024, 2048]);
    }

    #[test]
    fn kinds_are_kept_in_order_and_once() {
        let mut kinds = Vec::new();
        for (token, format) in [(2, "png"), (0, "png"), (2, "jpeg"), (0, "png"), (2, "png")] {
            kinds = with_kind(&kinds, TokenNumber(token), format);
        }
        let drawn = [
            &[0, 0, 0, 0, 3][..],
            b"png",
            &[2, 0, 0, 0, 4],
            b"jpeg",
            &[2, 0, 0, 0, 3],
            b"png",
        ];
        assert_eq!(kinds, drawn.concat());
    }

    #[test]
    fn damaged_kinds_end_the_list() {
        let kinds = with_kind(
            &with_kind(&[], TokenNumber(1), "bmp"),
            TokenNumber(2),
            "gif",
        );
        for length in 0..kinds.len() {
            let count = each_kind(&kinds[..length]).count();
            assert_eq!(count, length / 8, "{length} bytes");
        }
    }

    #[test]
    fn a_block_passes_if_an_entry_may() {
        let kinds = with_kind(
            &with_kind(&[], TokenNumber(1), "bmp"),
            TokenNumber(2),
            "gif",
        );
        let row = (10, 20, &*kinds);
        let filter = |days: (u32, u32), token, format: Option<&str>| UsageFilter {
            days: Days {
                first: days.0,
                last: days.1,
            },
            token,
            format: format.map(str::to_owned),
        };
        let [one, three] = [Some(TokenNumber(1)), Some(TokenNumber(3))];
        for (days, token, format, passes) in [
            ((0, 9), None, None, false),
            ((0, 10), None, None, true),
            ((20, 20), one, Some("bmp"), true),
            ((21, u32::MAX), None, None, false),
            ((15, 15), one, Some("gif"), false),
            ((15, 15), three, None, false),
            ((15, 15), None, Some("gif"), true),
        ] {
            let filter = filter(days, token, format);
            assert_eq!(may_pass(row, &filter), passes, "{filter:?}");
        }
    }
}
