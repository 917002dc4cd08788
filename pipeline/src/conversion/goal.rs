//! What a conversion looks for instead of a given quality.

/// What a search over quality is to find.
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
