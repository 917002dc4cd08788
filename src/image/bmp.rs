//! BMP, by the crate `image`.

use super::patience::{PORTION_PIXELS, Source};
use super::{Cancelled, DecodeError, Image, Layout, Limits, Patience, Raw};
use ::image::codecs::bmp::BmpDecoder;
use ::image::{ColorType, ImageDecoder, ImageError};
use std::hint::black_box;

/// Bytes of the file between two questions: at most 8 million pixels, as run lengths.
const PORTION: usize = 64 << 10;

/// Reads a bitmap.
pub(super) fn read(
    bytes: &[u8],
    limits: &Limits,
    patience: &Patience<'_>,
) -> Result<Raw, DecodeError> {
    let decoder =
        BmpDecoder::new(Source::new(bytes, PORTION, patience)).map_err(|error| invalid(&error))?;
    let (width, height) = decoder.dimensions();
    let count = limits.check(width, height)?;
    let layout = if decoder.color_type() == ColorType::Rgba8 {
        Layout::Rgba
    } else {
        Layout::Rgb
    };
    let mut pixels = vec![0; count * layout.channels()];
    if has_run_lengths(bytes) {
        touch(&mut pixels, patience)?;
    }
    decoder
        .read_image(&mut pixels)
        .map_err(|error| invalid(&error))?;
    if layout == Layout::Rgba {
        reveal_if_all_transparent(&mut pixels, patience)?;
    }
    Ok(Raw {
        image: Image {
            width,
            height,
            layout,
            pixels,
        },
        grey: false,
        space: None,
        exif: None,
    })
}

/// Whether rows are coded as run lengths: biCompression is `BI_RLE8` or `BI_RLE4`, which an OS/2 1.x header does not have.
fn has_run_lengths(bytes: &[u8]) -> bool {
    let field = |at: usize| {
        bytes
            .get(at..)?
            .first_chunk()
            .copied()
            .map(u32::from_le_bytes)
    };
    field(14).is_some_and(|header| header >= 40) && matches!(field(30), Some(1 | 2))
}

/// Has the system provide the memory of `pixels`. Two bytes of run lengths may leave out all of them, and the decoder then
/// fills them without a question: 100 million took 127 ms, most of it for memory that was not there yet.
fn touch(pixels: &mut [u8], patience: &Patience<'_>) -> Result<(), Cancelled> {
    for portion in pixels.chunks_mut(PORTION_PIXELS * 4) {
        patience.check()?;
        black_box(portion).fill(0);
    }
    Ok(())
}

/// Many writers declare an alpha channel and leave it 0: viewers then show the picture as opaque.
fn reveal_if_all_transparent(pixels: &mut [u8], patience: &Patience<'_>) -> Result<(), Cancelled> {
    let pixels = pixels.as_chunks_mut::<4>().0;
    for portion in pixels.chunks(PORTION_PIXELS) {
        patience.check()?;
        if portion.iter().any(|pixel| pixel[3] != 0) {
            return Ok(());
        }
    }
    for portion in pixels.chunks_mut(PORTION_PIXELS) {
        patience.check()?;
        for pixel in portion {
            pixel[3] = 255;
        }
    }
    Ok(())
}

