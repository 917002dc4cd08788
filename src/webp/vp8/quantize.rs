//! Quantizer steps and the quantization of blocks: RFC 6386, sections 9.6 and 14.1.

use super::tables::{AC_STEPS, DC_STEPS, ZIGZAG};
use super::token::count_of;
use super::transform::Block;

/// A quantizer index: 0 (finest) to 127.
pub type QuantizerIndex = u8;

/// The largest quantizer index.
pub const MAX_INDEX: u8 = 127;

/// What the index of chroma's DC differs from the segment's by (section 9.6): coarse steps would show as blotches of colour.
/// -5 in place of 0 saves 1 % at equal SSIMULACRA2; other steps for chroma's AC or luma's DC save nothing.
pub const CHROMA_DC_DELTA: i32 = -5;
/// What the index of Y2's AC differs from the segment's by: it carries what is coarsest of the picture.
pub const Y2_AC_DELTA: i32 = -3;

/// The steps of one kind of block.
#[derive(Clone, Copy, Debug)]
pub struct Quantizer {
    /// The step of the DC and of all other coefficients.
    pub steps: [u16; 2],
    /// `2^16 / step`, rounded. For coefficients within ±2,400, all but Y2's, a product is off by at most 0.02 levels; for Y2's
    /// largest by 0.13.
    pub reciprocals: [u16; 2],
    /// What is added before dividing.
    pub roundings: [u16; 2],
}

/// Rounding of DC and AC in 1/256 of a step: under a half, since a level less is cheaper than its error.
const ROUNDING: [u32; 2] = [112, 108];

impl Quantizer {
    fn new(dc: i32, ac: i32) -> Quantizer {
        let steps = [dc as u32, ac as u32];
        Quantizer {
            steps: steps.map(|step| step as u16),
            reciprocals: steps.map(|step| (((1 << 16) + step / 2) / step) as u16),
            roundings: std::array::from_fn(|i| ((steps[i] * ROUNDING[i]) >> 8) as u16),
        }
    }

    /// The level nearest to a coefficient of magnitude `magnitude` at `position`.
    #[inline]
    pub fn nearest(&self, magnitude: u16, position: usize) -> u16 {
        let kind = usize::from(position > 0);
        let rounded = u32::from(magnitude) + u32::from(self.steps[kind]) / 2;
        ((rounded * u32::from(self.reciprocals[kind])) >> 16) as u16
    }

    /// The step at `position` of the zigzag.
    #[inline]
    pub fn step(&self, position: usize) -> i32 {
        i32::from(self.steps[usize::from(position > 0)])
    }

    /// Quantizes the coefficients (in raster order) from `first` on, into levels in zigzag order and one past the
    /// last that is not zero.
    #[inline]
    pub fn quantize(&self, coefficients: &Block, first: usize) -> (Block, u8) {
        let mut levels = [0; 16];
        for position in first..16 {
            let coefficient = coefficients[ZIGZAG[position]];
            let kind = usize::from(position > 0);
            let rounded = u32::from(coefficient.unsigned_abs()) + u32::from(self.roundings[kind]);
            let level = ((rounded * u32::from(self.reciprocals[kind])) >> 16) as i16;
            levels[position] = if coefficient < 0 { -level } else { level };
        }
        (levels, count_of(&levels))
    }

    /// The coefficients, in raster order, that `levels` stand for.
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
    /// The DCs of luma, where they are a block of their own.
    pub y2: Quantizer,
    /// Chroma.
    pub chroma: Quantizer,
}

impl Quantizers {
    /// The steps that section 14.1 gives for `index`.
    pub fn new(index: QuantizerIndex) -> Quantizers {
        let dc = |delta: i32| DC_STEPS[(i32::from(index) + delta).clamp(0, 127) as usize];
        let ac = |delta: i32| AC_STEPS[(i32::from(index) + delta).clamp(0, 127) as usize];
        Quantizers {
            luma: Quantizer::new(dc(0), ac(0)),
            y2: Quantizer::new(dc(0) * 2, (ac(Y2_AC_DELTA) * 155 / 100).max(8)),
            chroma: Quantizer::new(dc(CHROMA_DC_DELTA).min(132), ac(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_is_within_half_a_step() {
        for index in 0..=MAX_INDEX {
            let Quantizers { luma, y2, chroma } = Quantizers::new(index);
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
        let quantizer = Quantizers::new(40).luma;
        for coefficient in -2500..=2500i16 {
            for place in [0, 1, 15] {
                let mut block = [0; 16];
                block[place] = coefficient;
                let (levels, count) = quantizer.quantize(&block, 0);
                let back = quantizer.dequantize(&levels);
                let step = quantizer.step(place);
                let bound = step - ((step as u32 * ROUNDING[1]) >> 8) as i32 + 1;
                let error = i32::from(back[place] - coefficient).abs();
                assert!(
                    error <= bound,
                    "{coefficient} came back as {} with steps of {step}",
                    back[place]
                );
                assert_eq!(count == 0, back[place] == 0, "the count of {coefficient}");
            }
        }
    }

    #[test]
    fn what_comes_before_first_is_left_out() {
        let quantizer = Quantizers::new(0).luma;
        let (levels, count) = quantizer.quantize(&[1000; 16], 1);
        assert_eq!(levels[0], 0);
        assert_eq!(count, 16);
    }

    #[test]
    fn steps_are_those_of_the_rfc() {
        let Quantizers {
            luma, y2, chroma, ..
        } = Quantizers::new(0);
        assert_eq!(
            (luma.steps, y2.steps, chroma.steps),
            ([4, 4], [8, 8], [4, 4])
        );
        let Quantizers {
            luma, y2, chroma, ..
        } = Quantizers::new(127);
        assert_eq!(
            (luma.steps, y2.steps, chroma.steps),
            ([157, 284], [314, 416], [132, 284])
        );
    }
}
