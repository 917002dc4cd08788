//! What a frame changes on the canvas: RFC 9649, section 2.7.1.1, has the two ways to draw a frame (over what is there, or in
//! its place) and the two to leave one (as it is, or cleared).

use crate::webp::crew::Crew;
use crate::webp::{EncodeError, hidden};

/// A rectangle of the canvas, in pixels. Left and top are even, since the format stores their halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rect {
    /// Columns before it.
    pub left: usize,
    /// Rows before it.
    pub top: usize,
    /// At least 1.
    pub width: usize,
    /// At least 1.
    pub height: usize,
}

impl Rect {
    /// Its pixels' number.
    pub fn area(self) -> usize {
        self.width * self.height
    }

    fn holds(self, x: usize, y: usize) -> bool {
        (self.left..self.left + self.width).contains(&x)
            && (self.top..self.top + self.height).contains(&y)
    }
}

/// What is to be drawn, but for its pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where.
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

/// Which pixels of a rectangle are drawn where not all of them change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grain {
    /// Those that change.
    Pixel,
    /// All opaque ones of a macroblock in which one changes: what alpha takes is then next to nothing, and lossy coding has no
    /// holes to go around.
    Macroblock,
}

/// A side of a macroblock, and rows between two questions whether the file is waited for.
pub const SIDE: usize = 16;

