//! Encodes pixels as a WebP file: the RIFF container, the alpha plane, VP8 and lossless VP8L (RFC 9649, RFC 6386).
//!
//! A library of its own inside the crate: it takes plain slices and sizes and knows nothing of where they
//! come from.

#[cfg(all(test, not(feature = "testing")))]
compile_error!(
    "the tests need the feature `testing`: cargo test -p towebp-encoder --features testing"
);

mod alpha;
mod animation;
mod cancel;
mod coded;
mod cpu;
mod drawn;
mod error;
mod hidden;
#[cfg(feature = "testing")]
pub mod judge;
mod memory;
mod picture;
mod riff;
mod source;
mod threads;
mod vp8;
mod vp8l;
mod ycbcr;

#[cfg(feature = "testing")]
pub use animation::player;
pub use animation::{Animation, Covered, Rect};
pub use cancel::{Cancel, Cancelled};
pub use cpu::Simd;
pub use error::EncodeError;
pub use hidden::fill as fill_hidden;
pub use memory::memory;
pub use picture::{Layout, MAX_SIDE, RgbPicture};
pub use threads::{CpuBudget, OccupiedCore};
pub use ycbcr::Planes;

use cancel::NEVER;
use threads::Workers;

/// How much work goes into a file. The more, the fewer bytes at equal quality.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// The quickest.
    Low,
    /// What suits most uses.
    #[default]
    Medium,
    /// Several times the work of [`Effort::Medium`], for files that are sent often.
    High,
}

impl Effort {
    /// What [`Effort::parse`] accepts, for messages.
    pub const ALLOWED: &str = "low, medium or high";

    /// Reads an effort's exact name.
    pub fn parse(text: &str) -> Option<Effort> {
        match text {
            "low" => Some(Effort::Low),
            "medium" => Some(Effort::Medium),
            "high" => Some(Effort::High),
            _ => None,
        }
    }
}

/// How pixels are coded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// With loss, or without where that takes no more bytes.
    #[default]
    Auto,
    /// With loss.
    Lossy,
    /// Without loss.
    Lossless,
}

impl Mode {
    /// What [`Mode::parse`] accepts, for messages.
    pub const ALLOWED: &str = "auto, lossy or lossless";

    /// Reads a mode's exact name.
    pub fn parse(text: &str) -> Option<Mode> {
        match text {
            "auto" => Some(Mode::Auto),
            "lossy" => Some(Mode::Lossy),
            "lossless" => Some(Mode::Lossless),
            _ => None,
        }
    }
}

/// What the caller may choose.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Quality, 0 (smallest) to 100 (best); higher values count as 100.
    pub quality: u8,
    /// How pixels are coded.
    pub mode: Mode,
    /// Quality of alpha beside lossy pixels, 0 to 100; 100 is without loss, and higher values count as 100.
    pub alpha_quality: u8,
    /// How near lossless pictures stay to what they were, 0 to 100; 100 is exactly, and higher values count as 100. Where it is busy,
    /// samples of colour are off by up to 1 from 80 on, 2 from 60 on, 3 from 40 on, 4 from 20 on, and 5 below.
    pub near_lossless: u8,
    /// Whether fully transparent pixels of lossless pictures keep their colour, which nobody sees.
    pub exact: bool,
    /// How much work goes into it.
    pub effort: Effort,
    /// The number of token partitions as a power of two, 0 to 3; chosen by the amount of data if `None`.
    pub log2_partitions: Option<u8>,
    /// Vector instructions to use. The file is the same with all of them.
    pub simd: Simd,
    /// Most threads to work on the picture, at least 1. The file is the same with any number.
    pub threads: usize,
    /// The budget that gives cores to all threads but the first; without one they start freely.
    pub cpu_budget: Option<&'a CpuBudget>,
    /// What may stop the work.
    pub cancel: &'a Cancel<'a>,
}

impl<'a> Options<'a> {
    /// Coding with loss at `quality`, 0 (smallest) to 100 (best), by one thread at medium effort, with nobody asked. Other modes are
    /// chosen by [`Options::mode`], as `Options { mode: Mode::Auto, ..Options::lossy(85) }`.
    pub fn lossy(quality: u8) -> Options<'static> {
        Options {
            quality,
            mode: Mode::Lossy,
            alpha_quality: 100,
            near_lossless: 100,
            exact: false,
            effort: Effort::default(),
            log2_partitions: None,
            simd: Simd::detect(),
            threads: 1,
            cpu_budget: None,
            cancel: &NEVER,
        }
    }

    /// Coding without loss, by one thread at medium effort, with nobody asked.
    pub fn lossless() -> Options<'static> {
        Options {
            mode: Mode::Lossless,
            ..Options::lossy(100)
        }
    }

    fn check(&self) -> Result<(), EncodeError> {
        if self.log2_partitions.is_some_and(|log2| log2 > 3) {
            return Err(EncodeError::PartitionCount);
        }
        Ok(())
    }

    fn workers(&self) -> Workers<'a> {
        Workers::new(self.threads, self.cpu_budget, self.cancel)
    }

    fn settings(&self) -> vp8::Settings<'_> {
        vp8::Settings {
            quality: self.quality,
            effort: self.effort,
            log2_partitions: self.log2_partitions,
            simd: self.simd,
            workers: self.workers(),
        }
    }

    fn lossless_settings(&self) -> vp8l::Settings<'_> {
        vp8l::Settings {
            effort: self.effort,
            simd: self.simd,
            workers: self.workers(),
        }
    }
}

