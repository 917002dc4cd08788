use super::*;
use crate::testing::Random;

fn workers() -> Workers<'static> {
    Workers::unlimited(1)
}

/// Pixels of noise, flat parts and extremes.
fn pixels(count: usize) -> Vec<u32> {
    let mut random = Random::new(1);
    let extremes = [
        0,
        u32::MAX,
        0xFF00_00FF,
        0x00FF_FF00,
        0x8080_8080,
        0x7F80_7F81,
    ];
    (0..count)
        .map(|i| match i / 7 % 4 {
            0 => random.next_u32(),
            1 => extremes[random.index(extremes.len())],
            2 => 0x4142_4344,
            _ => 0x8090_A0B0 + (random.next_u32() & 0x0707_0707),
        })
        .collect()
}

/// Predicts one pixel as section 3.5.1 words it, from the pixels to the left, above, above to the
/// left and above to the right.
fn predict(mode: u8, left: u32, top: u32, top_left: u32, top_right: u32) -> u32 {
    let each = |f: &dyn Fn(usize) -> i32| {
        u32::from_le_bytes(std::array::from_fn(|c| f(c).clamp(0, 255) as u8))
    };
    let c = |pixel: u32, c: usize| i32::from(pixel.to_le_bytes()[c]);
    let average = |a: u32, b: u32| each(&|i| (c(a, i) + c(b, i)) >> 1);
    match mode {
        0 => BLACK,
        1 => left,
        2 => top,
        3 => top_right,
        4 => top_left,
        5 => average(average(left, top_right), top),
        6 => average(left, top_left),
        7 => average(left, top),
        8 => average(top_left, top),
        9 => average(top, top_right),
        10 => average(average(left, top_left), average(top, top_right)),
        11 => {
            let estimate = |i| c(left, i) + c(top, i) - c(top_left, i);
            let to_left: i32 = (0..4).map(|i| (estimate(i) - c(left, i)).abs()).sum();
            let to_top: i32 = (0..4).map(|i| (estimate(i) - c(top, i)).abs()).sum();
            if to_left < to_top { left } else { top }
        }
        12 => each(&|i| c(left, i) + c(top, i) - c(top_left, i)),
        _ => {
            let mean = average(left, top);
            each(&|i| c(mean, i) + (c(mean, i) - c(top_left, i)) / 2)
        }
    }
}

fn residuals(pixels: &[u32], width: usize, modes: &Modes, simd: Simd) -> Vec<u32> {
    let mut pixels = pixels.to_vec();
    subtract_predicted(&mut pixels, width, modes, simd, workers()).expect("nothing cancels it");
    pixels
}

