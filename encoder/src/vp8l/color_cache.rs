//! The colour cache: RFC 9649, section 3.6.2.3. It holds the last pixel of each hash.

/// Where a colour lies in a cache of 2^`bits` entries, 1 to 11.
#[inline]
pub fn index(color: u32, bits: u32) -> usize {
    (color.wrapping_mul(0x1E35_A7BD) >> (32 - bits)) as usize
}

/// What a decoder's cache holds.
#[derive(Clone, Debug)]
pub struct ColorCache {
    bits: u32,
    colors: Vec<u32>,
}

impl ColorCache {
    /// As it is at the start: transparent black in 2^`bits` entries; 0 bits are no cache.
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

    /// The next pixel: its index if it was there. It is from now on.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colour_is_found_until_another_of_its_hash_comes() {
        // 0x1E35A7BD * 0xFF000001 is 0x6135A7BD in 32 bits: 0xBD * 0xFF is 0x43 in the uppermost byte, and 0x1E more.
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
