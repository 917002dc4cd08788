//! Breaks the paragraphs of a text into lines, at spaces.

use super::shape::Paragraph;
use std::ops::Range;
use towebp_encoder::{Cancel, Cancelled};

/// The most lines that a text is broken into. One that has as many lines by itself is not broken.
pub(super) const MAX_LINES: usize = 5;

/// A line of a broken text: the number of its paragraph, and its bytes in that.
pub(super) type Part = (usize, Range<usize>);

/// The words of a text, paragraph by paragraph.
pub(super) struct Words(Vec<ParagraphWords>);

struct ParagraphWords {
    /// The words in bytes, without the spaces between them.
    words: Vec<Range<usize>>,
    /// The place of each byte in ems, if all of the paragraph were one line from left to right; at
    /// the end, the line's width.
    places: Vec<f32>,
}

impl Words {
    pub(super) fn of(
        paragraphs: &[Paragraph<'_>],
        cancel: &Cancel<'_>,
    ) -> Result<Words, Cancelled> {
        let words = paragraphs.iter().map(|paragraph| {
            cancel.check()?;
            let mut places = paragraph.advances();
            let mut place = 0.0;
            for advance in &mut places {
                place += std::mem::replace(advance, place);
            }
            places.push(place);
            Ok(ParagraphWords {
                words: words(paragraph.text()),
                places,
            })
        });
        words.collect::<Result<_, _>>().map(Words)
    }

    /// Breaks the text into at most `count` lines, at least one for each paragraph, so that the
    /// widest one is as narrow as possible. It is found to a thousandth of an em.
    pub(super) fn balanced(
        &self,
        count: usize,
        cancel: &Cancel<'_>,
    ) -> Result<Vec<Part>, Cancelled> {
        const PRECISION: f32 = 1e-3;
        let longest = |widths: &mut dyn Iterator<Item = f32>| widths.fold(0.0, f32::max);
        // No line is narrower than the longest word, nor wider than a whole paragraph.
        let mut least = longest(&mut self.0.iter().flat_map(ParagraphWords::word_widths));
        let mut most = longest(&mut self.0.iter().map(ParagraphWords::width));
        if self.lines(least).count() <= count {
            most = least;
        }
        while most - least > PRECISION {
            cancel.check()?;
            let middle = f32::midpoint(least, most);
            if middle <= least || middle >= most {
                break; // ems so many that no number is between them
            }
            if self.lines(middle).count() <= count {
                most = middle;
            } else {
                least = middle;
            }
        }
        Ok(self.lines(most).collect())
    }

    /// Fills at most `count` lines up to `width` ems, one after the other, and leaves out what does
    /// not fit: the end of each paragraph that has no line left, and that of longer words. Each
    /// paragraph has at least one line.
    pub(super) fn filled(&self, width: f32, count: usize) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        for (number, paragraph) in self.0.iter().enumerate() {
            let others = self.0.len() - number - 1;
            let free = count.saturating_sub(parts.len() + others).max(1);
            let lines = paragraph.lines(width).take(free);
            let mut lines: Vec<Range<usize>> = lines.collect();
            if let Some(last) = lines.last_mut() {
                last.end = paragraph.words.last().map_or(last.end, |word| word.end);
            }
            let cut = |line| (number, paragraph.cut(line, width));
            parts.extend(lines.into_iter().map(cut));
        }
        parts
    }

    fn lines(&self, width: f32) -> impl Iterator<Item = Part> {
        let paragraphs = self.0.iter().enumerate();
        paragraphs.flat_map(move |(number, paragraph)| {
            paragraph.lines(width).map(move |line| (number, line))
        })
    }
}

impl ParagraphWords {
    fn width(&self) -> f32 {
        self.places.last().copied().unwrap_or_default()
    }

    fn word_widths(&self) -> impl Iterator<Item = f32> {
        self.words.iter().map(|word| self.width_of(word))
    }

