//! Scaling pictures down by area: each new pixel is the mean of the area that it covers, weighted by alpha so that
//! transparent pixels do not bleed their colour. Whole numbers throughout, so a plain area keeps its exact colour.

use super::position::Size;
use crate::image::{Cancelled, Image, Layout, Patience};
use std::borrow::Cow;

/// The largest size of the same proportions within `room`, never larger than `size` and at least 1 by 1.
pub(super) fn fit(size: Size, room: Size) -> Size {
    if size.0 <= room.0 && size.1 <= room.1 {
        return size;
    }
    let (width, height) = (u64::from(size.0), u64::from(size.1));
    let (room_width, room_height) = (u64::from(room.0), u64::from(room.1));
    let divide = |length: u64, by: u64| ((length + by / 2) / by).max(1) as u32;
    if width * room_height >= height * room_width {
        (room.0, divide(height * room_width, width).min(room.1))
    } else {
        (divide(width * room_height, height).min(room.0), room.1)
    }
}

/// The picture at `size`, which is no larger than the picture.
pub(super) fn scale_down<'p>(
    picture: &'p Image,
    size: Size,
    patience: &Patience<'_>,
) -> Result<Cow<'p, Image>, Cancelled> {
    if (picture.width, picture.height) == size {
        return Ok(Cow::Borrowed(picture));
    }
    Ok(Cow::Owned(match picture.layout {
        Layout::Rgb => average::<3>(picture, size, patience)?,
        Layout::Rgba => average::<4>(picture, size, patience)?,
    }))
}

fn average<const N: usize>(
    picture: &Image,
    (width, height): Size,
    patience: &Patience<'_>,
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
            patience.check()?;
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

/// The stretch of source pixels that a new pixel covers, in units of 1/`new` of a source pixel.
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
    fn add<const N: usize>(&mut self, pixel: &[u8; N], weight: u64) {
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
        scale_down(picture, size, &Patience::endless()).expect("nobody leaves")
    }

    #[test]
    fn fitting_keeps_proportions_and_never_enlarges() {
        assert_eq!(fit((50, 20), (100, 100)), (50, 20));
        assert_eq!(fit((200, 100), (100, 100)), (100, 50));
        assert_eq!(fit((100, 200), (100, 100)), (50, 100));
        assert_eq!(fit((300, 300), (100, 7)), (7, 7));
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

    #[test]
    fn three_to_two_weighs_the_shared_pixel_by_halves() {
        let picture = Image {
            width: 3,
            height: 1,
            layout: Layout::Rgb,
            pixels: vec![0, 0, 0, 90, 90, 90, 255, 255, 255],
        };
        // (2 * 0 + 1 * 90) / 3 and (1 * 90 + 2 * 255) / 3
        assert_eq!(scaled(&picture, (2, 1)).pixels, [30, 30, 30, 200, 200, 200]);
    }

    #[test]
    fn transparent_pixels_do_not_bleed_their_colour() {
        let picture = Image {
            width: 2,
            height: 1,
            layout: Layout::Rgba,
            pixels: vec![200, 100, 50, 255, 0, 255, 0, 0],
        };
        assert_eq!(scaled(&picture, (1, 1)).pixels, [200, 100, 50, 128]);
    }

    #[test]
    fn a_plain_area_keeps_its_exact_colour_at_every_size() {
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
