//! The alpha plane beside lossy colors: the `ALPH` chunk (RFC 9649, section 2.7.1.2).

use crate::checks::Checks;
use crate::error::EncodeError;
use crate::threads::Workers;
use crate::vp8l::{self, LosslessOptions};

/// Compression methods, in the lowest two bits of the chunk's first byte.
const RAW: u8 = 0;
const LOSSLESS: u8 = 1;

/// How a value is predicted from those before it; the residuals are coded. The numbers are those of
/// the bits above the compression method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filter {
    None = 0,
    Horizontal = 1,
    Vertical = 2,
    Gradient = 3,
}

/// The `ALPH` chunk's data for `alpha`, samples in raster order in rows of `width`: as a lossless
/// bitstream, or raw where that is smaller. Below a `quality` of 100 the samples are rounded to
/// fewer values.
///
/// # Errors
/// [`EncodeError::Cancelled`].
pub fn encode(
    mut alpha: Vec<u8>,
    width: usize,
    quality: u8,
    settings: &LosslessOptions<'_>,
) -> Result<Vec<u8>, EncodeError> {
    let workers = settings.workers;
    quantize(&mut alpha, quality);
    let alpha = alpha.as_slice();
    let filter = choose_filter(alpha, width, workers)?;
    let stream = vp8l::encode_headless(filtered(alpha, width, filter, workers)?, width, settings)?;
    let (header, data) = if stream.len() < alpha.len() {
        (LOSSLESS | (filter as u8) << 2, stream.as_slice())
    } else {
        (RAW, alpha)
    };
    let mut chunk = Vec::with_capacity(1 + data.len());
    chunk.push(header);
    chunk.extend_from_slice(data);
    Ok(chunk)
}

/// The most filters that are tried side by side: each holds four bytes a pixel, and up to as many
/// for tokens.
pub const SIDE_BY_SIDE: usize = 2;

/// The filter whose residuals are estimated to take least.
fn choose_filter(alpha: &[u8], width: usize, workers: Workers<'_>) -> Result<Filter, EncodeError> {
    // Eight samples of two values go into one pixel; a filter makes more values of them.
    let other = alpha.iter().find(|value| **value != alpha[0]);
    if alpha
        .iter()
        .all(|value| *value == alpha[0] || Some(value) == other)
    {
        return Ok(Filter::None);
    }
    let filters = [
        Filter::None,
        Filter::Horizontal,
        Filter::Vertical,
        Filter::Gradient,
    ];
    let workers = workers.at_most(SIDE_BY_SIDE);
    let estimates = workers.run_checked(filters.len(), |i| {
        vp8l::estimate(
            &filtered(alpha, width, filters[i], workers)?,
            width,
            workers,
        )
    })?;
    let mut best = (u64::MAX, Filter::None);
    for (filter, estimate) in filters.into_iter().zip(estimates) {
        best = std::cmp::min_by_key(best, (estimate, filter), |(cost, _)| *cost);
    }
    Ok(best.1)
}

/// Rounds to fewer values, evenly from 0 to 255, which both stay: 2 at quality 0, 16 at 70, as
/// libwebp has it, and 248 at 99.
fn quantize(alpha: &mut [u8], quality: u8) {
    let quality = u32::from(quality);
    let steps = match quality {
        0..=70 => 1 + quality / 5,
        71..100 => 15 + (quality - 70) * 8,
        _ => return,
    };
    let rounded: [u8; 256] = std::array::from_fn(|value| {
        let step = (value as u32 * steps * 2 + 255) / (2 * 255);
        ((step * 255 * 2 + steps) / (2 * steps)) as u8
    });
    for value in alpha {
        *value = rounded[usize::from(*value)];
    }
}

