//! The partitions of a frame: RFC 6386, sections 9.1, 9.5 and 19.3. The first partition holds the
//! frame header and the modes of all macroblocks, the others hold the coefficients.

use super::bool_encoder::{Bool, BoolBuffer, BoolEncoder, BoolRun};
use super::frame_header::{self, FrameHeader, MAX_FIRST_PARTITION};
use super::levels::NonzeroFlags;
use super::macroblock::{LumaMode, MacroblockRecord};
use super::predict::SubblockMode;
use super::row::MacroblockRow;
use super::tables::SUBBLOCK_MODE_PROBABILITIES;
use super::token_writer::{MACROBLOCK_BOOLS, TokenWriter};
use super::tree::{
    CHROMA_MODE_PATHS, CHROMA_MODE_PROBABILITIES, LUMA_MODE_PATHS, LUMA_MODE_PROBABILITIES,
    SEGMENT_PATHS, SUBBLOCK_MODE_PATHS,
};
use crate::EncodeError;
use crate::cpu::Simd;
use crate::threads::Workers;
use std::ops::Range;

/// Zero bytes after the header that the first partition has at least. Decoders that read as data
/// arrives look up to this many bytes ahead, and libwebp's rejects a frame whose first partition
/// ends with the header.
const LOOK_AHEAD: usize = 8;

/// Writes all partitions: the first one, then the token partitions, to which rows of macroblocks
/// are assigned in turn (section 9.5).
pub fn write_all(
    header: &FrameHeader<'_>,
    rows: &[MacroblockRow],
    simd: Simd,
    workers: Workers<'_>,
) -> Result<Vec<Vec<u8>>, EncodeError> {
    let writer = &TokenWriter::new(header.probabilities);
    let count = 1 << header.log2_partitions;
    let partitions = workers.run_checked(1 + usize::div_ceil(count, 2), |piece| {
        Ok(match piece {
            0 => vec![write_first(header, rows, simd, workers)?],
            _ if count == 1 => vec![write_single(rows, writer, simd, workers)?],
            _ => write_pair(rows, writer, 2 * (piece - 1)..count, simd, workers)?.into(),
        })
    })?;
    Ok(partitions.into_iter().flatten().collect())
}

/// Writes the first partition: the frame header and the modes of all macroblocks (sections 19.2 and
/// 19.3).
pub fn write_first(
    header: &FrameHeader<'_>,
    rows: &[MacroblockRow],
    simd: Simd,
    workers: Workers<'_>,
) -> Result<Vec<u8>, EncodeError> {
    let mb_width = rows.first().map_or(0, |row| row.records.len());
    let mut encoder = BoolEncoder::with_capacity(rows.len() * mb_width * 4);
    header.write(&mut encoder);
    let header_length = encoder.len();
    let mut bools = BoolBuffer::with_capacity(BUFFER);

    let mut modes_above = vec![[SubblockMode::Dc; 4]; mb_width];
    for row in rows {
        workers.check()?;
        let mut modes_left = [SubblockMode::Dc; 4];
        for (record, modes_above) in row.records.iter().zip(&mut modes_above) {
            append_modes(&mut bools, header, record, *modes_above, modes_left);
            (*modes_above, modes_left) = record.luma.contexts();
            if bools.as_slice().len() >= BATCH {
                encoder.write_all(bools.as_slice(), simd);
                bools.clear();
            }
        }
    }
    encoder.write_all(bools.as_slice(), simd);
    let mut partition = encoder.finish();
    partition.resize(partition.len().max(header_length + LOOK_AHEAD), 0);
    Ok(partition)
}

/// The booleans of each subblock mode, by the mode above and the mode to the left (section 11.3).
static SUBBLOCK_MODE_RUNS: [[[BoolRun; 10]; 10]; 10] = {
    let mut runs = [[[BoolRun::EMPTY; 10]; 10]; 10];
    let mut i = 0;
    while i < 1000 {
        let (above, left, mode) = (i / 100, i / 10 % 10, i % 10);
        runs[above][left][mode] =
            SUBBLOCK_MODE_PATHS[mode].run(&SUBBLOCK_MODE_PROBABILITIES[above][left]);
        i += 1;
    }
    runs
};

