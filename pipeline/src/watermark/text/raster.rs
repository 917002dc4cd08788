//! Draws outlines into masks: filled, stroked with a round pen, or blurred.

use super::path::{Flattened, Point};
use crate::watermark::stamp::Mask;
use ab_glyph_rasterizer::{Rasterizer, point};
use std::ops::Range;
use towebp_encoder::{Cancel, Cancelled};

/// Fills outlines one after the other.
pub(super) struct Filler(Rasterizer);

/// The number of pixels that are filled at a time: they fit a cache, and take a few milliseconds.
const BAND: usize = 1 << 18;

impl Filler {
    pub(super) fn new() -> Filler {
        Filler(Rasterizer::new(0, 0))
    }

    /// Adds the inside of an outline to the mask. Adjacent outlines have no seam between them.
    pub(super) fn fill(
        &mut self,
        outline: &Flattened,
        mask: &mut Mask,
        cancel: &Cancel<'_>,
    ) -> Result<(), Cancelled> {
        let (left, top, right, bottom) = outline.bounds();
        // The rasterizer writes one column behind a line's end.
        let width = (right - left.floor()).ceil() as usize + 1;
        let rows = pixels(top, bottom, mask.height);
        for band in rows.clone().step_by(1.max(BAND / width)) {
            cancel.check()?;
            let height = (BAND / width).clamp(1, rows.end - band);
            self.0.reset(width, height);
            let place = |p: Point| point(p.0 - left.floor(), p.1 - band as f32);
            for [a, b] in &outline.lines {
                self.0.draw_line(place(*a), place(*b));
            }
            self.add(left.floor() as i64, band, mask);
        }
        Ok(())
    }

    /// Adds a band of rows from `top`.
    fn add(&self, left: i64, top: usize, mask: &mut Mask) {
        let width = self.0.dimensions().0 as i64;
        let (mut x, mut y) = (0, top as u32);
        self.0.for_each_pixel(|_, covered| {
            let column = left + x;
            // In most rectangles half of the pixels are outside of the glyph. There the sums are 0,
            // except for rounding.
            if covered > 0.001 && (0..i64::from(mask.width)).contains(&column) {
                let sample = &mut mask.row_mut(y)[column as usize];
                *sample = sample.saturating_add((covered.min(1.0) * 255.0 + 0.5) as u8);
            }
            x += 1;
            if x == width {
                (x, y) = (0, y + 1);
            }
        });
    }
}

/// Strokes an outline with a round pen.
pub(super) fn stroke(
    outline: &Flattened,
    radius: f32,
    mask: &mut Mask,
    cancel: &Cancel<'_>,
) -> Result<(), Cancelled> {
    for line in &outline.lines {
        cancel.check()?;
        stroke_line(*line, radius, mask);
    }
    Ok(())
}

/// Strokes one line. The coverage of a pixel is the distance of its center from the pen's edge.
fn stroke_line([a, b]: [Point; 2], radius: f32, mask: &mut Mask) {
    let reach = radius + 1.0;
    let (along_x, along_y) = (b.0 - a.0, b.1 - a.1);
    let length_squared = along_x * along_x + along_y * along_y;
    for y in pixels(a.1.min(b.1) - reach, a.1.max(b.1) + reach, mask.height) {
        let from_y = y as f32 + 0.5 - a.1;
        // Only the part of a slanting line that is near this row matters.
        let near = |edge: f32| ((from_y + edge) / along_y).clamp(0.0, 1.0) * along_x + a.0;
        let (start, end) = if along_y.abs() > 1e-3 {
            let (start, end) = (near(-reach), near(reach));
            (start.min(end), start.max(end))
        } else {
            (a.0.min(b.0), a.0.max(b.0))
        };
        let columns = pixels(start - reach, end + reach, mask.width);
        let first = columns.start;
        let row = &mut mask.row_mut(y as u32)[columns];
        for (index, sample) in row.iter_mut().enumerate() {
            let from_x = (first + index) as f32 + 0.5 - a.0;
            let share = (from_x * along_x + from_y * along_y) / length_squared;
            let share = share.clamp(0.0, 1.0);
            let (x, y) = (from_x - share * along_x, from_y - share * along_y);
            let covered = (radius + 0.5 - (x * x + y * y).sqrt()).clamp(0.0, 1.0);
            *sample = (*sample).max((covered * 255.0).round() as u8);
        }
    }
}

