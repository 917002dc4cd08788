//! The WebP container (RFC 9649, section 2).

mod riff;

use crate::bitstream::Bitstream;
use crate::error::EncodeError;
use crate::options::Metadata;
use crate::threads::Workers;
use riff::RiffFile;

/// The bits of the `VP8X` chunk's first byte (section 2.7).
mod flag {
    pub const ANIMATION: u8 = 1 << 1;
    pub const XMP: u8 = 1 << 2;
    pub const EXIF: u8 = 1 << 3;
    pub const ALPHA: u8 = 1 << 4;
    pub const ICC: u8 = 1 << 5;
}

/// The file of a still picture: one chunk (sections 2.5 and 2.6); with metadata, or with alpha
/// beside lossy pixels, several behind a `VP8X` chunk (section 2.7).
///
/// # Errors
/// [`EncodeError::TooLarge`] if a size does not fit its 32 bits; [`EncodeError::Cancelled`].
pub fn still(
    size: (u32, u32),
    bitstream: &Bitstream,
    metadata: &Metadata<'_>,
    workers: Workers<'_>,
) -> Result<Vec<u8>, EncodeError> {
    let mut file = RiffFile::new();
    // The whole file at once: as it grows, it would take up to twice as much.
    let extended = chunk_size(&[0; 10]) + metadata.icc.map_or(0, chunk_size);
    file.reserve(extended + pixels_size(bitstream) + trailing_size(metadata));
    if bitstream.alpha.is_some() || !metadata.is_empty() {
        let has_alpha = bitstream.has_alpha();
        let flags = if has_alpha { flag::ALPHA } else { 0 };
        begin_extended(&mut file, size, flags, metadata)?;
    }
    for (name, data) in bitstream.chunks() {
        file.long_chunk(name, data, workers)?;
    }
    finish(file, metadata)
}

/// The file of an animation in the making (section 2.7.1).
#[derive(Debug)]
pub struct Animation(RiffFile);

impl Animation {
    /// A file without frames. It is played `loops` times, or for ever if that is 0.
    ///
    /// # Errors
    /// [`EncodeError::TooLarge`] if the size of the ICC profile does not fit its 32 bits.
    pub fn new(
        size: (u32, u32),
        loops: u16,
        metadata: &Metadata<'_>,
    ) -> Result<Animation, EncodeError> {
        let mut file = RiffFile::new();
        begin_extended(&mut file, size, flag::ANIMATION, metadata)?;
        // The background color, which viewers may ignore, is transparent.
        let [low, high] = loops.to_le_bytes();
        file.chunk(*b"ANIM", &[0, 0, 0, 0, low, high])?;
        Ok(Animation(file))
    }

    /// Reserves memory for `bytes` more, so that the file need not move as it grows.
    pub fn reserve(&mut self, bytes: usize) {
        self.0.reserve(bytes);
    }

    /// The bytes of the file so far, and those for which there is memory.
    pub fn length_and_capacity(&self) -> (usize, usize) {
        (self.0.len(), self.0.capacity())
    }

    /// The bytes of the `ANMF` chunk of a frame.
    pub fn frame_size(bitstream: &Bitstream) -> usize {
        chunk_size(&[0; 16]) + pixels_size(bitstream)
    }

    /// Appends an `ANMF` chunk: `header`, with position and duration (section 2.7.1.1), and the
    /// pixels.
    ///
    /// # Errors
    /// [`EncodeError::TooLarge`] if a size does not fit its 32 bits.
    pub fn frame(&mut self, header: &[u8; 16], bitstream: &Bitstream) -> Result<(), EncodeError> {
        let begin = self.0.len();
        self.0.chunk(*b"ANMF", header)?;
        for (name, bytes) in bitstream.chunks() {
            self.0.chunk(name, bytes)?;
        }
        self.0.enclose(begin)
    }

