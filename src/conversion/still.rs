//! A still WebP, by way of planes or of RGB.

use super::error::ConversionError;
use super::outcome::{Conversion, Timing, timed};
use super::plan::{Plan, color_type};
use super::steps::{draw_watermarks, with_metadata};
use crate::image::{Footprint, Image, Metadata};
use std::cell::Cell;
use towebp_encoder::{self as webp, Cancel};

/// Converts by way of RGB or RGBA: decodes (with orientation and color conversion), resizes, draws
/// watermarks, encodes.
pub(super) fn by_way_of_rgb(
    plan: &Plan<'_>,
    cancel: &Cancel<'_>,
    mut timing: Timing,
) -> Result<Conversion, ConversionError> {
    let (image, metadata) = timed(&mut timing.decode, || decode(plan, cancel))?;
    let image = timed(&mut timing.watermark, || {
        draw_watermarks(plan, image, cancel)
    })?;
    let size = (image.width, image.height);
    let encode = || encode(plan, &image, &metadata, cancel);
    let encoded = timed(&mut timing.encode, encode)?;
    Ok(Conversion::new(encoded, size, timing))
}

/// Converts a JPEG in its `Y'CbCr`, and a PNG row by row, if that is possible; otherwise by way of
/// RGB.
pub(super) fn in_planes(
    plan: &Plan<'_>,
    cancel: &Cancel<'_>,
) -> Result<Conversion, ConversionError> {
    let mut timing = Timing::default();
    let decode = || SizedPlanes::decode(plan, cancel);
    let Some((planes, metadata)) = timed(&mut timing.decode, decode)? else {
        return by_way_of_rgb(plan, cancel, timing);
    };
    let size = planes.size;
    let encode = || encode_planes(plan, planes, &metadata, cancel);
    let encoded = timed(&mut timing.encode, encode)?;
    Ok(Conversion::new(encoded, size, timing))
}

/// Decodes the picture to RGB or RGBA, in the size that the WebP has.
fn decode(plan: &Plan<'_>, cancel: &Cancel<'_>) -> Result<(Image, Metadata), ConversionError> {
    let (workers, opened) = (plan.workers(cancel), plan.opened);
    if let Some(resize) = plan.resize
        && opened.upright_size().is_some()
    {
        return Ok(opened.decode_resized(plan.keep, resize, workers)?);
    }
    let (image, metadata) = opened.decode(plan.keep, workers)?;
    let resize = plan.params.sizing.resize((image.width, image.height));
    Ok(match resize {
        Some(resize) => (resize.apply(&image, workers)?, metadata),
        None => (image, metadata),
    })
}

/// The planes of a picture, oriented, with its size.
struct SizedPlanes {
    size: (u32, u32),
    planes: webp::Planes,
}

impl SizedPlanes {
    fn decode(
        plan: &Plan<'_>,
        cancel: &Cancel<'_>,
    ) -> Result<Option<(SizedPlanes, Metadata)>, ConversionError> {
        let (opened, workers) = (plan.opened, plan.workers(cancel));
        if let Some((planes, metadata)) = opened.decode_planes(plan.keep, workers)? {
            let size = (planes.width, planes.height);
            let planes = webp::Planes::from_samples(size, planes.luma, planes.chroma)?;
            return Ok(Some((SizedPlanes { size, planes }, metadata)));
        }
        let converted = opened.convert_to_planes(plan.keep, workers)?;
        let Footprint { width, height, .. } = plan.footprint;
        let size = (width, height);
        Ok(converted.map(|(planes, metadata)| (SizedPlanes { size, planes }, metadata)))
    }
}

pub(super) fn encode(
    plan: &Plan<'_>,
    image: &Image,
    metadata: &Metadata,
    cancel: &Cancel<'_>,
) -> Result<webp::Encoded, ConversionError> {
    let color = color_type(image.layout);
    let picture = webp::Picture::new(image.width, image.height, color, &image.pixels)?;
    let encoder = with_metadata(plan.encoder(cancel), metadata);
    Ok(encoder.encode(&picture)?)
}

fn encode_planes(
    plan: &Plan<'_>,
    SizedPlanes { size, planes }: SizedPlanes,
    metadata: &Metadata,
    cancel: &Cancel<'_>,
) -> Result<webp::Encoded, ConversionError> {
    let first = Cell::new(Some(planes));
    let source = || match first.take() {
        Some(planes) => Ok(planes),
        // The file is decoded again, which only fails if it is cancelled.
        None => match SizedPlanes::decode(plan, cancel) {
            Ok(Some((again, _))) => Ok(again.planes),
            _ => Err(webp::EncodeError::Cancelled),
        },
    };
    let encoder = with_metadata(plan.encoder(cancel), metadata);
    Ok(encoder.encode_planes(size, source)?)
}
