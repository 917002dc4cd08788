//! The chunks of a RIFF container (RFC 9649, 2.3): a name, a size, the data, and a byte of padding
//! if the size is odd. Numbers are little-endian.

use crate::image::error::DecodeError;

/// Bytes of a chunk's name and size.
const HEAD: usize = 8;

/// A chunk.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    pub name: [u8; 4],
    pub data: &'a [u8],
    /// The chunk from its name to its padding, which the last one may lack.
    pub bytes: &'a [u8],
}

/// The chunks of some bytes. Fewer bytes than a chunk begins with are ignored at the end.
#[derive(Clone, Debug)]
pub struct Chunks<'a>(pub &'a [u8]);

impl<'a> Iterator for Chunks<'a> {
    type Item = Result<Chunk<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (head, behind) = self.0.split_first_chunk::<HEAD>()?;
        let [name, size] = [0, 4].map(|at| [head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let size = u32::from_le_bytes(size) as usize;
        let Some(data) = behind.get(..size) else {
            self.0 = &[];
            return Some(Err(damaged("it ends within a chunk")));
        };
        let padded = behind.len().min(size + size % 2);
        let (bytes, rest) = self.0.split_at(HEAD + padded);
        self.0 = rest;
        Some(Ok(Chunk { name, data, bytes }))
    }
}

/// A number of three bytes.
pub fn u24(bytes: &[u8], at: usize) -> Option<u32> {
    let &[low, middle, high] = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes([low, middle, high, 0]))
}

/// Damage, and the reason in a few words.
pub fn damaged(reason: &str) -> DecodeError {
    DecodeError::Invalid(format!("the WebP data is damaged ({reason})"))
}
