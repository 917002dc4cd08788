//! WebP, still and animated. The container (RFC 9649, section 2) is read here, so that each picture
//! is held to the limits before the crate `image-webp` decodes it, and so that frames are drawn as
//! those of other formats are.

mod bitstream;
mod chunk;
mod frames;
mod header;
mod lossless;
mod lossy;
mod outline;

pub use frames::Frames;
pub use header::Header;

use crate::image::color::Space;
use crate::image::decoded::Decoded;
use crate::image::error::DecodeError;
use crate::image::limits::Limits;
use crate::image::metadata::Keep;
use towebp_encoder::Cancel;

/// Decodes the picture, or the first frame of an animation.
///
/// # Errors
/// See [`DecodeError`].
pub fn decode(
    header: &Header<'_>,
    limits: &Limits,
    cancel: &Cancel<'_>,
) -> Result<Decoded, DecodeError> {
    let (width, height) = header.size();
    limits.check(width, height)?;
    let image = match header.still() {
        Some(bitstream) => bitstream.decode(limits, cancel)?,
        None => Frames::as_stored(header, limits, cancel).into_first()?,
    };
    Ok(Decoded {
        image,
        is_gray: false,
        space: header.profile().map(Space::Icc),
    })
}

/// The frames, of which none is drawn yet.
pub fn frames<'a>(
    header: &'a Header<'a>,
    keep: Keep,
    limits: &Limits,
    cancel: &'a Cancel<'a>,
) -> Frames<'a> {
    Frames::new(header, keep, limits, cancel)
}

#[cfg(test)]
mod tests;
