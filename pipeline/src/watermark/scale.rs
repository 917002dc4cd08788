//! Scaling and rotating pictures. When a picture becomes smaller, each new pixel is the mean of the
//! area that it covers, weighted by alpha, so that transparent pixels do not bleed their color.
//! When it becomes larger or is rotated, each new pixel is the weighted mean of the four pixels
//! around its place. Means are integer arithmetic, so that a plain area keeps its exact color.

use super::position::Size;
use super::rotation::Rotation;
use crate::image::{Image, Layout};
use std::borrow::Cow;
use towebp_encoder::{Cancel, Cancelled};

/// The largest size of the same proportions within `available`, never larger than `size` and at
/// least 1 by 1.
pub(super) fn fit(size: Size, available: Size) -> Size {
    if size.0 <= available.0 && size.1 <= available.1 {
        return size;
    }
    let (width, height) = (u64::from(size.0), u64::from(size.1));
    let (max_width, max_height) = (u64::from(available.0), u64::from(available.1));
    let divide = |length: u64, by: u64| ((length + by / 2) / by).max(1) as u32;
    if width * max_height >= height * max_width {
        (
            available.0,
            divide(height * max_width, width).min(available.1),
        )
    } else {
        (
            divide(width * max_height, height).min(available.0),
            available.1,
        )
    }
}

/// Scales the picture to `size`.
pub(super) fn scale<'p>(
    picture: &'p Image,
    size: Size,
    cancel: &Cancel<'_>,
) -> Result<Cow<'p, Image>, Cancelled> {
    let smaller = (picture.width.min(size.0), picture.height.min(size.1));
    let shrunk = if (picture.width, picture.height) == smaller {
        Cow::Borrowed(picture)
    } else {
        Cow::Owned(match picture.layout {
            Layout::Rgb => average::<3>(picture, smaller, cancel)?,
            Layout::Rgba => average::<4>(picture, smaller, cancel)?,
        })
    };
    if smaller == size {
        return Ok(shrunk);
    }
    let position = |index: u32, new: u32, old: u32| {
        let center = (f64::from(index) + 0.5) * f64::from(old) / f64::from(new) - 0.5;
        center.clamp(0.0, f64::from(old - 1))
    };
    let mut large = blank(size, shrunk.layout);
    let place = |x, y| {
        let x = position(x, size.0, shrunk.width);
        (x, position(y, size.1, shrunk.height))
    };
    resample(&shrunk, &mut large, place, cancel)?;
    Ok(Cow::Owned(large))
}

/// Rotates the picture around its center. The new picture is large enough for its corners, and
/// transparent beside it.
pub(super) fn rotated<'p>(
    picture: Cow<'p, Image>,
    rotation: Rotation,
    cancel: &Cancel<'_>,
) -> Result<Cow<'p, Image>, Cancelled> {
    if rotation.is_identity() {
        return Ok(picture);
    }
    let (old_width, old_height) = (f64::from(picture.width), f64::from(picture.height));
    let (width, height) = rotation.bounds((old_width, old_height));
    let (width, height) = (round_up(width), round_up(height));
    let mut large = blank((width, height), Layout::Rgba);
    let place = |x, y| {
        let from_center = (
            f64::from(x) + 0.5 - f64::from(width) / 2.0,
            f64::from(y) + 0.5 - f64::from(height) / 2.0,
        );
        let (x, y) = rotation.undo(from_center);
        (x + old_width / 2.0 - 0.5, y + old_height / 2.0 - 0.5)
    };
    resample(&picture, &mut large, place, cancel)?;
    Ok(Cow::Owned(large))
}

/// Rounds a length up to the next whole number, except for an error of rounding.
fn round_up(length: f64) -> u32 {
    ((length - 1e-6).ceil() as u32).max(1)
}

fn blank((width, height): Size, layout: Layout) -> Image {
    Image {
        width,
        height,
        layout,
        pixels: vec![0; width as usize * height as usize * layout.channels()],
    }
}

