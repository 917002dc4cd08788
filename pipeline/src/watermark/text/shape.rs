//! Shaping: from a line of text to glyphs and their places.
//!
//! The Unicode Bidirectional Algorithm (UAX #9) divides a line of a paragraph into runs of one
//! direction, in visual order. These are divided by script (UAX #24), and shaped: letters are
//! joined, reordered, replaced by ligatures and kerned, and marks are put onto their letters. Where
//! a font lacks a character, the cluster that it belongs to is shaped again with the next font.

use super::font::{Face, Fonts};
use harfrust::unicode::script;
use harfrust::{Buffer, BufferFlags, Direction, GlyphId, Script, ShapeOptions, ShaperFont, shape};
use std::ops::Range;
use towebp_encoder::Cancel;
use unicode_bidi::ParagraphBidiInfo;

/// A glyph, and the place of its origin. Lengths are in ems, x to the right and y downwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Glyph {
    pub(super) face: Face,
    pub(super) id: u32,
    pub(super) x: f32,
    pub(super) y: f32,
}

/// A line that is ready to be placed. Lengths are in ems.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    /// The glyphs from left to right, including blank ones.
    pub(super) glyphs: Vec<Glyph>,
    pub(super) width: f32,
    /// The height above its baseline, by the fonts' metrics.
    pub(super) ascent: f32,
    /// The depth below its baseline, and the gap to the next line.
    pub(super) descent: f32,
    /// Whether its first letter is of a script that runs from right to left.
    pub(super) is_right_to_left: bool,
}

/// The number of letters of a line that are shaped. So many of the narrowest ones at the smallest
/// em are wider than the widest picture, so that the rest would not be visible.
const MAX_LETTERS: usize = 16_384;

/// A paragraph of a text, which is shaped as one line or as several.
pub(super) struct Paragraph<'a> {
    fonts: &'a Fonts,
    text: &'a str,
    bidi: ParagraphBidiInfo<'a>,
    cancel: &'a Cancel<'a>,
}

impl<'a> Paragraph<'a> {
    /// A paragraph of a text that has no line break and no control character. Once it is cancelled,
    /// its lines are incomplete.
    pub(super) fn new(fonts: &'a Fonts, text: &'a str, cancel: &'a Cancel<'a>) -> Paragraph<'a> {
        let end = text.char_indices().nth(MAX_LETTERS);
        let text = end.map_or(text, |(index, _)| &text[..index]);
        Paragraph {
            fonts,
            text,
            bidi: ParagraphBidiInfo::new(text, None),
            cancel,
        }
    }

    /// The text, as far as it is shaped.
    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    /// Shapes the whole paragraph as one line. Characters that no font has are added to `missing`,
    /// each once.
    pub(super) fn as_line(&self, missing: &mut Vec<char>) -> Line {
        let mut shaper = self.shaper(missing);
        shaper.shape_line(&self.bidi, 0..self.text.len());
        shaper.line
    }

    /// Shapes a part of the paragraph, in bytes, as a line of its own. All of its characters are
    /// known to be in a font.
    pub(super) fn part(&self, range: Range<usize>) -> Line {
        let mut missing = Vec::new();
        let mut shaper = self.shaper(&mut missing);
        shaper.shape_line(&self.bidi, range);
        shaper.line
    }

    /// The advance of the glyphs whose character begins at each byte of the text, as one line. It
    /// is 0 at bytes within a character, or within a cluster of several.
    pub(super) fn advances(&self) -> Vec<f32> {
        let mut missing = Vec::new();
        let mut shaper = self.shaper(&mut missing);
        shaper.advances = Some(vec![0.0; self.text.len()]);
        shaper.shape_line(&self.bidi, 0..self.text.len());
        shaper.advances.unwrap_or_default()
    }

    fn shaper<'s>(&'s self, missing: &'s mut Vec<char>) -> Shaper<'s> {
        Shaper {
            fonts: self.fonts,
            text: self.text,
            cancel: self.cancel,
            line: Line::default(),
            advances: None,
            missing,
        }
    }
}

fn first_face(fonts: &Fonts) -> Option<Face> {
    fonts.faces().next()
}

/// A part of a line in one direction and script.
#[derive(Clone)]
struct Run {
    range: Range<usize>,
    script: Script,
    is_right_to_left: bool,
}

