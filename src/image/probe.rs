//! What a picture takes, by its header alone: nothing is decoded, and nothing of the picture's size is allocated.

use super::formats::{bmp, gif, jpeg, png};
use super::{DecodeError, Format, Layout, Limits};
use std::panic::{UnwindSafe, catch_unwind};

/// What decoding takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Width in pixels, as stored.
    pub width: u32,
    /// Height in pixels, as stored.
    pub height: u32,
    /// What the pixels may come out as; alpha that turns out opaque is given up.
    pub layout: Layout,
    /// Most bytes of the decoder's own beside the pixels, profiles and other metadata included.
    pub decoder: u64,
    /// Bytes of the picture that [`super::decode_planes`] gives, if it gives one.
    pub planes: Option<u64>,
}

impl Footprint {
    /// Pixels.
    pub fn count(&self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// Bytes of the picture that [`super::decode`] gives.
    pub fn pixels(&self) -> u64 {
        self.count() * self.layout.channels() as u64
    }

    /// Most bytes that [`super::decode`] takes at a time, the picture included: while the decoder is at work, or while a
    /// turned copy is made.
    pub fn peak(&self) -> u64 {
        self.pixels() + self.decoder.max(self.pixels())
    }

    /// Most bytes that [`super::decode_planes`] takes at a time for a picture of `planes` bytes: as [`Footprint::peak`], but turned
    /// one plane after the other.
    pub fn planes_peak(&self, planes: u64) -> u64 {
        planes + self.decoder.max(planes * 2 / 3)
    }
}

/// Reads what a picture's header says of its size.
///
/// # Errors
/// What [`super::decode`] would say of the header. Damage elsewhere is not looked for.
pub fn probe(bytes: &[u8], format: Format, limits: &Limits) -> Result<Footprint, DecodeError> {
    super::check_format(bytes, format)?;
    guarded(|| match format {
        Format::Png => png::probe(bytes, limits),
        Format::Jpeg => jpeg::probe(bytes, limits),
        Format::Gif => gif::probe(bytes, limits),
        Format::Bmp => bmp::probe(bytes, limits),
    })
}

/// Reads what all frames of a GIF say of their sizes: as [`probe`], for [`super::Frames`].
///
/// # Errors
/// As [`probe`]; also what [`Limits::check_film`] says of all frames.
pub fn probe_animation(bytes: &[u8], limits: &Limits) -> Result<Footprint, DecodeError> {
    super::check_format(bytes, Format::Gif)?;
    guarded(|| gif::probe_animation(bytes, limits))
}

fn guarded(
    probe: impl FnOnce() -> Result<Footprint, DecodeError> + UnwindSafe,
) -> Result<Footprint, DecodeError> {
    catch_unwind(probe)
        .unwrap_or_else(|_| Err(DecodeError::Invalid("the decoder failed on it".to_owned())))
}
