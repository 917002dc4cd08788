//! Walks the entropy-coded data of a sequential JPEG without decoding it (ITU-T T.81, F.2.2), to
//! where a row of MCUs begins. From there on the data are made such that a decoder can begin with
//! them: the first DC coefficients are coded anew, since they are differences from those before.
//!
//! That takes half of the time of decoding. Data that no usual writer makes end the walk without a
//! result: the decoder reports the faults of a file.

use super::segments::Segment;
use std::ptr;

/// The number of bits that are looked up at once; most codes have no more.
const FAST_BITS: u32 = 10;

/// The end of a block among the symbols of AC coefficients, and sixteen zeros (F.1.2.2.1).
pub const END_OF_BLOCK: u8 = 0;
pub const SIXTEEN_ZEROS: u8 = 0xf0;

/// The most bits of a DC difference and of an AC coefficient with samples of 8 bits (F.1.2).
pub const MOST_DC_BITS: u8 = 11;
pub const MOST_AC_BITS: u8 = 10;

/// The tables and the components of a scan.
#[derive(Debug)]
pub struct ScanHeader {
    tables: Vec<Option<Table>>,
    components: Vec<Component>,
    /// The tables of quantizers, in zigzag order.
    quantizers: [Option<[u16; 64]>; 4],
}

/// A component of the scan.
#[derive(Debug)]
struct Component {
    /// The number of its blocks in an MCU, across and down.
    factors: [usize; 2],
    /// The indices of its tables.
    dc: usize,
    ac: usize,
    quantizers: usize,
}

/// A component with its tables.
#[derive(Clone, Copy, Debug)]
pub struct Coded<'a> {
    /// The number of its blocks in an MCU, across and down.
    pub factors: [usize; 2],
    /// The table of quantizers, in zigzag order.
    pub quantizers: &'a [u16; 64],
    pub dc: &'a Table,
    pub ac: &'a Table,
}

impl Coded<'_> {
    /// Whether another component has the same tables.
    pub fn is_like(&self, other: &Coded<'_>) -> bool {
        ptr::eq(self.dc, other.dc)
            && ptr::eq(self.ac, other.ac)
            && ptr::eq(self.quantizers, other.quantizers)
    }
}

