//! The boolean entropy encoder: RFC 6386, section 7.3.

mod scalar;

use crate::cpu::{Simd, with_instructions};

/// Writes booleans as an arithmetic code, each with the probability that it is false.
#[derive(Clone, Debug)]
pub struct BoolEncoder {
    out: Vec<u8>,
    code: Code,
}

/// The unfinished end of an arithmetic code: the binary fraction `low`, whose settled whole bytes
/// have moved to the output and can only change by a carry. After `k` halvings of the range, the
/// RFC's `bottom` is an integer of `8 + k` bits; `low` keeps the lowest `8 + bits` of them, below a
/// one that marks the end:
///
/// ```text
///  63        9+bits 8+bits                8        0
///  +---------+------+-----+---------------+--------+
///  |    0    | mark |carry| settled bits  | moving |
///  +---------+------+-----+---------------+--------+
/// ```
///
/// It is passed by value, so that loops keep it in registers.
#[derive(Clone, Copy, Debug)]
struct Code {
    low: u64,
    /// The RFC's range, 128 to 255, in the upper eight bits. There its leading zeros after a
    /// boolean are the shift that brings it back, which shortens the way from one boolean to the
    /// next.
    range: u32,
}

/// `low` from which on whole bytes leave it: 40 settled bits. 39 bits before a call, 14 from the
/// two booleans of a call, 8 moving bits, a carry and the mark fit into 64.
const FLUSH_AT: u64 = 1 << (9 + 40);

/// A boolean and the probability that it is false.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bool(u16);

impl Bool {
    /// `value`, which is false with probability `probability / 256`; 1 to 255.
    #[inline(always)]
    pub const fn new(value: bool, probability: u8) -> Bool {
        Bool((probability as u16) << 8 | value as u16)
    }
}

/// Up to seven booleans that are written together.
#[derive(Clone, Copy, Debug)]
pub struct BoolRun {
    /// The booleans; the last entry holds their number. Sixteen bytes are copied at once.
    entries: [Bool; 8],
}

impl BoolRun {
    /// No booleans.
    pub const EMPTY: BoolRun = BoolRun {
        entries: [Bool(0); 8],
    };

    /// Appends a boolean. Panics if there are seven already.
    pub const fn push(&mut self, bool: Bool) {
        assert!(self.len() < 7);
        self.entries[self.len()] = bool;
        self.entries[7].0 += 1;
    }

    /// Returns the number of booleans.
    #[inline(always)]
    pub const fn len(&self) -> usize {
        self.entries[7].0 as usize
    }

    /// Writes the run to `out` from entry `at` on, and returns the entry after it. Eight entries
    /// are overwritten.
    #[inline(always)]
    pub fn write_to(&self, out: &mut [Bool], at: usize) -> usize {
        out[at..at + 8].copy_from_slice(&self.entries);
        at + self.len()
    }
}

/// Booleans that wait to be encoded.
#[derive(Debug, Default)]
pub struct BoolBuffer {
    /// The booleans, then free space.
    entries: Vec<Bool>,
    length: usize,
}

impl BoolBuffer {
    /// An empty buffer with capacity for `capacity` booleans.
    pub fn with_capacity(capacity: usize) -> BoolBuffer {
        BoolBuffer {
            entries: Vec::with_capacity(capacity),
            length: 0,
        }
    }

    /// Appends a boolean.
    pub fn push(&mut self, bool: Bool) {
        self.append(1, |out| {
            out[0] = bool;
            1
        });
    }

    /// Appends a run.
    pub fn push_run(&mut self, run: &BoolRun) {
        self.append(8, |out| run.write_to(out, 0));
    }

    /// Appends what `write` writes to the start of a slice of `space` entries. `write` returns how
    /// many it wrote.
    #[inline(always)]
    pub fn append(&mut self, space: usize, write: impl FnOnce(&mut [Bool]) -> usize) {
        let end = self.length + space;
        if end > self.entries.len() {
            self.grow(end);
        }
        self.length += write(&mut self.entries[self.length..end]);
    }

