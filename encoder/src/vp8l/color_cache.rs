//! The color cache, which holds the last pixel of each hash: RFC 9649, section 3.6.2.3.

use crate::EncodeError;
use crate::checks::PIXELS_PER_CHECK;
use crate::threads::Workers;

/// Returns the index of a color in a cache of `2^bits` entries; `bits` is 1 to 11.
#[inline]
pub fn index(color: u32, bits: u32) -> usize {
    (color.wrapping_mul(0x1E35_A7BD) >> (32 - bits)) as usize
}

/// The cache of a decoder.
#[derive(Clone, Debug)]
pub struct ColorCache {
    bits: u32,
    colors: Vec<u32>,
}

impl ColorCache {
    /// A cache of `2^bits` entries of transparent black, as at the start; no cache if `bits` is 0.
    pub fn new(bits: u32) -> ColorCache {
        ColorCache {
            bits,
            colors: if bits == 0 {
                Vec::new()
            } else {
                vec![0; 1 << bits]
            },
        }
    }

    /// Inserts the next pixel. Returns its index if it was in the cache already.
    #[inline]
    pub fn find(&mut self, color: u32) -> Option<usize> {
        if self.bits == 0 {
            return None;
        }
        let index = index(color, self.bits);
        let was = std::mem::replace(&mut self.colors[index], color);
        (was == color).then_some(index)
    }
}

/// The pixels of an image that a decoder finds in its color cache. They do not depend on the
/// tokens, because copied pixels enter the cache too.
#[derive(Clone, Debug)]
pub struct CacheHits {
    /// Base-2 logarithm of the number of entries; 0 is no cache.
    bits: u32,
    /// One bit per pixel.
    words: Vec<u64>,
}

impl CacheHits {
    /// No cache.
    pub const NONE: CacheHits = CacheHits {
        bits: 0,
        words: Vec::new(),
    };

    /// The hits of `pixels` in a cache of `2^bits` entries; `bits` is 0 to 11.
    pub fn new(pixels: &[u32], bits: u32, workers: Workers<'_>) -> Result<CacheHits, EncodeError> {
        if bits == 0 {
            return Ok(CacheHits::NONE);
        }
        let mut cache = ColorCache::new(bits);
        let mut words = Vec::with_capacity(pixels.len().div_ceil(64));
        // The cache starts with this color at its index.
        let mut before = 0;
        for part in pixels.chunks(PIXELS_PER_CHECK) {
            workers.check()?;
            for pixels in part.chunks(64) {
                let mut word = 0;
                for (i, &pixel) in pixels.iter().enumerate() {
                    let is_hit = pixel == before || cache.find(pixel).is_some();
                    word |= u64::from(is_hit) << i;
                    before = pixel;
                }
                words.push(word);
            }
        }
        Ok(CacheHits { bits, words })
    }

    /// Base-2 logarithm of the number of entries; 0 is no cache.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns the cache index of pixel `i`, whose color is `color`, if a decoder finds it there.
    #[inline]
    pub fn index(&self, i: usize, color: u32) -> Option<usize> {
        let word = self.words.get(i / 64)?;
        (word >> (i % 64) & 1 == 1).then(|| index(color, self.bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_color_is_found_until_its_slot_is_overwritten() {
        // 0x1E35A7BD * 0xFF000001 is 0x6135A7BD in 32 bits: 0xBD * 0xFF is 0x43 in the uppermost
        // byte, and 0x1E more.
        assert_eq!(index(0xFF00_0001, 11), 0x6135_A7BD >> 21);
        let mut cache = ColorCache::new(1);
        assert_eq!(cache.find(0), Some(0), "what it holds at the start");
        assert_eq!(cache.find(1), None);
        assert_eq!(index(1, 1), 0);
        assert_eq!(cache.find(1), Some(0));
        assert_eq!(cache.find(0), None, "replaced by 1");
        assert_eq!(ColorCache::new(0).find(0), None);
    }
}