impl ScanHeader {
    /// Reads the segments of a file up to the first scan. `None` unless the frame is sequential,
    /// and the scan has all components.
    pub fn read(segments: &[Segment<'_>]) -> Option<ScanHeader> {
        let mut tables: Vec<Option<Table>> = (0..8).map(|_| None).collect();
        let mut quantizers = [None; 4];
        // Name, sampling factors and table of quantizers of each component.
        let mut frame: Vec<[u8; 3]> = Vec::new();
        for segment in segments {
            match (segment.marker, segment.data) {
                (0xc4, mut data) => {
                    while let Some((&[place], rest)) = data.split_first_chunk() {
                        let (counts, rest) = rest.split_first_chunk()?;
                        let count = counts.iter().map(|&count| usize::from(count)).sum();
                        let (symbols, rest) = rest.split_at_checked(count)?;
                        let (class, number) = (place >> 4, place & 15);
                        if class > 1 || number > 3 {
                            return None;
                        }
                        let table = Table::new(counts, symbols, class == 1)?;
                        tables[usize::from(class * 4 + number)] = Some(table);
                        data = rest;
                    }
                }
                (0xc0 | 0xc1, &[8, _, _, _, _, _, ref components @ ..]) if frame.is_empty() => {
                    frame = components.as_chunks::<3>().0.to_vec();
                }
                (0xdb, mut data) => {
                    while let Some((&[place], rest)) = data.split_first_chunk() {
                        let (table, rest) = quantizer_table(place >> 4, rest)?;
                        *quantizers.get_mut(usize::from(place & 15))? = Some(table);
                        data = rest;
                    }
                }
                (0xda, &[count, ref rest @ ..]) => {
                    let (selectors, _) = rest.split_at_checked(usize::from(count) * 2)?;
                    let selectors = selectors.as_chunks::<2>().0;
                    if selectors.len() != frame.len() || frame.is_empty() {
                        return None;
                    }
                    let component =
                        |(&[name, factors, table], &[selected, numbers]): (&[u8; 3], &[u8; 2])| {
                            let [dc, ac] = [numbers >> 4, numbers & 15].map(usize::from);
                            (name == selected && dc < 4 && ac < 4).then_some(Component {
                                factors: [factors >> 4, factors & 15].map(usize::from),
                                dc,
                                ac: 4 + ac,
                                quantizers: usize::from(table),
                            })
                        };
                    let components = frame.iter().zip(selectors).map(component);
                    return Some(ScanHeader {
                        components: components.collect::<Option<_>>()?,
                        tables,
                        quantizers,
                    });
                }
                (0xc0..=0xcf, _) => return None,
                _ => {}
            }
        }
        None
    }

    /// The data from row `row` of MCUs on, such that a decoder can begin with them. `mcus` is the
    /// number of MCUs of a row; `go_on` is called before each row. At most [`most_bytes`] bytes are
    /// allocated.
    pub fn data_from_row(
        &self,
        data: &[u8],
        row: usize,
        mcus: usize,
        mut go_on: impl FnMut() -> bool,
    ) -> Option<Vec<u8>> {
        let mut bits = Bits::of(data);
        let mut predictions = vec![0; self.components.len()];
        let parts: Option<Vec<_>> = self
            .components
            .iter()
            .map(|one| self.tables_of(one))
            .collect();
        let parts = parts?;
        for _ in 0..row {
            if !go_on() {
                return None;
            }
            for _ in 0..mcus {
                for ((blocks, dc, ac), prediction) in parts.iter().zip(&mut predictions) {
                    for _ in 0..*blocks {
                        *prediction += dc.difference(&mut bits)?;
                        ac.skip_coefficients(&mut bits)?;
                    }
                }
            }
        }
        let mut writer = Writer::with_capacity(most_bytes(data.len() - bits.at));
        for ((blocks, dc, ac), prediction) in parts.iter().zip(predictions) {
            for block in 0..*blocks {
                let difference = dc.difference(&mut bits)?;
                let before = if block == 0 { prediction } else { 0 };
                dc.write_difference(&mut writer, before.checked_add(difference)?)?;
                ac.copy_coefficients(&mut bits, &mut writer)?;
            }
        }
        writer.copy_all(&mut bits, go_on)
    }

    fn tables_of(&self, component: &Component) -> Option<(usize, &Table, &Table)> {
        let [dc, ac] = [component.dc, component.ac].map(|table| self.tables[table].as_ref());
        Some((component.factors[0] * component.factors[1], dc?, ac?))
    }

    /// The components of the scan; `None` if a table is missing.
    pub fn coded(&self) -> Option<Vec<Coded<'_>>> {
        let coded = |component: &Component| {
            let (_, dc, ac) = self.tables_of(component)?;
            Some(Coded {
                factors: component.factors,
                quantizers: self.quantizers.get(component.quantizers)?.as_ref()?,
                dc,
                ac,
            })
        };
        self.components.iter().map(coded).collect()
    }
}

/// A table of quantizers of 8 or of 16 bits (B.2.4.1), and the data behind it.
fn quantizer_table(precision: u8, data: &[u8]) -> Option<([u16; 64], &[u8])> {
    match precision {
        0 => {
            let (table, rest) = data.split_first_chunk::<64>()?;
            Some((table.map(u16::from), rest))
        }
        1 => {
            let (table, rest) = data.split_first_chunk::<128>()?;
            let pairs = table.as_chunks::<2>().0;
            let table = std::array::from_fn(|number| u16::from_be_bytes(pairs[number]));
            Some((table, rest))
        }
        _ => None,
    }
}

/// The most bytes that [`ScanHeader::data_from_row`] allocates for data of `length` bytes. Zeros
/// that mark bytes of ones (B.1.1.5) are hardly more where the bits lie otherwise.
pub fn most_bytes(length: usize) -> usize {
    length + length / 32 + 1024
}

