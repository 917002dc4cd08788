//! Text over an image: shaped, laid out, drawn as a mask of coverage, blended.

mod block;
mod font;
mod path;
mod raster;
mod shape;
#[cfg(test)]
mod tests;

pub use font::{FontError, Fonts};

use super::blend::{blend_row, weight};
use super::color::Color;
use super::placement::Placement;
use super::position::{Side, Size};
use super::stamp::{Mask, Stamp};
use super::turn::Turn;
use crate::image::{Image, Layout};
use block::{Block, stack};
use harfrust::GlyphId;
use path::{FINE, Flattened, flatten};
use raster::{Filler, blur, trace};
use shape::shape_line;
use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use towebp_encoder::{Cancel, Cancelled};

/// A text to draw.
#[derive(Clone, Debug, PartialEq)]
pub struct TextWatermark {
    /// Not empty. `\n`, U+2028 and U+2029 begin a new line.
    pub text: String,
    /// Height of the em in pixels, 8 to 200. It plays no part where the placement has a scale.
    pub size: u16,
    /// Its colour.
    pub color: Color,
    /// What sets it off from its ground.
    pub outline: Outline,
}

/// What sets a text off from its ground, in black or white, whichever differs more from the text.
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
    /// What [`Outline::parse`] accepts, for messages.
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

/// Why a text cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextError {
    /// No font has these characters, or they are control characters: each once, in the order of the text.
    MissingCharacters(Vec<char>),
    /// Nobody waits for the image any more.
    Cancelled,
    /// Something panicked: a fault of ours, or of what reads a font that was added.
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

/// Draws `watermark`. A text that does not fit is drawn smaller, down to 4 pixels an em; what does not fit even then is
/// cut off at its end.
///
/// # Errors
/// [`TextError`]; the image is then unchanged, or has a part of the text if it is no longer waited for.
pub fn draw_text(
    image: &mut Image,
    watermark: &TextWatermark,
    fonts: &Fonts,
    placement: &Placement,
    cancel: &Cancel<'_>,
) -> Result<(), TextError> {
    let image_size = (image.width, image.height);
    // Whatever a font that was added makes of its shaper: one request fails, and says so.
    let prepared = catch_unwind(AssertUnwindSafe(|| {
        let pen = Pen {
            watermark,
            fonts,
            cancel,
        };
        pen.prepare(placement, image_size)
    }));
    if let Some((stamp, upright)) = prepared.unwrap_or(Err(TextError::Panicked))? {
        stamp.put(image, placement, upright, cancel)?;
    }
    Ok(())
}

/// What draws, and for whom.
struct Pen<'a> {
    watermark: &'a TextWatermark,
    fonts: &'a Fonts,
    cancel: &'a Cancel<'a>,
}

