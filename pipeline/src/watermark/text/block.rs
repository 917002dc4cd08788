//! The lines of a text, one below the other.

use super::font::{Face, Fonts};
use super::shape::{Glyph, Line};
use crate::watermark::position::Side;
use harfrust::GlyphId;
use std::collections::HashMap;
use towebp_encoder::{Cancel, Cancelled};

/// The glyphs of a text that are not blank. Lengths are in ems, x to the right and y downwards.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) glyphs: Vec<Glyph>,
    /// The rectangle around all glyphs.
    pub(super) bounds: Bounds,
    /// The largest distance of a glyph's edge from its origin.
    pub(super) reach: f32,
    /// Whether the first line ends on the left.
    pub(super) is_right_to_left: bool,
}

/// The left, top, right and bottom edge of the drawing, in ems.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds {
    pub(super) left: f32,
    pub(super) top: f32,
    pub(super) right: f32,
    pub(super) bottom: f32,
}

impl Bounds {
    fn moved(self, x: f32, y: f32) -> Bounds {
        Bounds {
            left: self.left + x,
            top: self.top + y,
            right: self.right + x,
            bottom: self.bottom + y,
        }
    }

    fn union(self, other: Bounds) -> Bounds {
        Bounds {
            left: self.left.min(other.left),
            top: self.top.min(other.top),
            right: self.right.max(other.right),
            bottom: self.bottom.max(other.bottom),
        }
    }

    fn reach(self) -> f32 {
        [self.left, self.top, self.right, self.bottom]
            .into_iter()
            .fold(0.0, |reach: f32, edge| reach.max(edge.abs()))
    }
}

/// Puts lines below each other, aligned to one side. `None` if all glyphs are blank.
pub(super) fn stack(
    fonts: &Fonts,
    lines: Vec<Line>,
    side: Side,
    cancel: &Cancel<'_>,
) -> Result<Option<Block>, Cancelled> {
    let widest = lines
        .iter()
        .fold(0.0, |widest: f32, line| widest.max(line.width));
    let is_right_to_left = lines.first().is_some_and(|line| line.is_right_to_left);
    let mut glyph_bounds = GlyphBounds::default();
    let mut glyphs = Vec::new();
    let mut total: Option<Bounds> = None;
    let mut reach: f32 = 0.0;
    // The first line's baseline is 0, so that its letters stand on a whole pixel.
    let mut baseline = 0.0;
    for (number, line) in lines.into_iter().enumerate() {
        if number > 0 {
            baseline += line.ascent;
        }
        let start = match side {
            Side::Near => 0.0,
            Side::Middle => (widest - line.width) / 2.0,
            Side::Far => widest - line.width,
        };
        for glyph in line.glyphs {
            cancel.check()?;
            let Some(bounds) = glyph_bounds.of(fonts, glyph) else {
                continue;
            };
            let (x, y) = (glyph.x + start, glyph.y + baseline);
            let moved = bounds.moved(x, y);
            total = Some(total.map_or(moved, |total| total.union(moved)));
            reach = reach.max(bounds.reach());
            glyphs.push(Glyph { x, y, ..glyph });
        }
        baseline += line.descent;
    }
    Ok(total.map(|bounds| Block {
        glyphs,
        bounds,
        reach,
        is_right_to_left,
    }))
}

/// The bounds of the glyphs of a text, relative to their origins. TrueType fonts have them in a
/// table, which is quicker to read than an outline.
#[derive(Default)]
struct GlyphBounds {
    known: HashMap<(Face, u32), Option<Bounds>>,
}

impl GlyphBounds {
    fn of(&mut self, fonts: &Fonts, glyph: Glyph) -> Option<Bounds> {
        *self.known.entry((glyph.face, glyph.id)).or_insert_with(|| {
            let font = fonts.font(glyph.face);
            let extents = font.glyph_metrics().extents(GlyphId::new(glyph.id))?;
            if extents.width == 0.0 && extents.height == 0.0 {
                return None; // blank
            }
            let em = 1.0 / f32::from(font.units_per_em().max(1));
            Some(Bounds {
                left: extents.x_bearing * em,
                top: -extents.y_bearing * em,
                right: (extents.x_bearing + extents.width) * em,
                bottom: (extents.height - extents.y_bearing) * em,
            })
        })
    }
}
