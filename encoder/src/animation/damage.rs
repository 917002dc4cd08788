//! The pixels that a frame changes on the canvas. RFC 9649, section 2.7.1.1, has two ways to draw a
//! frame (blended or replacing) and two to dispose of one (kept or cleared).

use crate::error::EncodeError;
use crate::threads::Workers;
use std::ops::Range;

/// A rectangle of the canvas, in pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rect {
    /// The columns left of it.
    pub left: usize,
    /// The rows above it.
    pub top: usize,
    /// The number of its columns.
    pub width: usize,
    /// The number of its rows.
    pub height: usize,
}

impl Rect {
    /// The number of its pixels.
    pub fn area(self) -> usize {
        self.width * self.height
    }

    /// The first column right of it.
    pub fn right(self) -> usize {
        self.left + self.width
    }

    /// The first row below it.
    pub fn bottom(self) -> usize {
        self.top + self.height
    }

    /// The smallest rectangle that holds both; empty ones count for nothing.
    #[must_use]
    pub fn around(self, other: Rect) -> Rect {
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

    /// The columns of row `y` that are both in `columns` and in the rectangle.
    fn part(self, y: usize, columns: &Range<usize>) -> Option<Range<usize>> {
        let part = self.left.max(columns.start)..self.right().min(columns.end);
        let is_there = (self.top..self.bottom()).contains(&y) && !part.is_empty();
        is_there.then_some(part)
    }
}

/// The rectangle of a canvas that a frame may have changed, and its pixels before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where: within the canvas. It may be empty.
    pub rect: Rect,
    /// The pixels before: red, green, blue and alpha, row by row.
    pub before: Vec<[u8; 4]>,
}

/// How a frame updates the canvas; its pixels are apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    /// Where: at least one pixel. Left and top are even, since the format stores their halves.
    pub rect: Rect,
    /// Whether the rectangle of the frame before is cleared first.
    pub clears: bool,
    /// Whether pixels of alpha 0 leave the canvas as it is, rather than make it transparent.
    pub blends: bool,
}

