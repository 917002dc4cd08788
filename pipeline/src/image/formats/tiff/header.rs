//! The first directory of a TIFF: what its samples mean, and where they are.

use super::error::{damaged, ends_too_early, not_read};
use crate::image::color::MAX_PROFILE_BYTES;
use crate::image::error::DecodeError;
use crate::image::limits::Limits;
use crate::image::metadata::orientation::{self, Orientation};
use crate::image::metadata::tiff::{Entry, Tiff};
use crate::image::pixels::Layout;

/// The tags that are read (TIFF 6.0, section 8; its supplements; ICC.1, B.4).
mod tag {
    pub const WIDTH: u16 = 256;
    pub const HEIGHT: u16 = 257;
    pub const BITS: u16 = 258;
    pub const COMPRESSION: u16 = 259;
    pub const PHOTOMETRIC: u16 = 262;
    pub const FILL_ORDER: u16 = 266;
    pub const STRIP_OFFSETS: u16 = 273;
    pub const SAMPLES: u16 = 277;
    pub const ROWS_PER_STRIP: u16 = 278;
    pub const STRIP_BYTES: u16 = 279;
    pub const PLANAR: u16 = 284;
    pub const PREDICTOR: u16 = 317;
    pub const COLOR_MAP: u16 = 320;
    pub const TILE_WIDTH: u16 = 322;
    pub const TILE_HEIGHT: u16 = 323;
    pub const TILE_OFFSETS: u16 = 324;
    pub const TILE_BYTES: u16 = 325;
    pub const INK_SET: u16 = 332;
    pub const EXTRA_SAMPLES: u16 = 338;
    pub const FORMAT: u16 = 339;
    pub const JPEG_TABLES: u16 = 347;
    pub const XMP: u16 = 700;
    pub const PHOTOSHOP: u16 = 34_377;
    pub const PROFILE: u16 = 34_675;
}

/// The kind of colors whose samples a JPEG has as `Y'CbCr` (section 21).
const LUMA_AND_CHROMA: u32 = 6;

/// The most samples of a pixel, those that are not shown included.
const MAX_SAMPLES: usize = 16;

/// How samples are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    Nothing,
    PackBits,
    Lzw,
    Deflate,
    Jpeg {
        /// Whether the samples are `Y'CbCr`.
        is_luma_and_chroma: bool,
    },
    /// Group 4.
    Fax,
}

/// What the first samples of a pixel are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ink {
    Gray {
        /// Whether 0 is white.
        is_inverted: bool,
    },
    Rgb,
    /// Indices of these colors.
    Palette(Box<[[u8; 3]; 256]>),
    /// All bits set are full ink.
    Cmyk,
}

impl Ink {
    /// The number of samples of a pixel, without alpha.
    pub fn samples(&self) -> usize {
        match self {
            Ink::Gray { .. } | Ink::Palette(_) => 1,
            Ink::Rgb => 3,
            Ink::Cmyk => 4,
        }
    }
}

/// The alpha beside the first samples of a pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alpha {
    /// Colors are multiplied by it.
    Associated,
    Unassociated,
}

/// A TIFF whose first directory was read.
#[derive(Debug)]
pub struct Header<'a> {
    bytes: &'a [u8],
    tiff: Tiff<'a>,
    size: (u32, u32),
    pub compression: Compression,
    /// The tables of parts that are JPEGs, as a JPEG without a picture.
    pub jpeg_tables: Option<&'a [u8]>,
    pub ink: Ink,
    pub alpha: Option<Alpha>,
    /// The bits of a sample: 8 or 16, and 1, 2 or 4 of one sample a pixel.
    pub bits: usize,
    /// The samples of a pixel.
    pub samples: usize,
    /// Whether each sample has parts of its own.
    pub is_planar: bool,
    /// Whether the first bit of a byte is its lowest one (section 8, `FillOrder`).
    pub has_reversed_bits: bool,
    /// Whether a sample is stored less the one on its left (section 14).
    pub has_differences: bool,
    grid: Grid,
    profile: Option<&'a [u8]>,
    xmp: Option<&'a [u8]>,
    resources: Option<&'a [u8]>,
}

