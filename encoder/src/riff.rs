//! The WebP container: RFC 9649, section 2.

use super::EncodeError;
use super::Metadata;
use super::coded::Coded;
use super::threads::Workers;

/// Flags of the `VP8X` chunk.
mod flag {
    pub const ANIMATION: u8 = 1 << 1;
    pub const XMP: u8 = 1 << 2;
    pub const EXIF: u8 = 1 << 3;
    pub const ALPHA: u8 = 1 << 4;
    pub const ICC: u8 = 1 << 5;
}

/// A picture: one chunk (sections 2.5 and 2.6), or with alpha beside lossy pixels two, behind a `VP8X` chunk (section 2.7). So
/// are those with metadata.
///
/// # Errors
/// [`EncodeError::TooLarge`] if a size does not fit its 32 bits; [`EncodeError::Cancelled`].
pub fn still(
    (width, height): (u32, u32),
    coded: &Coded,
    metadata: &Metadata<'_>,
    workers: Workers<'_>,
) -> Result<Vec<u8>, EncodeError> {
    let mut file = File::new();
    if coded.alpha.is_some() || !metadata.is_empty() {
        let alpha = if coded.has_alpha() { flag::ALPHA } else { 0 };
        file.extended(width, height, alpha, metadata)?;
    }
    for (name, data) in coded.chunks() {
        file.long_chunk(name, data, workers)?;
    }
    file.finish(metadata)
}

/// An animation in the making (section 2.7.1).
#[derive(Debug)]
pub struct Animation(File);

impl Animation {
    /// Without frames, for this metadata. It is played `loops` times, or for ever if that is 0.
    ///
    /// # Errors
    /// As [`Animation::frame`].
    pub fn new(
        (width, height): (u32, u32),
        loops: u16,
        metadata: &Metadata<'_>,
    ) -> Result<Animation, EncodeError> {
        let mut file = File::new();
        file.extended(width, height, flag::ANIMATION, metadata)?;
        // The background, which viewers may take or leave, is transparent.
        let [low, high] = loops.to_le_bytes();
        file.chunk(*b"ANIM", &[0, 0, 0, 0, low, high])?;
        Ok(Animation(file))
    }

    /// Makes room for so many bytes more, so that the file need not move as it grows.
    pub fn reserve(&mut self, bytes: usize) {
        self.0.0.reserve_exact(bytes);
    }

    /// Appends an `ANMF` chunk: where and when, as section 2.7.1.1 draws it, and the pixels.
    ///
    /// # Errors
    /// [`EncodeError::TooLarge`] if a size does not fit its 32 bits.
    pub fn frame(&mut self, place: &[u8; 16], coded: &Coded) -> Result<(), EncodeError> {
        let begin = self.0.0.len();
        self.0.chunk(*b"ANMF", place)?;
        for (name, bytes) in coded.chunks() {
            self.0.chunk(name, bytes)?;
        }
        let size = size_since(&self.0.0, begin + 8)?;
        self.0.0[begin + 4..begin + 8].copy_from_slice(&size);
        Ok(())
    }

    /// The file, with the metadata that it was begun for; `has_alpha` tells whether a pixel may be other than opaque.
    ///
    /// # Errors
    /// [`EncodeError::TooLarge`] if its size does not fit 32 bits.
    pub fn finish(
        mut self,
        has_alpha: bool,
        metadata: &Metadata<'_>,
    ) -> Result<Vec<u8>, EncodeError> {
        /// Of the `VP8X` chunk, behind the file's header and its own.
        const FLAGS: usize = 12 + 8;
        if has_alpha {
            self.0.0[FLAGS] |= flag::ALPHA;
        }
        let mut file = self.0.finish(metadata)?;
        file.shrink_to_fit();
        Ok(file)
    }
}

/// The number of bytes from `begin` on, as it stands in a file.
fn size_since(file: &[u8], begin: usize) -> Result<[u8; 4], EncodeError> {
    let size = u32::try_from(file.len() - begin).map_err(|_| EncodeError::TooLarge)?;
    Ok(size.to_le_bytes())
}

/// A file in the making: its header, and chunks behind it, each padded to an even length (sections 2.3 and 2.4).
#[derive(Debug)]
struct File(Vec<u8>);

impl File {
    fn new() -> File {
        File(b"RIFF\0\0\0\0WEBP".to_vec())
    }

    fn chunk(&mut self, name: [u8; 4], data: &[u8]) -> Result<(), EncodeError> {
        self.begin(name, data)?;
        self.0.extend_from_slice(data);
        self.0.resize(self.0.len().next_multiple_of(2), 0);
        Ok(())
    }

    /// The same, and asks in between whether the file is waited for.
    fn long_chunk(
        &mut self,
        name: [u8; 4],
        data: &[u8],
        workers: Workers<'_>,
    ) -> Result<(), EncodeError> {
        /// About a millisecond.
        const BYTES_A_QUESTION: usize = 1 << 20;
        self.begin(name, data)?;
        for part in data.chunks(BYTES_A_QUESTION) {
            workers.check()?;
            self.0.extend_from_slice(part);
        }
        self.0.resize(self.0.len().next_multiple_of(2), 0);
        Ok(())
    }

