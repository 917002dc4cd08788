//! The part of a picture that is converted (`crop`), and the color below what is transparent
//! (`background`).

use super::error::ConversionError;
use crate::image::{AnimationFrame, Image, Layout, Rectangle, over};
use crate::watermark::Color;
use towebp_encoder::{Cancel, Cancelled};

/// Checks that a part lies within one of pictures of these sizes.
///
/// # Errors
/// [`ConversionError::CropOutside`], with the first of the sizes.
pub(super) fn check_crop(part: Rectangle, sizes: &[(u32, u32)]) -> Result<(), ConversionError> {
    let fits = |&(width, height): &(u32, u32)| {
        part.left + part.width <= width as usize && part.top + part.height <= height as usize
    };
    if sizes.iter().any(fits) {
        return Ok(());
    }
    let (width, height) = sizes[0];
    Err(ConversionError::CropOutside {
        part,
        width,
        height,
    })
}

/// Keeps a part of a picture, in its memory.
///
/// # Errors
/// The part is not within the picture, or it was cancelled.
pub(super) fn crop(
    mut image: Image,
    part: Rectangle,
    cancel: &Cancel<'_>,
) -> Result<Image, ConversionError> {
    check_crop(part, &[(image.width, image.height)])?;
    let channels = image.layout.channels();
    let (stride, bytes) = (image.width as usize * channels, part.width * channels);
    for y in 0..part.height {
        cancel.check()?;
        let from = (part.top + y) * stride + part.left * channels;
        image.pixels.copy_within(from..from + bytes, y * bytes);
    }
    image.pixels.truncate(part.height * bytes);
    image.pixels.shrink_to_fit();
    (image.width, image.height) = (part.width as u32, part.height as u32);
    Ok(image)
}

/// Lays a picture on a color, in its memory: it is opaque then.
pub(super) fn lay_on(
    mut image: Image,
    color: Color,
    cancel: &Cancel<'_>,
) -> Result<Image, Cancelled> {
    if image.layout == Layout::Rgb {
        return Ok(image);
    }
    let (width, count) = (image.width as usize, image.pixels.len() / 4);
    let below = opaque(color);
    for start in (0..count).step_by(width) {
        cancel.check()?;
        for index in start..start + width {
            let pixel = &image.pixels[index * 4..][..4];
            let pixel = over([pixel[0], pixel[1], pixel[2], pixel[3]], below);
            image.pixels[index * 3..][..3].copy_from_slice(&pixel[..3]);
        }
    }
    image.pixels.truncate(count * 3);
    image.pixels.shrink_to_fit();
    image.layout = Layout::Rgb;
    Ok(image)
}

/// A pixel of a color.
fn opaque(Color { red, green, blue }: Color) -> [u8; 4] {
    [red, green, blue, 255]
}

/// The part of an animation's canvas that is shown, perhaps on a color.
pub(super) struct Framed {
    part: Rectangle,
    background: Option<Color>,
    shown: Image,
}

impl Framed {
    /// A part of a canvas; all of it without one.
    ///
    /// # Errors
    /// The part is not within the canvas.
    pub(super) fn new(
        canvas: &Image,
        part: Option<Rectangle>,
        background: Option<Color>,
    ) -> Result<Framed, ConversionError> {
        let part = part.unwrap_or(Rectangle::whole(canvas.width, canvas.height));
        check_crop(part, &[(canvas.width, canvas.height)])?;
        Ok(Framed {
            part,
            background,
            shown: Image {
                width: part.width as u32,
                height: part.height as u32,
                layout: Layout::Rgba,
                pixels: vec![0; part.width * part.height * 4],
            },
        })
    }

