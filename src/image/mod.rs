//! Pixels in memory, and one reader per input format.

/// The input formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Portable Network Graphics.
    Png,
    /// JPEG (JFIF, Exif or bare).
    Jpeg,
    /// GIF 87a or 89a.
    Gif,
    /// Windows or OS/2 bitmap.
    Bmp,
}

impl Format {
    /// The short lower-case name: `png`, `jpeg`, `gif`, `bmp`.
    pub fn name(self) -> &'static str {
        todo!()
    }
    /// Reads a media type such as `image/jpg; charset=x`: case-insensitive, parameters ignored.
    pub fn from_media_type(_text: &str) -> Option<Format> {
        todo!()
    }
    /// What the first bytes of a file look like.
    pub fn sniff(_bytes: &[u8]) -> Option<Format> {
        todo!()
    }
}

/// How samples lie: 8 bits each, interleaved, rows without padding, sRGB, alpha not premultiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Three bytes a pixel.
    Rgb,
    /// Four bytes a pixel.
    Rgba,
}

/// A picture: `width * height` pixels, top row first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Width in pixels, at least 1.
    pub width: u32,
    /// Height in pixels, at least 1.
    pub height: u32,
    /// What `pixels` holds.
    pub layout: Layout,
    /// The samples.
    pub pixels: Vec<u8>,
}

/// Bounds that a picture's header is held to before anything is allocated.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest side, in pixels. 16383 is WebP's own bound (RFC 9649, 14 bits).
    pub max_side: u32,
    /// Most pixels in all.
    pub max_pixels: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { max_side: 16383, max_pixels: 100_000_000 }
    }
}

/// Why bytes did not become a picture. Texts are for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes are not of the format that was declared; what they look like instead, if known.
    WrongFormat { declared: Format, found: Option<Format> },
    /// The data is damaged, cut short or of an unsupported variety; the reason in a few words.
    Invalid(String),
    /// A side is over [`Limits::max_side`].
    TooWide { width: u32, height: u32, max_side: u32 },
    /// More pixels than [`Limits::max_pixels`].
    TooManyPixels { width: u32, height: u32, max_pixels: u64 },
}

/// Decodes one picture (the first frame of a GIF), turned as its Exif orientation says, in sRGB.
///
/// # Errors
/// See [`DecodeError`]. A decoder that panics gives [`DecodeError::Invalid`].
pub fn decode(_bytes: &[u8], _format: Format, _limits: &Limits) -> Result<Image, DecodeError> {
    todo!()
}