/// The strips or tiles of a picture.
#[derive(Debug)]
struct Grid {
    /// Width and height of a part in pixels.
    part: (usize, usize),
    /// The numbers of parts of a plane.
    across: usize,
    down: usize,
    /// Whether the last row of parts is as high as the others.
    has_whole_parts: bool,
    offsets: Entry,
    lengths: Entry,
}

/// A strip, or a tile: a part of the picture.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The column of its first pixel.
    pub x: usize,
    /// The row of its first pixel.
    pub y: usize,
    /// The number of stored rows, which may reach below the picture.
    pub rows: usize,
    /// The number of stored pixels of a row, which may reach beyond the picture.
    pub width: usize,
    /// The bytes of a row.
    pub row_bytes: usize,
    /// The index of its first sample within a pixel: the number of the plane, or 0.
    pub first_sample: usize,
    /// The number of samples that it has of each pixel.
    pub samples: usize,
    /// Its data as stored.
    pub data: &'a [u8],
}

impl<'a> Header<'a> {
    /// Reads the first directory.
    ///
    /// # Errors
    /// It is damaged or of a kind that is not read, or the picture is not within `limits`.
    pub fn read(bytes: &'a [u8], limits: &Limits) -> Result<Header<'a>, DecodeError> {
        if matches!(bytes.get(..4), Some(b"II+\0" | b"MM\0+")) {
            return Err(not_read("offsets of 8 bytes (BigTIFF)"));
        }
        let tiff = Tiff::new(bytes).ok_or_else(ends_too_early)?;
        let fields = Fields(tiff);
        let size = (fields.need(tag::WIDTH)?, fields.need(tag::HEIGHT)?);
        limits.check(size.0, size.1)?;
        let is_luma_and_chroma = fields.need(tag::PHOTOMETRIC)? == LUMA_AND_CHROMA;
        let compression = compression(fields.number(tag::COMPRESSION, 1)?, is_luma_and_chroma)?;
        let samples = fields.number(tag::SAMPLES, 1)? as usize;
        let bits = fields.same(tag::BITS, 1)? as usize;
        let ink = ink(fields, bits)?;
        let is_jpeg = matches!(compression, Compression::Jpeg { .. });
        if is_luma_and_chroma && !is_jpeg {
            return Err(not_read("colors as Y'CbCr without JPEG compression"));
        }
        if samples < ink.samples() || samples > MAX_SAMPLES {
            return Err(not_read(&format!("{samples} samples a pixel")));
        }
        if !matches!((bits, samples), (8 | 16, _) | (1 | 2 | 4, 1))
            || bits == 16 && matches!(ink, Ink::Palette(_))
        {
            return Err(not_read(&format!("{samples} samples of {bits} bits")));
        }
        let suits_jpeg = matches!(ink, Ink::Gray { .. } | Ink::Rgb) && samples == ink.samples();
        if is_jpeg && !(suits_jpeg && bits == 8) {
            return Err(not_read(
                "JPEG compression of other than gray or RGB of 8 bits",
            ));
        }
        match fields.same(tag::FORMAT, 1)? {
            // Undefined data are taken to be numbers.
            1 | 4 => {}
            2 => return Err(not_read("samples that have a sign")),
            _ => return Err(not_read("samples of floating point")),
        }
        if compression == Compression::Fax && (bits, samples) != (1, 1) {
            return Err(not_read("fax compression of more than one bit"));
        }
        let has_differences = match fields.number(tag::PREDICTOR, 1)? {
            _ if !matches!(compression, Compression::Lzw | Compression::Deflate) => false,
            1 => false,
            2 if bits >= 8 => true,
            _ => return Err(not_read("a predictor of this kind")),
        };
        // Many writers leave the field out beside RGB with alpha.
        let default = if (&ink, samples) == (&Ink::Rgb, 4) {
            2
        } else {
            0
        };
        let alpha = match fields.number(tag::EXTRA_SAMPLES, default)? {
            _ if samples == ink.samples() || ink == Ink::Cmyk => None,
            1 => Some(Alpha::Associated),
            2 => Some(Alpha::Unassociated),
            _ => None,
        };
        let is_planar = fields.number(tag::PLANAR, 1)? == 2;
        let data = |tag| fields.find(tag).and_then(|entry| tiff.data(&entry));
        let header = Header {
            bytes,
            tiff,
            size,
            compression,
            jpeg_tables: data(tag::JPEG_TABLES),
            ink,
            alpha,
            bits,
            samples,
            is_planar,
            has_reversed_bits: !is_jpeg && fields.number(tag::FILL_ORDER, 1)? == 2,
            has_differences,
            grid: Grid::read(fields, size)?,
            profile: data(tag::PROFILE),
            xmp: data(tag::XMP),
            resources: data(tag::PHOTOSHOP),
        };
        let parts = header.parts();
        let Grid {
            offsets, lengths, ..
        } = &header.grid;
        if [offsets, lengths]
            .iter()
            .any(|entry| (entry.count as usize) < parts)
        {
            return Err(damaged("parts of the picture are missing"));
        }
        Ok(header)
    }

    /// Width and height in pixels, as stored.
    pub fn size(&self) -> (u32, u32) {
        self.size
    }

    /// The layout of the decoded pixels.
    pub fn layout(&self) -> Layout {
        if self.alpha.is_some() {
            Layout::Rgba
        } else {
            Layout::Rgb
        }
    }

    /// The bytes of a pixel until inks are converted.
    pub fn channels(&self) -> usize {
        match self.ink {
            Ink::Cmyk => 4,
            _ => self.layout().channels(),
        }
    }

    /// Checks that the parts are not far larger than the picture.
    ///
    /// # Errors
    /// They are.
    pub fn check_parts(&self, limits: &Limits) -> Result<(), DecodeError> {
        let (width, height) = self.size;
        let count = limits.check(width, height)? as u64;
        let Grid {
            part, across, down, ..
        } = self.grid;
        let stored = [part.0, part.1, across, down]
            .iter()
            .try_fold(1u64, |product, side| product.checked_mul(*side as u64));
        // Tiles are at least 16 pixels wide and high.
        if stored.is_none_or(|stored| stored > 4 * count + (1 << 24)) {
            return Err(damaged("its tiles are far larger than the picture"));
        }
        Ok(())
    }

    /// The bytes of the largest part, decompressed.
    ///
    /// # Errors
    /// They are too many for any picture.
    pub fn part_bytes(&self) -> Result<usize, DecodeError> {
        let bytes = self.row_bytes().checked_mul(self.grid.part.1);
        let fits = |bytes: &usize| *bytes <= isize::MAX as usize / 8;
        bytes
            .filter(fits)
            .ok_or_else(|| damaged("a part of the picture is too large"))
    }

    /// Width and height in pixels of a part that is not the last one.
    pub fn part_size(&self) -> (usize, usize) {
        self.grid.part
    }

    /// The length of the longest part's data.
    pub fn longest_part(&self) -> usize {
        let lengths =
            (0..self.parts()).map_while(|index| self.tiff.number(&self.grid.lengths, index));
        (lengths.max().unwrap_or_default() as usize).min(self.bytes.len())
    }

    /// The bytes of a row of a part.
    fn row_bytes(&self) -> usize {
        (self.grid.part.0 * self.bits * self.samples_of_part()).div_ceil(8)
    }

    fn samples_of_part(&self) -> usize {
        if self.is_planar { 1 } else { self.samples }
    }

    /// The number of parts, of all planes.
    pub fn parts(&self) -> usize {
        let planes = if self.is_planar { self.samples } else { 1 };
        self.grid
            .across
            .saturating_mul(self.grid.down)
            .saturating_mul(planes)
    }

    /// A part by its index, below [`Header::parts`].
    ///
    /// # Errors
    /// Its data is not all there.
    pub fn part(&self, index: usize) -> Result<Part<'a>, DecodeError> {
        let Grid {
            part: (width, rows),
            across,
            down,
            ..
        } = self.grid;
        let (plane, place) = (index / (across * down), index % (across * down));
        let (x, y) = (place % across * width, place / across * rows);
        let number = |entry| self.tiff.number(entry, index).map(|number| number as usize);
        let offset = number(&self.grid.offsets).ok_or_else(ends_too_early)?;
        let length = number(&self.grid.lengths).ok_or_else(ends_too_early)?;
        let data = offset
            .checked_add(length)
            .and_then(|end| self.bytes.get(offset..end));
        let rows_left = self.size.1 as usize - y;
        Ok(Part {
            x,
            y,
            rows: if self.grid.has_whole_parts {
                rows
            } else {
                rows.min(rows_left)
            },
            width,
            row_bytes: self.row_bytes(),
            first_sample: plane,
            samples: self.samples_of_part(),
            data: data.ok_or_else(ends_too_early)?,
        })
    }

