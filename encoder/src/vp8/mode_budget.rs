//! How many bits the modes of a macroblock may take, so that the first partition fits into its size
//! field of 19 bits (RFC 6386, section 9.1).

use super::frame_header::MAX_FIRST_PARTITION;
use super::mode_decision::LEAST_MODE_COST;

/// Whether a segment map fits into the first partition of a picture of `macroblocks` macroblocks.
pub fn affords_segments(macroblocks: usize) -> bool {
    /// Least bits per macroblock with which segments pay: two for the map, and enough modes to
    /// choose from.
    const MIN_BITS: usize = 12;
    MAX_FIRST_PARTITION * 8 / macroblocks >= MIN_BITS
}

/// Returns the average number of bits, times 256, that the modes of a macroblock may take: the
/// first partition without the frame header, the segment map and the skip flags. At least
/// [`LEAST_MODE_COST`], which the largest pictures get.
pub fn mode_budget(mb_width: usize, mb_height: usize, has_segments: bool) -> u64 {
    /// An upper bound for the frame header: 1,056 probabilities of 8 bits, and as much again for
    /// the flags in front of them.
    const HEADER_BITS: usize = 20_000;
    let bits = (MAX_FIRST_PARTITION * 8 - HEADER_BITS) as u64 * 256 / (mb_width * mb_height) as u64;
    bits.saturating_sub(flag_cost(has_segments))
        .max(u64::from(LEAST_MODE_COST))
}

/// Returns the average bits, times 256, of a macroblock header beside its modes: two bits of
/// segment map, one skip flag, and 1/100 bit for each rounding in the costs of some ten booleans.
pub fn flag_cost(has_segments: bool) -> u64 {
    let map = if has_segments { 2 * 256 } else { 0 };
    map + 256 + 26
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twelve_bits_a_macroblock_afford_segments() {
        // The first partition has 4,194,296 bits.
        assert!(affords_segments(1));
        assert!(affords_segments(349_524));
        assert!(!affords_segments(349_525));
    }

    #[test]
    fn modes_get_what_the_header_and_flags_leave() {
        // The header leaves 4,174,296 bits, which are 417.4296 for each of 10,000 macroblocks.
        // Flags take 1 + 26/256 of them.
        assert_eq!(mode_budget(100, 100, false), 106_861 - 282);
        assert_eq!(mode_budget(100, 100, true), 106_861 - 282 - 512);
        assert_eq!(mode_budget(50, 200, false), mode_budget(100, 100, false));
        // The largest picture has so little left that its modes get the least.
        assert_eq!(mode_budget(1024, 1024, true), LEAST_MODE_COST.into());
    }
}
