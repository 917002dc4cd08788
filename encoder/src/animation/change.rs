//! What a frame changes on the canvas: RFC 9649, section 2.7.1.1, has the two ways to draw a frame (over what is there, or in
//! its place) and the two to leave one (as it is, or cleared).

use crate::EncodeError;
use crate::threads::Workers;
use std::ops::Range;

/// A rectangle of the canvas, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rect {
    /// Columns before it.
    pub left: usize,
    /// Rows before it.
    pub top: usize,
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

impl Rect {
    /// Its pixels' number.
    pub fn area(self) -> usize {
        self.width * self.height
    }

    /// Columns up to its end.
    pub fn right(self) -> usize {
        self.left + self.width
    }

    /// Rows up to its end.
    pub fn bottom(self) -> usize {
        self.top + self.height
    }

    /// The smallest that holds both.
    fn around(self, other: Rect) -> Rect {
        match (self.area(), other.area()) {
            (0, _) => return other,
            (_, 0) => return self,
            _ => {}
        }
        let (left, top) = (self.left.min(other.left), self.top.min(other.top));
        Rect {
            left,
            top,
            width: self.right().max(other.right()) - left,
            height: self.bottom().max(other.bottom()) - top,
        }
    }

    /// Which of some columns of row `y` it has.
    fn part(self, y: usize, columns: &Range<usize>) -> Option<Range<usize>> {
        let part = self.left.max(columns.start)..self.right().min(columns.end);
        let is_there = (self.top..self.bottom()).contains(&y) && !part.is_empty();
        is_there.then_some(part)
    }
}

/// What a canvas showed, before, of a rectangle outside of which it is the same still.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Covered {
    /// Within the canvas.
    pub rect: Rect,
    /// Red, green, blue and alpha, row by row.
    pub pixels: Vec<[u8; 4]>,
}

/// What is to be drawn, but for its pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where: a pixel at least. Left and top are even, since the format stores their halves.
    pub rect: Rect,
    /// Whether the rectangle of the frame before is cleared first.
    pub clears: bool,
    /// Whether pixels of alpha 0 leave what is there, rather than clear it.
    pub blends: bool,
}

impl Change {
    /// One pixel that changes nothing, since a frame has one at least.
    pub fn none(clears: bool) -> Change {
        Change {
            rect: Rect {
                left: 0,
                top: 0,
                width: 1,
                height: 1,
            },
            clears,
            blends: true,
        }
    }
}

/// A side of a macroblock, and rows between two questions whether the file is waited for.
pub const SIDE: usize = 16;

/// The canvas as a frame finds it.
#[derive(Clone, Copy, Debug)]
pub struct Before<'a> {
    /// Where it may be other than after the frame.
    pub covered: &'a Covered,
    /// Of the canvas, in pixels.
    pub width: usize,
    /// What counts as transparent.
    pub cleared: Option<Rect>,
}

impl Before<'_> {
    /// What makes the canvas `after` of this one; `None` if both look the same.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`] if the file is no longer waited for.
    pub fn change_to(
        self,
        after: &[[u8; 4]],
        workers: Workers<'_>,
    ) -> Result<Option<Change>, EncodeError> {
        let mut found = Found {
            bounds: None,
            blends: true,
        };
        let rect = self.cleared.map_or(self.covered.rect, |cleared| {
            cleared.around(self.covered.rect)
        });
        let mut was = vec![[0; 4]; rect.width];
        for y in rect.top..rect.bottom() {
            if (y - rect.top).is_multiple_of(SIDE) {
                workers.check()?;
            }
            let now = &after[y * self.width + rect.left..][..rect.width];
            was.copy_from_slice(now);
            self.undo((rect.left, y), &mut was);
            found.look((rect.left, y), &was, now);
        }
        Ok(found.bounds.map(|[left, top, right, bottom]| {
            let (left, top) = (left & !1, top & !1);
            Change {
                rect: Rect {
                    left,
                    top,
                    width: right + 1 - left,
                    height: bottom + 1 - top,
                },
                clears: self.cleared.is_some(),
                blends: found.blends,
            }
        }))
    }

    /// Makes of a part of a row, as it is after the frame, from column `left` on, what it was before.
    pub fn undo(self, (left, y): (usize, usize), row: &mut [[u8; 4]]) {
        let columns = left..left + row.len();
        let Covered { rect, pixels } = self.covered;
        if let Some(part) = rect.part(y, &columns) {
            let begin = (y - rect.top) * rect.width + part.start - rect.left;
            let pixels = &pixels[begin..][..part.len()];
            row[part.start - left..part.end - left].copy_from_slice(pixels);
        }
        let cleared = self.cleared.and_then(|rect| rect.part(y, &columns));
        if let Some(part) = cleared {
            row[part.start - left..part.end - left].fill([0; 4]);
        }
    }
}