    /// The header of a chunk, and room for its data.
    fn begin(&mut self, name: [u8; 4], data: &[u8]) -> Result<(), EncodeError> {
        let size = u32::try_from(data.len()).map_err(|_| EncodeError::TooLarge)?;
        self.0.reserve(8 + data.len().next_multiple_of(2));
        self.0.extend(name);
        self.0.extend(size.to_le_bytes());
        Ok(())
    }

    /// The `VP8X` chunk, and the profile, which comes next (section 2.7).
    fn extended(
        &mut self,
        width: u32,
        height: u32,
        flags: u8,
        metadata: &Metadata<'_>,
    ) -> Result<(), EncodeError> {
        let mut data = [0; 10];
        data[0] = [
            (metadata.icc.is_some(), flag::ICC),
            (metadata.exif.is_some(), flag::EXIF),
            (metadata.xmp.is_some(), flag::XMP),
        ]
        .iter()
        .fold(flags, |flags, (is_there, flag)| {
            flags | if *is_there { *flag } else { 0 }
        });
        data[4..7].copy_from_slice(&(width - 1).to_le_bytes()[..3]);
        data[7..].copy_from_slice(&(height - 1).to_le_bytes()[..3]);
        self.chunk(*b"VP8X", &data)?;
        self.optional(*b"ICCP", metadata.icc)
    }

    fn optional(&mut self, name: [u8; 4], data: Option<&[u8]>) -> Result<(), EncodeError> {
        data.map_or(Ok(()), |data| self.chunk(name, data))
    }

    /// With the metadata that stands behind the pixels.
    fn finish(mut self, metadata: &Metadata<'_>) -> Result<Vec<u8>, EncodeError> {
        self.optional(*b"EXIF", metadata.exif)?;
        self.optional(*b"XMP ", metadata.xmp)?;
        let size = size_since(&self.0, 8)?;
        self.0[4..8].copy_from_slice(&size);
        Ok(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Metadata<'_> = Metadata {
        icc: None,
        exif: None,
        xmp: None,
    };

    fn coded(alpha: Option<&[u8]>, frame: &[u8], is_lossless: bool) -> Coded {
        Coded {
            alpha: alpha.map(<[u8]>::to_vec),
            frame: frame.to_vec(),
            is_lossless,
        }
    }

    fn written(
        size: (u32, u32),
        coded: &Coded,
        metadata: &Metadata<'_>,
    ) -> Result<Vec<u8>, EncodeError> {
        still(size, coded, metadata, Workers::unlimited(1))
    }

    #[test]
    fn a_simple_file_byte_for_byte() {
        let file = written((1, 1), &coded(None, &[1, 2, 3], false), &NOTHING);
        let expected = b"RIFF\x10\0\0\0WEBPVP8 \x03\0\0\0\x01\x02\x03\0";
        assert_eq!(file.expect("small"), *expected);
        let file = written((1, 1), &coded(None, &[1, 2, 3, 4, 5, 6], true), &NOTHING);
        let expected = b"RIFF\x12\0\0\0WEBPVP8L\x06\0\0\0\x01\x02\x03\x04\x05\x06";
        assert_eq!(file.expect("small"), *expected);
    }

    #[test]
    fn an_extended_file_byte_for_byte() {
        let coded = coded(Some(&[9]), &[7, 7], false);
        let file = written((0x1234, 1), &coded, &NOTHING).expect("small");
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
        let lossless = coded(None, &[0x2f, 0, 0, 0, 0x10], true); // its alpha bit is set
        let file = written((2, 2), &lossless, &metadata).expect("small");
        let expected = b"RIFF\x44\0\0\0WEBPVP8X\x0A\0\0\0\x3C\0\0\0\x01\0\0\x01\0\0ICCP\x03\0\0\0abc\0VP8L\x05\0\0\0\x2f\0\0\0\x10\0EXIF\x02\0\0\0deXMP \x02\0\0\0fg";
        assert_eq!(file, *expected);
        let exif = Metadata {
            exif: Some(b"de"),
            ..NOTHING
        };
        let file = written((2, 2), &coded(None, &[1, 2], false), &exif).expect("small");
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
        let coded = coded(Some(&[9]), &[7], false);
        animation.frame(b"abcdefghijklmnop", &coded).expect("small");
        let file = animation.finish(true, &NOTHING).expect("small");
        let expected = b"RIFF\x50\0\0\0WEBPVP8X\x0A\0\0\0\x12\0\0\0\x01\0\0\x02\0\0ANIM\x06\0\0\0\0\0\0\0\x02\x01ANMF\x24\0\0\0abcdefghijklmnopALPH\x01\0\0\0\x09\0VP8 \x01\0\0\0\x07\0";
        assert_eq!(file, *expected);
    }
}
