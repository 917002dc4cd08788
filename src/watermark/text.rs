//! Text over an image: laid out with kerning, drawn as a mask of coverage, blended in one colour.

use super::blend::{blend_row, weight};
use super::color::Color;
use super::position::{Position, Size};
use crate::image::{Cancelled, Image, Patience};
use ab_glyph::{Font, FontRef, Glyph, GlyphId, PxScale, Rect, ScaleFont, point};
use std::fmt;
use std::sync::LazyLock;

/// A text to draw.
#[derive(Clone, Debug, PartialEq)]
pub struct TextWatermark {
    /// Not empty. `\n` begins a new line.
    pub text: String,
    /// Height of the em in pixels, 8 to 200.
    pub size: u16,
    /// Its colour.
    pub color: Color,
}

/// Why a text cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextError {
    /// No font has these characters, or they are control characters: each once, in the order of the text.
    MissingCharacters(Vec<char>),
    /// Nobody waits for the image any more.
    Cancelled,
}

impl From<Cancelled> for TextError {
    fn from(Cancelled: Cancelled) -> TextError {
        TextError::Cancelled
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TextError::MissingCharacters(missing) = self else {
            return f.write_str("Drawing the text was stopped before its end.");
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

/// Draws `watermark` at an opacity of 0 to 100. A text that does not fit is drawn smaller, down to 4 pixels an em; what
/// does not fit even then is cut off at its end.
///
/// # Errors
/// [`TextError`]; the image is then unchanged, or has a part of the text if it is no longer waited for.
pub fn draw_text(
    image: &mut Image,
    watermark: &TextWatermark,
    position: Position,
    opacity: u8,
    patience: &Patience<'_>,
) -> Result<(), TextError> {
    let missing = missing_characters(&watermark.text);
    if !missing.is_empty() {
        return Err(TextError::MissingCharacters(missing));
    }
    let image_size = (image.width, image.height);
    let Some(lines) = fitting_layout(watermark, position, position.room(image_size), patience)?
    else {
        return Ok(()); // nothing but spaces
    };
    let (left, top) = position.place(image_size, lines.size);
    let mask = draw_mask(&lines, (image.width - left, image.height - top), patience)?;
    for (y, row) in (top..).zip(mask.coverage.chunks_exact(mask.width as usize)) {
        patience.check()?;
        blend_row(image, left, y, mask.width, |x| {
            (watermark.color, weight(row[x], opacity))
        });
    }
    Ok(())
}

/// The smallest em that a text is shrunk to: below it nobody can read it.
const MIN_EM: f32 = 4.0;

static FONT: LazyLock<FontRef<'static>> = LazyLock::new(|| {
    FontRef::try_from_slice(include_bytes!("../../fonts/DejaVuSans.ttf"))
        .expect("the embedded font is whole")
});

fn missing_characters(text: &str) -> Vec<char> {
    let mut missing = Vec::new();
    for character in text.lines().flat_map(str::chars) {
        if !can_draw(character) && !missing.contains(&character) {
            missing.push(character);
        }
    }
    missing
}

fn can_draw(character: char) -> bool {
    if character.is_control() {
        return character == '\t';
    }
    character.is_whitespace()
        || (FONT.glyph_id(character) != GlyphId(0) && !needs_shaping(character))
}

/// Scripts that are written from right to left: the font has some of them, but letters would come out reversed and unjoined.
fn needs_shaping(character: char) -> bool {
    // Unicode's blocks with the bidirectional classes R and AL.
    matches!(
        u32::from(character),
        0x0590..=0x08FF | 0xFB1D..=0xFDFF | 0xFE70..=0xFEFF | 0x10800..=0x10FFF | 0x1E800..=0x1EFFF
    )
}

/// All glyphs that have ink, and the box of that ink.
struct Lines {
    /// Without their outlines, which take some hundred times as much memory: a caller may send a very long text.
    glyphs: Vec<Glyph>,
    /// The left and top edge of the ink, in the glyphs' coordinates.
    origin: (f32, f32),
    size: Size,
}

/// The text at the size that was asked for, or the largest smaller one that fits. None if there is no ink.
fn fitting_layout(
    watermark: &TextWatermark,
    position: Position,
    room: Size,
    patience: &Patience<'_>,
) -> Result<Option<Lines>, Cancelled> {
    let mut em = f32::from(watermark.size);
    loop {
        let Some(lines) = lay_out(&watermark.text, em, position, patience)? else {
            return Ok(None);
        };
        let ratio = (room.0 as f32 / lines.size.0 as f32).min(room.1 as f32 / lines.size.1 as f32);
        if ratio >= 1.0 || em <= MIN_EM {
            return Ok(Some(lines));
        }
        // Edges lie on whole pixels, so the size follows the em in steps: go on a little if one step was not enough.
        em = (em * ratio.min(0.99)).max(MIN_EM);
    }
}

fn lay_out(
    text: &str,
    em: f32,
    position: Position,
    patience: &Patience<'_>,
) -> Result<Option<Lines>, Cancelled> {
    let units_per_em = FONT
        .units_per_em()
        .expect("the embedded font has a head table");
    // PxScale is the height from descent to ascent, not the em.
    let font = FONT.as_scaled(PxScale::from(em * FONT.height_unscaled() / units_per_em));
    let widths: Vec<f32> = text.lines().map(|line| advance(&font, line)).collect();
    let widest = widths.iter().copied().fold(0.0, f32::max);
    let mut glyphs = Vec::new();
    let mut ink: Option<Rect> = None;
    let mut baseline = 0.0;
    for (line, width) in text.lines().zip(widths) {
        let start = match position {
            Position::TopLeft | Position::BottomLeft => 0.0,
            Position::TopRight | Position::BottomRight => widest - width,
            Position::Center => (widest - width) / 2.0,
        };
        walk(&font, line, |id, x| {
            if patience.check().is_err() {
                return; // it is asked again below
            }
            let glyph = id.with_scale_and_position(font.scale(), point(start + x, baseline));
            if let Some(outlined) = font.outline_glyph(glyph.clone()) {
                let bounds = outlined.px_bounds();
                ink = Some(ink.map_or(bounds, |ink| union(ink, bounds)));
                glyphs.push(glyph);
            }
        });
        patience.check()?;
        baseline += font.height() + font.line_gap();
    }
    let Some(ink) = ink else {
        return Ok(None);
    };
    let size = (ink.width().max(1.0) as u32, ink.height().max(1.0) as u32);
    Ok(Some(Lines {
        glyphs,
        origin: (ink.min.x, ink.min.y),
        size,
    }))
}

fn union(a: Rect, b: Rect) -> Rect {
    Rect {
        min: point(a.min.x.min(b.min.x), a.min.y.min(b.min.y)),
        max: point(a.max.x.max(b.max.x), a.max.y.max(b.max.y)),
    }
}

/// The width of a line in pixels, kerning included.
fn advance<F: Font, S: ScaleFont<F>>(font: &S, line: &str) -> f32 {
    walk(font, line, |_, _| {})
}

/// Calls `visit` with each glyph and where it begins; returns where the last one ends.
fn walk<F: Font, S: ScaleFont<F>>(
    font: &S,
    line: &str,
    mut visit: impl FnMut(GlyphId, f32),
) -> f32 {
    let mut x = 0.0;
    let mut previous = None;
    for character in line.chars() {
        let id = font.glyph_id(if character.is_whitespace() {
            ' '
        } else {
            character
        });
        if let Some(previous) = previous {
            x += font.kern(previous, id);
        }
        visit(id, x);
        x += font.h_advance(id);
        previous = Some(id);
    }
    x
}

/// How much of each pixel is covered, 0 to 255.
struct Mask {
    width: u32,
    coverage: Vec<u8>,
}

/// Draws the part of the ink that lies within `visible` from its origin.
fn draw_mask(lines: &Lines, visible: Size, patience: &Patience<'_>) -> Result<Mask, Cancelled> {
    let (width, height) = (lines.size.0.min(visible.0), lines.size.1.min(visible.1));
    let mut coverage = vec![0; width as usize * height as usize];
    let outlined = lines
        .glyphs
        .iter()
        .filter_map(|glyph| FONT.outline_glyph(glyph.clone()));
    for glyph in outlined {
        patience.check()?;
        let bounds = glyph.px_bounds();
        let (left, top) = (
            (bounds.min.x - lines.origin.0) as u32,
            (bounds.min.y - lines.origin.1) as u32,
        );
        if left >= width || top >= height {
            continue;
        }
        glyph.draw(|x, y, covered| {
            let (x, y) = (left + x, top + y);
            if x < width && y < height {
                let sample = &mut coverage[y as usize * width as usize + x as usize];
                // Glyphs that touch do not darken each other.
                *sample = (*sample).max((covered.clamp(0.0, 1.0) * 255.0).round() as u8);
            }
        });
    }
    Ok(Mask { width, coverage })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Layout;

    fn watermark(text: &str, size: u16) -> TextWatermark {
        TextWatermark {
            text: text.to_owned(),
            size,
            color: Color::new(255, 0, 0),
        }
    }

    fn draw(
        image: &mut Image,
        watermark: &TextWatermark,
        position: Position,
        opacity: u8,
    ) -> Result<(), TextError> {
        draw_text(image, watermark, position, opacity, &Patience::endless())
    }

    fn black(width: u32, height: u32) -> Image {
        Image {
            width,
            height,
            layout: Layout::Rgb,
            pixels: vec![0; (width * height * 3) as usize],
        }
    }

    /// Left, top, right and bottom edge of what is not black.
    fn ink(image: &Image) -> Option<(u32, u32, u32, u32)> {
        let marked = (0..image.height)
            .flat_map(|y| (0..image.width).map(move |x| (x, y)))
            .filter(|(x, y)| image.pixels[(y * image.width + x) as usize * 3] != 0);
        marked.fold(None, |ink, (x, y)| {
            let (left, top, right, bottom) = ink.unwrap_or((x, y, x, y));
            Some((left.min(x), top.min(y), right.max(x + 1), bottom.max(y + 1)))
        })
    }

    #[test]
    fn the_size_is_the_height_of_the_em() {
        let lines = lay_out("H", 100.0, Position::TopLeft, &Patience::endless())
            .expect("nobody leaves")
            .expect("H has ink");
        // Capitals of DejaVu Sans are 1493 of 2048 units high.
        assert_eq!(lines.size.1, 73);
    }

    #[test]
    fn kerning_draws_pairs_together() {
        let font = FONT.as_scaled(PxScale::from(100.0));
        let apart = advance(&font, "A") + advance(&font, "V");
        let pair = advance(&font, "AV");
        assert!(pair < apart - 4.0, "AV takes {pair}, A and V take {apart}");
    }

    #[test]
    fn the_ink_touches_the_margin_in_every_corner() {
        for (position, corner) in [
            (Position::TopLeft, (true, true)),
            (Position::TopRight, (false, true)),
            (Position::BottomLeft, (true, false)),
            (Position::BottomRight, (false, false)),
        ] {
            let mut image = black(300, 200);
            draw(&mut image, &watermark("Hgj\nlonger", 24), position, 100)
                .expect("these letters exist");
            let (left, top, right, bottom) = ink(&image).expect("something was drawn");
            let (x, y) = corner;
            // The outermost pixels may be covered by less than half a level.
            let across = if x { left - 8 } else { 292 - right };
            let down = if y { top - 8 } else { 192 - bottom };
            assert!(
                across <= 1 && down <= 1,
                "{position:?}: ink {left}, {top} to {right}, {bottom}"
            );
        }
    }

    #[test]
    fn the_centre_is_central() {
        let mut image = black(301, 201);
        draw(&mut image, &watermark("HOH", 40), Position::Center, 100)
            .expect("these letters exist");
        let (left, top, right, bottom) = ink(&image).expect("something was drawn");
        assert!(
            left.abs_diff(301 - right) <= 2 && top.abs_diff(201 - bottom) <= 2,
            "{left} {top} {right} {bottom}"
        );
    }

    #[test]
    fn full_opacity_gives_exactly_the_colour_and_none_leaves_the_image() {
        let mut image = black(200, 100);
        let before = image.clone();
        draw(&mut image, &watermark("███", 40), Position::Center, 0).expect("a full block exists");
        assert_eq!(image, before);
        draw(&mut image, &watermark("███", 40), Position::Center, 100)
            .expect("a full block exists");
        let (_, _, right, bottom) = ink(&image).expect("something was drawn");
        let inside = ((bottom - 10) * 200 + right - 10) as usize * 3;
        assert_eq!(image.pixels[inside..inside + 3], [255, 0, 0]);
    }

    #[test]
    fn edges_are_smooth() {
        let mut image = black(200, 100);
        draw(&mut image, &watermark("Ol/", 60), Position::Center, 100)
            .expect("these letters exist");
        let partial = image
            .pixels
            .iter()
            .step_by(3)
            .filter(|&&red| red != 0 && red != 255)
            .count();
        assert!(
            partial > 50,
            "only {partial} pixels between nothing and full"
        );
    }

    #[test]
    fn a_text_that_is_too_wide_is_drawn_smaller() {
        let mut image = black(200, 100);
        let long = "The quick brown fox jumps over the lazy dog";
        draw(&mut image, &watermark(long, 200), Position::BottomLeft, 100)
            .expect("these letters exist");
        let (left, top, right, bottom) = ink(&image).expect("something was drawn");
        assert!(
            left >= 8 && right <= 192 && top >= 8 && bottom <= 92,
            "{left}, {top} to {right}, {bottom}"
        );
        assert!(
            right - left > 170,
            "only {} of 184 pixels are used",
            right - left
        );
    }

    #[test]
    fn tiny_images_and_endless_texts_do_no_harm() {
        let endless = "W".repeat(5000);
        for (width, height) in [(1, 1), (2, 300), (300, 1), (40, 40)] {
            for position in [Position::TopLeft, Position::BottomRight, Position::Center] {
                for text in ["x", "two\nlines", &endless] {
                    let mut image = black(width, height);
                    draw(&mut image, &watermark(text, 200), position, 100)
                        .expect("these letters exist");
                }
            }
        }
    }

    #[test]
    fn characters_that_cannot_be_drawn_are_named_once_in_order() {
        let mut image = black(50, 50);
        let before = image.clone();
        let error = draw(
            &mut image,
            &watermark("a漢b字漢\u{7}", 24),
            Position::Center,
            100,
        );
        assert_eq!(
            error,
            Err(TextError::MissingCharacters(vec!['漢', '字', '\u{7}']))
        );
        assert_eq!(image, before);
        assert_eq!(
            error.expect_err("as above").to_string(),
            "The text has characters that cannot be drawn: 漢 (U+6F22), 字 (U+5B57), U+0007."
        );
    }

    #[test]
    fn scripts_that_would_come_out_reversed_are_refused() {
        assert_eq!(missing_characters("שלום a"), ['ש', 'ל', 'ו', 'ם']);
        let missing = missing_characters("Ünï Ελλάδα Москва Việt © ™ € → ★");
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn spaces_tabs_and_line_ends_are_no_characters_to_miss() {
        let mut image = black(50, 50);
        let before = image.clone();
        draw(
            &mut image,
            &watermark(" \t\r\n\u{a0}\u{2009}\n", 24),
            Position::Center,
            100,
        )
        .expect("only spaces");
        assert_eq!(image, before);
    }
}
