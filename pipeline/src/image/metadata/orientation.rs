//! The Exif orientation (Exif 2.32, tag 0x0112): read from the metadata, applied to the pixels.

use super::tiff::{SHORT, Tiff};
use crate::image::pixels::{Image, Layout};
use crate::image::rectangle::Rectangle;
use std::sync::Mutex;
use towebp_encoder::{Cancel, Cancelled, Workers};

/// The way in which stored pixels are rotated clockwise, and mirrored after that along their width
/// or height, so that the picture is upright.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orientation {
    /// The pixels are upright.
    NoTransforms,
    /// A mirror image.
    FlipHorizontal,
    /// Upside down.
    Rotate180,
    /// Upside down, and a mirror image.
    FlipVertical,
    /// The main diagonal is the axis.
    Rotate90FlipH,
    /// The top is at the left.
    Rotate90,
    /// The other diagonal is the axis.
    Rotate270FlipH,
    /// The top is at the right.
    Rotate270,
}

/// The orientations in the order of their numbers in Exif, which begin with 1.
const BY_NUMBER: [Orientation; 8] = [
    Orientation::NoTransforms,
    Orientation::FlipHorizontal,
    Orientation::Rotate180,
    Orientation::FlipVertical,
    Orientation::Rotate90FlipH,
    Orientation::Rotate90,
    Orientation::Rotate270FlipH,
    Orientation::Rotate270,
];

/// The orientation in Exif data; `None` if the data is damaged or has none.
pub fn read(exif: &[u8]) -> Option<Orientation> {
    let tiff = Tiff::new(exif.strip_prefix(JPEG_PREFIX).unwrap_or(exif))?;
    let number = tiff.u16(offset(tiff)?)?;
    let index = usize::from(number).checked_sub(1)?;
    BY_NUMBER.get(index).copied()
}

/// The prefix of Exif in a JPEG. Some PNG writers keep it.
pub const JPEG_PREFIX: &[u8] = b"Exif\0\0";

/// Sets the orientation to 1, for upright pixels, in Exif data without prefix.
pub fn reset(exif: &mut [u8]) {
    if let Some(tiff) = Tiff::new(exif)
        && let upright = if tiff.is_big_endian() { [0, 1] } else { [1, 0] }
        && let Some(offset) = offset(tiff)
        && let Some(value) = exif.get_mut(offset..offset + 2)
    {
        value.copy_from_slice(&upright);
    }
}

/// The offset of the orientation's value, two bytes, in the first directory; `None` if there is
/// none.
fn offset(tiff: Tiff<'_>) -> Option<usize> {
    const TAG: u16 = 0x0112;
    let mut entries = tiff.entries();
    let found = entries.find(|entry| (entry.tag, entry.kind, entry.count) == (TAG, SHORT, 1));
    found.map(|entry| entry.value)
}

/// Rotates and mirrors the picture so that it is upright without the tag.
pub fn apply(
    mut image: Image,
    orientation: Orientation,
    workers: Workers<'_>,
) -> Result<Image, Cancelled> {
    let grid = Grid {
        width: image.width as usize,
        height: image.height as usize,
        stride: image.width as usize,
    };
    let orient = match image.layout {
        Layout::Rgb => orient::<3>,
        Layout::Rgba => orient::<4>,
    };
    orient(&mut image.pixels, grid, orientation, workers)?;
    if swaps_sides(orientation) {
        (image.width, image.height) = (image.height, image.width);
    }
    Ok(image)
}

/// The dimensions of a buffer with the pixels of a picture or the samples of a plane.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    /// The number of pixels of a row.
    pub width: usize,
    /// The number of rows; the buffer may have more.
    pub height: usize,
    /// The distance from one row to the next, in pixels.
    pub stride: usize,
}

/// Whether the orientation makes columns of the rows.
pub fn swaps_sides(orientation: Orientation) -> bool {
    transposed(orientation).is_some()
}

/// Whether the orientation mirrors the stored picture along its width, and along its height.
pub fn mirrored_sides(orientation: Orientation) -> [bool; 2] {
    match orientation {
        Orientation::FlipHorizontal => [true, false],
        Orientation::FlipVertical => [false, true],
        Orientation::Rotate180 => [true, true],
        _ => {
            let (rows_reversed, columns_reversed) = transposed(orientation).unwrap_or_default();
            [columns_reversed, rows_reversed]
        }
    }
}

/// The place of a rectangle of a stored picture of `width` by `height` once that is oriented.
pub fn apply_to_rectangle(
    stored: Rectangle,
    (width, height): (u32, u32),
    orientation: Orientation,
) -> Rectangle {
    let [mirrors, flips] = mirrored_sides(orientation);
    let offset = |is_reversed, offset: usize, side: usize, whole: u32| {
        if is_reversed {
            whole as usize - offset - side
        } else {
            offset
        }
    };
    let left = offset(mirrors, stored.left, stored.width, width);
    let top = offset(flips, stored.top, stored.height, height);
    if swaps_sides(orientation) {
        return Rectangle {
            left: top,
            top: left,
            width: stored.height,
            height: stored.width,
        };
    }
    Rectangle {
        left,
        top,
        ..stored
    }
}

