//! Support for the tests of the readers.

use super::decoded::Decoded;
use super::error::DecodeError;
use super::limits::Limits;
use std::ops::Range;
use towebp_encoder::Cancel;

/// The bounds that the readers' tests decode within.
pub const LIMITS: Limits = Limits {
    max_side: 1000,
    max_pixels: 10_000,
    ..Limits::DEFAULT
};

/// Asserts that `read` rejects a file that is cut off after any of `lengths` bytes.
pub fn assert_parts_are_rejected(
    read: fn(&[u8], &Limits, &Cancel<'_>) -> Result<Decoded, DecodeError>,
    file: &[u8],
    lengths: Range<usize>,
) {
    for length in lengths {
        assert!(
            read(&file[..length], &LIMITS, &Cancel::never()).is_err(),
            "{length} of {} bytes were enough",
            file.len()
        );
    }
}
