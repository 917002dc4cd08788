//! An animated WebP of an animated GIF: frames go through one by one, and no more than a few are in memory.

use super::{
    Conversion, ConversionError, Job, Timing, beside, draw_picture, draw_text, is_watermarked,
    options, refused, timed, undecoded,
};
use crate::image::{DecodeError, Drawn, Frames, Image, Layout, Metadata, Place};
use crate::watermark::Overlay;
use towebp_encoder::{self as webp, Animation, Covered};
use towebp_encoder::{Cancel, Cancelled};

/// Decodes a frame, lays the watermark over it, which is drawn once, and encodes what has changed, until the last one.
///
/// # Errors
/// See [`ConversionError`].
pub fn run(job: &Job<'_>, cancel: &Cancel<'_>) -> Result<Conversion, ConversionError> {
    let mut timing = Timing::default();
    let metadata = if job.params.keeps_metadata {
        Metadata::of_animation(job.bytes)
    } else {
        Metadata::default()
    };
    let mut frames = Frames::open(job.bytes, job.limits, cancel).map_err(undecoded)?;
    let mut film: Option<Film<'_>> = None;
    let (mut count, mut pixels) = (0, 0);
    while let Some(drawn) = timed(&mut timing.decode, || frames.draw()).map_err(undecoded)? {
        let screen = frames.screen();
        count += 1;
        pixels += drawn.pixels;
        job.limits.check_film(count, pixels).map_err(undecoded)?;
        let film = match &mut film {
            Some(film) => film,
            none => none.insert(Film::begin(
                job,
                &frames,
                beside(&metadata),
                cancel,
                &mut timing,
            )?),
        };
        film.add(screen, drawn, cancel, &mut timing)?;
    }
    let no_frame = || DecodeError::Invalid("the GIF has no frame".to_owned());
    let film = film.ok_or_else(no_frame).map_err(undecoded)?;
    let encoded = timed(&mut timing.encode, || film.animation.finish()).map_err(refused)?;
    let Image { width, height, .. } = *frames.screen();
    Ok(Conversion::of(encoded, (width, height), timing))
}

/// What is made of the frames.
struct Film<'a> {
    animation: Animation<'a>,
    /// The watermark, and what was shown last, with it.
    watermark: Option<(Overlay, Image)>,
}

impl<'a> Film<'a> {
    /// With the size and the repetitions that the first frame has shown.
    fn begin(
        job: &Job<'a>,
        frames: &Frames<'_>,
        metadata: webp::Metadata<'a>,
        cancel: &Cancel<'_>,
        timing: &mut Timing,
    ) -> Result<Film<'a>, ConversionError> {
        let Image { width, height, .. } = *frames.screen();
        let pixels = u64::from(width) * u64::from(height);
        let overlay = || {
            Overlay::new(width, height, |image| {
                draw_picture(image, job, cancel)?;
                draw_text(image, job, cancel)
            })
        };
        let overlay = is_watermarked(job).then(|| timed(&mut timing.watermark, overlay));
        let watermark = overlay.transpose()?;
        let options = options(job, pixels);
        let animation = Animation::new(width, height, frames.loops(), options, metadata);
        let mut animation = animation.map_err(refused)?;
        // It is rarely larger than the GIF. Memory that is not written to takes none.
        animation.reserve(job.bytes.len());
        Ok(Film {
            animation,
            watermark: watermark.map(|overlay| (overlay, clear(width, height))),
        })
    }

    /// Shows a frame with its watermark.
    fn add(
        &mut self,
        screen: &Image,
        mut drawn: Drawn,
        cancel: &Cancel<'_>,
        timing: &mut Timing,
    ) -> Result<(), ConversionError> {
        let mut shown = screen;
        if let Some((overlay, marked)) = &mut self.watermark {
            timed(&mut timing.watermark, || {
                exchange(marked, screen, &mut drawn, cancel)?;
                overlay.lay_over(marked, drawn.place, cancel)
            })?;
            shown = marked;
        }
        let Drawn {
            milliseconds,
            place,
            covered,
            ..
        } = drawn;
        let covered = Covered {
            rect: webp::Rect {
                left: place.left,
                top: place.top,
                width: place.width,
                height: place.height,
            },
            pixels: covered,
        };
        let animation = &mut self.animation;
        let added = timed(&mut timing.encode, || {
            animation.add(&shown.pixels, covered, milliseconds)
        });
        added.map_err(refused)
    }
}

/// Nothing, of this size.
fn clear(width: u32, height: u32) -> Image {
    Image {
        width,
        height,
        layout: Layout::Rgba,
        pixels: vec![0; width as usize * height as usize * 4],
    }
}

/// Brings what was drawn of `screen` to `marked`. What that covers is then what was there.
fn exchange(
    marked: &mut Image,
    screen: &Image,
    drawn: &mut Drawn,
    cancel: &Cancel<'_>,
) -> Result<(), Cancelled> {
    let Place {
        left, top, width, ..
    } = drawn.place;
    let across = screen.width as usize;
    let marked = marked.pixels.as_chunks_mut().0;
    let screen = screen.pixels.as_chunks().0;
    for (y, covered) in (top..).zip(drawn.covered.chunks_mut(width.max(1))) {
        cancel.check()?;
        let row = y * across + left..y * across + left + width;
        covered.copy_from_slice(&marked[row.clone()]);
        marked[row.clone()].copy_from_slice(&screen[row]);
    }
    Ok(())
}
