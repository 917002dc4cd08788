//! The headers of a BMP: `BITMAPFILEHEADER`, then one of the information headers, which differ in
//! their size.
//!
//! | bytes | header | contents beyond the one above |
//! |---|---|---|
//! | 12 | OS/2 version 1, `BITMAPCOREHEADER` | sides of 16 bits, palette entries of 3 bytes |
//! | 16 to 64 | OS/2 version 2, which may end anywhere | sides of 32 bits, entries of 4 bytes, runs of 24 bits |
//! | 40 | `BITMAPINFOHEADER` | bit fields, whose masks stand behind it |
//! | 52, 56 | its extensions by Adobe | the masks; that of alpha |
//! | 108 | `BITMAPV4HEADER` | primaries and gamma |
//! | 124 | `BITMAPV5HEADER` | an ICC profile |
//!
//! Numbers are little-endian. Fields that a header is too short for are 0.

use super::error::{damaged, ends_too_early};
use crate::image::color::{
    BYTES_PER_PROFILE_BYTE, Calibrated, MAX_PROFILE_BYTES, SRGB_CHROMATICITIES, Space,
};
use crate::image::error::DecodeError;
use crate::image::footprint::Footprint;
use crate::image::limits::Limits;
use crate::image::pixels::Layout;

/// Bytes of `BITMAPFILEHEADER`; the information header follows.
const FILE_HEADER: usize = 14;

/// The headers in front of the pixels.
#[derive(Debug)]
pub struct Header<'a> {
    info: Info<'a>,
    /// Width in pixels; it may be any number.
    pub width: u32,
    /// Height in pixels; it may be any number.
    pub height: u32,
    /// Whether the first row stored is the top one.
    pub is_top_down: bool,
    /// The coding of the pixels.
    pub coding: Coding,
    /// Red, green and blue of each index; black where the file has no such entry.
    pub palette: Box<[[u8; 3]; 256]>,
    /// The offset in the file at which the pixels begin.
    pub pixels_at: usize,
}

/// The coding of the pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// Palette indices of this number of bits: 1, 2, 4 or 8.
    Indices(u32),
    /// Blue, green and red, a byte each.
    Bytes,
    /// Fields of bits in a number of this many bytes, 2 or 4.
    Fields(usize, Fields),
    /// Runs of palette indices of 4 or 8 bits, or of 24-bit colors.
    Runs(u32),
}

/// The places of the samples in a pixel's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    /// Masks of red, green and blue.
    pub colors: [u32; 3],
    /// The mask of alpha, if there is alpha.
    pub alpha: Option<u32>,
}

impl<'a> Header<'a> {
    /// Reads the headers and the palette.
    ///
    /// # Errors
    /// The file ends too early, contradicts itself, or is of a kind that is not supported, which
    /// the text names.
    pub fn read(file: &'a [u8]) -> Result<Header<'a>, DecodeError> {
        let info = Info::new(file)?;
        let (width, height) = info.sides()?;
        let coding = info.coding()?;
        let pixels_at = info.pixels_at(coding, long(file, 10) as usize)?;
        Ok(Header {
            width,
            height: height.unsigned_abs(),
            is_top_down: height < 0,
            coding,
            palette: Box::new(info.palette(coding)),
            pixels_at,
            info,
        })
    }

    /// The layout that the pixels are decoded to.
    pub fn layout(&self) -> Layout {
        match self.coding {
            // Pixels that no run reaches are transparent, as browsers show them.
            Coding::Runs(_) | Coding::Fields(_, Fields { alpha: Some(_), .. }) => Layout::Rgba,
            _ => Layout::Rgb,
        }
    }

    /// The memory that [`super::decode`] takes.
    ///
    /// # Errors
    /// The picture's size is not within `limits`.
    pub fn footprint(&self, limits: &Limits) -> Result<Footprint, DecodeError> {
        /// Bytes of a palette and of tables of samples.
        const TABLES: u64 = 1 << 20;
        limits.check(self.width, self.height)?;
        Ok(Footprint {
            width: self.width,
            height: self.height,
            layout: self.layout(),
            decoder: TABLES + BYTES_PER_PROFILE_BYTE * self.metadata_bytes(),
        })
    }

    /// The bytes of the metadata: an ICC profile.
    pub fn metadata_bytes(&self) -> u64 {
        self.info.profile().map_or(0, <[u8]>::len) as u64
    }

    /// The color space, if the file names one.
    pub fn space(&self) -> Option<Space> {
        let profile = || Some(Space::Icc(self.info.profile()?.to_vec()));
        self.info.calibrated().or_else(profile)
    }
}

/// The values of the field `biCompression`.
mod compression {
    pub const NONE: u32 = 0;
    pub const RUNS_OF_8: u32 = 1;
    pub const RUNS_OF_4: u32 = 2;
    /// In OS/2: a facsimile code.
    pub const FIELDS: u32 = 3;
    /// In OS/2: runs of 24 bits.
    pub const JPEG: u32 = 4;
    pub const PNG: u32 = 5;
    pub const FIELDS_WITH_ALPHA: u32 = 6;
}

/// An information header and the bytes behind it.
#[derive(Debug)]
struct Info<'a> {
    /// From the start of the header to the end of the file.
    bytes: &'a [u8],
    /// Bytes of the header.
    size: usize,
}

