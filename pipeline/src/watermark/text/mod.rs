//! Text as a watermark: it is shaped, laid out, drawn as a mask of coverage, and blended.

mod block;
mod font;
mod path;
mod raster;
mod shape;
#[cfg(test)]
mod tests;
mod wrap;

pub use font::{FontError, Fonts};

use super::blend::{blend_row, weight};
use super::color::Color;
use super::length::Length;
use super::placement::Placement;
use super::position::{Side, Size};
use super::rotation::Rotation;
use super::stamp::{Mask, Stamp};
use crate::image::{Image, Layout};
use block::{Block, stack};
use harfrust::GlyphId;
use path::{FINE, Flattened, flatten};
use raster::{Filler, blur, stroke};
use shape::{Line, Paragraph};
use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use towebp_encoder::{Cancel, Cancelled};
use wrap::{MAX_LINES, Part, Words};

/// A text to draw.
#[derive(Clone, Debug, PartialEq)]
pub struct TextWatermark {
    /// The text, not empty. `\n`, U+2028 and U+2029 begin a new line.
    pub text: String,
    /// The height of the em. It has no effect if the placement has a scale.
    pub size: TextSize,
    /// Its color.
    pub color: Color,
    /// The outline or shadow that makes it legible on any background.
    pub outline: Outline,
}

/// The height of a text's em.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextSize {
    /// `auto`: 2.5 % of the image's shorter side, at least 12 pixels, and without a most.
    Auto,
    /// This length; at least 8 pixels if it is a share of the image.
    Given(Length),
}

impl TextSize {
    /// The height on an image, in pixels.
    fn em(self, image: Size) -> f32 {
        const AUTO: Length = Length::Share(2500);
        let em = match self {
            TextSize::Auto => AUTO.on(image).max(12.0),
            TextSize::Given(length @ Length::Pixels(_)) => length.on(image),
            TextSize::Given(length @ Length::Share(_)) => length.on(image).max(8.0),
        };
        em as f32
    }

    /// Whether the size follows the image's, so that lines may be broken to follow it, too.
    fn is_relative(self) -> bool {
        !matches!(self, TextSize::Given(Length::Pixels(_)))
    }
}

/// The outline or shadow of a text, in black or white, whichever differs more from the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outline {
    /// `none`
    #[default]
    None,
    /// `outline`: a line around each letter.
    Line,
    /// `shadow`: a soft shadow, to the lower right.
    Shadow,
}

impl Outline {
    /// The names that [`Outline::parse`] accepts, for error texts.
    pub const ALLOWED: &str = "none, outline or shadow";

    /// Reads an outline's exact name.
    pub fn parse(text: &str) -> Option<Outline> {
        match text {
            "none" => Some(Outline::None),
            "outline" => Some(Outline::Line),
            "shadow" => Some(Outline::Shadow),
            _ => None,
        }
    }
}

/// The reason why a text cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextError {
    /// No font has these characters, or they are control characters: each once, in the order of the
    /// text.
    MissingCharacters(Vec<char>),
    /// Drawing was cancelled.
    Cancelled,
    /// Something panicked: a fault of the program, or of the library on a font that was added.
    Panicked,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let missing = match self {
            TextError::MissingCharacters(missing) => missing,
            TextError::Cancelled => {
                return f.write_str("Drawing the text was stopped before its end.");
            }
            TextError::Panicked => return f.write_str("drawing the text panicked"),
        };
        write!(f, "The text has characters that cannot be drawn:")?;
        for (index, character) in missing.iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            if character.is_control() {
                write!(f, "{separator} U+{:04X}", u32::from(*character))?;
            } else {
                write!(
                    f,
                    "{separator} {character} (U+{:04X})",
                    u32::from(*character)
                )?;
            }
        }
        write!(f, ".")
    }
}

impl std::error::Error for TextError {}

impl From<Cancelled> for TextError {
    fn from(Cancelled: Cancelled) -> TextError {
        TextError::Cancelled
    }
}

