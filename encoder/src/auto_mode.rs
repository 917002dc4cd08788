//! Chooses between lossy and lossless coding, by the pixels alone.

use crate::bitstream::{self, Bitstream};
use crate::color_change;
use crate::error::EncodeError;
use crate::lossless_estimate::LosslessEstimate;
use crate::lossy_estimate;
use crate::options::{Effort, Mode, Options};
use crate::pixel_source::PixelSource;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How a picture is to be coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodingPlan {
    Lossless,
    Lossy,
    /// Lossy if that takes at most so many bytes; otherwise both ways, and the smaller one is kept.
    LossyUpTo(usize),
    /// Both ways; the smaller one is kept.
    Smaller,
}

impl CodingPlan {
    /// Chooses by the mode, and where that leaves it open, by the pixels.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`].
    pub fn choose(
        source: &impl PixelSource,
        options: &Options<'_>,
    ) -> Result<CodingPlan, EncodeError> {
        Ok(match options.mode {
            Mode::Lossless => CodingPlan::Lossless,
            Mode::Lossy => CodingPlan::Lossy,
            // An estimate would take as long as the coding.
            Mode::Auto if is_tiny(source.size()) => CodingPlan::Smaller,
            Mode::Auto => {
                CodingPlan::by(&LosslessEstimate::of(source, options.workers())?, options)
            }
        })
    }

    /// Chooses by the estimate of a picture's lossless size if the mode leaves it open.
    pub fn by(estimate: &LosslessEstimate, options: &Options<'_>) -> CodingPlan {
        match options.mode {
            Mode::Lossless => CodingPlan::Lossless,
            Mode::Lossy => CodingPlan::Lossy,
            Mode::Auto if is_tiny(estimate.size()) => CodingPlan::Smaller,
            Mode::Auto if estimate.is_graphic() => CodingPlan::Smaller,
            // Lossless files are at most a third smaller than they are estimated.
            Mode::Auto => CodingPlan::LossyUpTo(estimate.bytes(options.near_lossless) / 3 * 2),
        }
    }
}

/// Encodes a picture as its mode and its pixels call for.
///
/// # Errors
/// See [`EncodeError`].
pub fn encode(source: &impl PixelSource, options: &Options<'_>) -> Result<Bitstream, EncodeError> {
    encode_by(CodingPlan::choose(source, options)?, source, options)
}

/// Encodes a picture by a plan.
///
/// # Errors
/// See [`EncodeError`].
pub fn encode_by(
    plan: CodingPlan,
    source: &impl PixelSource,
    options: &Options<'_>,
) -> Result<Bitstream, EncodeError> {
    match plan {
        CodingPlan::Lossless => bitstream::lossless(source, options),
        CodingPlan::Lossy => bitstream::lossy(source, options),
        CodingPlan::LossyUpTo(most) => {
            let lossy = bitstream::lossy(source, options)?;
            if lossy.size() <= most {
                return Ok(lossy);
            }
            let lossless = bitstream::lossless(source, options)?;
            Ok(if lossless.size() <= lossy.size() {
                lossless
            } else {
                lossy
            })
        }
        CodingPlan::Smaller => Ok(smaller(source, options)?.bitstream),
    }
}

/// Encodes a picture by `lossy` if its plan comes to that; `None` if lossless coding has to be
/// tried.
///
/// # Errors
/// Those of `lossy`.
pub fn encode_if_lossy(
    plan: CodingPlan,
    lossy: impl FnOnce() -> Result<Bitstream, EncodeError>,
) -> Result<Option<Bitstream>, EncodeError> {
    Ok(match plan {
        CodingPlan::Lossless | CodingPlan::Smaller => None,
        CodingPlan::Lossy => Some(lossy()?),
        CodingPlan::LossyUpTo(most) => Some(lossy()?).filter(|lossy| lossy.size() <= most),
    })
}

/// The smaller one of two codings.
#[derive(Debug)]
pub struct Smaller {
    pub bitstream: Bitstream,
    /// The bytes that the other coding takes at least; `None` if it was not tried.
    pub larger: Option<usize>,
}

