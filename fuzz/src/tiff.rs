//! TIFFs that are made field by field, also without a picture, as Exif is.

use libfuzzer_sys::arbitrary::{self, Arbitrary};

/// An order of the bytes of numbers.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Order {
    /// The highest byte is the first.
    Big,
    /// The lowest byte is the first.
    Little,
}

/// A field of a directory: tag, type, count, and the bytes of its value.
pub type Field = (u16, u16, u32, Vec<u8>);

impl Order {
    /// The bytes of a number of two.
    pub fn u16(self, number: u16) -> [u8; 2] {
        match self {
            Order::Big => number.to_be_bytes(),
            Order::Little => number.to_le_bytes(),
        }
    }

    /// The bytes of a number of four.
    pub fn u32(self, number: u32) -> [u8; 4] {
        match self {
            Order::Big => number.to_be_bytes(),
            Order::Little => number.to_le_bytes(),
        }
    }

    /// A field of one number of two bytes, its lower half.
    pub fn short(self, tag: u16, number: u32) -> Field {
        (tag, 3, 1, self.u16(number as u16).to_vec())
    }

    /// A field of one number of four bytes.
    pub fn long(self, tag: u16, number: u32) -> Field {
        (tag, 4, 1, self.u32(number).to_vec())
    }

    /// A TIFF of this strip of pixels, from byte 8 on, and these fields, some of whose values stand
    /// behind the directory.
    pub fn tiff(self, strip: &[u8], fields: &[Field]) -> Vec<u8> {
        let mut file = match self {
            Order::Big => b"MM\0*".to_vec(),
            Order::Little => b"II*\0".to_vec(),
        };
        file.extend(self.u32(8 + strip.len() as u32));
        file.extend(strip);
        file.extend(self.u16(fields.len() as u16));
        let values_at = file.len() + 12 * fields.len() + 4;
        let mut values: Vec<u8> = Vec::new();
        for (tag, kind, count, value) in fields {
            file.extend([self.u16(*tag), self.u16(*kind)].as_flattened());
            file.extend(self.u32(*count));
            if value.len() > 4 {
                file.extend(self.u32((values_at + values.len()) as u32));
                values.extend(value);
            } else {
                file.extend(value);
                file.resize(file.len() + 4 - value.len(), 0);
            }
        }
        file.extend([0; 4]);
        file.extend(values);
        file
    }
}
