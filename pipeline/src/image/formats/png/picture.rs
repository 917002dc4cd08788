//! One picture of a PNG: the data before its rows, the rows, and the end.

use super::decoder::{DECODER_BYTES, invalid, layout_of};
use super::input::Input;
use super::rows::{Expansion, read_rows};
use crate::image::color::{Calibrated, SixteenBitTransform, Space, is_rgb, is_srgb};
use crate::image::decoded::Decoded;
use crate::image::error::DecodeError;
use crate::image::limits::Limits;
use crate::image::metadata::Keep;
use crate::image::pixels::{Image, Layout};
use ::png::{BitDepth, ColorType, Decoder, Info, Reader, ScaledFloat, Transformations};
use towebp_encoder::Cancel;

/// A decoder of a file.
pub fn decoder<'s, 'a>(input: Input<'s, 'a>) -> Decoder<Input<'s, 'a>> {
    let limits = ::png::Limits {
        bytes: DECODER_BYTES,
    };
    let mut decoder = Decoder::new_with_limits(input, limits);
    decoder.set_ignore_text_chunk(true);
    decoder.set_transformations(Transformations::EXPAND);
    decoder
}

/// A picture whose rows are still to be read.
pub struct Rows<'s, 'a> {
    pub reader: Reader<Input<'s, 'a>>,
    pub width: u32,
    pub height: u32,
    /// The number of pixels.
    count: usize,
    layout: Layout,
    is_gray: bool,
    pub expansion: Expansion,
    /// The color space of the expanded rows, if the file names one.
    pub space: Option<Space>,
}

impl<'s, 'a> Rows<'s, 'a> {
    /// Reads the data before the pixels.
    pub fn begin(
        mut decoder: Decoder<Input<'s, 'a>>,
        keep: Keep,
        limits: &Limits,
    ) -> Result<Rows<'s, 'a>, DecodeError> {
        let header = decoder
            .read_header_info()
            .map_err(|error| invalid(&error))?;
        let (width, height) = (header.width, header.height);
        let count = limits.check(width, height)?;

        let reader = decoder.read_info().map_err(|error| invalid(&error))?;
        let palette = reader.info().palette.as_deref().unwrap_or_default();
        if !palette.len().is_multiple_of(3) {
            // PNG 11.2.2 demands an error, and the decoder would panic.
            return Err(DecodeError::Invalid(
                "the PNG data is damaged (its palette ends within a color)".to_owned(),
            ));
        }
        let (color, depth) = reader.output_color_type();
        let layout = layout_of(color);
        let is_gray = matches!(color, ColorType::Grayscale | ColorType::GrayscaleAlpha);
        // The chunks that name it all come before the pixels (PNG 5.6).
        let mut space = space(reader.info());
        let mut expansion = Expansion::new(color, depth);
        if depth == BitDepth::Sixteen
            && let Some(space) = space.take_if(|space| !stays_in(space, keep))
            && let Some(transform) = SixteenBitTransform::new(&space, layout, is_gray)
        {
            expansion.convert_by(transform, width as usize * layout.channels());
        }
        Ok(Rows {
            reader,
            width,
            height,
            count,
            layout,
            is_gray,
            expansion,
            space,
        })
    }

    /// Whether rows come opaque, from top to bottom, and in the color space that they stay in.
    pub fn are_planes(&self, keep: Keep) -> bool {
        let is_srgb = |space: &Space| matches!(space, Space::Icc(profile) if is_srgb(profile));
        let stays = |space: &Space| stays_in(space, keep) || is_srgb(space);
        self.layout == Layout::Rgb
            && !self.reader.info().interlaced
            && self.space.as_ref().is_none_or(stays)
    }

    /// Checks that the file is whole.
    pub fn finish(&mut self) -> Result<(), DecodeError> {
        self.reader.finish().map_err(|error| invalid(&error))
    }
}

/// Decodes a picture to RGB or RGBA.
pub fn read_picture(
    decoder: Decoder<Input<'_, '_>>,
    keep: Keep,
    limits: &Limits,
    cancel: &Cancel<'_>,
) -> Result<Decoded, DecodeError> {
    let mut rows = Rows::begin(decoder, keep, limits)?;
    let stride = rows.width as usize * rows.layout.channels();
    let mut pixels = vec![0; rows.count * rows.layout.channels()];
    read_rows(
        &mut rows.reader,
        &mut rows.expansion,
        &mut pixels,
        stride,
        cancel,
    )?;
    rows.finish()?;
    Ok(Decoded {
        image: Image {
            width: rows.width,
            height: rows.height,
            layout: rows.layout,
            pixels,
        },
        is_gray: rows.is_gray,
        space: rows.space,
    })
}

/// The color space that a file names; `None` for sRGB, and if the file names none.
pub fn read_space(decoder: Decoder<Input<'_, '_>>) -> Result<Option<Space>, DecodeError> {
    let reader = decoder.read_info().map_err(|error| invalid(&error))?;
    Ok(space(reader.info()))
}

/// Whether samples stay in the space of a profile that is kept.
fn stays_in(space: &Space, keep: Keep) -> bool {
    keep.profile && matches!(space, Space::Icc(profile) if is_rgb(profile))
}

/// The color space that the file names, by the precedence of PNG (third edition), 4.3: `cICP`,
/// `iCCP`, `sRGB`, then `gAMA` and `cHRM`. `None` for sRGB, and if the file names none.
fn space(info: &Info<'_>) -> Option<Space> {
    if let Some(points) = info.coding_independent_code_points
        && points.is_video_full_range_image
    {
        return Some(Space::Cicp {
            primaries: points.color_primaries,
            transfer: points.transfer_function,
        });
    }
    if let Some(profile) = info.icc_profile.as_deref() {
        return Some(Space::Icc(profile.to_vec()));
    }
    if info.srgb.is_some() {
        return None;
    }
    let number = |scaled: ScaledFloat| f64::from(scaled.into_scaled()) / 100_000.0;
    let pair = |(x, y)| [number(x), number(y)];
    Calibrated::space(
        info.gama_chunk.map(|gamma| [1.0 / number(gamma); 3]),
        info.chrm_chunk
            .map(|points| [points.white, points.red, points.green, points.blue].map(pair)),
    )
}