/// Draws `watermark`. A text that does not fit is drawn smaller, down to 4 pixels per em; if it
/// does not fit even then, its end is cut off.
///
/// If its size is relative to the image's, it is first broken at spaces into the fewest lines that
/// fit at that size, at most 5, or into those that can be drawn largest. Tiles, and texts with a
/// scale, are not broken.
///
/// # Errors
/// [`TextError`]. The image is then unchanged; if drawing was cancelled, it may have a part of the
/// text.
pub fn draw_text(
    image: &mut Image,
    watermark: &TextWatermark,
    fonts: &Fonts,
    placement: &Placement,
    cancel: &Cancel<'_>,
) -> Result<(), TextError> {
    let image_size = (image.width, image.height);
    let prepared = prepare_text(watermark, fonts, placement, image_size, cancel)?;
    if let Some((stamp, upright)) = prepared {
        stamp.put(image, placement, upright, cancel)?;
    }
    Ok(())
}

/// The text as a stamp on an image of this size, and its size before it was rotated. `None` if it
/// is nothing but spaces.
pub(super) fn prepare_text(
    watermark: &TextWatermark,
    fonts: &Fonts,
    placement: &Placement,
    image: Size,
    cancel: &Cancel<'_>,
) -> Result<Option<(Stamp<'static>, Size)>, TextError> {
    // A panic over an added font ends one request with an error.
    let prepared = catch_unwind(AssertUnwindSafe(|| {
        let renderer = Renderer {
            watermark,
            fonts,
            cancel,
        };
        renderer.prepare(placement, image)
    }));
    prepared.unwrap_or(Err(TextError::Panicked))
}

/// Draws one text.
struct Renderer<'a> {
    watermark: &'a TextWatermark,
    fonts: &'a Fonts,
    cancel: &'a Cancel<'a>,
}