/// The pixels between two edges, as far as they are within `length`.
fn pixels(from: f32, to: f32, length: u32) -> Range<usize> {
    let length = length as f32;
    from.floor().clamp(0.0, length) as usize..to.ceil().clamp(0.0, length) as usize
}

/// Moves the mask by `offset` to the right and down, and blurs it twice, by means over squares of 2
/// `radius` + 1 pixels per side. Pixels that leave the mask are lost.
pub(super) fn blur(
    mask: &Mask,
    offset: u32,
    radius: u32,
    cancel: &Cancel<'_>,
) -> Result<Mask, Cancelled> {
    let mut blurred = Mask::new((mask.width, mask.height));
    let mut line = Vec::new();
    for y in offset..mask.height {
        cancel.check()?;
        let source = mask.row(y - offset);
        line.clear();
        line.resize((offset as usize).min(source.len()), 0);
        line.extend_from_slice(&source[..source.len() - line.len()]);
        let row = blurred.row_mut(y);
        average(&line, row, radius as usize);
        line.copy_from_slice(row);
        average(&line, row, radius as usize);
    }
    for _ in 0..2 {
        blurred = average_columns(&blurred, radius, cancel)?;
    }
    Ok(blurred)
}

/// Sets each sample to the mean of itself and `radius` neighbors on each side; samples beyond the
/// ends count as 0.
fn average(source: &[u8], into: &mut [u8], radius: usize) {
    let count = 2 * radius as u32 + 1;
    let mut sum: u32 = source
        .iter()
        .take(radius)
        .map(|&sample| u32::from(sample))
        .sum();
    for (index, sample) in into.iter_mut().enumerate() {
        sum += source
            .get(index + radius)
            .map_or(0, |&next| u32::from(next));
        *sample = ((sum + count / 2) / count) as u8;
        sum -= index
            .checked_sub(radius)
            .map_or(0, |last| u32::from(source[last]));
    }
}

