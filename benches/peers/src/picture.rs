//! Pictures to measure on.

use std::fs;
use std::path::{Path, PathBuf};
use towebp_pipeline::conversion::Cancel;
use towebp_pipeline::image::{self, Format, Layout, Limits};

/// Larger pictures are halved until they are not: a run stays bounded, and the pixels of a camera
/// with more are blurred anyway. Screenshots stay whole, since halved text is no text.
pub const MAX_PIXELS: usize = 6_000_000;

/// RGB, 8 bits each, rows without padding.
#[derive(Clone, Debug)]
pub struct Picture {
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
    /// `3 * width * height` bytes.
    pub pixels: Vec<u8>,
}

impl Picture {
    /// Reads a PNG or JPEG (alpha is dropped) and halves it until it has at most [`MAX_PIXELS`].
    ///
    /// # Errors
    /// What is wrong with the file, and its name.
    pub fn open(path: &Path) -> Result<Self, String> {
        let file = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let format =
            Format::sniff(&file).ok_or_else(|| format!("{}: no picture", path.display()))?;
        let image = image::decode(&file, format, &Limits::default(), &Cancel::never())
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let mut pixels = image.pixels;
        if image.layout == Layout::Rgba {
            pixels = pixels
                .chunks_exact(4)
                .flat_map(|pixel| [pixel[0], pixel[1], pixel[2]])
                .collect();
        }
        let mut picture = Self {
            width: image.width,
            height: image.height,
            pixels,
        };
        while picture.pixel_count() > MAX_PIXELS {
            picture = picture.halved();
        }
        Ok(picture)
    }

    /// Width times height.
    pub fn pixel_count(&self) -> usize {
        self.width as usize * self.height as usize
    }

    /// In millions of pixels.
    pub fn megapixels(&self) -> f64 {
        self.pixel_count() as f64 / 1e6
    }

    /// The middle, at most `side` pixels wide and high, with edges on macroblocks' edges.
    pub fn middle(&self, side: u32) -> Self {
        let (width, height) = (self.width.min(side), self.height.min(side));
        let left = (self.width - width) / 2 / 16 * 16;
        let top = (self.height - height) / 2 / 16 * 16;
        let stride = 3 * self.width as usize;
        let pixels = self
            .pixels
            .chunks_exact(stride)
            .skip(top as usize)
            .take(height as usize)
            .flat_map(|row| &row[3 * left as usize..][..3 * width as usize])
            .copied()
            .collect();
        Self {
            width,
            height,
            pixels,
        }
    }

    /// The mean of each 2x2 box; an odd last row or column is dropped.
    fn halved(&self) -> Self {
        let (width, height) = (self.width / 2, self.height / 2);
        let stride = 3 * self.width as usize;
        let mut pixels = Vec::with_capacity(3 * width as usize * height as usize);
        for y in 0..height as usize {
            let two_rows = &self.pixels[2 * y * stride..][..2 * stride];
            for x in 0..width as usize {
                for c in 0..3 {
                    let at = 6 * x + c;
                    let sum: u32 = [at, at + 3, at + stride, at + 3 + stride]
                        .into_iter()
                        .map(|i| u32::from(two_rows[i]))
                        .sum();
                    pixels.push(((sum + 2) / 4) as u8);
                }
            }
        }
        Self {
            width,
            height,
            pixels,
        }
    }
}

/// Endings of the files that [`Picture::open`] reads.
pub const STILL: &[&str] = &["png", "jpg", "jpeg"];

/// The files among `arguments`, and directly inside of its folders those with one of the `endings`,
/// in the order of their names.
///
/// # Errors
/// A folder that cannot be read.
pub fn find(arguments: &[PathBuf], endings: &[&str]) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for argument in arguments {
        if !argument.is_dir() {
            files.push(argument.clone());
            continue;
        }
        let entries = argument
            .read_dir()
            .map_err(|error| format!("{}: {error}", argument.display()))?;
        let mut inside: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|p| ends_in(p, endings))
            .collect();
        inside.sort();
        files.extend(inside);
    }
    Ok(files)
}

fn ends_in(path: &Path, endings: &[&str]) -> bool {
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    endings.iter().any(|known| extension == *known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halving_takes_the_mean_of_each_box_and_drops_the_odd_column() {
        let pixels = [[10; 3], [20; 3], [99; 3], [30; 3], [41; 3], [99; 3]].concat();
        let half = Picture {
            width: 3,
            height: 2,
            pixels,
        }
        .halved();
        assert_eq!((half.width, half.height), (1, 1));
        assert_eq!(half.pixels, [25, 25, 25], "(10 + 20 + 30 + 41) / 4 = 25.25");
    }

    #[test]
    fn the_middle_begins_at_a_macroblock() {
        let pixels = (0..100 * 20)
            .flat_map(|i| [(i % 100) as u8, (i / 100) as u8, 0])
            .collect();
        let middle = Picture {
            width: 100,
            height: 20,
            pixels,
        }
        .middle(32);
        assert_eq!((middle.width, middle.height), (32, 20));
        assert_eq!(middle.pixels[..3], [32, 0, 0]);
        assert_eq!(middle.pixels[3 * (32 * 20 - 1)..], [63, 19, 0]);
    }
}
