//! An animated WebP of an animated GIF or PNG: frames go through one by one, and only a few are in
//! memory at a time.

use super::error::ConversionError;
use super::framing::Framed;
use super::growth::{FileMemory, MayHold};
use super::outcome::{Conversion, Timing, timed};
use super::placeholder;
use super::plan::Plan;
use super::search::{Candidates, Facts, Player, compare, search};
use super::steps::{draw_watermarks, with_metadata};
use crate::image::{
    Animation, AnimationFrame, DecodeError, Image, Layout, Metadata, Rectangle, Resize, Scaling,
};
use crate::watermark::{Color, Overlay};
use towebp_encoder::{
    self as webp, Cancel, Cancelled, Encoded, Encoder, IncrementalAnimation, Mode,
};

/// Converts the animation, at the quality that was requested or at one that meets the goal.
pub(super) fn convert(
    plan: &Plan<'_>,
    source: Animation<'_>,
    cancel: &Cancel<'_>,
    may_hold: &MayHold<'_>,
) -> Result<Conversion, ConversionError> {
    let files = FileMemory::new(may_hold, plan.memory(), plan.files(), plan.file_bytes());
    let metadata = source.metadata(plan.keep, cancel)?;
    let mut passes = Passes {
        plan,
        source,
        metadata: &metadata,
        files: &files,
        cancel,
        timing: Timing::default(),
        size: (0, 0),
        frame_count: 0,
        placeholder: None,
    };
    let conversion = if let Some(goal) = plan.params.goal {
        let facts = Facts {
            pixels: plan.output.pixel_count(),
            activity: None,
            is_lossless: plan.mode == Mode::Lossless,
        };
        let found = search(goal, facts, &mut passes)?;
        Conversion::found(found, passes.size, passes.timing)
    } else {
        let encoded = passes.encode(plan.encoder(cancel))?;
        Conversion::new(encoded, passes.size, passes.timing)
    };
    Ok(Conversion {
        placeholder: passes.placeholder,
        ..conversion
    })
}

/// Goes through the frames once for each encoding, and once more for its score.
struct Passes<'a> {
    plan: &'a Plan<'a>,
    source: Animation<'a>,
    metadata: &'a Metadata,
    files: &'a FileMemory<'a>,
    cancel: &'a Cancel<'a>,
    timing: Timing,
    /// The canvas's width and height and the number of frames, known after a pass.
    size: (u32, u32),
    frame_count: u64,
    /// The placeholder of the first frame, if there is to be one.
    placeholder: Option<String>,
}

/// The most frames that are scored; of more, as many that are evenly spread.
const MAX_SCORED: u64 = 32;

impl Candidates for Passes<'_> {
    fn encode_at(&mut self, quality: u8) -> Result<Encoded, ConversionError> {
        self.encode(self.plan.encoder_at(quality, self.cancel))
    }

    fn lossless(&mut self) -> Option<Result<Encoded, ConversionError>> {
        let encoder = self.plan.lossless_encoder(self.cancel)?;
        Some(self.encode(encoder))
    }

    /// The mean of the scores of frames.
    fn score(&mut self, encoded: &Encoded) -> Result<f64, ConversionError> {
        let mut player = Player::new(&encoded.file)?;
        let apart = self.frame_count.div_ceil(MAX_SCORED).max(1);
        let (mut sum, mut count, mut frame_count) = (0.0, 0, 0);
        let mut timing = Timing::default();
        let cancel = self.cancel;
        self.each_frame(&mut timing, |shown, frame, _, _| {
            let decoded = player.show(frame.milliseconds)?;
            if frame_count % apart == 0 {
                sum += compare(shown, decoded, cancel)?;
                count += 1;
            }
            frame_count += 1;
            Ok(())
        })?;
        Ok(sum / f64::from(count.max(1)))
    }
}

impl<'a> Passes<'a> {
    /// Encodes frame by frame.
    fn encode(&mut self, encoder: Encoder<'a>) -> Result<Encoded, ConversionError> {
        let encoder = with_metadata(encoder, self.metadata);
        // The file is rarely larger than the input. Memory that is not written to takes none.
        let expected = self.plan.file_bytes() as usize;
        let files = self.files;
        let may_grow = |bytes| files.may_take(bytes);
        let mut animation: Option<IncrementalAnimation<'_>> = None;
        let (mut size, mut frame_count) = (self.size, 0);
        let mut timing = self.timing;
        let mut placeholder = self.placeholder.take();
        let has_placeholder = self.plan.params.placeholder;
        self.each_frame(&mut timing, |shown, frame, loops, timing| {
            size = (shown.width, shown.height);
            frame_count += 1;
            timed(&mut timing.encode, || {
                if has_placeholder && placeholder.is_none() {
                    placeholder = Some(placeholder::of_image(shown));
                }
                let animation = match &mut animation {
                    Some(animation) => animation,
                    none => {
                        let mut begun = IncrementalAnimation::new(encoder, size, loops)?;
                        begun.limit_growth(&may_grow);
                        begun.reserve(expected);
                        none.insert(begun)
                    }
                };
                Ok(add(animation, shown, frame)?)
            })
        })?;
        let no_frame = || DecodeError::Invalid("the animation has no frame".to_owned());
        let animation = animation.ok_or_else(no_frame)?;
        let encoded = timed(&mut timing.encode, || animation.finish())?;
        (self.size, self.frame_count, self.timing) = (size, frame_count, timing);
        self.placeholder = placeholder;
        Ok(encoded)
    }

