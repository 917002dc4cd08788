//! Watermarks that are drawn once for many pictures of one size: the frames of an animation.

use super::blend::{blend_row, weight};
use super::color::Color;
use crate::image::{Image, Layout, Rectangle};
use towebp_encoder::{Cancel, Cancelled};

/// Watermarks on a transparent picture.
#[derive(Debug)]
pub struct Overlay(Image);

impl Overlay {
    /// Has `draw` draw onto a transparent picture.
    ///
    /// # Errors
    /// The errors of `draw`.
    pub fn new<E>(
        width: u32,
        height: u32,
        draw: impl FnOnce(Image) -> Result<Image, E>,
    ) -> Result<Overlay, E> {
        let image = Image {
            width,
            height,
            layout: Layout::Rgba,
            pixels: vec![0; width as usize * height as usize * 4],
        };
        draw(image).map(Overlay)
    }

    /// Blends a rectangle of the overlay over that of a picture of the same size.
    ///
    /// # Errors
    /// [`Cancelled`]; the picture may then have a part of it.
    pub fn lay_over(
        &self,
        image: &mut Image,
        rectangle: Rectangle,
        cancel: &Cancel<'_>,
    ) -> Result<(), Cancelled> {
        let Image { width, pixels, .. } = &self.0;
        let rows = pixels.as_chunks::<4>().0.chunks_exact(*width as usize);
        for (y, row) in rows.enumerate().skip(rectangle.top).take(rectangle.height) {
            cancel.check()?;
            blend_row(
                image,
                rectangle.left as u32,
                y as u32,
                rectangle.width as u32,
                |x| {
                    let [red, green, blue, alpha] = row[rectangle.left + x];
                    (Color { red, green, blue }, weight(alpha, 100))
                },
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overlay_gives_the_pixels_that_drawing_would() {
        let mark = |mut image: Image| {
            let color = Color {
                red: 250,
                green: 100,
                blue: 0,
            };
            blend_row(&mut image, 1, 0, 2, |x| (color, weight(255, [50, 100][x])));
            Ok::<Image, Cancelled>(image)
        };
        let ground = || Image {
            width: 3,
            height: 1,
            layout: Layout::Rgba,
            pixels: vec![9, 9, 9, 255, 10, 20, 30, 255, 40, 50, 60, 0],
        };
        let mut laid = ground();
        let part = |left, width| Rectangle {
            left,
            top: 0,
            width,
            height: 1,
        };
        let drawn = mark(ground()).expect("it is not cancelled");
        let overlay = Overlay::new(3, 1, mark).expect("it is not cancelled");
        for part in [part(0, 2), part(2, 1)] {
            overlay
                .lay_over(&mut laid, part, &Cancel::never())
                .expect("it is not cancelled");
        }
        for (drawn, laid) in drawn.pixels.iter().zip(&laid.pixels) {
            assert!(drawn.abs_diff(*laid) <= 1, "{drawn} and {laid}");
        }
    }
}
