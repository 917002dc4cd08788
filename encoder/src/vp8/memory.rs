//! The memory that encoding a frame takes, by the sizes of what its passes hold: levels,
//! macroblocks and partitions (RFC 6386, section 9.5).

use super::macroblock::{AboveContext, MacroblockRecord, PlaneRow};
use super::mode_decision::Visibility;
use super::partition::BUFFER_BYTES;
use super::refine;
use super::row::MacroblockRow;
use crate::options::Effort;
use crate::ycbcr::stripe_bytes;
use std::mem::size_of;
use std::sync::{Mutex, OnceLock};

/// The memory of a frame, known from its size.
#[derive(Clone, Copy, Debug)]
pub struct FrameMemory {
    /// Most bytes at a time, the planes that are given away and the frame itself among them.
    pub peak: u64,
    /// Bytes of the planes.
    pub planes: u64,
    /// Most bytes that converting pixels to planes holds beside both.
    pub converting: u64,
    /// Most bytes of the frame.
    pub frame: u64,
}

/// The planes of a macroblock, in bytes.
const PLANES: u64 = 384;

/// Pixels of a macroblock.
const PIXELS: u64 = 256;

/// The results that a pass collects for a row before all rows are in order: with its number, in
/// vectors that have grown to twice their length.
const COLLECTED: u64 = 4 * size_of::<(usize, MacroblockRow)>() as u64;

/// Bytes of a macroblock beside its levels that are kept until it is written, and those of its
/// context for the row below.
const KEPT: u64 = (size_of::<MacroblockRecord>() + size_of::<super::levels::NonzeroFlags>()) as u64;
const PUBLISHED: u64 = size_of::<OnceLock<AboveContext>>() as u64;

/// Bytes of a macroblock's segment, lambda factor and activity: the activities are there twice
/// while pieces of them become one.
const SEGMENTED: u64 = 8;

/// Tables: the booleans of all tokens, costs, counts of tokens by row under way.
const TABLES: u64 = 256 << 10;
const COUNTS: u64 = 24 << 10;

impl FrameMemory {
    /// The memory of a frame of `width` x `height` pixels by some threads.
    pub fn new((width, height): (u32, u32), quality: u8, effort: Effort, threads: usize) -> Self {
        let [mb_width, mb_height] = [width, height].map(|side| u64::from(side.div_ceil(16)));
        let count = mb_width * mb_height;
        let threads = threads.max(1) as u64;
        // Rows follow each other at a distance of two macroblocks.
        let under_way = threads.min(mb_width.div_ceil(2)).min(mb_height);
        let planes = count * PLANES;
        let levels = |macroblocks: u64| macroblocks * PIXELS * packed_size(quality) / 100;
        let rows = mb_height * (COLLECTED + size_of::<Vec<u8>>() as u64);
        let kept = count * KEPT + rows + count * SEGMENTED;
        // The levels of a row have a vector that has grown to twice their length, until it is done.
        let deciding = planes
            + kept
            + count * PUBLISHED
            + levels(count + under_way * mb_width)
            + under_way * COUNTS;
        let refining = match effort {
            Effort::Low | Effort::Medium => 0,
            Effort::High | Effort::Max => {
                let visibilities = count * size_of::<Visibility>() as u64;
                let shown = planes + mb_height * size_of::<Mutex<PlaneRow<'_>>>() as u64;
                // Those of rows, all of them, and those of the pass before.
                let comparing = shown
                    + 3 * visibilities
                    + count * refine::DAMAGE_BYTES
                    + mb_height * 4 * size_of::<(usize, Vec<u8>)>() as u64;
                let passing = shown + visibilities + count * PUBLISHED;
                let target = planes;
                let early = planes + kept + target + comparing.max(passing);
                early.max(deciding + target + visibilities)
            }
        };
        let frame = count * PIXELS * coded_size(quality) / 100 + 1024;
        // Partitions grow by an eighth, beginning with the size of the levels.
        let partitions = (levels(count) + 4 * count).max(frame * 9 / 8) + 1024;
        // One piece for the modes, and one for each pair of partitions.
        let buffers = threads.clamp(1, 5) * BUFFER_BYTES as u64;
        let writing = kept + levels(count) + partitions + buffers;
        let assembling = partitions + frame;
        FrameMemory {
            peak: TABLES + deciding.max(refining).max(writing).max(assembling),
            planes,
            converting: stripe_bytes(mb_width as usize, mb_height as usize, threads as usize),
            frame,
        }
    }
}

/// The most hundredths of a byte a pixel that levels take: one byte each, one for each block, and
/// at the highest qualities two more for some. Measured on cells of pure primaries, at random, of 1
/// x 1 to 4 x 4 pixels.
fn packed_size(quality: u8) -> u64 {
    match quality {
        97.. => 172,
        _ => (125 + 4 * u64::from(quality)).min(162),
    }
}

/// The most hundredths of a byte a pixel that a file of pure primaries, at random, takes: straight
/// lines between measured points.
fn coded_size(quality: u8) -> u64 {
    const POINTS: [(u64, u64); 6] = [(0, 30), (10, 54), (25, 67), (50, 78), (85, 104), (100, 148)];
    let quality = u64::from(quality.min(100));
    let pair = POINTS.windows(2).find(|pair| quality <= pair[1].0);
    let [(from, low), (to, high)] = pair
        .and_then(|pair| pair.try_into().ok())
        .unwrap_or([POINTS[5]; 2]);
    low + (high - low) * (quality - from) / (to - from).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_grow_with_their_quality() {
        let sizes: Vec<u64> = (0..=100).map(coded_size).collect();
        assert!(sizes.is_sorted());
        // These were measured, but that of 67, which lies on the line between 50 and 85.
        assert_eq!(
            [0, 10, 50, 67, 85, 100].map(|quality| sizes[quality]),
            [30, 54, 78, 90, 104, 148]
        );
        assert_eq!(coded_size(255), 148);
    }

    #[test]
    fn levels_grow_with_the_quality_up_to_their_most() {
        assert_eq!(
            [0, 1, 9, 10, 96, 97, 100].map(packed_size),
            [125, 129, 161, 162, 162, 172, 172]
        );
    }
}