/// [`average`] along the columns of a mask.
fn average_columns(mask: &Mask, radius: u32, cancel: &Cancel<'_>) -> Result<Mask, Cancelled> {
    let count = 2 * radius + 1;
    let mut averaged = Mask::new((mask.width, mask.height));
    let mut sums = vec![0u32; mask.width as usize];
    let add = |sums: &mut [u32], y: u32| {
        for (sum, &sample) in sums.iter_mut().zip(mask.row(y)) {
            *sum += u32::from(sample);
        }
    };
    for y in 0..radius.min(mask.height) {
        add(&mut sums, y);
    }
    for y in 0..mask.height {
        cancel.check()?;
        if y + radius < mask.height {
            add(&mut sums, y + radius);
        }
        for (sample, sum) in averaged.row_mut(y).iter_mut().zip(&sums) {
            *sample = ((sum + count / 2) / count) as u8;
        }
        if y >= radius {
            for (sum, &sample) in sums.iter_mut().zip(mask.row(y - radius)) {
                *sum -= u32::from(sample);
            }
        }
    }
    Ok(averaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rectangle(left: f32, top: f32, right: f32, bottom: f32) -> Flattened {
        let corners = [(left, top), (right, top), (right, bottom), (left, bottom)];
        Flattened {
            lines: (0..4).map(|i| [corners[i], corners[(i + 1) % 4]]).collect(),
        }
    }

    fn blurred(mask: &Mask, offset: u32, radius: u32) -> Mask {
        blur(mask, offset, radius, &Cancel::never()).expect("it is not cancelled")
    }

    fn filled(outlines: &[Flattened]) -> Mask {
        let mut mask = Mask::new((10, 8));
        let mut filler = Filler::new();
        for outline in outlines {
            filler
                .fill(outline, &mut mask, &Cancel::never())
                .expect("it is not cancelled");
        }
        mask
    }

    #[test]
    fn coverage_is_the_share_of_a_pixels_area() {
        let mask = filled(&[rectangle(2.5, 1.0, 6.25, 3.5)]);
        let expected: [&[u8]; 4] = [
            &[0; 10],
            &[0, 0, 128, 255, 255, 255, 64, 0, 0, 0],
            &[0, 0, 128, 255, 255, 255, 64, 0, 0, 0],
            &[0, 0, 64, 128, 128, 128, 32, 0, 0, 0],
        ];
        for (y, row) in expected.iter().enumerate() {
            assert_eq!(&mask.row(y as u32), row, "row {y}");
        }
    }

    #[test]
    fn adjacent_outlines_have_no_seam_and_pixels_outside_are_left_out() {
        let halves = [
            rectangle(-3.0, -2.0, 4.3, 20.0),
            rectangle(4.3, -2.0, 30.0, 20.0),
        ];
        assert!(filled(&halves).coverage.iter().all(|&sample| sample == 255));
        let outside = [
            rectangle(-9.0, 0.0, -1.0, 8.0),
            rectangle(0.0, 9.0, 10.0, 20.0),
        ];
        assert!(filled(&outside).coverage.iter().all(|&sample| sample == 0));
    }

    #[test]
    fn a_round_pen_is_as_wide_on_every_side() {
        let mut mask = Mask::new((41, 41));
        stroke_line([(20.5, 20.5), (20.5, 20.5001)], 10.0, &mut mask);
        for y in 0..41 {
            for x in 0..41 {
                let distance = f32::hypot(x as f32 - 20.0, y as f32 - 20.0);
                let covered = mask.row(y)[x as usize];
                let expected = ((10.5 - distance).clamp(0.0, 1.0) * 255.0).round() as u8;
                assert!(covered.abs_diff(expected) <= 1, "at {x}, {y}: {covered}");
            }
        }
        let area: f32 = mask.coverage.iter().map(|&s| f32::from(s) / 255.0).sum();
        assert!((area / 314.16 - 1.0).abs() < 0.01, "{area}");
    }

    #[test]
    fn a_slanting_line_is_drawn_whole() {
        for (a, b) in [
            ((5.0, 5.0), (95.0, 60.0)),
            ((95.0, 5.0), (5.0, 60.0)),
            ((5.0, 30.0), (95.0, 30.5)),
            ((50.0, 5.0), (50.2, 60.0)),
        ] {
            let mut mask = Mask::new((100, 66));
            stroke_line([a, b], 3.0, &mut mask);
            for y in 0..66 {
                for x in 0..100 {
                    let p = (x as f32 + 0.5 - a.0, y as f32 + 0.5 - a.1);
                    let d = (b.0 - a.0, b.1 - a.1);
                    let t = ((p.0 * d.0 + p.1 * d.1) / (d.0 * d.0 + d.1 * d.1)).clamp(0.0, 1.0);
                    let distance = f32::hypot(p.0 - t * d.0, p.1 - t * d.1);
                    let expected = ((3.5 - distance).clamp(0.0, 1.0) * 255.0).round() as u8;
                    let covered = mask.row(y)[x as usize];
                    assert!(
                        covered.abs_diff(expected) <= 1,
                        "{a:?} {b:?} at {x}, {y}: {covered} for {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_blurred_point_is_a_pyramid_of_the_same_sum() {
        let mut mask = Mask::new((21, 21));
        mask.row_mut(8)[8] = 255;
        let soft = blurred(&mask, 2, 1);
        // Twice the mean of three: 1 2 3 2 1 of 9 each way.
        for (y, down) in (8..13).zip([1, 2, 3, 2, 1]) {
            for (x, across) in (8..13).zip([1, 2, 3, 2, 1]) {
                let expected = 255.0 * f64::from(down * across) / 81.0;
                let sample = f64::from(soft.row(y)[x]);
                assert!((sample - expected).abs() <= 1.5, "at {x}, {y}: {sample}");
            }
        }
        let sum: u32 = soft.coverage.iter().map(|&s| u32::from(s)).sum();
        assert!(sum.abs_diff(255) < 12, "{sum}");
        let mut plain = Mask::new((9, 9));
        plain.coverage.fill(200);
        assert_eq!(blurred(&plain, 0, 1).row(4)[4], 200);
        assert_eq!(blurred(&plain, 40, 3).coverage, [0; 81]);
    }
}
