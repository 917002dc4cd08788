//! The file as the decoder reads it.

use super::decoder::BYTES_PER_CHECK;
use super::frame_reader::FrameReader;
use super::inflate::InflatedReader;
use crate::image::reader::CancellableReader;
use std::io::{self, BufRead, Read, Seek, SeekFrom};
use towebp_encoder::Cancel;

/// The file as the decoder reads it.
pub enum Input<'scope, 'a> {
    /// The bytes as they are, except for parts that are left out.
    File(CancellableReader<'a>),
    /// With image data that a helper inflates.
    Inflated(Box<InflatedReader<'scope, 'a>>),
    /// One picture of an animation.
    Frame(FrameReader<'a>),
}

impl<'a> Input<'_, 'a> {
    pub fn of_parts(parts: &[&'a [u8]], cancel: &'a Cancel<'a>) -> Self {
        Input::File(CancellableReader::of_parts(parts, BYTES_PER_CHECK, cancel))
    }
}

impl BufRead for Input<'_, '_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self {
            Input::File(reader) => reader.fill_buf(),
            Input::Inflated(reader) => reader.fill_buf(),
            Input::Frame(reader) => reader.fill_buf(),
        }
    }

    fn consume(&mut self, count: usize) {
        match self {
            Input::File(reader) => reader.consume(count),
            Input::Inflated(reader) => reader.consume(count),
            Input::Frame(reader) => reader.consume(count),
        }
    }
}

impl Read for Input<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

/// The decoder requires the trait, but it reads from the beginning to the end.
impl Seek for Input<'_, '_> {
    fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