    /// Returns the file, with the metadata that it was begun for; `has_alpha` is whether a pixel
    /// may be other than opaque.
    ///
    /// # Errors
    /// [`EncodeError::TooLarge`] if a size does not fit its 32 bits.
    pub fn finish(
        mut self,
        has_alpha: bool,
        metadata: &Metadata<'_>,
    ) -> Result<Vec<u8>, EncodeError> {
        /// Where the flags of the `VP8X` chunk are, after the file's header and the chunk's own.
        const FLAGS: usize = 12 + 8;
        if has_alpha {
            self.0.set_bits(FLAGS, flag::ALPHA);
        }
        self.0.reserve(trailing_size(metadata));
        let mut file = finish(self.0, metadata)?;
        file.shrink_to_fit();
        Ok(file)
    }
}

/// The bytes of a chunk with its header and padding.
fn chunk_size(data: &[u8]) -> usize {
    8 + data.len().next_multiple_of(2)
}

/// The bytes of the chunks that hold the pixels.
fn pixels_size(bitstream: &Bitstream) -> usize {
    bitstream.chunks().map(|(_, data)| chunk_size(data)).sum()
}

/// The bytes of the metadata that stands behind the pixels.
fn trailing_size(metadata: &Metadata<'_>) -> usize {
    let kept = [metadata.exif, metadata.xmp];
    kept.into_iter().flatten().map(chunk_size).sum()
}

/// Appends the `VP8X` chunk, and the ICC profile, which comes next (section 2.7).
fn begin_extended(
    file: &mut RiffFile,
    (width, height): (u32, u32),
    flags: u8,
    metadata: &Metadata<'_>,
) -> Result<(), EncodeError> {
    let mut data = [0; 10];
    data[0] = flags;
    for (is_there, flag) in [
        (metadata.icc.is_some(), flag::ICC),
        (metadata.exif.is_some(), flag::EXIF),
        (metadata.xmp.is_some(), flag::XMP),
    ] {
        data[0] |= if is_there { flag } else { 0 };
    }
    data[4..7].copy_from_slice(&(width - 1).to_le_bytes()[..3]);
    data[7..].copy_from_slice(&(height - 1).to_le_bytes()[..3]);
    file.chunk(*b"VP8X", &data)?;
    optional_chunk(file, *b"ICCP", metadata.icc)
}

/// The file, with the metadata that stands behind the pixels.
fn finish(mut file: RiffFile, metadata: &Metadata<'_>) -> Result<Vec<u8>, EncodeError> {
    optional_chunk(&mut file, *b"EXIF", metadata.exif)?;
    optional_chunk(&mut file, *b"XMP ", metadata.xmp)?;
    file.finish()
}