impl Renderer<'_> {
    /// The text as a stamp, and its size before it was rotated. `None` if it is nothing but spaces.
    fn prepare(
        &self,
        placement: &Placement,
        image: Size,
    ) -> Result<Option<(Stamp<'static>, Size)>, TextError> {
        let side = if placement.is_tiled {
            Side::Middle
        } else {
            placement.position.across()
        };
        let mut missing = Vec::new();
        let texts = self.lines(&mut missing)?;
        let paragraphs: Vec<Paragraph<'_>> = texts
            .iter()
            .map(|text| Paragraph::new(self.fonts, text, self.cancel))
            .collect();
        let lines = self.shape_lines(&paragraphs, missing)?;
        let Some(block) = stack(self.fonts, lines, side, self.cancel)? else {
            return Ok(None);
        };
        let fits_image =
            self.watermark.size.is_relative() && !placement.is_tiled && placement.scale.is_none();
        let mut space = Space::new(self.watermark, placement, image);
        if fits_image {
            // Broken lines would often end at the very edge.
            space.available = placement.available_with_margin(image);
        }
        let layout = space.largest(&block);
        let is_whole = layout.as_ref().is_some_and(|layout| layout.em >= space.em);
        let unbroken = (block, layout);
        let (block, layout) = if fits_image && !is_whole && paragraphs.len() < MAX_LINES {
            self.broken(&paragraphs, side, &space, unbroken)?
        } else {
            unbroken
        };
        let layout = layout.unwrap_or_else(|| space.cut(&block));
        Ok(Some((self.draw(&block, &layout)?, layout.upright())))
    }

    /// The lines that the text has by itself. Control characters that cannot be drawn are added to
    /// `missing`, each once.
    fn lines(&self, missing: &mut Vec<char>) -> Result<Vec<String>, Cancelled> {
        let lines = self.watermark.text.split(['\n', '\u{2028}', '\u{2029}']);
        lines
            .map(|line| {
                self.cancel.check()?;
                let line = line.strip_suffix('\r').unwrap_or(line);
                for control in line.chars().filter(|c| c.is_control() && *c != '\t') {
                    if !missing.contains(&control) {
                        missing.push(control);
                    }
                }
                // The remaining control characters are tabs.
                Ok(line.replace(char::is_control, " "))
            })
            .collect()
    }

    /// Shapes each paragraph as one line. `missing` has characters that are known to be missing.
    fn shape_lines(
        &self,
        paragraphs: &[Paragraph<'_>],
        mut missing: Vec<char>,
    ) -> Result<Vec<Line>, TextError> {
        let mut lines = Vec::new();
        for paragraph in paragraphs {
            self.cancel.check()?;
            lines.push(paragraph.as_line(&mut missing));
        }
        self.cancel.check()?;
        if missing.is_empty() {
            return Ok(lines);
        }
        let text = &self.watermark.text;
        missing.sort_by_cached_key(|character| text.find(*character));
        Err(TextError::MissingCharacters(missing))
    }

    /// Breaks the lines of a text that does not fit as it is: into the fewest lines that fit, or
    /// those that are drawn largest. If the text does not fit at the smallest em, each line is
    /// filled, and what is left over is cut off.
    fn broken(
        &self,
        paragraphs: &[Paragraph<'_>],
        side: Side,
        space: &Space,
        unbroken: (Block, Option<TextLayout>),
    ) -> Result<(Block, Option<TextLayout>), Cancelled> {
        let words = Words::of(paragraphs, self.cancel)?;
        let block = |parts: &[Part]| {
            let lines = parts.iter().map(|(number, range)| {
                self.cancel.check()?;
                Ok(paragraphs[*number].part(range.clone()))
            });
            let lines: Vec<Line> = lines.collect::<Result<_, _>>()?;
            stack(self.fonts, lines, side, self.cancel)
        };
        let em = |layout: &Option<TextLayout>| layout.as_ref().map_or(0.0, |layout| layout.em);
        let mut best = unbroken;
        // The most lines whose height fits at the smallest em, and the width that they have.
        let mut most_lines = space
            .line_width(&best.0)
            .map(|width| (paragraphs.len(), width));
        for count in paragraphs.len() + 1..=MAX_LINES {
            let parts = words.balanced(count, self.cancel)?;
            if parts.len() < count {
                continue; // these are the lines of a lower count
            }
            let Some(block) = block(&parts)? else {
                break;
            };
            if let Some(width) = space.line_width(&block) {
                most_lines = Some((count, width));
            }
            let layout = space.largest(&block);
            if em(&layout) > em(&best.1) {
                best = (block, layout);
            }
            if em(&best.1) >= space.em {
                break;
            }
        }
        if best.1.is_none()
            && let Some((count, width)) = most_lines
            && let Some(block) = block(&words.filled(width as f32 / MIN_EM, count))?
        {
            best.0 = block;
        }
        Ok(best)
    }

    fn draw(&self, block: &Block, layout: &TextLayout) -> Result<Stamp<'static>, Cancelled> {
        let size = layout.rotated();
        let mut text = Mask::new(size);
        let mut filler = Filler::new();
        let mut outline = Flattened::default();
        let mut line = (self.watermark.outline == Outline::Line).then(|| Mask::new(size));
        for glyph in &block.glyphs {
            self.cancel.check()?;
            let font = self.fonts.font(glyph.face);
            let scale = layout.em / f32::from(font.units_per_em().max(1));
            let (x, y) = (glyph.x * layout.em, glyph.y * layout.em);
            if !layout.is_near(size, layout.place(x, y), block.reach * layout.em) {
                continue;
            }
            let place = |right: f32, up: f32| layout.place(x + right * scale, y - up * scale);
            let id = GlyphId::new(glyph.id);
            flatten(font, id, place, FINE, &mut outline);
            if outline.is_empty() {
                continue;
            }
            filler.fill(&outline, &mut text, self.cancel)?;
            if let Some(mask) = &mut line {
                // The wider the pen, the longer each line takes, and the less visible a corner is.
                let tolerance = (layout.border.radius / 32.0).clamp(FINE, 0.5);
                flatten(font, id, place, tolerance, &mut outline);
                stroke(&outline, layout.border.radius, mask, self.cancel)?;
            }
        }
        let color = self.watermark.color;
        let behind = match line {
            Some(line) => line,
            None if self.watermark.outline == Outline::None => return Ok(Stamp::Mask(text, color)),
            None => self.shadow(&text, &layout.border)?,
        };
        let layers = [(&behind, color.contrast()), (&text, color)];
        Ok(Stamp::Picture(Cow::Owned(layered(layers, self.cancel)?)))
    }

    fn shadow(&self, text: &Mask, border: &Border) -> Result<Mask, Cancelled> {
        let mut shadow = blur(text, border.offset, border.blur, self.cancel)?;
        // Letters are thinner than the blur is wide.
        for sample in &mut shadow.coverage {
            *sample = sample.saturating_mul(2);
        }
        Ok(shadow)
    }
}

