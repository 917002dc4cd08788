//! Whether a picture is still waited for, which is asked all through the work on it.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufRead, Read, Seek, SeekFrom};

/// Somebody who waits for a picture. Every few milliseconds of work they are asked whether they still do; once they do
/// not, the work ends with [`Cancelled`].
pub struct Patience<'a> {
    is_waiting: &'a dyn Fn() -> bool,
    /// They said no once: decoders may pass over what a reader says, so the answer is kept.
    is_lost: Cell<bool>,
}

/// Nobody waits for the picture any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

impl Patience<'_> {
    /// Of someone who says by `is_waiting` whether they still wait, within a microsecond.
    pub fn new(is_waiting: &dyn Fn() -> bool) -> Patience<'_> {
        Patience {
            is_waiting,
            is_lost: Cell::new(false),
        }
    }

    /// Of someone who waits for ever.
    pub fn endless() -> Patience<'static> {
        Patience::new(&|| true)
    }

    /// Asks.
    ///
    /// # Errors
    /// [`Cancelled`] if nobody waits any more, now or when it was asked before.
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.is_lost.get() || !(self.is_waiting)() {
            self.is_lost.set(true);
            return Err(Cancelled);
        }
        Ok(())
    }

    /// Whether the answer was no: what was done since is void.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.get()
    }
}

impl fmt::Debug for Patience<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patience")
            .field("is_lost", &self.is_lost)
            .finish_non_exhaustive()
    }
}

/// Pixels that a pass over a picture takes between two questions: well below a millisecond of the slowest.
pub(super) const PORTION_PIXELS: usize = 1 << 16;

/// A file in memory, in one or several parts, whose reader asks before each portion of it, and fails once nobody waits.
///
/// Between two questions it costs nothing: the end of the portion stands where the end of the file would be looked at.
#[derive(Debug)]
pub(super) struct Source<'a> {
    /// Each with its place in the whole.
    parts: Vec<(usize, &'a [u8])>,
    /// Bytes of all.
    length: usize,
    /// The part that is read, with its place.
    part: (usize, &'a [u8]),
    /// What may be read of it before the next question.
    rest: &'a [u8],
    /// Where `rest` ends in the whole, or beyond it the position.
    end: usize,
    portion: usize,
    patience: &'a Patience<'a>,
}

impl<'a> Source<'a> {
    /// Asks every `portion` bytes, which are at least 1.
    pub(super) fn new(bytes: &'a [u8], portion: usize, patience: &'a Patience<'a>) -> Source<'a> {
        Source::of(&[bytes], portion, patience)
    }

    /// As [`Source::new`], of several parts one after the other; it asks before each of them, too.
    pub(super) fn of(parts: &[&'a [u8]], portion: usize, patience: &'a Patience<'a>) -> Source<'a> {
        let mut length = 0;
        let place = |part: &&'a [u8]| {
            let place = length;
            length += part.len();
            (place, *part)
        };
        Source {
            parts: parts.iter().map(place).collect(),
            length,
            part: (0, &[]),
            rest: &[],
            end: 0,
            portion,
            patience,
        }
    }

    #[cold]
    fn begin_portion(&mut self) -> io::Result<()> {
        // Not `Interrupted`, after which readers try again.
        self.patience
            .check()
            .map_err(|Cancelled| io::Error::other("nobody waits any more"))?;
        let behind = self.parts.partition_point(|(place, _)| *place <= self.end);
        if let Some(part) = behind.checked_sub(1) {
            self.part = self.parts[part];
        }
        let (place, bytes) = self.part;
        let coming = bytes.get(self.end - place..).unwrap_or_default();
        self.rest = &coming[..coming.len().min(self.portion)];
        self.end += self.rest.len();
        Ok(())
    }
}

impl BufRead for Source<'_> {
    #[inline]
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.rest.is_empty() {
            self.begin_portion()?;
        }
        Ok(self.rest)
    }

    #[inline]
    fn consume(&mut self, count: usize) {
        self.rest = &self.rest[count..];
    }
}

impl Read for Source<'_> {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let count = available.len().min(buffer.len());
        buffer[..count].copy_from_slice(&available[..count]);
        self.consume(count);
        Ok(count)
    }

    /// The same as the default, but quick for the few bytes at a time that decoders ask for.
    #[inline]
    fn read_exact(&mut self, mut buffer: &mut [u8]) -> io::Result<()> {
        if let Some((bytes, rest)) = self.rest.split_at_checked(buffer.len()) {
            buffer.copy_from_slice(bytes);
            self.rest = rest;
            return Ok(());
        }
        while !buffer.is_empty() {
            let count = self.read(buffer)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            buffer = &mut buffer[count..];
        }
        Ok(())
    }
}

