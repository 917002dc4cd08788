use super::*;
use crate::picture::{Layout, RgbPicture};
use crate::testing::Random;
use crate::vp8::bool_encoder::BoolEncoder;
use crate::vp8::mode_budget::flag_cost;
use crate::vp8::mode_decision::LEAST_MODE_COST;
use crate::vp8::tables::DEFAULT_PROBABILITIES;

/// A picture with gradients, edges, noise and flat areas.
fn picture(width: u32, height: u32) -> Vec<u8> {
    let mut random = Random::new(u64::from(width * 31 + height));
    let mut pixels = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let pixel = match (x / 24 + y / 24) % 4 {
                0 => [(x * 5) as u8, (y * 3) as u8, (x + y) as u8],
                1 => [(); 3].map(|()| random.byte()),
                2 => [if (x * 3 + y * 5) % 17 < 6 { 240 } else { 20 }; 3],
                _ => [200, 40, 90],
            };
            pixels.extend(pixel);
        }
    }
    pixels
}

fn options(quality: u8) -> LossyOptions<'static> {
    LossyOptions {
        quality,
        effort: Effort::Medium,
        log2_partitions: None,
        constants: &Constants::DEFAULT,
        simd: Simd::detect(),
        workers: Workers::unlimited(2),
    }
}

fn planes_of(picture: &RgbPicture<'_>) -> Planes {
    Planes::from_picture(picture, Simd::detect(), Workers::unlimited(1))
        .expect("nothing cancels it")
}

/// Asserts decoder agreement, and that keeping the reconstruction does not change the bytes.
fn assert_decoders_agree(width: u32, height: u32, pixels: &[u8], options: &LossyOptions<'_>) {
    let picture = RgbPicture {
        width,
        height,
        layout: Layout::Rgb,
        pixels,
    };
    let frame = agreement::assert_decoders_agree(&picture, options);
    let source = planes_of(&picture);
    let same = encode(|| Ok(source.clone()), width, height, options).expect("encodes");
    assert!(frame == same, "{width}x{height} {options:?}: other bytes");
}

const QUALITIES: [u8; 7] = [0, 1, 25, 50, 75, 85, 100];
const EFFORTS: [Effort; 4] = [Effort::Low, Effort::Medium, Effort::High, Effort::Max];

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
                let options = LossyOptions {
                    effort,
                    ..options(quality)
                };
                assert_decoders_agree(width, height, &pixels, &options);
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
                let options = options(quality);
                agreement::assert_filtered_the_same(&picture, &options, Some(filter));
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
            &LossyOptions {
                log2_partitions: Some(log2),
                ..options(60)
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
            assert_decoders_agree(width, height, &pixels, &options(quality));
        }
    }
}

