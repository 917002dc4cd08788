//! The encoder as the list of its passes: segments, decisions, probabilities, partitions, header
//! (RFC 6386, section 9 has the parts in the order of the file).

#[cfg(test)]
mod model;

use super::frame_header::{FrameHeader, MAX_FIRST_PARTITION, MAX_TOKEN_PARTITION};
use super::loop_filter::FilterParameters;
use super::macroblock::LumaMode;
use super::mode_decision::{LEAST_MODE_COST, Search};
use super::predict::BlockMode;
use super::quantize::{MAX_INDEX, QuantizerIndex};
use super::row::Row;
use super::segment::{ORDINARY, Segmentation, segment};
use super::token_counts::TokenCounts;
use super::wavefront::Task;
use super::{partition, probability, wavefront};
use crate::cpu::Simd;
use crate::threads::Workers;
use crate::ycbcr::Planes;
use crate::{Effort, EncodeError};

#[cfg(feature = "testing")]
pub mod agreement;

/// What the caller may choose.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
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

/// What is kept of a macroblock between the decisions and the partitions, beside its coefficients.
#[derive(Clone, Copy, Debug)]
pub struct MacroblockRecord {
    /// Its segment.
    pub segment: u8,
    /// Whether it has no coefficients.
    pub skipped: bool,
    /// Luma prediction.
    pub luma: LumaMode,
    /// Chroma prediction.
    pub chroma: BlockMode,
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
    settings: &Settings<'_>,
) -> Result<Vec<u8>, EncodeError> {
    encode_within(MAX_TOKEN_PARTITION, source, (width, height), settings)
}

/// [`encode`] with token partitions of at most `most` bytes, but for the last, whose size is not sent. Where one would be
/// larger, the picture is coded anew with coarser quantizers: noise of 130 MP and more, at the highest qualities.
fn encode_within(
    most: usize,
    source: impl Fn() -> Result<Planes, EncodeError>,
    (width, height): (u32, u32),
    settings: &Settings<'_>,
) -> Result<Vec<u8>, EncodeError> {
    let mut index = quantizer_index(settings.quality);
    loop {
        let planes = source()?;
        let segmentation = divide(&planes, index, settings.workers)?;
        let filter = FilterParameters::choose(&segmentation);
        let decisions = decide(&planes, &segmentation, settings, false)?;
        drop(planes);
        let partitions = write(&decisions, &segmentation, filter, settings)?;
        drop(decisions);
        match partition::assemble(width, height, &partitions, most) {
            Err(EncodeError::TooLarge) if index < MAX_INDEX => {
                let sizes = partitions.iter().skip(1).map(Vec::len);
                index = coarser(index, sizes.max().unwrap_or(0), most);
            }
            outcome => return outcome,
        }
    }
}

/// An index that makes `size` bytes of noise about `most`: to take half away takes steps that are some sixteen times as
/// long, which is about 64 indices further.
fn coarser(index: QuantizerIndex, size: usize, most: usize) -> QuantizerIndex {
    const LEAST: usize = 4;
    let excess = size.saturating_sub(most).saturating_mul(64) / most.max(1);
    let further = excess.clamp(LEAST, usize::from(MAX_INDEX));
    MAX_INDEX.min(index + further as u8)
}

/// Decides on all macroblocks: with high effort once more, by what coefficients cost in the first decisions (0.4 % better
/// than by the costs of a sample).
fn decide(
    source: &Planes,
    segmentation: &Segmentation,
    settings: &Settings<'_>,
    keeps_pixels: bool,
) -> Result<Decisions, EncodeError> {
    let mut task = Task {
        source,
        segmentation,
        search: Search::of(settings.effort),
        expected: None,
        mode_budget: mode_budget(source.mb_width, source.mb_height, segmentation.is_enabled()),
        simd: settings.simd,
        workers: settings.workers,
        keeps_pixels,
    };
    let (mut rows, mut counts) = wavefront::decide(&task)?;
    if settings.effort == Effort::High {
        drop(rows);
        let expected = counts;
        task.expected = Some(&expected);
        (rows, counts) = wavefront::decide(&task)?;
    }
    Ok(Decisions { rows, counts })
}