/// Sets each pixel to the mean of the four pixels around its place in `picture`, weighted by
/// distance, in units of 1/256 of a pixel, and by alpha. `place` maps a pixel to its place, in
/// pixels; places outside of the picture are transparent.
fn resample(
    picture: &Image,
    into: &mut Image,
    place: impl Fn(u32, u32) -> (f64, f64),
    cancel: &Cancel<'_>,
) -> Result<(), Cancelled> {
    let channels = into.layout.channels();
    let rows = into.pixels.chunks_exact_mut(into.width as usize * channels);
    for (y, row) in (0..).zip(rows) {
        cancel.check()?;
        for (x, pixel) in (0..).zip(row.chunks_exact_mut(channels)) {
            let (x, y) = place(x, y);
            let fixed = |length: f64| (length * 256.0).round() as i64;
            pixel.copy_from_slice(&sample(picture, fixed(x), fixed(y))[..channels]);
        }
    }
    Ok(())
}

/// The mean of the four pixels around a place, which is given in units of 1/256 of a pixel.
fn sample(picture: &Image, x: i64, y: i64) -> [u8; 4] {
    let channels = picture.layout.channels();
    let mut sum = Sum::default();
    for (row, row_weight) in [(y >> 8, 256 - (y & 255)), ((y >> 8) + 1, y & 255)] {
        for (column, column_weight) in [(x >> 8, 256 - (x & 255)), ((x >> 8) + 1, x & 255)] {
            let weight = (row_weight * column_weight) as u64;
            let is_inside = (0..i64::from(picture.width)).contains(&column)
                && (0..i64::from(picture.height)).contains(&row);
            if weight == 0 || !is_inside {
                sum.area += weight;
                continue;
            }
            let index = row as usize * picture.width as usize + column as usize;
            let pixel = &picture.pixels[index * channels..][..channels];
            sum.add(pixel, weight);
        }
    }
    sum.mean()
}

/// Scales the picture down, to means of areas.
fn average<const N: usize>(
    picture: &Image,
    (width, height): Size,
    cancel: &Cancel<'_>,
) -> Result<Image, Cancelled> {
    let source = picture.pixels.as_chunks::<N>().0;
    let stride = picture.width as usize;
    let columns: Vec<Span> = (0..width)
        .map(|x| Span::new(x, width, picture.width))
        .collect();
    let mut pixels = Vec::with_capacity(width as usize * height as usize * N);
    for y in 0..height {
        let mut sums = vec![Sum::default(); columns.len()];
        for (row, row_weight) in Span::new(y, height, picture.height).weights() {
            cancel.check()?;
            let row = &source[row * stride..][..stride];
            for (sum, span) in sums.iter_mut().zip(&columns) {
                for (column, column_weight) in span.weights() {
                    sum.add(&row[column], row_weight * column_weight);
                }
            }
        }
        for sum in sums {
            pixels.extend_from_slice(&sum.mean()[..N]);
        }
    }
    Ok(Image {
        width,
        height,
        layout: picture.layout,
        pixels,
    })
}

/// The range of source pixels that a new pixel covers along one side, in units of 1/`new` of a
/// source pixel.
struct Span {
    start: u64,
    end: u64,
    new: u64,
}

impl Span {
    fn new(index: u32, new: u32, old: u32) -> Span {
        let (index, old) = (u64::from(index), u64::from(old));
        Span {
            start: index * old,
            end: (index + 1) * old,
            new: u64::from(new),
        }
    }

    /// The source pixels and how much of each is covered.
    fn weights(&self) -> impl Iterator<Item = (usize, u64)> {
        let pixels = self.start / self.new..self.end.div_ceil(self.new);
        pixels.map(|pixel| {
            let covered =
                ((pixel + 1) * self.new).min(self.end) - (pixel * self.new).max(self.start);
            (pixel as usize, covered)
        })
    }
}

/// Sums of samples. 255 * 255 times an area of 16383 * 16383 needs 44 bits.
#[derive(Clone, Default)]
struct Sum {
    colors: [u64; 3],
    alpha: u64,
    area: u64,
}

impl Sum {
    fn add(&mut self, pixel: &[u8], weight: u64) {
        let alpha = weight * pixel.get(3).map_or(255, |&alpha| u64::from(alpha));
        for (sum, &sample) in self.colors.iter_mut().zip(pixel) {
            *sum += alpha * u64::from(sample);
        }
        self.alpha += alpha;
        self.area += weight;
    }