/// What differs.
struct Found {
    /// First column and row, last column and row.
    bounds: Option<[usize; 4]>,
    /// Whether drawing over what is there is exact.
    blends: bool,
}

impl Found {
    /// Adds what differs in a part of a row, from column `left` on.
    fn look(&mut self, (left, y): (usize, usize), was: &[[u8; 4]], now: &[[u8; 4]]) {
        if are_same(was, now) {
            return;
        }
        let differs = |(was, now): (&[u8; 4], &[u8; 4])| differs(*was, *now);
        let mut both = was.iter().zip(now);
        let Some(first) = both.clone().position(differs) else {
            return;
        };
        let last = both.clone().rposition(differs).unwrap_or(first);
        // What is seen through hides nothing; and over nothing, decoders round its colour.
        self.blends &= both.all(|both| !differs(both) || both.1[3] == 255);
        let (first, last) = (left + first, left + last);
        let [left, top, right, _] = self.bounds.unwrap_or([first, y, last, y]);
        self.bounds = Some([left.min(first), top, right.max(last), y]);
    }
}

/// Whether all pixels are the same, of which the compiler makes vectors: not every libc's comparison has them.
pub fn are_same(before: &[[u8; 4]], after: &[[u8; 4]]) -> bool {
    /// Pixels that are compared to the last one.
    const PART: usize = 64;
    let number = |pixel: &[u8; 4]| u32::from_ne_bytes(*pixel);
    before.chunks(PART).zip(after.chunks(PART)).all(|(a, b)| {
        let differences = a.iter().zip(b).map(|(a, b)| number(a) ^ number(b));
        differences.fold(0, |all, difference| all | difference) == 0
    })
}

