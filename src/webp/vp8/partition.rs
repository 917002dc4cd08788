//! The partitions of a frame: RFC 6386, sections 9.1, 9.5 and 19.3. The first holds the header and the modes of all
//! macroblocks, the others their coefficients.

use super::bool_encoder::BoolEncoder;
use super::encoder::MacroblockRecord;
use super::frame_header::{self, FrameHeader, MAX_FIRST_PARTITION, MAX_TOKEN_PARTITION};
use super::macroblock::LumaMode;
use super::predict::SubblockMode;
use super::tables::{CoefficientProbabilities, SUBBLOCK_MODE_PROBABILITIES};
use super::token::{self, NonZero};
use super::tree::{
    CHROMA_MODE_PATHS, CHROMA_MODE_PROBABILITIES, LUMA_MODE_PATHS, LUMA_MODE_PROBABILITIES,
    SEGMENT_PATHS, SUBBLOCK_MODE_PATHS,
};
use super::wavefront::Row;
use crate::webp::EncodeError;
use crate::webp::crew::Crew;

/// Decoders that read as data arrives take up to this many bytes ahead, and libwebp's refuses a frame of whose first
/// partition nothing is left behind the header.
const LOOK_AHEAD: usize = 8;

/// The frame header and the modes of all macroblocks (sections 19.2 and 19.3).
pub fn write_first(header: &FrameHeader<'_>, rows: &[Row]) -> Vec<u8> {
    let mb_width = rows.first().map_or(0, |row| row.records.len());
    let mut encoder = BoolEncoder::with_capacity(rows.len() * mb_width * 4);
    header.write(&mut encoder);
    let header_length = encoder.len();

    let mut modes_above = vec![[SubblockMode::Dc; 4]; mb_width];
    for row in rows {
        let mut modes_left = [SubblockMode::Dc; 4];
        for (record, modes_above) in row.records.iter().zip(&mut modes_above) {
            write_modes(&mut encoder, header, record, *modes_above, modes_left);
            (*modes_above, modes_left) = record.luma.contexts();
        }
    }
    let mut partition = encoder.finish();
    partition.resize(partition.len().max(header_length + LOOK_AHEAD), 0);
    partition
}

/// The header of a macroblock (section 19.3).
fn write_modes(
    encoder: &mut BoolEncoder,
    header: &FrameHeader<'_>,
    record: &MacroblockRecord,
    mut above: [SubblockMode; 4],
    mut left: [SubblockMode; 4],
) {
    if header.segmentation.is_enabled() {
        SEGMENT_PATHS[usize::from(record.segment)].write(encoder, &header.segment_probabilities);
    }
    if let Some(probability) = header.skip_probability {
        encoder.write(record.skipped, probability);
    }
    match record.luma {
        LumaMode::Block(mode) => {
            LUMA_MODE_PATHS[mode as usize].write(encoder, &LUMA_MODE_PROBABILITIES);
        }
        LumaMode::Subblocks(modes) => {
            LUMA_MODE_PATHS[4].write(encoder, &LUMA_MODE_PROBABILITIES);
            for (i, mode) in modes.into_iter().enumerate() {
                let (above, left) = (&mut above[i % 4], &mut left[i / 4]);
                let probabilities = &SUBBLOCK_MODE_PROBABILITIES[*above as usize][*left as usize];
                SUBBLOCK_MODE_PATHS[mode as usize].write(encoder, probabilities);
                (*above, *left) = (mode, mode);
            }
        }
    }
    CHROMA_MODE_PATHS[record.chroma as usize].write(encoder, &CHROMA_MODE_PROBABILITIES);
}

/// The coefficients, macroblock rows dealt out to 2 to the power of `log2_partitions` partitions in turn (section 9.5).
///
/// # Errors
/// [`EncodeError::Cancelled`] if the crew's caller waits no more.
pub fn write_tokens(
    rows: &[Row],
    probabilities: &CoefficientProbabilities,
    log2_partitions: u8,
    crew: Crew<'_>,
) -> Result<Vec<Vec<u8>>, EncodeError> {
    let count = 1 << log2_partitions;
    crew.run(count, |partition| {
        write_token_partition(rows, probabilities, partition, count)
    })
}

fn write_token_partition(
    rows: &[Row],
    probabilities: &CoefficientProbabilities,
    partition: usize,
    count: usize,
) -> Vec<u8> {
    let packed: usize = rows
        .iter()
        .skip(partition)
        .step_by(count)
        .map(|row| row.packed.len())
        .sum();
    let mut encoder = BoolEncoder::with_capacity(packed / 2);
    for mb_y in (partition..rows.len()).step_by(count) {
        let row = &rows[mb_y];
        let mut packed = row.packed.as_slice();
        let mut left = NonZero::default();
        for (mb_x, record) in row.records.iter().enumerate() {
            let has_y2 = record.luma.has_y2();
            if record.skipped {
                left.clear(has_y2);
                continue;
            }
            let mut above = if mb_y > 0 {
                rows[mb_y - 1].non_zero[mb_x]
            } else {
                NonZero::default()
            };
            token::write_packed(
                &mut packed,
                &mut encoder,
                probabilities,
                has_y2,
                &mut above,
                &mut left,
            );
        }
    }
    encoder.finish()
}

/// Puts the parts of the frame one after another (section 9.1 and 9.5).
///
/// # Errors
/// [`EncodeError::TooLarge`] if a partition outgrows its size field.
pub fn assemble(
    width: u32,
    height: u32,
    first: &[u8],
    tokens: &[Vec<u8>],
) -> Result<Vec<u8>, EncodeError> {
    let (_, sized) = tokens
        .split_last()
        .expect("there is at least one token partition");
    if first.len() > MAX_FIRST_PARTITION || sized.iter().any(|p| p.len() > MAX_TOKEN_PARTITION) {
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
