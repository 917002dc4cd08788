//! The subtract green transform: RFC 9649, section 3.5.3.

use crate::EncodeError;
use crate::checks::PIXELS_PER_CHECK;
use crate::threads::Workers;

/// Subtracts green from red and blue, modulo 256.
pub fn apply(pixels: &mut [u32], workers: Workers<'_>) -> Result<(), EncodeError> {
    for part in pixels.chunks_mut(PIXELS_PER_CHECK) {
        workers.check()?;
        subtract(part);
    }
    Ok(())
}

/// Undoes [`apply`].
pub fn undo(pixels: &mut [u32], workers: Workers<'_>) -> Result<(), EncodeError> {
    for part in pixels.chunks_mut(PIXELS_PER_CHECK) {
        workers.check()?;
        add(part);
    }
    Ok(())
}

fn subtract(pixels: &mut [u32]) {
    for pixel in pixels {
        let green = *pixel >> 8 & 0xFF;
        // Both at once: borrows stay in the bits between them.
        let red_blue = (*pixel & 0x00FF_00FF | 0x0100_0100).wrapping_sub(green << 16 | green);
        *pixel = *pixel & 0xFF00_FF00 | red_blue & 0x00FF_00FF;
    }
}

fn add(pixels: &mut [u32]) {
    for pixel in pixels {
        let green = *pixel >> 8 & 0xFF;
        let red_blue = (*pixel & 0x00FF_00FF).wrapping_add(green << 16 | green);
        *pixel = *pixel & 0xFF00_FF00 | red_blue & 0x00FF_00FF;
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn green_is_taken_from_red_and_blue() {
        let mut pixels = [0x80_10_20_30, 0xFF_FF_01_00, 0x00_00_FF_FF];
        super::subtract(&mut pixels);
        assert_eq!(pixels, [0x80_F0_20_10, 0xFF_FE_01_FF, 0x00_01_FF_00]);
        super::add(&mut pixels);
        assert_eq!(pixels, [0x80_10_20_30, 0xFF_FF_01_00, 0x00_00_FF_FF]);
    }
}
