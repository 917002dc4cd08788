//! What a conversion will take, told by headers and parameters before anything is decoded.

use super::{
    ConversionError, Job, Outline, can_stay_in_yuv, is_animated, is_watermarked, options,
    watermark_kind, webp_layout,
};
use crate::image::{self, Footprint};
use towebp_encoder as webp;

/// Of a text to be drawn, for each of its bytes: its glyphs, and the lines that they make.
const BYTES_OF_TEXT: u64 = 100;

/// Of frames that are drawn and wait for others, beside which they are coded.
const WAITING: u64 = 1 << 21;

/// What a thread has of its own that codes a frame beside others.
const FRAME: u64 = 1 << 20;

/// Where one letter after the other is filled, a band at a time.
const LETTER: u64 = 1 << 21;

/// What is kept, that copy in the making, and the one in the file.
const COPIES_OF_METADATA: u64 = 3;

/// Most bytes that [`super::run`] takes at a time for this job, what it gives included, the files that it is given not.
/// Never less than the truth; for common photographs at most about one and a half times as much. `job.caller` is not asked.
///
/// # Errors
/// What [`super::run`] would say of the headers.
pub fn memory(job: &Job<'_>) -> Result<u64, ConversionError> {
    let probed = if is_animated(job) {
        image::probe_animation(job.bytes, job.limits)
    } else {
        image::probe(job.bytes, job.format, job.limits)
    };
    let picture = probed.map_err(ConversionError::Picture)?;
    let metadata = if job.params.keeps_metadata {
        COPIES_OF_METADATA * image::metadata_bytes(job.bytes, job.format)
    } else {
        0
    };
    let work = match picture.planes {
        Some(planes) if can_stay_in_yuv(job) => {
            // The encoder's figure has planes in it.
            picture.planes_peak(planes).max(encoder(job, &picture))
        }
        _ if is_animated(job) => through_rgb(job, &picture)? + film(job, &picture),
        _ => through_rgb(job, &picture)?,
    };
    Ok(work + metadata)
}

fn through_rgb(job: &Job<'_>, picture: &Footprint) -> Result<u64, ConversionError> {
    let mark = match job.watermark_picture {
        Some(bytes) => {
            let mark = watermark(job, bytes)?;
            mark.peak().max(mark.pixels() + copies(job, picture, &mark))
        }
        None => 0,
    };
    let text = job.params.text.as_ref().map_or(0, |watermark| {
        // A mask of a byte a pixel at most; with an outline two, and a picture with alpha of both.
        let bytes_a_pixel = match watermark.outline {
            Outline::None => 1,
            Outline::Line | Outline::Shadow => 6,
        };
        bytes_a_pixel * picture.count() + watermark.text.len() as u64 * BYTES_OF_TEXT + LETTER
    });
    let beside = mark.max(text).max(encoder(job, picture));
    Ok(picture.peak().max(picture.pixels() + beside))
}

/// Of an animation, beside what takes each frame as it is a picture. The file is rarely as large as the GIF.
fn film(job: &Job<'_>, picture: &Footprint) -> u64 {
    let screen = picture.pixels();
    // The watermark, and what is shown with it.
    let marked = if is_watermarked(job) { 2 * screen } else { 0 };
    // What a frame covers is given up, but for two bits a pixel, before anything is encoded, which takes more.
    let restored = screen;
    let drawn = screen / 16 + WAITING.min(screen);
    marked + restored + drawn + job.threads as u64 * FRAME + 2 * job.bytes.len() as u64
}

fn encoder(job: &Job<'_>, picture: &Footprint) -> u64 {
    let layout = webp_layout(picture.layout);
    let size = (picture.width, picture.height);
    webp::memory(size, layout, &options(job, picture.count()))
}

/// Of a watermark's picture, scaled and turned: neither has more pixels than the picture that it is drawn onto.
fn copies(job: &Job<'_>, picture: &Footprint, mark: &Footprint) -> u64 {
    let most = 4 * picture.count();
    let placement = &job.params.placement;
    let scaled = match placement.scale {
        Some(_) => most,
        None => most.min(mark.pixels()),
    };
    let turned = if placement.rotate % 360 == 0 { 0 } else { most };
    scaled + turned
}

fn watermark(job: &Job<'_>, bytes: &[u8]) -> Result<Footprint, ConversionError> {
    watermark_kind(bytes, job.limits)
        .and_then(|(format, limits)| image::probe(bytes, format, &limits))
        .map_err(ConversionError::WatermarkPicture)
}
