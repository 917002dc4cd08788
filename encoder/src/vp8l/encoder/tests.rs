//! Encodes synthetic pictures, and decodes them with an independent decoder.

use super::*;
use crate::Effort;
use crate::bitstream::Bitstream;
use crate::cancel::Cancel;
use crate::cancel::tests::Checks;
use crate::cpu::Simd;
use crate::options::Metadata;
use crate::testing::Random;
use crate::vp8l::greedy_parse;
use crate::vp8l::transform::transformed::Transformed;
use crate::{container, reference};

const EFFORTS: [Effort; 3] = [Effort::Low, Effort::Medium, Effort::High];

fn options(effort: Effort, threads: usize) -> LosslessOptions<'static> {
    LosslessOptions {
        effort,
        simd: Simd::detect(),
        workers: Workers::unlimited(threads),
    }
}

/// Decodes the data of a `VP8L` chunk with image-webp.
fn decode(data: &[u8]) -> (usize, Vec<u32>) {
    let coded = Bitstream {
        alpha: None,
        frame: data.to_vec(),
        is_lossless: true,
        is_reduced: false,
    };
    let workers = Workers::unlimited(1);
    let file = container::still((1, 1), &coded, &Metadata::default(), workers).expect("small");
    let ((width, _), pixels) = reference::decode(&file);
    let argb = |[r, g, b, a]: [u8; 4]| u32::from_be_bytes([a, r, g, b]);
    (width as usize, pixels.into_iter().map(argb).collect())
}

#[track_caller]
fn assert_same(what: &str, data: &[u8], pixels: &[u32], width: usize) {
    let (decoded_width, decoded) = decode(data);
    assert_eq!(decoded_width, width, "{what}");
    let differing = decoded.iter().zip(pixels).position(|(a, b)| a != b);
    if let Some(i) = differing {
        let (x, y) = (i % width, i / width);
        panic!(
            "{what}: {:08x} at {x}, {y} instead of {:08x}",
            decoded[i], pixels[i]
        );
    }
    assert_eq!(decoded.len(), pixels.len(), "{what}");
}

/// Encodes with every effort, and asserts the same bytes with other threads and instructions.
#[track_caller]
fn round_trip(what: &str, pixels: &[u32], width: usize) {
    for effort in EFFORTS {
        let data = encode(pixels.to_vec(), width, &options(effort, 1)).expect("nothing cancels it");
        assert_same(&format!("{what}, {effort:?}"), &data, pixels, width);
        for (simd, threads) in Simd::supported()
            .into_iter()
            .zip([2, 8].into_iter().cycle())
        {
            let other = LosslessOptions {
                simd,
                ..options(effort, threads)
            };
            let other = encode(pixels.to_vec(), width, &other).expect("nothing cancels it");
            assert_eq!(
                other, data,
                "{what}, {effort:?}: {threads} threads, {simd:?}"
            );
        }
    }
}

/// A drawing (lines of words that repeat), something like a photograph beside it, and a gradient.
fn page(width: usize, height: usize) -> Vec<u32> {
    let mut random = Random::new(7);
    let words: Vec<u32> = (0..200).map(|_| random.below(4) * 0x0040_4040).collect();
    let mut pixels = Vec::with_capacity(width * height);
    for y in 0..height {
        for x in 0..width {
            let grain = random.below(5) as usize;
            let [red, green, blue] = if x < width / 3 {
                let word = words[(x + y / 12 * 31 + y % 12 * 17) % words.len()];
                let color = if y % 12 < 8 { word } else { 0x00F0_F8FF };
                [color >> 16, color >> 8, color].map(|c| c as usize)
            } else if x < width * 2 / 3 {
                [x * y / 50 + grain, x + y + grain * 2, y * 2 + grain]
            } else {
                [x, y, x + y]
            };
            pixels.push(u32::from_be_bytes([
                255,
                red as u8,
                green as u8,
                blue as u8,
            ]));
        }
    }
    pixels
}

#[test]
fn all_sizes() {
    for (width, height) in [
        (1, 1),
        (2, 1),
        (1, 2),
        (1, 17),
        (17, 1),
        (3, 5),
        (7, 7),
        (8, 9),
        (15, 16),
        (16, 16),
        (17, 33),
        (31, 2),
        (2, 31),
        (64, 64),
        (129, 65),
        (300, 3),
        (3, 300),
        (16383, 1),
        (1, 16383),
        (4097, 3),
    ] {
        round_trip(
            &format!("page of {width} x {height}"),
            &page(width, height),
            width,
        );
        let flat = vec![0xFF12_3456; width * height];
        round_trip(&format!("flat {width} x {height}"), &flat, width);
    }
}

