//! Segments (RFC 6386, section 9.3): up to four groups of macroblocks with quantizers of their own,
//! grouped by how well the content masks errors.

use super::constants::Constants;
use super::quantize::{MAX_INDEX, QuantizerDeltas, QuantizerIndex};
use super::tables::AC_STEPS;
use crate::EncodeError;
use crate::fixed_point::{exp2, log2_times_256};
use crate::threads::Workers;
use crate::ycbcr::Planes;

/// How well a macroblock masks errors: the mean over its four 8x8 blocks of `256 log2(variance +
/// activity_floor)` of luma, at most 4000.
pub type Activity = u16;

/// The segments of a picture.
#[derive(Clone, Debug)]
pub struct Segmentation {
    /// Quantizer index of each segment.
    pub indices: [QuantizerIndex; 4],
    /// Differences of the frame's other quantizer indices from that of the segment.
    pub deltas: QuantizerDeltas,
    /// Segment of each macroblock, 0 to 3, in raster order; empty if there is only one segment.
    pub map: Vec<u8>,
    /// Factor on the lambdas of each macroblock, times 256, in raster order; empty if all are 256.
    pub lambda_factors: Vec<u16>,
}

impl Segmentation {
    /// One segment for the whole picture.
    pub fn single(index: QuantizerIndex, constants: &Constants) -> Segmentation {
        Segmentation {
            indices: [index; 4],
            deltas: QuantizerDeltas::at(index, constants),
            map: Vec::new(),
            lambda_factors: Vec::new(),
        }
    }

    /// Whether there is more than one segment.
    pub fn is_enabled(&self) -> bool {
        !self.map.is_empty()
    }

    /// Returns the segment of the macroblock at raster index `macroblock`.
    pub fn of(&self, macroblock: usize) -> u8 {
        self.map.get(macroblock).copied().unwrap_or(0)
    }

    /// Returns the factor on the lambdas of the macroblock at raster index `macroblock`, times 256.
    pub fn lambda_factor(&self, macroblock: usize) -> u16 {
        self.lambda_factors.get(macroblock).copied().unwrap_or(256)
    }
}

/// Groups macroblocks by activity. Busy segments get coarser quantizers than `index`, calm ones
/// finer; within a segment, lambdas do the same.
pub fn segment(
    planes: &Planes,
    index: QuantizerIndex,
    constants: &Constants,
    workers: Workers<'_>,
) -> Result<Segmentation, EncodeError> {
    let activities = activities(planes, constants, workers)?;
    let mean = (activities.iter().map(|&a| u64::from(a)).sum::<u64>() / activities.len() as u64)
        as Activity;
    let Some((centers, map)) = cluster(&activities) else {
        return Ok(Segmentation::single(index, constants));
    };
    let indices =
        centers.map(|center| shift_index(index, i32::from(center) - i32::from(mean), constants));
    let lambda_factors = activities.iter().zip(&map).map(|(&activity, &segment)| {
        let excess = i32::from(activity) - i32::from(centers[usize::from(segment)]);
        (exp2(excess * constants.lambda_rd_in_segment / 4) >> 8) as u16
    });
    let lambda_factors = lambda_factors.collect();
    let differ = indices.iter().any(|&other| other != indices[0]);
    Ok(Segmentation {
        indices,
        deltas: QuantizerDeltas::at(index, constants),
        // At the highest qualities all come to the same quantizer, and the map would be idle.
        map: if differ { map } else { Vec::new() },
        lambda_factors,
    })
}

/// Measures the activity of every macroblock, in raster order.
fn activities(
    planes: &Planes,
    constants: &Constants,
    workers: Workers<'_>,
) -> Result<Vec<Activity>, EncodeError> {
    /// Macroblocks per piece of work: 0.2 ms, several times what starting a thread takes.
    const PIECE: usize = 1024;
    let count = planes.mb_width * planes.mb_height;
    let pieces = workers.run(count.div_ceil(PIECE), |piece| {
        let macroblocks = piece * PIECE..count.min((piece + 1) * PIECE);
        macroblocks
            .map(|i| activity(planes, i % planes.mb_width, i / planes.mb_width, constants))
            .collect::<Vec<Activity>>()
    })?;
    Ok(pieces.concat())
}

fn activity(planes: &Planes, mb_x: usize, mb_y: usize, constants: &Constants) -> Activity {
    let stride = planes.luma_stride();
    let mut logarithms = 0;
    for block in 0..4 {
        let at = (mb_y * 16 + block / 2 * 8) * stride + mb_x * 16 + block % 2 * 8;
        let (mut sum, mut squares) = (0u32, 0u32);
        for row in 0..8 {
            for &pixel in &planes.luma[at + row * stride..][..8] {
                let pixel = u32::from(pixel);
                sum += pixel;
                squares += pixel * pixel;
            }
        }
        // 64 times the variance, before the division below.
        let variance = squares - sum * sum / 64;
        logarithms += log2_times_256(variance / 64 + constants.activity_floor as u32);
    }
    (logarithms / 4) as Activity
}

/// Clusters `values` around four centers (k-means). Returns the centers and the cluster of each
/// value; `None` if the values are nearly the same.
fn cluster(values: &[Activity]) -> Option<([Activity; 4], Vec<u8>)> {
    const BINS: usize = 4096;
    let mut histogram = vec![0u64; BINS];
    for &value in values {
        histogram[usize::from(value)] += 1;
    }
    let (low, high) = (values.iter().min()?, values.iter().max()?);
    if high - low < 64 {
        return None;
    }
    let mut centers: [u16; 4] =
        std::array::from_fn(|i| low + ((high - low) as usize * (2 * i + 1) / 8) as u16);
    let mut nearest = vec![0u8; BINS];
    for _ in 0..8 {
        let (mut sums, mut counts) = ([0u64; 4], [0u64; 4]);
        for (value, &count) in histogram.iter().enumerate() {
            let closest = (0..4)
                .min_by_key(|&i| (value as i32 - i32::from(centers[i])).abs())
                .expect("four centers");
            nearest[value] = closest as u8;
            sums[closest] += value as u64 * count;
            counts[closest] += count;
        }
        let moved = std::array::from_fn(|i| {
            sums[i]
                .checked_div(counts[i])
                .map_or(centers[i], |mean| mean as u16)
        });
        if moved == centers {
            break;
        }
        centers = moved;
    }
    Some((
        centers,
        values
            .iter()
            .map(|&value| nearest[usize::from(value)])
            .collect(),
    ))
}

/// Returns the index whose step is nearest to the step of `index` times `2^(activity / 256 *
/// step_growth / 100)`.
///
/// Against no segments, photographs take 6 % fewer bytes at equal SSIMULACRA2. Smaller blocks, the
/// calmest block or the calmer half in place of the mean were all worse by 0.5 to 5 %.
fn shift_index(index: QuantizerIndex, activity: i32, constants: &Constants) -> QuantizerIndex {
    let step = AC_STEPS[usize::from(index)];
    let exponent = (activity * constants.step_growth * 256 / 100).clamp(-2 << 16, 2 << 16);
    let wanted = ((i64::from(step) * i64::from(exp2(exponent))) >> 15) as i32; // twice the step
    let best = (0..=MAX_INDEX).min_by_key(|&i| (2 * AC_STEPS[usize::from(i)] - wanted).abs());
    best.expect("there are indices")
}
