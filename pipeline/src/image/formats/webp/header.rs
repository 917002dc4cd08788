//! The header of a WebP: its outline, and the memory that decoding takes.

use super::bitstream::Bitstream;
use super::outline::{Frame, Outline, Pixels};
use crate::image::color::{MAX_PROFILE_BYTES, is_rgb, profile_bytes};
use crate::image::error::DecodeError;
use crate::image::footprint::Footprint;
use crate::image::limits::Limits;
use crate::image::metadata::Keep;
use crate::image::metadata::orientation::{self, Orientation};
use crate::image::pixels::Layout;

/// The most symbols in front of lossless pixels that are passed over to know the memory of a file:
/// half a second, and several times as many as a file of the largest animation has.
const MAX_SYMBOLS: u64 = 1 << 26;

/// A WebP whose outline was walked.
#[derive(Debug)]
pub struct Header<'a> {
    outline: Outline<'a>,
}

impl<'a> Header<'a> {
    /// Walks the outline of a file. Of an animation it keeps at most as many frames as `limits`
    /// allow, and one more.
    ///
    /// # Errors
    /// The chunks are damaged or not all there.
    pub fn read(bytes: &'a [u8], limits: &Limits) -> Result<Header<'a>, DecodeError> {
        let outline = Outline::walk(bytes, limits.max_frames)?;
        Ok(Header { outline })
    }

    /// Whether there is more than one frame.
    pub fn is_animated(&self) -> bool {
        self.frames().0.len() > 1
    }

    /// Whether the file is a still picture that is coded lossy.
    pub fn is_lossy(&self) -> bool {
        self.still().is_some_and(|bitstream| bitstream.is_lossy)
    }

    /// Width and height in pixels, as stored.
    pub fn size(&self) -> (u32, u32) {
        self.outline.canvas
    }

    /// Width and height in pixels, oriented.
    pub fn upright_size(&self) -> (u32, u32) {
        let (width, height) = self.size();
        if orientation::swaps_sides(self.orientation()) {
            (height, width)
        } else {
            (width, height)
        }
    }

    /// The memory that [`super::decode`] takes.
    ///
    /// # Errors
    /// The canvas or the first frame is damaged or not within `limits`.
    pub fn footprint(&self, limits: &Limits) -> Result<Footprint, DecodeError> {
        let (width, height) = self.size();
        limits.check(width, height)?;
        let (layout, decoder) = match &self.outline.pixels {
            Pixels::Still(bitstream) => {
                let memory = bitstream.memory(&mut { MAX_SYMBOLS })?;
                (bitstream.layout(), memory)
            }
            Pixels::Animation(frames, _) => (Layout::Rgba, self.drawing(&frames[..1])?),
        };
        let profile = self.outline.profile.map_or(0, <[u8]>::len);
        let profile = profile_bytes(profile.min(MAX_PROFILE_BYTES), 3);
        Ok(Footprint {
            width,
            height,
            layout,
            decoder: decoder + profile,
        })
    }

    /// Most bytes that drawing these frames takes beside the canvas: a frame, oriented, while it is
    /// decoded, and the pixels that were there before.
    fn drawing(&self, frames: &[&'a [u8]]) -> Result<u64, DecodeError> {
        let (mut most, mut symbols) = (0, MAX_SYMBOLS);
        for data in frames {
            let frame = Frame::read(data, self.size())?;
            let (width, height) = frame.bitstream.size;
            let bytes = 2 * 4 * u64::from(width) * u64::from(height);
            most = most.max(bytes + frame.bitstream.memory(&mut symbols)?);
        }
        let (width, height) = self.size();
        Ok(most + 4 * u64::from(width) * u64::from(height))
    }

    /// The memory that [`super::frames()`] take, by the memory that the first frame takes.
    ///
    /// # Errors
    /// A frame is damaged, or all frames together are not within `limits`.
    pub fn animation_footprint(
        &self,
        first: &Footprint,
        limits: &Limits,
    ) -> Result<Footprint, DecodeError> {
        self.check_animation(first.pixel_count(), limits)?;
        let (width, height) = self.upright_size();
        let (frames, _) = self.frames();
        Ok(Footprint {
            width,
            height,
            layout: Layout::Rgba,
            decoder: first.decoder.max(self.drawing(frames)?) + size_of_val(frames) as u64,
        })
    }

    /// Checks the pixels of all frames together, each on a canvas of so many.
    ///
    /// # Errors
    /// They are not within `limits`.
    pub fn check_animation(&self, canvas: u64, limits: &Limits) -> Result<(), DecodeError> {
        let frames = self.frames().0.len() as u64;
        let count = u32::try_from(frames).unwrap_or(u32::MAX);
        limits.check_animation(count, frames.saturating_mul(canvas))
    }

    /// Most bytes of the metadata: profile, Exif and XMP.
    pub fn metadata_bytes(&self) -> u64 {
        let Outline {
            profile, exif, xmp, ..
        } = self.outline;
        let parts = [profile, exif, xmp].into_iter().flatten();
        parts.map(|part| part.len() as u64).sum()
    }

    /// Exif, from its TIFF header on or with the prefix that it has in a JPEG.
    pub fn exif(&self) -> Option<&'a [u8]> {
        self.outline.exif
    }

    /// The XMP packet.
    pub fn xmp(&self) -> Option<&'a [u8]> {
        self.outline.xmp
    }

    /// The orientation of the picture by its Exif.
    pub fn orientation(&self) -> Orientation {
        let read = self.exif().and_then(orientation::read);
        read.unwrap_or(Orientation::NoTransforms)
    }

    /// The profile of RGB in whose color space frames stay, if `keep` selects it.
    pub fn kept_profile(&self, keep: Keep) -> Option<Vec<u8>> {
        let profile = self.profile().filter(|_| keep.profile);
        profile.filter(|profile| is_rgb(profile))
    }

    /// The ICC profile, unless it is larger than any of use.
    pub fn profile(&self) -> Option<Vec<u8>> {
        let profile = self.outline.profile;
        let is_usable = |profile: &&[u8]| profile.len() <= MAX_PROFILE_BYTES;
        profile.filter(is_usable).map(<[u8]>::to_vec)
    }

    /// The still picture.
    pub fn still(&self) -> Option<&Bitstream<'a>> {
        match &self.outline.pixels {
            Pixels::Still(bitstream) => Some(bitstream),
            Pixels::Animation(..) => None,
        }
    }

    /// The data of the frames of an animation, and the number of times that they are played.
    pub fn frames(&self) -> (&[&'a [u8]], u16) {
        match &self.outline.pixels {
            Pixels::Still(_) => (&[], 1),
            Pixels::Animation(frames, loops) => (frames, *loops),
        }
    }
}