    /// Grows to a little more than `length` entries, within the capacity if that is enough.
    #[cold]
    fn grow(&mut self, length: usize) {
        let capacity = self.entries.capacity();
        let more = (length + 4096).min(capacity).max(length);
        self.entries.resize(more, Bool(0));
    }

    /// Returns the booleans.
    pub fn as_slice(&self) -> &[Bool] {
        &self.entries[..self.length]
    }

    /// Removes the first `count` booleans.
    pub fn remove_first(&mut self, count: usize) {
        self.entries.copy_within(count..self.length, 0);
        self.length -= count;
    }

    /// Removes all booleans. The memory stays.
    pub fn clear(&mut self) {
        self.length = 0;
    }
}

impl Code {
    const START: Code = Code {
        low: 1 << 9,
        range: 255 << 24,
    };

    /// Encodes a boolean. At most two may follow each other without [`Code::flush`].
    #[inline(always)]
    fn push(self, Bool(bool): Bool) -> Code {
        let probability = u64::from(bool >> 8);
        let is_true = bool & 1 != 0;
        let split = 1 + ((u64::from(self.range - (1 << 24)) * probability) >> 32) as u32;
        let rest = (self.range >> 24) - split;
        let low = self.low + if is_true { u64::from(split) } else { 0 };
        let range = if is_true { rest } else { split };
        let zeros = range.leading_zeros();
        Code {
            low: low << (zeros - 24),
            range: range << zeros,
        }
    }

    /// Moves settled bytes to `out` if there are enough of them.
    #[inline(always)]
    fn flush(mut self, out: &mut Vec<u8>) -> Code {
        if self.low >= FLUSH_AT {
            self.low = flush_bytes(self.low, out);
        }
        self
    }

    /// Returns the number of settled bits.
    fn bits(self) -> u32 {
        settled_bits(self.low)
    }
}

#[inline(always)]
fn settled_bits(low: u64) -> u32 {
    low.ilog2() - 9
}

/// Moves the whole bytes of the settled bits in `low`, one at least, to `out`, and returns what
/// remains.
#[inline(never)]
fn flush_bytes(low: u64, out: &mut Vec<u8>) -> u64 {
    let bits = settled_bits(low);
    let length = out.len() + bits as usize / 8;
    let kept = 8 + bits % 8;
    // The carry at the top, then the settled bytes.
    let settled = low << (63 - 8 - bits);
    if settled >> 63 != 0 {
        carry(out);
    }
    // By steps of an eighth, little of the memory is idle; a vector would double it.
    if out.capacity() - out.len() < 8 {
        out.reserve_exact(out.len() / 8 + 64);
    }
    // Appending a fixed number of bytes is faster.
    out.extend_from_slice(&(settled << 1).to_be_bytes());
    out.truncate(length);
    low & ((1 << kept) - 1) | 1 << (kept + 1)
}

/// Adds one to the last byte of `out`, carrying to the left through bytes of 0xFF.
#[cold]
fn carry(out: &mut [u8]) {
    for byte in out.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            return;
        }
    }
    unreachable!("the code is a fraction below one, so its first byte absorbs every carry");
}

impl BoolEncoder {
    /// An encoder that has written nothing, with capacity for `capacity` bytes.
    pub fn with_capacity(capacity: usize) -> BoolEncoder {
        BoolEncoder {
            out: Vec::with_capacity(capacity),
            code: Code::START,
        }
    }

    /// Writes `value`, which is false with probability `probability / 256`; 1 to 255.
    #[inline]
    pub fn write(&mut self, value: bool, probability: u8) {
        let code = self.code.push(Bool::new(value, probability));
        self.code = code.flush(&mut self.out);
    }

    /// Writes `bools`.
    pub fn write_all(&mut self, bools: &[Bool], simd: Simd) {
        with_instructions!(
            simd,
            scalar => scalar::write_all(self, bools),
            vectors => scalar::write_all(self, bools),
        );
    }

    /// Writes as many booleans with each of two encoders. Each boolean depends on the one before
    /// it, so two independent codes take hardly longer than one.
    pub fn write_pairs(encoders: [&mut BoolEncoder; 2], bools: [&[Bool]; 2], simd: Simd) {
        with_instructions!(
            simd,
            scalar => scalar::write_pairs(encoders, bools),
            vectors => scalar::write_pairs(encoders, bools),
        );
    }

