//! The chunks of a PNG in front of its pixels and behind them, walked once (PNG, third edition, 5).

use super::decoder::{DECODER_BYTES, invalid, layout_of};
use super::inflate;
use crate::image::color::{BYTES_PER_PROFILE_BYTE, MAX_PROFILE_BYTES, SixteenBitTransform};
use crate::image::error::DecodeError;
use crate::image::footprint::Footprint;
use crate::image::limits::Limits;
use crate::image::pixels::Layout;
use crate::image::planes::PlanesPath;
use ::png::{BitDepth, Decoder};
use std::io::Cursor;
use towebp_encoder::PlanesBuilder;

/// The contents of the chunks, without the pixels.
#[derive(Debug)]
pub struct Header<'a> {
    width: u32,
    height: u32,
    layout: Layout,
    has_16_bits: bool,
    is_interlaced: bool,
    chunks: Chunks<'a>,
}

/// The facts that are taken from the chunks behind the header.
#[derive(Debug, Default)]
struct Chunks<'a> {
    /// Whether some colors of a palette, or one color, are transparent (`tRNS`).
    has_transparency: bool,
    /// Most bytes that the ICC profile in front of the pixels may unpack to; `None` without a
    /// profile.
    profile_bytes: Option<u64>,
    /// The bytes of all chunks that may be Exif or XMP.
    description_bytes: u64,
    /// Whether there is Exif, which may turn the picture.
    has_exif: bool,
    /// The color spaces that the file names.
    spaces: NamedSpaces,
    /// The XMP packet.
    xmp: Option<&'a [u8]>,
}

/// Which chunks that name a color space are there.
#[derive(Debug, Default)]
struct NamedSpaces {
    /// `sRGB`.
    srgb: bool,
    /// One that takes precedence over it: `cICP` or `iCCP`.
    other: bool,
    /// One that it takes precedence over: `gAMA` or `cHRM`.
    calibrated: bool,
}

impl<'a> Header<'a> {
    /// Reads the header and walks the chunks, as far as they are whole.
    ///
    /// # Errors
    /// The header is damaged.
    pub fn read(bytes: &'a [u8]) -> Result<Header<'a>, DecodeError> {
        // Only the IHDR chunk is left to the decoder, since it would copy Exif.
        let mut decoder = Decoder::new(Cursor::new(bytes));
        let header = decoder
            .read_header_info()
            .map_err(|error| invalid(&error))?;
        let chunks = Chunks::walk(bytes);
        Ok(Header {
            width: header.width,
            height: header.height,
            layout: match layout_of(header.color_type) {
                Layout::Rgb if chunks.has_transparency => Layout::Rgba,
                layout => layout,
            },
            has_16_bits: header.bit_depth == BitDepth::Sixteen,
            is_interlaced: header.interlaced,
            chunks,
        })
    }

    /// The memory that [`super::decode`] takes.
    ///
    /// # Errors
    /// The picture's size is not within `limits`.
    pub fn footprint(&self, limits: &Limits) -> Result<Footprint, DecodeError> {
        /// Bytes of a few rows, and of the window of what is unpacked.
        const ROWS: u64 = 1 << 20;
        /// Exif is held twice: by the decoder, and by the decoded picture.
        const EXIF_COPIES: u64 = 2;
        limits.check(self.width, self.height)?;
        let transform = if self.has_16_bits {
            SixteenBitTransform::BYTES
        } else {
            0
        };
        Ok(Footprint {
            width: self.width,
            height: self.height,
            layout: self.layout,
            decoder: ROWS
                + inflate::bytes(self.pixel_bytes())
                + match self.planes() {
                    PlanesPath::Never => 0,
                    _ => PlanesBuilder::window_bytes((self.width, self.height)),
                }
                + transform
                + BYTES_PER_PROFILE_BYTE * self.profile_bytes()
                + EXIF_COPIES * self.chunks.description_bytes,
        })
    }

    /// Whether the rows can become planes one after the other: it takes opaque rows that come from
    /// top to bottom, as they stay, in sRGB.
    pub fn planes(&self) -> PlanesPath {
        let Chunks { spaces, .. } = &self.chunks;
        if self.layout == Layout::Rgba || self.is_interlaced || self.chunks.has_exif {
            return PlanesPath::Never;
        }
        if spaces.other || spaces.calibrated && !spaces.srgb {
            return PlanesPath::IfSpaceIsSrgb;
        }
        PlanesPath::Always
    }

    /// The bytes of the pixels.
    pub fn pixel_bytes(&self) -> u64 {
        u64::from(self.width) * u64::from(self.height) * self.layout.channels() as u64
    }

    /// Most bytes that the metadata may have.
    pub fn metadata_bytes(&self) -> u64 {
        self.chunks.description_bytes + self.profile_bytes()
    }

    /// The XMP packet.
    pub fn xmp(&self) -> Option<&'a [u8]> {
        self.chunks.xmp
    }

    /// Most bytes of the ICC profile that are used.
    fn profile_bytes(&self) -> u64 {
        let bytes = self.chunks.profile_bytes.unwrap_or(0);
        bytes.min(MAX_PROFILE_BYTES as u64)
    }
}

impl<'a> Chunks<'a> {
    fn walk(bytes: &'a [u8]) -> Chunks<'a> {
        /// Deflate encodes 258 bytes in two bits or more, nearly.
        const MAX_INFLATION: u64 = 1032;
        let mut chunks = Chunks::default();
        let mut is_before_pixels = true;
        let mut xmp_text = None;
        for (name, data) in whole_chunks(bytes) {
            match name {
                b"IDAT" => is_before_pixels = false,
                b"tRNS" if is_before_pixels => chunks.has_transparency = true,
                b"iCCP" if is_before_pixels => {
                    let most = data.len() as u64 * MAX_INFLATION;
                    chunks
                        .profile_bytes
                        .get_or_insert(most.min(DECODER_BYTES as u64));
                }
                b"eXIf" | b"iTXt" => chunks.description_bytes += data.len() as u64,
                _ => {}
            }
            chunks.has_exif |= name == b"eXIf";
            if is_before_pixels {
                chunks.spaces.srgb |= name == b"sRGB";
                chunks.spaces.other |= name == b"cICP" || name == b"iCCP";
                chunks.spaces.calibrated |= name == b"gAMA" || name == b"cHRM";
            }
            if name == b"iTXt"
                && xmp_text.is_none()
                && let Some(text) = data.strip_prefix(b"XML:com.adobe.xmp\0\0\0")
            {
                xmp_text = Some(text);
            }
        }
        chunks.xmp = xmp_text.and_then(xmp_packet);
        chunks
    }
}

/// The chunks by name and data, as far as they are whole.
fn whole_chunks(bytes: &[u8]) -> impl Iterator<Item = (&[u8; 4], &[u8])> {
    const SIGNATURE: usize = 8;
    const CHECKSUM: usize = 4;
    let mut rest = bytes.get(SIGNATURE..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let (name, behind) = behind.split_first_chunk::<4>()?;
        let (data, behind) = behind.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        rest = behind.get(CHECKSUM..).unwrap_or_default();
        Some((name, data))
    })
}

/// The XMP packet (XMP specification, part 3, 1.1.5) behind the keyword of its `iTXt` chunk, which
/// must not be compressed. A language and a translated keyword stand before it, which should be
/// empty.
fn xmp_packet(behind_keyword: &[u8]) -> Option<&[u8]> {
    behind_keyword.splitn(3, |&byte| byte == 0).nth(2)
}