impl Pen<'_> {
    /// The text as a stamp, and its size before it was turned. None if it is nothing but spaces.
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
        let lines = self.shape_lines()?;
        let Some(block) = stack(self.fonts, lines, side, self.cancel)? else {
            return Ok(None);
        };
        let sheet = Sheet::fitting(&block, self.watermark, placement, image);
        Ok(Some((self.draw(&block, &sheet)?, sheet.upright())))
    }

    fn shape_lines(&self) -> Result<Vec<shape::Line>, TextError> {
        let text = &self.watermark.text;
        let mut missing = Vec::new();
        let mut lines = Vec::new();
        for line in text.split(['\n', '\u{2028}', '\u{2029}']) {
            self.cancel.check()?;
            let line = line.strip_suffix('\r').unwrap_or(line);
            for control in line.chars().filter(|c| c.is_control() && *c != '\t') {
                if !missing.contains(&control) {
                    missing.push(control);
                }
            }
            // What remains of them are tabs.
            let line = line.replace(char::is_control, " ");
            lines.push(shape_line(self.fonts, &line, &mut missing));
        }
        if missing.is_empty() {
            return Ok(lines);
        }
        missing.sort_by_cached_key(|character| text.find(*character));
        Err(TextError::MissingCharacters(missing))
    }

    fn draw(&self, block: &Block, sheet: &Sheet) -> Result<Stamp<'static>, Cancelled> {
        let size = sheet.turned();
        let mut text = Mask::new(size);
        let mut filler = Filler::new();
        let mut outline = Flattened::default();
        let mut line = (self.watermark.outline == Outline::Line).then(|| Mask::new(size));
        for glyph in &block.glyphs {
            self.cancel.check()?;
            let font = self.fonts.font(glyph.face);
            let scale = sheet.em / f32::from(font.units_per_em().max(1));
            let (x, y) = (glyph.x * sheet.em, glyph.y * sheet.em);
            if !sheet.is_near(size, sheet.place(x, y), block.reach * sheet.em) {
                continue;
            }
            let place = |right: f32, up: f32| sheet.place(x + right * scale, y - up * scale);
            let id = GlyphId::new(glyph.id);
            flatten(font, id, place, FINE, &mut outline);
            if outline.is_empty() {
                continue;
            }
            filler.fill(&outline, &mut text, self.cancel)?;
            if let Some(mask) = &mut line {
                // The wider the pen, the longer each line takes, and the less a corner shows.
                let tolerance = (sheet.frame.radius / 32.0).clamp(FINE, 0.5);
                flatten(font, id, place, tolerance, &mut outline);
                trace(&outline, sheet.frame.radius, mask, self.cancel)?;
            }
        }
        let color = self.watermark.color;
        let behind = match line {
            Some(line) => line,
            None if self.watermark.outline == Outline::None => return Ok(Stamp::Mask(text, color)),
            None => self.shadow(&text, &sheet.frame)?,
        };
        let layers = [(&behind, color.contrast()), (&text, color)];
        Ok(Stamp::Picture(Cow::Owned(layered(layers, self.cancel)?)))
    }

    fn shadow(&self, text: &Mask, frame: &Frame) -> Result<Mask, Cancelled> {
        let mut shadow = blur(text, frame.offset, frame.blur, self.cancel)?;
        // Letters are thinner than the blur is wide.
        for sample in &mut shadow.coverage {
            *sample = sample.saturating_mul(2);
        }
        Ok(shadow)
    }
}

/// The smallest em that a text is shrunk to: below it nobody can read it.
const MIN_EM: f32 = 4.0;

/// A text's final size, and the part of it that is drawn.
struct Sheet {
    /// In pixels.
    em: f32,
    /// The part of the block that is drawn, in whole pixels of the block: left, top, and size.
    left: f32,
    top: f32,
    size: Size,
    frame: Frame,
    turn: Turn,
}

impl Sheet {
    /// At the size that was asked for, or the largest smaller one that fits; cut if none does.
    fn fitting(
        block: &Block,
        watermark: &TextWatermark,
        placement: &Placement,
        image: Size,
    ) -> Sheet {
        let room = placement.room(image);
        let width = placement.width(image);
        let at = |em: f32| Sheet::at(block, em, watermark.outline, placement.turn());
        let fits = |sheet: &Sheet| {
            let (turned, upright) = (sheet.turned(), sheet.upright());
            turned.0 <= room.0 && turned.1 <= room.1 && width.is_none_or(|width| upright.0 <= width)
        };
        let asked = match width {
            // At most, since an outline takes some of it.
            Some(width) => width as f32 / (block.ink.right - block.ink.left).max(1e-3),
            None => f32::from(watermark.size),
        };
        let (mut least, mut most) = (MIN_EM, asked.max(MIN_EM));
        if fits(&at(most)) {
            return at(most);
        }
        if !fits(&at(least)) {
            let mut sheet = at(least);
            sheet.cut(room, block.is_right_to_left);
            return sheet;
        }
        // To a thousandth of the size.
        for _ in 0..10 + (most / least).log2() as u32 {
            let middle = f32::midpoint(least, most);
            if fits(&at(middle)) {
                least = middle;
            } else {
                most = middle;
            }
        }
        at(least)
    }

