//! The chunks of a PNG (PNG, third edition, 5.3).

use std::ops::Range;

/// A chunk.
#[derive(Clone, Copy)]
pub struct Chunk<'a> {
    /// The name.
    pub name: [u8; 4],
    /// The data.
    pub data: &'a [u8],
    /// The whole chunk, from its length to its checksum.
    pub bytes: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// The chunk at the beginning of `bytes`, if it is whole.
    pub fn first(bytes: &'a [u8]) -> Option<Chunk<'a>> {
        let (length, behind) = bytes.split_first_chunk()?;
        let length = u32::from_be_bytes(*length) as usize;
        let (name, behind) = behind.split_first_chunk()?;
        let (data, behind) = behind.split_at_checked(length)?;
        behind.first_chunk::<4>()?;
        Some(Chunk {
            name: *name,
            data,
            bytes: &bytes[..12 + length],
        })
    }

    /// Whether the checksum is right. For `fuzz/` all are, as for the decoder.
    pub fn is_sound(&self) -> bool {
        if cfg!(fuzzing) {
            return true;
        }
        let (checked, checksum) = self.bytes[4..].split_at(4 + self.data.len());
        crc32fast::hash(checked).to_be_bytes() == checksum
    }
}

/// The parts of a range of the file without another range, if that lies within it.
pub fn parts_without(
    file: &[u8],
    range: Range<usize>,
    left_out: Option<Range<usize>>,
) -> [&[u8]; 2] {
    match left_out.filter(|hole| range.start <= hole.start && hole.end <= range.end) {
        Some(hole) => [&file[range.start..hole.start], &file[hole.end..range.end]],
        None => [&file[range], &[]],
    }
}

/// The chunks of a file, with their places in it, as far as they are whole.
pub fn chunks_of_file(file: &[u8]) -> impl Iterator<Item = (usize, Chunk<'_>)> {
    const SIGNATURE: usize = 8;
    let mut next = SIGNATURE;
    std::iter::from_fn(move || {
        let place = next;
        let chunk = Chunk::first(file.get(place..)?)?;
        next += chunk.bytes.len();
        Some((place, chunk))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_range_that_lies_within_the_other_is_left_out() {
        let file = b"0123456789";
        for (hole, expected) in [
            (None, ["2345", ""]),
            (Some(3..5), ["2", "5"]),
            (Some(2..6), ["", ""]),
            (Some(2..3), ["", "345"]),
            (Some(5..6), ["234", ""]),
            (Some(1..3), ["2345", ""]),
            (Some(5..7), ["2345", ""]),
            (Some(7..9), ["2345", ""]),
        ] {
            let parts = parts_without(file, 2..6, hole.clone());
            assert_eq!(parts, expected.map(str::as_bytes), "{hole:?}");
        }
    }
}
