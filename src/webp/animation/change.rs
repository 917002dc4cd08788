//! What a frame changes on the canvas: RFC 9649, section 2.7.1.1, has the two ways to draw a frame (over what is there, or in
//! its place) and the two to leave one (as it is, or cleared).

use crate::webp::{Layout, Picture};

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

/// What is to be drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where.
    pub rect: Rect,
    /// Whether the rectangle of the frame before is cleared first.
    pub clears: bool,
    /// Whether pixels of alpha 0 leave what is there, rather than clear it.
    pub blends: bool,
    /// Red, green, blue and alpha of the rectangle; alpha is 0 where it blends and nothing changes.
    pub pixels: Vec<u8>,
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
            pixels: vec![0; 4],
        }
    }

    /// What is to be coded.
    pub fn picture(&self) -> Picture<'_> {
        Picture {
            width: self.rect.width as u32,
            height: self.rect.height as u32,
            layout: Layout::Rgba,
            pixels: &self.pixels,
        }
    }
}

/// What makes the canvas `after` of `before`, where the rectangle `cleared` counts as transparent; `None` if both look the
/// same. Rows have `width` pixels.
pub fn between(
    before: &[[u8; 4]],
    after: &[[u8; 4]],
    width: usize,
    cleared: Option<Rect>,
) -> Option<Change> {
    let before = Before {
        pixels: before,
        width,
        cleared,
    };
    let Found { rect, blends } = before.find(after)?;
    let mut pixels = Vec::with_capacity(rect.area() * 4);
    for y in rect.top..rect.top + rect.height {
        for x in rect.left..rect.left + rect.width {
            let pixel = after[y * width + x];
            let is_left = blends && !differs(before.at(x, y), pixel);
            pixels.extend(if is_left { [0; 4] } else { pixel });
        }
    }
    Some(Change {
        rect,
        clears: cleared.is_some(),
        blends,
        pixels,
    })
}

/// The canvas as the frame finds it.
struct Before<'a> {
    pixels: &'a [[u8; 4]],
    width: usize,
    cleared: Option<Rect>,
}

struct Found {
    rect: Rect,
    blends: bool,
}

impl Before<'_> {
    fn at(&self, x: usize, y: usize) -> [u8; 4] {
        if self.cleared.is_some_and(|rect| rect.holds(x, y)) {
            return [0; 4];
        }
        self.pixels[y * self.width + x]
    }

    /// Whether nothing of the row is cleared.
    fn is_whole(&self, y: usize) -> bool {
        self.cleared
            .is_none_or(|rect| !(rect.top..rect.top + rect.height).contains(&y))
    }

    /// The smallest rectangle around all that differs, and whether drawing over what is there is exact.
    fn find(&self, after: &[[u8; 4]]) -> Option<Found> {
        let mut bounds: Option<[usize; 4]> = None;
        let mut blends = true;
        for (y, row) in after.chunks_exact(self.width).enumerate() {
            if self.is_whole(y) && row == &self.pixels[y * self.width..][..self.width] {
                continue;
            }
            for (x, &pixel) in row.iter().enumerate() {
                let was = self.at(x, y);
                if !differs(was, pixel) {
                    continue;
                }
                // One of the two hides the other.
                blends &= pixel[3] == 255 || was[3] == 0;
                let [left, top, right, bottom] = bounds.unwrap_or([x, y, x, y]);
                bounds = Some([left.min(x), top.min(y), right.max(x), bottom.max(y)]);
            }
        }
        let [left, top, right, bottom] = bounds?;
        let (left, top) = (left & !1, top & !1);
        Some(Found {
            rect: Rect {
                left,
                top,
                width: right + 1 - left,
                height: bottom + 1 - top,
            },
            blends,
        })
    }
}

/// Whether a pixel looks otherwise: colours under alpha 0 are nobody's.
fn differs(before: [u8; 4], after: [u8; 4]) -> bool {
    before != after && (before[3] != 0 || after[3] != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A canvas 4 pixels wide: `.` is transparent, letters are opaque greys, digits are half transparent.
    fn canvas(rows: &[&str]) -> Vec<[u8; 4]> {
        let pixel = |byte: u8| match byte {
            b'.' => [0; 4],
            b'0'..=b'9' => [byte, byte, byte, 128],
            grey => [grey, grey, grey, 255],
        };
        rows.iter().flat_map(|row| row.bytes()).map(pixel).collect()
    }

    fn drawn(change: &Change) -> String {
        let letter = |pixel: &[u8; 4]| if pixel[3] == 0 { '.' } else { pixel[0] as char };
        let rows = change.pixels.as_chunks::<4>().0.chunks(change.rect.width);
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
        let change = between(&before, &after, 4, None).expect("a pixel differs");
        assert_eq!((change.rect, change.blends), (rect(2, 2, 1, 2), true));
        assert_eq!(drawn(&change), ". b");
        assert_eq!(between(&before, &before, 4, None), None);
    }

    #[test]
    fn colours_that_nobody_sees_are_no_difference() {
        let before = vec![[1, 2, 3, 0]; 4];
        assert_eq!(between(&before, &[[0; 4]; 4], 4, None), None);
    }

    #[test]
    fn pixels_that_become_transparent_are_drawn_in_place() {
        let before = canvas(&["abcd"]);
        let change = between(&before, &canvas(&["ab.d"]), 4, None).expect("a pixel differs");
        assert_eq!((change.rect, change.blends), (rect(2, 0, 1, 1), false));
        // Half transparent ones are, too, unless nothing is there.
        let change = between(&before, &canvas(&["5bcd"]), 4, None).expect("a pixel differs");
        assert!(!change.blends);
        let change = between(&canvas(&["...."]), &canvas(&["5..a"]), 4, None).expect("two differ");
        assert!(change.blends);
    }

    #[test]
    fn what_is_cleared_first_counts_as_transparent() {
        let (before, after) = (canvas(&["abcd"]), canvas(&["...d"]));
        assert_eq!(between(&before, &after, 4, Some(rect(0, 0, 3, 1))), None);
        let after = canvas(&["..xd"]);
        let change = between(&before, &after, 4, Some(rect(0, 0, 4, 1))).expect("two are drawn");
        assert!(change.clears && change.blends);
        assert_eq!(
            (change.rect, drawn(&change).as_str()),
            (rect(2, 0, 2, 1), "xd")
        );
    }
}