impl Seek for Source<'_> {
    #[inline]
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (from, by) = match to {
            SeekFrom::Start(position) => (0, i64::try_from(position).ok()),
            SeekFrom::Current(by) => (self.end - self.rest.len(), Some(by)),
            SeekFrom::End(by) => (self.length, Some(by)),
        };
        let position = by
            .and_then(|by| isize::try_from(by).ok())
            .and_then(|by| from.checked_add_signed(by))
            .ok_or(io::ErrorKind::InvalidInput)?;
        // Beyond the portion a question is due, and where another part is read. A little back is nothing new.
        let (place, bytes) = self.part;
        let read = position.checked_sub(place).zip(self.end.checked_sub(place));
        self.rest = match read {
            Some((position, end)) => bytes
                .get(position..end.min(bytes.len()))
                .unwrap_or_default(),
            None => &[],
        };
        self.end = position + self.rest.len();
        Ok(position as u64)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    #[test]
    fn a_no_is_kept() {
        let answers = Cell::new(2);
        let is_waiting = || {
            answers.set(answers.get() - 1);
            answers.get() != 0
        };
        let patience = Patience::new(&is_waiting);
        assert_eq!(patience.check(), Ok(()));
        assert!(!patience.is_lost());
        assert_eq!(patience.check(), Err(Cancelled));
        assert_eq!(patience.check(), Err(Cancelled));
        assert!(patience.is_lost());
        assert_eq!(answers.get(), 0, "nobody is asked twice after a no");
    }

    #[test]
    fn a_source_reads_and_seeks_like_a_cursor() {
        const BYTES: [u8; 100] = {
            let mut bytes = [0; 100];
            let mut at = 0;
            while at < 100 {
                bytes[at] = at as u8;
                at += 1;
            }
            bytes
        };
        let bytes = BYTES;
        let endless = Patience::endless();
        let cases = [1, 3, 64, 1000].map(|portion| [0, 1, 30, 100].map(|length| (portion, length)));
        for (portion, length) in cases.into_iter().flatten() {
            let (front, back) = bytes.split_at(length);
            let (middle, back) = back.split_at(back.len() / 3);
            let parts = [front, middle, &[], back];
            let mut source = Source::of(&parts, portion, &endless);
            let mut cursor = io::Cursor::new(&bytes);
            let steps = [0, 5, -3, 60, -40, 30, 100, -20, -81, 7];
            for step in steps {
                let mut read = [[0; 7]; 2];
                let outcomes = [
                    source.seek(SeekFrom::Current(step)).is_ok(),
                    cursor.seek(SeekFrom::Current(step)).is_ok(),
                ];
                assert_eq!(outcomes[0], outcomes[1], "{step}");
                let [mine, other] = &mut read;
                let outcomes = [source.read_exact(mine), cursor.read_exact(other)];
                assert_eq!(outcomes[0].is_ok(), outcomes[1].is_ok(), "{step}");
                if outcomes[0].is_ok() {
                    assert_eq!(
                        read[0], read[1],
                        "after {step} by {portion}, parts from {length} on"
                    );
                }
                let back = SeekFrom::Start(cursor.stream_position().expect("a position").min(100));
                source.seek(back).expect("a good position");
                cursor.seek(back).expect("a good position");
            }
            source.seek(SeekFrom::End(-2)).expect("a good position");
            let mut rest = Vec::new();
            source.read_to_end(&mut rest).expect("nothing can fail");
            assert_eq!(rest, [98, 99]);
            // Beyond the end there is nothing, and a way back.
            source.seek(SeekFrom::Start(500)).expect("a good position");
            assert_eq!(source.read(&mut [0; 9]).expect("nothing can fail"), 0);
            source
                .seek(SeekFrom::Current(-402))
                .expect("a good position");
            source.read_to_end(&mut rest).expect("nothing can fail");
            assert_eq!(rest, [98, 99, 98, 99]);
            assert!(source.seek(SeekFrom::Start(u64::MAX)).is_err());
            assert!(source.seek(SeekFrom::End(-101)).is_err());
        }
    }

    #[test]
    fn a_source_asks_once_a_portion_and_ends_after_a_no() {
        let asked = Cell::new(0);
        let is_waiting = || {
            asked.set(asked.get() + 1);
            asked.get() <= 3
        };
        let patience = Patience::new(&is_waiting);
        let mut source = Source::new(&[7; 100], 10, &patience);
        let mut read = Vec::new();
        assert!(source.read_to_end(&mut read).is_err());
        assert_eq!((read.len(), asked.get()), (30, 4));
        assert!(source.fill_buf().is_err());
    }
}
