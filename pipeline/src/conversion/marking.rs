//! Watermarks on a picture in planes. The macroblocks under them become RGB, are drawn on, and
//! become planes again; the samples of all others stay as the file has them.

use super::error::ConversionError;
use super::plan::Plan;
use super::steps::decode_mark;
use crate::image::{Image, Layout, Planes, Rectangle};
use crate::watermark::PlacedMark;
use towebp_encoder::{Cancel, PlanesBuilder};

/// The side of a macroblock.
const SIDE: usize = 16;

/// Draws the watermarks, the text over the picture. They are not tiled.
pub(super) fn draw_on_planes(
    plan: &Plan<'_>,
    planes: &mut Planes,
    cancel: &Cancel<'_>,
) -> Result<(), ConversionError> {
    let size = (planes.width, planes.height);
    let placement = &plan.params.placement;
    let picture = decode_mark(plan, cancel)?;
    let mut marks = Vec::new();
    if let Some(picture) = &picture {
        marks.push(PlacedMark::picture(picture, placement, size, cancel)?);
    }
    if let Some(text) = &plan.params.text {
        let fonts = plan.resources.fonts;
        marks.extend(PlacedMark::text(text, fonts, placement, size, cancel)?);
    }
    draw_marks(&marks, planes, cancel)
}

