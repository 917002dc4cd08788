//! A still WebP, by way of planes or of RGB.

use super::error::ConversionError;
use super::framing::{crop, lay_on};
use super::goal::Goal;
use super::growth::MayHold;
use super::marking::draw_on_planes;
use super::outcome::{Conversion, Timing, timed};
use super::placeholder;
use super::plan::{Plan, color_type};
use super::search::{Candidates, Facts, Found, score, search};
use super::steps::{draw_watermarks, with_metadata};
use crate::image::{Footprint, Image, Luma, Metadata, Planes};
use std::cell::Cell;
use towebp_encoder::{self as webp, Cancel, LosslessEstimate, Mode};

/// Converts by way of RGB or RGBA: decodes (with orientation and color conversion), resizes, draws
/// watermarks, encodes.
pub(super) fn by_way_of_rgb(
    plan: &Plan<'_>,
    cancel: &Cancel<'_>,
    may_hold: &MayHold<'_>,
    mut timing: Timing,
) -> Result<Conversion, ConversionError> {
    let (mut image, metadata) = timed(&mut timing.decode, || decode(plan, cancel))?;
    if let Some(color) = plan.params.background {
        image = timed(&mut timing.decode, || lay_on(image, color, cancel))?;
    }
    let image = timed(&mut timing.watermark, || {
        draw_watermarks(plan, image, cancel)
    })?;
    let size = (image.width, image.height);
    let hash = || placeholder::of_image(&image);
    let placeholder = timed(&mut timing.encode, || plan.params.placeholder.then(hash));
    let conversion = if let Some(goal) = plan.params.goal {
        let search = || search_in_rgb(plan, goal, &image, &metadata, cancel);
        let found = timed(&mut timing.encode, search)?;
        Conversion::found(found, size, timing)
    } else {
        let encode = || encode(plan, &image, &metadata, cancel, may_hold);
        let encoded = timed(&mut timing.encode, encode)?;
        Conversion::new(encoded, size, timing)
    };
    Ok(Conversion {
        placeholder,
        ..conversion
    })
}

/// Converts a JPEG in its `Y'CbCr`, except for the parts under watermarks, and a PNG row by row, if
/// that is possible; otherwise by way of RGB.
pub(super) fn in_planes(
    plan: &Plan<'_>,
    cancel: &Cancel<'_>,
    may_hold: &MayHold<'_>,
) -> Result<Conversion, ConversionError> {
    let mut timing = Timing::default();
    // The memory that was planned for planes alone is too little for RGB, which a graphic takes.
    let is_planned_for_rgb = !plan.opened.planes().is_some_and(|planes| planes.is_certain);
    let by_way_of_rgb = |timing| {
        if plan.grows_for_lossless && !is_planned_for_rgb {
            ask_for_lossless(plan, may_hold)?;
        }
        by_way_of_rgb(plan, cancel, may_hold, timing)
    };
    let Some((mut planes, metadata)) = SizedPlanes::decode(plan, &mut timing, cancel)? else {
        return by_way_of_rgb(timing);
    };
    let (size, placeholder) = (planes.size, planes.placeholder.take());
    let with_placeholder = |conversion| Conversion {
        placeholder,
        ..conversion
    };
    if let Some(goal) = plan.params.goal {
        // The planes are compared to a second decoding.
        let decode = || match goal {
            Goal::Score(_) => plan
                .opened
                .decode(plan.keep, plan.workers(cancel))
                .map(Some),
            Goal::MaxBytes { .. } => Ok(None),
        };
        let original = timed(&mut timing.decode, decode)?.map(|(image, _)| image);
        let search = || search_in_planes(plan, goal, planes, original.as_ref(), &metadata, cancel);
        let found = timed(&mut timing.encode, search)?;
        return Ok(with_placeholder(Conversion::found(found, size, timing)));
    }
    let encode = || encode_planes(plan, planes, &metadata, cancel);
    match timed(&mut timing.encode, encode)? {
        Some(encoded) => Ok(with_placeholder(Conversion::new(encoded, size, timing))),
        None => by_way_of_rgb(timing),
    }
}

