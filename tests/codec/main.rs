//! Pictures in, WebP files out, without a server: what is read of damaged files, the colors that
//! are shown, the figures of the encoder, and the memory that conversions take.

// The fuzz targets that `corpus` replays name the crate of their macro, which has this one, too.
extern crate self as libfuzzer_sys;
pub use arbitrary;
// And the crate of what they share.
extern crate self as fuzz;
#[path = "../../fuzz/src/content.rs"]
pub mod content;
#[path = "../../fuzz/src/still.rs"]
pub mod still;
#[path = "../../fuzz/src/tiff.rs"]
pub mod tiff;

#[path = "../support/mod.rs"]
mod support;

mod apng;
mod auto;
mod conformance;
mod corpus;
mod damaged;
// It reads /proc, and sets glibc's allocator as `serve` does.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod estimate;
mod golden;
mod wasm;
mod watermark_sheet;