/// The residuals of `alpha` by `filter`, as the green samples of pixels.
fn filtered(
    alpha: &[u8],
    width: usize,
    filter: Filter,
    workers: Workers<'_>,
) -> Result<Vec<u32>, EncodeError> {
    let mut pixels = Vec::with_capacity(alpha.len());
    let mut above: &[u8] = &[];
    let mut checks = Checks::new(workers);
    for (y, row) in alpha.chunks_exact(width).enumerate() {
        checks.at(y * width)?;
        for (x, &value) in row.iter().enumerate() {
            let left = x.checked_sub(1).map(|x| row[x]);
            let top = above.get(x).copied();
            let predicted = match (filter, left, top) {
                (Filter::None, ..) | (_, None, None) => 0,
                (_, Some(one), None) | (_, None, Some(one)) => one,
                (Filter::Horizontal, Some(left), _) => left,
                (Filter::Vertical, _, Some(top)) => top,
                (Filter::Gradient, Some(left), Some(top)) => {
                    let slope = i16::from(left) + i16::from(top) - i16::from(above[x - 1]);
                    slope.clamp(0, 255) as u8
                }
            };
            pixels.push(0xFF00_0000 | u32::from(value.wrapping_sub(predicted)) << 8);
        }
        above = row;
    }
    Ok(pixels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Simd;
    use crate::options::Effort;
    use crate::testing::Random;

    fn workers() -> Workers<'static> {
        Workers::unlimited(1)
    }

    #[test]
    fn residuals_of_each_filter() {
        // By hand: the first sample less 0, the rest of the first row less its left neighbor, the
        // rest of the first column less the upper one.
        let alpha = [10, 12, 200, 11, 14, 190];
        for (filter, expected) in [
            (Filter::None, [10, 12, 200, 11, 14, 190]),
            (Filter::Horizontal, [10, 2, 188, 1, 3, 176]),
            (Filter::Vertical, [10, 2, 188, 1, 2, 246]),
            // 14 - (11 + 12 - 10); 190 - (14 + 200 - 12).
            (Filter::Gradient, [10, 2, 188, 1, 1, 244]),
        ] {
            let left = filtered(&alpha, 3, filter, workers()).expect("it is not cancelled");
            let green: Vec<u32> = left.iter().map(|pixel| pixel >> 8 & 0xFF).collect();
            assert_eq!(green, expected, "{filter:?}");
        }
    }

    #[test]
    fn slopes_are_filtered_noise_is_raw_and_few_values_are_neither() {
        let encoded = |alpha: &[u8]| {
            let settings = LosslessOptions {
                effort: Effort::Medium,
                simd: Simd::SCALAR,
                workers: workers(),
            };
            encode(alpha.to_vec(), 64, 100, &settings).expect("it is not cancelled")
        };
        let slope: Vec<u8> = (0..64 * 64)
            .map(|i| (i % 64 * 2 + i / 64 * 2) as u8)
            .collect();
        let chunk = encoded(&slope);
        assert_eq!(chunk[0] & 3, LOSSLESS);
        assert_ne!(chunk[0] >> 2, 0, "a filter");
        assert!(chunk.len() < 100, "{} bytes for a slope", chunk.len());
        let mut random = Random::new(1);
        let noise: Vec<u8> = (0..64 * 64).map(|_| random.byte()).collect();
        assert_eq!(encoded(&noise)[0], RAW);
        assert_eq!(encoded(&noise)[1..], noise);
        let few: Vec<u8> = noise.iter().map(|value| value / 128 * 255).collect();
        assert_eq!(encoded(&few)[0], LOSSLESS);
        assert!(encoded(&few).len() < 64 * 64 / 8 + 100, "a bit a pixel");
    }

    #[test]
    fn lower_quality_leaves_fewer_values_and_both_ends() {
        for (quality, values) in [(0, 2), (35, 9), (70, 16), (99, 248), (100, 256), (255, 256)] {
            let mut alpha: Vec<u8> = (0..=255).collect();
            quantize(&mut alpha, quality);
            assert_eq!((alpha[0], alpha[255]), (0, 255), "quality {quality}");
            assert!(alpha.is_sorted(), "quality {quality}");
            alpha.dedup();
            assert_eq!(alpha.len(), values, "quality {quality}");
        }
        let mut alpha = [127, 128];
        quantize(&mut alpha, 0);
        assert_eq!(alpha, [0, 255], "to the nearest");
    }
}
