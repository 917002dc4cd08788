//! The names of entries of histories and of failures, which are also the cursors of their pages.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::auth::{decode_128, encode_128};

/// Identifies an entry within its account, and orders the account's entries: a later one has a
/// greater number. It is a sequence number in redb and a UUID in shared engines.
///
/// Its text is opaque to clients: decimal digits below 2^64, otherwise 22 characters of base 62. No
/// two numbers have the same text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub u128);

/// A page of an account's history or of its failed conversions, newest first.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// The entries with their ids.
    pub entries: Vec<(EntryId, T)>,
    /// The value of `before` that gives the next page, which may be empty with a filter; `None` if
    /// there is no older entry.
    pub next_before: Option<EntryId>,
}

impl<T> Page<T> {
    /// The first `limit` of these entries. A further one shows that there is another page.
    pub fn of(mut entries: Vec<(EntryId, T)>, limit: usize) -> Page<T> {
        let has_more = entries.len() > limit;
        entries.truncate(limit);
        let last = entries.last().filter(|_| has_more);
        Page {
            next_before: last.map(|(id, _)| *id),
            entries,
        }
    }
}

impl EntryId {
    /// The pattern of the text, as a regular expression.
    pub const PATTERN: &str = "^[0-9A-Za-z]{1,22}$";

    /// The number, if it is a sequence number, which means something to people.
    pub fn sequence(self) -> Option<u64> {
        u64::try_from(self.0).ok()
    }
}

impl From<u64> for EntryId {
    fn from(sequence: u64) -> EntryId {
        EntryId(sequence.into())
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sequence() {
            Some(sequence) => sequence.fmt(f),
            None => f.write_str(&encode_128(self.0)),
        }
    }
}

impl Serialize for EntryId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The text is not that of an [`EntryId`].
#[derive(Debug, PartialEq, Eq)]
pub struct NoEntryId;

impl FromStr for EntryId {
    type Err = NoEntryId;

    fn from_str(text: &str) -> Result<EntryId, NoEntryId> {
        let id = if text.bytes().all(|byte| byte.is_ascii_digit())
            && let Ok(sequence) = text.parse::<u64>()
        {
            EntryId::from(sequence)
        } else {
            let number = decode_128(text).ok_or(NoEntryId)?;
            EntryId(number)
        };
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST_LONG: u128 = 1 << 64;

    #[test]
    fn each_number_comes_back_from_its_text() {
        for (number, text) in [
            (0, "0"),
            (7, "7"),
            (FIRST_LONG - 1, "18446744073709551615"),
            (FIRST_LONG, "00000000000LygHa16AHYG"),
            (u128::MAX, "7n42DGM5Tflk9n8mt7Fhc7"),
        ] {
            assert_eq!(EntryId(number).to_string(), text);
            assert_eq!(text.parse(), Ok(EntryId(number)), "{text}");
        }
        for bit in 0..128 {
            let id = EntryId(1 << bit);
            assert_eq!(id.to_string().parse(), Ok(id), "bit {bit}");
        }
    }

    #[test]
    fn other_texts_are_none() {
        for text in [
            "",
            "-1",
            "+1",
            "1 ",
            "ten",
            "1.0",
            "18446744073709551616",
            "zzzzzzzzzzzzzzzzzzzzzz",
            "7n42DGM5Tflk9n8mt7Fhc8",
            "7n42DGM5Tflk9n8mt7Fhc",
            "7n42DGM5Tflk9n8mt7Fhc70",
            "7n42DGM5Tflk9n8mt7Fh-7",
            "é",
        ] {
            assert_eq!(text.parse::<EntryId>(), Err(NoEntryId), "{text}");
        }
    }
}
