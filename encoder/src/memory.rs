//! What encoding takes, told before it begins.

use super::coded::SIDE_BY_SIDE;
use super::{Effort, Layout, Mode, Options};

/// Most bytes that [`super::encode`] takes at a time beside the picture's own, the file that it gives included, for a picture
/// of these sides in pixels. Never less than the truth, which noise comes near; photographs take a half.
/// `tests/codec/estimate.rs` measures.
pub fn memory((width, height): (u32, u32), layout: Layout, options: &Options<'_>) -> u64 {
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

    let deciding = planes + kept;
    let writing = kept + share(coded) + booleans;
    let assembling = 2 * share(coded);
    let alpha = match layout {
        Layout::Rgb => 0,
        // Beside the finished frame.
        Layout::Rgba => share(coded + alpha_size(options.effort, threads)),
    };
    let lossy = deciding.max(writing).max(assembling).max(alpha);
    let pixels = u64::from(width) * u64::from(height);
    let lossless = LOSSLESS_TABLES + pixels * lossless_bytes(options.effort, threads);
    // What was coded without loss waits for what is coded with.
    let waiting = pixels * 4;
    OTHER
        + match options.mode {
            Mode::Lossy => lossy,
            Mode::Lossless => lossless,
            Mode::Auto if threads > 1 && pixels <= SIDE_BY_SIDE as u64 => OTHER + lossless + lossy,
            Mode::Auto => lossless.max(lossy + waiting),
        }
}

/// Most bytes a pixel without loss: the pixels twice, where copies may come from, what was found, and the file; with much effort what
/// was found for several searches, side by side where there are several threads. Noise takes 15, 23 and 31.
fn lossless_bytes(effort: Effort, threads: usize) -> u64 {
    match effort {
        Effort::Low | Effort::Medium => 20,
        Effort::High if threads <= 1 => 26,
        Effort::High => 34,
    }
}

/// Histograms and codes of all groups, which small pictures have, too.
const LOSSLESS_TABLES: u64 = 2 << 20;

/// Tables, rows under way, and what threads have of their own.
const OTHER: u64 = 1 << 20;

/// Hundredths of a byte a pixel: modes, contexts, and what macroblocks show to those below.
const KEPT: u64 = 30;

/// Most hundredths of a byte a pixel that coefficients take: one byte each, and one for each block.
fn packed_size(quality: u8) -> u64 {
    (70 + 4 * u64::from(quality)).min(160)
}

/// Most hundredths of a byte a pixel that the alpha plane and its lossless encoder take: first for filters that are tried side
/// by side, as pixels of four bytes; then for the pixels, the copies found among them, and tokens.
fn alpha_size(effort: Effort, threads: usize) -> u64 {
    let trying = 100 + 400 * threads.clamp(1, 4) as u64;
    let coding = match effort {
        Effort::Low | Effort::Medium => 1300,
        Effort::High => 1650,
    };
    trying.max(coding)
}

/// Most hundredths of a byte a pixel that a file of pure primaries, at random, takes: between measured points, straight
/// lines.
fn coded_size(quality: u8) -> u64 {
    const POINTS: [(u64, u64); 5] = [(0, 30), (25, 66), (50, 77), (85, 102), (100, 145)];
    let quality = u64::from(quality.min(100));
    let pair = POINTS.windows(2).find(|pair| quality <= pair[1].0);
    let [(from, low), (to, high)] = pair
        .and_then(|pair| pair.try_into().ok())
        .unwrap_or([POINTS[4]; 2]);
    low + (high - low) * (quality - from) / (to - from).max(1)
}
