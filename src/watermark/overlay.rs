//! Watermarks drawn once for many pictures of one size: the frames of an animation.

use super::blend::{blend_row, weight};
use super::color::Color;
use crate::image::{Image, Layout, Place};
use towebp_encoder::{Cancel, Cancelled};

/// Watermarks on a transparent ground.
#[derive(Debug)]
pub struct Overlay(Image);

impl Overlay {
    /// What `draw` draws onto nothing.
    ///
    /// # Errors
    /// Those of `draw`.
    pub fn new<E>(
        width: u32,
        height: u32,
        draw: impl FnOnce(&mut Image) -> Result<(), E>,
    ) -> Result<Overlay, E> {
        let mut image = Image {
            width,
            height,
            layout: Layout::Rgba,
            pixels: vec![0; width as usize * height as usize * 4],
        };
        draw(&mut image)?;
        Ok(Overlay(image))
    }

    /// Lays it over a place of a picture of its size.
    ///
    /// # Errors
    /// [`Cancelled`] if nobody waits any more.
    pub fn lay_over(
        &self,
        image: &mut Image,
        place: Place,
        cancel: &Cancel<'_>,
    ) -> Result<(), Cancelled> {
        let Image { width, pixels, .. } = &self.0;
        let rows = pixels.as_chunks::<4>().0.chunks_exact(*width as usize);
        for (y, row) in rows.enumerate().skip(place.top).take(place.height) {
            cancel.check()?;
            blend_row(
                image,
                place.left as u32,
                y as u32,
                place.width as u32,
                |x| {
                    let [red, green, blue, alpha] = row[place.left + x];
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
    fn laid_over_it_looks_as_if_it_had_been_drawn() {
        let mark = |image: &mut Image| {
            let colour = Color {
                red: 250,
                green: 100,
                blue: 0,
            };
            blend_row(image, 1, 0, 2, |x| (colour, weight(255, [50, 100][x])));
            Ok::<(), Cancelled>(())
        };
        let ground = || Image {
            width: 3,
            height: 1,
            layout: Layout::Rgba,
            pixels: vec![9, 9, 9, 255, 10, 20, 30, 255, 40, 50, 60, 0],
        };
        let (mut drawn, mut laid) = (ground(), ground());
        let place = |left, width| Place {
            left,
            top: 0,
            width,
            height: 1,
        };
        mark(&mut drawn).expect("it is not cancelled");
        let overlay = Overlay::new(3, 1, mark).expect("it is not cancelled");
        for place in [place(0, 2), place(2, 1)] {
            overlay
                .lay_over(&mut laid, place, &Cancel::never())
                .expect("it is not cancelled");
        }
        for (drawn, laid) in drawn.pixels.iter().zip(&laid.pixels) {
            assert!(drawn.abs_diff(*laid) <= 1, "{drawn} and {laid}");
        }
    }
}