    /// Draws frame after frame, resizes the changed part, and lays the watermark over it, which is
    /// drawn once. `take` gets the canvas that is then shown, the frame, and the number of times
    /// that all are played.
    fn each_frame(
        &self,
        timing: &mut Timing,
        mut take: impl FnMut(&Image, AnimationFrame, u16, &mut Timing) -> Result<(), ConversionError>,
    ) -> Result<(), ConversionError> {
        let Passes { plan, cancel, .. } = *self;
        let limits = plan.opened.limits();
        let mut frames = self.source.frames(plan.keep, cancel)?;
        let mut resized: Option<Resized> = None;
        let (crop, background) = (plan.params.crop, plan.params.background);
        let mut cropped: Option<Framed> = None;
        let mut laid: Option<Framed> = None;
        let mut marked: Option<Marked> = None;
        let (mut count, mut pixels) = (0, 0);
        while let Some(mut frame) = timed(&mut timing.decode, || frames.draw())? {
            count += 1;
            pixels += frame.pixel_count.max(plan.output.pixel_count());
            limits.check_animation(count, pixels)?;
            let (mut canvas, loops) = (frames.canvas(), frames.loops());
            if crop.is_some() {
                let framed = framed(&mut cropped, canvas, crop, None)?;
                canvas = timed(&mut timing.decode, || {
                    framed.update(canvas, &mut frame, cancel)
                })?;
            }
            if let Some(resize) = &plan.resize {
                canvas = timed(&mut timing.decode, || {
                    let resized = resized.get_or_insert_with(|| Resized::new(resize, canvas));
                    resized.update(canvas, &mut frame, cancel)
                })?;
            }
            if background.is_some() {
                let framed = framed(&mut laid, canvas, None, background)?;
                canvas = timed(&mut timing.decode, || {
                    framed.update(canvas, &mut frame, cancel)
                })?;
            }
            if !plan.is_watermarked() {
                take(canvas, frame, loops, timing)?;
                continue;
            }
            let shown = timed(&mut timing.watermark, || {
                let marked = match &mut marked {
                    Some(marked) => marked,
                    none => none.insert(Marked::new(plan, canvas, cancel)?),
                };
                marked.update(canvas, &mut frame, cancel)
            })?;
            take(shown, frame, loops, timing)?;
        }
        Ok(())
    }
}

/// The part of the canvas that is shown, made with the first frame.
fn framed<'a>(
    made: &'a mut Option<Framed>,
    canvas: &Image,
    part: Option<Rectangle>,
    background: Option<Color>,
) -> Result<&'a mut Framed, ConversionError> {
    Ok(match made {
        Some(framed) => framed,
        none => none.insert(Framed::new(canvas, part, background)?),
    })
}

/// Adds a frame after which the canvas looks like this.
fn add(
    animation: &mut IncrementalAnimation<'_>,
    shown: &Image,
    frame: AnimationFrame,
) -> Result<(), webp::EncodeError> {
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
    animation.add(&shown.pixels, damage, milliseconds)
}

/// The canvas that was drawn last, resized.
struct Resized {
    scaling: Scaling,
    shown: Image,
}

impl Resized {
    fn new(resize: &Resize, canvas: &Image) -> Resized {
        Resized {
            scaling: Scaling::new((canvas.width, canvas.height), resize),
            shown: transparent(resize.across.size, resize.down.size),
        }
    }

    /// Takes in what a frame changed.
    fn update(
        &mut self,
        canvas: &Image,
        frame: &mut AnimationFrame,
        cancel: &Cancel<'_>,
    ) -> Result<&Image, Cancelled> {
        resize_damage(&self.scaling, &mut self.shown, canvas, frame, cancel)?;
        Ok(&self.shown)
    }
}

/// The canvas that was shown last with the watermark over it.
struct Marked {
    overlay: Overlay,
    shown: Image,
}

impl Marked {
    fn new(
        plan: &Plan<'_>,
        &Image { width, height, .. }: &Image,
        cancel: &Cancel<'_>,
    ) -> Result<Marked, ConversionError> {
        let draw = |image| draw_watermarks(plan, image, cancel);
        Ok(Marked {
            overlay: Overlay::new(width, height, draw)?,
            shown: transparent(width, height),
        })
    }

    /// Takes in what a frame changed.
    fn update(
        &mut self,
        canvas: &Image,
        frame: &mut AnimationFrame,
        cancel: &Cancel<'_>,
    ) -> Result<&Image, ConversionError> {
        copy_damage(&mut self.shown, canvas, frame, cancel)?;
        self.overlay
            .lay_over(&mut self.shown, frame.damage, cancel)?;
        Ok(&self.shown)
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

/// Resizes the pixels that the damage of `canvas` reaches into `resized`. The frame's damage and
/// previous pixels become those of `resized`.
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