/// The smallest em that a text is shrunk to, in pixels: a smaller text is illegible.
const MIN_EM: f32 = 4.0;

/// The space that a text may take.
struct Space {
    /// The em that is requested, in pixels, without regard to a scale.
    em: f32,
    /// The most pixels after rotation.
    available: Size,
    /// The width before rotation by a scale.
    width: Option<u32>,
    outline: Outline,
    rotation: Rotation,
}

impl Space {
    fn new(watermark: &TextWatermark, placement: &Placement, image: Size) -> Space {
        Space {
            em: watermark.size.em(image),
            available: placement.available(image),
            width: placement.width(image),
            outline: watermark.outline,
            rotation: placement.rotation(),
        }
    }

    /// The layout in the requested size, or in the largest smaller one that fits; `None`
    /// if it does not fit in the smallest one.
    fn largest(&self, block: &Block) -> Option<TextLayout> {
        let at = |em: f32| self.at(block, em);
        let fits = |layout: &TextLayout| {
            layout.is_within(self.available)
                && self.width.is_none_or(|width| layout.upright().0 <= width)
        };
        let asked = match self.width {
            // The largest em: an outline takes a part of the width.
            Some(width) => width as f32 / (block.bounds.right - block.bounds.left).max(1e-3),
            None => self.em,
        };
        let (mut least, mut most) = (MIN_EM, asked.max(MIN_EM));
        if fits(&at(most)) {
            return Some(at(most));
        }
        if !fits(&at(least)) {
            return None;
        }
        // The em is found to a thousandth.
        for _ in 0..10 + (most / least).log2() as u32 {
            let middle = f32::midpoint(least, most);
            if fits(&at(middle)) {
                least = middle;
            } else {
                most = middle;
            }
        }
        Some(at(least))
    }

    /// The layout in the smallest size; text that does not fit is cut off.
    fn cut(&self, block: &Block) -> TextLayout {
        let mut layout = self.at(block, MIN_EM);
        layout.cut(self.available, block.is_right_to_left);
        layout
    }

    /// The pixels that lines of the height of `block` may be wide in the smallest size; `None` if
    /// there is not enough space for their height.
    fn line_width(&self, block: &Block) -> Option<u32> {
        let mut layout = self.at(block, MIN_EM);
        let height = layout.size.1;
        // Wider than any image's diagonal.
        layout.size.0 = 1 << 15;
        layout.cut(self.available, false);
        (layout.size.1 == height).then_some(layout.size.0)
    }

    fn at(&self, block: &Block, em: f32) -> TextLayout {
        TextLayout::at(block, em, self.outline, self.rotation)
    }
}

/// A text's final size, and the part of it that is drawn.
struct TextLayout {
    /// The height of the em in pixels.
    em: f32,
    /// The part of the block that is drawn, in whole pixels of the block: left, top and size.
    left: f32,
    top: f32,
    size: Size,
    border: Border,
    rotation: Rotation,
}

impl TextLayout {
    fn at(block: &Block, em: f32, outline: Outline, rotation: Rotation) -> TextLayout {
        let (left, top) = (
            (block.bounds.left * em).floor(),
            (block.bounds.top * em).floor(),
        );
        let (right, bottom) = (
            (block.bounds.right * em).ceil(),
            (block.bounds.bottom * em).ceil(),
        );
        TextLayout {
            em,
            left,
            top,
            size: (
                (right - left).max(1.0) as u32,
                (bottom - top).max(1.0) as u32,
            ),
            border: Border::of(outline, em),
            rotation,
        }
    }

    /// The size before rotation, with the border.
    fn upright(&self) -> Size {
        self.border.around(self.size)
    }

    /// The size of the stamp: after rotation, with the border.
    fn rotated(&self) -> Size {
        self.border.around(self.rotated_text())
    }

    fn rotated_text(&self) -> Size {
        let size = (f64::from(self.size.0), f64::from(self.size.1));
        let (width, height) = self.rotation.bounds(size);
        // Rounded up, except for an error of rounding.
        ((width - 1e-6).ceil() as u32, (height - 1e-6).ceil() as u32)
    }

