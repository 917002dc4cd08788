//! The steps that still pictures and animations have in common.

use super::error::ConversionError;
use super::plan::Plan;
use crate::image::{DecodeError, Image, Keep, Metadata};
use crate::watermark;
use towebp_encoder::{Cancel, Encoder};

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
    if let Some(picture) = decode_mark(plan, cancel)? {
        watermark::draw_picture(&mut image, &picture, &plan.params.placement, cancel)?;
    }
    Ok(image)
}

/// Decodes the picture that is drawn as a watermark, if there is one.
pub(super) fn decode_mark(
    plan: &Plan<'_>,
    cancel: &Cancel<'_>,
) -> Result<Option<Image>, ConversionError> {
    let Some(opened) = &plan.watermark_picture else {
        return Ok(None);
    };
    let decoded = opened.decode(Keep::NOTHING, plan.workers(cancel));
    let (picture, _) = decoded.map_err(|error| match error {
        DecodeError::Cancelled => ConversionError::Cancelled,
        error => ConversionError::WatermarkPicture(error),
    })?;
    Ok(Some(picture))
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

/// The encoder with the metadata that is kept.
pub(super) fn with_metadata<'a>(mut encoder: Encoder<'a>, metadata: &'a Metadata) -> Encoder<'a> {
    if let Some(icc) = &metadata.icc {
        encoder = encoder.icc_profile(icc);
    }
    if let Some(exif) = &metadata.exif {
        encoder = encoder.exif(exif);
    }
    if let Some(xmp) = &metadata.xmp {
        encoder = encoder.xmp(xmp);
    }
    encoder
}