/// A table of Huffman codes (C.2).
pub struct Table {
    /// Indexed by the next [`FAST_BITS`] bits: the symbol, and above it the number of bits of its
    /// code; 0 for longer codes.
    fast: Vec<u16>,
    /// Indexed by the same bits, for AC coefficients: the number of bits of code and coefficient
    /// together, and above it by how many coefficients to go on; 0 where that takes a closer look.
    steps: Vec<u16>,
    /// Indexed by the number of bits of a code: the first 16 bits beyond its codes.
    limits: [u32; 17],
    /// Indexed by the number of bits: the offset from a code to the place of its symbol.
    offsets: [i32; 17],
    symbols: Vec<u8>,
    /// Indexed by symbol: the code and its number of bits, which is 0 if it has none.
    codes: Vec<(u16, u8)>,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table")
            .field("symbols", &self.symbols)
            .finish_non_exhaustive()
    }
}

impl Table {
    /// The table with `counts[n]` codes of `n + 1` bits for these symbols; `None` if there are more
    /// codes than bits allow.
    fn new(counts: &[u8; 16], symbols: &[u8], is_ac: bool) -> Option<Table> {
        let mut table = Table {
            fast: vec![0; 1 << FAST_BITS],
            steps: vec![0; 1 << FAST_BITS],
            limits: [0; 17],
            offsets: [0; 17],
            symbols: symbols.to_vec(),
            codes: vec![(0, 0); 256],
        };
        let (mut code, mut place) = (0u32, 0);
        for (length, &count) in (1..).zip(counts) {
            table.offsets[length] = place - code as i32;
            for _ in 0..count {
                // No code is all ones (C.2).
                if code + 1 >= 1 << length {
                    return None;
                }
                let symbol = symbols[place as usize];
                table.codes[usize::from(symbol)] = (code as u16, length as u8);
                table.look_up(code, length as u32, symbol, is_ac);
                code += 1;
                place += 1;
            }
            table.limits[length] = code << (16 - length);
            code <<= 1;
        }
        Some(table)
    }

    /// The symbols that have a code, with it and its number of bits.
    pub fn codes(&self) -> impl Iterator<Item = (u8, u32, u32)> {
        let codes = (0..=255).zip(&self.codes);
        codes.filter_map(|(symbol, &(code, length))| {
            (length > 0).then_some((symbol, code.into(), length.into()))
        })
    }

    /// Enters a code into the tables that are looked up.
    fn look_up(&mut self, code: u32, length: u32, symbol: u8, is_ac: bool) {
        let Some(free) = FAST_BITS.checked_sub(length) else {
            return;
        };
        let (zeros, size) = (symbol >> 4, symbol & 15);
        let step = match symbol {
            _ if !is_ac => 0,
            END_OF_BLOCK => 64 << 8 | length,
            // Sixteen zeros, too, have no size.
            _ if size == 0 || size > MOST_AC_BITS => 0,
            _ => (u32::from(zeros) + 1) << 8 | (length + u32::from(size)),
        };
        let range = (code << free) as usize..((code + 1) << free) as usize;
        self.fast[range.clone()].fill((length << 8) as u16 | u16::from(symbol));
        self.steps[range].fill(step as u16);
    }

    /// The next symbol and the number of bits of its code, which are not consumed.
    #[inline(always)]
    fn symbol(&self, bits: &Bits<'_>) -> Option<(u8, u32)> {
        let entry = self.fast[bits.peek(FAST_BITS) as usize];
        if entry != 0 {
            return Some((entry as u8, u32::from(entry >> 8)));
        }
        self.long_symbol(bits.peek(16))
    }

    #[cold]
    fn long_symbol(&self, code: u32) -> Option<(u8, u32)> {
        let length = (1..=16).find(|&length| code < self.limits[length])?;
        let place = (code >> (16 - length)) as i32 + self.offsets[length];
        let symbol = self.symbols.get(usize::try_from(place).ok()?)?;
        Some((*symbol, length as u32))
    }

    /// Consumes a DC difference (F.2.2.1).
    #[inline(always)]
    fn difference(&self, bits: &mut Bits<'_>) -> Option<i32> {
        bits.refill();
        let (size, length) = self.symbol(bits)?;
        if size > MOST_DC_BITS {
            return None;
        }
        bits.consume(length)?;
        let size = u32::from(size);
        if size == 0 {
            return Some(0);
        }
        bits.number(size)
    }

