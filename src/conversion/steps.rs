//! The steps that still pictures and animations have in common.

use super::error::ConversionError;
use super::plan::Plan;
use crate::image::{DecodeError, Image, Keep, Metadata};
use crate::watermark;
use towebp_encoder::{self as webp, Cancel};

/// Draws the watermarks: the picture first, the text over it.
pub(super) fn draw_watermarks(
    plan: &Plan<'_>,
    image: Image,
    cancel: &Cancel<'_>,
) -> Result<Image, ConversionError> {
    let image = draw_picture(plan, image, cancel)?;
    draw_text(plan, image, cancel)
}

pub(super) fn draw_picture(
    plan: &Plan<'_>,
    mut image: Image,
    cancel: &Cancel<'_>,
) -> Result<Image, ConversionError> {
    let Some(opened) = &plan.watermark_picture else {
        return Ok(image);
    };
    let decoded = opened.decode(Keep::Nothing, cancel);
    let (picture, _) = decoded.map_err(|error| match error {
        DecodeError::Cancelled => ConversionError::Cancelled,
        error => ConversionError::WatermarkPicture(error),
    })?;
    watermark::draw_picture(&mut image, &picture, &plan.params.placement, cancel)?;
    Ok(image)
}

pub(super) fn draw_text(
    plan: &Plan<'_>,
    mut image: Image,
    cancel: &Cancel<'_>,
) -> Result<Image, ConversionError> {
    if let Some(text) = &plan.params.text {
        let fonts = plan.resources.fonts;
        watermark::draw_text(&mut image, text, fonts, &plan.params.placement, cancel)?;
    }
    Ok(image)
}

/// The encoder's view of the metadata.
pub(super) fn webp_metadata(metadata: &Metadata) -> webp::Metadata<'_> {
    webp::Metadata {
        icc: metadata.icc.as_deref(),
        exif: metadata.exif.as_deref(),
        xmp: metadata.xmp.as_deref(),
    }
}