/// The decisions on a whole picture.
struct Decisions {
    /// From top to bottom.
    rows: Vec<Row>,
    /// How often each token occurs.
    counts: TokenCounts,
}

/// Writes what was decided, as the partitions of the frame.
fn write(
    decisions: &Decisions,
    segmentation: &Segmentation,
    filter: FilterParameters,
    settings: &Settings<'_>,
) -> Result<Vec<Vec<u8>>, EncodeError> {
    let rows = &decisions.rows;
    let probabilities = &probability::fit(&decisions.counts.nodes());
    let log2_partitions = settings
        .log2_partitions
        .unwrap_or_else(|| partitions_for(rows));
    let header = FrameHeader {
        segmentation,
        segment_probabilities: segment_probabilities(rows),
        filter,
        log2_partitions,
        probabilities,
        skip_probability: skip_probability(rows),
    };
    partition::write_all(&header, rows, settings.simd, settings.workers)
}

/// The quantizer index of a quality.
///
/// `0.95 * 127 (1 - cbrt(c))`, where `c` is 2/3 of the quality up to 75 and from there rises to 1: libwebp's curve, so that
/// numbers mean what users know, 5 % finer since the trellis takes more away. As a table, since cube roots differ
/// between machines.
#[rustfmt::skip]
fn quantizer_index(quality: u8) -> QuantizerIndex {
    const INDICES: [QuantizerIndex; 101] = [
        121, 98, 92, 88, 85, 82, 79, 77, 75, 73, 72, 70, 69, 67, 66, 65, 63, 62, 61, 60,
        59, 58, 57, 56, 55, 54, 53, 53, 52, 51, 50, 49, 49, 48, 47, 46, 46, 45, 44, 44,
        43, 42, 42, 41, 40, 40, 39, 39, 38, 38, 37, 36, 36, 35, 35, 34, 34, 33, 33, 32,
        32, 31, 31, 30, 30, 29, 29, 28, 28, 28, 27, 27, 26, 26, 25, 25, 24, 22, 21, 20,
        19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 2, 1,
        0,
    ];
    INDICES[usize::from(quality.min(100))]
}

/// Segments, unless their map would leave too little of the first partition for the modes.
fn divide(
    source: &Planes,
    index: QuantizerIndex,
    workers: Workers<'_>,
) -> Result<Segmentation, EncodeError> {
    /// Bits a macroblock that segments are worth: two for the map, and modes enough to choose from.
    const WORTH: usize = 12;
    let macroblocks = source.mb_width * source.mb_height;
    if MAX_FIRST_PARTITION * 8 / macroblocks < WORTH {
        return Ok(Segmentation::single(index, ORDINARY));
    }
    segment(source, index, workers)
}

/// What the modes of a macroblock may cost on average, so that the first partition stays within its size: all
/// of it but the frame header, segment map and skip flags. [`LEAST_MODE_COST`] for the largest pictures of all.
fn mode_budget(mb_width: usize, mb_height: usize, has_segments: bool) -> u64 {
    /// More than the header takes with every probability sent: 1,056 of 8 bits, and as much for saying so.
    const HEADER_BITS: usize = 20_000;
    let bits = (MAX_FIRST_PARTITION * 8 - HEADER_BITS) as u64 * 256 / (mb_width * mb_height) as u64;
    bits.saturating_sub(flag_cost(has_segments))
        .max(u64::from(LEAST_MODE_COST))
}

/// What a macroblock's header may cost on average beside its modes: its share of the map, its skip flag, and a
/// hundredth of a bit for each of the roundings in the costs of some ten booleans.
fn flag_cost(has_segments: bool) -> u64 {
    let map = if has_segments { 2 * 256 } else { 0 };
    map + 256 + 26
}

