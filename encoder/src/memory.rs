//! The memory that encoding takes, computed before it begins.

use crate::alpha;
use crate::auto_mode::SIDE_BY_SIDE;
use crate::options::{Effort, Mode, Options};
use crate::picture::ColorType;
use crate::vp8::FrameMemory;

/// The most bytes that encoding allocates at a time beside the pixels, the file included.
/// `tests/codec/estimate.rs` and `tests/memory` measure it.
pub fn peak(size: (u32, u32), color: ColorType, options: &Options<'_>) -> u64 {
    let frame = frame_memory(size, options);
    let threads = options.threads.max(1);
    let pixels = u64::from(size.0) * u64::from(size.1);
    // A copy as RGB or, with transparent pixels filled, RGBA.
    let copy = match color {
        ColorType::Rgb8 => 0,
        ColorType::L8 => 3 * pixels,
        ColorType::La8 | ColorType::Rgba8 => 4 * pixels,
    };
    let converting = frame.planes + frame.converting + copy;
    // The alpha plane is coded beside the finished frame.
    let alpha = if color.has_alpha() {
        let trying = TABLES_PER_FILTER * threads.min(alpha::SIDE_BY_SIDE) as u64;
        let tables = match options.effort {
            Effort::Low | Effort::Medium => trying,
            Effort::High | Effort::Max => trying.max(lossless_tables(options.effort)),
        };
        frame.frame + pixels * alpha_bytes(options.effort, threads) + tables
    } else {
        0
    };
    let chunks = frame.frame + if color.has_alpha() { pixels } else { 0 };
    let lossy = converting.max(frame.peak).max(alpha).max(2 * chunks);
    // The exact file, in a buffer with room to spare, waits for the near-lossless one.
    let exact = if options.near_lossless < 100 {
        pixels * 6
    } else {
        0
    };
    let lossless =
        lossless_tables(options.effort) + pixels * lossless_bytes(options.effort, threads) + exact;
    // The lossless file waits for the lossy one, and one of few colors for both.
    let waiting = pixels * 4;
    let reduced = pixels;
    OTHER
        + match options.mode {
            Mode::Lossy => lossy,
            Mode::Lossless => lossless,
            Mode::Auto if threads > 1 && pixels <= SIDE_BY_SIDE as u64 => {
                OTHER + lossless + lossy + reduced
            }
            Mode::Auto => lossless.max(lossy + waiting) + reduced,
        }
}

fn frame_memory(size: (u32, u32), options: &Options<'_>) -> FrameMemory {
    FrameMemory::new(size, options.quality, options.effort, options.threads)
}

/// [`peak`] of a picture that is encoded at several qualities, up to the best: what does not depend
/// on them stays in memory.
pub fn prepared_peak(size: (u32, u32), color: ColorType, options: &Options<'_>) -> u64 {
    let best = Options {
        quality: 100,
        ..*options
    };
    let planes = frame_memory(size, &best).planes;
    let pixels = u64::from(size.0) * u64::from(size.1);
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

/// The most bytes a pixel that the alpha plane and its lossless encoder take: first for filters
/// that are tried side by side, as pixels of four bytes and their tokens; then for the pixels, the
/// copies found among them, and tokens.
fn alpha_bytes(effort: Effort, threads: usize) -> u64 {
    let trying = 1 + 8 * threads.clamp(1, alpha::SIDE_BY_SIDE) as u64;
    let coding = match effort {
        Effort::Low | Effort::Medium => 13,
        Effort::High | Effort::Max => 17,
    };
    trying.max(coding)
}

/// The most bytes of the table of earlier pixels, and of counts, that a filter of the alpha plane
/// is estimated with. The filters are estimated side by side.
const TABLES_PER_FILTER: u64 = 400 << 10;
