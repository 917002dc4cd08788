//! The transforms of 4x4 blocks: the inverse ones of RFC 6386, sections 14.3 and 14.4, and their
//! forward counterparts.
//!
//! The forward transforms output coefficients at the scale that the inverse transforms take, which
//! is twice that of an orthonormal transform. Squared errors of coefficients are therefore four
//! times those of pixels.

/// A 4x4 block of residuals or coefficients in raster order.
pub type Block = [i16; 16];

/// Right shift that turns squared coefficient errors into squared pixel errors.
pub const COEFFICIENT_ERROR_SHIFT: u32 = 2;

/// `sqrt(2) cos(pi / 8) - 1` and `sqrt(2) sin(pi / 8)` times 65536 (section 14.3).
const COSINE_LESS_ONE: i32 = 20091;
const SINE: i32 = 35468;

/// The rotation by pi / 8 of the forward DCT, times 4096: `sqrt(2) sin(pi / 8)` and `sqrt(2) cos(pi
/// / 8)`.
const FORWARD_SINE: i32 = 2217;
const FORWARD_COSINE: i32 = 5352;

/// Forward DCT of residuals within ±255.
#[inline]
pub fn forward_dct(residuals: &Block) -> Block {
    let mut rows = [[0i32; 4]; 4];
    for (row, out) in rows.iter_mut().enumerate() {
        let [r0, r1, r2, r3] = std::array::from_fn(|i| i32::from(residuals[row * 4 + i]));
        let (a, b, c, d) = (r0 + r3, r1 + r2, r1 - r2, r0 - r3);
        *out = [
            (a + b) << 3,
            (c * FORWARD_SINE + d * FORWARD_COSINE + (1 << 8)) >> 9,
            (a - b) << 3,
            (d * FORWARD_SINE - c * FORWARD_COSINE + (1 << 8)) >> 9,
        ];
    }
    let mut coefficients = [0; 16];
    for column in 0..4 {
        let [r0, r1, r2, r3] = std::array::from_fn(|i| rows[i][column]);
        let (a, b, c, d) = (r0 + r3, r1 + r2, r1 - r2, r0 - r3);
        coefficients[column] = ((a + b + (1 << 3)) >> 4) as i16;
        coefficients[4 + column] =
            ((c * FORWARD_SINE + d * FORWARD_COSINE + (1 << 15)) >> 16) as i16;
        coefficients[8 + column] = ((a - b + (1 << 3)) >> 4) as i16;
        coefficients[12 + column] =
            ((d * FORWARD_SINE - c * FORWARD_COSINE + (1 << 15)) >> 16) as i16;
    }
    coefficients
}

/// Inverse DCT, exactly as in section 14.3, for coefficients in the range that quantizer steps
/// allow.
#[inline]
pub fn inverse_dct(coefficients: &Block) -> Block {
    let mut columns = [[0i32; 4]; 4];
    for (column, out) in columns.iter_mut().enumerate() {
        *out = inverse_pass(std::array::from_fn(|i| {
            i32::from(coefficients[i * 4 + column])
        }));
    }
    let mut residuals = [0; 16];
    for row in 0..4 {
        let values = inverse_pass(std::array::from_fn(|i| columns[i][row]));
        for (i, value) in values.into_iter().enumerate() {
            residuals[row * 4 + i] = ((value + 4) >> 3) as i16;
        }
    }
    residuals
}

#[inline]
fn inverse_pass([i0, i1, i2, i3]: [i32; 4]) -> [i32; 4] {
    let times_cosine = |x: i32| x + ((x * COSINE_LESS_ONE) >> 16);
    let times_sine = |x: i32| (x * SINE) >> 16;
    let (a, b) = (i0 + i2, i0 - i2);
    let c = times_sine(i1) - times_cosine(i3);
    let d = times_cosine(i1) + times_sine(i3);
    [a + d, b + c, b - c, a - d]
}