/// One partition for small pictures, since each takes three bytes for its size; then two, which are written side by side;
/// then more, for threads and decoders.
fn partitions_for(rows: &[Row]) -> u8 {
    let bytes: usize = rows.iter().map(|row| row.packed.len()).sum();
    match bytes >> 14 {
        0..2 => 0,
        2..16 => 1,
        16..64 => 2,
        _ => 3,
    }
}

/// Probability that a macroblock has coefficients, if one has none.
fn skip_probability(rows: &[Row]) -> Option<u8> {
    let skipped = records(rows).filter(|record| record.skipped).count() as u64;
    let others = records(rows).count() as u64 - skipped;
    (skipped > 0).then(|| probability::likeliest(others, skipped))
}

/// Probabilities of the three nodes of the segment tree.
fn segment_probabilities(rows: &[Row]) -> [u8; 3] {
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
            probability::likeliest(zeros, ones)
        }
    };
    [node(a + b, c + d), node(a, b), node(c, d)]
}

/// The macroblocks of all rows.
fn records(rows: &[Row]) -> impl Iterator<Item = &MacroblockRecord> {
    rows.iter().flat_map(|row| &row.records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vp8::bool_encoder::BoolEncoder;
    use crate::vp8::tables::DEFAULT_PROBABILITIES;
    use crate::{Layout, RgbPicture};

    /// A picture with something of everything: gradients, edges, noise and flat ground.
    fn picture(width: u32, height: u32) -> Vec<u8> {
        let mut state = width * 31 + height;
        let mut pixels = Vec::new();
        for y in 0..height {
            for x in 0..width {
                state ^= state << 13;
                state ^= state >> 17;
                state ^= state << 5;
                let pixel = match (x / 24 + y / 24) % 4 {
                    0 => [(x * 5) as u8, (y * 3) as u8, (x + y) as u8],
                    1 => [(state >> 8) as u8, (state >> 16) as u8, (state >> 24) as u8],
                    2 => [if (x * 3 + y * 5) % 17 < 6 { 240 } else { 20 }; 3],
                    _ => [200, 40, 90],
                };
                pixels.extend(pixel);
            }
        }
        pixels
    }

    fn settings(quality: u8) -> Settings<'static> {
        Settings {
            quality,
            effort: Effort::Medium,
            log2_partitions: None,
            simd: Simd::detect(),
            workers: Workers::unlimited(2),
        }
    }

    fn planes_of(picture: &RgbPicture<'_>) -> Planes {
        Planes::from_picture(picture, Simd::detect(), Workers::unlimited(1)).expect("is waited for")
    }

    /// Also that keeping pixels changes nothing.
    fn assert_decoders_agree(width: u32, height: u32, pixels: &[u8], settings: &Settings<'_>) {
        let picture = RgbPicture {
            width,
            height,
            layout: Layout::Rgb,
            pixels,
        };
        let frame = agreement::assert_decoders_agree(&picture, settings);
        let source = planes_of(&picture);
        let same = encode(|| Ok(source.clone()), width, height, settings).expect("encodes");
        assert!(frame == same, "{width}x{height} {settings:?}: other bytes");
    }

    const QUALITIES: [u8; 7] = [0, 1, 25, 50, 75, 85, 100];
    const EFFORTS: [Effort; 3] = [Effort::Low, Effort::Medium, Effort::High];

    #[test]
    fn an_independent_decoder_reconstructs_the_same_samples() {
        let sizes = [
            (1, 1),
            (2, 3),
            (15, 17),
            (16, 16),
            (17, 1),
            (1, 40),
            (257, 3),
            (64, 64),
            (100, 131),
        ];
        for (width, height) in sizes {
            let pixels = picture(width, height);
            for effort in EFFORTS {
                for quality in QUALITIES {
                    let settings = Settings {
                        effort,
                        ..settings(quality)
                    };
                    assert_decoders_agree(width, height, &pixels, &settings);
                }
            }
        }
    }

    #[test]
    fn every_loop_filter_decodes_to_the_same_samples() {
        let pixels = picture(100, 131);
        let picture = RgbPicture {
            width: 100,
            height: 131,
            layout: Layout::Rgb,
            pixels: &pixels,
        };
        let levels = [
            [0; 4],
            [1; 4],
            [63; 4],
            [0, 63, 0, 1],
            [14, 15, 39, 40],
            [63, 0, 0, 0],
        ];
        for levels in levels {
            for sharpness in 0..8 {
                let filter = FilterParameters { levels, sharpness };
                for quality in [10, 60] {
                    let settings = settings(quality);
                    agreement::assert_filtered_the_same(&picture, &settings, Some(filter));
                }
            }
        }
    }

    #[test]
    fn every_number_of_partitions_decodes() {
        let pixels = picture(90, 200);
        for log2 in 0..4 {
            assert_decoders_agree(
                90,
                200,
                &pixels,
                &Settings {
                    log2_partitions: Some(log2),
                    ..settings(60)
                },
            );
        }
    }

    #[test]
    fn extreme_content_decodes() {
        let (width, height) = (70, 50);
        let count = (width * height) as usize;
        let checkers = |size: u32| -> Vec<u8> {
            (0..width * height)
                .flat_map(|i| [((i % width / size + i / width / size) % 2 * 255) as u8; 3])
                .collect()
        };
        let contents = [
            vec![0; count * 3],
            vec![255; count * 3],
            [0, 255, 0].repeat(count),
            [255, 0, 255].repeat(count),
            checkers(1),
            checkers(4),
            checkers(16),
        ];
        for pixels in contents {
            for quality in QUALITIES {
                assert_decoders_agree(width, height, &pixels, &settings(quality));
            }
        }
    }

    #[test]
    fn instructions_and_threads_leave_the_bytes_as_they_are() {
        for (width, height) in [(1, 1), (33, 17), (200, 150)] {
            let pixels = picture(width, height);
            let picture = RgbPicture {
                width,
                height,
                layout: Layout::Rgb,
                pixels: &pixels,
            };
            let source = planes_of(&picture);
            let choices = EFFORTS.map(|effort| QUALITIES.map(|quality| (effort, quality)));
            for (effort, quality) in choices.into_iter().flatten() {
                let encode_with = |simd, threads| {
                    let settings = Settings {
                        effort,
                        simd,
                        workers: Workers::unlimited(threads),
                        log2_partitions: Some(2),
                        ..settings(quality)
                    };
                    encode(|| Ok(source.clone()), width, height, &settings).expect("encodes")
                };
                let expected = encode_with(Simd::SCALAR, 1);
                for simd in Simd::supported() {
                    for threads in [1, 2, 3, 8] {
                        let same = encode_with(simd, threads) == expected;
                        assert!(
                            same,
                            "{width}x{height} at {quality}, {effort:?} effort, with {simd:?} and {threads} threads"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn the_first_partition_outlasts_its_header() {
        let pixels = picture(16, 16);
        let source = planes_of(&RgbPicture {
            width: 16,
            height: 16,
            layout: Layout::Rgb,
            pixels: &pixels,
        });
        for quality in 0..=100 {
            let frame = encode(|| Ok(source.clone()), 16, 16, &settings(quality)).expect("encodes");
            let tag = u32::from_le_bytes([frame[0], frame[1], frame[2], 0]);
            let first = &frame[10..][..(tag >> 5) as usize];
            assert!(first.len() >= 8, "quality {quality}: {first:?}");
        }
    }

    #[test]
    fn modes_and_flags_stay_within_their_budget() {
        let (width, height) = (300, 240);
        let pixels = picture(width, height);
        let source = planes_of(&RgbPicture {
            width,
            height,
            layout: Layout::Rgb,
            pixels: &pixels,
        });
        let index = quantizer_index(40);
        let workers = Workers::unlimited(1);
        let segments = segment(&source, index, workers).expect("is waited for");
        for segmentation in [Segmentation::single(index, ORDINARY), segments] {
            for mode_budget in
                [LEAST_MODE_COST, 5 * 256, 8 * 256, 12 * 256, 20 * 256].map(u64::from)
            {
                let (rows, _) = wavefront::decide(&Task {
                    source: &source,
                    segmentation: &segmentation,
                    search: Search::of(Effort::Medium),
                    expected: None,
                    mode_budget,
                    simd: Simd::detect(),
                    workers,
                    keeps_pixels: false,
                })
                .expect("is waited for");
                let header = FrameHeader {
                    segmentation: &segmentation,
                    segment_probabilities: segment_probabilities(&rows),
                    filter: FilterParameters::choose(&segmentation),
                    log2_partitions: 0,
                    probabilities: &DEFAULT_PROBABILITIES,
                    skip_probability: skip_probability(&rows),
                };
                let mut alone = BoolEncoder::with_capacity(0);
                header.write(&mut alone);
                let workers = Workers::unlimited(1);
                let first = partition::write_first(&header, &rows, Simd::SCALAR, workers)
                    .expect("is waited for");
                let bytes = (first.len() - alone.len()) as u64;
                let bits = (mode_budget + flag_cost(segmentation.is_enabled()))
                    * records(&rows).count() as u64
                    / 256;
                assert!(
                    bytes <= bits / 8 + 1,
                    "{bytes} bytes with a budget of {bits} bits"
                );
            }
        }
    }

    #[test]
    fn what_outgrows_its_partitions_is_coded_anew() {
        let (width, height) = (300, 240);
        let pixels = picture(width, height);
        let picture = RgbPicture {
            width,
            height,
            layout: Layout::Rgb,
            pixels: &pixels,
        };
        let source = planes_of(&picture);
        let settings = Settings {
            log2_partitions: Some(3),
            ..settings(95)
        };
        let sizes = |frame: &[u8]| -> Vec<usize> {
            let tag = u32::from_le_bytes([frame[0], frame[1], frame[2], 0]);
            let sizes = &frame[10 + (tag >> 5) as usize..][..21];
            let size = |s: &[u8]| u32::from_le_bytes([s[0], s[1], s[2], 0]) as usize;
            sizes.chunks_exact(3).map(size).collect()
        };
        let size = (width, height);
        let source = || Ok(source.clone());
        let unbound = encode_within(usize::MAX, source, size, &settings).expect("encodes");
        let largest = sizes(&unbound).into_iter().max().expect("seven sizes");
        let same = encode_within(largest, source, size, &settings).expect("encodes");
        assert!(same == unbound, "a partition may be as large as its bound");
        for most in [largest - 1, largest / 2, largest / 8] {
            let frame = encode_within(most, source, size, &settings).expect("encodes");
            assert!(
                sizes(&frame).iter().all(|&size| size <= most),
                "{:?} with at most {most}",
                sizes(&frame)
            );
            image_webp::vp8::Vp8Decoder::decode_frame(frame.as_slice()).expect("decodes");
        }
        assert_eq!(
            encode_within(1, source, size, &settings),
            Err(EncodeError::TooLarge),
            "what cannot be done ends"
        );
    }

    #[test]
    fn quantizer_indices_follow_the_curve() {
        for quality in 0..=100u8 {
            let q = f64::from(quality) / 100.0;
            let c = if q < 0.75 {
                q * 2.0 / 3.0
            } else {
                2.0 * q - 1.0
            };
            let exact = 0.95 * 127.0 * (1.0 - c.cbrt());
            let index = f64::from(quantizer_index(quality));
            assert!(
                (index - exact).abs() <= 0.501,
                "quality {quality}: {index} for {exact}"
            );
        }
    }
}
