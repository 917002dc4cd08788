//! The VP8 encoder as the list of its passes: segmentation, mode decision, probabilities,
//! partitions, header. RFC 6386, section 9, lists the parts in bitstream order.

#[cfg(test)]
mod model;

use super::constants::Constants;
use super::frame_header::{FrameHeader, MAX_TOKEN_PARTITION};
use super::loop_filter::FilterParameters;
use super::macroblock::MacroblockRecord;
use super::mode_budget::{affords_segments, mode_budget};
use super::mode_decision::ModeSearch;
use super::quality::quantizer_index;
use super::quantize::{MAX_INDEX, QuantizerIndex};
use super::row::MacroblockRow;
use super::segment::{Segmentation, segment};
use super::token_counts::TokenCounts;
use super::wavefront::DecisionPass;
use super::{partition, probability, refine, wavefront};
use crate::cpu::Simd;
use crate::threads::Workers;
use crate::ycbcr::Planes;
use crate::{Effort, EncodeError};
use std::borrow::Borrow;

#[cfg(feature = "testing")]
pub mod agreement;

/// Options of a key frame.
#[derive(Clone, Copy, Debug)]
pub struct LossyOptions<'a> {
    /// Quality, 0 (smallest) to 100 (best).
    pub quality: u8,
    /// How many modes and levels are tried.
    pub effort: Effort,
    /// Base-2 logarithm of the number of token partitions, 0 to 3; chosen by the amount of data if
    /// `None`.
    pub log2_partitions: Option<u8>,
    /// The constants of the decisions.
    pub constants: &'a Constants,
    /// Vector instructions to use. The bytes do not depend on them.
    pub simd: Simd,
    /// Threads to use, and what may cancel the work. The bytes do not depend on the number of
    /// threads.
    pub workers: Workers<'a>,
}

/// Encodes a picture of `width` x `height` pixels as a key frame. `source` gives its planes, padded
/// to whole macroblocks.
///
/// Planes that `source` gives away are dropped once the decisions are made, since the later passes
/// need as much memory. `source` is called again if the picture has to be encoded with coarser
/// quantizers.
///
/// # Errors
/// Those of `source`, and [`EncodeError::TooLarge`].
pub fn encode<P: Borrow<Planes>>(
    source: impl Fn() -> Result<P, EncodeError>,
    width: u32,
    height: u32,
    options: &LossyOptions<'_>,
) -> Result<Vec<u8>, EncodeError> {
    encode_with_limit(MAX_TOKEN_PARTITION, source, (width, height), options)
}

/// [`encode`], where a token partition has at most `max_token_bytes` bytes. The last partition has
/// no limit, because its size is not sent. If another one is larger, the picture is encoded again
/// with coarser quantizers; that takes noise of 130 MP and more at the highest qualities.
fn encode_with_limit<P: Borrow<Planes>>(
    max_token_bytes: usize,
    source: impl Fn() -> Result<P, EncodeError>,
    (width, height): (u32, u32),
    options: &LossyOptions<'_>,
) -> Result<Vec<u8>, EncodeError> {
    let mut index = quantizer_index(options.quality);
    loop {
        let planes = source()?;
        let segmentation = choose_segmentation(planes.borrow(), index, options)?;
        let filter = FilterParameters::choose(&segmentation, options.constants);
        let decisions = decide_macroblocks(planes.borrow(), &segmentation, options, None)?;
        drop(planes);
        let partitions = write_partitions(&decisions, &segmentation, filter, options)?;
        drop(decisions);
        match partition::assemble(width, height, &partitions, max_token_bytes) {
            Err(EncodeError::TooLarge) if index < MAX_INDEX => {
                let sizes = partitions.iter().skip(1).map(Vec::len);
                index = coarsen(index, sizes.max().unwrap_or(0), max_token_bytes);
            }
            outcome => return outcome,
        }
    }
}

/// The samples that a decoder has of `source` before the loop filter, if it is encoded once.
///
/// # Errors
/// [`EncodeError::Cancelled`].
pub fn reconstruct(source: &Planes, options: &LossyOptions<'_>) -> Result<Planes, EncodeError> {
    let mut reconstruction = Planes::new(source.width as usize, source.height as usize);
    let segmentation = choose_segmentation(source, quantizer_index(options.quality), options)?;
    decide_macroblocks(source, &segmentation, options, Some(&mut reconstruction))?;
    Ok(reconstruction)
}

/// Returns an index that shrinks `size` bytes of noise to about `limit` bytes. Halving the size
/// takes quantizer steps some sixteen times as long, which is about 64 indices further.
fn coarsen(index: QuantizerIndex, size: usize, limit: usize) -> QuantizerIndex {
    const MIN_INCREASE: usize = 4;
    let excess = size.saturating_sub(limit).saturating_mul(64) / limit.max(1);
    let increase = excess.clamp(MIN_INCREASE, usize::from(MAX_INDEX));
    MAX_INDEX.min(index + increase as u8)
}

