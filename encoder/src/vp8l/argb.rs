//! Pixels as the format counts them: alpha, red, green and blue in a number of 32 bits (RFC 9649, section 3.5).

/// The number of a pixel of red, green, blue and alpha. Unless it is to be `exact`, a fully transparent
/// one is 0, since nobody sees its color and one is cheaper than many.
#[inline]
pub fn from_rgba([red, green, blue, alpha]: [u8; 4], exact: bool) -> u32 {
    match alpha {
        0 if !exact => 0,
        _ => u32::from_be_bytes([alpha, red, green, blue]),
    }
}
