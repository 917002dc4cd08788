//! The animation encoder that takes whole canvases and finds the damage itself.

use super::damage::{Damage, Rect, are_same};
use super::incremental::IncrementalAnimation;
use crate::checks::Checks;
use crate::encoder::{Encoded, Encoder};
use crate::error::EncodeError;
use crate::picture::Picture;
use crate::pixel_source::{PixelSource, Target};
use std::borrow::Cow;

/// Encodes an animation of whole canvases. Pixels that have not changed since the canvas before are
/// not coded again. It keeps one canvas, 4 bytes a pixel, and frames of at most another.
///
/// ```
/// use towebp_encoder::{AnimationEncoder, ColorType, Encoder, Picture};
///
/// let mut animation = AnimationEncoder::new(Encoder::auto(80), (64, 64), 0)?;
/// for brightness in [0, 80, 160, 240] {
///     let pixels = [brightness; 64 * 64];
///     let canvas = Picture::new(64, 64, ColorType::L8, &pixels)?;
///     animation.add(&canvas, 40)?;
/// }
/// let encoded = animation.finish()?;
/// assert!(encoded.file.starts_with(b"RIFF"));
/// # Ok::<(), towebp_encoder::EncodeError>(())
/// ```
#[derive(Debug)]
pub struct AnimationEncoder<'a> {
    inner: IncrementalAnimation<'a>,
    /// The canvas that is shown: red, green, blue and alpha. At first it is transparent.
    shown: Vec<[u8; 4]>,
    /// The width and height in pixels.
    size: (u32, u32),
}

impl<'a> AnimationEncoder<'a> {
    /// An animation of canvases of `width` x `height` pixels, without frames yet. It is played
    /// `loops` times, or for ever if that is 0.
    ///
    /// # Errors
    /// [`EncodeError::Dimensions`] if a side is 0 or above [`MAX_SIDE`](crate::MAX_SIDE);
    /// [`EncodeError::TooLarge`] if the ICC profile does not fit its size field.
    pub fn new(
        encoder: Encoder<'a>,
        (width, height): (u32, u32),
        loops: u16,
    ) -> Result<AnimationEncoder<'a>, EncodeError> {
        let inner = IncrementalAnimation::new(encoder, (width, height), loops)?;
        Ok(AnimationEncoder {
            inner,
            shown: vec![[0; 4]; width as usize * height as usize],
            size: (width, height),
        })
    }

    /// Shows `canvas` for `milliseconds`, at most 16,777,215. Canvases that look the same become
    /// one frame that is shown longer.
    ///
    /// # Errors
    /// [`EncodeError::PixelCount`] if the canvas has another size than the animation, and those of
    /// [`Encoder::encode`], of this or an earlier canvas. After an error the animation is void.
    pub fn add(&mut self, canvas: &Picture<'_>, milliseconds: u32) -> Result<(), EncodeError> {
        if (canvas.width(), canvas.height()) != self.size {
            return Err(EncodeError::PixelCount);
        }
        let damage = self.show(canvas)?;
        self.inner
            .add(self.shown.as_flattened(), damage, milliseconds)
    }

    /// The file.
    ///
    /// # Errors
    /// [`EncodeError::NoFrames`] if there is none, and those of [`Encoder::encode`].
    pub fn finish(self) -> Result<Encoded, EncodeError> {
        self.inner.finish()
    }

    /// Copies `canvas` to `shown`, and returns the pixels that it replaces.
    fn show(&mut self, canvas: &Picture<'_>) -> Result<Damage, EncodeError> {
        let width = self.size.0 as usize;
        let mut checks = Checks::new(self.inner.workers());
        let mut rect: Option<Rect> = None;
        for (y, shown) in self.shown.chunks(width).enumerate() {
            checks.at(y * width)?;
            let row = rgba_row(canvas, y);
            let row = row.as_chunks::<4>().0;
            if are_same(shown, row) {
                continue;
            }
            let differs = |(was, now): (&[u8; 4], &[u8; 4])| was != now;
            let mut both = shown.iter().zip(row);
            let left = both.clone().position(differs).expect("the row differs");
            let last = both.rposition(differs).expect("the row differs");
            let differing = Rect {
                left,
                top: y,
                width: last + 1 - left,
                height: 1,
            };
            rect = Some(rect.map_or(differing, |rect| rect.around(differing)));
        }
        let rect = rect.unwrap_or_default();
        let mut before = Vec::with_capacity(rect.area());
        for y in rect.top..rect.bottom() {
            checks.at(y * width)?;
            let shown = &mut self.shown[y * width..][rect.left..rect.right()];
            before.extend_from_slice(shown);
            let row = rgba_row(canvas, y);
            shown.copy_from_slice(&row.as_chunks().0[rect.left..rect.right()]);
        }
        Ok(Damage { rect, before })
    }
}

/// A row as red, green, blue and alpha.
fn rgba_row<'a>(canvas: &'a Picture<'_>, y: usize) -> Cow<'a, [u8]> {
    let row = PixelSource::row(canvas, y, Target::Lossless);
    if canvas.color().has_alpha() {
        return row;
    }
    let opaque = |&[red, green, blue]: &[u8; 3]| [red, green, blue, 255];
    let pixels = row.as_chunks().0.iter();
    Cow::Owned(pixels.flat_map(opaque).collect())
}
