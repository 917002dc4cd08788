//! Pixels in the format's order: alpha, red, green and blue in 32 bits (RFC 9649, section 3.5).

/// Converts a pixel of red, green, blue and alpha. Unless `exact` is set, a fully transparent pixel
/// becomes 0: its color does not show, and one color is cheaper than many.
#[inline]
pub fn from_rgba([red, green, blue, alpha]: [u8; 4], exact: bool) -> u32 {
    match alpha {
        0 if !exact => 0,
        _ => u32::from_be_bytes([alpha, red, green, blue]),
    }
}
