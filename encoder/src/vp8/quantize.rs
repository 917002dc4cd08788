//! Quantizer steps and the quantization of blocks: RFC 6386, sections 9.6 and 14.1.

use super::constants::Constants;
use super::distortion::ErrorWeights;
use super::levels::eob_of;
use super::tables::{AC_STEPS, DC_STEPS, ZIGZAG};
use super::transform::Block;

/// A quantizer index: 0 (finest) to 127.
pub type QuantizerIndex = u8;

/// The factor of dead zones that leaves them as they are.
pub const USUAL_FACTOR: u16 = 256;

/// The largest factor of dead zones.
pub const MAX_FACTOR: u16 = 1023;

/// The largest quantizer index.
pub const MAX_INDEX: u8 = 127;

/// Differences of the frame's other quantizer indices from the segment's index, which is that of
/// the AC coefficients of luma and chroma (section 9.6). Each lies within ±15.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuantizerDeltas {
    /// Luma's DC, used by Intra4 only.
    pub luma_dc: i8,
    /// Y2's DC.
    pub y2_dc: i8,
    /// Y2's AC.
    pub y2_ac: i8,
    /// Chroma's DC.
    pub chroma_dc: i8,
}

impl QuantizerDeltas {
    /// Returns the deltas of a frame whose segments have indices about `index`.
    ///
    /// Coarse structure shows as blocks where its steps are long, and there is little of it to pay
    /// for. Fine steps need less of it: against the same deltas for every index, deltas in
    /// proportion to the index save 0.3 % at equal DSSIM, 1.4 % at equal Butteraugli and 2.3 % at
    /// equal PSNR.
    pub fn at(index: QuantizerIndex, constants: &Constants) -> QuantizerDeltas {
        let finer = |share: i32| -(i32::from(index) * share / 64).clamp(-15, 15) as i8;
        QuantizerDeltas {
            luma_dc: finer(constants.luma_dc_finer),
            y2_dc: finer(constants.y2_dc_finer),
            y2_ac: finer(constants.y2_ac_finer),
            chroma_dc: finer(constants.chroma_dc_finer),
        }
    }
}

/// The quantizer of one kind of block. Each array holds the value for the DC and the value for all
/// other coefficients.
#[derive(Clone, Copy, Debug)]
pub struct Quantizer {
    /// Steps.
    pub steps: [u16; 2],
    /// `2^16 / step`, rounded. For coefficients within ±2,400, that is all but Y2's, the product is
    /// off by at most 0.02 levels; for the largest of Y2 by 0.13.
    pub reciprocals: [u16; 2],
    /// By how much the dead zone exceeds half a step where there is no trellis, in raster order, at
    /// most 63: smaller magnitudes become zero, and all others are rounded by as much less.
    pub dead_zones: [u16; 16],
    /// The dead zone of the last coefficient of a block exceeds half a step by the first of these,
    /// and by the second for each zero before it, in 1/256 of a step.
    pub last_dead_zone: [u32; 2],
    /// The weights of errors.
    pub weights: ErrorWeights,
    /// By how much less errors count that make a coefficient larger, in 1/256.
    pub overshoot_discount: i32,
}

/// Rounding where there is no trellis, in 1/256 of a step. It is less than a half, because a
/// smaller level saves more bits than its error costs.
#[derive(Clone, Copy)]
struct Rounding {
    /// Of DC.
    dc: i32,
    /// Of AC at the lowest frequencies.
    ac: i32,
    /// By how much less AC is rounded for each further row and column.
    ac_falls: i32,
}

impl Quantizer {
    fn new(dc: i32, ac: i32, rounding: Rounding, weights: ErrorWeights) -> Quantizer {
        let steps = [dc as u32, ac as u32];
        Quantizer {
            steps: steps.map(|step| step as u16),
            reciprocals: steps.map(|step| (((1 << 16) + step / 2) / step) as u16),
            dead_zones: std::array::from_fn(|i| {
                let frequency = (i / 4 + i % 4) as i32;
                let (step, share) = match frequency {
                    0 => (dc, rounding.dc),
                    _ => (ac, rounding.ac - rounding.ac_falls * (frequency - 1)),
                };
                (step / 2 - ((step * share.max(0)) >> 8)).clamp(0, 63) as u16
            }),
            last_dead_zone: [0; 2],
            weights,
            overshoot_discount: 0,
        }
    }

