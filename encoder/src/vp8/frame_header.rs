//! The frame header: RFC 6386, sections 9.1 to 9.11 and 19.2.

use super::bool_encoder::BoolEncoder;
use super::loop_filter::FilterParameters;
use super::probability;
use super::quantize::QuantizerDeltas;
use super::segment::Segmentation;
use super::tables::CoefficientProbabilities;

/// Largest size of the first partition: the field has 19 bits (section 9.1).
pub const MAX_FIRST_PARTITION: usize = (1 << 19) - 1;
/// Largest size of a token partition other than the last: the field has 24 bits (section 9.5).
pub const MAX_TOKEN_PARTITION: usize = (1 << 24) - 1;

/// The frame header.
pub struct FrameHeader<'a> {
    /// Quantizers and filter levels by segment, and whether there is a segment map.
    pub segmentation: &'a Segmentation,
    /// Probabilities of the segment tree's nodes; 255 is not sent.
    pub segment_probabilities: [u8; 3],
    /// Parameters of the loop filter.
    pub filter: FilterParameters,
    /// Base-2 logarithm of the number of token partitions, 0 to 3.
    pub log2_partitions: u8,
    /// Coefficient probabilities.
    pub probabilities: &'a CoefficientProbabilities,
    /// Probability that a macroblock has coefficients; `None` if macroblocks have no skip flag.
    pub skip_probability: Option<u8>,
}

impl FrameHeader<'_> {
    /// Writes the header (section 19.2) at the start of the first partition.
    pub fn write(&self, encoder: &mut BoolEncoder) {
        encoder.write_literal(0, 1); // color space: YUV as section 9.2 has it
        encoder.write_literal(0, 1); // decoders clamp
        self.write_segmentation(encoder);
        encoder.write_literal(0, 1); // the normal loop filter
        encoder.write_literal(u32::from(self.filter.frame_level()), 6);
        encoder.write_literal(u32::from(self.filter.sharpness), 3);
        encoder.write_literal(0, 1); // no adjustments by mode or reference
        encoder.write_literal(u32::from(self.log2_partitions), 2);
        self.write_quantizers(encoder);
        encoder.write_literal(0, 1); // the probabilities are of this frame alone
        probability::write(encoder, self.probabilities);
        encoder.write_literal(u32::from(self.skip_probability.is_some()), 1);
        if let Some(probability) = self.skip_probability {
            encoder.write_literal(u32::from(probability), 8);
        }
    }

    /// Writes the segments (section 9.3).
    fn write_segmentation(&self, encoder: &mut BoolEncoder) {
        encoder.write_literal(u32::from(self.segmentation.is_enabled()), 1);
        if !self.segmentation.is_enabled() {
            return;
        }
        encoder.write_literal(1, 1); // there is a map
        encoder.write_literal(1, 1); // there are quantizers and filter levels
        encoder.write_literal(1, 1); // which are values, not differences
        for index in self.segmentation.indices {
            write_optional(encoder, i32::from(index), 7);
        }
        for level in self.filter.levels {
            write_optional(encoder, i32::from(level), 6);
        }
        for probability in self.segment_probabilities {
            encoder.write_literal(u32::from(probability != 255), 1);
            if probability != 255 {
                encoder.write_literal(u32::from(probability), 8);
            }
        }
    }

    /// Writes the quantizer indices (section 9.6).
    fn write_quantizers(&self, encoder: &mut BoolEncoder) {
        encoder.write_literal(u32::from(self.segmentation.indices[0]), 7);
        let QuantizerDeltas {
            luma_dc,
            y2_dc,
            y2_ac,
            chroma_dc,
        } = self.segmentation.deltas;
        for delta in [luma_dc, y2_dc, y2_ac, chroma_dc, 0] {
            write_optional(encoder, i32::from(delta), 4);
        }
    }
}

/// Writes a flag and, if `value` is not 0, its magnitude in `width` bits and its sign.
fn write_optional(encoder: &mut BoolEncoder, value: i32, width: u32) {
    encoder.write_literal(u32::from(value != 0), 1);
    if value != 0 {
        encoder.write_literal(value.unsigned_abs(), width);
        encoder.write_literal(u32::from(value < 0), 1);
    }
}

/// Returns the uncompressed bytes before the first partition: frame tag, start code and dimensions
/// (section 9.1).
pub fn uncompressed(width: u32, height: u32, first_partition: usize) -> [u8; 10] {
    let key_frame = 0;
    let version = 0;
    let shown = 1;
    let tag = key_frame | version << 1 | shown << 4 | (first_partition as u32) << 5;
    let tag = tag.to_le_bytes();
    // The two highest bits of each dimension, the scaling, are 0.
    let ([w0, w1, ..], [h0, h1, ..]) = (width.to_le_bytes(), height.to_le_bytes());
    [tag[0], tag[1], tag[2], 0x9D, 0x01, 0x2A, w0, w1, h0, h1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uncompressed_part_by_hand() {
        let bytes = uncompressed(16383, 1, 0x7FFFF);
        assert_eq!(
            bytes,
            [0xF0, 0xFF, 0xFF, 0x9D, 0x01, 0x2A, 0xFF, 0x3F, 1, 0]
        );
    }
}
