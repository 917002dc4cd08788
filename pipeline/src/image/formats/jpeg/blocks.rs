//! Tables that turn the next bits of a scan into coefficients (ITU-T T.81, F.2.2), several at a
//! time where they are only passed over.

use super::bits::{Buffer, Cursor};
use super::scan_header::{Coded, END_OF_BLOCK, MOST_AC_BITS, MOST_DC_BITS, SIXTEEN_ZEROS, Table};

/// The number of entries of the tables of AC coefficients, which are looked up by the next 11 bits,
/// and of those of DC differences, which are shorter.
const AC_ENTRIES: usize = 1 << 11;
const DC_ENTRIES: usize = 1 << 9;

/// The coefficients of a block that are kept: a square of the lowest frequencies.
pub type Block = [i32; 16];

/// The place of coefficients that are not kept, behind those of a [`Block`].
const NOWHERE: u32 = 16;

/// The codes of a table that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry(u32);

impl Entry {
    /// For codes that need more than a look at the table.
    const UNKNOWN: Entry = Entry(Entry::IS_INCOMPLETE);
    const IS_INCOMPLETE: u32 = 1 << 7;

    /// A code of `length` bits whose value, of `size` bits, is not among those that are looked up.
    fn incomplete(length: u32, zeros: u32, size: u32) -> Entry {
        Entry((length + size) | Entry::IS_INCOMPLETE | zeros << 8 | size << 16)
    }

    /// With the value, whose bits are among the next ones.
    #[inline(always)]
    fn with_value(self, next: u64) -> Entry {
        let size = self.0 >> 16;
        if size == 0 {
            return Entry(self.0 & !Entry::IS_INCOMPLETE);
        }
        let raw = (next >> (64 - self.bits())) as u32 & ((1 << size) - 1);
        let is_negative = raw >> (size - 1) == 0;
        let value = raw.wrapping_sub(if is_negative { (1 << size) - 1 } else { 0 });
        Entry(self.0 & 0x7f1f | value << 16)
    }

    /// The number of bits of code and value.
    #[inline(always)]
    fn bits(self) -> u32 {
        self.0 & 31
    }

    /// The step to the next coefficient: 64 at the end of the block.
    #[inline(always)]
    fn advance(self) -> usize {
        (self.0 >> 8 & 0x7f) as usize
    }

    #[inline(always)]
    fn value(self) -> i32 {
        self.0.cast_signed() >> 16
    }

    #[inline(always)]
    fn is_incomplete(self) -> bool {
        self.0 & Entry::IS_INCOMPLETE != 0
    }
}

/// A table of codes and values, looked up by the logarithm of `N` bits.
#[derive(Debug)]
pub struct Codes<const N: usize> {
    entries: Box<[Entry; N]>,
    /// Codes that are longer: the first 16 bits that begin with them, those behind, and their
    /// entries.
    long: Vec<(u32, u32, Entry)>,
}

impl<const N: usize> Codes<N> {
    /// The number of bits that are looked up.
    const BITS: u32 = N.trailing_zeros();

    fn new(table: &Table, is_ac: bool) -> Codes<N> {
        let mut codes = Codes {
            entries: Box::new([Entry::UNKNOWN; N]),
            long: Vec::new(),
        };
        for (symbol, code, length) in table.codes() {
            let Some(entry) = entry(symbol, length, is_ac) else {
                continue;
            };
            if length > Codes::<N>::BITS {
                let begin = code << (16 - length);
                codes
                    .long
                    .push((begin, begin + (1 << (16 - length)), entry));
                continue;
            }
            let free = Codes::<N>::BITS - length;
            let first = code << free;
            for bits in first..first + (1 << free) {
                let is_whole = entry.bits() <= Codes::<N>::BITS;
                let next = u64::from(bits) << (64 - Codes::<N>::BITS);
                codes.entries[bits as usize] = if is_whole {
                    entry.with_value(next)
                } else {
                    entry
                };
            }
        }
        codes.long.sort_unstable_by_key(|&(begin, ..)| begin);
        codes
    }

    /// Consumes a code and its value, at most 27 bits.
    #[inline(always)]
    fn take(&self, cursor: &mut Cursor) -> Option<Entry> {
        let mut entry = self.entries[(cursor.next >> (64 - Codes::<N>::BITS)) as usize];
        if entry.is_incomplete() {
            entry = self.complete(entry, cursor.next)?;
        }
        cursor.consume(entry.bits());
        Some(entry)
    }