/// What stands beside the pixels in a file (RFC 9649, section 2.7.1.5).
#[derive(Clone, Copy, Debug, Default)]
pub struct Metadata<'a> {
    /// The ICC profile that the pixels are to be read by; without one they are sRGB.
    pub icc: Option<&'a [u8]>,
    /// Exif, from its TIFF header on.
    pub exif: Option<&'a [u8]>,
    /// XMP, as UTF-8.
    pub xmp: Option<&'a [u8]>,
}

impl Metadata<'_> {
    fn is_empty(&self) -> bool {
        self.icc.is_none() && self.exif.is_none() && self.xmp.is_none()
    }
}

/// A file, and what was chosen for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The WebP file.
    pub file: Vec<u8>,
    /// How its pixels are coded.
    pub coding: Coding,
}

/// How the pixels of a file are coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// With loss.
    Lossy,
    /// Without loss.
    Lossless,
    /// Some frames of an animation with loss, some without.
    Mixed,
}

impl Coding {
    /// In small letters.
    pub fn name(self) -> &'static str {
        match self {
            Coding::Lossy => "lossy",
            Coding::Lossless => "lossless",
            Coding::Mixed => "mixed",
        }
    }
}

/// Encodes `picture` as a WebP file.
///
/// # Errors
/// See [`EncodeError`].
pub fn encode(picture: &RgbPicture<'_>, options: &Options<'_>) -> Result<Vec<u8>, EncodeError> {
    encode_telling(picture, options, &Metadata::default()).map(|encoded| encoded.file)
}

/// [`encode`] with metadata beside the pixels, which tells what it has chosen.
///
/// # Errors
/// See [`EncodeError`].
pub fn encode_telling(
    picture: &RgbPicture<'_>,
    options: &Options<'_>,
    metadata: &Metadata<'_>,
) -> Result<Encoded, EncodeError> {
    let coded = coded::code(picture, options)?;
    Ok(Encoded {
        file: riff::still(
            (picture.width, picture.height),
            &coded,
            metadata,
            options.workers(),
        )?,
        coding: coded.coding(),
    })
}

/// Encodes a picture of `width` x `height` pixels that `source` gives in YUV, with loss, whatever [`Options::mode`] says, with metadata
/// beside it. Nothing is made sharper: the samples are taken to be what a decoder is to interpolate.
///
/// It takes as much memory as [`memory()`] says of [`Layout::Rgb`], planes included: they are given up as soon as all is decided. Should
/// the picture have to be coded anew, they are asked for again.
///
/// # Errors
/// See [`EncodeError`], and those of `source`.
pub fn encode_planes(
    size: (u32, u32),
    source: impl Fn() -> Result<Planes, EncodeError>,
    options: &Options<'_>,
    metadata: &Metadata<'_>,
) -> Result<Encoded, EncodeError> {
    let coded = coded::code_planes(size, source, options)?;
    Ok(Encoded {
        file: riff::still(size, &coded, metadata, options.workers())?,
        coding: coded.coding(),
    })
}

/// For `fuzz/`: the frame of a good picture, which an independent decoder makes the same of as the encoder.
///
/// # Panics
/// When it does not.
#[cfg(feature = "testing")]
pub fn assert_decoders_agree(picture: &RgbPicture<'_>, options: &Options<'_>) -> Vec<u8> {
    vp8::assert_decoders_agree(picture, &options.settings())
}

#[cfg(test)]
mod tests {
    use super::cancel::tests::Checks;
    use super::*;

    fn with_threads() -> impl Iterator<Item = (Simd, usize)> {
        let supported = Simd::supported().into_iter();
        supported.flat_map(|simd| [(simd, 1), (simd, 3)])
    }

