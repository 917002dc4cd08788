//! The encoder as the list of its passes: segments, decisions, probabilities, partitions, header
//! (RFC 6386, section 9 has the parts in the order of the file).

use super::bool_encoder::BoolEncoder;
use super::frame_header::{self, FrameHeader, MAX_FIRST_PARTITION, MAX_TOKEN_PARTITION};
use super::loop_filter::{self, FilterParameters};
use super::macroblock::{LumaMode, Pixels, Surroundings};
use super::mode_decision::{self, Effort, LEAST_MODE_COST, Lambdas, Situation};
use super::predict::{BlockMode, SubblockMode};
use super::probability;
use super::quantize::{QuantizerIndex, Quantizers};
use super::rate::{BitCost, CoefficientCosts};
use super::segment::{Segmentation, segment};
use super::tables::{AC_STEPS, CoefficientProbabilities, SUBBLOCK_MODE_PROBABILITIES};
use super::token::{self, NonZero, TokenCounts};
use super::tree::{
    CHROMA_MODE_PATHS, CHROMA_MODE_PROBABILITIES, LUMA_MODE_PATHS, LUMA_MODE_PROBABILITIES,
    SEGMENT_PATHS, SUBBLOCK_MODE_PATHS,
};
use crate::webp::EncodeError;
use crate::webp::cpu::Simd;
use crate::webp::yuv::Planes;

/// What the caller may choose.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// 0 to 100.
    pub quality: u8,
    /// The number of token partitions as a power of two, 0 to 3; by size if `None`.
    pub log2_partitions: Option<u8>,
    /// Vector instructions to use.
    pub simd: Simd,
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

/// The decisions on a whole picture.
struct Decisions {
    /// In raster order.
    records: Vec<MacroblockRecord>,
    /// The packed levels of each row's macroblocks that are not skipped.
    rows: Vec<Vec<u8>>,
    counts: TokenCounts,
    /// What a decoder has before its loop filter.
    reconstruction: Planes,
}

/// Encodes `source`, of which `width` x `height` pixels are the picture, as a key frame.
///
/// # Errors
/// [`EncodeError::TooLarge`] if a partition outgrows its size field.
pub fn encode(
    source: &Planes,
    width: u32,
    height: u32,
    settings: &Settings,
) -> Result<Vec<u8>, EncodeError> {
    Ok(encode_and_reconstruct(source, width, height, settings)?.0)
}

/// [`encode`], and what a decoder makes of the frame.
fn encode_and_reconstruct(
    source: &Planes,
    width: u32,
    height: u32,
    settings: &Settings,
) -> Result<(Vec<u8>, impl FnOnce() -> Planes), EncodeError> {
    let index = quantizer_index(settings.quality);
    let segmentation = divide(source, index);
    let decisions = decide(source, &segmentation, settings.simd);
    let probabilities = probability::fit(&decisions.counts);
    let filter = filter_parameters(&segmentation);
    let log2_partitions = settings
        .log2_partitions
        .unwrap_or_else(|| partitions_for(&decisions.rows));

    let first = write_first_partition(
        &decisions,
        &segmentation,
        filter,
        log2_partitions,
        &probabilities,
        source.mb_width,
    );
    let tokens =
        write_token_partitions(&decisions, &probabilities, log2_partitions, source.mb_width);
    let frame = assemble(width, height, &first, &tokens)?;
    let reconstruct = move || {
        let mut reconstruction = decisions.reconstruction;
        loop_filter::filter(&mut reconstruction, &decisions.records, &filter);
        reconstruction
    };
    Ok((frame, reconstruct))
}

