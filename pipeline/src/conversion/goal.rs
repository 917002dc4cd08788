//! The goal of a search over quality, in place of a given quality.

/// The goal of a search over quality.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// The best picture of at most so many bytes (`max_bytes`).
    MaxBytes {
        /// The most bytes, at least 1.
        bytes: u64,
        /// Whether the smallest file is good enough if none fits (`best_effort`).
        is_best_effort: bool,
    },
    /// The smallest file with at least this score of SSIMULACRA2 (`target`), 30 to 95.
    Score(u8),
}