impl<'a> Info<'a> {
    fn new(file: &'a [u8]) -> Result<Info<'a>, DecodeError> {
        let bytes = file.get(FILE_HEADER..).unwrap_or_default();
        if bytes.len() < 4 {
            return Err(ends_too_early());
        }
        let size = long(bytes, 0) as usize;
        if !matches!(size, 12 | 16..=64 | 108 | 124) {
            return Err(damaged(&format!("there is no header of {size} bytes")));
        }
        if bytes.len() < size {
            return Err(ends_too_early());
        }
        Ok(Info { bytes, size })
    }

    /// The 32-bit field at this offset in the header.
    fn field(&self, at: usize) -> u32 {
        long(&self.bytes[..self.size], at)
    }

    fn is_os2(&self) -> bool {
        !matches!(self.size, 40 | 52 | 56 | 108 | 124)
    }

    fn is_first_version(&self) -> bool {
        self.size == 12
    }

    /// Width and height; the height is negative if the top row comes first.
    fn sides(&self) -> Result<(u32, i32), DecodeError> {
        if self.is_first_version() {
            let sides = self.field(4);
            return Ok((sides & 0xffff, (sides >> 16) as i32));
        }
        let width = u32::try_from(self.field(4) as i32);
        let width = width.map_err(|_| damaged("its width is negative"))?;
        Ok((width, self.field(8) as i32))
    }

    /// The number of bits per pixel.
    fn bits(&self) -> u32 {
        self.field(if self.is_first_version() { 8 } else { 12 }) >> 16
    }

    fn compression(&self) -> u32 {
        self.field(16)
    }

    fn coding(&self) -> Result<Coding, DecodeError> {
        use compression::{FIELDS, FIELDS_WITH_ALPHA, JPEG, NONE, PNG, RUNS_OF_4, RUNS_OF_8};
        let opaque = |colors| Fields {
            colors,
            alpha: None,
        };
        Ok(match (self.compression(), self.bits()) {
            (NONE, bits @ (1 | 2 | 4 | 8)) => Coding::Indices(bits),
            (NONE, 16) => Coding::Fields(2, opaque([0x7c00, 0x03e0, 0x001f])),
            (NONE, 24) => Coding::Bytes,
            // The fourth byte is unused.
            (NONE, 32) => Coding::Fields(4, opaque([0x00ff_0000, 0xff00, 0xff])),
            (RUNS_OF_8, 8) => Coding::Runs(8),
            (RUNS_OF_4, 4) => Coding::Runs(4),
            (JPEG, 24) if self.is_os2() => Coding::Runs(24),
            (FIELDS | FIELDS_WITH_ALPHA, bits @ (16 | 32)) if !self.is_os2() => {
                Coding::Fields(bits as usize / 8, self.fields(bits)?)
            }
            (JPEG, _) if !self.is_os2() => {
                return Err(damaged("it is a JPEG inside a BMP: send the JPEG itself"));
            }
            (PNG, _) => return Err(damaged("it is a PNG inside a BMP: send the PNG itself")),
            (kind, bits) => {
                return Err(damaged(&format!(
                    "coding {kind} at {bits} bits a pixel is not supported"
                )));
            }
        })
    }

    /// The bytes of masks between the header and the palette.
    fn masks_behind(&self) -> usize {
        match (self.size, self.compression()) {
            (40, compression::FIELDS) => 12,
            (40, compression::FIELDS_WITH_ALPHA) => 16,
            _ => 0,
        }
    }

    fn fields(&self, bits: u32) -> Result<Fields, DecodeError> {
        let end = self.size + self.masks_behind();
        let masks = self.bytes.get(..end).ok_or_else(ends_too_early)?;
        let mask = |index: usize| match long(masks, 40 + 4 * index) {
            mask if is_one_field(mask) && mask.checked_shr(bits).unwrap_or(0) == 0 => Ok(mask),
            mask => Err(damaged(&format!("{mask:#x} is no mask of a field"))),
        };
        let fields = Fields {
            colors: [mask(0)?, mask(1)?, mask(2)?],
            alpha: Some(mask(3)?).filter(|mask| *mask != 0),
        };
        let masks = fields.colors.into_iter().chain(fields.alpha);
        let [sum, union] = [
            masks.clone().map(u64::from).sum(),
            masks.fold(0, |union, mask| union | u64::from(mask)),
        ];
        if sum != union {
            return Err(damaged("its bit fields overlap"));
        }
        Ok(fields)
    }

    /// The offset in the file at which the pixels begin. `declared` is that of the file header, in
    /// which 0 stands for the end of the palette, as in browsers.
    fn pixels_at(&self, coding: Coding, declared: usize) -> Result<usize, DecodeError> {
        let begin = FILE_HEADER + self.size + self.masks_behind();
        match declared {
            0 => Ok(begin + self.entries(coding) * self.entry_bytes()),
            declared if declared < begin => Err(damaged("its pixels begin within its header")),
            declared => Ok(declared),
        }
    }

    fn entry_bytes(&self) -> usize {
        if self.is_first_version() { 3 } else { 4 }
    }

    /// The number of entries of the palette.
    fn entries(&self, coding: Coding) -> usize {
        let (Coding::Indices(bits) | Coding::Runs(bits @ ..=8)) = coding else {
            return 0;
        };
        match self.field(32) as usize {
            0 => 1 << bits,
            count => count.min(1 << bits),
        }
    }

    /// The colors behind the header. If the pixels begin among them, those bytes are read as both,
    /// as in browsers.
    fn palette(&self, coding: Coding) -> [[u8; 3]; 256] {
        let mut palette = [[0; 3]; 256];
        // Masks and a palette are never in one file.
        let stored = self.bytes.get(self.size..).unwrap_or_default();
        let stored = stored.chunks_exact(self.entry_bytes());
        for (color, stored) in palette.iter_mut().zip(stored).take(self.entries(coding)) {
            *color = [stored[2], stored[1], stored[0]];
        }
        palette
    }

    /// The ICC profile, unless it is too large to be used.
    fn profile(&self) -> Option<&'a [u8]> {
        /// `PROFILE_EMBEDDED`. Linked profiles name a file on the machine of the writer.
        const EMBEDDED: u32 = u32::from_be_bytes(*b"MBED");
        if self.size < 124 || self.field(56) != EMBEDDED {
            return None;
        }
        let (begin, length) = (self.field(112) as usize, self.field(116) as usize);
        let profile = self.bytes.get(begin..begin.checked_add(length)?)?;
        (length <= MAX_PROFILE_BYTES).then_some(profile)
    }

