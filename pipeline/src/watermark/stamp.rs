//! A watermark that is ready to be blended: once, or as tiles.

use super::blend::{blend_row, weight};
use super::color::Color;
use super::placement::Placement;
use super::position::Size;
use crate::image::Image;
use std::borrow::Cow;
use std::ops::Range;
use towebp_encoder::{Cancel, Cancelled};

/// A watermark in its final size, already rotated.
pub(super) enum Stamp<'a> {
    /// One color, and its coverage of each pixel.
    Mask(Mask, Color),
    /// A picture with its own colors.
    Picture(Cow<'a, Image>),
}

/// The coverage of each pixel, 0 to 255, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mask {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) coverage: Vec<u8>,
}

impl Mask {
    /// A mask that covers nothing.
    pub(super) fn new((width, height): Size) -> Mask {
        Mask {
            width,
            height,
            coverage: vec![0; width as usize * height as usize],
        }
    }

    pub(super) fn row(&self, y: u32) -> &[u8] {
        &self.coverage[y as usize * self.width as usize..][..self.width as usize]
    }

    pub(super) fn row_mut(&mut self, y: u32) -> &mut [u8] {
        &mut self.coverage[y as usize * self.width as usize..][..self.width as usize]
    }
}

impl Stamp<'_> {
    /// Blends it once, or as tiles. `upright` is its size before it was rotated.
    ///
    /// # Errors
    /// [`Cancelled`]; the image may then have a part of it.
    pub(super) fn put(
        &self,
        image: &mut Image,
        placement: &Placement,
        upright: Size,
        cancel: &Cancel<'_>,
    ) -> Result<(), Cancelled> {
        if placement.is_tiled {
            return self.tile(image, placement, upright, cancel);
        }
        let (left, top) = placement.place((image.width, image.height), self.size());
        let at = (i64::from(left), i64::from(top));
        self.blend(image, at, placement.opacity, cancel)
    }

    /// Blends it once, with its corner `at` (x, y) of the image, which may lie outside.
    ///
    /// # Errors
    /// [`Cancelled`]; the image may then have a part of it.
    pub(super) fn blend(
        &self,
        image: &mut Image,
        at: (i64, i64),
        opacity: u8,
        cancel: &Cancel<'_>,
    ) -> Result<(), Cancelled> {
        let (width, height) = self.size();
        let visible = (-at.1).max(0)..(i64::from(image.height) - at.1).min(i64::from(height));
        for row in visible {
            cancel.check()?;
            let at = (at.0, at.1 + row);
            self.blend_row(image, at, row as u32, 0..width, opacity);
        }
        Ok(())
    }

    pub(super) fn size(&self) -> Size {
        match self {
            Stamp::Mask(mask, _) => (mask.width, mask.height),
            Stamp::Picture(picture) => (picture.width, picture.height),
        }
    }

    /// Blends these columns of a row, whose column 0 is `at` (x, y) of the image. Columns outside
    /// of the image are left out.
    fn blend_row(
        &self,
        image: &mut Image,
        at: (i64, i64),
        row: u32,
        columns: Range<u32>,
        opacity: u8,
    ) {
        let first = i64::from(columns.start).max(-at.0);
        let (Ok(x), Ok(y)) = (u32::try_from(at.0 + first), u32::try_from(at.1)) else {
            return;
        };
        let count = (i64::from(columns.end) - first).max(0) as u32;
        let first = first as usize;
        match self {
            Stamp::Mask(mask, color) => {
                let row = mask.row(row);
                blend_row(image, x, y, count, |index| {
                    (*color, weight(row[first + index], opacity))
                });
            }
            Stamp::Picture(picture) => {
                let channels = picture.layout.channels();
                let stride = picture.width as usize * channels;
                let row = &picture.pixels[row as usize * stride..][..stride];
                blend_row(image, x, y, count, |index| {
                    let pixel = &row[(first + index) * channels..][..channels];
                    let alpha = pixel.get(3).copied().unwrap_or(255);
                    let color = Color::new(pixel[0], pixel[1], pixel[2]);
                    (color, weight(alpha, opacity))
                });
            }
        }
    }

    /// Blends tiles over the whole image. Rows and columns of tiles are a gap apart, every other
    /// row is shifted by half a tile, and the rows are rotated with the tiles. One tile is in the
    /// image's center.
    fn tile(
        &self,
        image: &mut Image,
        placement: &Placement,
        upright: Size,
        cancel: &Cancel<'_>,
    ) -> Result<(), Cancelled> {
        let image_size = (image.width, image.height);
        let gap = placement.gap(image_size, upright);
        let step = (f64::from(upright.0 + gap), f64::from(upright.1 + gap));
        let rotation = placement.rotation();
        let (width, height) = self.size();
        let half = (f64::from(width) / 2.0, f64::from(height) / 2.0);
        let center = (f64::from(image.width) / 2.0, f64::from(image.height) / 2.0);
        // The distances from the center, along and across the rows of tiles, within which a tile
        // touches the image.
        let reach = rotation.bounds((
            f64::from(image.width) + f64::from(width),
            f64::from(image.height) + f64::from(height),
        ));
        let columns = (reach.0 / 2.0 / step.0) as i64 + 1;
        let rows = (reach.1 / 2.0 / step.1) as i64 + 1;
        let drawn = self.drawn_columns(cancel)?;
        for row in -rows..=rows {
            let shift = if row % 2 == 0 { 0.0 } else { 0.5 };
            cancel.check()?;
            for column in -columns..=columns {
                let (x, y) =
                    rotation.apply(((column as f64 + shift) * step.0, row as f64 * step.1));
                // Rounded to the nearest pixel, halves always up, so that adjacent tiles stay
                // adjacent.
                let left = (center.0 + x - half.0 + 0.5).floor() as i64;
                let top = (center.1 + y - half.1 + 0.5).floor() as i64;
                if left < i64::from(image.width) && left + i64::from(width) > 0 {
                    let at = (left, top);
                    self.blend_tile(image, at, &drawn, placement.opacity, cancel)?;
                }
            }
        }
        Ok(())
    }

    /// Blends one tile, whose rows are drawn in these columns.
    fn blend_tile(
        &self,
        image: &mut Image,
        at: (i64, i64),
        drawn: &[Range<u32>],
        opacity: u8,
        cancel: &Cancel<'_>,
    ) -> Result<(), Cancelled> {
        let visible = (-at.1).max(0)..(i64::from(image.height) - at.1).min(drawn.len() as i64);
        for row in visible {
            cancel.check()?;
            let columns = drawn[row as usize].clone();
            self.blend_row(image, (at.0, at.1 + row), row as u32, columns, opacity);
        }
        Ok(())
    }

    /// The columns of each row from its first to its last pixel that is not transparent: few in a
    /// rotated line of text.
    fn drawn_columns(&self, cancel: &Cancel<'_>) -> Result<Vec<Range<u32>>, Cancelled> {
        let (width, height) = self.size();
        (0..height)
            .map(|row| {
                cancel.check()?;
                let is_clear = |&column: &u32| self.is_clear(row, column);
                let start = (0..width).take_while(is_clear).count() as u32;
                let end = (start..width).rev().find(|column| !is_clear(column));
                Ok(start..end.map_or(start, |last| last + 1))
            })
            .collect()
    }

    fn is_clear(&self, row: u32, column: u32) -> bool {
        match self {
            Stamp::Mask(mask, _) => mask.row(row)[column as usize] == 0,
            Stamp::Picture(picture) => {
                let channels = picture.layout.channels();
                let index = row as usize * picture.width as usize + column as usize;
                channels == 4 && picture.pixels[index * channels + 3] == 0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Layout;
    use crate::watermark::Length;

    fn black(width: u32, height: u32) -> Image {
        Image {
            width,
            height,
            layout: Layout::Rgb,
            pixels: vec![0; (width * height * 3) as usize],
        }
    }

    fn solid(size: Size) -> Stamp<'static> {
        let mut mask = Mask::new(size);
        mask.coverage.fill(255);
        Stamp::Mask(mask, Color::WHITE)
    }

    fn put(size: Size, image: &mut Image, placement: &Placement, upright: Size) {
        solid(size)
            .put(image, placement, upright, &Cancel::never())
            .expect("it is not cancelled");
    }

    fn tiled(margin: u16, rotate: i16) -> Placement {
        Placement {
            margin: Some(Length::Pixels(margin)),
            rotate,
            is_tiled: true,
            opacity: 100,
            ..Placement::default()
        }
    }

    fn is_white(image: &Image, x: u32, y: u32) -> bool {
        image.pixels[(y * image.width + x) as usize * 3] == 255
    }

    #[test]
    fn tiles_lie_a_gap_apart_and_every_other_row_is_shifted_by_half() {
        // Many tiles, parts of some, a part of one, and long strips.
        for (size, tile, gap) in [
            ((40, 28), (6, 4), 2),
            ((12, 10), (10, 8), 2),
            ((12, 10), (30, 24), 2),
            ((16, 90), (2, 10), 4),
            ((90, 16), (10, 2), 4),
        ] {
            let mut image = black(size.0, size.1);
            put(tile, &mut image, &tiled(gap, 0), tile);
            let [width, height, across, down, gap] =
                [size.0, size.1, tile.0, tile.1, gap.into()].map(u32::cast_signed);
            let (left, top) = ((width - across) / 2, (height - down) / 2);
            let (step, row_step) = (across + gap, down + gap);
            for (x, y) in (0..height).flat_map(|y| (0..width).map(move |x| (x, y))) {
                let row = (y - top).div_euclid(row_step);
                let shift = step / 2 * (row & 1);
                let is_in_row = (y - top).rem_euclid(row_step) < down;
                let is_tile = is_in_row && (x - left - shift).rem_euclid(step) < across;
                let found = is_white(&image, x.cast_unsigned(), y.cast_unsigned());
                assert_eq!(found, is_tile, "{size:?}, {tile:?}, {gap} at {x}, {y}");
            }
        }
    }

    #[test]
    fn tiles_without_a_gap_cover_everything_once() {
        let mut image = black(50, 31);
        let placement = Placement {
            opacity: 50,
            ..tiled(0, 0)
        };
        put((7, 5), &mut image, &placement, (7, 5));
        assert!(image.pixels.iter().all(|&sample| sample == 128));
    }

    #[test]
    fn rows_of_tiles_are_rotated_with_the_tile() {
        let mut image = black(40, 28);
        // A quarter rotation: rows become columns.
        put((4, 6), &mut image, &tiled(2, 90), (6, 4));
        let mut rotated = black(28, 40);
        put((6, 4), &mut rotated, &tiled(2, 0), (6, 4));
        for y in 0..28 {
            for x in 0..40 {
                assert_eq!(
                    is_white(&image, x, y),
                    is_white(&rotated, y, 39 - x),
                    "at {x}, {y}"
                );
            }
        }
    }

    #[test]
    fn drawn_columns_are_from_the_first_to_the_last_covered_one() {
        let mask = Mask {
            width: 5,
            height: 3,
            coverage: vec![0, 9, 0, 1, 0, 0, 0, 0, 0, 0, 3, 3, 3, 3, 3],
        };
        let drawn = Stamp::Mask(mask, Color::WHITE)
            .drawn_columns(&Cancel::never())
            .expect("it is not cancelled");
        assert_eq!(drawn, [1..4, 5..5, 0..5]);
    }
}