/// Decides on all macroblocks: once, or several times ([`refine`]) from high effort on.
/// `reconstruction` receives the pixels before the loop filter.
fn decide_macroblocks(
    source: &Planes,
    segmentation: &Segmentation,
    options: &LossyOptions<'_>,
    reconstruction: Option<&mut Planes>,
) -> Result<Decisions, EncodeError> {
    let pass = DecisionPass {
        source,
        segmentation,
        constants: options.constants,
        search: ModeSearch::for_effort(options.effort),
        expected_counts: None,
        visibilities: &[],
        mode_budget: mode_budget(source.mb_width, source.mb_height, segmentation.is_enabled()),
        simd: options.simd,
        workers: options.workers,
        keep_levels: true,
    };
    let (rows, counts) = match options.effort {
        Effort::Low | Effort::Medium => wavefront::decide(&pass, reconstruction)?,
        Effort::High | Effort::Max => {
            // The passes before the last show nothing more with a wider search.
            let search = ModeSearch {
                intra4_trials: 3,
                intra4_slack: 4,
                ..ModeSearch::for_effort(Effort::Medium)
            };
            refine::decide(&pass, search, reconstruction)?
        }
    };
    Ok(Decisions { rows, counts })
}

/// The decisions on a whole picture.
struct Decisions {
    /// Rows of macroblocks, from top to bottom.
    rows: Vec<MacroblockRow>,
    /// How often each token occurs in the picture.
    counts: TokenCounts,
}

/// Divides the picture into segments, unless the segment map would leave too few bits of the first
/// partition for the modes.
fn choose_segmentation(
    source: &Planes,
    index: QuantizerIndex,
    options: &LossyOptions<'_>,
) -> Result<Segmentation, EncodeError> {
    if !affords_segments(source.mb_width * source.mb_height) {
        return Ok(Segmentation::single(index, options.constants));
    }
    segment(source, index, options.constants, options.workers)
}

/// Writes the decisions as the partitions of the frame, the first partition first.
fn write_partitions(
    decisions: &Decisions,
    segmentation: &Segmentation,
    filter: FilterParameters,
    options: &LossyOptions<'_>,
) -> Result<Vec<Vec<u8>>, EncodeError> {
    let rows = &decisions.rows;
    let probabilities = &probability::fit(&decisions.counts.nodes());
    let log2_partitions = options
        .log2_partitions
        .unwrap_or_else(|| choose_log2_partitions(rows));
    let header = FrameHeader {
        segmentation,
        segment_probabilities: segment_probabilities(rows),
        filter,
        log2_partitions,
        probabilities,
        skip_probability: skip_probability(rows),
    };
    partition::write_all(&header, rows, options.simd, options.workers)
}

/// Chooses the number of token partitions, as its base-2 logarithm. Small pictures get one, since
/// each takes three bytes for its size; larger ones get two, which one thread writes interleaved;
/// the largest get more, for threads and for decoders.
fn choose_log2_partitions(rows: &[MacroblockRow]) -> u8 {
    let bytes: usize = rows.iter().map(|row| row.packed.len()).sum();
    match bytes >> 14 {
        0..2 => 0,
        2..16 => 1,
        16..64 => 2,
        _ => 3,
    }
}

/// Returns the probability that a macroblock has coefficients, or `None` if all of them have.
fn skip_probability(rows: &[MacroblockRow]) -> Option<u8> {
    let skipped = records(rows).filter(|record| record.skipped).count() as u64;
    let others = records(rows).count() as u64 - skipped;
    (skipped > 0).then(|| probability::probability_of_false(others, skipped))
}

/// Returns the probabilities of the three nodes of the segment tree (section 9.3).
fn segment_probabilities(rows: &[MacroblockRow]) -> [u8; 3] {
    let mut counts = [0u64; 4];
    for record in records(rows) {
        counts[usize::from(record.segment)] += 1;
    }
    let [a, b, c, d] = counts;
    // 255 means "not sent", and is also the best value for a node that no macroblock uses.
    let node = |zeros: u64, ones: u64| {
        if ones == 0 {
            255
        } else {
            probability::probability_of_false(zeros, ones)
        }
    };
    [node(a + b, c + d), node(a, b), node(c, d)]
}

/// Iterates over the macroblocks of all rows in raster order.
fn records(rows: &[MacroblockRow]) -> impl Iterator<Item = &MacroblockRecord> {
    rows.iter().flat_map(|row| &row.records)
}

#[cfg(test)]
mod tests;