    /// Whether the numbers of 16 bits begin with the higher byte.
    pub fn is_big_endian(&self) -> bool {
        self.tiff.is_big_endian()
    }

    /// The ICC profile, unless it is larger than any of use.
    pub fn profile(&self) -> Option<&'a [u8]> {
        self.profile
            .filter(|profile| profile.len() <= MAX_PROFILE_BYTES)
    }

    /// The orientation of the picture.
    pub fn orientation(&self) -> Orientation {
        orientation::read(self.bytes).unwrap_or(Orientation::NoTransforms)
    }

    /// The file, whose first directory has the tags of Exif's.
    pub fn directory(&self) -> &'a [u8] {
        self.bytes
    }

    /// The XMP packet.
    pub fn xmp(&self) -> Option<&'a [u8]> {
        self.xmp
    }

    /// Image resources of Photoshop, which may have IPTC.
    pub fn iptc(&self) -> Option<&'a [u8]> {
        self.resources
    }

    /// Most bytes of the metadata: profile, XMP, IPTC, and the texts of Exif.
    pub fn metadata_bytes(&self) -> u64 {
        /// The texts that are kept of Exif, which are shorter.
        const TEXTS: u64 = 16 << 10;
        let parts = [self.profile, self.xmp, self.resources]
            .into_iter()
            .flatten();
        TEXTS + parts.map(|part| part.len() as u64).sum::<u64>()
    }
}

