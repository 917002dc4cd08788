//! Colour where nobody sees it. What lies under transparent pixels is often black, or whatever a program left there; coded
//! with loss, it bleeds into the visible edge beside it as a halo, and costs bytes.

/// Macroblocks are filled one by one.
const SIDE: usize = 16;

/// Gives pixels of alpha 0 the colour of visible ones close by: each takes the mean of the smallest square around it, of 2, 4,
/// 8 or 16 pixels a side, that has any. A macroblock without one is filled with a single colour, the last that was found.
/// Visible pixels and alpha stay as they are.
///
/// `pixels` are red, green, blue and alpha in rows of `width`.
pub fn fill(pixels: &mut [u8], width: usize) {
    fill_on(pixels, width, [0; 3]);
}

/// [`fill`] of the rows below others, with the colour that it went on with there; returns that of these.
pub fn fill_on(pixels: &mut [u8], width: usize, mut last: [u8; 3]) -> [u8; 3] {
    let (pixels, _) = pixels.as_chunks_mut::<4>();
    let height = pixels.len() / width.max(1);
    for top in (0..height).step_by(SIDE) {
        for left in (0..width).step_by(SIDE) {
            let size = (SIDE.min(width - left), SIDE.min(height - top));
            let mut block = Block {
                pixels: &mut pixels[top * width + left..],
                stride: width,
                size,
            };
            if block.has_hidden() {
                last = block.fill(last);
            }
        }
    }
    last
}

/// Sums over the visible pixels of a square: colours weighted by alpha, and alpha.
#[derive(Clone, Copy, Default)]
struct Sums {
    colour: [u32; 3],
    alpha: u32,
}

impl Sums {
    fn add(&mut self, other: Sums) {
        for (sum, other) in self.colour.iter_mut().zip(other.colour) {
            *sum += other;
        }
        self.alpha += other.alpha;
    }

    /// The mean, unless nothing is visible.
    fn mean(self) -> Option<[u8; 3]> {
        let Sums { colour, alpha } = self;
        (alpha > 0).then(|| colour.map(|sum| ((sum + alpha / 2) / alpha) as u8))
    }
}

/// A macroblock, or what of it is inside of the picture.
struct Block<'a> {
    /// From its first pixel on.
    pixels: &'a mut [[u8; 4]],
    /// Pixels from one row to the next.
    stride: usize,
    /// Width and height in pixels, 1 to [`SIDE`].
    size: (usize, usize),
}

impl Block<'_> {
    fn rows(&mut self) -> impl Iterator<Item = &mut [[u8; 4]]> {
        let (width, height) = self.size;
        let rows = self.pixels.chunks_mut(self.stride).take(height);
        rows.map(move |row| &mut row[..width])
    }

    fn has_hidden(&mut self) -> bool {
        self.rows().any(|row| row.iter().any(|pixel| pixel[3] == 0))
    }

    /// Fills the hidden pixels, with `last` if none is visible, and returns the colour to go on with.
    fn fill(&mut self, last: [u8; 3]) -> [u8; 3] {
        // Squares of 2, 4, 8 and 16 pixels a side.
        let mut levels = [const {
            [[Sums {
                colour: [0; 3],
                alpha: 0,
            }; 8]; 8]
        }; 4];
        for (y, row) in self.rows().enumerate() {
            for (x, &[red, green, blue, alpha]) in row.iter().enumerate() {
                let alpha = u32::from(alpha);
                levels[0][y / 2][x / 2].add(Sums {
                    colour: [red, green, blue].map(|sample| u32::from(sample) * alpha),
                    alpha,
                });
            }
        }
        for level in 1..4 {
            let (finer, coarser) = levels.split_at_mut(level);
            for y in 0..SIDE >> level {
                for x in 0..SIDE >> level {
                    coarser[0][y / 2][x / 2].add(finer[level - 1][y][x]);
                }
            }
        }
        let whole = levels[3][0][0].mean().unwrap_or(last);
        for (y, row) in self.rows().enumerate() {
            for (x, pixel) in row
                .iter_mut()
                .enumerate()
                .filter(|(_, pixel)| pixel[3] == 0)
            {
                let mut squares = levels.iter().zip(1..);
                let nearest =
                    squares.find_map(|(square, log2)| square[y >> log2][x >> log2].mean());
                pixel[..3].copy_from_slice(&nearest.unwrap_or(whole));
            }
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fills a picture of `.` (black, transparent) and letters (grey of that code, opaque).
    fn filled(rows: &[&str]) -> Vec<Vec<u8>> {
        let width = rows[0].len();
        let pixel = |byte: u8| match byte {
            b'.' => [0; 4],
            grey => [grey, grey, grey, 255],
        };
        let mut pixels: Vec<u8> = rows
            .iter()
            .flat_map(|row| row.bytes())
            .flat_map(pixel)
            .collect();
        let alphas: Vec<u8> = pixels.iter().skip(3).step_by(4).copied().collect();
        fill(&mut pixels, width);
        assert!(
            pixels.iter().skip(3).step_by(4).eq(&alphas),
            "alpha has changed"
        );
        let greys: Vec<u8> = pixels.into_iter().step_by(4).collect();
        greys.chunks(width).map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn hidden_pixels_take_the_mean_of_the_smallest_square_with_visible_ones() {
        let rows = filled(&["d.....", "......", "....p.", "....p."]);
        assert_eq!(rows[0], [b'd', b'd', b'd', b'd', b'p', b'p']);
        assert_eq!(rows[2], [b'd', b'd', b'd', b'd', b'p', b'p']);
        assert_eq!(filled(&["d.", "p."])[0][1], b'j', "the mean of both");
    }

    #[test]
    fn macroblocks_without_anything_visible_take_the_last_colour() {
        let row = ["d", &".".repeat(40)].concat();
        assert_eq!(filled(&[&row])[0], [b'd'; 41]);
        assert_eq!(
            filled(&["...", "..."]),
            [[0; 3]; 2],
            "nothing at all is visible"
        );
    }

    #[test]
    fn faint_pixels_count_little_and_are_kept() {
        let mut pixels = [200, 0, 0, 1, 0, 0, 200, 199, 9, 9, 9, 0, 9, 9, 9, 0];
        fill(&mut pixels, 2);
        assert_eq!(
            pixels,
            [200, 0, 0, 1, 0, 0, 200, 199, 1, 0, 199, 0, 1, 0, 199, 0]
        );
    }

    #[test]
    fn pictures_of_every_size_are_filled() {
        for width in 1..40 {
            for height in 1..20 {
                let mut pixels = [0, 0, 0, 0].repeat(width * height);
                let last = pixels.len() - 4;
                pixels[last..].copy_from_slice(&[7, 8, 9, 255]);
                fill(&mut pixels, width);
                let own_block = pixels[last - (width - 1) % 16 * 4..].chunks(4);
                assert!(
                    own_block.into_iter().all(|pixel| pixel[..3] == [7, 8, 9]),
                    "{width} x {height}"
                );
            }
        }
    }
}