impl Update {
    /// An update of one pixel that changes nothing, since a frame has at least one.
    pub fn none(clears: bool) -> Update {
        Update {
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

/// The side of a macroblock in pixels, and the rows between two checks whether the work is still
/// wanted.
pub const SIDE: usize = 16;

/// The canvas as a frame finds it.
#[derive(Clone, Copy, Debug)]
pub struct PreviousCanvas<'a> {
    /// Where it may differ from the canvas after the frame, and how.
    pub damage: &'a Damage,
    /// The width of the canvas in pixels.
    pub width: usize,
    /// The rectangle that is made transparent before the frame is drawn.
    pub cleared: Option<Rect>,
}

impl PreviousCanvas<'_> {
    /// The update that makes the canvas `after` of this one; `None` if both look the same.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`].
    pub fn update_to(
        self,
        after: &[[u8; 4]],
        workers: Workers<'_>,
    ) -> Result<Option<Update>, EncodeError> {
        let mut found = Found {
            bounds: None,
            blends: true,
        };
        let rect = self
            .cleared
            .map_or(self.damage.rect, |cleared| cleared.around(self.damage.rect));
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
            Update {
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

    /// Turns a part of a row, from column `left` on, from what it is after the frame into what it
    /// was before.
    pub fn undo(self, (left, y): (usize, usize), row: &mut [[u8; 4]]) {
        let columns = left..left + row.len();
        let Damage { rect, before } = self.damage;
        if let Some(part) = rect.part(y, &columns) {
            let begin = (y - rect.top) * rect.width + part.start - rect.left;
            let before = &before[begin..][..part.len()];
            row[part.start - left..part.end - left].copy_from_slice(before);
        }
        let cleared = self.cleared.and_then(|rect| rect.part(y, &columns));
        if let Some(part) = cleared {
            row[part.start - left..part.end - left].fill([0; 4]);
        }
    }
}

/// The differences of two canvases.
struct Found {
    /// The first column and row and the last column and row that differ.
    bounds: Option<[usize; 4]>,
    /// Whether drawing over the canvas is exact.
    blends: bool,
}

impl Found {
    /// Adds the differences of a part of a row, from column `left` on.
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
        // A pixel that is not opaque does not hide what is below it; and where nothing is below it,
        // decoders round its color.
        self.blends &= both.all(|both| !differs(both) || both.1[3] == 255);
        let (first, last) = (left + first, left + last);
        let [left, top, right, _] = self.bounds.unwrap_or([first, y, last, y]);
        self.bounds = Some([left.min(first), top, right.max(last), y]);
    }
}

/// Whether all pixels are the same. The compiler makes vector instructions of this: not every
/// libc's comparison has them.
pub fn are_same(before: &[[u8; 4]], after: &[[u8; 4]]) -> bool {
    /// Pixels that are compared at a time.
    const PART: usize = 64;
    let number = |pixel: &[u8; 4]| u32::from_ne_bytes(*pixel);
    before.chunks(PART).zip(after.chunks(PART)).all(|(a, b)| {
        let differences = a.iter().zip(b).map(|(a, b)| number(a) ^ number(b));
        differences.fold(0, |all, difference| all | difference) == 0
    })
}

/// Whether two pixels look different: colors under alpha 0 are not seen.
pub fn differs(before: [u8; 4], after: [u8; 4]) -> bool {
    before != after && (before[3] != 0 || after[3] != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::animation::frame_pixels::{FramePixels, Granularity, Origin, UpdateMask};
    use crate::cancel::Cancel;
    use crate::cancel::tests::Checks;
    use crate::pixel_source::{PixelSource, Target};

    /// The pixels of these rows: `.` is transparent, letters are opaque grays, digits are half
    /// transparent.
    fn canvas(rows: &[&str]) -> Vec<[u8; 4]> {
        let pixel = |byte: u8| match byte {
            b'.' => [0; 4],
            b'0'..=b'9' => [byte, byte, byte, 128],
            gray => [gray, gray, gray, 255],
        };
        rows.iter().flat_map(|row| row.bytes()).map(pixel).collect()
    }

    fn workers() -> Workers<'static> {
        Workers::unlimited(1)
    }

    /// Damage of a whole canvas of `width` columns.
    fn whole(canvas: &[[u8; 4]], width: usize) -> Damage {
        Damage {
            rect: rect(0, 0, width, canvas.len() / width),
            before: canvas.to_vec(),
        }
    }

    /// An update and its pixels, those of alpha 0 as a `.`.
    fn between(
        before: &[[u8; 4]],
        after: &[[u8; 4]],
        cleared: Option<Rect>,
    ) -> Option<(Update, String)> {
        let before = PreviousCanvas {
            damage: &whole(before, 4),
            width: 4,
            cleared,
        };
        let update = before
            .update_to(after, workers())
            .expect("it is not cancelled")?;
        Some((update, drawn(before, &update, after, Granularity::Pixel)))
    }

    fn drawn(
        before: PreviousCanvas<'_>,
        update: &Update,
        after: &[[u8; 4]],
        granularity: Granularity,
    ) -> String {
        let mask = UpdateMask::new(before, update, after, workers()).expect("it is not cancelled");
        let rect = update.rect;
        let frame = FramePixels {
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
        let rows: Vec<String> = match granularity {
            Granularity::Pixel => (0..rect.height)
                .map(|y| letters(&frame.row(y, Target::Lossless)).iter().collect())
                .collect(),
            Granularity::Macroblock => {
                let all = frame.with_rgb(workers(), |picture| Ok(letters(picture.pixels)));
                let all = all.expect("it is not cancelled");
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
        let (update, pixels) = between(&before, &after, None).expect("a pixel differs");
        assert_eq!((update.rect, update.blends), (rect(2, 2, 1, 2), true));
        assert_eq!(pixels, ". b");
        assert_eq!(between(&before, &before, None), None);
    }

    #[test]
    fn colors_of_transparent_pixels_are_no_difference() {
        let before = vec![[1, 2, 3, 0]; 4];
        assert_eq!(between(&before, &[[0; 4]; 4], None), None);
    }

    #[test]
    fn what_is_covered_and_what_is_cleared_may_lie_apart() {
        let after = canvas(&["abcd", "efgh", "ijkl"]);
        let damage = Damage {
            rect: rect(3, 2, 1, 1),
            before: canvas(&["x"]),
        };
        let changed = |damage, cleared| {
            let before = PreviousCanvas {
                damage,
                width: 4,
                cleared,
            };
            let update = before
                .update_to(&after, workers())
                .expect("it is not cancelled")?;
            Some((
                update.rect,
                drawn(before, &update, &after, Granularity::Pixel),
            ))
        };
        let text = |text: &str| text.to_owned();
        let expected = (rect(2, 2, 2, 1), text(".l"));
        assert_eq!(changed(&damage, None), Some(expected));
        let cleared = Some(rect(0, 0, 2, 1));
        let expected = (rect(0, 0, 4, 3), text("ab.. .... ...l"));
        assert_eq!(changed(&damage, cleared), Some(expected));
        let nothing = Damage {
            rect: rect(2, 0, 0, 3),
            before: Vec::new(),
        };
        let expected = (rect(0, 0, 2, 1), text("ab"));
        assert_eq!(changed(&nothing, cleared), Some(expected));
        assert_eq!(changed(&nothing, None), None);
    }

    #[test]
    fn pixels_that_become_transparent_are_drawn_in_place() {
        let before = canvas(&["abcd"]);
        let (update, _) = between(&before, &canvas(&["ab.d"]), None).expect("a pixel differs");
        assert_eq!((update.rect, update.blends), (rect(2, 0, 1, 1), false));
        // So are half transparent ones, whatever is there.
        for before in ["abcd", "...."] {
            let (update, _) =
                between(&canvas(&[before]), &canvas(&["5..d"]), None).expect("a pixel differs");
            assert!(!update.blends, "over {before}");
        }
        let (update, _) =
            between(&canvas(&["...."]), &canvas(&["b..a"]), None).expect("two differ");
        assert!(update.blends);
    }

    #[test]
    fn what_is_cleared_first_counts_as_transparent() {
        let (before, after) = (canvas(&["abcd"]), canvas(&["...d"]));
        assert_eq!(between(&before, &after, Some(rect(0, 0, 3, 1))), None);
        let after = canvas(&["..xd"]);
        let cleared = Some(rect(0, 0, 4, 1));
        let (update, pixels) = between(&before, &after, cleared).expect("two are drawn");
        assert!(update.clears && update.blends);
        assert_eq!((update.rect, pixels.as_str()), (rect(2, 0, 2, 1), "xd"));
    }

    /// Two macroblocks beside one another, of which one changes.
    #[test]
    fn lossy_frames_draw_all_opaque_pixels_of_a_macroblock() {
        let row = |changed: &str| ["aa.a5aaaaaaaaaaa", changed].concat();
        let before = canvas(&[&row("aaaa"), &row("aaaa")]);
        let after = canvas(&[&row("aaab"), &row("aaaa")]);
        let before = PreviousCanvas {
            damage: &whole(&before, 20),
            width: 20,
            cleared: None,
        };
        let update = Update {
            rect: rect(0, 0, 20, 2),
            clears: false,
            blends: true,
        };
        let none = ".".repeat(16);
        let pixels = drawn(before, &update, &after, Granularity::Pixel);
        assert_eq!(pixels, format!("{none}...b {none}...."));
        let pixels = drawn(before, &update, &after, Granularity::Macroblock);
        assert_eq!(pixels, format!("{none}aaab {none}aaaa"));
        // Half transparent pixels are left, since they would be blended twice.
        let row = |changed: &str| ["a5.a", changed].concat();
        let (before, after) = (canvas(&[&row("a")]), canvas(&[&row("b")]));
        let before = PreviousCanvas {
            damage: &whole(&before, 5),
            width: 5,
            cleared: None,
        };
        let update = Update {
            rect: rect(0, 0, 5, 1),
            ..update
        };
        assert_eq!(
            drawn(before, &update, &after, Granularity::Macroblock),
            "a..ab"
        );
    }

    #[test]
    fn each_row_of_macroblocks_is_checked() {
        let canvas = vec![[1, 2, 3, 255]; 64 * 160];
        let other = vec![[3, 2, 1, 255]; 64 * 160];
        let before = PreviousCanvas {
            damage: &whole(&canvas, 64),
            width: 64,
            cleared: None,
        };
        let all = Update {
            rect: rect(0, 0, 64, 160),
            clears: false,
            blends: true,
        };
        let with = |allowed: usize, pass: &dyn Fn(Workers<'_>) -> bool| {
            let checks = Checks::new(allowed);
            let is_unwanted = || checks.are_used_up();
            let is_cancelled = pass(Workers::new(1, None, &Cancel::when(&is_unwanted)));
            (is_cancelled, checks.calls.into_inner())
        };
        let update =
            |workers: Workers<'_>| before.update_to(&other, workers) == Err(EncodeError::Cancelled);
        let mask = |workers: Workers<'_>| {
            let mask = UpdateMask::new(before, &all, &other, workers);
            mask.map(|_| ()) == Err(EncodeError::Cancelled)
        };
        for allowed in 0..10 {
            let stopped = (true, allowed + 1);
            assert_eq!(with(allowed, &update), stopped, "it went on");
            assert_eq!(with(allowed, &mask), stopped, "it went on");
        }
        assert_eq!(
            before.update_to(&other, Workers::unlimited(1)),
            Ok(Some(all))
        );
        assert_eq!(with(10, &update), (false, 10));
    }
}
