//! Whether a picture is likely drawn rather than photographed: then coding it without loss may take fewer bytes.

use super::Picture;

/// One row of so many is looked at, with the one above it.
const ROWS_APART: usize = 8;

/// Up to so many bits a pixel, by the estimate, a picture is tried without loss. Photographs come to 9 and more, drawings,
/// screenshots and dithered pictures of few colours to less than 5.
const MOST_BITS: u64 = 6;

/// Whether a cheap estimate of what it takes without loss is low.
///
/// A pixel that repeats its left or its upper neighbour is taken to cost nothing, and any other two bits, and for each sample as
/// many again as its difference to the nearer of both has.
pub fn is_likely(picture: &Picture<'_>) -> bool {
    let channels = picture.layout.channels();
    let stride = picture.width as usize * channels;
    let rows: Vec<&[u8]> = picture.pixels.chunks_exact(stride).collect();
    let mut bits = 0;
    let mut pixels = 0;
    for y in (0..rows.len()).step_by(ROWS_APART) {
        let above = rows[y.saturating_sub(1)];
        bits += row_bits(rows[y], above, channels);
        pixels += picture.width as u64;
    }
    bits <= MOST_BITS * pixels
}

fn row_bits(row: &[u8], above: &[u8], channels: usize) -> u64 {
    let mut bits = 0;
    let mut left = &row[..channels];
    for (pixel, above) in row.chunks_exact(channels).zip(above.chunks_exact(channels)) {
        if pixel != left && pixel != above {
            bits += 2 + difference_bits(pixel, left).min(difference_bits(pixel, above));
        }
        left = pixel;
    }
    bits
}

fn difference_bits(a: &[u8], b: &[u8]) -> u64 {
    let bits = |(a, b): (&u8, &u8)| u64::from(u8::BITS - a.abs_diff(*b).leading_zeros());
    a.iter().zip(b).map(bits).sum()
}
