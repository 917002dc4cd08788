//! GIF, by the crate `gif`: the first frame on its logical screen, transparent where the frame does not reach.
//! What follows the first frame is not read.

use super::patience::Source;
use super::{DecodeError, Footprint, Image, Layout, Limits, Patience, Raw};
use ::gif::{ColorOutput, DecodeOptions, DecodingError, Frame, MemoryLimit};
use std::num::NonZeroU64;

/// Bytes of the file between two questions: LZW makes up to 2.7 million pixels of them.
const PORTION: usize = 1 << 10;

/// Reads the first frame of a GIF.
pub(super) fn read(
    bytes: &[u8],
    limits: &Limits,
    patience: &Patience<'_>,
) -> Result<Raw, DecodeError> {
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::Indexed);
    options.set_memory_limit(MemoryLimit::Bytes(
        NonZeroU64::new(limits.max_pixels).unwrap_or(NonZeroU64::MIN),
    ));
    let mut decoder = options
        .read_info(Source::new(bytes, PORTION, patience))
        .map_err(|error| invalid(&error))?;
    let screen = (u32::from(decoder.width()), u32::from(decoder.height()));
    if screen.0 != 0 && screen.1 != 0 {
        limits.check(screen.0, screen.1)?;
    }

    let frame = decoder.next_frame_info().map_err(|error| invalid(&error))?;
    let frame = frame.ok_or_else(no_frame)?.clone();
    // The indices are one byte a pixel of the frame, which may be larger than the screen.
    let count = limits.check(u32::from(frame.width), u32::from(frame.height))?;
    let palette = rgba_palette(&frame, decoder.palette().map_err(|error| invalid(&error))?);
    let mut indices = vec![0; count];
    decoder
        .read_into_buffer(&mut indices)
        .map_err(|error| invalid(&error))?;

    // Some writers leave the logical screen empty: viewers then show the frame alone.
    let (width, height, left, top) = if screen.0 == 0 || screen.1 == 0 {
        (u32::from(frame.width), u32::from(frame.height), 0, 0)
    } else {
        (
            screen.0,
            screen.1,
            usize::from(frame.left),
            usize::from(frame.top),
        )
    };
    let mut pixels = vec![0; limits.check(width, height)? * 4];
    let screen_rows = pixels.chunks_exact_mut(width as usize * 4).skip(top);
    for (row, indices) in screen_rows.zip(indices.chunks_exact(usize::from(frame.width))) {
        patience.check()?;
        for (pixel, &index) in row
            .as_chunks_mut::<4>()
            .0
            .iter_mut()
            .skip(left)
            .zip(indices)
        {
            *pixel = palette[usize::from(index)];
        }
    }
    Ok(Raw {
        image: Image {
            width,
            height,
            layout: Layout::Rgba,
            pixels,
        },
        grey: false,
        space: None,
        exif: None,
    })
}

/// What [`read`] takes.
pub(super) fn probe(bytes: &[u8], limits: &Limits) -> Result<Footprint, DecodeError> {
    /// The decoder's tables, and its window.
    const TABLES: u64 = 1 << 20;
    let mut decoder = DecodeOptions::new()
        .read_info(bytes)
        .map_err(|error| invalid(&error))?;
    let screen = (u32::from(decoder.width()), u32::from(decoder.height()));
    let frame = decoder.next_frame_info().map_err(|error| invalid(&error))?;
    let frame = frame.ok_or_else(no_frame)?.clone();
    let size = (u32::from(frame.width), u32::from(frame.height));
    let indices = limits.check(size.0, size.1)? as u64;
    let (width, height) = if screen.0 == 0 || screen.1 == 0 {
        size
    } else {
        screen
    };
    let count = limits.check(width, height)? as u64;
    let colors = decoder.palette().map_err(|error| invalid(&error))?.len() / 3;
    let covers = (frame.left, frame.top) == (0, 0) && size == (width, height);
    let is_opaque = covers && frame.transparent.is_none() && colors == 256;
    // The alpha channel of what is opaque is given up once it is decoded.
    let (layout, alpha) = if is_opaque {
        (Layout::Rgb, count)
    } else {
        (Layout::Rgba, 0)
    };
    Ok(Footprint {
        width,
        height,
        layout,
        decoder: TABLES + indices + alpha,
    })
}

fn no_frame() -> DecodeError {
    DecodeError::Invalid("the GIF has no frame".to_owned())
}

/// The frame's colours; indices beyond its palette are transparent, as browsers show them.
fn rgba_palette(frame: &Frame<'_>, palette: &[u8]) -> [[u8; 4]; 256] {
    let mut colors = [[0; 4]; 256];
    for (color, &[red, green, blue]) in colors.iter_mut().zip(palette.as_chunks::<3>().0) {
        *color = [red, green, blue, 255];
    }
    if let Some(transparent) = frame.transparent {
        colors[usize::from(transparent)] = [0; 4];
    }
    colors
}

