//! Walks the entropy-coded data of a sequential JPEG without decoding it (ITU-T T.81, F.2.2), to
//! where a row of MCUs begins. From there on the data are made such that a decoder can begin with
//! them: the first DC coefficients are coded anew, since they are differences from those before.
//!
//! That takes half of the time of decoding. Data that no usual writer makes end the walk without a
//! result: the decoder reports the faults of a file.

use super::bits::{Bits, Cursor};
use super::blocks::BlockReader;
use super::scan_header::{Coded, MOST_DC_BITS, ScanHeader, Table};

/// The most blocks of an MCU (B.2.3).
const MOST_BLOCKS: usize = 10;

/// The data of a scan from row `row` of MCUs on, such that a decoder can begin with them. `mcus` is
/// the number of MCUs of a row; `go_on` is called before each row, and now and then behind them. At
/// most [`most_bytes`] bytes are allocated.
pub fn data_from_row(
    header: &ScanHeader,
    data: &[u8],
    row: usize,
    mcus: usize,
    mut go_on: impl FnMut() -> bool,
) -> Option<Vec<u8>> {
    let coded = header.coded()?;
    let blocks: usize = coded.iter().map(Coded::blocks).sum();
    if blocks > MOST_BLOCKS {
        return None;
    }
    let mut components: Vec<_> = coded.iter().map(Component::new).collect();
    let (mut bits, mut cursor) = (Bits::of(data), Cursor::default());
    for _ in 0..row {
        if !go_on() {
            return None;
        }
        for _ in 0..mcus {
            cursor = bits.prepare(cursor)?;
            for component in &mut components {
                for _ in 0..component.blocks {
                    component.pass(&mut cursor, &bits)?;
                }
            }
        }
    }
    cursor = bits.prepare(cursor)?;
    let mut writer = Writer::with_capacity(most_bytes(bits.bytes_to_come()));
    for component in &mut components {
        let mut before = 0;
        for _ in 0..component.blocks {
            let coefficients = component.pass(&mut cursor, &bits)?;
            let difference = i32::from(component.prediction) - before;
            write_difference(component.dc, &mut writer, difference)?;
            before = i32::from(component.prediction);
            let length = cursor.consumed() - coefficients.consumed();
            writer.copy(&bits, coefficients, length)?;
        }
    }
    writer.copy_all(&mut bits, cursor, go_on)
}

/// The most bytes that [`data_from_row`] allocates for data of `length` bytes. Zeros that mark
/// bytes of ones (B.1.1.5) are hardly more where the bits lie otherwise.
pub fn most_bytes(length: usize) -> usize {
    length + length / 32 + 1024
}

/// A component of the scan.
struct Component<'a> {
    reader: BlockReader,
    dc: &'a Table,
    /// The number of its blocks in an MCU.
    blocks: usize,
    /// The DC coefficient of the block before.
    prediction: i16,
}

impl<'a> Component<'a> {
    fn new(coded: &Coded<'a>) -> Component<'a> {
        Component {
            reader: BlockReader::new(coded, 1, false),
            dc: coded.dc,
            blocks: coded.blocks(),
            prediction: 0,
        }
    }

    /// Passes over a block; returns the place of its AC coefficients.
    #[inline(always)]
    fn pass(&mut self, cursor: &mut Cursor, bits: &Bits<'_>) -> Option<Cursor> {
        let prediction = &mut self.prediction;
        self.reader.pass(cursor, bits.buffer(), prediction)
    }
}

/// Writes a DC difference (F.1.2.1); `None` if the table has no code for it.
fn write_difference(dc: &Table, writer: &mut Writer, difference: i32) -> Option<()> {
    let size = 32 - difference.unsigned_abs().leading_zeros();
    if size > u32::from(MOST_DC_BITS) {
        return None;
    }
    let (code, length) = dc.code(size as u8)?;
    writer.write(code, length)?;
    let value = if difference < 0 {
        difference + (1 << size) - 1
    } else {
        difference
    };
    writer.write(value as u32, size)
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

    /// Copies the next `length` bits of `bits`, which are in its buffer.
    fn copy(&mut self, bits: &Bits<'_>, mut cursor: Cursor, mut length: usize) -> Option<()> {
        while length > 0 {
            let part = length.min(32) as u32;
            cursor.refill(bits.buffer());
            self.write(cursor.peek(part), part)?;
            cursor.consume(part);
            length -= part as usize;
        }
        Some(())
    }

    /// Copies all bits that are left, and fills the last byte with ones. `None` if there is a
    /// marker before the end.
    fn copy_all(
        mut self,
        bits: &mut Bits<'_>,
        mut cursor: Cursor,
        mut go_on: impl FnMut() -> bool,
    ) -> Option<Vec<u8>> {
        loop {
            cursor = bits.fill(cursor)?;
            let mut left = bits.left(cursor)?;
            // Bytes behind the last one that is filled must not become valid.
            let kept = if bits.is_at_end() { 31 } else { 128 };
            while left > kept {
                cursor.refill(bits.buffer());
                self.write(cursor.peek(32), 32)?;
                cursor.consume(32);
                left -= 32;
            }
            if bits.is_at_end() {
                break;
            }
            if !go_on() {
                return None;
            }
        }
        self.copy(bits, cursor, bits.left(cursor)?)?;
        bits.is_read().then_some(())?;
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
