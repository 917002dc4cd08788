//! GIF, by the crate `gif`: the first frame on its logical screen, transparent where the frame does not reach.
//! What follows the first frame is not read.

use super::{DecodeError, Image, Layout, Limits, Raw};
use ::gif::{ColorOutput, DecodeOptions, DecodingError, Frame, MemoryLimit};
use std::num::NonZeroU64;

/// Reads the first frame of a GIF.
pub(super) fn read(bytes: &[u8], limits: &Limits) -> Result<Raw, DecodeError> {
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::Indexed);
    options.set_memory_limit(MemoryLimit::Bytes(
        NonZeroU64::new(limits.max_pixels).unwrap_or(NonZeroU64::MIN),
    ));
    let mut decoder = options.read_info(bytes).map_err(|error| invalid(&error))?;
    let screen = (u32::from(decoder.width()), u32::from(decoder.height()));
    if screen.0 != 0 && screen.1 != 0 {
        limits.check(screen.0, screen.1)?;
    }

    let frame = decoder.next_frame_info().map_err(|error| invalid(&error))?;
    let frame = frame
        .ok_or_else(|| DecodeError::Invalid("the GIF has no frame".to_owned()))?
        .clone();
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
        profile: None,
        exif: None,
    })
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