/// Decodes the picture to RGB or RGBA, in the size that the WebP has.
fn decode(plan: &Plan<'_>, cancel: &Cancel<'_>) -> Result<(Image, Metadata), ConversionError> {
    let (workers, opened) = (plan.workers(cancel), plan.opened);
    if let Some(resize) = plan.resize
        && plan.params.crop.is_none()
        && opened.upright_size().is_some()
    {
        return Ok(opened.decode_resized(plan.keep, resize, workers)?);
    }
    let (mut image, metadata) = opened.decode(plan.keep, workers)?;
    if let Some(part) = plan.params.crop {
        image = crop(image, part, cancel)?;
    }
    let resize = plan.params.sizing.resize((image.width, image.height));
    Ok(match resize {
        Some(resize) => (resize.apply(&image, workers)?, metadata),
        None => (image, metadata),
    })
}

/// The planes of a picture, oriented and with its watermarks, and its size.
struct SizedPlanes {
    size: (u32, u32),
    planes: webp::Planes,
    /// The estimate of the lossless size, if the planes were made of pixels.
    estimate: Option<LosslessEstimate>,
    placeholder: Option<String>,
}

impl SizedPlanes {
    fn decode(
        plan: &Plan<'_>,
        timing: &mut Timing,
        cancel: &Cancel<'_>,
    ) -> Result<Option<(SizedPlanes, Metadata)>, ConversionError> {
        let (opened, workers) = (plan.opened, plan.workers(cancel));
        // A score is that beside the picture as decoders show it.
        let luma = match plan.params.goal {
            Some(Goal::Score(_)) => Luma::AsStored,
            _ => Luma::AtCentroids,
        };
        let decode = || opened.decode_planes(plan.keep, luma, workers);
        if let Some((mut planes, metadata)) = timed(&mut timing.decode, decode)? {
            if plan.is_watermarked() {
                let draw = || draw_on_planes(plan, &mut planes, cancel);
                timed(&mut timing.watermark, draw)?;
            }
            let planes = SizedPlanes::of(plan, planes)?;
            return Ok(Some((planes, metadata)));
        }
        let takes_graphics = plan.mode == Mode::Lossy;
        let convert = || opened.convert_to_planes(plan.keep, takes_graphics, workers);
        let converted = timed(&mut timing.decode, convert)?;
        let Footprint { width, height, .. } = plan.footprint;
        let Some(converted) = converted else {
            return Ok(None);
        };
        let planes = if plan.params.placeholder {
            let (luma, chroma) = converted.planes.into_samples();
            let planes = Planes {
                width,
                height,
                luma,
                chroma,
            };
            SizedPlanes::of(plan, planes)?
        } else {
            SizedPlanes {
                size: (width, height),
                planes: converted.planes,
                estimate: None,
                placeholder: None,
            }
        };
        let planes = SizedPlanes {
            estimate: converted.estimate,
            ..planes
        };
        Ok(Some((planes, converted.metadata)))
    }

    fn of(plan: &Plan<'_>, planes: Planes) -> Result<SizedPlanes, ConversionError> {
        let size = (planes.width, planes.height);
        let hash = || placeholder::of_planes(&planes);
        Ok(SizedPlanes {
            size,
            placeholder: plan.params.placeholder.then(hash),
            planes: webp::Planes::from_samples(size, planes.luma, planes.chroma)?,
            estimate: None,
        })
    }
}

pub(super) fn encode(
    plan: &Plan<'_>,
    image: &Image,
    metadata: &Metadata,
    cancel: &Cancel<'_>,
    may_hold: &MayHold<'_>,
) -> Result<webp::Encoded, ConversionError> {
    let encoder = with_metadata(plan.encoder(cancel), metadata);
    let picture = picture(image)?;
    if plan.grows_for_lossless {
        if let Some(encoded) = encoder.encode_if_lossy(&picture)? {
            return Ok(encoded);
        }
        ask_for_lossless(plan, may_hold)?;
    }
    Ok(encoder.encode(&picture)?)
}

/// Requests the memory that lossless coding takes.
fn ask_for_lossless(plan: &Plan<'_>, may_hold: &MayHold<'_>) -> Result<(), ConversionError> {
    let needed = plan.most_memory();
    if may_hold(needed) {
        Ok(())
    } else {
        Err(ConversionError::Memory { needed })
    }
}

