//! VP8 key frames (RFC 6386), one file per chapter: prediction (12), transforms (14.3),
//! quantization (14.1), tokens (13), the boolean encoder (7), the loop filter (15) and the frame
//! header (9).

mod block;
mod bool_encoder;
mod constants;
mod distortion;
mod encoder;
mod frame_header;
mod levels;
mod loop_filter;
mod macroblock;
mod masking;
mod memory;
mod mode_budget;
mod mode_decision;
mod partition;
mod predict;
mod probability;
mod quality;
mod quantize;
mod rate;
mod refine;
mod row;
mod segment;
mod tables;
mod token;
mod token_counts;
mod token_writer;
mod transform;
mod tree;
mod trellis;
mod wavefront;

pub use constants::Constants;
#[cfg(feature = "testing")]
pub use encoder::agreement::assert_decoders_agree;
pub use encoder::{LossyOptions, encode, reconstruct};
pub use memory::FrameMemory;