/// Divides a run by script. Marks, digits and punctuation belong to the letters before them or, at
/// the beginning, to those after them.
fn divide_by_script(text: &str, run: Range<usize>) -> Vec<(Range<usize>, Script)> {
    let mut pieces: Vec<(Range<usize>, Script)> = Vec::new();
    for (offset, character) in text[run.clone()].char_indices() {
        let start = run.start + offset;
        let end = start + character.len_utf8();
        let script = script(u32::from(character));
        let is_shared = [Script::COMMON, Script::INHERITED, Script::UNKNOWN].contains(&script);
        match pieces.last_mut() {
            Some((range, last)) if is_shared || *last == script || *last == Script::COMMON => {
                range.end = end;
                if !is_shared {
                    *last = script;
                }
            }
            _ if is_shared => pieces.push((start..end, Script::COMMON)),
            _ => pieces.push((start..end, script)),
        }
    }
    pieces
}

struct Shaper<'a> {
    fonts: &'a Fonts,
    text: &'a str,
    cancel: &'a Cancel<'a>,
    line: Line,
    /// The advances by the byte of the text, if they are needed.
    advances: Option<Vec<f32>>,
    missing: &'a mut Vec<char>,
}

impl Shaper<'_> {
    fn shape_line(&mut self, bidi: &ParagraphBidiInfo<'_>, range: Range<usize>) {
        let (levels, runs) = if range.is_empty() {
            (Vec::new(), Vec::new()) // the library expects a text
        } else {
            bidi.visual_runs(range)
        };
        self.line.is_right_to_left = bidi.paragraph_level.is_rtl();
        self.reserve_height(first_face(self.fonts));
        for run in runs {
            let is_right_to_left = levels[run.start].is_rtl();
            let mut pieces = divide_by_script(self.text, run);
            if is_right_to_left {
                pieces.reverse();
            }
            for (range, script) in pieces {
                let run = Run {
                    range,
                    script,
                    is_right_to_left,
                };
                self.shape(&run, first_face(self.fonts));
            }
        }
    }

    /// Adds the glyphs of a run from this face, and from the next faces where it has none.
    fn shape(&mut self, run: &Run, face: Option<Face>) {
        if self.cancel.is_cancelled() {
            return;
        }
        let Some(face) = face else {
            self.shape_each(run);
            return;
        };
        let buffer = self.glyphs(run, face);
        let pieces = self.divide_by_coverage(&buffer, run, face);
        let next = self.fonts.faces().find(|&other| other > face);
        match pieces.as_slice() {
            [] | [(_, true)] => self.add(&buffer, face),
            [(_, false)] => self.shape(run, next),
            pieces => {
                for (range, is_covered) in pieces {
                    let piece = Run {
                        range: range.clone(),
                        ..run.clone()
                    };
                    self.shape(&piece, if *is_covered { Some(face) } else { next });
                }
            }
        }
    }

    /// Shapes the characters of a run one by one, each with the first font that has it: for
    /// clusters that no font has as a whole.
    fn shape_each(&mut self, run: &Run) {
        let characters = self.text[run.range.clone()].char_indices();
        let mut characters: Vec<(usize, char)> = characters.collect();
        if run.is_right_to_left {
            characters.reverse();
        }
        for (offset, character) in characters {
            let has = |face: &Face| {
                let charmap = self.fonts.font(*face).charmap();
                charmap.map_unicode(character).is_some()
            };
            let start = run.range.start + offset;
            let alone = Run {
                range: start..start + character.len_utf8(),
                ..run.clone()
            };
            if let Some(face) = self.fonts.faces().find(has) {
                let buffer = self.glyphs(&alone, face);
                self.add(&buffer, face);
            } else if !self.missing.contains(&character) {
                self.missing.push(character);
            }
        }
    }

    fn glyphs(&self, run: &Run, face: Face) -> Buffer {
        let mut buffer = Buffer::new();
        for (offset, character) in self.text[run.range.clone()].char_indices() {
            buffer.push(u32::from(character), (run.range.start + offset) as u32);
        }
        // Letters join across the borders of runs.
        buffer.set_pre_context(&self.text[..run.range.start]);
        buffer.set_post_context(&self.text[run.range.end..]);
        buffer.set_script(Some(run.script));
        buffer.set_direction(if run.is_right_to_left {
            Direction::RightToLeft
        } else {
            Direction::LeftToRight
        });
        buffer.set_flags(
            BufferFlags::REMOVE_DEFAULT_IGNORABLES | BufferFlags::DO_NOT_INSERT_DOTTED_CIRCLE,
        );
        let font = ShaperFont::new(self.fonts.font(face));
        shape(&font, &mut buffer, ShapeOptions::new()).expect("direction and contents are set");
        buffer
    }

    /// Appends shaped glyphs to the line.
    fn add(&mut self, buffer: &Buffer, face: Face) {
        self.reserve_height(Some(face));
        let em = 1.0 / f32::from(self.fonts.font(face).units_per_em().max(1));
        let line = &mut self.line;
        for (info, position) in buffer.glyph_infos().iter().zip(buffer.glyph_positions()) {
            line.glyphs.push(Glyph {
                face,
                id: info.glyph_id,
                x: line.width + position.x_offset as f32 * em,
                y: -(position.y_offset as f32) * em,
            });
            let advance = position.x_advance as f32 * em;
            line.width += advance;
            if let Some(advances) = &mut self.advances {
                advances[info.cluster as usize] += advance;
            }
        }
    }

    fn reserve_height(&mut self, face: Option<Face>) {
        let Some(face) = face else { return };
        let metrics = self.fonts.font(face).metrics();
        let Some(line) = metrics.h_line() else { return };
        let em = 1.0 / f32::from(metrics.units_per_em.max(1));
        let ascent = line.ascender.to_f32() * em;
        let descent = (line.line_gap.to_f32() - line.descender.to_f32()) * em;
        self.line.ascent = self.line.ascent.max(ascent);
        self.line.descent = self.line.descent.max(descent);
    }

    /// Divides a run into parts whose clusters a face has, or has not, in visual order.
    fn divide_by_coverage(
        &self,
        buffer: &Buffer,
        run: &Run,
        face: Face,
    ) -> Vec<(Range<usize>, bool)> {
        let clusters = self.clusters(buffer, run, face);
        let mut pieces: Vec<(Range<usize>, bool)> = Vec::new();
        for (range, is_covered) in clusters {
            match pieces.last_mut() {
                Some((last, known)) if *known == is_covered => last.end = range.end,
                _ => pieces.push((range, is_covered)),
            }
        }
        if run.is_right_to_left {
            pieces.reverse();
        }
        pieces
    }

    /// The clusters of a run in the order of the text, each with whether the face has it.
    /// Characters that shaping removed belong to the cluster before them.
    fn clusters(&self, buffer: &Buffer, run: &Run, face: Face) -> Vec<(Range<usize>, bool)> {
        let mut starts: Vec<(usize, bool)> = buffer
            .glyph_infos()
            .chunk_by(|a, b| a.cluster == b.cluster)
            .map(|glyphs| {
                let notdef = GlyphId::NOTDEF.to_u32();
                let is_covered = glyphs.iter().all(|info| info.glyph_id != notdef);
                (glyphs[0].cluster as usize, is_covered)
            })
            .collect();
        starts.sort_unstable();
        if let Some((first, _)) = starts.first_mut() {
            *first = run.range.start;
        }
        let ends = starts.iter().skip(1).map(|(start, _)| *start);
        let ends: Vec<usize> = ends.chain([run.range.end]).collect();
        let clusters = starts.into_iter().zip(ends);
        clusters
            .map(|((start, is_covered), end)| {
                let is_best = is_covered && !self.is_better_elsewhere(&self.text[start..end], face);
                (start..end, is_best)
            })
            .collect()
    }

    /// Whether a later face has each character of a cluster, and this one does not. This one would
    /// compose them of letters and marks, and not every font has the places of marks.
    fn is_better_elsewhere(&self, cluster: &str, face: Face) -> bool {
        let has_all = |face: Face| {
            let charmap = self.fonts.font(face).charmap();
            cluster.chars().all(|c| charmap.map_unicode(c).is_some())
        };
        !has_all(face)
            && self
                .fonts
                .faces()
                .any(|other| other > face && has_all(other))
    }
}