    fn is_within(&self, available: Size) -> bool {
        let (width, height) = self.rotated();
        width <= available.0 && height <= available.1
    }

    /// Cuts off the parts that do not fit: the ends of the lines, and the last lines.
    fn cut(&mut self, available: Size, is_right_to_left: bool) {
        let whole = self.size;
        let border = self.border.around((0, 0));
        let inside = (
            available.0.saturating_sub(border.0).max(1),
            available.1.saturating_sub(border.1).max(1),
        );
        if self.rotation.is_identity() {
            self.size = (whole.0.min(inside.0), whole.1.min(inside.1));
        } else {
            // If the lines' height takes at most half of the space, their length has space at any
            // rotation.
            self.size.1 = whole.1.min(inside.0.min(inside.1).div_ceil(2));
            let (mut least, mut most) = (1, whole.0);
            while least < most {
                self.size.0 = least + (most - least).div_ceil(2);
                if self.is_within(available) {
                    least = self.size.0;
                } else {
                    most = self.size.0 - 1;
                }
            }
            self.size.0 = least;
        }
        if is_right_to_left {
            self.left += (whole.0 - self.size.0) as f32;
        }
    }

    /// Maps a place in the block to its place in the stamp, both in pixels.
    fn place(&self, x: f32, y: f32) -> path::Point {
        let half = |length: u32| f64::from(length) / 2.0;
        let (x, y) = self.rotation.apply((
            f64::from(x - self.left) - half(self.size.0),
            f64::from(y - self.top) - half(self.size.1),
        ));
        let (width, height) = self.rotated_text();
        let before = f64::from(self.border.before);
        (
            (x + half(width) + before) as f32,
            (y + half(height) + before) as f32,
        )
    }

    /// Whether a glyph may be visible in the stamp.
    fn is_near(&self, size: Size, (x, y): path::Point, reach: f32) -> bool {
        let reach = 2.0 * reach + self.border.radius + 2.0; // a corner is 1.5 times as far away
        (-reach..size.0 as f32 + reach).contains(&x) && (-reach..size.1 as f32 + reach).contains(&y)
    }
}

/// The border that an outline or shadow adds around a text, in pixels.
struct Border {
    /// The width on the left and above.
    before: u32,
    /// The width on the right and below.
    after: u32,
    /// The radius of the pen.
    radius: f32,
    /// The offset of the shadow to the right and down.
    offset: u32,
    /// The radius of the shadow's blur.
    blur: u32,
}

impl Border {
    fn of(outline: Outline, em: f32) -> Border {
        let none = Border {
            before: 0,
            after: 0,
            radius: 0.0,
            offset: 0,
            blur: 0,
        };
        match outline {
            Outline::None => none,
            Outline::Line => {
                // A thinner line would be lost, since chroma has half the resolution.
                let radius = (em / 16.0).max(1.0);
                let width = (radius + 0.5).ceil() as u32;
                Border {
                    before: width,
                    after: width,
                    radius,
                    ..none
                }
            }
            Outline::Shadow => {
                let part = |share: f32| (em / share).round().max(1.0) as u32;
                let (offset, blur) = (part(20.0), part(24.0));
                // The shadow is blurred twice.
                Border {
                    before: (2 * blur).saturating_sub(offset),
                    after: 2 * blur + offset,
                    offset,
                    blur,
                    ..none
                }
            }
        }
    }

    fn around(&self, size: Size) -> Size {
        let width = self.before + self.after;
        (size.0 + width, size.1 + width)
    }
}

/// Combines masks of one size to a picture, so that its opacity applies to the whole.
fn layered(masks: [(&Mask, Color); 2], cancel: &Cancel<'_>) -> Result<Image, Cancelled> {
    let (width, height) = (masks[0].0.width, masks[0].0.height);
    let mut image = Image {
        width,
        height,
        layout: Layout::Rgba,
        pixels: vec![0; width as usize * height as usize * 4],
    };
    for (mask, color) in masks {
        for y in 0..height {
            cancel.check()?;
            let row = mask.row(y);
            blend_row(&mut image, 0, y, width, |x| (color, weight(row[x], 100)));
        }
    }
    Ok(image)
}
