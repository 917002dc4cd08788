//! A RIFF file in the making: its header, and chunks behind it (RFC 9649, sections 2.3 and 2.4).

use crate::error::EncodeError;
use crate::threads::Workers;

/// The bytes of the file so far. The size in its header is 0 until [`RiffFile::finish`].
#[derive(Debug)]
pub struct RiffFile(Vec<u8>);

impl RiffFile {
    /// A file without chunks.
    pub fn new() -> RiffFile {
        RiffFile(b"RIFF\0\0\0\0WEBP".to_vec())
    }

    /// The bytes so far.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The bytes for which there is memory.
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Reserves memory for `bytes` more, so that the file need not move as it grows.
    pub fn reserve(&mut self, bytes: usize) {
        self.0.reserve_exact(bytes);
    }

    /// Appends a chunk, padded to an even length.
    ///
    /// # Errors
    /// [`EncodeError::TooLarge`] if the size of `data` does not fit its 32 bits.
    pub fn chunk(&mut self, name: [u8; 4], data: &[u8]) -> Result<(), EncodeError> {
        self.begin_chunk(name, data)?;
        self.0.extend_from_slice(data);
        self.pad();
        Ok(())
    }

    /// [`RiffFile::chunk`] for much data: checks in between whether the work is still wanted.
    ///
    /// # Errors
    /// Those of [`RiffFile::chunk`], and [`EncodeError::Cancelled`].
    pub fn long_chunk(
        &mut self,
        name: [u8; 4],
        data: &[u8],
        workers: Workers<'_>,
    ) -> Result<(), EncodeError> {
        /// About a millisecond.
        const BYTES_PER_CHECK: usize = 1 << 20;
        self.begin_chunk(name, data)?;
        for part in data.chunks(BYTES_PER_CHECK) {
            workers.check()?;
            self.0.extend_from_slice(part);
        }
        self.pad();
        Ok(())
    }

    /// Makes one chunk of the one that begins at `begin` and all those behind it.
    ///
    /// # Errors
    /// [`EncodeError::TooLarge`] if the size does not fit its 32 bits.
    pub fn enclose(&mut self, begin: usize) -> Result<(), EncodeError> {
        let size = size_since(&self.0, begin + 8)?;
        self.0[begin + 4..begin + 8].copy_from_slice(&size);
        Ok(())
    }

    /// Sets bits of a byte that is written already.
    pub fn set_bits(&mut self, at: usize, bits: u8) {
        self.0[at] |= bits;
    }

    /// The file, with its size in the header.
    ///
    /// # Errors
    /// [`EncodeError::TooLarge`] if the size does not fit its 32 bits.
    pub fn finish(mut self) -> Result<Vec<u8>, EncodeError> {
        self.enclose(0)?;
        Ok(self.0)
    }

    /// Appends the header of a chunk, and reserves memory for its data.
    fn begin_chunk(&mut self, name: [u8; 4], data: &[u8]) -> Result<(), EncodeError> {
        let size = u32::try_from(data.len()).map_err(|_| EncodeError::TooLarge)?;
        self.0.reserve(8 + data.len().next_multiple_of(2));
        self.0.extend(name);
        self.0.extend(size.to_le_bytes());
        Ok(())
    }

    fn pad(&mut self) {
        self.0.resize(self.0.len().next_multiple_of(2), 0);
    }
}

/// The number of bytes from `begin` on, as it stands in a file.
fn size_since(file: &[u8], begin: usize) -> Result<[u8; 4], EncodeError> {
    let size = u32::try_from(file.len() - begin).map_err(|_| EncodeError::TooLarge)?;
    Ok(size.to_le_bytes())
}
