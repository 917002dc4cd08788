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

    /// Whether the decoder does not need the chunk, and may refuse the whole file for it: it does
    /// for data of some ancillary chunks that cannot be used, and other readers do not.
    pub fn is_dispensable(&self) -> bool {
        match (&self.name, self.data) {
            (b"cICP", [_, _, matrix, is_full_range, rest @ ..]) => {
                *matrix != 0 || *is_full_range > 1 || !rest.is_empty()
            }
            (b"bKGD", _) => true,
            _ => false,
        }
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

/// The parts of a range of the file without those of other ranges, in their order, that lie within
/// it.
pub fn parts_without<'a>(
    file: &'a [u8],
    range: Range<usize>,
    left_out: &[Range<usize>],
) -> Vec<&'a [u8]> {
    let mut parts = Vec::with_capacity(left_out.len() + 1);
    let mut from = range.start;
    for hole in left_out {
        if from <= hole.start && hole.end <= range.end {
            parts.push(&file[from..hole.start]);
            from = hole.end;
        }
    }
    parts.push(&file[from..range.end]);
    parts
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
    fn only_ranges_that_lie_within_the_other_are_left_out() {
        let file = b"0123456789";
        for (holes, expected) in [
            (&[][..], "2345"),
            (&[(3, 5)][..], "2,5"),
            (&[(2, 6)][..], ","),
            (&[(2, 3)][..], ",345"),
            (&[(5, 6)][..], "234,"),
            (&[(1, 3)][..], "2345"),
            (&[(5, 7)][..], "2345"),
            (&[(7, 9)][..], "2345"),
            (&[(0, 1), (2, 3), (3, 4), (5, 6), (6, 7)][..], ",,4,"),
        ] {
            let holes: Vec<Range<usize>> = holes.iter().map(|(from, to)| *from..*to).collect();
            let parts = parts_without(file, 2..6, &holes);
            assert_eq!(parts.join(&b','), expected.as_bytes(), "{holes:?}");
        }
    }
}