fn invalid(error: &ImageError) -> DecodeError {
    DecodeError::Invalid(match error {
        ImageError::IoError(_) => "the BMP data ends too early".to_owned(),
        other => format!(
            "the BMP data is damaged or of a rare kind ({})",
            other.to_string().trim_end_matches('.')
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        max_side: 1000,
        max_pixels: 10_000,
    };

    /// A bitmap with a BITMAPINFOHEADER; `extra` lies between that and the rows: masks or a palette.
    fn bmp(
        width: i32,
        height: i32,
        bits: u16,
        compression: u32,
        extra: &[u8],
        rows: &[u8],
    ) -> Vec<u8> {
        let header = |size: u32| {
            let mut header = size.to_le_bytes().to_vec();
            header.extend([width.to_le_bytes(), height.to_le_bytes()].concat());
            header.extend([1u16.to_le_bytes(), bits.to_le_bytes()].concat());
            header.extend(compression.to_le_bytes());
            header.extend([0; 12]); // size of the rows and resolution, which readers pass over
            header.extend((if bits <= 8 { extra.len() as u32 / 4 } else { 0 }).to_le_bytes());
            header.extend([0; 4]);
            header
        };
        // Four masks make it a BITMAPV3INFOHEADER.
        let header = header(if extra.len() == 16 && bits > 8 {
            56
        } else {
            40
        });
        let offset = 14 + header.len() + extra.len();
        let mut file = b"BM".to_vec();
        file.extend(((offset + rows.len()) as u32).to_le_bytes());
        file.extend([0; 4]);
        file.extend((offset as u32).to_le_bytes());
        [file, header, extra.to_vec(), rows.to_vec()].concat()
    }

    fn image(file: &[u8]) -> Image {
        read(file, &LIMITS, &Patience::endless())
            .expect("a valid picture")
            .image
    }

    /// Two rows of one pixel and 1 byte of padding, blue first; the bottom row comes first.
    const ROWS: [u8; 8] = [3, 2, 1, 0, 6, 5, 4, 0];

    #[test]
    fn rows_run_upwards_and_samples_blue_first() {
        assert_eq!(
            image(&bmp(1, 2, 24, 0, &[], &ROWS)).pixels,
            [4, 5, 6, 1, 2, 3]
        );
    }

    #[test]
    fn a_negative_height_runs_downwards() {
        assert_eq!(
            image(&bmp(1, -2, 24, 0, &[], &ROWS)).pixels,
            [1, 2, 3, 4, 5, 6]
        );
    }

    #[test]
    fn a_palette_is_looked_up() {
        let palette = [3, 2, 1, 0, 6, 5, 4, 0];
        let file = bmp(3, 1, 1, 0, &palette, &[0b0100_0000, 0, 0, 0]);
        assert_eq!(image(&file).pixels, [1, 2, 3, 4, 5, 6, 1, 2, 3]);
    }

    /// Red, green, blue and alpha of 32-bit pixels stored blue first.
    const MASKS: [u8; 16] = [0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 0, 0, 0, 0, 255];

    #[test]
    fn alpha_is_kept() {
        let image = image(&bmp(2, 1, 32, 3, &MASKS, &[3, 2, 1, 9, 6, 5, 4, 0]));
        assert_eq!(
            (image.layout, image.pixels.as_slice()),
            (Layout::Rgba, &[1, 2, 3, 9, 4, 5, 6, 0][..])
        );
    }

    #[test]
    fn an_alpha_channel_of_zeros_means_opaque() {
        let image = image(&bmp(2, 1, 32, 3, &MASKS, &[3, 2, 1, 0, 6, 5, 4, 0]));
        assert_eq!(image.pixels, [1, 2, 3, 255, 4, 5, 6, 255]);
    }

    #[test]
    fn a_file_that_is_cut_short_anywhere_is_refused() {
        let file = bmp(20, 10, 24, 0, &[], &[7; 600]);
        image(&file);
        for length in 2..file.len() {
            assert!(
                read(&file[..length], &LIMITS, &Patience::endless()).is_err(),
                "{length} of {} bytes were enough",
                file.len()
            );
        }
    }

    #[test]
    fn the_header_is_held_to_the_limits_before_the_pixels_are_needed() {
        let error = |width, height| {
            read(
                &bmp(width, height, 24, 0, &[], &[]),
                &LIMITS,
                &Patience::endless(),
            )
            .err()
        };
        assert_eq!(
            error(1001, 1),
            Some(DecodeError::TooWide {
                width: 1001,
                height: 1,
                max_side: 1000
            })
        );
        assert_eq!(
            error(1, -1001),
            Some(DecodeError::TooWide {
                width: 1,
                height: 1001,
                max_side: 1000
            })
        );
        assert_eq!(
            error(101, 100),
            Some(DecodeError::TooManyPixels {
                width: 101,
                height: 100,
                max_pixels: 10_000
            })
        );
        for (width, height) in [(0, 5), (5, 0), (-5, 5), (i32::MAX, i32::MAX), (1, i32::MIN)] {
            assert!(
                matches!(error(width, height), Some(DecodeError::Invalid(_))),
                "{width} x {height}"
            );
        }
        image(&bmp(100, 100, 24, 0, &[], &vec![0; 30_000]));
    }
}
