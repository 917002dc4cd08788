//! The first directory of a TIFF file, or of Exif data from its TIFF header on (TIFF 6.0, section
//! 2).

/// The type of text, of which the value's count is the number of bytes.
pub const ASCII: u16 = 2;
/// The type of numbers of two bytes.
pub const SHORT: u16 = 3;
/// The types of bytes, of numbers of four bytes, and of any data.
const BYTE: u16 = 1;
const LONG: u16 = 4;
const UNDEFINED: u16 = 7;

/// Data that begins with a TIFF header.
#[derive(Clone, Copy, Debug)]
pub struct Tiff<'a>(&'a [u8]);

/// An entry of a directory.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub tag: u16,
    pub kind: u16,
    pub count: u32,
    /// The offset of its last four bytes: the value, or the value's offset.
    pub value: usize,
}

impl<'a> Tiff<'a> {
    /// `None` if the data does not begin with a TIFF header.
    pub fn new(bytes: &'a [u8]) -> Option<Tiff<'a>> {
        matches!(bytes.get(..4)?, b"II*\0" | b"MM\0*").then_some(Tiff(bytes))
    }

    /// The whole entries of the first directory. Each has 12 bytes: tag, type, count and value.
    pub fn entries(self) -> impl Iterator<Item = Entry> {
        let directory = self.u32(4).map_or(usize::MAX, |offset| offset as usize);
        let first = directory.saturating_add(2);
        let entries = usize::from(self.u16(directory).unwrap_or_default());
        (0..entries).map_while(move |number| {
            let entry = first.checked_add(12 * number)?;
            // An entry that is cut short is damaged, even if its value is there.
            self.0.get(entry..entry.checked_add(12)?)?;
            Some(Entry {
                tag: self.u16(entry)?,
                kind: self.u16(entry + 2)?,
                count: self.u32(entry + 4)?,
                value: entry + 8,
            })
        })
    }

    /// The number at this index of an entry of bytes, numbers of two bytes or of four.
    pub fn number(self, entry: &Entry, index: usize) -> Option<u32> {
        let size = match entry.kind {
            BYTE | UNDEFINED => 1,
            SHORT => 2,
            LONG => 4,
            _ => return None,
        };
        if index >= entry.count as usize {
            return None;
        }
        let offset = self
            .place(entry, size)?
            .checked_add(index.checked_mul(size)?)?;
        match size {
            1 => self.0.get(offset).map(|byte| u32::from(*byte)),
            2 => self.u16(offset).map(u32::from),
            _ => self.u32(offset),
        }
    }

    /// The value of an entry of bytes or text.
    pub fn data(self, entry: &Entry) -> Option<&'a [u8]> {
        let place = self.place(entry, 1)?;
        self.0.get(place..place.checked_add(entry.count as usize)?)
    }

    /// The offset of the values of an entry, of `size` bytes each.
    fn place(self, entry: &Entry, size: usize) -> Option<usize> {
        if (entry.count as usize).checked_mul(size)? <= 4 {
            return Some(entry.value);
        }
        self.u32(entry.value).map(|offset| offset as usize)
    }

    /// The first text with this tag.
    pub fn text(self, tag: u16) -> Option<&'a [u8]> {
        let mut entries = self.entries();
        let entry = entries.find(|entry| (entry.tag, entry.kind) == (tag, ASCII))?;
        self.data(&entry)
    }

    pub fn is_big_endian(self) -> bool {
        self.0.starts_with(b"MM")
    }

    pub fn u16(self, offset: usize) -> Option<u16> {
        self.bytes(offset).map(u16::from_be_bytes)
    }

    fn u32(self, offset: usize) -> Option<u32> {
        self.bytes(offset).map(u32::from_be_bytes)
    }

    /// The bytes of a number, the highest one first.
    fn bytes<const N: usize>(self, offset: usize) -> Option<[u8; N]> {
        let mut bytes = *self.0.get(offset..)?.first_chunk()?;
        if !self.is_big_endian() {
            bytes.reverse();
        }
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of one entry of this type, whose value or its offset is `value`.
    fn numbers(kind: u16, count: u32, value: [u8; 4], behind: &[u8]) -> Vec<Option<u32>> {
        let mut file = b"II*\0\x08\0\0\0\x01\0\x17\x01".to_vec();
        file.extend(kind.to_le_bytes());
        file.extend(count.to_le_bytes());
        file.extend([&value, &[0; 4][..], behind].concat());
        let tiff = Tiff::new(&file).expect("a header");
        let entry = tiff.entries().next().expect("one entry");
        (0..3).map(|index| tiff.number(&entry, index)).collect()
    }

    #[test]
    fn numbers_of_every_size_are_read_in_place_and_by_offset() {
        let at = [26, 0, 0, 0];
        for kind in [BYTE, UNDEFINED] {
            let found = numbers(kind, 2, [7, 9, 11, 0], &[]);
            assert_eq!(found, [Some(7), Some(9), None], "type {kind}");
            let found = numbers(kind, 5, at, &[1, 2, 3, 4, 5]);
            assert_eq!(found, [Some(1), Some(2), Some(3)], "type {kind}");
        }
        let found = numbers(SHORT, 2, [1, 2, 3, 4], &[]);
        assert_eq!(found, [Some(0x201), Some(0x403), None]);
        let found = numbers(LONG, 2, at, &[1, 0, 0, 0, 0, 0, 0, 2, 9]);
        assert_eq!(found, [Some(1), Some(0x200_0000), None]);
        assert_eq!(numbers(ASCII, 2, *b"ab\0\0", &[]), [None; 3]);
        assert_eq!(numbers(LONG, 2, at, &[1]), [None; 3], "beyond the end");
    }
}