/// For the four orientations that make columns of the stored rows: whether the last row becomes the
/// first column, and whether the last column becomes the first row.
fn transposed(orientation: Orientation) -> Option<(bool, bool)> {
    match orientation {
        Orientation::Rotate90FlipH => Some((false, false)),
        Orientation::Rotate90 => Some((true, false)),
        Orientation::Rotate270FlipH => Some((true, true)),
        Orientation::Rotate270 => Some((false, true)),
        _ => None,
    }
}

/// Rotates and mirrors pixels of `N` bytes. If sides are swapped, each column of the buffer becomes
/// a row.
pub fn orient<const N: usize>(
    pixels: &mut Vec<u8>,
    grid: Grid,
    orientation: Orientation,
    workers: Workers<'_>,
) -> Result<(), Cancelled> {
    if let Some(reversed) = transposed(orientation) {
        *pixels = transpose::<N>(pixels, grid, reversed, workers)?;
        return Ok(());
    }
    let cancel = workers.cancel();
    let pixels = pixels.as_chunks_mut::<N>().0;
    let [mirrors, flips] = mirrored_sides(orientation);
    if mirrors {
        mirror_rows(pixels, grid, cancel)?;
    }
    if flips {
        flip_rows(pixels, grid, cancel)?;
    }
    Ok(())
}

fn mirror_rows<T>(pixels: &mut [T], grid: Grid, cancel: &Cancel<'_>) -> Result<(), Cancelled> {
    for row in pixels.chunks_exact_mut(grid.stride).take(grid.height) {
        cancel.check()?;
        row[..grid.width].reverse();
    }
    Ok(())
}

fn flip_rows<T>(pixels: &mut [T], grid: Grid, cancel: &Cancel<'_>) -> Result<(), Cancelled> {
    let mut rows = pixels[..grid.height * grid.stride].chunks_exact_mut(grid.stride);
    while let (Some(top), Some(bottom)) = (rows.next(), rows.next_back()) {
        cancel.check()?;
        top.swap_with_slice(bottom);
    }
    Ok(())
}

/// Makes columns of the rows. If `rows_reversed`, the last row becomes the first column; if
/// `columns_reversed`, the last column becomes the first row.
fn transpose<const N: usize>(
    source: &[u8],
    grid: Grid,
    reversed: (bool, bool),
    workers: Workers<'_>,
) -> Result<Vec<u8>, Cancelled> {
    /// The least number of pixels that a thread takes at a time: some tenths of a millisecond.
    const LEAST_PIXELS: usize = 1 << 18;
    let mut pixels = vec![0; source.len()];
    let stride = source.len() / N / grid.stride;
    let rows = (LEAST_PIXELS / stride.max(1))
        .next_multiple_of(TILE)
        .max(TILE);
    let target = &mut pixels.as_chunks_mut::<N>().0[..grid.width * stride];
    let source = source.as_chunks::<N>().0;
    let parts: Vec<_> = target.chunks_mut(rows * stride).map(Mutex::new).collect();
    let transposed = workers.run(parts.len(), |part| {
        let mut target = parts[part].lock().expect("each is taken once");
        transpose_rows(source, grid, reversed, part * rows, &mut target);
    });
    drop(parts);
    transposed.map(|_| pixels).map_err(|_| Cancelled)
}

/// The side of the square that is transposed at a time, so that reads and writes both stay within
/// the cache.
const TILE: usize = 32;

