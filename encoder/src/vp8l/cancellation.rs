//! How often the loops over pixels check whether they are cancelled.

/// Pixels between two checks: about a millisecond of work.
pub const PIXELS_PER_CHECK: usize = 1 << 15;
