//! The ICC profile of a JPEG, in one or several APP2 segments (ICC.1, B.4).

use crate::image::color::MAX_PROFILE_BYTES;

/// The name that the data of each of these segments begins with.
pub const NAME: &[u8] = b"ICC_PROFILE\0";

/// The segments of a profile in the order of the file. If anything is wrong with their numbers,
/// there is no profile, and the picture is read without it, as browsers do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunks<'a>(Vec<Chunk<'a>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chunk<'a> {
    /// Its place among the chunks of the profile, from 1 on.
    number: u8,
    /// The number of chunks.
    count: u8,
    bytes: &'a [u8],
}

impl<'a> Chunks<'a> {
    /// The number of chunks that are kept: one more than a byte can count, which makes the profile
    /// invalid.
    const MOST: usize = 256;

    /// Adds the data of a segment behind the name.
    pub fn add(&mut self, segment: &'a [u8]) {
        if let &[number, count, ref bytes @ ..] = segment
            && self.0.len() < Chunks::MOST
        {
            let chunk = Chunk {
                number,
                count,
                bytes,
            };
            self.0.push(chunk);
        }
    }

    /// The profile, put together; `None` if there is none, or if it is too large to be used.
    pub fn whole(&self) -> Option<Vec<u8>> {
        let chunks = self.in_order()?;
        Some(chunks.concat())
    }

    /// The number of bytes of [`Chunks::whole`], without a copy of them.
    pub fn length(&self) -> usize {
        self.in_order()
            .map_or(0, |chunks| chunks.iter().map(|chunk| chunk.len()).sum())
    }

    /// The profile, if it is in one segment.
    pub fn single(&self) -> Option<&'a [u8]> {
        match self.in_order()?.as_slice() {
            [chunk] => Some(chunk),
            _ => None,
        }
    }

    /// Whether there is no profile.
    pub fn is_empty(&self) -> bool {
        self.in_order().is_none()
    }

    /// The chunks in the order of their numbers, which have to run from 1 on, each once, with
    /// counts that agree.
    fn in_order(&self) -> Option<Vec<&'a [u8]>> {
        let mut ordered = vec![None; self.0.len()];
        for chunk in &self.0 {
            let place = usize::from(chunk.number).checked_sub(1)?;
            let is_first = ordered.get_mut(place)?.replace(chunk.bytes).is_none();
            if usize::from(chunk.count) != self.0.len() || !is_first {
                return None;
            }
        }
        let length: usize = self.0.iter().map(|chunk| chunk.bytes.len()).sum();
        let ordered: Option<Vec<_>> = ordered.into_iter().collect();
        ordered.filter(|_| (1..=MAX_PROFILE_BYTES).contains(&length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(chunks: &[&[u8]]) -> Option<Vec<u8>> {
        let mut all = Chunks::default();
        for chunk in chunks {
            all.add(chunk);
        }
        assert_eq!(all.length(), all.whole().unwrap_or_default().len());
        assert_eq!(all.is_empty(), all.whole().is_none());
        all.whole()
    }

    #[test]
    fn chunks_are_put_together_by_their_numbers() {
        assert_eq!(whole(&[b"\x01\x01abc"]).as_deref(), Some(&b"abc"[..]));
        let three: [&[u8]; 3] = [b"\x02\x03cd", b"\x03\x03e", b"\x01\x03ab"];
        assert_eq!(whole(&three).as_deref(), Some(&b"abcde"[..]));
        let mut most: Vec<Vec<u8>> = (1..=255).map(|number| vec![number, 255, number]).collect();
        let refer = |chunks: &[Vec<u8>]| {
            let chunks: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
            whole(&chunks)
        };
        assert_eq!(refer(&most), Some((1..=255).collect()));
        most.extend([vec![0, 0, 1], vec![1, 1, 1]]);
        assert_eq!(refer(&most), None);
    }

    #[test]
    fn impossible_numbers_make_no_profile() {
        let impossible: [&[&[u8]]; 9] = [
            &[],
            &[b"\x01"],
            &[b"\x00\x01abc"],
            &[b"\x01\x00abc"],
            &[b"\x02\x01abc"],
            &[b"\x01\x02abc"],
            &[b"\x01\x02abc", b"\x01\x02abc"],
            &[b"\x01\x02abc", b"\x02\x03abc"],
            &[b"\x01\x02abc", b"\x03\x02abc"],
        ];
        for chunks in impossible {
            assert_eq!(whole(chunks), None, "{chunks:?}");
        }
    }

    #[test]
    fn a_profile_that_is_too_large_is_not_put_together() {
        let chunk = |number: u8, length: usize| [&[number, 65][..], &vec![7; length]].concat();
        let length = MAX_PROFILE_BYTES / 64;
        let mut chunks: Vec<Vec<u8>> = (1..65).map(|number| chunk(number, length)).collect();
        chunks.push(chunk(65, 0));
        let all = |chunks: &[Vec<u8>]| {
            let mut all = Chunks::default();
            for chunk in chunks {
                all.add(chunk);
            }
            all.length()
        };
        assert_eq!(all(&chunks), MAX_PROFILE_BYTES);
        chunks[64].push(1);
        assert_eq!(all(&chunks), 0);
    }
}