impl Grid {
    fn read(fields: Fields<'_>, (width, height): (u32, u32)) -> Result<Grid, DecodeError> {
        let is_tiled = fields.find(tag::TILE_OFFSETS).is_some();
        let (part, tags) = if is_tiled {
            let part = (
                fields.need(tag::TILE_WIDTH)?,
                fields.need(tag::TILE_HEIGHT)?,
            );
            (part, [tag::TILE_OFFSETS, tag::TILE_BYTES])
        } else {
            let rows = fields.number(tag::ROWS_PER_STRIP, height)?.min(height);
            ((width, rows), [tag::STRIP_OFFSETS, tag::STRIP_BYTES])
        };
        if part.0 == 0 || part.1 == 0 || part.0 > 1 << 20 || part.1 > 1 << 20 {
            return Err(damaged("the size of its parts"));
        }
        let [offsets, lengths] = tags.map(|tag| fields.find(tag).ok_or_else(ends_too_early));
        Ok(Grid {
            part: (part.0 as usize, part.1 as usize),
            across: width.div_ceil(part.0) as usize,
            down: height.div_ceil(part.1) as usize,
            has_whole_parts: is_tiled,
            offsets: offsets?,
            lengths: lengths?,
        })
    }
}

/// The entries of the first directory by their tags.
#[derive(Clone, Copy)]
struct Fields<'a>(Tiff<'a>);