    #[inline(never)]
    fn complete(&self, mut entry: Entry, next: u64) -> Option<Entry> {
        if entry == Entry::UNKNOWN {
            let code = (next >> 48) as u32;
            let place = self.long.partition_point(|&(_, end, _)| end <= code);
            let &(begin, _, long) = self.long.get(place)?;
            if code < begin {
                return None;
            }
            entry = long;
        }
        Some(entry.with_value(next))
    }
}

/// The entry of a code; `None` if files with samples of 8 bits have no such symbol.
fn entry(symbol: u8, length: u32, is_ac: bool) -> Option<Entry> {
    if !is_ac {
        return (symbol <= MOST_DC_BITS).then(|| Entry::incomplete(length, 0, symbol.into()));
    }
    let (zeros, size) = (u32::from(symbol >> 4), symbol & 15);
    match symbol {
        END_OF_BLOCK => Some(Entry::incomplete(length, 64, 0)),
        SIXTEEN_ZEROS => Some(Entry::incomplete(length, 16, 0)),
        _ if size == 0 || size > MOST_AC_BITS => None,
        _ => Some(Entry::incomplete(length, zeros + 1, size.into())),
    }
}

/// As many whole codes of AC coefficients as begin with the same bits, for passing over them.
#[derive(Debug)]
struct Steps(Box<[u16; AC_ENTRIES]>);

impl Steps {
    const ENDS: u16 = 1 << 15;

    fn new(table: &Table) -> Steps {
        const BITS: u32 = AC_ENTRIES.trailing_zeros();
        let mut codes = [(0, 0); AC_ENTRIES];
        for (symbol, code, length) in table.codes() {
            if let Some(free) = BITS.checked_sub(length) {
                let first = (code << free) as usize;
                codes[first..first + (1 << free)].fill((symbol, length));
            }
        }
        let step = |bits: usize| {
            let (mut length, mut advance) = (0, 0);
            while length < BITS && advance < 64 {
                let (symbol, code) = codes[bits << length & (AC_ENTRIES - 1)];
                let Some(entry) = entry(symbol, code, true) else {
                    break;
                };
                if code == 0 || length + code > BITS {
                    break;
                }
                length += entry.bits();
                if symbol == END_OF_BLOCK {
                    return Steps::ENDS | (advance << 5 | length) as u16;
                }
                advance += entry.advance() as u32;
            }
            (advance << 5 | length) as u16
        };
        Steps(Box::new(std::array::from_fn(step)))
    }
}

/// The use of a coefficient.
#[derive(Clone, Copy, Debug)]
#[repr(align(16))]
struct Place {
    quantizer: i32,
    /// The index in a [`Block`]; [`NOWHERE`] if it is not kept.
    index: u32,
    /// All ones if its energy counts.
    counts: u64,
}

/// The tables of a component.
#[derive(Debug)]
pub struct BlockReader {
    dc: Codes<DC_ENTRIES>,
    ac: Codes<AC_ENTRIES>,
    /// The use for components whose energy does not matter.
    steps: Option<Steps>,
    /// Indexed by the number of a coefficient, in zigzag order; twice as many, so that none is
    /// beyond.
    places: Box<[Place; 128]>,
    /// The number of the last one that is kept.
    last: usize,
}

impl BlockReader {
    /// The reader of blocks of which the lowest `size` frequencies of both directions are kept: at
    /// most 4. Blocks of the outcome are in the order of columns.
    pub fn new(coded: &Coded<'_>, size: usize, needs_energy: bool) -> BlockReader {
        let is_kept = |place: u8| usize::from(place / 8) < size && usize::from(place % 8) < size;
        let place = |number: usize| {
            let Some(&place) = ZIGZAG.get(number) else {
                return Place {
                    quantizer: 0,
                    index: NOWHERE,
                    counts: 0,
                };
            };
            let is_kept = is_kept(place);
            Place {
                quantizer: i32::from(coded.quantizers[number]),
                index: if is_kept {
                    u32::from(place % 8 * 4 + place / 8)
                } else {
                    NOWHERE
                },
                counts: if is_kept { 0 } else { u64::MAX },
            }
        };
        BlockReader {
            dc: Codes::new(coded.dc, false),
            ac: Codes::new(coded.ac, true),
            steps: (!needs_energy).then(|| Steps::new(coded.ac)),
            places: Box::new(std::array::from_fn(place)),
            last: ZIGZAG
                .iter()
                .rposition(|&place| is_kept(place))
                .unwrap_or(0),
        }
    }