fn optional_chunk(
    file: &mut RiffFile,
    name: [u8; 4],
    data: Option<&[u8]>,
) -> Result<(), EncodeError> {
    data.map_or(Ok(()), |data| file.chunk(name, data))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Metadata<'_> = Metadata {
        icc: None,
        exif: None,
        xmp: None,
    };

    fn bitstream(alpha: Option<&[u8]>, frame: &[u8], is_lossless: bool) -> Bitstream {
        Bitstream {
            alpha: alpha.map(<[u8]>::to_vec),
            frame: frame.to_vec(),
            is_lossless,
            is_reduced: false,
        }
    }

    fn written(
        size: (u32, u32),
        bitstream: &Bitstream,
        metadata: &Metadata<'_>,
    ) -> Result<Vec<u8>, EncodeError> {
        still(size, bitstream, metadata, Workers::unlimited(1))
    }

    #[test]
    fn a_simple_file_byte_for_byte() {
        let file = written((1, 1), &bitstream(None, &[1, 2, 3], false), &NOTHING);
        let expected = b"RIFF\x10\0\0\0WEBPVP8 \x03\0\0\0\x01\x02\x03\0";
        assert_eq!(file.expect("small"), *expected);
        let file = written(
            (1, 1),
            &bitstream(None, &[1, 2, 3, 4, 5, 6], true),
            &NOTHING,
        );
        let expected = b"RIFF\x12\0\0\0WEBPVP8L\x06\0\0\0\x01\x02\x03\x04\x05\x06";
        assert_eq!(file.expect("small"), *expected);
    }

    #[test]
    fn an_extended_file_byte_for_byte() {
        let bitstream = bitstream(Some(&[9]), &[7, 7], false);
        let file = written((0x1234, 1), &bitstream, &NOTHING).expect("small");
        let expected = b"RIFF\x2A\0\0\0WEBPVP8X\x0A\0\0\0\x10\0\0\0\x33\x12\0\0\0\0ALPH\x01\0\0\0\x09\0VP8 \x02\0\0\0\x07\x07";
        assert_eq!(file, *expected);
    }

    #[test]
    fn metadata_byte_for_byte() {
        let metadata = Metadata {
            icc: Some(b"abc"),
            exif: Some(b"de"),
            xmp: Some(b"fg"),
        };
        let lossless = bitstream(None, &[0x2f, 0, 0, 0, 0x10], true); // its alpha bit is set
        let file = written((2, 2), &lossless, &metadata).expect("small");
        let expected = b"RIFF\x44\0\0\0WEBPVP8X\x0A\0\0\0\x3C\0\0\0\x01\0\0\x01\0\0ICCP\x03\0\0\0abc\0VP8L\x05\0\0\0\x2f\0\0\0\x10\0EXIF\x02\0\0\0deXMP \x02\0\0\0fg";
        assert_eq!(file, *expected);
        let exif = Metadata {
            exif: Some(b"de"),
            ..NOTHING
        };
        let file = written((2, 2), &bitstream(None, &[1, 2], false), &exif).expect("small");
        let expected = b"RIFF\x2A\0\0\0WEBPVP8X\x0A\0\0\0\x08\0\0\0\x01\0\0\x01\0\0VP8 \x02\0\0\0\x01\x02EXIF\x02\0\0\0de";
        assert_eq!(file, *expected);
        let file = Animation::new((2, 2), 0, &exif)
            .and_then(|animation| animation.finish(false, &exif))
            .expect("small");
        let expected = b"RIFF\x2E\0\0\0WEBPVP8X\x0A\0\0\0\x0A\0\0\0\x01\0\0\x01\0\0ANIM\x06\0\0\0\0\0\0\0\0\0EXIF\x02\0\0\0de";
        assert_eq!(file, *expected);
    }

    #[test]
    fn an_animation_byte_for_byte() {
        let mut animation = Animation::new((2, 3), 0x102, &NOTHING).expect("small");
        let bitstream = bitstream(Some(&[9]), &[7], false);
        animation
            .frame(b"abcdefghijklmnop", &bitstream)
            .expect("small");
        let file = animation.finish(true, &NOTHING).expect("small");
        let expected = b"RIFF\x50\0\0\0WEBPVP8X\x0A\0\0\0\x12\0\0\0\x01\0\0\x02\0\0ANIM\x06\0\0\0\0\0\0\0\x02\x01ANMF\x24\0\0\0abcdefghijklmnopALPH\x01\0\0\0\x09\0VP8 \x01\0\0\0\x07\0";
        assert_eq!(file, *expected);
    }

    #[test]
    fn memory_is_reserved_for_the_whole_file_at_once() {
        let metadata = Metadata {
            icc: Some(b"abc"),
            exif: Some(b"defgh"),
            xmp: Some(b"ij"),
        };
        let pixels = bitstream(Some(&[9; 5]), &[7; 1000], false);
        let file = written((2, 2), &pixels, &metadata).expect("small");
        assert_eq!(file.capacity(), file.len());
        // A simple file has room for a `VP8X` chunk, which it does not have.
        let file = written((2, 2), &bitstream(None, &[7; 1000], false), &NOTHING).expect("small");
        assert_eq!(file.capacity(), file.len() + 18);

        let mut animation = Animation::new((2, 3), 0, &NOTHING).expect("small");
        let (before, _) = animation.length_and_capacity();
        let size = Animation::frame_size(&pixels);
        animation.reserve(size);
        assert_eq!(animation.length_and_capacity(), (before, before + size));
        animation.frame(&[0; 16], &pixels).expect("small");
        let full = before + size;
        assert_eq!(animation.length_and_capacity(), (full, full));
    }
}