fn invalid(error: &DecodingError) -> DecodeError {
    DecodeError::Invalid(match error {
        DecodingError::UnexpectedEof | DecodingError::Io(_) => {
            "the GIF data ends too early".to_owned()
        }
        other => format!(
            "the GIF data is damaged ({})",
            other.to_string().trim_end_matches('.')
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::gif::Encoder;

    const LIMITS: Limits = Limits {
        max_side: 1000,
        max_pixels: 10_000,
    };
    const PALETTE: [u8; 12] = [10, 11, 12, 20, 21, 22, 30, 31, 32, 40, 41, 42];

    fn gif(width: u16, height: u16, frames: &[Frame<'_>]) -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder =
            Encoder::new(&mut file, width, height, &PALETTE).expect("a valid palette");
        for frame in frames {
            encoder.write_frame(frame).expect("a valid frame");
        }
        drop(encoder);
        file
    }

    fn frame(left: u16, top: u16, width: u16, height: u16, indices: &[u8]) -> Frame<'_> {
        Frame {
            left,
            top,
            width,
            height,
            buffer: indices.into(),
            ..Frame::default()
        }
    }

    fn pixels(file: &[u8]) -> Vec<[u8; 4]> {
        let raw =
            read(file, &LIMITS, &Patience::endless()).unwrap_or_else(|error| panic!("{error}"));
        raw.image.pixels.as_chunks().0.to_vec()
    }

    const NONE: [u8; 4] = [0; 4];
    const FIRST: [u8; 4] = [10, 11, 12, 255];
    const SECOND: [u8; 4] = [20, 21, 22, 255];
    const THIRD: [u8; 4] = [30, 31, 32, 255];

    #[test]
    fn the_first_frame_is_shown() {
        let file = gif(
            2,
            2,
            &[
                frame(0, 0, 2, 2, &[0, 1, 2, 0]),
                frame(0, 0, 2, 2, &[3, 3, 3, 3]),
            ],
        );
        assert_eq!(pixels(&file), [FIRST, SECOND, THIRD, FIRST]);
    }

    #[test]
    fn a_smaller_frame_lies_on_a_transparent_screen() {
        let file = gif(3, 2, &[frame(1, 1, 2, 1, &[1, 2])]);
        assert_eq!(pixels(&file), [NONE, NONE, NONE, NONE, SECOND, THIRD]);
    }

    #[test]
    fn a_frame_that_leaves_the_screen_is_cut() {
        let file = gif(2, 2, &[frame(1, 1, 3, 2, &[1, 2, 2, 2, 2, 2])]);
        assert_eq!(pixels(&file), [NONE, NONE, NONE, SECOND]);
        assert_eq!(pixels(&gif(1, 1, &[frame(5, 7, 1, 1, &[1])])), [NONE]);
    }

    #[test]
    fn the_transparent_index_and_indices_without_a_colour_are_transparent() {
        let transparent = Frame {
            transparent: Some(1),
            ..frame(0, 0, 2, 1, &[1, 0])
        };
        assert_eq!(pixels(&gif(2, 1, &[transparent])), [NONE, FIRST]);
        assert_eq!(
            pixels(&gif(2, 1, &[frame(0, 0, 2, 1, &[200, 0])])),
            [NONE, FIRST]
        );
    }

    #[test]
    fn interlaced_rows_are_sorted() {
        // Of four rows the passes of GIF 89a appendix E hold rows 0, then 2, then 1 and 3.
        let interlaced = Frame {
            interlaced: true,
            ..frame(0, 0, 1, 4, &[0, 2, 1, 1])
        };
        assert_eq!(
            pixels(&gif(1, 4, &[interlaced])),
            [FIRST, SECOND, THIRD, SECOND]
        );
    }

    #[test]
    fn an_empty_screen_takes_the_frames_size() {
        assert_eq!(
            pixels(&gif(0, 0, &[frame(3, 3, 2, 1, &[0, 1])])),
            [FIRST, SECOND]
        );
    }

    #[test]
    fn a_file_that_ends_before_the_first_frame_does_is_refused() {
        let indices: Vec<u8> = (0..1200)
            .map(|index| (index * index % 7 % 4) as u8)
            .collect();
        let file = gif(40, 30, &[frame(0, 0, 40, 30, &indices)]);
        assert_eq!(pixels(&file).len(), 1200);
        // The last bytes are the end of the data's blocks and the trailer.
        for length in 6..file.len() - 4 {
            assert!(
                read(&file[..length], &LIMITS, &Patience::endless()).is_err(),
                "{length} of {} bytes were enough",
                file.len()
            );
        }
        assert!(
            read(&gif(4, 4, &[]), &LIMITS, &Patience::endless()).is_err(),
            "no frame at all"
        );
    }

    #[test]
    fn screen_and_frame_are_held_to_the_limits() {
        let error = |width, height, frame_width, frame_height| {
            // The header alone: no data stands behind these sizes.
            let mut file = gif(width, height, &[frame(0, 0, 1, 1, &[0])]);
            let descriptor = file
                .iter()
                .position(|&byte| byte == b',')
                .expect("an image descriptor")
                + 5;
            file[descriptor..descriptor + 2].copy_from_slice(&u16::to_le_bytes(frame_width));
            file[descriptor + 2..descriptor + 4].copy_from_slice(&u16::to_le_bytes(frame_height));
            read(&file, &LIMITS, &Patience::endless()).err()
        };
        assert_eq!(
            error(1001, 1, 1, 1),
            Some(DecodeError::TooWide {
                width: 1001,
                height: 1,
                max_side: 1000
            })
        );
        assert_eq!(
            error(101, 100, 1, 1),
            Some(DecodeError::TooManyPixels {
                width: 101,
                height: 100,
                max_pixels: 10_000
            })
        );
        assert_eq!(
            error(1, 1, 65535, 1),
            Some(DecodeError::TooWide {
                width: 65535,
                height: 1,
                max_side: 1000
            })
        );
        assert_eq!(
            error(1, 1, 100, 101),
            Some(DecodeError::TooManyPixels {
                width: 100,
                height: 101,
                max_pixels: 10_000
            })
        );
        assert!(error(1, 1, 0, 1).is_some(), "an empty frame");
        assert_eq!(error(1000, 10, 1, 1), None);
    }
}
