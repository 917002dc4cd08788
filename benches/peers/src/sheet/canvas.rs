//! A PNG with a grid of magnified crops.

use std::path::Path;

use image::{Rgb, RgbImage};

use super::crop::{Place, SIDE};
use crate::picture::Picture;

/// Each pixel becomes a square of so many pixels.
const MAGNIFIED: u32 = 2;
/// Distance between the crops in pixels.
const GAP: u32 = 6;
/// What lies between them: unlike pages and nights.
const GROUND: Rgb<u8> = Rgb([112; 3]);

/// The PNG in the making.
pub struct Canvas {
    image: RgbImage,
}

impl Canvas {
    /// Makes a canvas with space for this many columns and rows of crops.
    pub fn new(columns: usize, rows: usize) -> Self {
        let length = |count: usize| offset(count) + GAP;
        Self {
            image: RgbImage::from_pixel(length(columns), length(rows), GROUND),
        }
    }

    /// Draws what `picture` has at `place`; nothing where it ends before.
    pub fn place(&mut self, column: usize, row: usize, picture: &Picture, place: Place) {
        let (left, top) = (offset(column) + GAP, offset(row) + GAP);
        for y in 0..SIDE.min(picture.height - place.y) {
            for x in 0..SIDE.min(picture.width - place.x) {
                let index =
                    (place.y + y) as usize * picture.width as usize + (place.x + x) as usize;
                let pixel = &picture.pixels[3 * index..][..3];
                for i in 0..MAGNIFIED * MAGNIFIED {
                    let (dx, dy) = (i % MAGNIFIED, i / MAGNIFIED);
                    let at = (left + x * MAGNIFIED + dx, top + y * MAGNIFIED + dy);
                    self.image
                        .put_pixel(at.0, at.1, Rgb([pixel[0], pixel[1], pixel[2]]));
                }
            }
        }
    }

    /// Writes the PNG.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), String> {
        self.image
            .save(path)
            .map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// Where the gap before a column or row begins.
fn offset(index: usize) -> u32 {
    index as u32 * (SIDE * MAGNIFIED + GAP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pixel_is_a_square_in_its_cell() {
        let picture = Picture {
            width: 2,
            height: 1,
            pixels: vec![1, 2, 3, 4, 5, 6],
        };
        let mut canvas = Canvas::new(2, 1);
        canvas.place(1, 0, &picture, Place { x: 0, y: 0 });
        let left = 2 * GAP + SIDE * MAGNIFIED;
        for (x, y, expected) in [
            (left, GAP, [1, 2, 3]),
            (left + 1, GAP + 1, [1, 2, 3]),
            (left + 2, GAP, [4, 5, 6]),
            (left + 4, GAP, GROUND.0),
            (left, GAP + 2, GROUND.0),
            (GAP, GAP, GROUND.0),
        ] {
            assert_eq!(canvas.image.get_pixel(x, y).0, expected, "{x}, {y}");
        }
    }
}