    /// Writes the lowest `width` bits of `value`, highest first, with even probability.
    pub fn write_literal(&mut self, value: u32, width: u32) {
        for bit in (0..width).rev() {
            self.write(value >> bit & 1 != 0, 128);
        }
    }

    /// Returns the number of bytes that [`BoolEncoder::finish`] would return.
    pub fn len(&self) -> usize {
        self.out.len() + (self.code.bits() as usize + 8).div_ceil(8)
    }

    /// Ends the code and returns it. It holds all bits of the RFC's `bottom`, so that a decoder
    /// that keeps one byte of look-ahead never reads past the end.
    pub fn finish(mut self) -> Vec<u8> {
        let bits = self.code.bits();
        let pad = bits.next_multiple_of(8) - bits;
        flush_bytes(self.code.low << (pad + 8), &mut self.out);
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    /// The decoder of section 7.3, one bit at a time.
    struct RfcDecoder<'a> {
        bytes: std::slice::Iter<'a, u8>,
        value: u32,
        range: u32,
        shifts: u32,
    }

    impl<'a> RfcDecoder<'a> {
        fn new(bytes: &'a [u8]) -> Self {
            let mut bytes = bytes.iter();
            let mut next = || u32::from(bytes.next().copied().unwrap_or(0));
            let value = next() << 8 | next();
            RfcDecoder {
                bytes,
                value,
                range: 255,
                shifts: 0,
            }
        }

        fn read(&mut self, probability: u8) -> bool {
            let split = 1 + (((self.range - 1) * u32::from(probability)) >> 8);
            let value = self.value >= split << 8;
            if value {
                self.range -= split;
                self.value -= split << 8;
            } else {
                self.range = split;
            }
            while self.range < 128 {
                self.range <<= 1;
                self.value <<= 1;
                self.shifts += 1;
                if self.shifts == 8 {
                    self.shifts = 0;
                    self.value |= u32::from(self.bytes.next().copied().unwrap_or(0));
                }
            }
            value
        }
    }

    fn encode(bools: &[(bool, u8)]) -> Vec<u8> {
        let mut encoder = BoolEncoder::with_capacity(0);
        for &(value, probability) in bools {
            encoder.write(value, probability);
        }
        let length = encoder.len();
        let bytes = encoder.finish();
        assert_eq!(
            bytes.len(),
            length,
            "len() is the length of what finish() returns"
        );
        let all: Vec<Bool> = bools.iter().map(|&(v, p)| Bool::new(v, p)).collect();
        for simd in Simd::supported() {
            let mut encoder = BoolEncoder::with_capacity(0);
            encoder.write_all(&all, simd);
            assert_eq!(encoder.finish(), bytes, "all at once with {simd:?}");
            let mut pair = [BoolEncoder::with_capacity(0), BoolEncoder::with_capacity(0)];
            let [first, second] = &mut pair;
            second.write(true, 9);
            BoolEncoder::write_pairs([first, second], [&all, &all], simd);
            let [first, second] = pair;
            let mut other = BoolEncoder::with_capacity(0);
            other.write(true, 9);
            other.write_all(&all, simd);
            assert_eq!(first.finish(), bytes, "the first of a pair with {simd:?}");
            assert_eq!(
                second.finish(),
                other.finish(),
                "the second of a pair with {simd:?}"
            );
        }
        bytes
    }

    fn assert_decodes(bools: &[(bool, u8)], bytes: &[u8]) {
        let mut decoder = RfcDecoder::new(bytes);
        for (i, &(value, probability)) in bools.iter().enumerate() {
            assert_eq!(
                decoder.read(probability),
                value,
                "boolean {i} of {}",
                bools.len()
            );
        }
    }