    #[test]
    fn options_say_by_their_name_whether_pixels_change() {
        let pixels: Vec<u8> = (0..48 * 48 * 3u32)
            .map(|i| (i.wrapping_mul(i) >> 6) as u8)
            .collect();
        let picture = RgbPicture {
            width: 48,
            height: 48,
            layout: Layout::Rgb,
            pixels: &pixels,
        };
        for (options, coding) in [
            (Options::lossy(75), Coding::Lossy),
            (Options::lossy(100), Coding::Lossy),
            (Options::lossless(), Coding::Lossless),
        ] {
            let encoded = encode_telling(&picture, &options, &Metadata::default());
            let encoded = encoded.expect("a good picture");
            assert_eq!(encoded.coding, coding);
            let (_, decoded) = judge::decode(&encoded.file);
            let decoded: Vec<u8> = decoded
                .iter()
                .flat_map(|pixel| &pixel[..3])
                .copied()
                .collect();
            assert_eq!(decoded == pixels, coding == Coding::Lossless, "{coding:?}");
        }
    }

    #[test]
    fn planes_give_the_file_of_the_picture_that_they_were() {
        for (width, height) in [(1, 1), (17, 33), (95, 160)] {
            let pixels: Vec<u8> = (0..width * height * 3)
                .map(|i: u32| (i.wrapping_mul(i) >> 6) as u8)
                .collect();
            let picture = RgbPicture {
                width,
                height,
                layout: Layout::Rgb,
                pixels: &pixels,
            };
            for (simd, threads) in with_threads() {
                let options = Options {
                    simd,
                    threads,
                    ..Options::lossy(75)
                };
                let workers = Workers::unlimited(1);
                let source = || {
                    let mut planes = Planes::from_picture(&picture, simd, workers)?;
                    // What is beyond the picture is the encoder's.
                    let (stride, rows) = (planes.luma_stride(), height as usize);
                    for row in planes.luma.chunks_mut(stride).take(rows) {
                        row[width as usize..].fill(99);
                    }
                    planes.luma[rows * stride..].fill(77);
                    Planes::from_samples((width, height), planes.luma, planes.chroma)
                };
                let size = (width, height);
                let encoded = encode_planes(size, source, &options, &Metadata::default());
                let encoded = encoded.expect("a good picture");
                assert_eq!(encoded.coding, Coding::Lossy);
                assert!(
                    Ok(encoded.file) == encode(&picture, &options),
                    "{width} x {height}, {simd:?}, {threads} threads"
                );
            }
        }
    }

    #[test]
    fn planes_of_other_sizes_are_refused() {
        let planes = |size, luma, chroma| {
            Planes::from_samples(size, vec![0; luma], [vec![0; 64], vec![0; chroma]])
        };
        assert!(planes((16, 1), 256, 64).is_ok());
        assert_eq!(planes((0, 1), 256, 64), Err(EncodeError::Dimensions));
        assert_eq!(
            planes((1, MAX_SIDE + 1), 256, 64),
            Err(EncodeError::Dimensions)
        );
        assert_eq!(planes((17, 1), 256, 64), Err(EncodeError::PixelCount));
        assert_eq!(planes((16, 1), 255, 64), Err(EncodeError::PixelCount));
        assert_eq!(planes((16, 1), 256, 65), Err(EncodeError::PixelCount));
        let options = Options::lossy(75);
        let source = || planes((16, 1), 256, 64);
        let outcome = encode_planes((1, 16), source, &options, &Metadata::default());
        assert_eq!(outcome, Err(EncodeError::PixelCount));
    }

    #[test]
    fn a_cancelled_picture_ends_at_the_next_row() {
        let (width, height) = (160, 320);
        let pixels: Vec<u8> = (0..width * height * 4)
            .map(|i: u32| (i.wrapping_mul(i) >> 7) as u8)
            .collect();
        let picture = RgbPicture {
            width,
            height,
            layout: Layout::Rgba,
            pixels: &pixels,
        };
        let encode_for = |allowed: usize, threads: usize| {
            let checks = Checks::new(allowed);
            let question = || checks.are_used_up();
            let options = Options {
                threads,
                cancel: &Cancel::when(&question),
                ..Options::lossy(75)
            };
            let outcome = encode(&picture, &options);
            (outcome.map(|_| ()), checks.asked.into_inner())
        };
        let (outcome, questions) = encode_for(usize::MAX, 1);
        assert_eq!(outcome, Ok(()));
        let rows = height as usize / 16;
        assert!(
            questions >= rows,
            "{questions} checks for {rows} rows of macroblocks"
        );
        for threads in [1, 2, 8] {
            for allowed in 0..questions {
                let (outcome, asked) = encode_for(allowed, threads);
                let what = format!("{threads} threads, cancelled after {allowed} checks");
                assert_eq!(outcome, Err(EncodeError::Cancelled), "{what}");
                // Each thread may be about to check when one of them hears the answer.
                assert!(asked <= allowed + threads, "{what}: {asked} checks");
            }
        }
    }
}
