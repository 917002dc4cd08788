//! The quality that a JPEG has left: with a finer one, its WebP mostly has more bytes, and shows
//! the JPEG's own errors more exactly.
//!
//! It is the number that the JPEG was saved with, by the scale of libjpeg and of what follows it.
//! Among 15 photographs and drawings, saved with numbers from 30 to 95, at most one WebP of the
//! same number was larger than its JPEG, and none of those from 85 on; on average they have 0.6 to
//! 0.8 of its bytes. `docs/api.md` has a table of bytes and scores.

/// The quality by luma's quantizers: 19 to 98 is exactly the number, below that up to 10 more.
pub(super) fn of_quantizers(quantizers: &[u16; 64]) -> u8 {
    /// The sum of the quantizers of T.81, K.1, which are those of quality 50.
    const SUM_OF_50: u32 = 3688;
    let sum: u32 = quantizers
        .iter()
        .map(|quantizer| u32::from(*quantizer))
        .sum();
    // The factor of those quantizers in percent.
    let percent = (100 * sum + SUM_OF_50 / 2) / SUM_OF_50;
    let quality = if percent <= 100 {
        (200 - percent) / 2
    } else {
        5000 / percent
    };
    quality.min(100) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Luma's quantizers of quality 50 (T.81, K.1).
    const OF_50: [u16; 64] = [
        16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69,
        56, 14, 17, 22, 29, 51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81,
        104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
    ];

    #[test]
    fn quantizers_of_libjpegs_scale_give_its_number() {
        for quality in 19..=98u16 {
            let percent = if quality < 50 {
                5000 / quality
            } else {
                200 - 2 * quality
            };
            let scaled = |quantizer: u16| (quantizer * percent + 50) / 100;
            let quantizers = OF_50.map(|quantizer| scaled(quantizer).clamp(1, 255));
            assert_eq!(u16::from(of_quantizers(&quantizers)), quality);
        }
    }

    #[test]
    fn the_finest_and_the_coarsest_quantizers_stay_in_the_range() {
        assert_eq!(of_quantizers(&[1; 64]), 99);
        assert_eq!(of_quantizers(&[0; 64]), 100);
        assert_eq!(of_quantizers(&[u16::MAX; 64]), 0);
    }
}
