//! Outlines of glyphs as straight lines.

use harfrust::font::glyph::outline::{DrawMemory, DrawOptions, PathSink};
use harfrust::{Font, GlyphId};

/// A point in pixels, x to the right and y downwards.
pub(super) type Point = (f32, f32);

/// The closed contours of a glyph.
#[derive(Default)]
pub(super) struct Flattened {
    pub(super) lines: Vec<[Point; 2]>,
}

impl Flattened {
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The left, top, right and bottom edge.
    pub(super) fn bounds(&self) -> (f32, f32, f32, f32) {
        let infinite = (f32::MAX, f32::MAX, f32::MIN, f32::MIN);
        // Contours are closed, so that every point is the beginning of a line.
        self.lines
            .iter()
            .fold(infinite, |(left, top, right, bottom), [(x, y), _]| {
                (left.min(*x), top.min(*y), right.max(*x), bottom.max(*y))
            })
    }
}

/// The largest distance of a line from its curve, in pixels: less than a level of coverage.
pub(super) const FINE: f32 = 0.05;

/// Replaces `into` by the outline of a glyph; it is empty if the glyph is blank or damaged. `place`
/// maps the font's units (y upwards) to pixels; no line is farther from its curve than `tolerance`
/// pixels.
pub(super) fn flatten(
    font: &Font,
    glyph: GlyphId,
    place: impl Fn(f32, f32) -> Point,
    tolerance: f32,
    into: &mut Flattened,
) {
    into.lines.clear();
    let Some(outline) = font.outline_glyphs().get(glyph) else {
        return;
    };
    let mut sink = Sink {
        place,
        tolerance,
        start: (0.0, 0.0),
        at: (0.0, 0.0),
        lines: &mut into.lines,
    };
    let drawn = outline.draw(&DrawOptions::default(), DrawMemory::Scratch, &mut sink);
    sink.close();
    let is_finite = |line: &[Point; 2]| line.iter().all(|(x, y)| x.is_finite() && y.is_finite());
    if drawn.is_err() || !into.lines.iter().all(is_finite) {
        into.lines.clear();
    }
}

struct Sink<'a, F> {
    place: F,
    tolerance: f32,
    start: Point,
    at: Point,
    lines: &'a mut Vec<[Point; 2]>,
}

/// The largest number of lines per curve: more are never needed, even on the widest picture.
const MAX_LINES: f32 = 512.0;

impl<F: Fn(f32, f32) -> Point> Sink<'_, F> {
    fn line(&mut self, to: Point) {
        if to != self.at {
            self.lines.push([self.at, to]);
            self.at = to;
        }
    }

    /// Adds lines along `curve`, whose parameter goes from 0 to 1. A single line would be off by
    /// `deviation` pixels, and each of two lines by a quarter of that.
    fn curve(&mut self, deviation: f32, curve: impl Fn(f32) -> Point) {
        let count = (deviation / self.tolerance)
            .sqrt()
            .ceil()
            .clamp(1.0, MAX_LINES);
        for step in 1..=count as u32 {
            self.line(curve(step as f32 / count));
        }
    }
}

impl<F: Fn(f32, f32) -> Point> PathSink for Sink<'_, F> {
    fn move_to(&mut self, x: f32, y: f32) {
        self.close();
        self.start = (self.place)(x, y);
        self.at = self.start;
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let to = (self.place)(x, y);
        self.line(to);
    }

    fn quad_to(&mut self, control_x: f32, control_y: f32, x: f32, y: f32) {
        let (from, control, to) = (
            self.at,
            (self.place)(control_x, control_y),
            (self.place)(x, y),
        );
        self.curve(bend(from, control, to) / 4.0, |t| {
            let s = 1.0 - t;
            combine([(s * s, from), (2.0 * s * t, control), (t * t, to)])
        });
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let from = self.at;
        let [first, second, to] = [(x1, y1), (x2, y2), (x, y)].map(|(x, y)| (self.place)(x, y));
        let bend = bend(from, first, second).max(bend(first, second, to));
        self.curve(bend * 0.75, |t| {
            let s = 1.0 - t;
            combine([
                (s * s * s, from),
                (3.0 * s * s * t, first),
                (3.0 * s * t * t, second),
                (t * t * t, to),
            ])
        });
    }

    fn close(&mut self) {
        let start = self.start;
        self.line(start);
    }
}

