//! Pixels in memory, and one reader per input format.
//!
//! [`open`] reads a file's header once, and holds it to the [`Limits`] before anything of the
//! picture's size is allocated. [`Opened`] then has the memory that decoding takes, and decodes:
//! into pixels in sRGB, or into the planes of a JPEG, oriented by its Exif, or frame by frame.
//! A [`Cancel`] may end that at any time.

mod animation;
mod color;
mod decoded;
mod error;
mod footprint;
mod format;
mod formats;
mod frames;
mod guard;
mod limits;
mod metadata;
mod opened;
mod pixels;
mod planes;
mod reader;
mod rectangle;
mod resize;
#[cfg(test)]
mod testing;

pub use animation::{AnimationFrame, over};
pub use error::DecodeError;
pub use footprint::Footprint;
pub use format::{AcceptedFormats, Format};
pub use formats::jpeg::Luma;
pub use frames::Frames;
pub use limits::Limits;
pub use metadata::{Keep, Metadata};
pub use opened::{Animation, EstimatedPlanes, Opened, PlanesMemory, open};
pub use pixels::{Image, Layout};
pub use planes::Planes;
pub use rectangle::Rectangle;
pub use resize::{Resize, Scaling, Span};

use towebp_encoder::{Cancel, Workers};

/// Decodes a picture of which no metadata is kept, on the calling thread: [`open`] and
/// [`Opened::decode`] in one call.
///
/// # Errors
/// See [`DecodeError`].
pub fn decode(
    bytes: &[u8],
    format: Format,
    limits: &Limits,
    cancel: &Cancel<'_>,
) -> Result<Image, DecodeError> {
    let workers = Workers::new(1, None, cancel);
    let (image, _) = open(bytes, format, limits)?.decode(Keep::NOTHING, workers)?;
    Ok(image)
}
