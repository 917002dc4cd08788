//! The parameters of the normal loop filter: RFC 6386, sections 9.6 and 15.
//!
//! The filter is not part of prediction: it runs over a finished picture, so the encoder need not
//! run it.

pub mod decoder;

use super::constants::Constants;
use super::quantize::QuantizerIndex;
use super::segment::Segmentation;
use super::tables::AC_STEPS;

/// Parameters of the loop filter (sections 9.3 and 15.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterParameters {
    /// Filter level of each segment, 0 (none) to 63.
    pub levels: [u8; 4],
    /// 0 to 7: the higher, the smaller the differences that are smoothed.
    pub sharpness: u8,
}

impl FilterParameters {
    /// Chooses the parameters by the quantizers of the segments.
    ///
    /// Macroblock edges are visible before SSIMULACRA2 counts them: it prefers about half of this
    /// strength, with which skin, skies and soft backgrounds show blocks below quality 60. DSSIM
    /// and Butteraugli prefer this strength. While all segments had nearly the same steps, calm
    /// ones needed 80 and the others 45 (`Constants::filter_strength`); since calm ones have finer
    /// steps, one strength serves all of them.
    ///
    /// Sharpness is 0, because it spares edges beside which there is a little texture, and those
    /// are the edges that remain visible: 4 leaves 13 points more of the steps at edges. Measuring
    /// after the encode finds no better levels: squared error, gradients and SSIM of the filtered
    /// picture prefer a still stronger filter, unless they compare means of 4x4 blocks, which
    /// prefer a weaker one, as SSIMULACRA2 does.
    ///
    /// The mean of four judges is the same with other filters; only the steps at edges are not.
    /// Percent of bytes beside this filter, on 22 pictures at four qualities, and the mean steps
    /// beyond those of libwebp's method 4, which are 5.5 with this filter. Less for Intra4 is
    /// `mode_lf_delta` (section 9.6), as a share of the mean level.
    ///
    /// | filter | SSIMULACRA2 | DSSIM | Butteraugli | MS-SSIM | mean | steps |
    /// |---|---|---|---|---|---|---|
    /// | half the strength | -1.0 | 0 | +0.7 | +0.9 | +0.1 | 44.8 |
    /// | half of it for Intra4 | -0.9 | 0 | +0.6 | +0.6 | 0 | 34.1 |
    /// | none for Intra4 | -0.9 | 0 | +0.6 | +0.8 | +0.1 | 119.6 |
    /// | stronger where calm, by activity to the power of -0.2 | 0 | +0.1 | +0.1 | 0 | 0 | 9.3 |
    /// | strength 85, steps below 6 levels invisible | -0.2 | 0 | +0.4 | +0.6 | +0.1 | 28.7 |
    /// | sharpness 2 | -0.5 | 0 | +0.4 | +0.3 | 0 | 19.8 |
    pub fn choose(segmentation: &Segmentation, constants: &Constants) -> FilterParameters {
        FilterParameters {
            levels: segmentation
                .indices
                .map(|index| filter_level(index, constants)),
            sharpness: 0,
        }
    }

    /// Returns the level of the frame header. Decoders filter nothing if it is 0.
    pub fn frame_level(&self) -> u8 {
        self.levels.into_iter().max().unwrap_or(0)
    }
}

/// Returns the level of a segment. Quantization leaves steps at edges in proportion to its own
/// step; small ones do not show.
fn filter_level(index: QuantizerIndex, constants: &Constants) -> u8 {
    /// Highest level: at the coarsest steps, a higher one would wipe out flat graphics.
    const HIGHEST: i32 = 50;
    let level = AC_STEPS[usize::from(index)] * constants.filter_strength;
    ((level - constants.filter_invisible) / 256).clamp(0, HIGHEST) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vp8::quantize::{MAX_INDEX, QuantizerDeltas, Quantizers};

    const CONSTANTS: &Constants = &Constants::DEFAULT;

    fn level(index: QuantizerIndex) -> u8 {
        FilterParameters::choose(&Segmentation::single(index, CONSTANTS), CONSTANTS).frame_level()
    }

    #[test]
    fn fine_quantizers_leave_nothing_to_filter() {
        assert_eq!(level(0), 0);
    }

    #[test]
    fn coarser_quantizers_are_filtered_no_less() {
        for index in 0..MAX_INDEX {
            assert!(
                level(index) <= level(index + 1),
                "level {} at index {index}, then {}",
                level(index),
                level(index + 1)
            );
        }
        assert!(
            (10..=63).contains(&level(MAX_INDEX)),
            "level {} for the coarsest",
            level(MAX_INDEX)
        );
    }

    /// The step that quantization leaves between two flat macroblocks is within the filter's reach:
    /// half a step of chroma's DC on either side, where a pixel is an eighth of the DC.
    #[test]
    fn the_steps_that_quantization_leaves_are_filtered() {
        for index in 20..=MAX_INDEX {
            let level = i32::from(level(index));
            let deltas = QuantizerDeltas::at(index, CONSTANTS);
            let chroma = Quantizers::new(index, deltas, CONSTANTS).chroma;
            let step = chroma.step(0) / 8;
            // Section 15.2: twice the step plus half of it, against the limit at macroblock edges.
            assert!(
                step * 2 + step / 2 <= (level + 2) * 2 + level,
                "a step of {step} is left by level {level} at index {index}"
            );
        }
    }
}
