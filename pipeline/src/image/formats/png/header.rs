//! The chunks of a PNG in front of its pixels and behind them, walked once (PNG, third edition, 5).

use super::chunk::{Chunk, chunks_of_file};
use super::decoder::{DECODER_BYTES, damaged_animation, invalid, layout_of};
use super::frame_reader::FrameReader;
use super::inflate;
use super::outline::{FrameControl, Outline, OutlineReader};
use crate::image::color::{BYTES_PER_PROFILE_BYTE, MAX_PROFILE_BYTES, SixteenBitTransform};
use crate::image::error::DecodeError;
use crate::image::footprint::Footprint;
use crate::image::limits::Limits;
use crate::image::metadata::orientation::{self, Orientation};
use crate::image::pixels::Layout;
use crate::image::planes::PlanesPath;
use crate::image::rectangle::Rectangle;
use ::png::{BitDepth, Decoder};
use std::io::Cursor;
use std::ops::Range;
use towebp_encoder::{Cancel, PlanesBuilder};

/// The contents of the chunks, without the pixels.
#[derive(Debug)]
pub struct Header<'a> {
    width: u32,
    height: u32,
    layout: Layout,
    has_16_bits: bool,
    is_interlaced: bool,
    /// The first bytes of the file: signature and `IHDR`.
    head: &'a [u8],
    /// The file from the first `IDAT` on.
    image_data: &'a [u8],
    chunks: Chunks<'a>,
    /// The animation, if the file is one.
    outline: Option<Outline<'a>>,
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
    /// Exif, which may turn the picture: the first one.
    exif: Option<&'a [u8]>,
    /// The places of the chunks in the file that the decoder does not get.
    left_out: Vec<Range<usize>>,
    /// The bytes of further Exif, which the decoder copies.
    other_exif: u64,
    /// The chunks in front of the pixels that define samples, the first of each name.
    colors: Vec<&'a [u8]>,
    /// The chunks without which there are no colors: `PLTE` and `tRNS`.
    palette: Vec<&'a [u8]>,
    /// The color spaces that the file names.
    spaces: NamedSpaces,
    /// The XMP packet.
    xmp: Option<&'a [u8]>,
}