    /// Leaves out the last levels of a block, quantized from zigzag position `first` on, as long as
    /// they are 1 and their coefficients within [`Quantizer::last_dead_zone`], `factor / 256` times
    /// as wide beyond half a step. Such a level costs the most bits: it moves the end of block, and
    /// pays for the zeros before it. `nonzero` are the positions of all levels, one bit each.
    /// Returns the end of block.
    #[inline(always)]
    pub fn leave_out_last(
        &self,
        coefficients: &Block,
        levels: &mut Block,
        mut nonzero: u32,
        first: usize,
        factor: u16,
    ) -> u8 {
        let [least, by_zero] = self.last_dead_zone;
        while nonzero > 0 {
            let last = nonzero.ilog2() as usize;
            let rest = nonzero ^ 1 << last;
            let end = (32 - rest.leading_zeros()) as usize;
            let zeros = (last - end.max(first)) as u32;
            let excess = ((least + by_zero * zeros) * u32::from(factor)) >> 8;
            let dead_zone = (128 + excess) * self.step(last) as u32;
            let magnitude = u32::from(coefficients[ZIGZAG[last]].unsigned_abs());
            if levels[last].unsigned_abs() != 1 || magnitude << 8 >= dead_zone {
                break;
            }
            levels[last] = 0;
            nonzero = rest;
        }
        (32 - nonzero.leading_zeros()) as u8
    }

    /// Returns the level nearest to a coefficient of magnitude `magnitude` at zigzag position
    /// `position`.
    #[inline]
    pub fn nearest(&self, magnitude: u16, position: usize) -> u16 {
        let kind = usize::from(position > 0);
        let rounded = u32::from(magnitude) + u32::from(self.steps[kind]) / 2;
        ((rounded * u32::from(self.reciprocals[kind])) >> 16) as u16
    }

    /// Returns the step at zigzag position `position`.
    #[inline]
    pub fn step(&self, position: usize) -> i32 {
        i32::from(self.steps[usize::from(position > 0)])
    }

    /// Quantizes coefficients (raster order) from zigzag position `first` on, with dead zones that
    /// exceed half a step by `factor / 256` times as much, at most [`MAX_FACTOR`]. Returns the
    /// levels in zigzag order, and the end of block.
    #[inline]
    pub fn quantize(&self, coefficients: &Block, factor: u16, first: usize) -> (Block, u8) {
        let mut levels = [0; 16];
        for position in first..16 {
            let place = ZIGZAG[position];
            let coefficient = coefficients[place];
            let kind = usize::from(position > 0);
            let rounding =
                (self.steps[kind] / 2).saturating_sub((self.dead_zones[place] * factor) >> 8);
            let rounded = u32::from(coefficient.unsigned_abs()) + u32::from(rounding);
            let level = ((rounded * u32::from(self.reciprocals[kind])) >> 16) as i16;
            levels[position] = if coefficient < 0 { -level } else { level };
        }
        (levels, eob_of(&levels))
    }

    /// Returns the coefficients, in raster order, that a decoder restores from `levels`.
    #[inline]
    pub fn dequantize(&self, levels: &Block) -> Block {
        let mut coefficients = [0; 16];
        for (position, &level) in levels.iter().enumerate() {
            coefficients[ZIGZAG[position]] = (i32::from(level) * self.step(position)) as i16;
        }
        coefficients
    }
}

/// The quantizers of a segment.
#[derive(Clone, Copy, Debug)]
pub struct Quantizers {
    /// Luma.
    pub luma: Quantizer,
    /// Y2, the DCs of luma in Intra16.
    pub y2: Quantizer,
    /// Chroma.
    pub chroma: Quantizer,
}