#[test]
fn bytes_do_not_depend_on_instructions_or_threads() {
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
                let options = LossyOptions {
                    effort,
                    simd,
                    workers: Workers::unlimited(threads),
                    log2_partitions: Some(2),
                    ..options(quality)
                };
                encode(|| Ok(source.clone()), width, height, &options).expect("encodes")
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

/// Cells of 4 x 4 pixels, bright and dark by a bent function of their place, whose Walsh-Hadamard
/// transform has sixteen coefficients of the same size: no block of Y2 has more energy below the
/// largest coefficient that kernels take.
#[test]
fn a_block_of_y2_may_have_all_its_coefficients_large() {
    for (dark, bright) in [(0, 255), (1, 254), (20, 235), (40, 200)] {
        let pixels: Vec<u8> = (0..32 * 32)
            .flat_map(|at| {
                let (x, y) = (at % 32 / 4, at / 32 / 4);
                let is_bright = (x & x >> 1 ^ y & y >> 1) & 1 != 0;
                [if is_bright { bright } else { dark }; 3]
            })
            .collect();
        for (effort, quality) in EFFORTS
            .map(|effort| QUALITIES.map(|it| (effort, it)))
            .concat()
        {
            for simd in Simd::supported() {
                let options = LossyOptions {
                    effort,
                    simd,
                    ..options(quality)
                };
                assert_decoders_agree(32, 32, &pixels, &options);
            }
        }
    }
}

#[test]
fn the_first_partition_is_padded_for_look_ahead() {
    let pixels = picture(16, 16);
    let source = planes_of(&RgbPicture {
        width: 16,
        height: 16,
        layout: Layout::Rgb,
        pixels: &pixels,
    });
    for quality in 0..=100 {
        let frame = encode(|| Ok(source.clone()), 16, 16, &options(quality)).expect("encodes");
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
    let constants = &Constants::DEFAULT;
    let segments = segment(&source, index, constants, workers).expect("nothing cancels it");
    for segmentation in [Segmentation::single(index, constants), segments] {
        for mode_budget in [LEAST_MODE_COST, 5 * 256, 8 * 256, 12 * 256, 20 * 256].map(u64::from) {
            let pass = DecisionPass {
                source: &source,
                segmentation: &segmentation,
                constants,
                search: ModeSearch::for_effort(Effort::Medium),
                expected_counts: None,
                visibilities: &[],
                mode_budget,
                simd: Simd::detect(),
                workers,
                keep_levels: true,
            };
            let (rows, _) = wavefront::decide(&pass, None).expect("nothing cancels it");
            let header = FrameHeader {
                segmentation: &segmentation,
                segment_probabilities: segment_probabilities(&rows),
                filter: FilterParameters::choose(&segmentation, constants),
                log2_partitions: 0,
                probabilities: &DEFAULT_PROBABILITIES,
                skip_probability: skip_probability(&rows),
            };
            let mut alone = BoolEncoder::with_capacity(0);
            header.write(&mut alone);
            let workers = Workers::unlimited(1);
            let first = partition::write_first(&header, &rows, Simd::SCALAR, workers)
                .expect("nothing cancels it");
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
fn too_large_partitions_are_encoded_with_coarser_quantizers() {
    let (width, height) = (300, 240);
    let pixels = picture(width, height);
    let picture = RgbPicture {
        width,
        height,
        layout: Layout::Rgb,
        pixels: &pixels,
    };
    let source = planes_of(&picture);
    let options = LossyOptions {
        log2_partitions: Some(3),
        ..options(95)
    };
    let sizes = |frame: &[u8]| -> Vec<usize> {
        let tag = u32::from_le_bytes([frame[0], frame[1], frame[2], 0]);
        let sizes = &frame[10 + (tag >> 5) as usize..][..21];
        let size = |s: &[u8]| u32::from_le_bytes([s[0], s[1], s[2], 0]) as usize;
        sizes.chunks_exact(3).map(size).collect()
    };
    let size = (width, height);
    let source = || Ok(source.clone());
    let unbound = encode_with_limit(usize::MAX, source, size, &options).expect("encodes");
    let largest = sizes(&unbound).into_iter().max().expect("seven sizes");
    let same = encode_with_limit(largest, source, size, &options).expect("encodes");
    assert!(same == unbound, "a partition may be as large as its bound");
    for most in [largest - 1, largest / 2, largest / 8] {
        let frame = encode_with_limit(most, source, size, &options).expect("encodes");
        assert!(
            sizes(&frame).iter().all(|&size| size <= most),
            "{:?} with at most {most}",
            sizes(&frame)
        );
        image_webp::vp8::Vp8Decoder::decode_frame(frame.as_slice()).expect("decodes");
    }
    assert_eq!(
        encode_with_limit(1, source, size, &options),
        Err(EncodeError::TooLarge),
        "what cannot be done ends"
    );
}

#[test]
fn an_index_rises_by_64_for_each_limit_that_noise_is_over() {
    assert_eq!(coarsen(20, 200, 100), 84);
    assert_eq!(coarsen(20, 150, 100), 52);
    assert_eq!(coarsen(20, 101, 100), 24, "four at least");
    assert_eq!(coarsen(64, 200, 100), 127, "no further than the last");
    assert_eq!(coarsen(64, usize::MAX, 0), 127);
}
