//! Marker segments of a JPEG (ITU-T T.81, B.1.1.2 to B.1.1.4).

use crate::image::error::DecodeError;
use std::ops::Range;

/// The segments behind the start-of-image marker, up to a marker that begins no segment, or to an
/// incomplete one.
///
/// Bytes between two segments are skipped, as browsers do, and so are fill bytes, FF 00, which is
/// no marker, and the markers `RSTn` and `TEM`, which have no data.
pub struct Segments<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A marker segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The second byte of its marker.
    pub marker: u8,
    /// The bytes behind its length.
    pub data: &'a [u8],
    /// Its range in the file, the marker included.
    pub place: Range<usize>,
}

impl Segments<'_> {
    /// The segments of a whole file.
    pub fn of(bytes: &[u8]) -> Segments<'_> {
        Segments { bytes, at: 2 }
    }
}

impl<'a> Iterator for Segments<'a> {
    type Item = Segment<'a>;

    fn next(&mut self) -> Option<Segment<'a>> {
        loop {
            let rest = self.bytes.get(self.at..)?;
            let fill = rest.iter().position(|&byte| byte == 0xff)?;
            let second = fill + rest[fill..].iter().position(|&byte| byte != 0xff)?;
            let begin = self.at + second - 1;
            if is_skipped(rest[second]) {
                self.at = begin + 2;
                continue;
            }
            let &[marker, high, low, ref behind @ ..] = &rest[second..] else {
                return None;
            };
            let length = usize::from(u16::from_be_bytes([high, low])).checked_sub(2)?;
            let data = behind.get(..length)?;
            if !begins_segment(marker) {
                return None;
            }
            self.at = begin + 4 + length;
            return Some(Segment {
                marker,
                data,
                place: begin..self.at,
            });
        }
    }
}

/// Whether the byte after FF is skipped: 00, which makes it no marker, TEM and `RSTn`.
fn is_skipped(byte: u8) -> bool {
    matches!(byte, 0x00 | 0x01 | 0xd0..=0xd7)
}

/// Whether a length and data follow a marker (T.81, table B.1). SOI and EOI have no data; 02 to BF
/// are reserved.
fn begins_segment(marker: u8) -> bool {
    matches!(marker, 0xc0..=0xcf | 0xda..=0xfe)
}

/// The parts of a file that are passed to the decoder, in order. Metadata is left out, since the
/// decoder copies all that it sees, and rejects a picture for faults in some of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts<'a>(Vec<&'a [u8]>);

impl<'a> Parts<'a> {
    /// The largest number of parts: real files have a handful.
    const MOST: usize = 1024;

    /// Adds a part; `None` if there are too many.
    pub fn push(&mut self, part: &'a [u8]) -> Option<()> {
        if part.is_empty() {
            return Some(());
        }
        self.0.push(part);
        (self.0.len() <= Parts::MOST).then_some(())
    }

    /// The number of bytes of all parts.
    pub fn length(&self) -> usize {
        self.0.iter().map(|part| part.len()).sum()
    }

    /// The parts.
    pub fn as_slice(&self) -> &[&'a [u8]] {
        &self.0
    }
}

/// Whether a segment of Huffman tables is longer than eight complete tables, the most that the
/// format knows: the decoder takes 3.5 KB for each table, and a table without codes has only 17
/// bytes.
pub fn has_too_many_tables(marker: u8, data: &[u8]) -> bool {
    const DEFINE_HUFFMAN_TABLES: u8 = 0xc4;
    marker == DEFINE_HUFFMAN_TABLES && data.len() > 8 * (17 + 256)
}

/// The error for headers that are damaged.
pub fn damaged() -> DecodeError {
    DecodeError::Invalid("the JPEG's headers are damaged".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::formats::jpeg::tests::segment;

    fn markers(bytes: &[u8]) -> Vec<u8> {
        Segments::of(bytes).map(|segment| segment.marker).collect()
    }

    #[test]
    fn stray_and_fill_bytes_are_skipped() {
        let tables = segment(0xdb, &[7; 3]);
        let comment = segment(0xfe, &[]);
        let file = [
            &[0xff, 0xd8, 1, 2][..],
            &tables,
            &[0xff; 3],
            &comment,
            &[0, 9],
            &tables,
        ];
        let file = file.concat();
        assert_eq!(markers(&file), [0xdb, 0xfe, 0xdb]);
        let second = Segments::of(&file).nth(1).expect("there are three");
        assert_eq!(second.place, 14..18, "without the fill bytes");
    }

    #[test]
    fn a_marker_without_a_segment_ends_them() {
        let tables = segment(0xdb, &[7; 3]);
        let ends = |marker: &u8| !begins_segment(*marker) && !is_skipped(*marker);
        for marker in (0..0xff).filter(ends) {
            let alone = [&[0xff, 0xd8][..], &tables, &[0xff, marker, 0, 2], &tables].concat();
            assert_eq!(markers(&alone), [0xdb], "{marker:x}");
        }
    }

    #[test]
    fn ff_00_and_markers_without_data_are_skipped() {
        let tables = segment(0xdb, &[7; 3]);
        for skipped in [
            &[0xff, 0x00][..],
            &[0xff, 0xff, 0x00, 0x00, 0x02],
            &[0xff, 0x01],
            &[0xff, 0xd0, 0xff, 0xd7],
            // What looks like a segment behind FF 00 is none: the next marker counts.
            &[0xff, 0x00, 0x00, 0x09],
        ] {
            let file = [&[0xff, 0xd8][..], &tables, skipped, &tables].concat();
            assert_eq!(markers(&file), [0xdb, 0xdb], "{skipped:x?}");
            let second = Segments::of(&file).nth(1).expect("there are two");
            assert_eq!(second.place.start, 2 + tables.len() + skipped.len());
        }
    }

    #[test]
    fn no_part_of_a_segment_is_one() {
        let file = [&[0xff, 0xd8][..], &segment(0xdb, &[7; 3])].concat();
        for length in 0..file.len() {
            assert!(markers(&file[..length]).is_empty(), "{length} bytes");
        }
        assert!(markers(&[0xff, 0xd8, 0xff, 0xdb, 0, 1, 0]).is_empty());
    }
}