/// The quantizer index of a quality.
///
/// `127 (1 - cbrt(c))`, where `c` is 2/3 of the quality up to 75 and from there rises to 1: libwebp's curve, so that
/// numbers mean what users know. As a table, since cube roots differ between machines.
#[rustfmt::skip]
fn quantizer_index(quality: u8) -> QuantizerIndex {
    const INDICES: [QuantizerIndex; 101] = [
        127, 103, 97, 93, 89, 86, 84, 81, 79, 77, 76, 74, 72, 71, 69, 68, 67, 66, 64, 63,
        62, 61, 60, 59, 58, 57, 56, 55, 54, 54, 53, 52, 51, 50, 50, 49, 48, 47, 47, 46,
        45, 45, 44, 43, 43, 42, 41, 41, 40, 40, 39, 38, 38, 37, 37, 36, 36, 35, 34, 34,
        33, 33, 32, 32, 31, 31, 30, 30, 29, 29, 28, 28, 28, 27, 27, 26, 25, 24, 22, 21,
        20, 19, 18, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 3, 2, 1,
        0,
    ];
    INDICES[usize::from(quality.min(100))]
}

/// Segments, unless their map would leave too little of the first partition for the modes.
fn divide(source: &Planes, index: QuantizerIndex) -> Segmentation {
    /// Bits a macroblock that segments are worth: two for the map, and modes enough to choose from.
    const WORTH: usize = 12;
    let macroblocks = source.mb_width * source.mb_height;
    if MAX_FIRST_PARTITION * 8 / macroblocks < WORTH {
        return Segmentation::single(index);
    }
    segment(source, index)
}

/// Decides on all macroblocks in raster order. What coefficients cost is estimated from those before.
fn decide(source: &Planes, segmentation: &Segmentation, simd: Simd) -> Decisions {
    let (mb_width, mb_height) = (source.mb_width, source.mb_height);
    let quantizers = segmentation.indices.map(Quantizers::new);
    let lambdas = quantizers.map(|q| Lambdas::new(&q));
    let effort = Effort {
        subblock_trials: 3,
        block_trials: 2,
        trellis: true,
    };
    let row_budget = mode_budget(mb_width, mb_height, segmentation.is_enabled()) * mb_width as u64;

    let mut decisions = Decisions {
        records: Vec::with_capacity(mb_width * mb_height),
        rows: Vec::with_capacity(mb_height),
        counts: TokenCounts::new(),
        reconstruction: Planes::new(mb_width * 16, mb_height * 16),
    };
    let mut costs = CoefficientCosts::new(&super::tables::DEFAULT_PROBABILITIES);
    let refresh = (mb_height / 8).max(1);
    let mut above = vec![NonZero::default(); mb_width];
    let mut modes_above = vec![[SubblockMode::Dc; 4]; mb_width];
    for mb_y in 0..mb_height {
        if mb_y > 0 && (mb_y % refresh == 0 || mb_y < 4) {
            costs = CoefficientCosts::new(&probability::estimate(&decisions.counts));
        }
        let mut left = NonZero::default();
        let mut modes_left = [SubblockMode::Dc; 4];
        let mut row = Vec::new();
        let mut budget = row_budget;
        for mb_x in 0..mb_width {
            let segment = segmentation.of(mb_y * mb_width + mb_x);
            let reserved = u64::from(LEAST_MODE_COST) * (mb_width - 1 - mb_x) as u64;
            let situation = Situation {
                source: &Pixels::load(source, mb_x, mb_y),
                around: &Surroundings::load(&decisions.reconstruction, mb_x, mb_y),
                non_zero: [above[mb_x], left],
                modes: [modes_above[mb_x], modes_left],
                quantizers: &quantizers[usize::from(segment)],
                lambdas: &lambdas[usize::from(segment)],
                costs: &costs,
                mode_budget: BitCost::try_from(budget - reserved).unwrap_or(BitCost::MAX),
                effort,
            };
            let (coding, pixels, mode_cost) = mode_decision::decide(simd, &situation);
            pixels.store(&mut decisions.reconstruction, mb_x, mb_y);
            budget -= u64::from(mode_cost);

            let has_y2 = coding.luma.has_y2();
            let skipped = coding.levels.is_empty(has_y2);
            if skipped {
                above[mb_x].clear(has_y2);
                left.clear(has_y2);
            } else {
                let counts = &mut decisions.counts;
                coding.levels.for_each_block(
                    has_y2,
                    &mut above[mb_x],
                    &mut left,
                    |kind, levels, count, context| {
                        counts.count_block(kind, levels, count, context);
                    },
                );
                token::pack(&coding.levels, has_y2, &mut row);
            }
            (modes_above[mb_x], modes_left) = coding.luma.contexts();
            decisions.records.push(MacroblockRecord {
                segment,
                skipped,
                luma: coding.luma,
                chroma: coding.chroma,
            });
        }
        row.shrink_to_fit();
        decisions.rows.push(row);
    }
    decisions
}

