//! How many bits the modes of a macroblock may take, so that the first partition stays within its size (RFC 6386,
//! section 9.1: its size has 19 bits).

use super::frame_header::MAX_FIRST_PARTITION;
use super::mode_decision::LEAST_MODE_COST;

/// Whether the first partition of a picture of `macroblocks` has bits enough for a segment map.
pub fn affords_segments(macroblocks: usize) -> bool {
    /// Bits a macroblock that segments are worth: two for the map, and modes enough to choose from.
    const MIN_BITS: usize = 12;
    MAX_FIRST_PARTITION * 8 / macroblocks >= MIN_BITS
}

/// What the modes of a macroblock may cost on average, so that the first partition stays within its size: all
/// of it but the frame header, segment map and skip flags. [`LEAST_MODE_COST`] for the largest pictures of all.
pub fn mode_budget(mb_width: usize, mb_height: usize, has_segments: bool) -> u64 {
    /// More than the header takes with every probability sent: 1,056 of 8 bits, and as much for saying so.
    const HEADER_BITS: usize = 20_000;
    let bits = (MAX_FIRST_PARTITION * 8 - HEADER_BITS) as u64 * 256 / (mb_width * mb_height) as u64;
    bits.saturating_sub(flag_cost(has_segments))
        .max(u64::from(LEAST_MODE_COST))
}

/// What a macroblock's header may cost on average beside its modes: its share of the map, its skip flag, and a
/// hundredth of a bit for each of the roundings in the costs of some ten booleans.
pub fn flag_cost(has_segments: bool) -> u64 {
    let map = if has_segments { 2 * 256 } else { 0 };
    map + 256 + 26
}
