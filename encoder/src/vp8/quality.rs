//! The quantizer index of a quality. RFC 6386, section 9.6, defines the index; the quality is the
//! encoder's own scale.

use super::quantize::QuantizerIndex;

/// Returns the quantizer index of `quality`; values above 100 count as 100.
///
/// The curve is `0.95 * 127 (1 - cbrt(c))`, where `c` is 2/3 of the quality up to 75 and rises to 1
/// from there. It is libwebp's, so that numbers mean what users know, but 5 % finer, because the
/// trellis removes more. It is a table because cube roots differ between machines.
#[rustfmt::skip]
pub fn quantizer_index(quality: u8) -> QuantizerIndex {
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

#[cfg(test)]
mod tests {
    use super::*;

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
