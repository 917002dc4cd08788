//! Chooses the parameters of the normal loop filter: RFC 6386, sections 9.6 and 15.
//!
//! The filter lies outside of prediction: it runs over a finished picture, so the encoder itself need not run it.

#[cfg(any(test, fuzzing))]
pub mod decoder;

use super::quantize::QuantizerIndex;
use super::segment::{Activity, Segmentation};
use super::tables::AC_STEPS;

/// How strongly edges are smoothed (section 9.3 and 15.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterParameters {
    /// 0 (none) to 63, by segment.
    pub levels: [u8; 4],
    /// 0 to 7: the sharper, the smaller the differences that are smoothed.
    pub sharpness: u8,
}

impl FilterParameters {
    /// What goes with the quantizers and the content of the segments.
    ///
    /// Bytes at equal SSIMULACRA2 on 24 and on 2 photographs; DSSIM moves the same way by half as much, PSNR hardly:
    ///
    /// | | |
    /// |---|---|
    /// | no filter at all | +0.9 / +1.2 % |
    /// | levels by the step alone (25/256 of it), sharpness 7 | +0.2 / +0.3 % |
    /// | these | 0 |
    /// | the best level for each segment, found with a decoder and the metric (6 photographs) | -0.4 % |
    ///
    /// Measuring after the encode does not find that rest. Squared error, gradients and SSIM of the filtered picture ask for far
    /// too strong a filter (+3 to +4 %), unless they compare means of 4x4 blocks, where squared error follows SSIMULACRA2
    /// (correlation 0.83). With a penalty on the level, that chooses as well as this function does, but from no less than
    /// half of the macroblocks, at an estimated 4 % of the time; from a quarter, half of the gain is left. On top of this function
    /// it gains 0.05 % at the most. Another level for macroblocks that are predicted by subblocks (`mode_lf_delta`, section 9.6)
    /// costs 0.1 % if it is 1 less or more, 0.3 % if it is 2 less.
    pub fn choose(segmentation: &Segmentation) -> FilterParameters {
        /// Differences beside an edge may be up to half the level and no more than 5, ...
        const SHARPNESS: u8 = 4;
        /// ... or a quarter of it and no more than 2: where levels are high, half is far too much.
        const COARSE_SHARPNESS: u8 = 7;
        /// The mean level from where that holds, which is at about quality 20.
        const COARSE_LEVEL: u32 = 7;
        let levels = std::array::from_fn(|i| {
            filter_level(segmentation.indices[i], segmentation.activities[i])
        });
        let sum: u32 = levels.iter().copied().map(u32::from).sum();
        let is_coarse = sum >= COARSE_LEVEL * 4;
        FilterParameters {
            levels,
            sharpness: if is_coarse {
                COARSE_SHARPNESS
            } else {
                SHARPNESS
            },
        }
    }

    /// The level that the frame header carries: decoders filter nothing at all where it is 0.
    pub fn frame_level(&self) -> u8 {
        self.levels.into_iter().max().unwrap_or(0)
    }
}

/// The level of a segment: the steps that quantization leaves at edges are in proportion to its own, and small ones do not
/// show.
fn filter_level(index: QuantizerIndex, activity: Activity) -> u8 {
    /// Below are skies and walls, which show every edge, and have nothing to lose.
    const CALM: Activity = 900;
    /// From here on are leaves and gravel, where errors are large; between are faces and cloth, which lose most.
    const BUSY: Activity = 2200;
    /// Of the step, in 1/256 of a level.
    const INVISIBLE: i32 = 300;
    /// At the coarsest steps, more would wipe out flat graphics.
    const HIGHEST: i32 = 22;
    let strength = match activity {
        ..CALM => 42,
        CALM..BUSY => 25,
        BUSY.. => 31,
    };
    let step = AC_STEPS[usize::from(index)];
    ((step * strength - INVISIBLE) / 256).clamp(0, HIGHEST) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webp::vp8::quantize::MAX_INDEX;

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
    fn calm_segments_are_filtered_most_and_faces_least() {
        let segmentation = Segmentation {
            indices: [40; 4],
            activities: [200, 1200, 1800, 2600],
            map: vec![0, 1, 2, 3],
        };
        let [calm, face, cloth, leaves] = FilterParameters::choose(&segmentation).levels;
        assert!(calm > leaves && leaves > face, "{calm} {face} {leaves}");
        assert_eq!(face, cloth);
    }

    #[test]
    fn coarse_pictures_are_filtered_with_more_care_for_detail() {
        assert_eq!(parameters(30, 1500).sharpness, 4);
        assert_eq!(parameters(MAX_INDEX, 1500).sharpness, 7);
    }
}
