//! A file in memory, read in portions between which decoding may be cancelled.

use std::io::{self, BufRead, Read, Seek, SeekFrom};
use towebp_encoder::{Cancel, Cancelled};

/// A reader of a file in memory, in one or several parts, that checks a [`Cancel`] before each
/// portion and fails once that is set.
///
/// It compares its position with the end of the portion instead of the end of the file, so that the
/// checks cost nothing in between.
#[derive(Debug)]
pub(super) struct CancellableReader<'a> {
    /// The parts, each with its offset in the whole.
    parts: Vec<(usize, &'a [u8])>,
    /// The number of bytes of all parts.
    length: usize,
    /// The part that is being read, with its offset.
    part: (usize, &'a [u8]),
    /// The bytes of it that may be read before the next check.
    rest: &'a [u8],
    /// The offset in the whole at which `rest` ends; the position, if that is beyond the whole.
    end: usize,
    /// The number of bytes between two checks.
    portion: usize,
    cancel: &'a Cancel<'a>,
}

impl<'a> CancellableReader<'a> {
    /// Reads several parts one after the other, and checks `cancel` before each part and every
    /// `portion` bytes, at least 1.
    pub(super) fn of_parts(
        parts: &[&'a [u8]],
        portion: usize,
        cancel: &'a Cancel<'a>,
    ) -> CancellableReader<'a> {
        let mut length = 0;
        let place = |part: &&'a [u8]| {
            let place = length;
            length += part.len();
            (place, *part)
        };
        CancellableReader {
            parts: parts.iter().map(place).collect(),
            length,
            part: (0, &[]),
            rest: &[],
            end: 0,
            portion,
            cancel,
        }
    }

    #[cold]
    fn begin_portion(&mut self) -> io::Result<()> {
        // Not `Interrupted`, after which readers try again.
        self.cancel
            .check()
            .map_err(|Cancelled| io::Error::other("cancelled"))?;
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

impl BufRead for CancellableReader<'_> {
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

impl Read for CancellableReader<'_> {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let count = available.len().min(buffer.len());
        buffer[..count].copy_from_slice(&available[..count]);
        self.consume(count);
        Ok(count)
    }

    /// Reads as the default does, but quickly for the few bytes at a time that decoders read.
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

impl Seek for CancellableReader<'_> {
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
        // A position beyond the portion, or in another part, makes a check due. A little back is
        // nothing new.
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
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn it_reads_and_seeks_like_a_cursor() {
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
        let never = Cancel::never();
        let cases = [1, 3, 64, 1000].map(|portion| [0, 1, 30, 100].map(|length| (portion, length)));
        for (portion, length) in cases.into_iter().flatten() {
            let (front, back) = bytes.split_at(length);
            let (middle, back) = back.split_at(back.len() / 3);
            let parts = [front, middle, &[], back];
            let mut reader = CancellableReader::of_parts(&parts, portion, &never);
            let mut cursor = io::Cursor::new(&bytes);
            let steps = [0, 5, -3, 60, -40, 30, 100, -20, -81, 7];
            for step in steps {
                let mut read = [[0; 7]; 2];
                let outcomes = [
                    reader.seek(SeekFrom::Current(step)).is_ok(),
                    cursor.seek(SeekFrom::Current(step)).is_ok(),
                ];
                assert_eq!(outcomes[0], outcomes[1], "{step}");
                let [mine, other] = &mut read;
                let outcomes = [reader.read_exact(mine), cursor.read_exact(other)];
                assert_eq!(outcomes[0].is_ok(), outcomes[1].is_ok(), "{step}");
                if outcomes[0].is_ok() {
                    assert_eq!(
                        read[0], read[1],
                        "after {step} by {portion}, parts from {length} on"
                    );
                }
                let back = SeekFrom::Start(cursor.stream_position().expect("a position").min(100));
                reader.seek(back).expect("a good position");
                cursor.seek(back).expect("a good position");
            }
            reader.seek(SeekFrom::End(-2)).expect("a good position");
            let mut rest = Vec::new();
            reader.read_to_end(&mut rest).expect("nothing can fail");
            assert_eq!(rest, [98, 99]);
            // Beyond the end there is nothing, and a way back.
            reader.seek(SeekFrom::Start(500)).expect("a good position");
            assert_eq!(reader.read(&mut [0; 9]).expect("nothing can fail"), 0);
            reader
                .seek(SeekFrom::Current(-402))
                .expect("a good position");
            reader.read_to_end(&mut rest).expect("nothing can fail");
            assert_eq!(rest, [98, 99, 98, 99]);
            assert!(reader.seek(SeekFrom::Start(u64::MAX)).is_err());
            assert!(reader.seek(SeekFrom::End(-101)).is_err());
        }
    }

    #[test]
    fn it_checks_once_per_portion_and_fails_once_it_is_cancelled() {
        let checks = AtomicUsize::new(0);
        let is_unwanted = || checks.fetch_add(1, Ordering::Relaxed) >= 3;
        let cancel = Cancel::when(&is_unwanted);
        let mut reader = CancellableReader::of_parts(&[&[7; 100]], 10, &cancel);
        let mut read = Vec::new();
        assert!(reader.read_to_end(&mut read).is_err());
        assert_eq!((read.len(), checks.load(Ordering::Relaxed)), (30, 4));
        assert!(reader.fill_buf().is_err());
    }
}
