//! The header of lossless pixels (RFC 9649, 3.4), and the memory of their prefix codes.
//!
//! The decoder keeps a table for each prefix code, and a file of a few bytes for each may have
//! 65,536 groups of five: more than a gigabyte for a picture of a megapixel. So everything before
//! the pixels is read here to count them, without keeping any of it.

use super::chunk::damaged;
use crate::image::error::DecodeError;

/// Bytes of the signature, the sides, the flag for alpha and the version.
pub const HEAD: usize = 5;

/// Width, height, and whether alpha is used.
pub fn size(data: &[u8]) -> Option<((u32, u32), bool)> {
    let &[signature, a, b, c, d] = data.first_chunk::<HEAD>()?;
    let head = u32::from_le_bytes([a, b, c, d]);
    let side = |shift: u32| (head >> shift & 0x3fff) + 1;
    let is_sound = signature == 0x2f && head >> 29 == 0;
    is_sound.then_some(((side(0), side(14)), head >> 28 & 1 == 1))
}

/// Most bytes that the decoder holds beside the pixels, by the data behind the header. `symbols` is
/// the number of symbols that may still be read for that.
///
/// # Errors
/// [`DecodeError::Invalid`] if the data is damaged.
pub fn memory(data: &[u8], size: (u32, u32), symbols: &mut u64) -> Result<u64, DecodeError> {
    let mut skim = Skim {
        data,
        position: 0,
        memory: 0,
        symbols,
    };
    let read = skim.read(size);
    read.ok_or_else(|| damaged("its prefix codes are damaged, or too many"))?;
    Ok(skim.memory)
}

/// Reads a bitstream up to its pixels. Everything is `None` if that is damaged.
struct Skim<'a> {
    data: &'a [u8],
    /// In bits.
    position: usize,
    /// Bytes of what the decoder would have kept so far.
    memory: u64,
    symbols: &'a mut u64,
}

/// The sizes of the alphabets of green and lengths, red, blue, alpha and distances.
const ALPHABETS: [usize; 5] = [256 + 24, 256, 256, 256, 40];

/// The order in which the lengths of the codes for lengths come.
const ORDER: [usize; 19] = [
    17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
];

/// Bytes of a group of five codes in a list, three times, since the list grows.
const GROUP: u64 = 3 * 5 * 64;

impl Skim<'_> {
    fn read(&mut self, (mut width, height): (u32, u32)) -> Option<()> {
        let mut seen = [false; 4];
        while self.bits(1)? == 1 {
            let kind = self.bits(2)? as usize;
            if std::mem::replace(&mut seen[kind], true) {
                return None;
            }
            match kind {
                0 | 1 => {
                    let blocks = self.blocks(width, height)?;
                    self.memory += 4 * blocks.0 * blocks.1;
                    self.image(blocks)?;
                }
                3 => {
                    let colors = self.bits(8)? + 1;
                    self.image((u64::from(colors), 1))?;
                    let bits = match colors {
                        ..=2 => 3,
                        3..=4 => 2,
                        5..=16 => 1,
                        _ => 0,
                    };
                    width = width.div_ceil(1 << bits);
                }
                _ => {} // green is subtracted
            }
        }
        let cache = self.cache()?;
        let mut groups = 1;
        if self.bits(1)? == 1 {
            let blocks = self.blocks(width, height)?;
            // The blocks' numbers as colors, and as numbers of two bytes.
            self.memory += 6 * blocks.0 * blocks.1;
            groups = 1 + u64::from(self.image(blocks)?);
        }
        for _ in 0..groups {
            self.group(cache)?;
        }
        self.memory += GROUP * groups.max(4);
        Some(())
    }

    /// The number of blocks across and down.
    fn blocks(&mut self, width: u32, height: u32) -> Option<(u64, u64)> {
        let size = 1 << (self.bits(3)? + 2);
        Some((width.div_ceil(size).into(), height.div_ceil(size).into()))
    }

    /// The number of colors in the cache, if there is one.
    fn cache(&mut self) -> Option<usize> {
        if self.bits(1)? == 0 {
            return Some(0);
        }
        let bits = self.bits(4)?;
        let colors = (1..=11).contains(&bits).then(|| 1 << bits)?;
        self.memory += 4 * colors as u64;
        Some(colors)
    }

    /// Passes over an image that belongs to the header, and returns the largest number that the red
    /// and the green sample of a pixel make. Copies of earlier pixels have none that is larger.
    fn image(&mut self, (width, height): (u64, u64)) -> Option<u32> {
        let cache = self.cache()?;
        let [green, red, blue, alpha, distance] = self.group(cache)?;
        let (mut pixels, mut largest) = (width * height, 0);
        while pixels > 0 {
            *self.symbols = self.symbols.checked_sub(1)?;
            let before = self.position;
            let symbol = green.symbol(self)?;
            pixels -= match symbol {
                0..256 => {
                    let color = [&red, &blue, &alpha].map(|code| code.symbol(self));
                    largest = largest.max(color[0]? << 8 | symbol);
                    color[1].and(color[2])?;
                    // If no color takes a bit, all of them are this one.
                    if self.position == before { pixels } else { 1 }
                }
                256..280 => {
                    let length = self.length(symbol - 256)?;
                    let symbol = distance.symbol(self)?;
                    self.length(symbol)?;
                    pixels.checked_sub(length)?;
                    length
                }
                _ => 1,
            };
        }
        Some(largest)
    }

    /// The number behind the symbol of a length or a distance.
    fn length(&mut self, symbol: u32) -> Option<u64> {
        if symbol < 4 {
            return Some(u64::from(symbol) + 1);
        }
        let bits = (symbol - 2) >> 1;
        let offset = u64::from(2 + (symbol & 1)) << bits;
        Some(offset + u64::from(self.bits(bits)?) + 1)
    }

    fn group(&mut self, cache: usize) -> Option<[Code; 5]> {
        let mut codes = [const { Code::none() }; 5];
        for (index, code) in codes.iter_mut().enumerate() {
            let more = if index == 0 { cache } else { 0 };
            *code = self.code(ALPHABETS[index] + more)?;
            self.memory += code.memory();
        }
        Some(codes)
    }

    /// Reads a prefix code (RFC 9649, 3.7.2).
    fn code(&mut self, alphabet: usize) -> Option<Code> {
        if self.bits(1)? == 1 {
            let has_two = self.bits(1)? == 1;
            let bits = if self.bits(1)? == 1 { 8 } else { 1 };
            let first = self.bits(bits)? as u16;
            let mut symbols = vec![first];
            if has_two {
                symbols.push(self.bits(8)? as u16);
            }
            let is_known = symbols.iter().all(|symbol| usize::from(*symbol) < alphabet);
            return is_known.then(|| Code::simple(symbols));
        }
        let mut lengths = [0; 19];
        let count = 4 + self.bits(4)? as usize;
        for index in &ORDER[..count] {
            lengths[*index] = self.bits(3)? as u8;
        }
        let lengths_code = Code::of(&lengths)?;
        let mut most = alphabet;
        if self.bits(1)? == 1 {
            let bits = 2 + 2 * self.bits(3)?;
            most = 2 + self.bits(bits)? as usize;
        }
        if most > alphabet {
            return None;
        }
        let (mut lengths, mut last) = (Vec::with_capacity(alphabet), 8);
        while lengths.len() < alphabet && most > 0 {
            most -= 1;
            let (length, repeats) = match lengths_code.symbol(self)? {
                16 => (last, 3 + self.bits(2)?),
                17 => (0, 3 + self.bits(3)?),
                18 => (0, 11 + self.bits(7)?),
                length => (length as u8, 1),
            };
            if length != 0 {
                last = length;
            }
            lengths.resize(lengths.len() + repeats as usize, length);
        }
        if lengths.len() > alphabet {
            return None;
        }
        Code::of(&lengths)
    }

    /// The next bits, at most 57, and zeros behind the end.
    fn peek(&self) -> u64 {
        let rest = self.data.get(self.position / 8..).unwrap_or_default();
        let eight = rest.first_chunk().copied().unwrap_or_else(|| {
            let mut eight = [0; 8];
            eight[..rest.len()].copy_from_slice(rest);
            eight
        });
        u64::from_le_bytes(eight) >> (self.position % 8)
    }

    fn bits(&mut self, count: u32) -> Option<u32> {
        let value = self.peek() & ((1 << count) - 1);
        self.pass(count)?;
        Some(value as u32)
    }

    fn pass(&mut self, bits: u32) -> Option<()> {
        self.position += bits as usize;
        (self.position <= self.data.len() * 8).then_some(())
    }
}

