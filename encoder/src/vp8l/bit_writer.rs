//! Writes bits in bitstream order, least significant first: RFC 9649, section 3.3 (`ReadBits`).

/// Collects bits into bytes.
#[derive(Clone, Debug, Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    /// Bits that do not fill 32 yet, the first one lowest.
    pending: u64,
    /// Number of pending bits, below 32.
    count: u32,
}

impl BitWriter {
    /// Appends the lowest `count` bits of `value`, at most 32. The other bits must be 0.
    #[inline]
    pub fn put(&mut self, value: u32, count: u32) {
        debug_assert!(count <= 32 && u64::from(value) >> count == 0);
        self.pending |= u64::from(value) << self.count;
        self.count += count;
        if self.count >= 32 {
            self.bytes
                .extend_from_slice(&(self.pending as u32).to_le_bytes());
            self.pending >>= 32;
            self.count -= 32;
        }
    }

    /// Appends one bit.
    pub fn put_flag(&mut self, flag: bool) {
        self.put(u32::from(flag), 1);
    }

    /// Returns the number of bits written.
    pub fn bits(&self) -> usize {
        self.bytes.len() * 8 + self.count as usize
    }

    /// Returns the bytes, the last one padded with zeros.
    pub fn finish(mut self) -> Vec<u8> {
        let rest = self.count.div_ceil(8) as usize;
        self.bytes
            .extend_from_slice(&self.pending.to_le_bytes()[..rest]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bit_is_the_lowest_of_the_first_byte() {
        let mut bits = BitWriter::default();
        bits.put(0b1, 1);
        bits.put(0b01, 2);
        bits.put_flag(true);
        bits.put(0b1_0000, 5);
        assert_eq!(bits.finish(), [0b0000_1011, 0b1]);
    }

    #[test]
    fn words_of_32_bits_keep_their_order_at_every_offset() {
        for offset in 0..32 {
            let mut bits = BitWriter::default();
            bits.put(0, offset);
            bits.put(0x8765_4321, 32);
            bits.put(0, 0);
            let bytes = bits.finish();
            assert_eq!(bytes.len(), (offset as usize + 32).div_ceil(8));
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(&bytes);
            assert_eq!(u64::from_le_bytes(whole), 0x8765_4321 << offset, "{offset}");
        }
        assert!(BitWriter::default().finish().is_empty());
    }
}
