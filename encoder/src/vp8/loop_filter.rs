//! The parameters of the normal loop filter: RFC 6386, sections 9.6 and 15.
//!
//! The filter is not part of prediction: it runs over a finished picture, so the encoder need not
//! run it.

pub mod decoder;

use super::quantize::QuantizerIndex;
use super::segment::{Activity, CALM, Segmentation};
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
    /// Chooses the parameters by the quantizers and the content of the segments.
    ///
    /// Macroblock edges are visible before SSIMULACRA2 counts them: it asks for about half of this
    /// strength, with which skin, skies and soft backgrounds show blocks below quality 60. DSSIM
    /// and Butteraugli prefer this strength. The table shows, for levels of calm, middle and busy
    /// segments (in 1/256 of the step) and a sharpness, the bytes at equal SSIMULACRA2 and
    /// Butteraugli on ten photographs, and the steps at macroblock edges beyond libwebp's at equal
    /// bytes (percent, Y / Cb / Cr, in smooth places, at qualities 30 to 75; `benches/peers`):
    ///
    /// | levels, sharpness | SSIMULACRA2 | Butteraugli | steps |
    /// |---|---|---|---|
    /// | 42, 25, 31, 4 or 7 (what SSIMULACRA2 asks for) | -5.0 % | +0.8 % | +62 / +82 / +78 |
    /// | 160, 50, 31, 4 | -1.4 % | +0.4 % | +31 / +40 / +37 |
    /// | 160, 50, 31, 0, and 2 less for Intra4 | -1.6 % | +0.3 % | +28 / +42 / +37 |
    /// | 160, 50, 31, 0 | 0 | 0 | +18 / +24 / +22 |
    /// | **80, 45, 45, 0** | -1.0 % | 0.0 % | +18 / +23 / +21 |
    /// | 300, 100, 60, 6 | +2.8 % | +1.0 % | +22 / +21 / +20 |
    /// | 90, 70, 50, 0 | +2.4 % | -0.2 % | +7 / +10 / +9 |
    ///
    /// "2 less for Intra4" used `mode_lf_delta` (section 9.6).
    ///
    /// Sharpness is 0, because it spares edges beside which there is a little texture, and those
    /// are the edges that remain visible. Measuring after the encode finds no better levels:
    /// squared error, gradients and SSIM of the filtered picture ask for a still stronger filter,
    /// unless they compare means of 4x4 blocks, which ask for a weaker one, as SSIMULACRA2 does.
    pub fn choose(segmentation: &Segmentation) -> FilterParameters {
        FilterParameters {
            levels: std::array::from_fn(|i| {
                filter_level(segmentation.indices[i], segmentation.activities[i])
            }),
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
fn filter_level(index: QuantizerIndex, activity: Activity) -> u8 {
    /// Largest step that needs no filter, in 1/256 of a level.
    const INVISIBLE: i32 = 300;
    /// Highest level: at the coarsest steps, a higher one would wipe out flat graphics.
    const HIGHEST: i32 = 50;
    let strength = match activity {
        ..CALM => 80,
        CALM.. => 45,
    };
    let step = AC_STEPS[usize::from(index)];
    ((step * strength - INVISIBLE) / 256).clamp(0, HIGHEST) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vp8::quantize::{MAX_INDEX, QuantizerDeltas, Quantizers};

    fn parameters(index: QuantizerIndex, activity: Activity) -> FilterParameters {
        FilterParameters::choose(&Segmentation::single(index, activity))
    }

    #[test]
    fn fine_quantizers_leave_nothing_to_filter() {
        for activity in [0, 1500, 3583] {
            assert_eq!(
                parameters(0, activity).frame_level(),
                0,
                "activity {activity}"
            );
        }
    }

    #[test]
    fn coarser_quantizers_are_filtered_no_less() {
        for activity in [0, 899, 900, 2199, 2200, 3583, Activity::MAX] {
            let level = |index| parameters(index, activity).frame_level();
            for index in 0..MAX_INDEX {
                assert!(
                    level(index) <= level(index + 1),
                    "activity {activity}: level {} at index {index}, then {}",
                    level(index),
                    level(index + 1)
                );
            }
            assert!(
                (10..=63).contains(&level(MAX_INDEX)),
                "activity {activity}: level {} for the coarsest",
                level(MAX_INDEX)
            );
        }
    }

    #[test]
    fn calm_segments_are_filtered_most() {
        let segmentation = Segmentation {
            activities: [200, 1200, 1800, 2600],
            map: vec![0, 1, 2, 3],
            ..Segmentation::single(40, 0)
        };
        let [calm, face, cloth, leaves] = FilterParameters::choose(&segmentation).levels;
        assert!(calm > face, "{calm} {face}");
        assert_eq!((face, cloth), (cloth, leaves));
    }

    /// The step that quantization leaves between two flat macroblocks is within the filter's reach:
    /// half a step of chroma's DC on either side, where a pixel is an eighth of the DC.
    #[test]
    fn the_steps_that_quantization_leaves_are_filtered() {
        for index in 20..=MAX_INDEX {
            for activity in [0, 1500, 2600] {
                let parameters = parameters(index, activity);
                let level = i32::from(parameters.frame_level());
                let deltas = QuantizerDeltas::at(index);
                let chroma = Quantizers::new(index, deltas).chroma;
                let step = chroma.step(0) / 8;
                // Section 15.2: twice the step plus half of it, against the limit at macroblock
                // edges.
                assert!(
                    step * 2 + step / 2 <= (level + 2) * 2 + level,
                    "a step of {step} is left by level {level} at index {index}, activity {activity}"
                );
            }
        }
    }
}