/// The canvas as a frame finds it.
#[derive(Clone, Copy, Debug)]
pub struct Before<'a> {
    /// Red, green, blue and alpha, in rows of `width`.
    pub pixels: &'a [[u8; 4]],
    /// In pixels.
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
        crew: Crew<'_>,
    ) -> Result<Option<Change>, EncodeError> {
        let mut found = Found {
            bounds: None,
            blends: true,
        };
        for (y, row) in after.chunks_exact(self.width).enumerate() {
            if y % SIDE == 0 {
                crew.check()?;
            }
            self.look(y, row, &mut found);
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

    /// The pixels of a change to `after`: alpha is 0 where what is there is left, and the colour under it that of what is drawn
    /// close by. They take the room of others, which are lost.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`] if the file is no longer waited for.
    pub fn draw(
        self,
        change: &Change,
        after: &[[u8; 4]],
        grain: Grain,
        room: Vec<u8>,
        crew: Crew<'_>,
    ) -> Result<Vec<u8>, EncodeError> {
        let Rect {
            left,
            top,
            width,
            height,
        } = change.rect;
        let mut pixels = room;
        pixels.clear();
        pixels.reserve_exact(change.rect.area() * 4);
        let mut colour = [0; 3];
        for band in (top..top + height).step_by(SIDE) {
            crew.check()?;
            let begin = pixels.len();
            for y in band..(band + SIDE).min(top + height) {
                pixels.extend_from_slice(after[y * self.width + left..][..width].as_flattened());
            }
            if change.blends {
                self.leave((left, band), width, &mut pixels[begin..], grain);
            }
            if grain == Grain::Macroblock {
                colour = hidden::fill_on(&mut pixels[begin..], width, colour);
            }
        }
        Ok(pixels)
    }

    /// Makes those pixels of a row of macroblocks transparent that are not to be drawn.
    fn leave(self, (left, top): (usize, usize), width: usize, pixels: &mut [u8], grain: Grain) {
        let pixels = pixels.as_chunks_mut::<4>().0;
        let changes = |x: usize, y: usize, pixel| differs(self.at(left + x, top + y), pixel);
        for begin in (0..width).step_by(SIDE) {
            let columns = begin..(begin + SIDE).min(width);
            let is_drawn = grain == Grain::Macroblock
                && pixels.chunks_exact(width).enumerate().any(|(y, row)| {
                    let mut places = columns.clone().zip(&row[columns.clone()]);
                    places.any(|(x, pixel)| changes(x, y, *pixel))
                });
            for (y, row) in pixels.chunks_exact_mut(width).enumerate() {
                for (x, pixel) in columns.clone().zip(&mut row[columns.clone()]) {
                    let is_kept = is_drawn && pixel[3] == 255;
                    if !is_kept && !changes(x, y, *pixel) {
                        *pixel = [0; 4];
                    }
                }
            }
        }
    }

    fn at(self, x: usize, y: usize) -> [u8; 4] {
        if self.cleared.is_some_and(|rect| rect.holds(x, y)) {
            return [0; 4];
        }
        self.pixels[y * self.width + x]
    }

    /// Whether nothing of the row is cleared.
    fn is_whole(self, y: usize) -> bool {
        self.cleared
            .is_none_or(|rect| !(rect.top..rect.top + rect.height).contains(&y))
    }

    /// Adds what differs in a row.
    fn look(self, y: usize, row: &[[u8; 4]], found: &mut Found) {
        if self.is_whole(y) && row == &self.pixels[y * self.width..][..self.width] {
            return;
        }
        for (x, &pixel) in row.iter().enumerate() {
            let was = self.at(x, y);
            if !differs(was, pixel) {
                continue;
            }
            // One of the two hides the other.
            found.blends &= pixel[3] == 255 || was[3] == 0;
            let [left, top, right, bottom] = found.bounds.unwrap_or([x, y, x, y]);
            found.bounds = Some([left.min(x), top.min(y), right.max(x), bottom.max(y)]);
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

/// Whether a pixel looks otherwise: colours under alpha 0 are nobody's.
fn differs(before: [u8; 4], after: [u8; 4]) -> bool {
    before != after && (before[3] != 0 || after[3] != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webp::Patient;
    use crate::webp::crew::tests::Impatient;

    /// A canvas 4 pixels wide: `.` is transparent, letters are opaque greys, digits are half transparent.
    fn canvas(rows: &[&str]) -> Vec<[u8; 4]> {
        let pixel = |byte: u8| match byte {
            b'.' => [0; 4],
            b'0'..=b'9' => [byte, byte, byte, 128],
            grey => [grey, grey, grey, 255],
        };
        rows.iter().flat_map(|row| row.bytes()).map(pixel).collect()
    }

    fn patient() -> Crew<'static> {
        Crew::new(1, &Patient)
    }

    /// A change and its pixels, of alpha 0 a `.`.
    fn between(
        before: &[[u8; 4]],
        after: &[[u8; 4]],
        cleared: Option<Rect>,
    ) -> Option<(Change, String)> {
        let before = Before {
            pixels: before,
            width: 4,
            cleared,
        };
        let change = before.change_to(after, patient()).expect("nobody leaves")?;
        Some((change, drawn(before, &change, after, Grain::Pixel)))
    }

    fn drawn(before: Before<'_>, change: &Change, after: &[[u8; 4]], grain: Grain) -> String {
        let pixels = before
            .draw(change, after, grain, Vec::new(), patient())
            .expect("nobody leaves");
        let letter = |pixel: &[u8; 4]| if pixel[3] == 0 { '.' } else { pixel[0] as char };
        let rows = pixels.as_chunks::<4>().0.chunks(change.rect.width);
        let rows: Vec<String> = rows.map(|row| row.iter().map(letter).collect()).collect();
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
    fn pixels_that_become_transparent_are_drawn_in_place() {
        let before = canvas(&["abcd"]);
        let (change, _) = between(&before, &canvas(&["ab.d"]), None).expect("a pixel differs");
        assert_eq!((change.rect, change.blends), (rect(2, 0, 1, 1), false));
        // Half transparent ones are, too, unless nothing is there.
        let (change, _) = between(&before, &canvas(&["5bcd"]), None).expect("a pixel differs");
        assert!(!change.blends);
        let (change, _) =
            between(&canvas(&["...."]), &canvas(&["5..a"]), None).expect("two differ");
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
            pixels: &before,
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
            pixels: &before,
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
            pixels: &canvas,
            width: 64,
            cleared: None,
        };
        let all = Change {
            rect: rect(0, 0, 64, 160),
            clears: false,
            blends: true,
        };
        for patience in 0..10 {
            let caller = Impatient::new(patience);
            let crew = Crew::new(1, &caller);
            assert_eq!(before.change_to(&other, crew), Err(EncodeError::Cancelled));
            assert_eq!(caller.asked.into_inner(), patience + 1, "it went on");
            let caller = Impatient::new(patience);
            let crew = Crew::new(1, &caller);
            let drawn = before.draw(&all, &other, Grain::Pixel, Vec::new(), crew);
            assert_eq!(drawn, Err(EncodeError::Cancelled));
            assert_eq!(caller.asked.into_inner(), patience + 1, "it went on");
        }
        let caller = Impatient::new(10);
        assert_eq!(
            before.change_to(&other, Crew::new(1, &caller)),
            Ok(Some(all))
        );
    }
}