/// What the modes of a macroblock may cost on average, so that the first partition stays within its size: all
/// of it but the frame header, segment map and skip flags. [`LEAST_MODE_COST`] for the largest pictures of all.
fn mode_budget(mb_width: usize, mb_height: usize, has_segments: bool) -> u64 {
    /// More than the header takes with every probability sent.
    const HEADER_BITS: usize = 12_000;
    let bits = (MAX_FIRST_PARTITION * 8 - HEADER_BITS) as u64 * 256 / (mb_width * mb_height) as u64;
    let flags = if has_segments { 3 * 256 } else { 0 };
    bits.saturating_sub(flags).max(u64::from(LEAST_MODE_COST))
}

/// The loop filter that goes with the quantizers: quantization leaves steps at edges in proportion.
fn filter_parameters(segmentation: &Segmentation) -> FilterParameters {
    /// Level per AC step, times 256. Twice that costs 0.5 % at equal SSIMULACRA2, none at all as much.
    const STRENGTH: i32 = 25;
    /// The sharpest: what quantization did not make is left alone. 0 costs 0.4 %.
    const SHARPNESS: u8 = 7;
    let levels = segmentation
        .indices
        .map(|index| (AC_STEPS[usize::from(index)] * STRENGTH / 256).min(63) as u8);
    FilterParameters {
        levels,
        sharpness: SHARPNESS,
    }
}

/// One partition up to a megabyte of coefficients, so that most files carry no extra sizes; then more, which decoders may read
/// side by side.
fn partitions_for(rows: &[Vec<u8>]) -> u8 {
    let bytes: usize = rows.iter().map(Vec::len).sum();
    match bytes >> 20 {
        0 => 0,
        1 => 1,
        2..4 => 2,
        _ => 3,
    }
}

/// The frame header and the modes of all macroblocks (sections 9 and 11).
fn write_first_partition(
    decisions: &Decisions,
    segmentation: &Segmentation,
    filter: FilterParameters,
    log2_partitions: u8,
    probabilities: &CoefficientProbabilities,
    mb_width: usize,
) -> Vec<u8> {
    let records = &decisions.records;
    let segment_probabilities = segment_probabilities(records);
    let skipped = records.iter().filter(|record| record.skipped).count() as u64;
    let skip_probability =
        (skipped > 0).then(|| probability::likeliest(records.len() as u64 - skipped, skipped));
    let mut encoder = BoolEncoder::with_capacity(records.len() * 4);
    FrameHeader {
        segmentation,
        segment_probabilities,
        filter,
        log2_partitions,
        probabilities,
        skip_probability,
    }
    .write(&mut encoder);
    let header = encoder.len();

    let mut modes_above = vec![[SubblockMode::Dc; 4]; mb_width];
    for row in records.chunks(mb_width) {
        let mut modes_left = [SubblockMode::Dc; 4];
        for (record, modes_above) in row.iter().zip(&mut modes_above) {
            if segmentation.is_enabled() {
                SEGMENT_PATHS[usize::from(record.segment)]
                    .write(&mut encoder, &segment_probabilities);
            }
            if let Some(probability) = skip_probability {
                encoder.write(record.skipped, probability);
            }
            match record.luma {
                LumaMode::Block(mode) => {
                    LUMA_MODE_PATHS[mode as usize].write(&mut encoder, &LUMA_MODE_PROBABILITIES);
                }
                LumaMode::Subblocks(modes) => {
                    LUMA_MODE_PATHS[4].write(&mut encoder, &LUMA_MODE_PROBABILITIES);
                    let (mut above, mut left) = (*modes_above, modes_left);
                    for (i, mode) in modes.into_iter().enumerate() {
                        let probabilities = &SUBBLOCK_MODE_PROBABILITIES[above[i % 4] as usize]
                            [left[i / 4] as usize];
                        SUBBLOCK_MODE_PATHS[mode as usize].write(&mut encoder, probabilities);
                        (above[i % 4], left[i / 4]) = (mode, mode);
                    }
                }
            }
            (*modes_above, modes_left) = record.luma.contexts();
            CHROMA_MODE_PATHS[record.chroma as usize]
                .write(&mut encoder, &CHROMA_MODE_PROBABILITIES);
        }
    }
    /// Decoders that read as data arrives take up to this many bytes ahead, and libwebp's refuses a frame
    /// of whose first partition nothing is left behind the header.
    const LOOK_AHEAD: usize = 8;
    let mut partition = encoder.finish();
    partition.resize(partition.len().max(header + LOOK_AHEAD), 0);
    partition
}