/// Draws marks, each over those before it.
fn draw_marks(
    marks: &[PlacedMark<'_>],
    planes: &mut Planes,
    cancel: &Cancel<'_>,
) -> Result<(), ConversionError> {
    let bounds = marks.iter().map(PlacedMark::bounds);
    let Some(bounds) = bounds.reduce(Rectangle::union) else {
        return Ok(());
    };
    if bounds.is_empty() {
        return Ok(());
    }
    let part = converted_part(bounds, planes);
    let mut builder = PlanesBuilder::new((part.width as u32, part.height as u32))?;
    let mut band = Image {
        width: part.width as u32,
        height: 0,
        layout: Layout::Rgb,
        pixels: Vec::new(),
    };
    let mut before = Vec::new();
    let mut changed = Vec::new();
    for top in (part.top..part.top + part.height).step_by(SIDE) {
        cancel.check()?;
        let height = SIDE.min(part.top + part.height - top);
        let rows = Rectangle {
            top,
            height,
            ..part
        };
        planes.write_rgb(rows, &mut band.pixels);
        band.height = height as u32;
        before.clone_from(&band.pixels);
        for mark in marks {
            mark.draw_on(&mut band, (part.left, top), cancel)?;
        }
        changed.extend(changed_columns(&before, &band).map(|column| (column, top / SIDE)));
        for row in band.pixels.chunks_exact(part.width * 3) {
            builder.push_row(row)?;
        }
    }
    let (luma, chroma) = builder.finish()?.into_samples();
    let drawn = Planes {
        width: part.width as u32,
        height: part.height as u32,
        luma,
        chroma,
    };
    let (left, top) = (part.left / SIDE, part.top / SIDE);
    for (column, row) in changed {
        planes.copy_macroblock((left + column, row), &drawn, (column, row - top));
    }
    Ok(())
}

/// The part of the picture that is converted: the macroblocks of a rectangle, and those around
/// them, since the conversion looks at the neighbors of a pixel.
fn converted_part(bounds: Rectangle, planes: &Planes) -> Rectangle {
    let range = |start: usize, length: usize, side: u32| {
        let first = (start / SIDE * SIDE).saturating_sub(SIDE);
        let end = (start + length).next_multiple_of(SIDE) + SIDE;
        (first, end.min(side as usize) - first)
    };
    let (left, width) = range(bounds.left, bounds.width, planes.width);
    let (top, height) = range(bounds.top, bounds.height, planes.height);
    Rectangle {
        left,
        top,
        width,
        height,
    }
}

/// The columns of macroblocks in which pixels differ.
fn changed_columns(before: &[u8], band: &Image) -> impl Iterator<Item = usize> {
    let width = band.width as usize;
    let mut is_changed = vec![false; width.div_ceil(SIDE)];
    let rows = before
        .chunks_exact(width * 3)
        .zip(band.pixels.chunks_exact(width * 3));
    for (before, after) in rows {
        let columns = before.chunks(SIDE * 3).zip(after.chunks(SIDE * 3));
        for (is_changed, (before, after)) in is_changed.iter_mut().zip(columns) {
            *is_changed |= before != after;
        }
    }
    let columns = is_changed.into_iter().enumerate();
    columns.filter_map(|(column, is_changed)| is_changed.then_some(column))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watermark::{Color, TextSize, TextWatermark};
    use crate::watermark::{Fonts, Length, Outline, Placement, Position, draw_picture, draw_text};
    use towebp_encoder::testing::Random;

    /// Planes of soft colors and some noise.
    fn planes(width: u32, height: u32) -> Planes {
        let mut random = Random::new(u64::from(width * height));
        let [wide, high] = [width, height].map(|side| side.next_multiple_of(16) as usize);
        let mut plane = |stride: usize, height: usize, base: usize| -> Vec<u8> {
            (0..stride * height)
                .map(|at| (base + at % stride / 3 + at / stride / 2 + random.index(6)) as u8)
                .collect()
        };
        Planes {
            width,
            height,
            luma: plane(wide, high, 40),
            chroma: [90, 120].map(|base| plane(wide / 2, high / 2, base)),
        }
    }

    /// The planes of a whole picture that was drawn on in RGB.
    fn by_way_of_rgb(planes: &Planes, draw: impl FnOnce(&mut Image)) -> Planes {
        let (width, height) = (planes.width, planes.height);
        let mut image = Image {
            width,
            height,
            layout: Layout::Rgb,
            pixels: Vec::new(),
        };
        planes.write_rgb(Rectangle::whole(width, height), &mut image.pixels);
        draw(&mut image);
        let mut builder = PlanesBuilder::new((width, height)).expect("a good size");
        for row in image.pixels.chunks(width as usize * 3) {
            builder.push_row(row).expect("a good row");
        }
        let (luma, chroma) = builder.finish().expect("all rows").into_samples();
        Planes {
            width,
            height,
            luma,
            chroma,
        }
    }

    /// A macroblock of all three planes.
    fn macroblock(planes: &Planes, column: usize, row: usize) -> Vec<u8> {
        let stride = planes.width.next_multiple_of(16) as usize;
        let [u, v] = &planes.chroma;
        let mut samples = Vec::new();
        for (plane, side, stride) in [
            (&planes.luma, 16, stride),
            (u, 8, stride / 2),
            (v, 8, stride / 2),
        ] {
            for y in row * side..(row + 1) * side {
                samples.extend_from_slice(&plane[y * stride + column * side..][..side]);
            }
        }
        samples
    }

    /// Checks that macroblocks under the bounds are those of a picture that was converted as a
    /// whole, if anything is drawn there, and that the others stay. Returns how many changed.
    fn check(
        before: &Planes,
        after: &Planes,
        whole: &Planes,
        bounds: Rectangle,
        what: &str,
    ) -> usize {
        let mut changed = 0;
        for row in 0..before.height.div_ceil(16) as usize {
            for column in 0..before.width.div_ceil(16) as usize {
                let [was, is, other] =
                    [before, after, whole].map(|planes| macroblock(planes, column, row));
                let is_under = column * 16 < bounds.left + bounds.width
                    && (column + 1) * 16 > bounds.left
                    && row * 16 < bounds.top + bounds.height
                    && (row + 1) * 16 > bounds.top;
                if was != is {
                    changed += 1;
                    assert!(is_under, "{what}: {column}, {row} has changed");
                    assert!(is == other, "{what}: {column}, {row} is another one");
                }
            }
        }
        changed
    }

    fn plain(width: u32, height: u32) -> Image {
        Image {
            width,
            height,
            layout: Layout::Rgb,
            pixels: [250, 20, 90].repeat((width * height) as usize),
        }
    }

    #[test]
    fn macroblocks_under_a_picture_are_drawn_on_and_others_stay() {
        let mark = plain(21, 9);
        let never = Cancel::never();
        for (width, height) in [(1, 1), (15, 33), (64, 64), (101, 77), (160, 95)] {
            let before = planes(width, height);
            let size = (width, height);
            for (position, rotate) in Position::ALL
                .into_iter()
                .zip([0, 0, 30, 0, 90, 0, 0, 180, 0])
            {
                for opacity in [0, 40, 100] {
                    let placement = Placement {
                        position,
                        rotate,
                        opacity,
                        margin: Some(Length::Pixels(5)),
                        ..Placement::default()
                    };
                    let what = format!("{width} x {height}, {position:?}, {opacity}");
                    let placed = PlacedMark::picture(&mark, &placement, size, &never);
                    let placed = placed.expect("it is not cancelled");
                    let bounds = placed.bounds();
                    let mut after = before.clone();
                    draw_marks(&[placed], &mut after, &never).expect("it is not cancelled");
                    let whole = by_way_of_rgb(&before, |image| {
                        draw_picture(image, &mark, &placement, &never).expect("not cancelled");
                    });
                    let changed = check(&before, &after, &whole, bounds, &what);
                    assert_eq!(changed > 0, opacity > 0, "{what}");
                }
            }
        }
    }

    #[test]
    fn a_text_over_a_picture_is_drawn_at_once() {
        let fonts = Fonts::bundled();
        let text = TextWatermark {
            text: "© Ada".to_owned(),
            size: TextSize::Given(Length::Pixels(24)),
            color: Color::WHITE,
            outline: Outline::Shadow,
        };
        let (mark, never) = (plain(70, 12), Cancel::never());
        for position in Position::ALL {
            let placement = Placement {
                position,
                rotate: 10,
                opacity: 80,
                ..Placement::default()
            };
            let before = planes(211, 143);
            let size = (before.width, before.height);
            let picture = PlacedMark::picture(&mark, &placement, size, &never);
            let letters = PlacedMark::text(&text, fonts, &placement, size, &never);
            let letters = letters.expect("it can be drawn").expect("it has letters");
            let marks = [picture.expect("it is not cancelled"), letters];
            let bounds = marks[0].bounds().union(marks[1].bounds());
            let mut after = before.clone();
            draw_marks(&marks, &mut after, &never).expect("it is not cancelled");
            let whole = by_way_of_rgb(&before, |image| {
                draw_picture(image, &mark, &placement, &never).expect("it is not cancelled");
                draw_text(image, &text, fonts, &placement, &never).expect("it can be drawn");
            });
            let changed = check(&before, &after, &whole, bounds, &format!("{position:?}"));
            assert!(changed > 10, "{changed} macroblocks at {position:?}");
        }
    }
}