    fn mean(&self) -> [u8; 4] {
        if self.alpha == 0 {
            return [0; 4];
        }
        let [red, green, blue] = self
            .colors
            .map(|sum| ((sum + self.alpha / 2) / self.alpha) as u8);
        [
            red,
            green,
            blue,
            ((self.alpha + self.area / 2) / self.area) as u8,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(picture: &Image, size: Size) -> Cow<'_, Image> {
        scale(picture, size, &Cancel::never()).expect("it is not cancelled")
    }

    #[test]
    fn fitting_keeps_proportions_and_never_enlarges() {
        assert_eq!(fit((50, 20), (100, 100)), (50, 20));
        assert_eq!(fit((200, 100), (100, 100)), (100, 50));
        assert_eq!(fit((100, 200), (100, 100)), (50, 100));
        assert_eq!(fit((300, 300), (100, 7)), (7, 7));
        assert_eq!(fit((200, 101), (100, 100)), (100, 51), "50.5 rounded");
        assert_eq!(
            fit((10_000, 1), (10, 10)),
            (10, 1),
            "never thinner than a pixel"
        );
        assert_eq!(fit((5, 5), (1, 1)), (1, 1));
        for width in 1..40 {
            for height in 1..40 {
                let (w, h) = fit((width, height), (13, 9));
                assert!(
                    (1..=13).contains(&w) && (1..=9).contains(&h),
                    "{width} x {height} became {w} x {h}"
                );
            }
        }
    }

    #[test]
    fn half_size_is_the_mean_of_four() {
        let picture = Image {
            width: 2,
            height: 2,
            layout: Layout::Rgb,
            pixels: vec![0, 10, 255, 0, 20, 255, 100, 30, 255, 100, 40, 255],
        };
        assert_eq!(scaled(&picture, (1, 1)).pixels, [50, 25, 255]);
    }

    /// A row of opaque pixels.
    fn row(pixels: &[[u8; 3]]) -> Image {
        Image {
            width: pixels.len() as u32,
            height: 1,
            layout: Layout::Rgb,
            pixels: pixels.concat(),
        }
    }

    #[test]
    fn means_of_colors_are_rounded() {
        let picture = row(&[[0, 9, 20], [1, 10, 20]]);
        assert_eq!(scaled(&picture, (1, 1)).pixels, [1, 10, 20]);
    }

    #[test]
    fn twice_the_size_lies_between_pixels_and_repeats_those_at_the_edges() {
        let gray = |level: u8| [level, level, level, 255];
        let picture = |levels: [u8; 4]| Image {
            width: 2,
            height: 2,
            layout: Layout::Rgba,
            pixels: levels.map(gray).concat(),
        };
        let wide = scaled(&picture([0, 80, 0, 80]), (4, 2)).into_owned();
        assert_eq!(wide.pixels, [0, 20, 60, 80].map(gray).concat().repeat(2));
        let high = scaled(&picture([0, 0, 80, 80]), (2, 4)).into_owned();
        let rows = [0, 20, 60, 80].map(|level| gray(level).repeat(2));
        assert_eq!(high.pixels, rows.concat());
    }

    #[test]
    fn three_to_two_weighs_the_shared_pixel_by_halves() {
        let picture = row(&[[0; 3], [90; 3], [255; 3]]);
        // (2 * 0 + 1 * 90) / 3 and (1 * 90 + 2 * 255) / 3
        assert_eq!(scaled(&picture, (2, 1)).pixels, [30, 30, 30, 200, 200, 200]);
    }

    #[test]
    fn transparent_pixels_do_not_bleed_their_color() {
        let picture = Image {
            width: 2,
            height: 1,
            layout: Layout::Rgba,
            pixels: vec![200, 100, 50, 255, 0, 255, 0, 0],
        };
        assert_eq!(scaled(&picture, (1, 1)).pixels, [200, 100, 50, 128]);
    }

    #[test]
    fn a_plain_area_keeps_its_exact_color_at_every_size() {
        let pixels = [7, 77, 177, 99].repeat(23 * 17);
        let picture = Image {
            width: 23,
            height: 17,
            layout: Layout::Rgba,
            pixels,
        };
        for width in 1..=23 {
            for height in [1, 2, 5, 16, 17] {
                let scaled = scaled(&picture, (width, height));
                assert_eq!(
                    scaled.pixels,
                    [7, 77, 177, 99].repeat((width * height) as usize),
                    "{width} x {height}"
                );
            }
        }
    }
}