    /// Consumes the AC coefficients of a block (F.2.2.2).
    #[inline(always)]
    fn skip_coefficients(&self, bits: &mut Bits<'_>) -> Option<()> {
        self.walk_coefficients(1, bits, |_, _| Some(()))
    }

    /// Copies the AC coefficients of a block.
    fn copy_coefficients(&self, bits: &mut Bits<'_>, writer: &mut Writer) -> Option<()> {
        self.walk_coefficients(1, bits, |bits, length| {
            writer.write(bits.peek(length), length)
        })
    }

    /// Consumes the AC coefficients of a block from number `at` on, and calls `visit` before each
    /// with the number of its bits.
    #[inline(always)]
    fn walk_coefficients(
        &self,
        mut at: u32,
        bits: &mut Bits<'_>,
        mut visit: impl FnMut(&Bits<'_>, u32) -> Option<()>,
    ) -> Option<()> {
        while at < 64 {
            bits.refill();
            let step = u32::from(self.steps[bits.peek(FAST_BITS) as usize]);
            let (length, zeros) = if step != 0 {
                (step & 0xff, step >> 8)
            } else {
                let (symbol, length, zeros) = self.long_step(bits)?;
                // Behind sixteen zeros a coefficient comes.
                if symbol == SIXTEEN_ZEROS && at + zeros >= 64 {
                    return None;
                }
                (length, zeros)
            };
            visit(bits, length)?;
            bits.consume(length)?;
            at += zeros;
            if zeros == 64 {
                return Some(());
            }
        }
        (at == 64).then_some(())
    }

    /// The symbol of the next AC coefficient, its bits, and by how many coefficients to go on; 64
    /// for the end.
    #[inline(never)]
    fn long_step(&self, bits: &Bits<'_>) -> Option<(u8, u32, u32)> {
        let (symbol, length) = self.symbol(bits)?;
        let (zeros, size) = (u32::from(symbol >> 4), symbol & 15);
        match symbol {
            END_OF_BLOCK => Some((symbol, length, 64)),
            SIXTEEN_ZEROS => Some((symbol, length, 16)),
            _ if size == 0 || size > MOST_AC_BITS => None,
            _ => Some((symbol, length + u32::from(size), zeros + 1)),
        }
    }

    /// Writes a DC difference (F.1.2.1); `None` if the table has no code for it.
    fn write_difference(&self, writer: &mut Writer, difference: i32) -> Option<()> {
        let size = 32 - difference.unsigned_abs().leading_zeros();
        if size > u32::from(MOST_DC_BITS) {
            return None;
        }
        let (code, length) = self.codes[size as usize];
        if length == 0 {
            return None;
        }
        writer.write(u32::from(code), u32::from(length))?;
        let value = if difference < 0 {
            difference + (1 << size) - 1
        } else {
            difference
        };
        writer.write(value as u32, size)
    }
}

/// The bits of entropy-coded data, up to the first marker.
struct Bits<'a> {
    data: &'a [u8],
    /// The place of the next byte that is not among the bits.
    at: usize,
    /// The next bits, from the highest on.
    next: u64,
    /// How many of them are valid.
    count: u32,
}