/// Forward Walsh-Hadamard transform of the DCs of sixteen luma blocks.
pub fn forward_wht(dcs: &Block) -> Block {
    let mut rows = [[0i32; 4]; 4];
    for (row, out) in rows.iter_mut().enumerate() {
        *out = hadamard_pass(std::array::from_fn(|i| i32::from(dcs[row * 4 + i])));
    }
    let mut coefficients = [0; 16];
    for column in 0..4 {
        let values = hadamard_pass(std::array::from_fn(|i| rows[i][column]));
        for (i, value) in values.into_iter().enumerate() {
            coefficients[i * 4 + column] = ((value + 1) >> 1) as i16;
        }
    }
    coefficients
}

/// Inverse Walsh-Hadamard transform, exactly as in section 14.3.
pub fn inverse_wht(coefficients: &Block) -> Block {
    let mut columns = [[0i32; 4]; 4];
    for (column, out) in columns.iter_mut().enumerate() {
        *out = hadamard_pass(std::array::from_fn(|i| {
            i32::from(coefficients[i * 4 + column])
        }));
    }
    let mut dcs = [0; 16];
    for row in 0..4 {
        let values = hadamard_pass(std::array::from_fn(|i| columns[i][row]));
        for (i, value) in values.into_iter().enumerate() {
            dcs[row * 4 + i] = ((value + 3) >> 3) as i16;
        }
    }
    dcs
}

/// One dimension of the Walsh-Hadamard transform, in the RFC's order. Applied twice, it multiplies
/// by four.
#[inline]
fn hadamard_pass([i0, i1, i2, i3]: [i32; 4]) -> [i32; 4] {
    let (a, b, c, d) = (i0 + i3, i1 + i2, i1 - i2, i0 - i3);
    [a + b, c + d, a - b, d - c]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    fn random_blocks(range: i16) -> impl Iterator<Item = Block> {
        let mut random = Random::new(1);
        let range = i32::from(range);
        (0..5000).map(move |_| {
            std::array::from_fn(|_| (random.below(2 * range as u32 + 1) as i32 - range) as i16)
        })
    }

    #[test]
    fn inverse_dct_by_hand() {
        // The DC alone: (8 + 4) >> 3 everywhere.
        let mut block = [0; 16];
        block[0] = 8;
        assert_eq!(inverse_dct(&block), [1; 16]);
        // The first horizontal frequency alone, 1000: 1000 + (1000 * 20091 >> 16) = 1306 and 1000 *
        // 35468 >> 16 = 541, each (x + 4) >> 3, which rounds down.
        block = [0; 16];
        block[1] = 1000;
        let row = [163, 68, -68, -163];
        assert_eq!(inverse_dct(&block), [row, row, row, row].concat()[..]);
    }

    #[test]
    fn inverse_wht_by_hand() {
        let mut block = [0; 16];
        block[0] = 5;
        assert_eq!(inverse_wht(&block), [1; 16], "(5 + 3) >> 3");
        block = [0; 16];
        block[3] = 80;
        // The last basis function alternates: + - + -, along rows.
        assert_eq!(inverse_wht(&block)[..4], [10, -10, 10, -10]);
    }

    #[test]
    fn dct_is_inverted_within_one() {
        for block in random_blocks(255).chain([[255; 16], [-255; 16]]) {
            let back = inverse_dct(&forward_dct(&block));
            for i in 0..16 {
                assert!(
                    (back[i] - block[i]).abs() <= 1,
                    "{block:?} came back as {back:?}"
                );
            }
        }
    }

    #[test]
    fn wht_is_inverted_within_one() {
        for block in random_blocks(2040).chain([[2040; 16], [-2040; 16]]) {
            let back = inverse_wht(&forward_wht(&block));
            for i in 0..16 {
                assert!(
                    (back[i] - block[i]).abs() <= 1,
                    "{block:?} came back as {back:?}"
                );
            }
        }
    }

    #[test]
    fn coefficients_are_twice_orthonormal() {
        for block in random_blocks(255) {
            let energy = |b: &Block| b.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>();
            let ratio = energy(&forward_dct(&block)) / energy(&block);
            assert!((ratio - 4.0).abs() < 0.02, "{ratio}");
        }
    }
}
