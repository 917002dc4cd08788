//! Encodes pixels as a WebP file: the RIFF container, the alpha plane and VP8 (RFC 9649, RFC 6386).

/// How the samples of a [`Picture`] lie in memory, 8 bits each, interleaved, rows without padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Red, green, blue.
    Rgb,
    /// Red, green, blue, alpha (not premultiplied).
    Rgba,
}

/// A picture to encode: full-range sRGB samples.
#[derive(Clone, Copy, Debug)]
pub struct Picture<'a> {
    /// Width in pixels, 1 to 16383.
    pub width: u32,
    /// Height in pixels, 1 to 16383.
    pub height: u32,
    /// What `pixels` holds.
    pub layout: Layout,
    /// `width * height` pixels, top row first.
    pub pixels: &'a [u8],
}

/// What the caller may choose.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Quality, 0 (smallest) to 100 (best).
    pub quality: u8,
}

/// Why a picture cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// A side is 0 or above 16383 pixels.
    Dimensions,
    /// `pixels` does not hold `width * height` pixels of the layout.
    PixelCount,
    /// The encoded picture would not fit the container's size fields.
    TooLarge,
}

/// Encodes `picture` as a WebP file.
///
/// # Errors
/// See [`EncodeError`].
pub fn encode(picture: &Picture<'_>, options: &Options) -> Result<Vec<u8>, EncodeError> {
    // Stand-in until the VP8 encoder of this room is written.
    let _ = options.quality;
    let mut out = Vec::new();
    let color = match picture.layout {
        Layout::Rgb => image_webp::ColorType::Rgb8,
        Layout::Rgba => image_webp::ColorType::Rgba8,
    };
    image_webp::WebPEncoder::new(&mut out)
        .encode(picture.pixels, picture.width, picture.height, color)
        .map_err(|_| EncodeError::Dimensions)?;
    Ok(out)
}