impl<'a> Bits<'a> {
    /// All bits of some data.
    fn of(data: &'a [u8]) -> Bits<'a> {
        Bits {
            data,
            at: 0,
            next: 0,
            count: 0,
        }
    }

    /// Consumes a number of `size` bits, 1 to 11 (F.2.2.1, EXTEND).
    #[inline(always)]
    fn number(&mut self, size: u32) -> Option<i32> {
        let value = self.peek(size) as i32;
        self.consume(size)?;
        let is_negative = value < 1 << (size - 1);
        Some(if is_negative {
            value - (1 << size) + 1
        } else {
            value
        })
    }

    /// Makes at least 32 bits valid, unless the data end.
    #[inline(always)]
    fn refill(&mut self) {
        if self.count >= 32 {
            return;
        }
        if let Some(bytes) = self.data.get(self.at..self.at + 8)
            && let Ok(bytes) = bytes.try_into()
        {
            let coming = u64::from_be_bytes(bytes);
            // The highest bit of each byte that is all ones, and perhaps of some above one.
            let ones = !coming;
            let has_ones =
                ones.wrapping_sub(0x0101_0101_0101_0101) & coming & (0x80 * 0x0101_0101_0101_0101);
            if has_ones == 0 {
                let bytes = (64 - self.count) / 8;
                let kept = bytes * 8;
                self.next |= coming >> (64 - kept) << (64 - kept - self.count);
                self.at += bytes as usize;
                self.count += kept;
                return;
            }
        }
        self.refill_slowly();
    }

    #[inline(never)]
    fn refill_slowly(&mut self) {
        while self.count <= 56 {
            let Some((&byte, behind)) = self.data.get(self.at..).and_then(<[u8]>::split_first)
            else {
                return;
            };
            let length = match (byte, behind.first()) {
                (0xff, Some(0)) => 2,
                // A marker.
                (0xff, _) => return,
                _ => 1,
            };
            self.next |= u64::from(byte) << (56 - self.count);
            self.at += length;
            self.count += 8;
        }
    }

    /// The next `count` bits, 1 to 32; zeros beyond the end.
    #[inline(always)]
    fn peek(&self, count: u32) -> u32 {
        (self.next >> (64 - count)) as u32
    }

    /// `None` if there are not so many bits.
    #[inline(always)]
    fn consume(&mut self, count: u32) -> Option<()> {
        self.count = self.count.checked_sub(count)?;
        self.next <<= count;
        Some(())
    }
}

/// Writes entropy-coded data.
struct Writer {
    bytes: Vec<u8>,
    /// Bits that make no byte yet, in the lowest places.
    bits: u64,
    count: u32,
}

impl Writer {
    fn with_capacity(capacity: usize) -> Writer {
        Writer {
            bytes: Vec::with_capacity(capacity),
            bits: 0,
            count: 0,
        }
    }

    /// Writes the lowest `count` bits of `value`, at most 32. `None` if the capacity is used up.
    #[inline(always)]
    fn write(&mut self, value: u32, count: u32) -> Option<()> {
        self.bits = self.bits << count | u64::from(value) & ((1 << count) - 1);
        self.count += count;
        if self.count < 32 {
            return Some(());
        }
        self.count -= 32;
        let whole = ((self.bits >> self.count) as u32).to_be_bytes();
        if self.bytes.capacity() - self.bytes.len() < 8 {
            return None;
        }
        if whole.contains(&0xff) {
            for byte in whole {
                self.push(byte);
            }
        } else {
            self.bytes.extend_from_slice(&whole);
        }
        Some(())
    }

    fn push(&mut self, byte: u8) {
        self.bytes.push(byte);
        if byte == 0xff {
            self.bytes.push(0);
        }
    }

    /// Copies all bits that are left, and fills the last byte with ones. `None` if there is a
    /// marker before the end.
    fn copy_all(mut self, bits: &mut Bits<'_>, mut go_on: impl FnMut() -> bool) -> Option<Vec<u8>> {
        /// Bytes between two calls of `go_on`: a fraction of a millisecond.
        const BYTES: usize = 1 << 17;
        let mut asked = 0;
        bits.refill();
        while bits.count >= 32 {
            self.write(bits.peek(32), 32)?;
            bits.consume(32)?;
            bits.refill();
            if bits.at / BYTES != asked {
                asked = bits.at / BYTES;
                if !go_on() {
                    return None;
                }
            }
        }
        if bits.at < bits.data.len() {
            return None;
        }
        if bits.count > 0 {
            self.write(bits.peek(bits.count), bits.count)?;
        }
        let fill = self.count.next_multiple_of(8) - self.count;
        self.write((1 << fill) - 1, fill)?;
        if self.bytes.capacity() - self.bytes.len() < 8 {
            return None;
        }
        while self.count > 0 {
            self.count -= 8;
            self.push((self.bits >> self.count) as u8);
        }
        Some(self.bytes)
    }
}
