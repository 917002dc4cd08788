//! Decides whether lossy coding of a small picture, usually an icon, is worth the changes of color.
//! Chroma at half the resolution is most visible there, and few bytes are saved.

use crate::bitstream;
use crate::error::EncodeError;
use crate::options::{Effort, Options};
use crate::picture::RgbPicture;
use crate::pixel_source::PixelSource;
use crate::vp8;
use crate::ycbcr::Planes;

/// Whether a lossy coding of `lossy` bytes is preferred to one of `lossless` bytes: it has to be
/// smaller by a fifth, and by a twentieth more for each hundredth of the visible pixels whose color
/// changes visibly.
///
/// At quality 85, 9 of 126 icons and 25 of 120 emoji of 16 to 64 pixels are preferred lossy. At
/// eight times their size, on white and on dark, they look like the originals. If one level more
/// counted as invisible in [`changes_color`], a thin blue magnifier on a folder would turn gray.
/// Of the 97 others that save a fifth, smileys turn pale, red noses gray, and dark eyes red. With
/// one level less, one of 24 photographs of 64 x 64 pixels would stay lossless, which takes four
/// times the bytes.
///
/// # Errors
/// See [`EncodeError`].
pub fn is_worth_it(
    source: &impl PixelSource,
    [lossy, lossless]: [usize; 2],
    options: &Options<'_>,
) -> Result<bool, EncodeError> {
    /// Twentieths of the bytes that a hundredth of the pixels is worth.
    const PIXELS: usize = 100 / 20;
    // In fifths of bytes.
    let Some(saved) = (4 * lossless).checked_sub(5 * lossy) else {
        return Ok(false);
    };
    let planes = bitstream::planes(source, options)?;
    // More effort would change little of that.
    let quick = Options {
        effort: options.effort.min(Effort::Medium),
        ..*options
    };
    let decoded = vp8::reconstruct(&planes, &bitstream::lossy_settings(&quick))?;
    source.with_rgb(options.workers(), |picture| {
        let Changes { pixels, changed } = Changes::of(picture, &decoded);
        Ok(5 * PIXELS * changed * lossless <= pixels * saved)
    })
}

/// How many visible pixels change color.
#[derive(Debug, PartialEq, Eq)]
struct Changes {
    /// The visible pixels.
    pixels: usize,
    /// The pixels that change.
    changed: usize,
}

impl Changes {
    fn of(picture: &RgbPicture<'_>, decoded: &Planes) -> Changes {
        let channels = picture.layout.channels();
        let width = picture.width as usize;
        let rows = picture.pixels.chunks_exact(width * channels);
        let mut changes = Changes {
            pixels: 0,
            changed: 0,
        };
        for (y, row) in rows.enumerate() {
            for (x, pixel) in row.chunks_exact(channels).enumerate() {
                let alpha = pixel.get(3).map_or(255, |alpha| i32::from(*alpha));
                changes.pixels += usize::from(alpha > 0);
                changes.changed +=
                    usize::from(changes_color(pixel, alpha, decoded.chroma_at(x, y)));
            }
        }
        changes
    }
}

/// Whether the change of a pixel's chroma is visible: in an opaque gray pixel, if Cb or Cr is off
/// by more than 8 of 225 levels. The eye tolerates more in saturated colors (CIE94 divides
/// differences by 1 + 0.045 chroma), so that each 8 levels of the pixel's own chroma add one. With
/// a limit of 10 levels for all colors, 19 of the 25 emoji stayed lossless, which took 12 % more
/// bytes for all emoji together.
fn changes_color(pixel: &[u8], alpha: i32, decoded: [i32; 2]) -> bool {
    let [red, green, blue] = [0, 1, 2].map(|channel| i32::from(pixel[channel]));
    // BT.601 in limited range, in 1 / 256.
    let chroma = [
        -38 * red - 74 * green + 112 * blue,
        112 * red - 94 * green - 18 * blue,
    ];
    let [cb, cr] = chroma.map(i32::abs);
    let limit = 8 * 256 + cb.max(cr) / 8;
    let is_off =
        |(exact, decoded): (i32, i32)| (exact - (decoded - 128) * 256).abs() * alpha > limit * 255;
    chroma.into_iter().zip(decoded).any(is_off)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::{ColorType, Picture};

    const SIDE: u32 = 32;

    fn is_worth(pixel: impl Fn(u32, u32) -> [u8; 4], sizes: [usize; 2]) -> bool {
        let pixels: Vec<u8> = (0..SIDE * SIDE)
            .flat_map(|at| pixel(at % SIDE, at / SIDE))
            .collect();
        let picture = Picture::new(SIDE, SIDE, ColorType::Rgba8, &pixels).expect("good");
        is_worth_it(&picture, sizes, &Options::lossy(90)).expect("it is not cancelled")
    }

    #[test]
    fn gray_has_to_save_a_fifth() {
        let gray = |x: u32, y: u32| [[(x * 7 + y * 5) as u8; 3].as_slice(), &[255]].concat();
        let gray = |x, y| gray(x, y).try_into().expect("four samples");
        assert!(is_worth(gray, [800, 1000]));
        assert!(!is_worth(gray, [801, 1000]));
        assert!(!is_worth(gray, [usize::from(u16::MAX), 1000]));
    }

    #[test]
    fn pixels_that_change_color_have_to_save_more() {
        // Columns of red pixels on blue, so many pixels apart.
        let lines = |apart: u32, alpha: u8| {
            move |x: u32, _| {
                if x.is_multiple_of(apart) {
                    [230, 20, 20, alpha]
                } else {
                    [20, 20, 230, alpha]
                }
            }
        };
        assert!(!is_worth(lines(4, 255), [200, 1000]), "every pixel changes");
        assert!(!is_worth(lines(40, 255), [700, 1000]), "one column does");
        assert!(is_worth(lines(40, 255), [9, 1000]), "for nearly all bytes");
        assert!(is_worth(lines(4, 9), [600, 1000]), "hardly visible");
        assert!(is_worth(lines(4, 0), [800, 1000]), "not visible");
    }

    #[test]
    fn saturated_pixels_may_change_by_more() {
        // Blue has 112 levels of Cb and -18 of Cr, so that its limit is 13.9 levels higher.
        for (pixel, [cb, cr], limit) in [([128; 3], [0, 0], 8), ([0, 0, 255], [112, -18], 21)] {
            let changes = |by| changes_color(&pixel, 255, [128 + cb, 128 + cr + by]);
            assert!(!changes(limit) && !changes(-limit), "{pixel:?}");
            assert!(changes(limit + 2) && changes(-limit - 2), "{pixel:?}");
        }
    }

    #[test]
    fn chroma_is_interpolated_as_decoders_do() {
        let mut planes = Planes::new(5, 4);
        for (at, sample) in planes.chroma[0].iter_mut().enumerate() {
            *sample = [100, 120, 140][(at % 8).min(2)];
        }
        let row = |x| planes.chroma_at(x, 1)[0];
        assert_eq!([0, 1, 2, 3, 4].map(row), [100, 105, 115, 125, 135]);
        planes.chroma[1][8..].fill(80);
        let column = |y| planes.chroma_at(0, y)[1];
        assert_eq!([0, 1, 2, 3].map(column), [0, 20, 60, 80]);
    }
}