/// Whether a pixel looks otherwise: colours under alpha 0 are nobody's.
pub fn differs(before: [u8; 4], after: [u8; 4]) -> bool {
    before != after && (before[3] != 0 || after[3] != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::animation::drawing::{Drawing, Grain, Mask, Origin};
    use crate::cancel::Cancel;
    use crate::cancel::tests::Checks;
    use crate::source::{Form, Source};

    /// A canvas 4 pixels wide: `.` is transparent, letters are opaque greys, digits are half transparent.
    fn canvas(rows: &[&str]) -> Vec<[u8; 4]> {
        let pixel = |byte: u8| match byte {
            b'.' => [0; 4],
            b'0'..=b'9' => [byte, byte, byte, 128],
            grey => [grey, grey, grey, 255],
        };
        rows.iter().flat_map(|row| row.bytes()).map(pixel).collect()
    }

    fn patient() -> Workers<'static> {
        Workers::unlimited(1)
    }

    /// All of a canvas of so many columns.
    fn whole(canvas: &[[u8; 4]], width: usize) -> Covered {
        Covered {
            rect: rect(0, 0, width, canvas.len() / width),
            pixels: canvas.to_vec(),
        }
    }

    /// A change and its pixels, of alpha 0 a `.`.
    fn between(
        before: &[[u8; 4]],
        after: &[[u8; 4]],
        cleared: Option<Rect>,
    ) -> Option<(Change, String)> {
        let before = Before {
            covered: &whole(before, 4),
            width: 4,
            cleared,
        };
        let change = before.change_to(after, patient()).expect("nobody leaves")?;
        Some((change, drawn(before, &change, after, Grain::Pixel)))
    }

    fn drawn(before: Before<'_>, change: &Change, after: &[[u8; 4]], grain: Grain) -> String {
        let mask = Mask::new(before, change, after, patient()).expect("nobody leaves");
        let rect = change.rect;
        let drawing = Drawing {
            mask: &mask,
            origin: Origin::Canvas {
                pixels: &after[rect.top * before.width + rect.left..],
                stride: before.width,
            },
            size: (rect.width, rect.height),
        };
        let letter = |pixel: &[u8; 4]| if pixel[3] == 0 { '.' } else { pixel[0] as char };
        let letters =
            |pixels: &[u8]| -> Vec<char> { pixels.as_chunks().0.iter().map(letter).collect() };
        let rows: Vec<String> = match grain {
            Grain::Pixel => (0..rect.height)
                .map(|y| letters(&drawing.row(y, Form::Exact)).iter().collect())
                .collect(),
            Grain::Macroblock => {
                let all = drawing.with_loss(patient(), |picture| Ok(letters(picture.pixels)));
                let all = all.expect("nobody leaves");
                all.chunks(rect.width)
                    .map(|row| row.iter().collect())
                    .collect()
            }
        };
        rows.join(" ")
    }

    fn rect(left: usize, top: usize, width: usize, height: usize) -> Rect {
        Rect {
            left,
            top,
            width,
            height,
        }
    }

    #[test]
    fn only_what_differs_is_drawn_from_even_corners() {
        let before = canvas(&["aaaa", "aaaa", "aaaa", "aaaa"]);
        let after = canvas(&["aaaa", "aaaa", "aaaa", "aaba"]);
        let (change, pixels) = between(&before, &after, None).expect("a pixel differs");
        assert_eq!((change.rect, change.blends), (rect(2, 2, 1, 2), true));
        assert_eq!(pixels, ". b");
        assert_eq!(between(&before, &before, None), None);
    }

    #[test]
    fn colours_that_nobody_sees_are_no_difference() {
        let before = vec![[1, 2, 3, 0]; 4];
        assert_eq!(between(&before, &[[0; 4]; 4], None), None);
    }

    #[test]
    fn what_is_covered_and_what_is_cleared_may_lie_apart() {
        let after = canvas(&["abcd", "efgh", "ijkl"]);
        let covered = Covered {
            rect: rect(3, 2, 1, 1),
            pixels: canvas(&["x"]),
        };
        let changed = |covered, cleared| {
            let before = Before {
                covered,
                width: 4,
                cleared,
            };
            let change = before
                .change_to(&after, patient())
                .expect("nobody leaves")?;
            Some((change.rect, drawn(before, &change, &after, Grain::Pixel)))
        };
        let text = |text: &str| text.to_owned();
        let expected = (rect(2, 2, 2, 1), text(".l"));
        assert_eq!(changed(&covered, None), Some(expected));
        let cleared = Some(rect(0, 0, 2, 1));
        let expected = (rect(0, 0, 4, 3), text("ab.. .... ...l"));
        assert_eq!(changed(&covered, cleared), Some(expected));
        let nothing = Covered {
            rect: rect(2, 0, 0, 3),
            pixels: Vec::new(),
        };
        let expected = (rect(0, 0, 2, 1), text("ab"));
        assert_eq!(changed(&nothing, cleared), Some(expected));
        assert_eq!(changed(&nothing, None), None);
    }

    #[test]
    fn pixels_that_become_transparent_are_drawn_in_place() {
        let before = canvas(&["abcd"]);
        let (change, _) = between(&before, &canvas(&["ab.d"]), None).expect("a pixel differs");
        assert_eq!((change.rect, change.blends), (rect(2, 0, 1, 1), false));
        // Half transparent ones are, too, whatever is there.
        for before in ["abcd", "...."] {
            let (change, _) =
                between(&canvas(&[before]), &canvas(&["5..d"]), None).expect("a pixel differs");
            assert!(!change.blends, "over {before}");
        }
        let (change, _) =
            between(&canvas(&["...."]), &canvas(&["b..a"]), None).expect("two differ");
        assert!(change.blends);
    }

    #[test]
    fn what_is_cleared_first_counts_as_transparent() {
        let (before, after) = (canvas(&["abcd"]), canvas(&["...d"]));
        assert_eq!(between(&before, &after, Some(rect(0, 0, 3, 1))), None);
        let after = canvas(&["..xd"]);
        let cleared = Some(rect(0, 0, 4, 1));
        let (change, pixels) = between(&before, &after, cleared).expect("two are drawn");
        assert!(change.clears && change.blends);
        assert_eq!((change.rect, pixels.as_str()), (rect(2, 0, 2, 1), "xd"));
    }

    /// Two macroblocks beside one another, of which one changes.
    #[test]
    fn with_loss_all_that_is_opaque_of_a_macroblock_is_drawn() {
        let row = |changed: &str| ["aa.a5aaaaaaaaaaa", changed].concat();
        let before = canvas(&[&row("aaaa"), &row("aaaa")]);
        let after = canvas(&[&row("aaab"), &row("aaaa")]);
        let before = Before {
            covered: &whole(&before, 20),
            width: 20,
            cleared: None,
        };
        let change = Change {
            rect: rect(0, 0, 20, 2),
            clears: false,
            blends: true,
        };
        let none = ".".repeat(16);
        let pixels = drawn(before, &change, &after, Grain::Pixel);
        assert_eq!(pixels, format!("{none}...b {none}...."));
        let pixels = drawn(before, &change, &after, Grain::Macroblock);
        assert_eq!(pixels, format!("{none}aaab {none}aaaa"));
        // What is seen through is left, since it would be seen twice.
        let row = |changed: &str| ["a5.a", changed].concat();
        let (before, after) = (canvas(&[&row("a")]), canvas(&[&row("b")]));
        let before = Before {
            covered: &whole(&before, 5),
            width: 5,
            cleared: None,
        };
        let change = Change {
            rect: rect(0, 0, 5, 1),
            ..change
        };
        assert_eq!(drawn(before, &change, &after, Grain::Macroblock), "a..ab");
    }

    #[test]
    fn whoever_waits_no_more_is_asked_for_each_row_of_macroblocks() {
        let canvas = vec![[1, 2, 3, 255]; 64 * 160];
        let other = vec![[3, 2, 1, 255]; 64 * 160];
        let before = Before {
            covered: &whole(&canvas, 64),
            width: 64,
            cleared: None,
        };
        let all = Change {
            rect: rect(0, 0, 64, 160),
            clears: false,
            blends: true,
        };
        let with = |allowed: usize, pass: &dyn Fn(Workers<'_>) -> bool| {
            let checks = Checks::new(allowed);
            let question = || checks.are_used_up();
            let is_cancelled = pass(Workers::new(1, None, &Cancel::when(&question)));
            (is_cancelled, checks.asked.into_inner())
        };
        let change =
            |workers: Workers<'_>| before.change_to(&other, workers) == Err(EncodeError::Cancelled);
        let mask = |workers: Workers<'_>| {
            let mask = Mask::new(before, &all, &other, workers);
            mask.map(|_| ()) == Err(EncodeError::Cancelled)
        };
        for allowed in 0..10 {
            let stopped = (true, allowed + 1);
            assert_eq!(with(allowed, &change), stopped, "it went on");
            assert_eq!(with(allowed, &mask), stopped, "it went on");
        }
        assert_eq!(
            before.change_to(&other, Workers::unlimited(1)),
            Ok(Some(all))
        );
        assert_eq!(with(10, &change), (false, 10));
    }
}