/// Appends the header of a macroblock (section 19.3).
fn append_modes(
    bools: &mut BoolBuffer,
    header: &FrameHeader<'_>,
    record: &MacroblockRecord,
    mut above: [SubblockMode; 4],
    mut left: [SubblockMode; 4],
) {
    if header.segmentation.is_enabled() {
        let path = &SEGMENT_PATHS[usize::from(record.segment)];
        bools.push_run(&path.run(&header.segment_probabilities));
    }
    if let Some(probability) = header.skip_probability {
        bools.push(Bool::new(record.skipped, probability));
    }
    match record.luma {
        LumaMode::Intra16(mode) => {
            bools.push_run(&LUMA_MODE_PATHS[mode as usize].run(&LUMA_MODE_PROBABILITIES));
        }
        LumaMode::Intra4(modes) => {
            bools.push_run(&LUMA_MODE_PATHS[4].run(&LUMA_MODE_PROBABILITIES));
            for (i, mode) in modes.into_iter().enumerate() {
                let (above, left) = (&mut above[i % 4], &mut left[i / 4]);
                let runs = &SUBBLOCK_MODE_RUNS[*above as usize][*left as usize];
                bools.push_run(&runs[mode as usize]);
                (*above, *left) = (mode, mode);
            }
        }
    }
    bools.push_run(&CHROMA_MODE_PATHS[record.chroma as usize].run(&CHROMA_MODE_PROBABILITIES));
}

/// Booleans that are collected before they are written: few enough for a cache, however wide a row
/// is.
const BATCH: usize = 1 << 14;

/// The booleans that a buffer has space for: a batch, and the macroblock that completes it.
const BUFFER: usize = BATCH + MACROBLOCK_BOOLS;

/// Most bytes of the buffers of booleans of one piece of work.
pub const BUFFER_BYTES: usize = 2 * BUFFER * size_of::<Bool>();

/// Writes the only token partition.
fn write_single(
    rows: &[MacroblockRow],
    writer: &TokenWriter,
    simd: Simd,
    workers: Workers<'_>,
) -> Result<Vec<u8>, EncodeError> {
    let mut encoder = BoolEncoder::with_capacity(capacity(rows));
    let mut bools = BoolBuffer::with_capacity(BUFFER);
    for mb_y in 0..rows.len() {
        workers.check()?;
        let mut row = RowTokens::new(rows, mb_y);
        while row.append_macroblock(&mut bools, writer) {
            if bools.as_slice().len() >= BATCH {
                encoder.write_all(bools.as_slice(), simd);
                bools.clear();
            }
        }
    }
    encoder.write_all(bools.as_slice(), simd);
    Ok(encoder.finish())
}

/// Writes two token partitions interleaved, which is faster than one after the other: those
/// numbered `numbers.start` and `numbers.start + 1` of `numbers.end` in all.
fn write_pair(
    rows: &[MacroblockRow],
    writer: &TokenWriter,
    numbers: Range<usize>,
    simd: Simd,
    workers: Workers<'_>,
) -> Result<[Vec<u8>; 2], EncodeError> {
    let (first, partitions) = (numbers.start, numbers.end);
    let mut encoders = [(); 2].map(|()| BoolEncoder::with_capacity(capacity(rows) / partitions));
    let mut pending = [(); 2].map(|()| BoolBuffer::with_capacity(BUFFER));
    for mb_y in (first..rows.len()).step_by(partitions) {
        workers.check()?;
        let mut pair = [mb_y, mb_y + 1].map(|mb_y| RowTokens::new(rows, mb_y));
        loop {
            let mut is_over = true;
            for (row, pending) in pair.iter_mut().zip(&mut pending) {
                is_over &= !row.append_macroblock(pending, writer);
            }
            if pending.iter().any(|bools| bools.as_slice().len() >= BATCH) {
                write_pending(&mut encoders, &mut pending, simd);
            }
            if is_over {
                break;
            }
        }
    }
    for (encoder, pending) in encoders.iter_mut().zip(&pending) {
        encoder.write_all(pending.as_slice(), simd);
    }
    Ok(encoders.map(BoolEncoder::finish))
}

/// Writes as many booleans of both partitions as both have, and the rest of one that has many more
/// than the other.
fn write_pending(encoders: &mut [BoolEncoder; 2], pending: &mut [BoolBuffer; 2], simd: Simd) {
    /// Fewer booleans than these wait for those of the other partition.
    const LEAST_ALONE: usize = 4096;
    let bools = pending.each_ref().map(BoolBuffer::as_slice);
    let both = bools[0].len().min(bools[1].len());
    BoolEncoder::write_pairs(encoders.each_mut(), bools.map(|bools| &bools[..both]), simd);
    for (encoder, pending) in encoders.iter_mut().zip(pending) {
        pending.remove_first(both);
        if pending.as_slice().len() >= LEAST_ALONE {
            encoder.write_all(pending.as_slice(), simd);
            pending.clear();
        }
    }
}

