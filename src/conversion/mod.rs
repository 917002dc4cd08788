//! The pure service: the specification's parameters, and one picture in, one WebP out. Opens no file and no socket.

use crate::image;
use std::time::Duration;

pub use crate::watermark::{Color, Position, TextWatermark};

/// The specification's parameter table: what a caller may ask for, already checked and capped.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// 0 to 100, default 85.
    pub quality: u8,
    /// Text watermark (`watermark`, `watermark_size`, `watermark_color`), if any.
    pub text: Option<TextWatermark>,
    /// Where the picture watermark is to be had from (`watermark_image`), if any: not fetched here.
    pub picture_url: Option<String>,
    /// Where watermarks go.
    pub position: Position,
    /// 0 (invisible) to 100 (solid).
    pub opacity: u8,
}

/// A parameter that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamError {
    /// The parameter's name.
    pub name: &'static str,
    /// What was given and what is allowed, as a sentence for the caller.
    pub detail: String,
    /// Machine-readable: `invalid_parameter` or `repeated_parameter`.
    pub code: &'static str,
}

impl Params {
    /// Reads the parameters from decoded name and value pairs. Unknown names are ignored; numbers out of
    /// range are capped; a known name given twice, a number that is not whole, an unknown position or colour is an error.
    ///
    /// # Errors
    /// [`ParamError`], for the first parameter at fault.
    pub fn parse<'a>(_pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Params, ParamError> {
        todo!()
    }
}

/// One conversion to do.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The file as it came.
    pub bytes: &'a [u8],
    /// What it was said to be.
    pub format: image::Format,
    /// What was asked for.
    pub params: &'a Params,
    /// The bytes of the watermark picture (PNG or JPEG), if one was asked for.
    pub watermark_picture: Option<&'a [u8]>,
    /// Bounds on the picture.
    pub limits: &'a image::Limits,
}

/// What came out.
#[derive(Clone, Debug)]
pub struct Conversion {
    /// The WebP file.
    pub webp: Vec<u8>,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Time spent on each stage.
    pub timing: Timing,
}

/// Time spent on each stage of a conversion.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timing {
    /// Reading the input, orientation and colour.
    pub decode: Duration,
    /// Drawing watermarks.
    pub watermark: Duration,
    /// Writing the WebP.
    pub encode: Duration,
}

/// Why a conversion failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConversionError {
    /// The picture cannot be read.
    Picture(image::DecodeError),
    /// The watermark's picture cannot be read (only PNG and JPEG may be watermarks).
    WatermarkPicture(image::DecodeError),
    /// No font has these characters of the watermark's text.
    MissingCharacters(Vec<char>),
    /// A fault of ours.
    Internal(String),
}

/// Decode, orient, colour, watermark (picture first, text over it), encode.
///
/// # Errors
/// See [`ConversionError`].
pub fn run(_job: &Job<'_>) -> Result<Conversion, ConversionError> {
    todo!()
}
