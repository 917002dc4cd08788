//! Memory for the trials of a macroblock (RFC 6386, sections 11.2 and 12).

use crate::vp8::block::{BlockPixels, Quantized};
use crate::vp8::macroblock::LumaWorkspace;
use crate::vp8::predict::SubblockMode;
use crate::vp8::rate::BitCost;
use crate::vp8::transform::Block;

/// Memory for the trials of a macroblock. They are written in place, and those of the macroblock
/// before are overwritten.
pub struct Trials {
    /// Luma.
    pub luma: LumaTrials,
    /// Chroma.
    pub chroma: ChromaTrials,
}

impl Trials {
    /// No trials.
    pub const EMPTY: Trials = Trials {
        luma: LumaTrials::EMPTY,
        chroma: ChromaTrials::EMPTY,
    };
}

/// Memory for the trials of a macroblock, which are written in place.
pub struct LumaTrials {
    /// The pixels of the subblocks.
    pub source: [BlockPixels; 16],
    /// The predictions by the Intra16 modes.
    pub predictions: [[u8; 256]; 4],
    /// The best Intra16 trial and the one under way.
    pub intra16: [Intra16Trial; 2],
    /// The Intra4 trial.
    pub intra4: Intra4Trial,
}

impl LumaTrials {
    /// No trial.
    pub const EMPTY: LumaTrials = LumaTrials {
        source: [[0; 16]; 16],
        predictions: [[0; 256]; 4],
        intra16: [Intra16Trial::EMPTY; 2],
        intra4: Intra4Trial::EMPTY,
    };
}

/// Luma of a macroblock, predicted by one Intra16 mode.
pub struct Intra16Trial {
    /// The number of the mode.
    pub mode: usize,
    /// The score; of an unfinished trial, that of its first blocks.
    pub score: u64,
    /// The coefficients of the blocks.
    pub coefficients: [Block; 16],
    /// The blocks after quantization.
    pub blocks: [Quantized; 16],
    /// The Y2 block.
    pub y2: Quantized,
    /// The score of the Y2 block.
    pub y2_score: u64,
    /// The DCs as a decoder restores them.
    pub dcs: Block,
}

impl Intra16Trial {
    /// No trial.
    pub const EMPTY: Intra16Trial = Intra16Trial {
        mode: 0,
        score: 0,
        coefficients: [[0; 16]; 16],
        blocks: [NO_COEFFICIENTS; 16],
        y2: NO_COEFFICIENTS,
        y2_score: 0,
        dcs: [0; 16],
    };
}

/// Luma of a macroblock, predicted by Intra4.
pub struct Intra4Trial {
    /// The score; of an unfinished trial, that of its first blocks.
    pub score: u64,
    /// Sum of the least estimates of the subblocks.
    pub estimate: u32,
    /// The modes of the subblocks.
    pub modes: [SubblockMode; 16],
    /// The bit cost of all modes.
    pub mode_cost: BitCost,
    /// The blocks after quantization.
    pub blocks: [Quantized; 16],
    /// The pixels.
    pub workspace: LumaWorkspace,
}

impl Intra4Trial {
    /// No trial.
    pub const EMPTY: Intra4Trial = Intra4Trial {
        score: 0,
        estimate: 0,
        modes: [SubblockMode::Dc; 16],
        mode_cost: 0,
        blocks: [NO_COEFFICIENTS; 16],
        workspace: LumaWorkspace::EMPTY,
    };
}

/// Memory for the trials of a macroblock, which are written in place.
pub struct ChromaTrials {
    /// The predictions by the modes.
    pub predictions: [[[u8; 64]; 2]; 4],
    /// The best trial and the one under way.
    pub trials: [ChromaTrial; 2],
}

impl ChromaTrials {
    /// No trial.
    pub const EMPTY: ChromaTrials = ChromaTrials {
        predictions: [[[0; 64]; 2]; 4],
        trials: [ChromaTrial::EMPTY; 2],
    };
}

/// Chroma of a macroblock, predicted by one mode.
pub struct ChromaTrial {
    /// The number of the mode.
    pub mode: usize,
    /// The score; of an unfinished trial, that of its first blocks.
    pub score: u64,
    /// The coefficients of the blocks.
    pub coefficients: [[Block; 4]; 2],
    /// The blocks after quantization.
    pub blocks: [[Quantized; 4]; 2],
}

impl ChromaTrial {
    /// No trial.
    pub const EMPTY: ChromaTrial = ChromaTrial {
        mode: 0,
        score: 0,
        coefficients: [[[0; 16]; 4]; 2],
        blocks: [[NO_COEFFICIENTS; 4]; 2],
    };
}

/// A block without coefficients.
pub const NO_COEFFICIENTS: Quantized = Quantized {
    levels: [0; 16],
    eob: 0,
};