    /// Takes in what a frame changed. The frame's damage and previous pixels become those of what
    /// is shown.
    pub(super) fn update(
        &mut self,
        canvas: &Image,
        frame: &mut AnimationFrame,
        cancel: &Cancel<'_>,
    ) -> Result<&Image, Cancelled> {
        let (part, damage) = (self.part, frame.damage);
        // The rows or columns from `from` on, as far as they are within the part.
        let within = |from: usize, count: usize, begin: usize, length: usize| {
            let end = (from + count).clamp(begin, begin + length);
            let from = from.clamp(begin, end.max(begin));
            (from - begin, end - from)
        };
        let (left, width) = within(damage.left, damage.width, part.left, part.width);
        let (top, height) = within(damage.top, damage.height, part.top, part.height);
        let (width, height) = if width == 0 || height == 0 {
            (0, 0)
        } else {
            (width, height)
        };
        frame.damage = Rectangle {
            left,
            top,
            width,
            height,
        };
        frame.previous = Vec::with_capacity(width * height);
        let (stride, all) = (part.width, canvas.pixels.as_chunks::<4>().0);
        let shown = self.shown.pixels.as_chunks_mut::<4>().0;
        for y in top..top + height {
            cancel.check()?;
            let from = (part.top + y) * canvas.width as usize + part.left + left;
            let row = &mut shown[y * stride + left..][..width];
            frame.previous.extend_from_slice(row);
            row.copy_from_slice(&all[from..from + width]);
            if let Some(below) = self.background.map(opaque) {
                for pixel in row {
                    *pixel = over(*pixel, below);
                }
            }
        }
        Ok(&self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(width: u32, height: u32) -> Image {
        let places = (0..height).flat_map(|y| (0..width).map(move |x| (x as u8, y as u8)));
        Image {
            width,
            height,
            layout: Layout::Rgba,
            pixels: places.flat_map(|(x, y)| [x, y, 100, x * 50]).collect(),
        }
    }

    const PART: Rectangle = Rectangle {
        left: 1,
        top: 2,
        width: 3,
        height: 2,
    };

    #[test]
    fn a_part_keeps_its_pixels() {
        let never = Cancel::never();
        let part = crop(image(5, 4), PART, &never).expect("it is within");
        assert_eq!((part.width, part.height), (3, 2));
        let pixels = part.pixels.as_chunks::<4>().0;
        assert_eq!(pixels[0], [1, 2, 100, 50]);
        assert_eq!(pixels[5], [3, 3, 100, 150]);
        for (width, height) in [(3, 4), (5, 3)] {
            let error = crop(image(width, height), PART, &never).expect_err("it is not");
            assert_eq!(error.code(), "invalid_parameter");
        }
    }

    #[test]
    fn transparency_is_laid_on_the_color() {
        let color = Color::new(200, 0, 255);
        let laid = lay_on(image(5, 1), color, &Cancel::never()).expect("not cancelled");
        assert_eq!(laid.layout, Layout::Rgb);
        assert_eq!(laid.pixels[..3], [200, 0, 255], "transparent");
        // 2 at 100 of 255 over 200 is 122.4, 100 over 255 is 194.2.
        assert_eq!(laid.pixels[6..9], [122, 0, 194]);
    }

    #[test]
    fn frames_change_their_part_alone() {
        let (canvas, never) = (image(5, 4), Cancel::never());
        let mut framed = Framed::new(&canvas, Some(PART), None).expect("it is within");
        let rectangle = |[left, top, width, height]: [usize; 4]| Rectangle {
            left,
            top,
            width,
            height,
        };
        for (damage, expected) in [
            ([0, 0, 5, 4], [0, 0, 3, 2]),
            ([0, 0, 2, 3], [0, 0, 1, 1]),
            ([3, 3, 2, 1], [2, 1, 1, 1]),
            ([0, 0, 1, 4], [0, 0, 0, 0]),
            ([4, 0, 1, 4], [3, 0, 0, 0]),
            ([0, 0, 0, 0], [0, 0, 0, 0]),
        ] {
            let (damage, expected) = (rectangle(damage), rectangle(expected));
            let mut frame = AnimationFrame {
                milliseconds: 100,
                damage,
                previous: vec![[0; 4]; damage.width * damage.height],
                pixel_count: 20,
            };
            let shown = framed
                .update(&canvas, &mut frame, &never)
                .expect("not cancelled");
            assert_eq!(
                shown.pixels,
                crop(canvas.clone(), PART, &never).expect("within").pixels
            );
            assert_eq!(frame.damage, expected);
            assert_eq!(frame.previous.len(), expected.width * expected.height);
        }
    }
}