    /// Booleans whose code approaches `target` from below as closely as the length of `target`
    /// allows, and then passes it: the bytes written before are `target - 1`, 0xFF, 0xFF ..., and
    /// the last boolean carries through all of them.
    fn carry_at(target: &[u8]) -> Vec<(bool, u8)> {
        let mut bools = Vec::new();
        // The distance from `low` to the target in units of the moving byte's last bit, and the
        // bits of the target that are not shifted in yet.
        let mut distance = u32::from(target[0]);
        let mut rest = target[1..]
            .iter()
            .flat_map(|b| (0..8).rev().map(move |i| u32::from(b >> i & 1)))
            .peekable();
        let mut range = 255u32;
        loop {
            assert!(
                distance > 0 && distance < range,
                "the target lies inside the interval"
            );
            let split_of = |p: u8| 1 + (((range - 1) * u32::from(p)) >> 8);
            // For the last boolean, a split exactly at the target, taken upwards.
            let exact = (1..=255u8).find(|&p| split_of(p) == distance);
            if rest.peek().is_none() {
                // The bits of the target have run out; it continues with zeros.
                let p = exact
                    .or_else(|| (1..=255u8).find(|&p| split_of(p) > distance))
                    .expect("a split at or past it");
                bools.push((true, p));
                return bools;
            }
            // Otherwise halve the interval, keeping the target strictly inside.
            let p = 128u8;
            let split = split_of(p);
            let (value, p) = match distance.cmp(&split) {
                std::cmp::Ordering::Less => (false, p),
                std::cmp::Ordering::Greater => (true, p),
                std::cmp::Ordering::Equal => (false, p + 4),
            };
            let split = split_of(p);
            bools.push((value, p));
            if value {
                distance -= split;
                range -= split;
            } else {
                range = split;
            }
            while range < 128 {
                range <<= 1;
                distance = distance << 1 | rest.next().unwrap_or(0);
            }
        }
    }

    #[test]
    fn carries_reach_their_byte() {
        let cases = [
            ("into the first byte", vec![0x70]),
            (
                "onto a byte that is not 0xFF",
                vec![0x31, 0x41, 0x59, 0x26, 0x53, 0x58, 0x97, 0x93, 0x23, 0x84],
            ),
            ("onto one 0xFF", vec![0x12, 0x34, 0]),
            (
                "onto a run of 0xFF",
                vec![0x12, 0x34, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            ),
            (
                "onto a run of 0xFF longer than `low`",
                [vec![0x55], vec![0; 40]].concat(),
            ),
            ("at the flush", vec![0x12, 0x34, 0x56, 0x78, 0x9A, 0xBC, 0]),
        ];
        for (name, target) in cases {
            let bools = carry_at(&target);
            let bytes = encode(&bools);
            assert_decodes(&bools, &bytes);
            // Fractions compare as their bytes do.
            let before = encode(&bools[..bools.len() - 1]);
            assert!(before < target, "{name}: {before:02x?} is below the target");
            assert!(
                bytes >= target,
                "{name}: {bytes:02x?} has passed the target"
            );
            // Whatever follows a carry decodes too.
            for tail in 0..24 {
                let mut longer = bools.clone();
                longer.extend((0..tail).map(|i| (i % 3 == 0, 1 + (i * 37 % 255) as u8)));
                assert_decodes(&longer, &encode(&longer));
            }
        }
    }

    #[test]
    fn every_length_of_run_of_ff_carries() {
        for run in 0..64 {
            let mut target = vec![0x9C];
            target.extend(std::iter::repeat_n(0, run));
            let bools = carry_at(&target);
            assert_decodes(&bools, &encode(&bools));
        }
    }

    #[test]
    fn random_booleans_decode() {
        let mut random = Random::new(1);
        for length in (0..200).chain([10_000]) {
            let bools: Vec<(bool, u8)> = (0..length)
                .map(|_| {
                    let probability = (random.below(255) + 1) as u8;
                    (random.below(256) >= u32::from(probability), probability)
                })
                .collect();
            assert_decodes(&bools, &encode(&bools));
        }
    }

    #[test]
    fn unlikely_booleans_decode() {
        for (value, probability) in [
            (true, 255),
            (false, 1),
            (true, 1),
            (false, 255),
            (true, 128),
        ] {
            let bools = vec![(value, probability); 1000];
            assert_decodes(&bools, &encode(&bools));
        }
    }

    #[test]
    fn nothing_written_is_one_byte() {
        assert_eq!(encode(&[]).len(), 1);
    }
}
