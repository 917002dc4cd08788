//! The outcome of a conversion.

use super::search::Found;
use std::time::Duration;
use towebp_encoder::{Coding, Encoded};

/// A converted picture.
#[derive(Clone, Debug)]
pub struct Conversion {
    /// The WebP file.
    pub webp: Vec<u8>,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// How the pixels are coded.
    pub coding: Coding,
    /// The result of a search; `None` if the quality was given.
    pub found: Option<FoundQuality>,
    /// The time that each stage took.
    pub timing: Timing,
    /// The ThumbHash of the picture, or of the first frame, in base64, if the parameters ask for
    /// it.
    pub placeholder: Option<String>,
    /// Whether the input is to be used in place of the WebP, which is not smaller.
    pub prefers_original: bool,
}

/// The result of a search over quality.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FoundQuality {
    /// The quality, 0 to 100; `None` if no pixel is coded lossy.
    pub quality: Option<u8>,
    /// The score of SSIMULACRA2, if the goal is a score.
    pub score: Option<f64>,
    /// The number of encodings that it took.
    pub encodings: u8,
}

/// The time that each stage of a conversion took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timing {
    /// Decoding, orientation, color conversion and resizing.
    pub decode: Duration,
    /// Drawing watermarks.
    pub watermark: Duration,
    /// Encoding the WebP.
    pub encode: Duration,
}

impl Conversion {
    pub(super) fn new(encoded: Encoded, (width, height): (u32, u32), timing: Timing) -> Conversion {
        Conversion {
            webp: encoded.file,
            width,
            height,
            coding: encoded.coding,
            found: None,
            timing,
            placeholder: None,
            prefers_original: false,
        }
    }

    pub(super) fn found(found: Found, size: (u32, u32), timing: Timing) -> Conversion {
        let Found {
            encoded,
            quality,
            score,
            encodings,
        } = found;
        Conversion {
            found: Some(FoundQuality {
                quality,
                score,
                encodings,
            }),
            ..Conversion::new(encoded, size, timing)
        }
    }
}

/// Runs a stage, and adds the time that it took to `spent`.
#[cfg(not(target_family = "wasm"))]
pub(super) fn timed<T>(spent: &mut Duration, stage: impl FnOnce() -> T) -> T {
    let start = std::time::Instant::now();
    let result = stage();
    *spent += start.elapsed();
    result
}

/// Runs a stage. WebAssembly has no clock of its own, and `Instant::now` panics there: its host
/// measures the conversion as a whole.
#[cfg(target_family = "wasm")]
pub(super) fn timed<T>(_spent: &mut Duration, stage: impl FnOnce() -> T) -> T {
    stage()
}