    /// The calibrated color space. The header does not name its white, which is taken for that of
    /// sRGB, as in browsers.
    fn calibrated(&self) -> Option<Space> {
        /// `LCS_CALIBRATED_RGB`.
        const CALIBRATED: u32 = 0;
        /// X, Y and Z of red, green and blue have 30 bits behind the point, which does not matter
        /// for their ratios.
        const XYZ: usize = 60;
        /// Exponents have 16 bits behind the point.
        const GAMMA: usize = 96;
        if self.size < 108 || self.field(56) != CALIBRATED {
            return None;
        }
        let number = |at| f64::from(self.field(at));
        let [red, green, blue] = [0, 12, 24].map(|color| {
            let [x, y, z] = [0, 4, 8].map(|axis| number(XYZ + color + axis));
            [x / (x + y + z), y / (x + y + z)]
        });
        let exponents = [0, 4, 8].map(|color| {
            let exponent = number(GAMMA + color) / 65536.0;
            // Some writers give the exponent from light to samples.
            if exponent < 1.0 {
                1.0 / exponent
            } else {
                exponent
            }
        });
        let white = SRGB_CHROMATICITIES[0];
        Calibrated::space(Some(exponents), Some([white, red, green, blue]))
    }
}

/// Whether the ones of `mask`, if there are any, are contiguous.
fn is_one_field(mask: u32) -> bool {
    let field = mask.checked_shr(mask.trailing_zeros()).unwrap_or(0);
    field & field.wrapping_add(1) == 0
}

/// The 32-bit number at this offset; 0 if it is not whole.
fn long(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..).and_then(<[u8]>::first_chunk);
    four.map_or(0, |four| u32::from_le_bytes(*four))
}