/// The length of the second difference of three points.
fn bend(a: Point, b: Point, c: Point) -> f32 {
    let (x, y) = (a.0 - 2.0 * b.0 + c.0, a.1 - 2.0 * b.1 + c.1);
    (x * x + y * y).sqrt()
}

/// The weighted sum of points.
fn combine<const N: usize>(points: [(f32, Point); N]) -> Point {
    points.into_iter().fold((0.0, 0.0), |sum, (weight, point)| {
        (sum.0 + weight * point.0, sum.1 + weight * point.1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watermark::text::Fonts;

    fn area(glyph: char, scale: f32) -> (f32, usize) {
        let fonts = Fonts::default();
        let font = fonts.font(0);
        let id = font.charmap().map_unicode(glyph).expect("DejaVu has it");
        let mut outline = Flattened::default();
        flatten(font, id, |x, y| (x * scale, -y * scale), FINE, &mut outline);
        let doubled: f32 = outline
            .lines
            .iter()
            .map(|[a, b]| a.0 * b.1 - b.0 * a.1)
            .sum();
        (doubled.abs() / 2.0, outline.lines.len())
    }

    #[test]
    fn straight_glyphs_keep_their_lines_and_area() {
        // 1615 by 2433 units by HarfBuzz's `hb-shape --show-extents`.
        let (area, lines) = area('█', 1.0);
        assert_eq!(lines, 4);
        assert!((area - 1615.0 * 2433.0).abs() < 16.0, "{area}");
    }

    #[test]
    fn curves_are_as_smooth_as_their_size_needs() {
        let (small, few) = area('O', 24.0 / 2048.0);
        let (large, many) = area('O', 2400.0 / 2048.0);
        let ratio = large / small / 10_000.0;
        assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
        assert!(few < 70 && many > 4 * few, "{few} and {many} lines");
    }

    #[test]
    fn a_parabola_is_the_same_as_a_cubic_curve() {
        let [from, control, to] = [(10.0, 20.0), (50.0, 180.0), (90.0, 20.0)];
        let third = |end: Point| combine([(1.0 / 3.0, end), (2.0 / 3.0, control)]);
        let drawn = |draw: &dyn Fn(&mut dyn PathSink)| {
            let mut outline = Flattened::default();
            draw(&mut Sink {
                place: |x, y| (x, y),
                tolerance: FINE,
                start: from,
                at: from,
                lines: &mut outline.lines,
            });
            outline.lines
        };
        let quadratic = drawn(&|sink| sink.quad_to(control.0, control.1, to.0, to.1));
        let [first, second] = [third(from), third(to)];
        let cubic = drawn(&|sink| sink.curve_to(first.0, first.1, second.0, second.1, to.0, to.1));
        assert_eq!(cubic.len(), quadratic.len());
        for (cubic, quadratic) in cubic.as_flattened().iter().zip(quadratic.as_flattened()) {
            let (x, y) = (cubic.0 - quadratic.0, cubic.1 - quadratic.1);
            assert!(x.hypot(y) < 0.01, "{cubic:?} and {quadratic:?}");
            let share = (quadratic.0 - 10.0) / 80.0;
            let height = 20.0 + 320.0 * share * (1.0 - share);
            assert!((quadratic.1 - height).abs() < 0.01, "{quadratic:?}");
        }
    }

    #[test]
    fn every_contour_is_closed() {
        for glyph in ['A', 'g', '%', '&', 'ế'] {
            let fonts = Fonts::default();
            let id = fonts.font(0).charmap().map_unicode(glyph).expect("DejaVu");
            let mut outline = Flattened::default();
            flatten(fonts.font(0), id, |x, y| (x, -y), FINE, &mut outline);
            let mut balance = std::collections::HashMap::new();
            for [a, b] in &outline.lines {
                *balance.entry((a.0 as i32, a.1 as i32)).or_insert(0) += 1;
                *balance.entry((b.0 as i32, b.1 as i32)).or_insert(0) -= 1;
            }
            assert!(balance.values().all(|&count| count == 0), "{glyph}");
        }
    }
}
