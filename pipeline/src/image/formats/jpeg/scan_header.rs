//! The tables and the components of a sequential scan (ITU-T T.81, B.2.3 and B.2.4).

use super::segments::Segment;
use std::ptr;

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
    /// The number of its blocks in an MCU.
    pub fn blocks(&self) -> usize {
        self.factors[0] * self.factors[1]
    }

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
                        let table = Table::new(counts, symbols)?;
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

    /// The components of the scan; `None` if a table is missing.
    pub fn coded(&self) -> Option<Vec<Coded<'_>>> {
        let coded = |component: &Component| {
            let [dc, ac] = [component.dc, component.ac].map(|table| self.tables[table].as_ref());
            Some(Coded {
                factors: component.factors,
                quantizers: self.quantizers.get(component.quantizers)?.as_ref()?,
                dc: dc?,
                ac: ac?,
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

/// A table of Huffman codes (C.2).
#[derive(Debug)]
pub struct Table {
    /// Indexed by symbol: the code and its number of bits, which is 0 if it has none.
    codes: [(u16, u8); 256],
}

impl Table {
    /// The table with `counts[n]` codes of `n + 1` bits for these symbols; `None` if there are more
    /// codes than bits allow.
    fn new(counts: &[u8; 16], symbols: &[u8]) -> Option<Table> {
        let mut codes = [(0, 0); 256];
        let mut symbols = symbols.iter();
        let mut code = 0;
        for (length, &count) in (1u8..).zip(counts) {
            for &symbol in symbols.by_ref().take(count.into()) {
                // No code is all ones (C.2).
                if code + 1 >= 1u32 << length {
                    return None;
                }
                codes[usize::from(symbol)] = (code as u16, length);
                code += 1;
            }
            code <<= 1;
        }
        Some(Table { codes })
    }

    /// The code of a symbol and its number of bits; `None` if it has none.
    pub fn code(&self, symbol: u8) -> Option<(u32, u32)> {
        let (code, length) = self.codes[usize::from(symbol)];
        (length > 0).then_some((code.into(), length.into()))
    }

    /// The symbols that have a code, with it and its number of bits.
    pub fn codes(&self) -> impl Iterator<Item = (u8, u32, u32)> {
        (0..=255).filter_map(|symbol| {
            let (code, length) = self.code(symbol)?;
            Some((symbol, code, length))
        })
    }
}
