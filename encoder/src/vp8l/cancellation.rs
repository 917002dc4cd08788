//! How often the loops of the lossless encoder (RFC 9649, section 3) check for cancellation.

/// Pixels between two checks: about a millisecond of work.
pub const PIXELS_PER_CHECK: usize = 1 << 15;
