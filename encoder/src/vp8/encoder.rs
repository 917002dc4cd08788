//! The encoder as the list of its passes: segments, decisions, probabilities, partitions, header
//! (RFC 6386, section 9 has the parts in the order of the file).

#[cfg(test)]
mod model;

use super::frame_header::{FrameHeader, MAX_TOKEN_PARTITION};
use super::loop_filter::FilterParameters;
use super::macroblock::MacroblockRecord;
use super::mode_budget::{affords_segments, mode_budget};
use super::mode_decision::ModeSearch;
use super::quality::quantizer_index;
use super::quantize::{MAX_INDEX, QuantizerIndex};
use super::row::MacroblockRow;
use super::segment::{ORDINARY, Segmentation, segment};
use super::token_counts::TokenCounts;
use super::wavefront::DecisionPass;
use super::{partition, probability, wavefront};
use crate::cpu::Simd;
use crate::threads::Workers;
use crate::ycbcr::Planes;
use crate::{Effort, EncodeError};

#[cfg(feature = "testing")]
pub mod agreement;

/// What the caller may choose.
#[derive(Clone, Copy, Debug)]
pub struct LossyOptions<'a> {
    /// 0 to 100.
    pub quality: u8,
    /// How much is tried.
    pub effort: Effort,
    /// The number of token partitions as a power of two, 0 to 3; by size if `None`.
    pub log2_partitions: Option<u8>,
    /// Vector instructions to use.
    pub simd: Simd,
    /// Who works on it.
    pub workers: Workers<'a>,
}

/// Encodes what `source` gives, of which `width` x `height` pixels are the picture, as a key frame. The planes are given up as
/// soon as all is decided, since what follows takes as much memory; should the picture have to be coded anew, they are
/// asked for again.
///
/// # Errors
/// [`EncodeError::Cancelled`], and the errors of `source`.
pub fn encode(
    source: impl Fn() -> Result<Planes, EncodeError>,
    width: u32,
    height: u32,
    options: &LossyOptions<'_>,
) -> Result<Vec<u8>, EncodeError> {
    encode_with_limit(MAX_TOKEN_PARTITION, source, (width, height), options)
}

/// [`encode`] with token partitions of at most `most` bytes, but for the last, whose size is not sent. Where one would be
/// larger, the picture is coded anew with coarser quantizers: noise of 130 MP and more, at the highest qualities.
fn encode_with_limit(
    max_token_bytes: usize,
    source: impl Fn() -> Result<Planes, EncodeError>,
    (width, height): (u32, u32),
    options: &LossyOptions<'_>,
) -> Result<Vec<u8>, EncodeError> {
    let mut index = quantizer_index(options.quality);
    loop {
        let planes = source()?;
        let segmentation = choose_segmentation(&planes, index, options.workers)?;
        let filter = FilterParameters::choose(&segmentation);
        let decisions = decide_macroblocks(&planes, &segmentation, options, false)?;
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

/// An index that makes `size` bytes of noise about `most`: to take half away takes steps that are some sixteen times as
/// long, which is about 64 indices further.
fn coarsen(index: QuantizerIndex, size: usize, limit: usize) -> QuantizerIndex {
    const MIN_INCREASE: usize = 4;
    let excess = size.saturating_sub(limit).saturating_mul(64) / limit.max(1);
    let increase = excess.clamp(MIN_INCREASE, usize::from(MAX_INDEX));
    MAX_INDEX.min(index + increase as u8)
}

/// Decides on all macroblocks: with high effort once more, by what coefficients cost in the first decisions (0.4 % better
/// than by the costs of a sample).
fn decide_macroblocks(
    source: &Planes,
    segmentation: &Segmentation,
    options: &LossyOptions<'_>,
    keep_pixels: bool,
) -> Result<Decisions, EncodeError> {
    let mut pass = DecisionPass {
        source,
        segmentation,
        search: ModeSearch::for_effort(options.effort),
        expected_counts: None,
        mode_budget: mode_budget(source.mb_width, source.mb_height, segmentation.is_enabled()),
        simd: options.simd,
        workers: options.workers,
        keep_pixels,
    };
    let (mut rows, mut counts) = wavefront::decide(&pass)?;
    if options.effort == Effort::High {
        drop(rows);
        let expected_counts = counts;
        pass.expected_counts = Some(&expected_counts);
        (rows, counts) = wavefront::decide(&pass)?;
    }
    Ok(Decisions { rows, counts })
}

/// The decisions on a whole picture.
struct Decisions {
    /// From top to bottom.
    rows: Vec<MacroblockRow>,
    /// How often each token occurs.
    counts: TokenCounts,
}

/// Segments, unless their map would leave too little of the first partition for the modes.
fn choose_segmentation(
    source: &Planes,
    index: QuantizerIndex,
    workers: Workers<'_>,
) -> Result<Segmentation, EncodeError> {
    if !affords_segments(source.mb_width * source.mb_height) {
        return Ok(Segmentation::single(index, ORDINARY));
    }
    segment(source, index, workers)
}

/// Writes what was decided, as the partitions of the frame.
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

/// One partition for small pictures, since each takes three bytes for its size; then two, which are written side by side;
/// then more, for threads and decoders.
fn choose_log2_partitions(rows: &[MacroblockRow]) -> u8 {
    let bytes: usize = rows.iter().map(|row| row.packed.len()).sum();
    match bytes >> 14 {
        0..2 => 0,
        2..16 => 1,
        16..64 => 2,
        _ => 3,
    }
}

/// Probability that a macroblock has coefficients, if one has none.
fn skip_probability(rows: &[MacroblockRow]) -> Option<u8> {
    let skipped = records(rows).filter(|record| record.skipped).count() as u64;
    let others = records(rows).count() as u64 - skipped;
    (skipped > 0).then(|| probability::probability_of_false(others, skipped))
}

/// Probabilities of the three nodes of the segment tree.
fn segment_probabilities(rows: &[MacroblockRow]) -> [u8; 3] {
    let mut counts = [0u64; 4];
    for record in records(rows) {
        counts[usize::from(record.segment)] += 1;
    }
    let [a, b, c, d] = counts;
    // 255 stands for "not sent", which is also what an unused node should cost.
    let node = |zeros: u64, ones: u64| {
        if ones == 0 {
            255
        } else {
            probability::probability_of_false(zeros, ones)
        }
    };
    [node(a + b, c + d), node(a, b), node(c, d)]
}

/// The macroblocks of all rows.
fn records(rows: &[MacroblockRow]) -> impl Iterator<Item = &MacroblockRecord> {
    rows.iter().flat_map(|row| &row.records)
}

#[cfg(test)]
mod tests;