/// Writes the rows of the transposed picture from `first_row` on, as many as `target` has.
fn transpose_rows<T: Copy>(
    source: &[T],
    grid: Grid,
    (rows_reversed, columns_reversed): (bool, bool),
    first_row: usize,
    target: &mut [T],
) {
    let Grid { width, height, .. } = grid;
    let stride = source.len() / grid.stride;
    for (tile, target) in target.chunks_mut(TILE * stride).enumerate() {
        for tile_y in (0..height).step_by(TILE) {
            for (row, target) in (first_row + tile * TILE..).zip(target.chunks_mut(stride)) {
                let x = if columns_reversed {
                    width - 1 - row
                } else {
                    row
                };
                for y in tile_y..height.min(tile_y + TILE) {
                    let column = if rows_reversed { height - 1 - y } else { y };
                    target[column] = source[y * grid.stride + x];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exif with one entry in its first directory, big-endian: tag, type (3: two bytes), count,
    /// value.
    fn exif(tag: u16, kind: u16, count: u32, value: u16) -> Vec<u8> {
        let mut exif = b"MM\0*\0\0\0\x08\0\x01".to_vec();
        exif.extend([tag.to_be_bytes(), kind.to_be_bytes()].concat());
        exif.extend(count.to_be_bytes());
        exif.extend([value.to_be_bytes(), [0, 0]].concat());
        exif.extend([0; 4]);
        exif
    }

    fn oriented(layout: Layout, value: u16) -> (u32, u32, Vec<u8>) {
        // 1 2 3
        // 4 5 6
        let pixels = (1..=6)
            .flat_map(|number| vec![number; layout.channels()])
            .collect();
        let orientation = read(&exif(0x0112, 3, 1, value)).expect("a valid orientation");
        let image = apply(
            Image {
                width: 3,
                height: 2,
                layout,
                pixels,
            },
            orientation,
            Workers::new(2, None, &Cancel::never()),
        )
        .expect("it is not cancelled");
        assert_eq!(image.layout, layout);
        (
            image.width,
            image.height,
            image
                .pixels
                .into_iter()
                .step_by(layout.channels())
                .collect(),
        )
    }

    #[test]
    fn all_eight_orientations_come_out_upright() {
        for layout in [Layout::Rgb, Layout::Rgba] {
            assert_eq!(oriented(layout, 1), (3, 2, vec![1, 2, 3, 4, 5, 6]));
            assert_eq!(oriented(layout, 2), (3, 2, vec![3, 2, 1, 6, 5, 4]));
            assert_eq!(oriented(layout, 3), (3, 2, vec![6, 5, 4, 3, 2, 1]));
            assert_eq!(oriented(layout, 4), (3, 2, vec![4, 5, 6, 1, 2, 3]));
            assert_eq!(oriented(layout, 5), (2, 3, vec![1, 4, 2, 5, 3, 6]));
            assert_eq!(oriented(layout, 6), (2, 3, vec![4, 1, 5, 2, 6, 3]));
            assert_eq!(oriented(layout, 7), (2, 3, vec![6, 3, 5, 2, 4, 1]));
            assert_eq!(oriented(layout, 8), (2, 3, vec![3, 6, 2, 5, 1, 4]));
        }
    }

    #[test]
    fn pictures_larger_than_a_tile_and_than_a_part_are_oriented_whole() {
        for (width, height) in [(70, 45), (600, 1100)] {
            let number = |x: u32, y: u32| [x as u8, y as u8, (x / 7 + y / 5) as u8];
            let pixels = (0..height)
                .flat_map(|y| (0..width).flat_map(move |x| number(x, y)))
                .collect();
            let image = Image {
                width,
                height,
                layout: Layout::Rgb,
                pixels,
            };
            let never = Cancel::never();
            let image = apply(image, Orientation::Rotate90, Workers::new(2, None, &never))
                .expect("it is not cancelled");
            assert_eq!((image.width, image.height), (height, width));
            for (index, pixel) in image.pixels.as_chunks::<3>().0.iter().enumerate() {
                let (x, y) = (index as u32 % height, index as u32 / height);
                assert_eq!(*pixel, number(y, height - 1 - x), "at {x}, {y}");
            }
        }
    }

    #[test]
    fn rectangles_move_as_their_pixels_do() {
        let stored = Rectangle {
            left: 1,
            top: 2,
            width: 3,
            height: 1,
        };
        let (width, height) = (7, 5);
        for value in 1..=8 {
            let orientation = read(&exif(0x0112, 3, 1, value)).expect("a valid orientation");
            let mut pixels = vec![0; width * height * 3];
            for x in stored.left..stored.left + stored.width {
                pixels[(stored.top * width + x) * 3] = 1;
            }
            let image = Image {
                width: width as u32,
                height: height as u32,
                layout: Layout::Rgb,
                pixels,
            };
            let never = Cancel::never();
            let image = apply(image, orientation, Workers::new(1, None, &never));
            let image = image.expect("it is not cancelled");
            let places = image.pixels.iter().step_by(3).enumerate();
            let marked: Vec<usize> = places.filter(|it| *it.1 == 1).map(|it| it.0).collect();
            let size = (width as u32, height as u32);
            let placed = apply_to_rectangle(stored, size, orientation);
            let expected: Vec<usize> = (placed.top..placed.top + placed.height)
                .flat_map(|y| (placed.left..placed.left + placed.width).map(move |x| (x, y)))
                .map(|(x, y)| y * image.width as usize + x)
                .collect();
            assert_eq!(marked, expected, "orientation {value}: {placed:?}");
        }
    }

    #[test]
    fn broken_exif_asks_for_nothing() {
        let valid = exif(0x0112, 3, 1, 6);
        assert!(read(&valid).is_some());
        assert!(read(&[b"Exif\0\0", valid.as_slice()].concat()).is_some());
        for length in 0..20 {
            assert_eq!(read(&valid[..length]), None, "the first {length} bytes");
        }
        for value in [0, 9, 65535] {
            assert_eq!(
                read(&exif(0x0112, 3, 1, value)),
                None,
                "orientation {value}"
            );
        }
        assert_eq!(read(&exif(0x0113, 3, 1, 6)), None);
        assert_eq!(read(&exif(0x0112, 2, 1, 6)), None);
        assert_eq!(read(b"MM\0*\xff\xff\xff\xff"), None);
    }
}