    fn at(block: &Block, em: f32, outline: Outline, turn: Turn) -> Sheet {
        let (left, top) = ((block.ink.left * em).floor(), (block.ink.top * em).floor());
        let (right, bottom) = (
            (block.ink.right * em).ceil(),
            (block.ink.bottom * em).ceil(),
        );
        Sheet {
            em,
            left,
            top,
            size: (
                (right - left).max(1.0) as u32,
                (bottom - top).max(1.0) as u32,
            ),
            frame: Frame::of(outline, em),
            turn,
        }
    }

    /// Before it is turned, with its frame.
    fn upright(&self) -> Size {
        self.frame.around(self.size)
    }

    /// As the stamp will be.
    fn turned(&self) -> Size {
        self.frame.around(self.turned_text())
    }

    fn turned_text(&self) -> Size {
        let size = (f64::from(self.size.0), f64::from(self.size.1));
        let (width, height) = self.turn.bounds(size);
        // But for what is an error of rounding.
        ((width - 1e-6).ceil() as u32, (height - 1e-6).ceil() as u32)
    }

    /// Takes off what does not fit: the end of the lines, and the last ones.
    fn cut(&mut self, room: Size, is_right_to_left: bool) {
        let whole = self.size;
        let frame = self.frame.around((0, 0));
        let inside = (
            room.0.saturating_sub(frame.0).max(1),
            room.1.saturating_sub(frame.1).max(1),
        );
        if self.turn.is_none() {
            self.size = (whole.0.min(inside.0), whole.1.min(inside.1));
        } else {
            // Half of the room for the lines' height leaves room for their length, whatever the turn.
            self.size.1 = whole.1.min(inside.0.min(inside.1).div_ceil(2));
            let (mut least, mut most) = (1, whole.0);
            while least < most {
                self.size.0 = least + (most - least).div_ceil(2);
                let turned = self.turned();
                if turned.0 <= room.0 && turned.1 <= room.1 {
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

    /// From pixels of the block to those of the stamp.
    fn place(&self, x: f32, y: f32) -> path::Point {
        let half = |length: u32| f64::from(length) / 2.0;
        let (x, y) = self.turn.apply((
            f64::from(x - self.left) - half(self.size.0),
            f64::from(y - self.top) - half(self.size.1),
        ));
        let (width, height) = self.turned_text();
        let before = f64::from(self.frame.before);
        (
            (x + half(width) + before) as f32,
            (y + half(height) + before) as f32,
        )
    }

    /// Whether a glyph may have ink in the stamp.
    fn is_near(&self, size: Size, (x, y): path::Point, reach: f32) -> bool {
        let reach = 2.0 * reach + self.frame.radius + 2.0; // to a corner it is 1.5 times as far
        (-reach..size.0 as f32 + reach).contains(&x) && (-reach..size.1 as f32 + reach).contains(&y)
    }
}

/// What an outline takes around a text, in pixels.
struct Frame {
    /// On the left and above.
    before: u32,
    /// On the right and below.
    after: u32,
    /// Of the pen.
    radius: f32,
    /// Of the shadow, to the right and down.
    offset: u32,
    blur: u32,
}

impl Frame {
    fn of(outline: Outline, em: f32) -> Frame {
        let none = Frame {
            before: 0,
            after: 0,
            radius: 0.0,
            offset: 0,
            blur: 0,
        };
        match outline {
            Outline::None => none,
            Outline::Line => {
                // A thinner line is lost where chroma has half the resolution.
                let radius = (em / 16.0).max(1.0);
                let width = (radius + 0.5).ceil() as u32;
                Frame {
                    before: width,
                    after: width,
                    radius,
                    ..none
                }
            }
            Outline::Shadow => {
                let part = |share: f32| (em / share).round().max(1.0) as u32;
                let (offset, blur) = (part(20.0), part(24.0));
                // It is blurred twice.
                Frame {
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

/// Masks of one size over each other, as one picture: its opacity is that of the whole.
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
