//! Chooses between lossy and lossless coding, by the pixels alone.

use crate::bitstream::{self, Bitstream};
use crate::color_change;
use crate::error::EncodeError;
use crate::lossless_estimate::LosslessEstimate;
use crate::lossy_estimate;
use crate::options::{Effort, Mode, Options};
use crate::pixel_source::PixelSource;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The codings that are made of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodingPlan {
    Lossless,
    Lossy,
    /// Lossy if that takes at most this many bytes; otherwise both ways, and the smaller one is
    /// kept.
    LossyUpTo(usize),
    /// Both ways; the smaller one is kept.
    Smaller,
}

impl CodingPlan {
    /// Chooses by the mode, and with [`Mode::Auto`] by the pixels.
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

    /// Chooses by the mode, and with [`Mode::Auto`] by the estimate of a picture's lossless size.
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

/// Encodes a picture by the plan for its mode and its pixels.
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

/// Encodes a picture by `lossy`; `None` if the plan, or the size of the lossy file, needs a
/// lossless coding as well.
///
/// # Errors
/// The errors of `lossy`.
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

/// The smaller one of the two codings of a picture.
#[derive(Debug)]
pub struct Smaller {
    pub bitstream: Bitstream,
    /// A lower bound of the other coding's bytes; `None` if there is none.
    pub larger: Option<usize>,
}

/// Encodes a picture both ways, and with reduced colors if that does not show, and keeps the
/// smallest coding. The lossy one is skipped if the exact one takes at most [`enough`] bytes.
///
/// # Errors
/// See [`EncodeError`].
pub fn smaller(source: &impl PixelSource, options: &Options<'_>) -> Result<Smaller, EncodeError> {
    let reduced = bitstream::reduced(source, options)?;
    Ok(Both::code(source, options, options.effort, reduced)?.smaller())
}

/// The same choice as of [`smaller`], for a frame of an animation, whose colors are not reduced:
/// pixels would change where it does. If the effort is above medium,
/// the lossless coding is made with medium effort first, and with the higher one unless the lossy
/// coding is clearly smaller, which is so for many frames.
///
/// In 506 trials with frames of GIFs of more than 200 bytes, the higher effort saved at most 8 %,
/// and took about 15 times as long.
///
/// # Errors
/// See [`EncodeError`].
pub fn smaller_of_frame(
    source: &impl PixelSource,
    options: &Options<'_>,
) -> Result<Smaller, EncodeError> {
    let effort = options.effort.min(Effort::Medium);
    let mut both = Both::code(source, options, effort, None)?;
    if effort < options.effort && !both.is_lossy_clearly_smaller() {
        let lossless = bitstream::lossless(source, options)?;
        if lossless.size() < both.lossless.size() {
            both.lossless = lossless;
        }
    }
    Ok(both.smaller())
}

/// Whether `larger` bytes are at least a quarter more than `smaller` bytes. Pictures that are
/// similar then need not be coded both ways.
pub fn is_clearly_smaller(smaller: usize, larger: usize) -> bool {
    larger * 4 >= smaller * 5
}

/// Both codings of a picture.
struct Both {
    /// Exact, or with reduced colors if that is smaller.
    lossless: Bitstream,
    /// `None` if the lossless coding is small enough, or if a small picture would change color
    /// visibly. It has no alpha if its colors alone take as many bytes as the lossless coding.
    lossy: Option<Bitstream>,
    /// The estimated bytes of the lossy coding.
    expected: usize,
}

impl Both {
    /// Encodes a picture both ways. The lossless coding is made with `effort`; it gives way to
    /// `reduced` if that is smaller.
    fn code(
        source: &impl PixelSource,
        options: &Options<'_>,
        effort: Effort,
        reduced: Option<Bitstream>,
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
        let exact = lossless.expect("it is always coded");
        let exact_size = exact.size();
        let is_smaller = |reduced: &Bitstream| reduced.size() < exact_size;
        let lossless = reduced.filter(is_smaller).unwrap_or(exact);
        // With two threads, the lossy coding may have begun before the lossless one turned out to
        // be small enough. The result must not depend on the number of threads.
        let mut lossy = lossy.filter(|_| exact_size > enough(expected));
        if is_tiny((width, height))
            && let Some(coded) = &lossy
            && !color_change::is_worth_it(source, [coded.size(), exact_size], options)?
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

/// Codes a picture lossy; `None` if its lossless coding takes at most [`enough`] bytes.
/// `lossless_size` returns the bytes of the lossless coding, or `usize::MAX` before it is done.
/// `colors` and `alpha` code the two parts of `source`. Alpha is left out if the colors alone take
/// as many bytes as the lossless coding.
///
/// # Errors
/// The errors of the codings.
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

/// If the lossless coding takes at most this many bytes, the lossy coding is not tried.
fn enough(expected_lossy_size: usize) -> usize {
    /// A file of at most this many bytes is not worth a second coding.
    const LEAST: usize = 256;
    expected_lossy_size.max(LEAST)
}

/// Whether a picture has at most as many pixels as one of 64 x 64. Coding it both ways takes little
/// time, and it is coded lossy only if that is worth the changes of color.
pub fn is_tiny((width, height): (usize, usize)) -> bool {
    const PIXELS: usize = 1 << 12;
    width * height <= PIXELS
}

/// The most pixels of a picture whose two codings, or of a frame that, may be coded on a thread
/// beside others. A larger one would hold the core for longer than a new conversion should wait,
/// and has enough rows for several threads within one coding.
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

    #[test]
    fn tiny_pictures_and_graphics_are_coded_both_ways_and_others_by_their_estimate() {
        let plan = |mode, side: u32, samples: &[u8]| {
            let picture = Picture::new(side, side, ColorType::Rgb8, samples);
            let options = Options {
                mode,
                ..Options::lossy(85)
            };
            let plan = CodingPlan::choose(&picture.expect("a good picture"), &options);
            plan.expect("it is not cancelled")
        };
        let mut random = Random::new(2);
        let noise: Vec<u8> = (0..65 * 65).flat_map(|_| [random.byte(); 3]).collect();
        let tiny = plan(Mode::Auto, 64, &noise[..64 * 64 * 3]);
        assert!(matches!(tiny, CodingPlan::Smaller));
        let graphic = plan(Mode::Auto, 65, &[7; 65 * 65 * 3]);
        assert!(matches!(graphic, CodingPlan::Smaller));
        let CodingPlan::LossyUpTo(most) = plan(Mode::Auto, 65, &noise) else {
            panic!("noise is no graphic");
        };
        // A byte a pixel, of which a lossless file may take two thirds.
        let percent = 100 * most / (65 * 65);
        assert!((53..84).contains(&percent), "{percent} %");
        let named = [Mode::Lossy, Mode::Lossless].map(|mode| plan(mode, 65, &noise));
        assert!(matches!(named, [CodingPlan::Lossy, CodingPlan::Lossless]));
    }

    #[test]
    fn no_second_coding_is_made_that_is_not_worth_it() {
        let lossy = |bytes| Bitstream {
            alpha: None,
            frame: vec![0; bytes],
            is_lossless: false,
            is_reduced: false,
        };
        // The expected and the lossless size, the bytes of the lossy colors, and whether these and
        // alpha are coded.
        for (expected, lossless, colors, coded) in [
            (0, 256, 10, [false, false]),
            (0, 257, 10, [true, true]),
            (300, 300, 10, [false, false]),
            (300, 301, 10, [true, true]),
            // A chunk's header has 8 bytes.
            (0, 1000, 992, [true, false]),
            (0, 1000, 990, [true, true]),
        ] {
            let found = lossy_unless_larger(
                &mut (),
                expected,
                || lossless,
                |()| Ok(lossy(colors)),
                |()| Ok(Some(vec![1])),
            );
            let found = found.expect("it is not cancelled");
            let alpha = found.as_ref().is_some_and(|lossy| lossy.alpha.is_some());
            let case = format!("{expected}, {lossless}, {colors}");
            assert_eq!([found.is_some(), alpha], coded, "{case}");
        }
    }
}