/// The encoder's view of a picture.
fn picture(image: &Image) -> Result<webp::Picture<'_>, ConversionError> {
    let color = color_type(image.layout);
    let picture = webp::Picture::new(image.width, image.height, color, &image.pixels);
    Ok(picture?)
}

fn search_in_rgb(
    plan: &Plan<'_>,
    goal: Goal,
    image: &Image,
    metadata: &Metadata,
    cancel: &Cancel<'_>,
) -> Result<Found, ConversionError> {
    let picture = picture(image)?;
    let prepared = with_metadata(plan.encoder(cancel), metadata).prepare(&picture)?;
    search_prepared(plan, goal, prepared, Some(image), metadata, cancel)
}

fn search_in_planes(
    plan: &Plan<'_>,
    goal: Goal,
    SizedPlanes { planes, .. }: SizedPlanes,
    original: Option<&Image>,
    metadata: &Metadata,
    cancel: &Cancel<'_>,
) -> Result<Found, ConversionError> {
    let prepared = with_metadata(plan.encoder(cancel), metadata).prepare_planes(planes);
    search_prepared(plan, goal, prepared, original, metadata, cancel)
}

fn search_prepared(
    plan: &Plan<'_>,
    goal: Goal,
    mut prepared: webp::Prepared<'_>,
    original: Option<&Image>,
    metadata: &Metadata,
    cancel: &Cancel<'_>,
) -> Result<Found, ConversionError> {
    let is_lossless = plan.mode == Mode::Lossless;
    let activity = if is_lossless {
        None
    } else {
        Some(prepared.activity()?)
    };
    let facts = Facts {
        pixels: plan.output.pixel_count(),
        activity,
        is_lossless,
    };
    let mut encodings = Encodings {
        plan,
        prepared,
        original,
        metadata,
        cancel,
    };
    search(goal, facts, &mut encodings)
}

/// The encodings of a still picture.
struct Encodings<'a> {
    plan: &'a Plan<'a>,
    prepared: webp::Prepared<'a>,
    /// The pixels to which files are compared, if they are.
    original: Option<&'a Image>,
    metadata: &'a Metadata,
    cancel: &'a Cancel<'a>,
}

impl Candidates for Encodings<'_> {
    fn encode_at(&mut self, quality: u8) -> Result<webp::Encoded, ConversionError> {
        Ok(self.prepared.encode_at(quality)?)
    }

    fn lossless(&mut self) -> Option<Result<webp::Encoded, ConversionError>> {
        let encoder = self.plan.lossless_encoder(self.cancel)?;
        match self.prepared.encode_lossless() {
            Ok(None) => {} // there are only planes
            Ok(Some(encoded)) => return Some(Ok(encoded)),
            Err(error) => return Some(Err(error.into())),
        }
        let encoder = with_metadata(encoder, self.metadata);
        let picture = picture(self.original?);
        Some(picture.and_then(|picture| Ok(encoder.encode(&picture)?)))
    }

    fn score(&mut self, encoded: &webp::Encoded) -> Result<f64, ConversionError> {
        let original = self.original.expect("a search for a score has the pixels");
        score(original, &encoded.file, self.cancel)
    }
}

/// Encodes planes; `None` if the picture is to be encoded lossless as well, which takes its RGB.
fn encode_planes(
    plan: &Plan<'_>,
    planes: SizedPlanes,
    metadata: &Metadata,
    cancel: &Cancel<'_>,
) -> Result<Option<webp::Encoded>, ConversionError> {
    let SizedPlanes {
        size,
        planes,
        estimate,
        ..
    } = planes;
    let first = Cell::new(Some(planes));
    let source = || match first.take() {
        Some(planes) => Ok(planes),
        // The file is decoded again, which only fails if it is cancelled.
        None => match SizedPlanes::decode(plan, &mut Timing::default(), cancel) {
            Ok(Some((again, _))) => Ok(again.planes),
            _ => Err(webp::EncodeError::Cancelled),
        },
    };
    let encoder = with_metadata(plan.encoder(cancel), metadata);
    Ok(match estimate {
        Some(estimate) => encoder.encode_planes_if_lossy(size, source, &estimate)?,
        None => Some(encoder.encode_planes(size, source)?),
    })
}