#[test]
fn all_numbers_of_colors() {
    for colors in [1, 2, 3, 4, 5, 15, 16, 17, 64, 255, 256, 257, 1000] {
        for width in [1, 5, 16, 61] {
            let mut random = Random::new(u64::from(colors));
            let palette: Vec<u32> = (0..colors)
                .map(|_| random.next_u32() | 0xFF00_0000)
                .collect();
            // Each color occurs at least once.
            let mut pixels = palette.clone();
            while pixels.len() < 61 * 40 || !pixels.len().is_multiple_of(width) {
                pixels.push(palette[random.below(colors) as usize]);
            }
            round_trip(&format!("{colors} colors, {width} wide"), &pixels, width);
        }
    }
}

#[test]
fn noise_gradients_alpha_and_runs() {
    let mut random = Random::new(1);
    let width = 97;
    let pixels: Vec<u32> = (0..width * 83).map(|_| random.next_u32()).collect();
    round_trip("noise with alpha", &pixels, width);
    let opaque: Vec<u32> = pixels.iter().map(|pixel| pixel | 0xFF00_0000).collect();
    round_trip("noise", &opaque, width);
    let grain: Vec<u32> = pixels
        .iter()
        .map(|pixel| pixel & 0x0303_0303 | 0x8070_6050)
        .collect();
    round_trip("grain", &grain, width);
    let gradient = |i: usize| {
        let (x, y) = (i % width, i / width);
        u32::from_be_bytes([(x + y) as u8, (2 * x) as u8, (3 * y) as u8, (x ^ y) as u8])
    };
    let pixels: Vec<u32> = (0..width * 83).map(gradient).collect();
    round_trip("gradient with alpha", &pixels, width);
    let runs: Vec<u32> = (0..20_000u32)
        .map(|i| 0xFF00_0000 | (i / 4097).wrapping_mul(0x0013_5791) & 0x00FF_FFFF)
        .chain(opaque.iter().copied())
        .chain(std::iter::repeat_n(0xFF00_00FF, 9000))
        .collect();
    round_trip("runs longer than a copy", &runs[..runs.len() / 89 * 89], 89);
    let far: Vec<u32> = opaque.iter().chain(&runs).chain(&opaque).copied().collect();
    round_trip("copies from far away", &far[..far.len() / 50 * 50], 50);
}

#[test]
fn a_picture_of_many_tiles_and_parts() {
    let width = 700;
    round_trip("page of 700 x 500", &page(width, 500), width);
}

#[test]
fn distances_beyond_the_window() {
    // The second half repeats the first from 1.2 million pixels back, farther than a copy may
    // reach.
    let mut random = Random::new(3);
    let half: Vec<u32> = (0..1_200_000)
        .map(|_| random.next_u32() | 0xFF00_0000)
        .collect();
    let pixels = [half.as_slice(), &half[..200_000]].concat();
    let data =
        encode(pixels.clone(), 1000, &options(Effort::Medium, 1)).expect("nothing cancels it");
    assert_same("beyond the window", &data, &pixels, 1000);
    // This one repeats from one million pixels back, within reach.
    let pixels = [&half[..1_000_000], &half[..400_000]].concat();
    let data =
        encode(pixels.clone(), 1000, &options(Effort::Medium, 1)).expect("nothing cancels it");
    assert_same("within the window", &data, &pixels, 1000);
    assert!(data.len() < 3_200_000, "{} bytes: no copies", data.len());
}

#[test]
fn codes_of_all_lengths() {
    // Counts of green for which codes would have up to 24 bits.
    let mut fibonacci = vec![1usize, 1];
    while fibonacci.len() < 25 {
        fibonacci.push(fibonacci[fibonacci.len() - 1] + fibonacci[fibonacci.len() - 2]);
    }
    let mut random = Random::new(5);
    let mut pixels: Vec<u32> = (0u32..)
        .zip(&fibonacci)
        .flat_map(|(green, count)| std::iter::repeat_n(0xFF00_0000 | green << 8, *count))
        .collect();
    for i in (1..pixels.len()).rev() {
        pixels.swap(i, random.below(i as u32 + 1) as usize);
    }
    let width = 100;
    let height = pixels.len() / width;
    let transformed = Transformed::untouched(pixels[..width * height].to_vec(), width);
    let data = write(transformed, &[0], Effort::Medium);
    assert_same("Fibonacci", &data, &pixels[..width * height], width);
    round_trip("Fibonacci", &pixels[..width * height], width);
}

/// Returns the data of a chunk with exactly these transforms and one of these caches.
fn write(transformed: Transformed, cache_bits: &'static [u32], effort: Effort) -> Vec<u8> {
    let mut bits = BitWriter::default();
    let width = transformed.width;
    bits.put(0x2F, 8);
    bits.put(width as u32 - 1, 14);
    bits.put((transformed.pixels.len() / width) as u32 - 1, 14);
    bits.put(0b0001, 4);
    let search = ParseSearch {
        cache_bits,
        ..ParseSearch::for_effort(effort, &transformed)
    };
    coding::write(&mut bits, transformed, &search, &options(effort, 1))
        .expect("nothing cancels it");
    bits.finish()
}