    fn width_of(&self, range: &Range<usize>) -> f32 {
        self.places[range.end] - self.places[range.start]
    }

    /// Lines of as many words as fit into `width`, each of at least one word. A paragraph without
    /// words is an empty line.
    fn lines(&self, width: f32) -> impl Iterator<Item = Range<usize>> {
        let mut words = self.words.iter().peekable();
        let mut blank = words.peek().is_none().then_some(0..0);
        std::iter::from_fn(move || {
            let Some(first) = words.next() else {
                return blank.take();
            };
            let mut line = first.clone();
            while let Some(word) = words.next_if(|word| {
                let longer = line.start..word.end;
                self.width_of(&longer) <= width
            }) {
                line.end = word.end;
            }
            Some(line)
        })
    }

    /// The beginning of a line that fits into `width`: whole clusters, at least one, without spaces
    /// at the end.
    fn cut(&self, line: Range<usize>, width: f32) -> Range<usize> {
        if self.width_of(&line) <= width {
            return line;
        }
        let begins_cluster = |&at: &usize| self.places[at + 1] > self.places[at];
        let mut ends = (line.start + 1..line.end).filter(begins_cluster);
        let Some(least) = ends.next() else {
            return line;
        };
        let fits = |end: &usize| self.width_of(&(line.start..*end)) <= width;
        let end = ends.take_while(fits).last().unwrap_or(least);
        let words = self.words.partition_point(|word| word.start < end);
        line.start..end.min(self.words[words - 1].end)
    }
}

/// The words of a paragraph: the texts between spaces at which a line may be broken.
fn words(text: &str) -> Vec<Range<usize>> {
    let mut words: Vec<Range<usize>> = Vec::new();
    let (mut is_after_space, mut last) = (true, ' ');
    for (start, character) in text.char_indices() {
        if is_space(character) {
            is_after_space = true;
            continue;
        }
        let end = start + character.len_utf8();
        let is_break = is_after_space && !is_joiner(character) && !is_sign(last);
        match words.last_mut() {
            Some(word) if !is_break => word.end = end,
            _ => words.push(start..end),
        }
        (is_after_space, last) = (false, character);
    }
    words
}

/// Whether a line may be broken after this space, by its class in the Unicode Line Breaking
/// Algorithm (UAX #14): all but the no-break ones. The zero width space, which is not seen, says
/// where to break scripts without spaces.
fn is_space(character: char) -> bool {
    matches!(
        character,
        ' ' | '\u{1680}' | '\u{2000}'..='\u{2006}' | '\u{2008}'..='\u{200b}' | '\u{205f}' | '\u{3000}'
    )
}

/// Whether no line may be broken before this character, be it after a space: the word joiner, and
/// the zero width no-break space.
fn is_joiner(character: char) -> bool {
    matches!(character, '\u{2060}' | '\u{feff}')
}

