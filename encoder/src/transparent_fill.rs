//! Colors of transparent pixels. They are often black, or whatever a program left there; coded
//! lossy, they bleed into the visible edge beside them as a halo, and cost bytes.

/// The rows that [`fill`] takes at a time, and the side of a macroblock in pixels.
pub const ROWS: usize = 16;

/// Gives pixels of alpha 0 the color of visible ones close by: each takes the mean of the smallest
/// square around it, of 2, 4, 8 or 16 pixels a side, that has any. A macroblock without visible
/// pixels is filled with a single color, the last mean that was found. Visible pixels and alpha
/// stay as they are.
///
/// `pixels` are red, green, blue and alpha in rows of `width`. A picture may be filled in parts of
/// [`ROWS`] rows: `last` is then the result of the part above, and black in the first.
pub fn fill(pixels: &mut [u8], width: usize, mut last: [u8; 3]) -> [u8; 3] {
    let (pixels, _) = pixels.as_chunks_mut::<4>();
    let height = pixels.len() / width.max(1);
    for top in (0..height).step_by(ROWS) {
        for left in (0..width).step_by(ROWS) {
            let size = (ROWS.min(width - left), ROWS.min(height - top));
            let mut block = Block {
                pixels: &mut pixels[top * width + left..],
                stride: width,
                size,
            };
            if block.has_transparent() {
                last = block.fill(last);
            }
        }
    }
    last
}

/// Sums over the visible pixels of a square: colors weighted by alpha, and alpha.
#[derive(Clone, Copy, Default)]
struct Sums {
    color: [u32; 3],
    alpha: u32,
}

impl Sums {
    fn add(&mut self, other: Sums) {
        for (sum, other) in self.color.iter_mut().zip(other.color) {
            *sum += other;
        }
        self.alpha += other.alpha;
    }

    /// The mean, unless nothing is visible.
    fn mean(self) -> Option<[u8; 3]> {
        let Sums { color, alpha } = self;
        (alpha > 0).then(|| color.map(|sum| ((sum + alpha / 2) / alpha) as u8))
    }
}

/// The part of a macroblock that is inside of the picture.
struct Block<'a> {
    /// Pixels from the first one of the block on.
    pixels: &'a mut [[u8; 4]],
    /// Pixels from one row to the next.
    stride: usize,
    /// Width and height in pixels, 1 to [`ROWS`].
    size: (usize, usize),
}

impl Block<'_> {
    fn rows(&mut self) -> impl Iterator<Item = &mut [[u8; 4]]> {
        let (width, height) = self.size;
        let rows = self.pixels.chunks_mut(self.stride).take(height);
        rows.map(move |row| &mut row[..width])
    }

    fn has_transparent(&mut self) -> bool {
        self.rows().any(|row| row.iter().any(|pixel| pixel[3] == 0))
    }

    /// Fills the transparent pixels, with `last` if none is visible, and returns the mean of the
    /// visible ones, or `last`.
    fn fill(&mut self, last: [u8; 3]) -> [u8; 3] {
        // Squares of 2, 4, 8 and 16 pixels a side.
        let mut levels = [const {
            [[Sums {
                color: [0; 3],
                alpha: 0,
            }; 8]; 8]
        }; 4];
        for (y, row) in self.rows().enumerate() {
            for (x, &[red, green, blue, alpha]) in row.iter().enumerate() {
                let alpha = u32::from(alpha);
                levels[0][y / 2][x / 2].add(Sums {
                    color: [red, green, blue].map(|sample| u32::from(sample) * alpha),
                    alpha,
                });
            }
        }
        for level in 1..4 {
            let (finer, coarser) = levels.split_at_mut(level);
            for y in 0..ROWS >> level {
                for x in 0..ROWS >> level {
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

    /// Fills a picture of `.` (black, transparent) and letters (gray of that code, opaque).
    fn filled(rows: &[&str]) -> Vec<Vec<u8>> {
        let width = rows[0].len();
        let pixel = |byte: u8| match byte {
            b'.' => [0; 4],
            gray => [gray, gray, gray, 255],
        };
        let mut pixels: Vec<u8> = rows
            .iter()
            .flat_map(|row| row.bytes())
            .flat_map(pixel)
            .collect();
        let alphas: Vec<u8> = pixels.iter().skip(3).step_by(4).copied().collect();
        fill(&mut pixels, width, [0; 3]);
        assert!(
            pixels.iter().skip(3).step_by(4).eq(&alphas),
            "alpha has changed"
        );
        let grays: Vec<u8> = pixels.into_iter().step_by(4).collect();
        grays.chunks(width).map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn transparent_pixels_take_the_mean_of_the_smallest_square_with_visible_ones() {
        let rows = filled(&["d.....", "......", "....p.", "....p."]);
        assert_eq!(rows[0], [b'd', b'd', b'd', b'd', b'p', b'p']);
        assert_eq!(rows[2], [b'd', b'd', b'd', b'd', b'p', b'p']);
        assert_eq!(filled(&["d.", "p."])[0][1], b'j', "the mean of both");
    }

    #[test]
    fn macroblocks_without_anything_visible_take_the_last_color() {
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
        fill(&mut pixels, 2, [0; 3]);
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
                fill(&mut pixels, width, [0; 3]);
                let own_block = pixels[last - (width - 1) % 16 * 4..].chunks(4);
                assert!(
                    own_block.into_iter().all(|pixel| pixel[..3] == [7, 8, 9]),
                    "{width} x {height}"
                );
            }
        }
    }
}