impl Transformed {
    fn untouched(pixels: Vec<u32>, width: usize) -> Transformed {
        let tokens = greedy_parse::parse_greedily(&pixels, width, Workers::unlimited(1))
            .expect("nothing cancels it");
        Transformed {
            pixels,
            width,
            tokens,
            transforms: Vec::new(),
        }
    }
}

#[test]
fn color_caches_of_all_sizes() {
    const BITS: [&[u32]; 12] = [
        &[0],
        &[1],
        &[2],
        &[3],
        &[4],
        &[5],
        &[6],
        &[7],
        &[8],
        &[9],
        &[10],
        &[11],
    ];
    for (width, height) in [(150, 90), (1, 1), (2, 2)] {
        let pixels = page(width, height);
        for bits in BITS {
            for effort in EFFORTS {
                let data = write(Transformed::untouched(pixels.clone(), width), bits, effort);
                let what = format!("{bits:?} bits, {width} x {height}, {effort:?}");
                assert_same(&what, &data, &pixels, width);
            }
        }
    }
}

#[test]
fn the_smallest_picture_bit_by_bit() {
    let data = write(
        Transformed::untouched(vec![0xFF01_0000], 1),
        &[0],
        Effort::Low,
    );
    // Signature; width and height less 1, alpha, version; no transform, no cache, no entropy image;
    // simple codes of one symbol for green (0), red (1), blue (0), alpha (255, in 8 bits) and
    // distance (0).
    assert_eq!(data[..5], [0x2F, 0, 0, 0, 0x10]);
    let codes = "000".to_owned() + "1000" + "1001" + "1000" + "101" + "11111111" + "1000";
    let bit = |i: usize| data[5 + i / 8] >> (i % 8) & 1;
    let written: String = (0..codes.len())
        .map(|i| if bit(i) == 1 { '1' } else { '0' })
        .collect();
    assert_eq!(written, codes);
    assert_eq!(data.len(), 5 + codes.len().div_ceil(8));
}

#[test]
fn encoding_is_cancelled_at_any_check() {
    let pixels = page(120, 100);
    for effort in EFFORTS {
        let encode_for = |allowed: usize, threads: usize| {
            let checks = Checks::new(allowed);
            let is_unwanted = || checks.are_used_up();
            let cancel = Cancel::when(&is_unwanted);
            let options = LosslessOptions {
                workers: Workers::new(threads, None, &cancel),
                ..options(effort, 1)
            };
            let outcome = encode(pixels.clone(), 120, &options);
            (outcome.map(|_| ()), checks.calls.into_inner())
        };
        let (outcome, calls) = encode_for(usize::MAX, 1);
        assert_eq!(outcome, Ok(()));
        for threads in [1, 3] {
            for allowed in (0..calls).step_by(1 + calls / 60) {
                let (outcome, next_check) = encode_for(allowed, threads);
                let what = format!("{effort:?}, {threads} threads, {allowed} checks");
                assert_eq!(outcome, Err(EncodeError::Cancelled), "{what}");
                assert!(
                    next_check <= allowed + threads,
                    "{what}: {next_check} checks"
                );
            }
        }
    }
}

/// Shapes of a few colors, whose edges repeat.
fn drawing(width: usize, height: usize, colors: u32) -> Vec<u32> {
    (0..width * height)
        .map(|i| {
            let (x, y) = (i % width, i / width);
            let index = (x * x / 9 + y * y / 5) as u32 / 40 % colors;
            0xFF00_0000 | index.wrapping_mul(0x0035_7B1D) & 0x00FF_FFFF
        })
        .collect()
}

#[test]
fn small_drawings_of_any_number_of_colors() {
    for (colors, side) in [
        (1, 40),
        (2, 75),
        (4, 75),
        (16, 75),
        (17, 100),
        (60, 181),
        (256, 64),
    ] {
        let pixels = drawing(side, side, colors);
        round_trip(&format!("{colors} colors, {side} x {side}"), &pixels, side);
    }
}

#[test]
fn a_small_drawing_gets_the_smallest_encoding() {
    let pixels = drawing(100, 75, 9);
    let options = options(Effort::High, 1);
    let candidates =
        choice::list_candidates(pixels.clone(), 100, &options).expect("nothing cancels it");
    assert!(candidates.len() > 1, "as indices and as colors");
    let least = candidates.into_iter().map(|candidate| {
        let mut bits = BitWriter::default();
        let search = ParseSearch::for_effort(Effort::High, &candidate);
        coding::write(&mut bits, candidate, &search, &options).expect("nothing cancels it");
        bits.bits()
    });
    let least = least.min().expect("candidates");
    let data = encode(pixels, 100, &options).expect("nothing cancels it");
    // The header of five bytes, and padding to a whole byte.
    assert_eq!(data.len(), 5 + least.div_ceil(8));
}
