//! The coded pixels of a picture or a frame, decoded by the crate `image-webp`.

use super::chunk::{Chunk, damaged};
use super::{lossless, lossy};
use crate::image::error::DecodeError;
use crate::image::limits::Limits;
use crate::image::pixels::{Image, Layout, PIXELS_PER_CHECK};
use crate::image::reader::CancellableReader;
use image_webp::WebPDecoder;
use towebp_encoder::{Cancel, Cancelled};

/// Bytes of the file between two checks of the [`Cancel`]. The decoder reads all of a lossy picture
/// before it makes pixels, which it then does without a check.
const BYTES_PER_CHECK: usize = 1 << 12;

/// Coded pixels, of which only the headers were read.
#[derive(Clone, Copy, Debug)]
pub struct Bitstream<'a> {
    /// Width and height in pixels.
    pub size: (u32, u32),
    /// Whether the pixels are coded lossy.
    pub is_lossy: bool,
    /// Whether they may be transparent.
    has_alpha: bool,
    /// The chunk `ALPH` beside lossy pixels.
    alpha: Option<Chunk<'a>>,
    chunk: Chunk<'a>,
}

impl<'a> Bitstream<'a> {
    /// Reads the header of a chunk `VP8 ` (RFC 6386, 9.1) or `VP8L` (RFC 9649, 3.4).
    ///
    /// # Errors
    /// [`DecodeError::Invalid`] if it is damaged, or no such chunk.
    pub fn of(alpha: Option<&Chunk<'a>>, chunk: &Chunk<'a>) -> Result<Bitstream<'a>, DecodeError> {
        let is_lossy = chunk.name == *b"VP8 ";
        let read = match &chunk.name {
            b"VP8 " => lossy::size(chunk.data).map(|size| (size, alpha.is_some())),
            b"VP8L" => lossless::size(chunk.data),
            _ => None,
        };
        let (size, has_alpha) = read.ok_or_else(|| damaged("it has no picture"))?;
        Ok(Bitstream {
            size,
            is_lossy,
            has_alpha,
            alpha: alpha.copied().filter(|_| is_lossy),
            chunk: *chunk,
        })
    }

    /// The layout of the pixels.
    pub fn layout(&self) -> Layout {
        if self.has_alpha {
            Layout::Rgba
        } else {
            Layout::Rgb
        }
    }

    /// The layout in which the decoder gives the pixels: it would copy lossless ones to leave out
    /// their alpha.
    fn decoded_layout(&self) -> Layout {
        if self.is_lossy {
            self.layout()
        } else {
            Layout::Rgba
        }
    }

    /// Most bytes that [`Bitstream::decode`] holds beside pixels of [`Bitstream::layout`].
    /// `symbols` is the number of symbols that may still be passed over to find that.
    ///
    /// # Errors
    /// [`DecodeError::Invalid`] if the bitstream is damaged.
    pub fn memory(&self, symbols: &mut u64) -> Result<u64, DecodeError> {
        /// Bytes of the decoder itself.
        const DECODER: u64 = 64 << 10;
        let (width, height) = self.size;
        let pixels = u64::from(width) * u64::from(height);
        let bytes = if self.is_lossy {
            // All of it, while the part for transparency is decoded.
            let alpha = match self.alpha.map(|chunk| chunk.data) {
                Some([head, data @ ..]) if head & 3 == 1 => {
                    5 * pixels + lossless::memory(data, self.size, symbols)?
                }
                Some(_) => pixels,
                None => 0,
            };
            lossy::memory(self.chunk.data, self.size)? + alpha
        } else {
            let decoded = self.decoded_layout().channels() - self.layout().channels();
            let data = self.chunk.data.get(lossless::HEAD..).unwrap_or_default();
            pixels * decoded as u64 + lossless::memory(data, self.size, symbols)?
        };
        Ok(DECODER + bytes)
    }

    /// Decodes the pixels.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub fn decode(&self, limits: &Limits, cancel: &Cancel<'_>) -> Result<Image, DecodeError> {
        let (width, height) = self.size;
        let count = limits.check(width, height)?;
        let layout = self.decoded_layout();
        let head = self.head(layout);
        let alpha = self.alpha.map_or(&[][..], |chunk| chunk.bytes);
        let parts = [&head[..], alpha, self.chunk.bytes];
        let reader = CancellableReader::of_parts(&parts, BYTES_PER_CHECK, cancel);
        let mut decoder = WebPDecoder::new(reader).map_err(invalid)?;
        let mut pixels = vec![0; count * layout.channels()];
        decoder.read_image(&mut pixels).map_err(invalid)?;
        let mut image = Image {
            width,
            height,
            layout,
            pixels,
        };
        if layout == Layout::Rgba && !self.has_alpha {
            make_opaque(&mut image, cancel)?;
        }
        Ok(image)
    }

    /// The beginning of a file that has nothing but these pixels.
    fn head(&self, layout: Layout) -> Vec<u8> {
        let (width, height) = self.size;
        let alpha = self.alpha.map_or(0, |chunk| chunk.bytes.len());
        let bytes = 4 + 18 + alpha + self.chunk.bytes.len();
        let flags = if layout == Layout::Rgba { 1 << 4 } else { 0u32 };
        let side = |side: u32| (side - 1).to_le_bytes();
        let mut head = b"RIFF".to_vec();
        head.extend((bytes as u32).to_le_bytes());
        head.extend(b"WEBPVP8X\x0a\0\0\0");
        head.extend(flags.to_le_bytes());
        head.extend(&side(width)[..3]);
        head.extend(&side(height)[..3]);
        head
    }
}

fn make_opaque(image: &mut Image, cancel: &Cancel<'_>) -> Result<(), Cancelled> {
    for pixels in image.pixels.chunks_mut(PIXELS_PER_CHECK * 4) {
        cancel.check()?;
        for pixel in pixels.as_chunks_mut::<4>().0 {
            pixel[3] = 255;
        }
    }
    Ok(())
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it is the last use of the error, as `map_err` gives it"
)]
fn invalid(error: image_webp::DecodingError) -> DecodeError {
    damaged(&error.to_string().to_lowercase())
}