/// Encodes a picture both ways, and keeps the smaller one. Lossy coding is left out if the lossless
/// file takes no more than the lossy one is expected to, or next to nothing.
///
/// # Errors
/// See [`EncodeError`].
pub fn smaller(source: &impl PixelSource, options: &Options<'_>) -> Result<Smaller, EncodeError> {
    Ok(Both::code(source, options, options.effort)?.smaller())
}

/// [`smaller`] for a frame of an animation; many are clearly smaller lossy. Above effort `medium`,
/// the lossless coding is first tried with that, and with the effort of the options only if it
/// comes close.
///
/// In 506 trials with frames of GIFs, the higher effort saved at most 8 % where more than 200 bytes
/// were left, and took some 15 times as long.
///
/// # Errors
/// See [`EncodeError`].
pub fn smaller_of_frame(
    source: &impl PixelSource,
    options: &Options<'_>,
) -> Result<Smaller, EncodeError> {
    let effort = options.effort.min(Effort::Medium);
    let mut both = Both::code(source, options, effort)?;
    if effort < options.effort && !both.is_lossy_clearly_smaller() {
        let lossless = bitstream::lossless(source, options)?;
        if lossless.size() < both.lossless.size() {
            both.lossless = lossless;
        }
    }
    Ok(both.smaller())
}

/// Whether a coding of `smaller` bytes is so much smaller than one of `larger` bytes, which takes a
/// quarter more, that similar pictures need not be coded both ways.
pub fn is_clearly_smaller(smaller: usize, larger: usize) -> bool {
    larger * 4 >= smaller * 5
}

/// Both codings of a picture.
struct Both {
    lossless: Bitstream,
    /// `None` if the lossless one is small enough, or a tiny picture changes more than it is worth;
    /// without alpha if the colors alone take as many bytes as the lossless one.
    lossy: Option<Bitstream>,
    /// The bytes that the lossy coding is expected to take.
    expected: usize,
}

impl Both {
    /// Encodes a picture both ways, `effort` being that of the lossless coding.
    fn code(
        source: &impl PixelSource,
        options: &Options<'_>,
        effort: Effort,
    ) -> Result<Both, EncodeError> {
        let (width, height) = source.size();
        let workers = options.workers();
        let is_small = width * height <= SIDE_BY_SIDE;
        let workers = workers.at_most(if is_small { 2 } else { 1 });
        let expected = lossy_estimate::expected_lossy_size(source, options.quality, workers)?;
        let lossless_options = Options { effort, ..*options };
        let lossless_size = AtomicUsize::new(usize::MAX);
        let mut coded = workers.run_checked(2, |index| {
            if index == 0 {
                let lossless = bitstream::lossless(source, &lossless_options)?;
                lossless_size.store(lossless.size(), Ordering::Relaxed);
                return Ok(Some(lossless));
            }
            lossy_unless_larger(
                &mut (),
                expected,
                || lossless_size.load(Ordering::Relaxed),
                |()| bitstream::lossy_without_alpha(source, options),
                |()| bitstream::lossy_alpha(source, options),
            )
        })?;
        let (lossy, lossless) = (coded.pop().flatten(), coded.pop().flatten());
        let lossless = lossless.expect("it is always coded");
        // The lossy one may have been coded side by side with a lossless one that is small enough;
        // the outcome does not depend on that.
        let mut lossy = lossy.filter(|_| lossless.size() > enough(expected));
        if is_tiny((width, height))
            && let Some(coded) = &lossy
            && !color_change::is_worth_it(source, [coded.size(), lossless.size()], options)?
        {
            lossy = None;
        }
        Ok(Both {
            lossless,
            lossy,
            expected,
        })
    }

    fn is_lossy_clearly_smaller(&self) -> bool {
        let is_clear = |lossy: &Bitstream| is_clearly_smaller(lossy.size(), self.lossless.size());
        self.lossy.as_ref().is_some_and(is_clear)
    }

    fn smaller(self) -> Smaller {
        let Both {
            lossless,
            lossy,
            expected,
        } = self;
        match lossy {
            None => Smaller {
                larger: (lossless.size() <= expected).then_some(expected),
                bitstream: lossless,
            },
            Some(lossy) if lossy.size() < lossless.size() => Smaller {
                larger: Some(lossless.size()),
                bitstream: lossy,
            },
            Some(lossy) => Smaller {
                larger: Some(lossy.frame.len()),
                bitstream: lossless,
            },
        }
    }
}