impl Fields<'_> {
    fn find(self, tag: u16) -> Option<Entry> {
        self.0.entries().find(|entry| entry.tag == tag)
    }

    /// The first number of a field, or `default` if the field is not there.
    fn number(self, tag: u16, default: u32) -> Result<u32, DecodeError> {
        match self.find(tag) {
            None => Ok(default),
            Some(entry) => self
                .0
                .number(&entry, 0)
                .ok_or_else(|| field_is_damaged(tag)),
        }
    }

    /// The number of a field that has to be there.
    fn need(self, tag: u16) -> Result<u32, DecodeError> {
        self.find(tag)
            .and_then(|entry| self.0.number(&entry, 0))
            .ok_or_else(|| field_is_damaged(tag))
    }

    /// The number of a field that has it once for each sample.
    fn same(self, tag: u16, default: u32) -> Result<u32, DecodeError> {
        let first = self.number(tag, default)?;
        let Some(entry) = self.find(tag) else {
            return Ok(first);
        };
        let count = (entry.count as usize).min(MAX_SAMPLES);
        if (1..count).any(|index| self.0.number(&entry, index) != Some(first)) {
            return Err(not_read("samples of several kinds"));
        }
        Ok(first)
    }
}

fn field_is_damaged(tag: u16) -> DecodeError {
    damaged(&format!("field {tag}"))
}

fn compression(number: u32, is_luma_and_chroma: bool) -> Result<Compression, DecodeError> {
    Ok(match number {
        1 => Compression::Nothing,
        5 => Compression::Lzw,
        8 | 32_946 => Compression::Deflate,
        32_773 => Compression::PackBits,
        2 | 3 => return Err(not_read("fax compression of group 3")),
        4 => Compression::Fax,
        6 => return Err(not_read("JPEG compression of the older kind")),
        7 => Compression::Jpeg { is_luma_and_chroma },
        other => return Err(not_read(&format!("compression {other}"))),
    })
}

fn ink(fields: Fields<'_>, bits: usize) -> Result<Ink, DecodeError> {
    Ok(match fields.need(tag::PHOTOMETRIC)? {
        number @ 0..=1 => Ink::Gray {
            is_inverted: number == 0,
        },
        2 | LUMA_AND_CHROMA => Ink::Rgb,
        3 => Ink::Palette(palette(fields, bits)?),
        4 => return Err(not_read("a mask in place of a picture")),
        5 if fields.number(tag::INK_SET, 1)? == 1 => Ink::Cmyk,
        5 => return Err(not_read("inks other than CMYK")),
        8..=10 => return Err(not_read("colors as L*a*b*")),
        other => return Err(not_read(&format!("colors of kind {other}"))),
    })
}

/// The palette: all reds, then all greens and blues, of 16 bits each. Some writers leave the higher
/// byte empty, as libtiff knows.
fn palette(fields: Fields<'_>, bits: usize) -> Result<Box<[[u8; 3]; 256]>, DecodeError> {
    let colors = 1usize << bits.min(8);
    let entry = fields.find(tag::COLOR_MAP);
    let entry = entry.ok_or_else(|| field_is_damaged(tag::COLOR_MAP))?;
    let number = |index| fields.0.number(&entry, index);
    let numbers: Option<Vec<u32>> = (0..3 * colors).map(number).collect();
    let numbers = numbers.ok_or_else(|| field_is_damaged(tag::COLOR_MAP))?;
    let shift = if numbers.iter().all(|number| *number < 256) {
        0
    } else {
        8
    };
    let mut palette = Box::new([[0; 3]; 256]);
    for (index, color) in palette.iter_mut().take(colors).enumerate() {
        *color = [0, 1, 2].map(|sample| (numbers[sample * colors + index] >> shift) as u8);
    }
    Ok(palette)
}