    /// Consumes a block. Its DC coefficient is a difference to `prediction`, which becomes it.
    /// Returns the kept coefficients, multiplied by their quantizers, and the sum of the squares of
    /// the others, which is 0 if it is not needed.
    #[inline(always)]
    pub fn read(
        &self,
        cursor: &mut Cursor,
        buffer: &Buffer,
        prediction: &mut i16,
    ) -> Option<(Block, u64)> {
        let mut block = [0; 2 * NOWHERE as usize];
        let mut energy = 0;
        cursor.refill(buffer);
        let difference = self.dc.take(cursor)?.value();
        *prediction = i16::try_from(i32::from(*prediction) + difference).ok()?;
        block[0] = i32::from(*prediction) * self.places[0].quantizer;
        let last = if self.steps.is_some() { self.last } else { 63 };
        let (mut at, mut entry) = (0, Entry(0));
        while at < last {
            // Every second time the bits suffice without it.
            entry = self.ac.take(cursor)?;
            at += entry.advance();
            self.put(&mut block, &mut energy, at, entry.value());
            cursor.refill(buffer);
            if at >= last {
                break;
            }
            entry = self.ac.take(cursor)?;
            at += entry.advance();
            self.put(&mut block, &mut energy, at, entry.value());
        }
        if let Some(steps) = &self.steps
            && at < 63
        {
            self.skip(cursor, buffer, steps, at)?;
        } else if !is_end(at, entry) {
            return None;
        }
        let (block, _) = block.split_first_chunk()?;
        Some((*block, energy))
    }

    /// Consumes a block without its energy. Its DC coefficient is a difference to `prediction`,
    /// which becomes it. Returns the place of its AC coefficients.
    #[inline(always)]
    pub fn pass(
        &self,
        cursor: &mut Cursor,
        buffer: &Buffer,
        prediction: &mut i16,
    ) -> Option<Cursor> {
        cursor.refill(buffer);
        *prediction = prediction.checked_add(self.dc.take(cursor)?.value() as i16)?;
        let behind = *cursor;
        self.skip(cursor, buffer, self.steps.as_ref()?, 0)?;
        Some(behind)
    }

    /// Puts coefficient number `at` to its place.
    #[inline(always)]
    fn put(
        &self,
        block: &mut [i32; 2 * NOWHERE as usize],
        energy: &mut u64,
        at: usize,
        value: i32,
    ) {
        let place = &self.places[at % 128];
        let product = value * place.quantizer;
        block[place.index as usize % (2 * NOWHERE as usize)] = product;
        let product = i64::from(product);
        *energy += (product * product).cast_unsigned() & place.counts;
    }

    /// Passes over the AC coefficients behind number `at`.
    #[inline(always)]
    fn skip(
        &self,
        cursor: &mut Cursor,
        buffer: &Buffer,
        steps: &Steps,
        mut at: usize,
    ) -> Option<()> {
        loop {
            cursor.refill(buffer);
            let index = (cursor.next >> (64 - AC_ENTRIES.trailing_zeros())) as usize;
            let step = steps.0[index];
            let behind = at + usize::from(step >> 5 & 0x3ff);
            if step != 0 && behind < 63 {
                cursor.consume(u32::from(step & 31));
                if step & Steps::ENDS != 0 {
                    return Some(());
                }
                at = behind;
                continue;
            }
            let entry = self.ac.take(cursor)?;
            at += entry.advance();
            if at >= 63 {
                return is_end(at, entry).then_some(());
            }
        }
    }
}

/// Whether a block may end with this entry, which goes on to coefficient `at`, 63 or beyond.
#[inline(always)]
fn is_end(at: usize, entry: Entry) -> bool {
    // Behind sixteen zeros a coefficient comes.
    entry.advance() == 64 || at == 63 && entry.value() != 0
}

/// The places in a block, row by row, of its coefficients in zigzag order (T.81, figure 5).
const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59,
    52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];