impl Quantizers {
    /// Looks up the steps of `index` (section 14.1).
    pub fn new(
        index: QuantizerIndex,
        deltas: QuantizerDeltas,
        constants: &Constants,
    ) -> Quantizers {
        let at = |delta: i8| (i32::from(index) + i32::from(delta)).clamp(0, 127) as usize;
        let (dc, ac) = (|delta| DC_STEPS[at(delta)], |delta| AC_STEPS[at(delta)]);
        let luma_weights =
            ErrorWeights::new(constants.luma_weight_slope, constants.luma_weight_exponent);
        let chroma_weights = ErrorWeights::new(
            constants.chroma_weight_slope,
            constants.chroma_weight_exponent,
        );
        let luma_rounding = Rounding {
            dc: constants.luma_dc_rounding,
            ac: constants.luma_ac_rounding,
            ac_falls: constants.luma_rounding_falls,
        };
        let y2_rounding = Rounding {
            dc: constants.y2_dc_rounding,
            ac: constants.y2_ac_rounding,
            ac_falls: 0,
        };
        let chroma_rounding = Rounding {
            dc: constants.chroma_dc_rounding,
            ac: constants.chroma_ac_rounding,
            ac_falls: 0,
        };
        let y2_steps = (dc(deltas.y2_dc) * 2, (ac(deltas.y2_ac) * 155 / 100).max(8));
        let chroma_steps = (dc(deltas.chroma_dc).min(132), ac(0));
        Quantizers {
            luma: Quantizer {
                overshoot_discount: constants.overshoot_discount,
                last_dead_zone: [constants.last_dead_zone, constants.last_dead_zone_grows]
                    .map(|share| share as u32),
                ..Quantizer::new(dc(deltas.luma_dc), ac(0), luma_rounding, luma_weights)
            },
            y2: Quantizer::new(y2_steps.0, y2_steps.1, y2_rounding, ErrorWeights::EQUAL),
            chroma: Quantizer {
                overshoot_discount: constants.overshoot_discount,
                ..Quantizer::new(
                    chroma_steps.0,
                    chroma_steps.1,
                    chroma_rounding,
                    chroma_weights,
                )
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: QuantizerDeltas = QuantizerDeltas {
        luma_dc: 0,
        y2_dc: 0,
        y2_ac: 0,
        chroma_dc: 0,
    };
    const CONSTANTS: &Constants = &Constants::DEFAULT;

    fn at(index: QuantizerIndex) -> Quantizers {
        Quantizers::new(index, QuantizerDeltas::at(index, CONSTANTS), CONSTANTS)
    }

    #[test]
    fn quantizer_deltas_fit_the_header() {
        assert_eq!(QuantizerDeltas::at(0, CONSTANTS), NONE);
        for index in 0..=MAX_INDEX {
            let deltas = QuantizerDeltas::at(index, CONSTANTS);
            let all = [deltas.luma_dc, deltas.y2_dc, deltas.y2_ac, deltas.chroma_dc];
            assert!(
                all.iter().all(|delta| (-15..=0).contains(delta)),
                "{deltas:?} at {index}"
            );
        }
        let middle = QuantizerDeltas::at(37, CONSTANTS);
        assert_eq!(
            (middle.luma_dc, middle.y2_dc, middle.y2_ac, middle.chroma_dc),
            (-11, -1, -3, -12)
        );
    }

    #[test]
    fn nearest_is_within_half_a_step() {
        for index in 0..=MAX_INDEX {
            let Quantizers { luma, y2, chroma } = at(index);
            for (quantizer, range) in [(luma, 2400), (y2, 16_320), (chroma, 2400)] {
                for position in [0, 1] {
                    let step = f64::from(quantizer.step(position));
                    for magnitude in 0..=range {
                        let level = f64::from(quantizer.nearest(magnitude, position));
                        let slack = if range > 2400 { 0.13 } else { 0.02 };
                        let exact = f64::from(magnitude) / step;
                        assert!(
                            (level - exact).abs() <= 0.5 + slack + 0.5 / step,
                            "{magnitude} / {step} is {level}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn quantizing_errs_by_less_than_the_dead_zone() {
        let quantizer = at(40).luma;
        for coefficient in -2500..=2500i16 {
            for place in [0, 1, 15] {
                let mut block = [0; 16];
                block[place] = coefficient;
                let (levels, eob) = quantizer.quantize(&block, USUAL_FACTOR, 0);
                let back = quantizer.dequantize(&levels);
                let step = quantizer.step(place);
                let bound = step
                    - ((step * CONSTANTS.luma_ac_rounding.min(CONSTANTS.luma_dc_rounding)) >> 8)
                    + 1;
                let error = i32::from(back[place] - coefficient).abs();
                assert!(
                    error <= bound,
                    "{coefficient} came back as {} with steps of {step}",
                    back[place]
                );
                assert_eq!(eob == 0, back[place] == 0, "the end of {coefficient}");
            }
        }
    }

    #[test]
    fn wider_dead_zones_make_smaller_levels() {
        let quantizer = at(60).luma;
        let step = quantizer.step(1) as i16;
        let level = |magnitude: i16, factor| {
            let (levels, _) = quantizer.quantize(&[magnitude; 16], factor, 0);
            levels[1]
        };
        let by_half = step / 2 + 1;
        assert_eq!(
            [0, USUAL_FACTOR].map(|factor| level(by_half, factor)),
            [1, 0]
        );
        let above = step * 3 / 4;
        assert_eq!([USUAL_FACTOR, MAX_FACTOR].map(|f| level(above, f)), [1, 0]);
        assert_eq!(
            level(step + step / 2 + 1, USUAL_FACTOR),
            1,
            "others are rounded down, too"
        );
    }

    /// Steps are 256, so that a magnitude is a share of them in 1/256: half a step is 128, and the
    /// dead zone of a last coefficient is 150 with no zero before it.
    #[test]
    fn last_levels_within_their_dead_zone_are_left_out() {
        let quantizer = Quantizer {
            steps: [256; 2],
            last_dead_zone: [22, 16],
            ..at(60).luma
        };
        let left = |magnitudes: &[(usize, i16)], first, factor| {
            let (mut coefficients, mut levels, mut nonzero) = ([0; 16], [0; 16], 0);
            for &(position, magnitude) in magnitudes {
                coefficients[ZIGZAG[position]] = magnitude;
                levels[position] = magnitude.signum() * (magnitude.abs() / 256).max(1);
                nonzero |= 1 << position;
            }
            let eob = quantizer.leave_out_last(&coefficients, &mut levels, nonzero, first, factor);
            assert_eq!(eob, eob_of(&levels), "{magnitudes:?}");
            eob
        };
        let cases: [(&[(usize, i16)], _, _, _); 9] = [
            (&[(0, 600), (1, -149)], 0, USUAL_FACTOR, 1),
            (&[(0, 600), (1, 150)], 0, USUAL_FACTOR, 2),
            (&[(0, 600), (4, 197)], 0, USUAL_FACTOR, 1),
            (&[(0, 600), (4, -198)], 0, USUAL_FACTOR, 5),
            // Zeros count from the first position on, and the next level is the last one then.
            (&[(2, 165), (4, 165)], 1, USUAL_FACTOR, 0),
            (&[(2, 166), (4, 165)], 1, USUAL_FACTOR, 3),
            // A level of 2 stays, and half a step is left however narrow the dead zone is.
            (&[(3, 512)], 0, MAX_FACTOR, 4),
            (&[(0, 600), (1, 129)], 0, 0, 2),
            (&[(0, 600), (1, 170)], 0, 2 * USUAL_FACTOR, 1),
        ];
        for (magnitudes, first, factor, end) in cases {
            assert_eq!(
                left(magnitudes, first, factor),
                end,
                "{magnitudes:?}, {factor}"
            );
        }
        assert_eq!(left(&[], 0, USUAL_FACTOR), 0);
    }

    #[test]
    fn coefficients_before_first_are_dropped() {
        let quantizer = at(0).luma;
        let (levels, eob) = quantizer.quantize(&[1000; 16], USUAL_FACTOR, 1);
        assert_eq!(levels[0], 0);
        assert_eq!(eob, 16);
    }

    #[test]
    fn steps_are_those_of_the_rfc() {
        let Quantizers {
            luma, y2, chroma, ..
        } = at(0);
        assert_eq!(
            (luma.steps, y2.steps, chroma.steps),
            ([4, 4], [8, 8], [4, 4])
        );
        let Quantizers {
            luma, y2, chroma, ..
        } = Quantizers::new(127, NONE, CONSTANTS);
        assert_eq!(
            (luma.steps, y2.steps, chroma.steps),
            ([157, 284], [314, 440], [132, 284])
        );
    }
}