/// Whether the file has each of the chunks that name a color space.
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
    /// Reads the header and walks the chunks, as far as they are whole. Of an animation it keeps
    /// only as many frames as `limits` allow.
    ///
    /// # Errors
    /// The header is damaged.
    pub fn read(bytes: &'a [u8], limits: &Limits) -> Result<Header<'a>, DecodeError> {
        /// Bytes of the signature and of `IHDR`.
        const HEAD: usize = 8 + 25;
        // Only the IHDR chunk is left to the decoder, since it would copy Exif.
        let mut decoder = Decoder::new(Cursor::new(bytes));
        let header = decoder
            .read_header_info()
            .map_err(|error| invalid(&error))?;
        let size = (header.width, header.height);
        let mut outline = OutlineReader::new(bytes, size, limits.max_frames);
        let mut image_data = bytes.len();
        let chunks = Chunks::walk(bytes, |place, chunk| {
            if chunk.name == *b"IDAT" {
                image_data = image_data.min(place);
            }
            outline.take(place, chunk);
        });
        Ok(Header {
            width: header.width,
            height: header.height,
            layout: match layout_of(header.color_type) {
                Layout::Rgb if chunks.has_transparency => Layout::Rgba,
                layout => layout,
            },
            has_16_bits: header.bit_depth == BitDepth::Sixteen,
            is_interlaced: header.interlaced,
            head: bytes.get(..HEAD).unwrap_or_default(),
            image_data: &bytes[image_data..],
            chunks,
            outline: outline.finish(),
        })
    }

    /// The memory that [`super::decode`] takes.
    ///
    /// # Errors
    /// The picture's size is not within `limits`.
    pub fn footprint(&self, limits: &Limits) -> Result<Footprint, DecodeError> {
        /// Bytes of a few rows, and of the window of unpacked data.
        const ROWS: u64 = 1 << 20;
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
                + self.chunks.other_exif.min(DECODER_BYTES as u64)
                + self.outline.as_ref().map_or(0, Outline::held_bytes),
        })
    }

    /// Whether there are several frames, or one that is not the default image.
    pub fn is_animated(&self) -> bool {
        self.outline.as_ref().is_some_and(Outline::is_animated)
    }

    /// The memory that the frames take, by the memory that the default image takes.
    ///
    /// # Errors
    /// The chunks of the animation are damaged, or its frames are not within `limits`.
    pub fn animation_footprint(
        &self,
        first: &Footprint,
        limits: &Limits,
    ) -> Result<Footprint, DecodeError> {
        let Some(outline) = &self.outline else {
            return Ok(*first);
        };
        self.check_animation(first.pixel_count(), limits)?;
        if let Some(fault) = outline.fault {
            return Err(damaged_animation(fault));
        }
        // The canvas has as many pixels as the largest frame, or more.
        let canvas = first.pixel_count() * Layout::Rgba.channels() as u64;
        let is_oriented = self.chunks.exif.is_some();
        let frames = if is_oriented { 2 * canvas } else { canvas };
        let previous = canvas;
        let swaps = self.orientation().is_some_and(orientation::swaps_sides);
        let (width, height) = (first.width, first.height);
        let (width, height) = if swaps {
            (height, width)
        } else {
            (width, height)
        };
        Ok(Footprint {
            width,
            height,
            layout: Layout::Rgba,
            decoder: first.decoder + frames + previous,
        })
    }

    /// Checks the pixels of all frames together, each on a canvas of so many.
    ///
    /// # Errors
    /// They are not within `limits`.
    pub fn check_animation(&self, canvas: u64, limits: &Limits) -> Result<(), DecodeError> {
        let frames = self.outline.as_ref().map_or(0, |outline| outline.announced);
        limits.check_animation(frames, u64::from(frames).saturating_mul(canvas))
    }

    /// The animation, if the file is one.
    pub fn outline(&self) -> Option<&Outline<'a>> {
        self.outline.as_ref()
    }

    /// The width and height of the canvas, as stored.
    pub fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// Exif, from its TIFF header on.
    pub fn exif(&self) -> Option<&'a [u8]> {
        self.chunks.exif
    }

    /// The places of the chunks in the file that the decoder does not get, in their order: Exif,
    /// since it would copy all of it, and [those](Chunk::is_dispensable) that it may refuse.
    pub fn left_out(&self) -> &[Range<usize>] {
        &self.chunks.left_out
    }

    /// The orientation of the Exif.
    pub fn orientation(&self) -> Option<Orientation> {
        self.exif().and_then(orientation::read)
    }

    /// The default image of an animation, whatever else is in the file.
    pub fn default_image<'b>(&'b self, cancel: &'b Cancel<'b>) -> Option<FrameReader<'b>> {
        self.outline.as_ref()?;
        let data = (*b"IDAT", self.image_data);
        let colors = &self.chunks.colors;
        Some(FrameReader::new(
            self.head,
            self.size(),
            colors,
            data,
            cancel,
        ))
    }

    /// A frame, with the chunks that name its color space or without.
    pub fn frame<'b>(
        &'b self,
        frame: &'b FrameControl<'b>,
        has_space: bool,
        cancel: &'b Cancel<'b>,
    ) -> FrameReader<'b> {
        let Rectangle { width, height, .. } = frame.rectangle;
        let name = if frame.is_default_image {
            *b"IDAT"
        } else {
            *b"fdAT"
        };
        let colors = if has_space {
            &self.chunks.colors
        } else {
            &self.chunks.palette
        };
        let size = (width as u32, height as u32);
        FrameReader::new(self.head, size, colors, (name, frame.data), cancel)
    }

    /// Whether the rows can become planes one after the other: it takes opaque rows that come from
    /// top to bottom, as they stay, in sRGB.
    pub fn planes(&self) -> PlanesPath {
        let Chunks { spaces, .. } = &self.chunks;
        if self.layout == Layout::Rgba || self.is_interlaced || self.chunks.exif.is_some() {
            return PlanesPath::Never;
        }
        if spaces.other || spaces.calibrated && !spaces.srgb {
            return PlanesPath::IfSpaceIsSrgb;
        }
        PlanesPath::Always
    }

    /// Whether there is Exif, which may turn the picture.
    pub fn has_exif(&self) -> bool {
        self.chunks.exif.is_some()
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
    /// Walks the chunks of a file, and calls `take` with the place of each, too.
    fn walk(bytes: &'a [u8], mut take: impl FnMut(usize, &Chunk<'a>)) -> Chunks<'a> {
        /// Deflate encodes 258 bytes in two bits or more, nearly.
        const MAX_INFLATION: u64 = 1032;
        /// A file has one of each name. A hostile one with more takes no more memory.
        const MAX_DISPENSABLE: usize = 16;
        let mut chunks = Chunks::default();
        let mut is_before_pixels = true;
        let mut xmp_text = None;
        for (place, chunk) in chunks_of_file(bytes) {
            take(place, &chunk);
            let Chunk { name, data, bytes } = chunk;
            if chunk.is_dispensable() {
                if chunks.left_out.len() < MAX_DISPENSABLE {
                    chunks.left_out.push(place..place + bytes.len());
                }
                continue;
            }
            match &name {
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
            if name == *b"eXIf" {
                if chunks.exif.is_none() && chunk.is_sound() {
                    chunks.exif = Some(data);
                    chunks.left_out.push(place..place + bytes.len());
                } else {
                    chunks.other_exif += data.len() as u64;
                }
            }
            if is_before_pixels {
                chunks.take_color(&chunk);
            }
            if name == *b"iTXt"
                && xmp_text.is_none()
                && let Some(text) = data.strip_prefix(b"XML:com.adobe.xmp\0\0\0")
            {
                xmp_text = Some(text);
            }
        }
        chunks.xmp = xmp_text.and_then(xmp_packet);
        chunks
    }

    /// Takes a chunk in front of the pixels that may define the meaning of samples.
    fn take_color(&mut self, chunk: &Chunk<'a>) {
        let name = &chunk.name;
        self.spaces.srgb |= name == b"sRGB";
        self.spaces.other |= name == b"cICP" || name == b"iCCP";
        self.spaces.calibrated |= name == b"gAMA" || name == b"cHRM";
        let is_palette = name == b"PLTE" || name == b"tRNS";
        let is_space = matches!(name, b"sRGB" | b"cICP" | b"iCCP" | b"gAMA" | b"cHRM");
        let is_first = self.colors.iter().all(|other| other[4..8] != *name);
        if (is_palette || is_space) && is_first {
            self.colors.push(chunk.bytes);
            if is_palette {
                self.palette.push(chunk.bytes);
            }
        }
    }
}

/// The XMP packet (XMP specification, part 3, 1.1.5) behind the keyword of its `iTXt` chunk, which
/// must not be compressed. A language and a translated keyword stand before it, which should be
/// empty.
fn xmp_packet(behind_keyword: &[u8]) -> Option<&[u8]> {
    behind_keyword.splitn(3, |&byte| byte == 0).nth(2)
}
