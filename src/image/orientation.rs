//! The Exif orientation (Exif 2.32, tag 0x0112): read from the metadata, applied to the pixels.

use super::{Image, Layout};
pub(super) use ::image::metadata::Orientation;

/// The orientation that Exif data asks for. Data that makes no sense asks for none.
pub(super) fn read(exif: &[u8]) -> Option<Orientation> {
    // PNG writers sometimes keep JPEG's prefix.
    Orientation::from_exif_chunk(exif.strip_prefix(b"Exif\0\0").unwrap_or(exif))
}

/// Turns and mirrors the picture so that it is upright without the tag.
pub(super) fn apply(image: Image, orientation: Orientation) -> Image {
    match image.layout {
        Layout::Rgb => apply_to::<3>(image, orientation),
        Layout::Rgba => apply_to::<4>(image, orientation),
    }
}

fn apply_to<const N: usize>(mut image: Image, orientation: Orientation) -> Image {
    let width = image.width as usize;
    let pixels = image.pixels.as_chunks_mut::<N>().0;
    match orientation {
        Orientation::NoTransforms => image,
        Orientation::Rotate180 => {
            pixels.reverse();
            image
        }
        Orientation::FlipHorizontal => {
            pixels.chunks_exact_mut(width).for_each(<[_]>::reverse);
            image
        }
        Orientation::FlipVertical => {
            flip_rows(&mut image.pixels, width * N);
            image
        }
        // In each of these the stored rows become columns: first to last or mirrored, each from its top or its bottom.
        Orientation::Rotate90FlipH => transpose::<N>(&image, false, false),
        Orientation::Rotate90 => transpose::<N>(&image, true, false),
        Orientation::Rotate270FlipH => transpose::<N>(&image, true, true),
        Orientation::Rotate270 => transpose::<N>(&image, false, true),
    }
}

fn flip_rows(pixels: &mut [u8], stride: usize) {
    let mut rows = pixels.chunks_exact_mut(stride);
    while let (Some(top), Some(bottom)) = (rows.next(), rows.next_back()) {
        top.swap_with_slice(bottom);
    }
}

/// Makes columns of the rows: the last row becomes the first column if `rows_reversed`, and the last column the first
/// row if `columns_reversed`.
fn transpose<const N: usize>(image: &Image, rows_reversed: bool, columns_reversed: bool) -> Image {
    /// A square of this side is turned at a time, so that reads and writes both stay within the cache.
    const TILE: usize = 32;
    let (width, height) = (image.width as usize, image.height as usize);
    let source = image.pixels.as_chunks::<N>().0;
    let mut pixels = vec![0; image.pixels.len()];
    let target = pixels.as_chunks_mut::<N>().0;
    for tile_y in (0..height).step_by(TILE) {
        for tile_x in (0..width).step_by(TILE) {
            for x in tile_x..width.min(tile_x + TILE) {
                let row = if columns_reversed { width - 1 - x } else { x };
                for y in tile_y..height.min(tile_y + TILE) {
                    let column = if rows_reversed { height - 1 - y } else { y };
                    target[row * height + column] = source[y * width + x];
                }
            }
        }
    }
    Image {
        width: image.height,
        height: image.width,
        layout: image.layout,
        pixels,
    }
}
