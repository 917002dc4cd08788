//! The memory that encoding takes, told before it begins.

use crate::auto_mode::SIDE_BY_SIDE;
use crate::options::{Effort, Mode, Options};
use crate::picture::ColorType;

/// The most bytes that encoding allocates at a time beside the pixels, the file included.
/// `tests/codec/estimate.rs` measures it.
pub fn peak((width, height): (u32, u32), color: ColorType, options: &Options<'_>) -> u64 {
    let (across, down) = (
        u64::from(width.div_ceil(16)),
        u64::from(height.div_ceil(16)),
    );
    let (quality, threads) = (options.quality, options.threads);
    let padded = across * down * 256;
    let share = |hundredths: u64| padded * hundredths / 100;
    let coded = coded_size(quality);
    let planes = share(150);
    let kept = share(KEPT + packed_size(quality));
    // Booleans of two rows of macroblocks, 16 bits each, for each pair of partitions under way.
    let pairs = threads.clamp(1, 5) as u64;
    let booleans = across * 256 * coded * 8 / 100 * 2 * 2 * pairs * 5 / 4;

    let converting = match color {
        ColorType::Rgb8 => 0,
        // A copy as RGB or, with transparent pixels filled, RGBA.
        ColorType::L8 => planes + share(300),
        ColorType::La8 | ColorType::Rgba8 => planes + share(400),
    };
    let refining = match options.effort {
        Effort::Low | Effort::Medium => 0,
        // The picture to aim at, and what a pass made of it. The levels of the last pass come when
        // the latter is gone.
        Effort::High | Effort::Max => {
            planes + planes.saturating_sub(share(packed_size(quality))) + share(REFINED)
        }
    };
    let deciding = planes + kept + refining;
    let writing = kept + share(coded) + booleans;
    let assembling = 2 * share(coded);
    // The alpha plane is coded beside the finished frame.
    let alpha = if color.has_alpha() {
        let trying = TABLES_PER_FILTER * threads.clamp(1, 4) as u64;
        let tables = match options.effort {
            Effort::Low | Effort::Medium => trying,
            Effort::High | Effort::Max => trying.max(lossless_tables(options.effort)),
        };
        share(coded + alpha_size(options.effort, threads)) + tables
    } else {
        0
    };
    let lossy = [deciding, writing, assembling, alpha]
        .into_iter()
        .fold(converting, u64::max);
    let pixels = u64::from(width) * u64::from(height);
    let lossless =
        lossless_tables(options.effort) + pixels * lossless_bytes(options.effort, threads);
    // The lossless file waits for the lossy one.
    let waiting = pixels * 4;
    OTHER
        + match options.mode {
            Mode::Lossy => lossy,
            Mode::Lossless => lossless,
            Mode::Auto if threads > 1 && pixels <= SIDE_BY_SIDE as u64 => OTHER + lossless + lossy,
            Mode::Auto => lossless.max(lossy + waiting),
        }
}

/// [`peak`] of a picture that is encoded at several qualities, up to the best: what does not depend
/// on them stays in memory.
pub fn prepared_peak(size: (u32, u32), color: ColorType, options: &Options<'_>) -> u64 {
    let (width, height) = size;
    let best = Options {
        quality: 100,
        ..*options
    };
    let padded = u64::from(width.div_ceil(16)) * u64::from(height.div_ceil(16)) * 256;
    let pixels = u64::from(width) * u64::from(height);
    let planes = padded * 3 / 2;
    // The chunk of the alpha plane, which is at most as large as the plane.
    let alpha = if color.has_alpha() { pixels } else { 0 };
    // The lossless file, and a copy of it while the container is put around it.
    let lossless = pixels * 4;
    peak(size, color, &best)
        + match options.mode {
            Mode::Lossless => lossless,
            Mode::Lossy => planes + alpha,
            Mode::Auto => planes + alpha + lossless,
        }
}

/// The most bytes a pixel of lossless coding: the pixels twice, where copies may come from, the
/// tokens, and the file; with much effort the tokens of several searches, side by side where there
/// are several threads. Noise takes 10, 25 and 31.
fn lossless_bytes(effort: Effort, threads: usize) -> u64 {
    match effort {
        Effort::Low | Effort::Medium => 20,
        Effort::High | Effort::Max if threads <= 1 => 26,
        Effort::High | Effort::Max => 34,
    }
}

/// Histograms and prefix codes of all groups, which small pictures have as well.
fn lossless_tables(effort: Effort) -> u64 {
    match effort {
        Effort::Low | Effort::Medium => 2 << 20,
        Effort::High | Effort::Max => 5 << 20,
    }
}

/// Tables, rows under way, and the stacks of threads.
const OTHER: u64 = 1 << 20;

/// Hundredths of a byte a pixel: modes, contexts, and the bottom rows of macroblocks.
const KEPT: u64 = 30;

/// Hundredths of a byte a pixel: what a pass did to each macroblock, and how its errors weigh.
const REFINED: u64 = 55;

/// The most hundredths of a byte a pixel that coefficients take: one byte each, and one for each
/// block.
fn packed_size(quality: u8) -> u64 {
    (70 + 4 * u64::from(quality)).min(160)
}

/// The most hundredths of a byte a pixel that the alpha plane and its lossless encoder take: first
/// for filters that are tried side by side, as pixels of four bytes; then for the pixels, the
/// copies found among them, and tokens.
fn alpha_size(effort: Effort, threads: usize) -> u64 {
    let trying = 100 + 400 * threads.clamp(1, 4) as u64;
    let coding = match effort {
        Effort::Low | Effort::Medium => 1300,
        Effort::High | Effort::Max => 1650,
    };
    trying.max(coding)
}

/// The most bytes of the table of earlier pixels, and of counts, that a filter of the alpha plane
/// is estimated with. The filters are estimated side by side.
const TABLES_PER_FILTER: u64 = 400 << 10;

/// The most hundredths of a byte a pixel that a file of pure primaries, at random, takes: straight
/// lines between measured points.
fn coded_size(quality: u8) -> u64 {
    const POINTS: [(u64, u64); 5] = [(0, 30), (25, 66), (50, 77), (85, 102), (100, 145)];
    let quality = u64::from(quality.min(100));
    let pair = POINTS.windows(2).find(|pair| quality <= pair[1].0);
    let [(from, low), (to, high)] = pair
        .and_then(|pair| pair.try_into().ok())
        .unwrap_or([POINTS[4]; 2]);
    low + (high - low) * (quality - from) / (to - from).max(1)
}