/// Probabilities of the three nodes of the segment tree.
fn segment_probabilities(records: &[MacroblockRecord]) -> [u8; 3] {
    let mut counts = [0u64; 4];
    for record in records {
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

/// The coefficients, macroblock rows dealt out to the partitions in turn (section 9.5).
fn write_token_partitions(
    decisions: &Decisions,
    probabilities: &CoefficientProbabilities,
    log2_partitions: u8,
    mb_width: usize,
) -> Vec<Vec<u8>> {
    let count = 1 << log2_partitions;
    let packed: usize = decisions.rows.iter().map(Vec::len).sum();
    let mut encoders = vec![BoolEncoder::with_capacity(packed / 2 / count); count];
    let mut above = vec![NonZero::default(); mb_width];
    for (mb_y, (mut packed, records)) in decisions
        .rows
        .iter()
        .map(Vec::as_slice)
        .zip(decisions.records.chunks(mb_width))
        .enumerate()
    {
        let encoder = &mut encoders[mb_y % count];
        let mut left = NonZero::default();
        for (record, above) in records.iter().zip(&mut above) {
            let has_y2 = record.luma.has_y2();
            if record.skipped {
                above.clear(has_y2);
                left.clear(has_y2);
            } else {
                token::unpack(&mut packed, has_y2).write(
                    encoder,
                    probabilities,
                    has_y2,
                    above,
                    &mut left,
                );
            }
        }
    }
    encoders.into_iter().map(BoolEncoder::finish).collect()
}

/// Puts the parts of the frame one after another (section 9.1 and 9.5).
fn assemble(
    width: u32,
    height: u32,
    first: &[u8],
    tokens: &[Vec<u8>],
) -> Result<Vec<u8>, EncodeError> {
    let (_, sized) = tokens
        .split_last()
        .expect("there is at least one token partition");
    if first.len() > MAX_FIRST_PARTITION
        || sized
            .iter()
            .any(|partition| partition.len() > MAX_TOKEN_PARTITION)
    {
        return Err(EncodeError::TooLarge);
    }
    let all: usize = tokens.iter().map(Vec::len).sum();
    let mut frame = Vec::with_capacity(10 + first.len() + sized.len() * 3 + all);
    frame.extend(frame_header::uncompressed(width, height, first.len()));
    frame.extend(first);
    for partition in sized {
        frame.extend(&(partition.len() as u32).to_le_bytes()[..3]);
    }
    for partition in tokens {
        frame.extend(partition);
    }
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webp::{Layout, Picture};

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

    fn assert_decoders_agree(width: u32, height: u32, pixels: &[u8], settings: &Settings) {
        let source = Planes::from_picture(&Picture {
            width,
            height,
            layout: Layout::Rgb,
            pixels,
        });
        let (frame, reconstruct) =
            encode_and_reconstruct(&source, width, height, settings).expect("encodes");
        let expected = reconstruct();
        let decoded = image_webp::vp8::Vp8Decoder::decode_frame(frame.as_slice())
            .unwrap_or_else(|e| panic!("{width}x{height} {settings:?} does not decode: {e}"));
        assert_eq!(
            (u32::from(decoded.width), u32::from(decoded.height)),
            (width, height)
        );
        let planes = [
            ("Y", &expected.luma, &decoded.ybuf, 16),
            ("U", &expected.chroma[0], &decoded.ubuf, 8),
            ("V", &expected.chroma[1], &decoded.vbuf, 8),
        ];
        for (name, ours, theirs, size) in planes {
            let stride = source.mb_width * size;
            if let Some(at) = (0..ours.len()).find(|&i| ours[i] != theirs[i]) {
                let (x, y) = (at % stride, at / stride);
                let (mb_x, mb_y) = (x / size, y / size);
                let rows = |plane: &[u8]| {
                    let row = |r: usize| {
                        format!(
                            "{:3?}\n",
                            &plane[(mb_y * size + r) * stride + mb_x * size..][..size]
                        )
                    };
                    (0..size).map(row).collect::<String>()
                };
                panic!(
                    "{width}x{height} {settings:?}: {name} first differs at {x}, {y}, in macroblock {mb_x}, {mb_y}\n\
                     the encoder reconstructed\n{}the decoder has\n{}",
                    rows(ours),
                    rows(theirs)
                );
            }
        }
    }

    const QUALITIES: [u8; 7] = [0, 1, 25, 50, 75, 85, 100];

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
            for quality in QUALITIES {
                assert_decoders_agree(
                    width,
                    height,
                    &pixels,
                    &Settings {
                        quality,
                        log2_partitions: None,
                        simd: Simd::detect(),
                    },
                );
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
                    quality: 60,
                    log2_partitions: Some(log2),
                    simd: Simd::detect(),
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
                assert_decoders_agree(
                    width,
                    height,
                    &pixels,
                    &Settings {
                        quality,
                        log2_partitions: None,
                        simd: Simd::detect(),
                    },
                );
            }
        }
    }

    #[test]
    fn every_kind_of_instructions_gives_the_same_bytes() {
        for (width, height) in [(1, 1), (33, 17), (200, 150)] {
            let pixels = picture(width, height);
            let picture = Picture {
                width,
                height,
                layout: Layout::Rgb,
                pixels: &pixels,
            };
            let source = Planes::from_picture(&picture);
            for quality in QUALITIES {
                let encode_with = |simd| {
                    let settings = Settings {
                        quality,
                        log2_partitions: None,
                        simd,
                    };
                    encode(&source, width, height, &settings).expect("encodes")
                };
                let expected = encode_with(Simd::SCALAR);
                for simd in Simd::supported() {
                    assert!(
                        encode_with(simd) == expected,
                        "{width}x{height} at {quality} with {simd:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_first_partition_outlasts_its_header() {
        let pixels = picture(16, 16);
        let source = Planes::from_picture(&Picture {
            width: 16,
            height: 16,
            layout: Layout::Rgb,
            pixels: &pixels,
        });
        for quality in 0..=100 {
            let settings = Settings {
                quality,
                log2_partitions: None,
                simd: Simd::detect(),
            };
            let frame = encode(&source, 16, 16, &settings).expect("encodes");
            let tag = u32::from_le_bytes([frame[0], frame[1], frame[2], 0]);
            let first = &frame[10..][..(tag >> 5) as usize];
            assert!(first.len() >= 8, "quality {quality}: {first:?}");
        }
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
            let exact = 127.0 * (1.0 - c.cbrt());
            let index = f64::from(quantizer_index(quality));
            assert!(
                (index - exact).abs() <= 0.501,
                "quality {quality}: {index} for {exact}"
            );
        }
    }
}