/// Whether no line should end with this character, after which a year or a name is expected.
fn is_sign(character: char) -> bool {
    matches!(character, '©' | '℗')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watermark::Fonts;

    #[test]
    fn words_end_at_spaces_where_lines_may_be_broken() {
        for (text, expected) in [
            ("a b", &["a", "b"][..]),
            ("  a  bc   d ", &["a", "bc", "d"]),
            (
                "a\u{2003}b\u{200b}c\u{3000}d\u{1680}e\u{205f}f",
                &["a", "b", "c", "d", "e", "f"],
            ),
            (
                "a\u{a0}b\u{202f}c\u{2007}d\u{feff}e",
                &["a\u{a0}b\u{202f}c\u{2007}d\u{feff}e"],
            ),
            ("a \u{2060}b \u{feff}c d", &["a \u{2060}b \u{feff}c", "d"]),
            ("\u{2060}a", &["\u{2060}a"]),
            (" \u{2060}a", &["\u{2060}a"]),
            ("© 2026  A. B. ©", &["© 2026", "A.", "B.", "©"]),
            ("שלום עולם", &["שלום", "עולם"]),
            ("", &[]),
            ("  ", &[]),
        ] {
            let found: Vec<&str> = words(text).into_iter().map(|word| &text[word]).collect();
            assert_eq!(found, expected, "{text:?}");
        }
    }

    fn broken(paragraphs: &[&str], into_parts: impl FnOnce(&Words) -> Vec<Part>) -> Vec<String> {
        let never = Cancel::never();
        let shaped = paragraphs.iter();
        let shaped = shaped.map(|text| Paragraph::new(Fonts::bundled(), text, &never));
        let shaped: Vec<Paragraph<'_>> = shaped.collect();
        let words = Words::of(&shaped, &Cancel::never()).expect("it is not cancelled");
        let parts = into_parts(&words).into_iter();
        parts
            .map(|(number, range)| paragraphs[number][range].to_owned())
            .collect()
    }

    fn balanced(paragraphs: &[&str], count: usize) -> Vec<String> {
        broken(paragraphs, |words| {
            let parts = words.balanced(count, &Cancel::never());
            parts.expect("it is not cancelled")
        })
    }

    #[test]
    fn balanced_lines_are_as_narrow_as_their_number_allows() {
        let text = &["aa aa aa aa aa aa aa"][..];
        assert_eq!(balanced(text, 1), ["aa aa aa aa aa aa aa"]);
        assert_eq!(balanced(text, 2), ["aa aa aa aa", "aa aa aa"]);
        assert_eq!(balanced(text, 3), ["aa aa aa", "aa aa aa", "aa"]);
        assert_eq!(balanced(text, 4), ["aa aa", "aa aa", "aa aa", "aa"]);
        // More lines would not be narrower than the longest word.
        assert_eq!(
            balanced(&["a wwwwwwwwww a a"], 5),
            ["a", "wwwwwwwwww", "a a"]
        );
        assert_eq!(balanced(&["wwwwwwwwww"], 5), ["wwwwwwwwww"]);
        // The paragraphs share the lines by their lengths.
        let paragraphs = &["aa", "", "aa aa aa aa aa aa"][..];
        assert_eq!(balanced(paragraphs, 3), ["aa", "", "aa aa aa aa aa aa"]);
        assert_eq!(
            balanced(paragraphs, 5),
            ["aa", "", "aa aa", "aa aa", "aa aa"]
        );
        assert_eq!(balanced(&["", " "], 4), ["", ""]);
    }

    #[test]
    fn filled_lines_lose_what_does_not_fit() {
        let filled = |paragraphs: &[&str], width, count| {
            broken(paragraphs, |words| words.filled(width, count))
        };
        // An m of DejaVu Sans is 0.974 em wide, a space 0.318.
        let text = &["mm mm mm mmmm mm mm mm"][..];
        assert_eq!(filled(text, 4.5, 3), ["mm mm", "mm", "mmmm"]);
        assert_eq!(filled(text, 4.5, 4), ["mm mm", "mm", "mmmm", "mm mm"]);
        assert_eq!(filled(text, 2.0, 5), ["mm", "mm", "mm", "mm", "mm"]);
        assert_eq!(filled(text, 3.0, 1), ["mm"]);
        assert_eq!(filled(text, 0.1, 2), ["m", "m"], "at least a character");
        let paragraphs = &["mm mm mm", "mm", "mm mm"][..];
        assert_eq!(filled(paragraphs, 2.0, 4), ["mm", "mm", "mm", "mm"]);
        assert_eq!(filled(paragraphs, 2.0, 5), ["mm", "mm", "mm", "mm", "mm"]);
        assert_eq!(filled(paragraphs, 9.0, 5), ["mm mm mm", "mm", "mm mm"]);
        assert_eq!(filled(&["", "m"], 9.0, 5), ["", "m"]);
        // A mark stays with its letter.
        assert_eq!(filled(&["m\u{323}\u{302}mm"], 1.1, 1), ["m\u{323}\u{302}"]);
    }
}
