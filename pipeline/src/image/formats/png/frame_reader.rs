//! One picture of an animated PNG, as if it stood in a file of its own: the decoder reads nothing
//! of an animation, so that the outline alone assigns chunks to frames.

use super::chunk::Chunk;
use super::decoder::BYTES_PER_CHECK;
use std::io;
use std::slice;
use towebp_encoder::Cancel;

/// Reads a PNG made of a header, the chunks that define the meaning of samples, and the data of one
/// picture.
pub struct FrameReader<'a> {
    /// The chunks between header and data.
    colors: slice::Iter<'a, &'a [u8]>,
    /// The chunks among which the data is, and the name of those that have it.
    data: &'a [u8],
    name: [u8; 4],
    stage: Stage,
    /// Bytes that are not in the file so, and how many of them were read.
    made: (Vec<u8>, usize),
    /// Bytes of the file behind them: the bytes before the next check, and the rest.
    portion: &'a [u8],
    part: &'a [u8],
    /// The checksum of the chunk that `part` ends.
    checksum: Option<u32>,
    cancel: &'a Cancel<'a>,
}

#[derive(Clone, Copy)]
enum Stage {
    Colors,
    Data,
    End,
}

impl<'a> FrameReader<'a> {
    /// A reader of the picture whose data is in the chunks of this name (`IDAT` or `fdAT`) among
    /// `data`. `header` has the first 33 bytes of the file, signature and `IHDR`; the picture has
    /// this size.
    pub fn new(
        header: &[u8],
        (width, height): (u32, u32),
        colors: &'a [&'a [u8]],
        (name, data): ([u8; 4], &'a [u8]),
        cancel: &'a Cancel<'a>,
    ) -> FrameReader<'a> {
        /// The place of width and height in the file, and the place of the data under their
        /// checksum.
        const SIZE: usize = 16;
        const CHECKED: usize = 12;
        let mut made = header.to_vec();
        if let Some(size) = made.get_mut(SIZE..SIZE + 8) {
            size[..4].copy_from_slice(&width.to_be_bytes());
            size[4..].copy_from_slice(&height.to_be_bytes());
            let end = made.len() - 4;
            let checksum = crc32fast::hash(&made[CHECKED..end]);
            made[end..].copy_from_slice(&checksum.to_be_bytes());
        }
        FrameReader {
            colors: colors.iter(),
            data,
            name,
            stage: Stage::Colors,
            made: (made, 0),
            portion: &[],
            part: &[],
            checksum: None,
            cancel,
        }
    }

    /// As [`io::BufRead::fill_buf`].
    pub fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.made.1 == self.made.0.len() && self.portion.is_empty() && self.advance()? {}
        if self.made.1 < self.made.0.len() {
            return Ok(&self.made.0[self.made.1..]);
        }
        Ok(self.portion)
    }

    /// As [`io::BufRead::consume`].
    pub fn consume(&mut self, count: usize) {
        if self.made.1 < self.made.0.len() {
            self.made.1 += count;
        } else {
            self.portion = &self.portion[count..];
        }
    }

    /// Finds more bytes to read; false at the end.
    fn advance(&mut self) -> io::Result<bool> {
        // Not `Interrupted`, after which readers try again.
        let cancelled = |_| io::Error::other("cancelled");
        self.cancel.check().map_err(cancelled)?;
        if !self.part.is_empty() {
            let length = self.part.len().min(BYTES_PER_CHECK);
            (self.portion, self.part) = self.part.split_at(length);
            return Ok(true);
        }
        if let Some(checksum) = self.checksum.take() {
            self.make(&[&checksum.to_be_bytes()]);
            return Ok(true);
        }
        match self.stage {
            Stage::Colors => match self.colors.next() {
                Some(chunk) => self.part = chunk,
                None => self.stage = Stage::Data,
            },
            Stage::Data => {
                let Some(chunk) = Chunk::first(self.data) else {
                    self.make(&[b"\0\0\0\0IEND\xae\x42\x60\x82"]);
                    self.stage = Stage::End;
                    return Ok(true);
                };
                self.data = &self.data[chunk.bytes.len()..];
                if chunk.name == self.name {
                    self.begin_chunk(&chunk)?;
                }
            }
            Stage::End => return Ok(false),
        }
        Ok(true)
    }

    /// Gives a chunk of the data, as `IDAT`.
    fn begin_chunk(&mut self, chunk: &Chunk<'a>) -> io::Result<()> {
        if chunk.name == *b"IDAT" {
            self.part = chunk.bytes;
            return Ok(());
        }
        let (_sequence, data) = chunk.data.split_at_checked(4).unwrap_or_default();
        if !chunk.is_sound() {
            return Err(io::Error::other("a checksum is wrong"));
        }
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(b"IDAT");
        checksum.update(data);
        self.make(&[&(data.len() as u32).to_be_bytes(), b"IDAT"]);
        self.part = data;
        self.checksum = Some(checksum.finalize());
        Ok(())
    }

    fn make(&mut self, bytes: &[&[u8]]) {
        let (made, read) = &mut self.made;
        made.clear();
        *read = 0;
        for bytes in bytes {
            made.extend_from_slice(bytes);
        }
    }
}
