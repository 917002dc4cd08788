//! The memory that decoding a picture takes, known from its header.

use super::pixels::Layout;

/// The memory that decoding a picture takes, known from its header: nothing has been decoded yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Width in pixels, as stored.
    pub width: u32,
    /// Height in pixels, as stored.
    pub height: u32,
    /// The layout of the decoded pixels. An alpha channel that turns out to be opaque is dropped
    /// afterwards.
    pub layout: Layout,
    /// Most bytes that the decoder holds beside the pixels, profiles and other metadata included.
    pub decoder: u64,
}

impl Footprint {
    /// The number of pixels.
    pub fn pixel_count(&self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// The bytes of the decoded pixels.
    pub fn pixel_bytes(&self) -> u64 {
        self.pixel_count() * self.layout.channels() as u64
    }

    /// Most bytes that decoding to RGB or RGBA holds at a time, the pixels included: while the
    /// decoder is at work, or while an oriented copy is made.
    pub fn peak(&self) -> u64 {
        self.pixel_bytes() + self.decoder.max(self.pixel_bytes())
    }

    /// Most bytes that decoding to planes of `planes` bytes holds at a time. As
    /// [`Footprint::peak`], but one plane after the other is oriented.
    pub fn planes_peak(&self, planes: u64) -> u64 {
        planes + self.decoder.max(planes * 2 / 3)
    }
}
