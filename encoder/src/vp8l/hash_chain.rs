//! Finds the longest copy for each pixel with hash chains: RFC 9649, section 3.6.2.2.
//!
//! Positions that start with the same three pixels are chained, the latest first. The search runs
//! from the end of the image to its start. A copy found for a pixel also holds for the pixels
//! before it, one pixel longer each, as long as they match. A position's link is no longer needed
//! when its copy is found, so the copy takes the link's place in memory.

use super::distance::MAX_DISTANCE;
use super::match_length::match_length;
use super::prefix::MAX_LENGTH;
use crate::EncodeError;
use crate::checks::{Checks, PIXELS_PER_CHECK};
use crate::threads::Workers;

/// Longest copy that fits into the bits of a [`struct@Copy`].
pub const MAX_KEPT: usize = MAX_LENGTH - 1;

/// A copy: 12 bits of length, 20 bits of distance. Length 0 means no copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copy(u32);

impl Copy {
    /// No copy.
    pub const NONE: Copy = Copy(0);

    /// A copy of `length` pixels, up to [`MAX_KEPT`], from `distance` pixels back.
    #[inline]
    pub fn new(length: usize, distance: usize) -> Copy {
        debug_assert!(length <= MAX_KEPT && distance <= MAX_DISTANCE);
        Copy((distance << 12 | length) as u32)
    }

    /// Length in pixels.
    #[inline]
    pub fn length(self) -> usize {
        (self.0 & 0xFFF) as usize
    }

    /// Returns the copy of one more pixel from the same distance; `None` at the longest.
    #[inline]
    pub fn longer(self) -> Option<Copy> {
        (self.length() < MAX_KEPT).then(|| Copy(self.0 + 1))
    }

    /// Distance in pixels.
    #[inline]
    pub fn distance(self) -> usize {
        (self.0 >> 12) as usize
    }
}

/// Finds the longest copy for each pixel among the last `depth` positions of its chain.
pub fn longest_copies(
    pixels: &[u32],
    width: usize,
    depth: usize,
    workers: Workers<'_>,
) -> Result<Vec<Copy>, EncodeError> {
    let mut links = link_chains(pixels, workers)?;
    // Each pixel may take a search.
    let mut checks = Checks::every(PIXELS_PER_CHECK / 32, workers);
    let mut i = pixels.len();
    while i > 1 {
        i -= 1;
        checks.at(i)?;
        let best = search(pixels, &links, i, width, depth);
        links[i] = best;
        let distance = best.distance();
        if best.length() == 0 {
            continue;
        }
        let mut length = best.length();
        while i > distance && pixels[i - 1] == pixels[i - 1 - distance] {
            i -= 1;
            checks.at(i)?;
            length = (length + 1).min(MAX_KEPT);
            links[i] = Copy::new(length, distance);
        }
    }
    if let Some(first) = links.first_mut() {
        *first = Copy::NONE;
    }
    Ok(links)
}

/// Returns, for each pixel, the distance to the last position with the same hash; 0 if there is
/// none.
fn link_chains(pixels: &[u32], workers: Workers<'_>) -> Result<Vec<Copy>, EncodeError> {
    let hash_bits = pixels.len().max(2).ilog2().clamp(8, 17);
    // Indexed by hash: one past the last position.
    let mut last = vec![0u32; 1 << hash_bits];
    let mut links = Vec::with_capacity(pixels.len());
    let mut link = |i: usize, hash: u64| {
        let slot =
            &mut last[(hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - hash_bits)) as usize];
        let before = std::mem::replace(slot, i as u32 + 1) as usize;
        let distance = i + 1 - before;
        let is_near = before > 0 && distance <= MAX_DISTANCE;
        links.push(if is_near {
            Copy::new(0, distance)
        } else {
            Copy::NONE
        });
    };
    let mut i = 0;
    let mut checks = Checks::new(workers);
    while i + 2 < pixels.len() {
        checks.at(i)?;
        let color = pixels[i];
        if color != pixels[i + 1] || color != pixels[i + 2] {
            let pair = u64::from(color) << 32 | u64::from(pixels[i + 1]);
            link(
                i,
                pair ^ u64::from(pixels[i + 2]).wrapping_mul(0xC2B2_AE3D_27D4_EB4F),
            );
            i += 1;
            continue;
        }
        // All pixels of a run would be in one chain. The number of remaining pixels of the run sets
        // them apart.
        let limit = pixels.len() - i;
        let run = 1 + match_length(pixels, i, i + 1, (limit - 1).min(PIXELS_PER_CHECK));
        for left in (3..=run).rev() {
            let key = u64::from(color) << 32 | u64::from(color);
            link(i, key ^ (left.min(MAX_LENGTH) as u64) << 8);
            i += 1;
        }
    }
    links.resize(pixels.len(), Copy::NONE);
    Ok(links)
}

/// Finds the longest copy for pixel `i`.
#[inline]
fn search(pixels: &[u32], links: &[Copy], i: usize, width: usize, depth: usize) -> Copy {
    /// A copy of this length ends the search.
    const ENOUGH: usize = 512;
    let limit = (pixels.len() - i).min(MAX_KEPT);
    let (mut length, mut distance) = (0, 0);
    for near in [width, 1] {
        if near <= i && near <= MAX_DISTANCE && pixels[i - near] == pixels[i] {
            let found = match_length(pixels, i - near, i, limit);
            if found > length {
                (length, distance) = (found, near);
            }
        }
    }
    let mut from = i;
    for _ in 0..depth {
        if length >= ENOUGH || length >= limit {
            break;
        }
        let step = links[from].distance();
        if step == 0 || i + step - from > MAX_DISTANCE {
            break;
        }
        from -= step;
        if pixels[from + length] != pixels[i + length] || pixels[from] != pixels[i] {
            continue;
        }
        let found = match_length(pixels, from, i, limit);
        if found > length {
            (length, distance) = (found, i - from);
        }
    }
    Copy::new(length, distance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    #[test]
    fn copies_are_true_and_none_is_missed_in_plain_cases() {
        let mut random = Random::new(1);
        let pixels: Vec<u32> = (0..3000)
            .map(|i| if i % 700 < 300 { 7 } else { random.below(8) })
            .collect();
        let pixels = [pixels.as_slice(), &pixels[100..900]].concat();
        let copies =
            longest_copies(&pixels, 50, 64, Workers::unlimited(1)).expect("nothing cancels it");
        assert_eq!(copies[0], Copy::NONE);
        for (i, copy) in copies.iter().enumerate() {
            let (length, distance) = (copy.length(), copy.distance());
            assert!(
                distance <= i && i + length <= pixels.len(),
                "{copy:?} at {i}"
            );
            let source = &pixels[i - distance..];
            assert!(pixels[i..i + length] == source[..length], "{copy:?} at {i}");
        }
        let repeated = copies[3000];
        assert_eq!((repeated.length(), repeated.distance()), (800, 2900));
    }

    #[test]
    fn a_copy_grows_by_a_pixel_up_to_the_longest() {
        assert_eq!(Copy::new(5, 9).longer(), Some(Copy::new(6, 9)));
        let (almost, longest) = (Copy::new(MAX_KEPT - 1, 9), Copy::new(MAX_KEPT, 9));
        assert_eq!((almost.longer(), longest.longer()), (Some(longest), None));
    }

    #[test]
    fn lengths_are_limited() {
        let copies = longest_copies(&vec![3; 10_000], 100, 8, Workers::unlimited(1));
        let copies = copies.expect("nothing cancels it");
        assert_eq!(copies[1].length(), MAX_KEPT);
        assert_eq!(copies[9_999].length(), 1);
    }
}