/// Returns the capacity for the token partitions of `rows`, in bytes. Tokens nearly always take
/// less; noise comes near, and growing would copy.
fn capacity(rows: &[MacroblockRow]) -> usize {
    rows.iter().map(|row| row.packed.len()).sum()
}

/// The macroblocks of a row whose tokens are still to be written.
struct RowTokens<'a> {
    /// `None` below the picture.
    row: Option<&'a MacroblockRow>,
    /// The row above; `None` above the picture.
    above: Option<&'a MacroblockRow>,
    /// The column of the next macroblock.
    mb_x: usize,
    /// The packed levels from there on.
    packed: &'a [u8],
    left: NonzeroFlags,
}

impl<'a> RowTokens<'a> {
    /// All macroblocks of row `mb_y`.
    fn new(rows: &'a [MacroblockRow], mb_y: usize) -> RowTokens<'a> {
        let row = rows.get(mb_y);
        RowTokens {
            row,
            above: mb_y.checked_sub(1).and_then(|above| rows.get(above)),
            mb_x: 0,
            packed: row.map_or(&[], |row| row.packed.as_slice()),
            left: NonzeroFlags::default(),
        }
    }

    /// Appends the tokens of the next macroblock to `bools`. Returns whether there was one.
    fn append_macroblock(&mut self, bools: &mut BoolBuffer, writer: &TokenWriter) -> bool {
        let Some(record) = self.row.and_then(|row| row.records.get(self.mb_x)) else {
            return false;
        };
        let has_y2 = record.luma.has_y2();
        if record.skipped {
            self.left.clear(has_y2);
        } else {
            let above = self.above.map(|above| above.nonzero[self.mb_x]);
            let mut above = above.unwrap_or_default();
            writer.append_macroblock(bools, &mut self.packed, has_y2, &mut above, &mut self.left);
        }
        self.mb_x += 1;
        true
    }
}

/// Concatenates the parts of the frame (sections 9.1 and 9.5).
///
/// # Errors
/// [`EncodeError::TooLarge`] if a token partition other than the last has more than
/// `max_token_bytes` bytes, or the first one more than its size field can express.
pub fn assemble(
    width: u32,
    height: u32,
    partitions: &[Vec<u8>],
    max_token_bytes: usize,
) -> Result<Vec<u8>, EncodeError> {
    let (first, tokens) = partitions.split_first().expect("there is a first one");
    let (_, sized) = tokens
        .split_last()
        .expect("there is at least one token partition");
    if first.len() > MAX_FIRST_PARTITION || sized.iter().any(|p| p.len() > max_token_bytes) {
        return Err(EncodeError::TooLarge);
    }
    let all: usize = tokens.iter().map(Vec::len).sum();
    let mut frame = Vec::with_capacity(10 + first.len() + sized.len() * 3 + all);
    frame.extend(frame_header::uncompressed(width, height, first.len()));
    frame.extend(first);
    for partition in sized {
        frame.extend(&(partition.len() as u32).to_le_bytes()[..3]);
    }
    for partition in tokens {
        frame.extend(partition);
    }
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_as_large_as_their_size_fields_can_express() {
        let frame = |first: usize, tokens: &[usize]| {
            let partitions = [&[first], tokens].concat();
            let partitions: Vec<_> = partitions.iter().map(|&length| vec![0; length]).collect();
            assemble(16, 16, &partitions, 100).map(|frame| frame.len())
        };
        // The header takes ten bytes, and the size of every token partition but the last three.
        assert_eq!(frame(5, &[7]), Ok(10 + 5 + 7));
        assert_eq!(frame(5, &[100, 101]), Ok(10 + 5 + 3 + 201));
        assert_eq!(frame(5, &[101, 1]), Err(EncodeError::TooLarge));
        assert_eq!(
            frame(MAX_FIRST_PARTITION, &[1]),
            Ok(10 + MAX_FIRST_PARTITION + 1)
        );
        assert_eq!(
            frame(MAX_FIRST_PARTITION + 1, &[1]),
            Err(EncodeError::TooLarge)
        );
    }
}
