//! An animated WebP of an animated GIF or PNG: frames go through one by one, and only a few are in
//! memory at a time.

use super::error::ConversionError;
use super::outcome::{Conversion, Timing, timed};
use super::plan::Plan;
use super::steps::{draw_watermarks, with_metadata};
use crate::image::{
    Animation, AnimationFrame, DecodeError, Frames, Image, Layout, Rectangle, Scaling,
};
use crate::watermark::Overlay;
use towebp_encoder::{self as webp, Cancel, Cancelled, Encoder, IncrementalAnimation};

/// Converts frame by frame: draws it, resizes what changed, lays the watermark over it, which is
/// drawn once, and encodes the damage.
pub(super) fn convert(
    plan: &Plan<'_>,
    source: Animation<'_>,
    cancel: &Cancel<'_>,
) -> Result<Conversion, ConversionError> {
    let mut timing = Timing::default();
    let metadata = source.metadata(plan.keep, cancel)?;
    let limits = plan.opened.limits();
    let mut frames = source.frames(plan.keep, cancel)?;
    let mut writer: Option<Writer<'_>> = None;
    let (mut count, mut pixels) = (0, 0);
    while let Some(frame) = timed(&mut timing.decode, || frames.draw())? {
        count += 1;
        pixels += frame.pixel_count.max(plan.output.pixel_count());
        limits.check_animation(count, pixels)?;
        let writer = match &mut writer {
            Some(writer) => writer,
            none => none.insert(Writer::new(
                plan,
                &frames,
                with_metadata(plan.encoder(cancel), &metadata),
                cancel,
                &mut timing,
            )?),
        };
        writer.add(frames.canvas(), frame, cancel, &mut timing)?;
    }
    let no_frame = || DecodeError::Invalid("the animation has no frame".to_owned());
    let writer = writer.ok_or_else(no_frame)?;
    let encoded = timed(&mut timing.encode, || writer.animation.finish())?;
    let (width, height) = size(plan, frames.canvas());
    Ok(Conversion::new(encoded, (width, height), timing))
}

/// Width and height of the WebP.
fn size(plan: &Plan<'_>, canvas: &Image) -> (u32, u32) {
    match plan.resize {
        Some(resize) => (resize.across.size, resize.down.size),
        None => (canvas.width, canvas.height),
    }
}

/// Writes frames with their size and their watermark.
struct Writer<'a> {
    animation: IncrementalAnimation<'a>,
    /// How the canvas is resized, and the one that was shown last, resized.
    resized: Option<(Scaling, Image)>,
    /// The watermark, and the canvas that was shown last, with it.
    watermark: Option<(Overlay, Image)>,
}

impl<'a> Writer<'a> {
    /// A writer for the canvas and the repetitions that are known since the first frame.
    fn new(
        plan: &'a Plan<'a>,
        frames: &Frames<'_>,
        encoder: Encoder<'a>,
        cancel: &'a Cancel<'a>,
        timing: &mut Timing,
    ) -> Result<Writer<'a>, ConversionError> {
        let canvas = frames.canvas();
        let (width, height) = size(plan, canvas);
        let resized = plan.resize.map(|resize| {
            let scaling = Scaling::new((canvas.width, canvas.height), &resize);
            (scaling, transparent(width, height))
        });
        let overlay = || Overlay::new(width, height, |image| draw_watermarks(plan, image, cancel));
        let overlay = plan
            .is_watermarked()
            .then(|| timed(&mut timing.watermark, overlay));
        let watermark = overlay.transpose()?;
        let mut animation = IncrementalAnimation::new(encoder, (width, height), frames.loops())?;
        // The file is rarely larger than the input. Memory that is not written to takes none.
        animation.reserve(plan.opened.bytes().len());
        Ok(Writer {
            animation,
            resized,
            watermark: watermark.map(|overlay| (overlay, transparent(width, height))),
        })
    }

    /// Adds a frame after which the canvas looks like this.
    fn add(
        &mut self,
        canvas: &Image,
        mut frame: AnimationFrame,
        cancel: &Cancel<'_>,
        timing: &mut Timing,
    ) -> Result<(), ConversionError> {
        let mut shown = canvas;
        if let Some((scaling, image)) = &mut self.resized {
            timed(&mut timing.decode, || {
                resize_damage(scaling, image, canvas, &mut frame, cancel)
            })?;
            shown = image;
        }
        if let Some((overlay, marked)) = &mut self.watermark {
            timed(&mut timing.watermark, || {
                copy_damage(marked, shown, &mut frame, cancel)?;
                overlay.lay_over(marked, frame.damage, cancel)
            })?;
            shown = marked;
        }
        let AnimationFrame {
            milliseconds,
            damage,
            previous,
            ..
        } = frame;
        let damage = webp::Damage {
            rect: webp::Rect {
                left: damage.left,
                top: damage.top,
                width: damage.width,
                height: damage.height,
            },
            before: previous,
        };
        let animation = &mut self.animation;
        timed(&mut timing.encode, || {
            animation.add(&shown.pixels, damage, milliseconds)
        })?;
        Ok(())
    }
}

/// A transparent canvas.
fn transparent(width: u32, height: u32) -> Image {
    Image {
        width,
        height,
        layout: Layout::Rgba,
        pixels: vec![0; width as usize * height as usize * 4],
    }
}

/// Resizes what the damage of `canvas` reaches into `resized`. The frame's damage and previous
/// pixels become those of `resized`.
fn resize_damage(
    scaling: &Scaling,
    resized: &mut Image,
    canvas: &Image,
    frame: &mut AnimationFrame,
    cancel: &Cancel<'_>,
) -> Result<(), Cancelled> {
    frame.damage = scaling.reached_by(frame.damage);
    let Rectangle {
        left,
        top,
        width,
        height,
    } = frame.damage;
    // It is empty where a part is shown that did not change.
    frame.previous = Vec::with_capacity(width * height);
    if width == 0 || height == 0 {
        return Ok(());
    }
    let changed = scaling.resize(canvas, frame.damage, cancel)?;
    let stride = resized.width as usize;
    let rows = resized
        .pixels
        .as_chunks_mut::<4>()
        .0
        .chunks_exact_mut(stride);
    let changed = changed.pixels.as_chunks::<4>().0.chunks_exact(width);
    for (row, changed) in rows.skip(top).zip(changed) {
        cancel.check()?;
        let row = &mut row[left..left + width];
        frame.previous.extend_from_slice(row);
        row.copy_from_slice(changed);
    }
    Ok(())
}

/// Copies the damage rectangle from `canvas` to `marked`. The frame's previous pixels become those
/// of `marked`.
fn copy_damage(
    marked: &mut Image,
    canvas: &Image,
    frame: &mut AnimationFrame,
    cancel: &Cancel<'_>,
) -> Result<(), Cancelled> {
    let Rectangle {
        left, top, width, ..
    } = frame.damage;
    let stride = canvas.width as usize;
    let marked = marked.pixels.as_chunks_mut().0;
    let canvas = canvas.pixels.as_chunks().0;
    for (y, previous) in (top..).zip(frame.previous.chunks_mut(width.max(1))) {
        cancel.check()?;
        let row = y * stride + left..y * stride + left + width;
        previous.copy_from_slice(&marked[row.clone()]);
        marked[row.clone()].copy_from_slice(&canvas[row]);
    }
    Ok(())
}
