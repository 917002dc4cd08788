//! The parameters of the normal loop filter: RFC 6386, sections 9.6 and 15.
//!
//! The filter lies outside of prediction: it runs over a finished picture, so the encoder itself need not run it.

#[cfg(any(test, fuzzing))]
pub mod decoder;

/// How strongly edges are smoothed (section 9.3 and 15.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterParameters {
    /// 0 (none) to 63, by segment.
    pub levels: [u8; 4],
    /// 0 to 7: the sharper, the smaller the differences that are smoothed.
    pub sharpness: u8,
}

impl FilterParameters {
    /// The level that the frame header carries: decoders filter nothing at all where it is 0.
    pub fn frame_level(&self) -> u8 {
        self.levels.into_iter().max().unwrap_or(0)
    }
}