/// Codes a picture lossy, unless it has been coded lossless in so few bytes that this is not tried.
/// `lossless_size` are the bytes of that, as far as it is done. `colors` and `alpha` code the two
/// parts of `source`; alpha is left out if the colors alone take as many bytes.
///
/// # Errors
/// Those of the codings.
pub fn lossy_unless_larger<S>(
    source: &mut S,
    expected: usize,
    lossless_size: impl Fn() -> usize,
    colors: impl FnOnce(&mut S) -> Result<Bitstream, EncodeError>,
    alpha: impl FnOnce(&mut S) -> Result<Option<Vec<u8>>, EncodeError>,
) -> Result<Option<Bitstream>, EncodeError> {
    if lossless_size() <= enough(expected) {
        return Ok(None);
    }
    let mut lossy = colors(source)?;
    if lossy.size() < lossless_size() {
        lossy.alpha = alpha(source)?;
    }
    Ok(Some(lossy))
}

/// If the lossless file is at most this many bytes, the lossy encoder is not tried.
fn enough(expected_lossy_size: usize) -> usize {
    /// The bytes that are next to nothing.
    const LEAST: usize = 256;
    expected_lossy_size.max(LEAST)
}

/// Whether a picture has so few pixels, up to 64 x 64, that coding it both ways costs next to
/// nothing, and that lossy coding has to be worth its changes of color.
pub fn is_tiny((width, height): (usize, usize)) -> bool {
    const PIXELS: usize = 1 << 12;
    width * height <= PIXELS
}

/// The most pixels of a picture that is worked on beside others. Larger ones take longer than a
/// conversion that arrives should wait for its core to come back, and have rows enough for several
/// threads.
pub const SIDE_BY_SIDE: usize = 1 << 19;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::{ColorType, Picture};
    use crate::testing::Random;

    const SIDE: u32 = 48;

    /// The smaller coding of a picture as a frame at each effort above medium, and its lossless
    /// sizes with medium effort and with that one.
    fn coded(pixels: &[u8]) -> [(Smaller, [usize; 2]); 2] {
        let picture = Picture::new(SIDE, SIDE, ColorType::Rgb8, pixels).expect("a good picture");
        [Effort::High, Effort::Max].map(|effort| {
            let options = Options {
                effort,
                ..Options::lossy(85)
            };
            let lossless = [Effort::Medium, effort].map(|effort| {
                let options = Options { effort, ..options };
                let lossless = bitstream::lossless(&picture, &options);
                lossless.expect("it is not cancelled").size()
            });
            let smaller = smaller_of_frame(&picture, &options).expect("it is not cancelled");
            (smaller, lossless)
        })
    }

    #[test]
    fn frames_that_are_clearly_smaller_lossy_are_coded_lossless_with_medium_effort_only() {
        let mut random = Random::new(1);
        let places = (0..SIDE * SIDE).map(|at| [at % SIDE, at / SIDE]);
        let noisy = |place: u32| (place * 3) as u8 + random.byte() / 16;
        let pixels: Vec<u8> = places
            .flat_map(|[x, y]| [x, y, x.midpoint(y)])
            .map(noisy)
            .collect();
        for (smaller, [medium, higher]) in coded(&pixels) {
            assert!(!smaller.bitstream.is_lossless);
            assert_ne!(medium, higher, "the efforts cannot be told apart");
            assert_eq!(smaller.larger, Some(medium));
        }
    }

    #[test]
    fn frames_that_are_not_are_coded_lossless_with_the_effort_of_the_options() {
        let mut random = Random::new(1);
        let colors: Vec<u8> = (0..40).map(|_| random.byte()).collect();
        let cell = |at: u32| (at % SIDE / 3 * 7 + at / SIDE / 5 * 11 + at % 5) as usize % 38;
        let pixels: Vec<u8> = (0..SIDE * SIDE)
            .flat_map(|at| [0, 1, 2].map(|channel| colors[cell(at) + channel]))
            .collect();
        for (smaller, [medium, higher]) in coded(&pixels) {
            assert!(smaller.bitstream.is_lossless);
            assert!(higher < medium, "the efforts cannot be told apart");
            assert_eq!(smaller.bitstream.size(), higher);
        }
    }
}