/// A prefix code, whose codes of one length follow each other.
struct Code {
    /// The number of symbols of each length.
    counts: [u16; 16],
    /// The symbols by their codes; a single one takes no bits.
    symbols: Vec<u16>,
}

impl Code {
    const fn none() -> Code {
        Code {
            counts: [0; 16],
            symbols: Vec::new(),
        }
    }

    /// One of a single symbol, or of two with a bit each.
    fn simple(symbols: Vec<u16>) -> Code {
        let mut counts = [0; 16];
        counts[1] = symbols.len() as u16;
        Code { counts, symbols }
    }

    /// The code of symbols with codes of these lengths; `None` if there is no such code.
    fn of(lengths: &[u8]) -> Option<Code> {
        let mut counts = [0; 16];
        for length in lengths.iter().filter(|length| **length != 0) {
            counts[usize::from(*length)] += 1;
        }
        let mut symbols = Vec::with_capacity(counts.iter().map(|count| usize::from(*count)).sum());
        for (length, _) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let has = |(_, found): &(_, &u8)| usize::from(**found) == length;
            let those = lengths.iter().enumerate().filter(has);
            symbols.extend(those.map(|(symbol, _)| symbol as u16));
        }
        // Each code takes its share of all codes of 15 bits.
        let shares = (1..16).map(|length| u32::from(counts[length]) << (15 - length));
        let is_complete = shares.sum::<u32>() == 1 << 15;
        (is_complete || symbols.len() == 1).then_some(Code { counts, symbols })
    }

    /// Reads a symbol.
    fn symbol(&self, skim: &mut Skim<'_>) -> Option<u32> {
        if let [symbol] = self.symbols[..] {
            return Some(symbol.into());
        }
        let mut bits = skim.peek();
        // The code so far, and the first code and the first symbol of its length.
        let (mut code, mut first, mut index) = (0, 0, 0);
        for (length, &count) in (1..).zip(&self.counts[1..]) {
            code |= (bits & 1) as usize;
            bits >>= 1;
            let count = usize::from(count);
            if code < first + count {
                skim.pass(length)?;
                return Some(self.symbols[index + code - first].into());
            }
            index += count;
            first = (first + count) << 1;
            code <<= 1;
        }
        None
    }

    /// Most bytes of the decoder's table, for codes of up to ten bits, and of its tree for longer
    /// ones.
    fn memory(&self) -> u64 {
        let longest = (1..16).rfind(|length| self.counts[*length] > 0);
        let table = 4 << longest.unwrap_or(0).min(10);
        let long: u64 = self.counts[11..]
            .iter()
            .map(|count| u64::from(*count))
            .sum();
        if self.symbols.len() < 2 {
            0
        } else {
            table + 48 + 32 * long
        }
    }
}
