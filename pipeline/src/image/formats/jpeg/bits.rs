//! The bits of entropy-coded data (ITU-T T.81, F.1.2.3), without the zeros that mark bytes of ones.

/// The most bytes of an MCU: twelve blocks of 27 bits and 63 times 26 bits.
pub const MCU_BYTES: usize = 2560;

/// Bytes that are made ready at a time. At the end as many zeros as two MCUs have are behind them.
const PORTION: usize = 8 << 10;
const BUFFER: usize = PORTION + 2 * MCU_BYTES;

/// The number of bits that are valid at least, as a number whose bits are all above 7.
const LEAST_VALID: u32 = 56;

/// Bytes of a scan, as they are once all marks are gone.
pub type Buffer = [u8; BUFFER];

/// A place in a [`Buffer`], with the bits behind it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    /// The next bits, from the highest on.
    pub next: u64,
    /// The number of them that are valid.
    count: u32,
    /// The place of the next byte that is not among them.
    at: usize,
}

impl Cursor {
    /// Makes at least 56 bits valid.
    #[inline(always)]
    pub fn refill(&mut self, buffer: &Buffer) {
        let coming = buffer[self.at..].first_chunk();
        let coming = coming.map_or(0, |bytes| u64::from_be_bytes(*bytes));
        self.next |= coming >> self.count;
        self.at += (63 - self.count as usize) / 8;
        self.count |= LEAST_VALID;
    }

    /// Consumes some bits, which have to be valid.
    #[inline(always)]
    pub fn consume(&mut self, count: u32) {
        self.next <<= count;
        self.count -= count;
    }

    /// The next `count` bits, 1 to 32, which have to be valid.
    #[inline(always)]
    pub fn peek(&self, count: u32) -> u32 {
        (self.next >> (64 - count)) as u32
    }

    /// The number of bits of the buffer that are consumed.
    pub fn consumed(&self) -> usize {
        self.at * 8 - self.count as usize
    }
}

/// The data of a scan.
#[derive(Debug)]
pub struct Bits<'a> {
    /// The data that is not in the buffer yet.
    source: &'a [u8],
    buffer: Box<Buffer>,
    /// The number of bytes in the buffer; zeros are behind them.
    filled: usize,
    /// Whether the source is at its end or at a marker.
    is_at_end: bool,
}

impl<'a> Bits<'a> {
    /// All bits of some data.
    pub fn of(source: &'a [u8]) -> Bits<'a> {
        Bits {
            source,
            buffer: Box::new([0; BUFFER]),
            filled: 0,
            is_at_end: false,
        }
    }

    /// The bytes that cursors are in.
    #[inline(always)]
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// Makes the bits of an MCU ready, if there are so many; `None` if more were consumed than
    /// there are.
    #[inline(always)]
    pub fn prepare(&mut self, cursor: Cursor) -> Option<Cursor> {
        if cursor.at + MCU_BYTES <= self.filled {
            return Some(cursor);
        }
        self.fill(cursor)
    }

    /// Fills the buffer, which then begins with the next bits, or is at the end; `None` if more
    /// were consumed than there are.
    #[inline(never)]
    pub fn fill(&mut self, mut cursor: Cursor) -> Option<Cursor> {
        let left = self.left(cursor)?;
        if self.is_at_end {
            return Some(cursor);
        }
        // From the byte that is the next one to be consumed on.
        let first = self.filled - left.div_ceil(8);
        self.buffer.copy_within(first..self.filled, 0);
        cursor.at -= first;
        self.filled -= first;
        while self.filled < PORTION {
            if let Some(&bytes) = self.source.first_chunk::<8>()
                && !bytes.contains(&0xff)
            {
                self.buffer[self.filled..][..8].copy_from_slice(&bytes);
                self.filled += 8;
                self.source = &self.source[8..];
                continue;
            }
            let length = match *self.source {
                [0xff, 0, ..] => 2,
                [byte, ..] if byte != 0xff => 1,
                _ => {
                    self.is_at_end = true;
                    break;
                }
            };
            self.buffer[self.filled] = self.source[0];
            self.filled += 1;
            self.source = &self.source[length..];
        }
        if self.is_at_end {
            self.buffer[self.filled..].fill(0);
        }
        Some(cursor)
    }

    /// The number of bits in the buffer that are not consumed; `None` if more were consumed.
    pub fn left(&self, cursor: Cursor) -> Option<usize> {
        (self.filled * 8).checked_sub(cursor.consumed())
    }

    /// Whether the buffer has all bits up to the end or a marker.
    pub fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    /// Whether the buffer has all that was left of the data.
    pub fn is_read(&self) -> bool {
        self.source.is_empty()
    }

    /// The most bytes that are not consumed.
    pub fn bytes_to_come(&self) -> usize {
        self.filled + self.source.len()
    }

    /// Goes on behind the restart marker that comes next; `None` if none does.
    pub fn restart(&mut self, cursor: Cursor) -> Option<Cursor> {
        self.end(cursor)?;
        let marker = self.source.split_off(..2)?;
        if !matches!(marker, [0xff, 0xd0..=0xd7]) {
            return None;
        }
        self.filled = 0;
        self.is_at_end = false;
        Some(Cursor::default())
    }

    /// Passes the ones that fill the last byte; `None` if there is more, or less was there than was
    /// consumed.
    pub fn end(&mut self, mut cursor: Cursor) -> Option<()> {
        cursor = self.fill(cursor)?;
        let left = self.left(cursor)?;
        if !self.is_at_end || left >= 8 {
            return None;
        }
        let first = self.filled.checked_sub(1).map(|last| self.buffer[last]);
        let ones = (1u16 << left) as u8 - 1;
        let is_filled = first.is_none_or(|last| last & ones == ones);
        is_filled.then_some(())
    }

    /// `None` if there is more data.
    pub fn end_of_data(&mut self, cursor: Cursor) -> Option<()> {
        self.end(cursor)?;
        self.is_read().then_some(())
    }
}