#[test]
fn residuals_of_every_mode_follow_the_rfc() {
    for (width, height) in [(1, 5), (2, 3), (4, 4), (37, 21), (64, 9)] {
        let pixels = pixels(width * height);
        for mode in 0..MODES as u8 {
            let across = width.div_ceil(4);
            // Neighboring blocks have different modes, and every mode occurs.
            let blocks = across * height.div_ceil(4);
            let by_block: Vec<u8> = (0..blocks)
                .map(|block| (usize::from(mode) + block * 5) as u8 % MODES as u8)
                .collect();
            let modes = Modes {
                block_bits: 2,
                across,
                by_block,
            };
            for simd in Simd::supported() {
                let left = residuals(&pixels, width, &modes, simd);
                for (i, left) in left.iter().enumerate() {
                    let (x, y) = (i % width, i / width);
                    let mode = modes.by_block[y / 4 * across + x / 4];
                    let predicted = match (x, y) {
                        (0, 0) => BLACK,
                        (_, 0) => pixels[i - 1],
                        (0, _) => pixels[i - width],
                        // The pixel beyond the last column is the first one of the next row.
                        _ => predict(
                            mode,
                            pixels[i - 1],
                            pixels[i - width],
                            pixels[i - width - 1],
                            pixels[i - width + 1],
                        ),
                    };
                    let expected = subtract(pixels[i], predicted);
                    assert_eq!(
                        *left, expected,
                        "mode {mode} at {x}, {y} of {width} x {height}, {simd:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_same_residuals_with_all_instructions() {
    let pixels = pixels(2 * 90);
    let mut bytes = RowBytes::new(90);
    for width in 1..89 {
        for mode in 0..MODES as u8 {
            let rows = bytes.fill(&pixels, 90, 1, &(1..1 + width));
            let mut expected = vec![0; width * 4];
            residual(mode, &rows, &mut expected, Simd::SCALAR);
            for simd in Simd::supported() {
                let mut residuals = vec![0; width * 4];
                residual(mode, &rows, &mut residuals, simd);
                assert_eq!(residuals, expected, "mode {mode}, {width} pixels, {simd:?}");
            }
        }
    }
}

#[test]
fn costs_are_bits_of_the_residuals() {
    // 3 | 10, 20: predicted from the left, 10 leaves 7, which has three bits; from above 1, one
    // bit.
    let gray = |value: u32| 0xFF00_0000 + value * 0x01_0101;
    let pixels = [gray(3), gray(9), gray(9), gray(3), gray(10), gray(9)];
    let mut bytes = RowBytes::new(3);
    for simd in Simd::supported() {
        let mut costs = [[0; MODES]];
        let rows = bytes.fill(&pixels, 3, 1, &(1..2));
        add_costs(&rows, 4, &mut [0; 4], &mut costs, simd);
        assert_eq!(costs[0][1], 3 * 3, "left");
        assert_eq!(costs[0][2], 3, "above");
        assert_eq!(costs[0][0], 3 * 4, "10 has four bits");
    }
}

#[test]
fn the_same_costs_with_all_instructions() {
    let width = 333;
    let pixels = pixels(width * 4);
    let mut bytes = RowBytes::new(width);
    let costs: Vec<_> = Simd::supported()
        .into_iter()
        .map(|simd| {
            let mut costs = vec![[0; MODES]; width.div_ceil(16)];
            for y in 1..4 {
                let rows = bytes.fill(&pixels, width, y, &(0..width));
                add_costs(&rows, 16, &mut vec![0; width * 4], &mut costs, simd);
            }
            costs
        })
        .collect();
    assert!(costs.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn each_block_gets_its_best_mode() {
    // Noise that continues from the left, and noise that continues from above.
    let noise = pixels(64);
    let width = 32;
    let picture: Vec<u32> = (0..width * 32)
        .map(|i| {
            let (x, y) = (i % width, i / width);
            if x < 16 { noise[y] } else { noise[x] }
        })
        .collect();
    let blocks = |row_step| Blocks {
        bits: 4,
        may_predict: &[true, true, true, false],
        row_step,
    };
    let choose = |rows| choose(&picture, width, blocks(rows), Simd::SCALAR, workers());
    let (modes, least) = choose(1).expect("nothing cancels it");
    assert_eq!(least[1], 0, "nothing is left below itself");
    // Mode 11 chooses the left pixel by itself.
    assert!(
        matches!(modes.by_block[..], [1 | 11, 2, 1 | 11, 0]),
        "{modes:?}"
    );
    let (of_few_rows, _) = choose(5).expect("nothing cancels it");
    assert!(
        matches!(of_few_rows.by_block[..], [1 | 11, 2, 1 | 11, 0]),
        "{of_few_rows:?}"
    );
    let closed = Modes {
        by_block: vec![modes.by_block[0], 0, 0, 0],
        ..modes.clone()
    };
    let all = residuals(&picture, width, &modes, Simd::SCALAR);
    let fewer =
        restrict_residuals(&picture, &all, width, &closed, workers()).expect("nothing cancels it");
    let direct = residuals(&picture, width, &closed, Simd::SCALAR);
    assert!(fewer == direct, "the same as from the start");
}
