//! Made-up pictures in every input format, and answers as pixels.

use std::io::Cursor;
use towebp_encoder::{ColorType, Encoder};

/// 64x48, red on the left and blue on the right. Made by Pillow, quality 95 without subsampling:
/// `Image.new("RGB", (64, 48), (200, 30, 30))`, `paste((30, 30, 200), (32, 0, 64, 48))`.
pub const HALVES_JPEG: &[u8] = include_bytes!("halves.jpg");

/// Red, green, blue and alpha of each pixel, top row first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    pub width: u32,
    pub height: u32,
    pub pixels: Vec<[u8; 4]>,
}

/// A part of a picture, in pixels: left, top, right and bottom, the latter two outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area(pub u32, pub u32, pub u32, pub u32);

impl Picture {
    pub fn of(width: u32, height: u32, pixel: impl Fn(u32, u32) -> [u8; 4]) -> Picture {
        let pixels = (0..height)
            .flat_map(|y| (0..width).map(move |x| (x, y)))
            .map(|(x, y)| pixel(x, y))
            .collect();
        Picture {
            width,
            height,
            pixels,
        }
    }

    /// One color all over.
    pub fn flat(width: u32, height: u32, [red, green, blue]: [u8; 3]) -> Picture {
        Picture::of(width, height, |_, _| [red, green, blue, 255])
    }

    /// Soft waves with fine grain: something for an encoder to lose at low quality.
    pub fn waves(width: u32, height: u32) -> Picture {
        Picture::of(width, height, |x, y| {
            let wave = |step: f32| 110.0 + 60.0 * (step / 17.0).sin();
            let grain = (x.wrapping_mul(2_654_435_761) ^ y.wrapping_mul(2_246_822_519)) >> 27;
            let [red, green] =
                [wave(x as f32), wave(y as f32)].map(|sample| sample as u8 + grain as u8);
            [red, green, 120 + grain as u8, 255]
        })
    }

    /// Nothing that an encoder could save on.
    pub fn noise(width: u32, height: u32) -> Picture {
        Picture::of(width, height, |x, y| {
            let mixed = (x ^ y.rotate_left(16)).wrapping_mul(2_654_435_761);
            let [red, green, blue, _] = (mixed ^ mixed >> 15)
                .wrapping_mul(2_246_822_519)
                .to_le_bytes();
            [red, green, blue, 255]
        })
    }

    pub fn at(&self, x: u32, y: u32) -> [u8; 4] {
        self.pixels[(y * self.width + x) as usize]
    }

    /// With an alpha channel only if something shows through.
    pub fn png(&self) -> Vec<u8> {
        let opaque = self.pixels.iter().all(|pixel| pixel[3] == 255);
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.width, self.height);
        encoder.set_color(if opaque {
            png::ColorType::Rgb
        } else {
            png::ColorType::Rgba
        });
        let samples: Vec<u8> = self
            .pixels
            .iter()
            .flat_map(|pixel| &pixel[..if opaque { 3 } else { 4 }])
            .copied()
            .collect();
        encoder
            .write_header()
            .expect("a Vec takes all")
            .write_image_data(&samples)
            .expect("as many as declared");
        bytes
    }

    /// One frame of a palette made by the encoder.
    pub fn gif(&self) -> Vec<u8> {
        let (width, height) = (self.width as u16, self.height as u16);
        let mut samples: Vec<u8> = self.pixels.iter().flatten().copied().collect();
        let mut bytes = Vec::new();
        let mut encoder =
            gif::Encoder::new(&mut bytes, width, height, &[]).expect("a Vec takes all");
        encoder
            .write_frame(&gif::Frame::from_rgba(width, height, &mut samples))
            .expect("a Vec takes all");
        drop(encoder);
        bytes
    }

    /// 24 bits a pixel, bottom row first.
    /// A WebP by this encoder, with an alpha channel if any pixel is transparent.
    pub fn webp(&self, encoder: &Encoder<'_>) -> Vec<u8> {
        let (color, samples) = if self.pixels.iter().all(|pixel| pixel[3] == 255) {
            let opaque = self.pixels.iter().flat_map(|pixel| &pixel[..3]);
            (ColorType::Rgb8, opaque.copied().collect())
        } else {
            (ColorType::Rgba8, self.pixels.as_flattened().to_vec())
        };
        let picture = towebp_encoder::Picture::new(self.width, self.height, color, &samples);
        let encoded = picture.and_then(|picture| encoder.encode(&picture));
        encoded.expect("a picture").file
    }

    pub fn bmp(&self) -> Vec<u8> {
        let row = (self.width as usize * 3).next_multiple_of(4);
        let size = row * self.height as usize;
        let mut bytes = b"BM".to_vec();
        for word in [
            54 + size as u32,
            0,
            54,
            40,
            self.width,
            self.height,
            1 | 24 << 16,
            0,
            size as u32,
            2835,
            2835,
            0,
            0,
        ] {
            bytes.extend(word.to_le_bytes());
        }
        for line in self.pixels.chunks(self.width as usize).rev() {
            let start = bytes.len();
            bytes.extend(
                line.iter()
                    .flat_map(|&[red, green, blue, _]| [blue, green, red]),
            );
            bytes.resize(start + row, 0);
        }
        bytes
    }

    /// Decodes a WebP file by a decoder that is not ours.
    pub fn decode(webp: impl AsRef<[u8]>) -> Picture {
        let mut decoder =
            image_webp::WebPDecoder::new(Cursor::new(webp.as_ref())).expect("a WebP file");
        let (width, height) = decoder.dimensions();
        let mut samples = vec![0; decoder.output_buffer_size().expect("a size that fits")];
        decoder.read_image(&mut samples).expect("a whole WebP file");
        let pixels = if decoder.has_alpha() {
            samples
                .chunks_exact(4)
                .map(|p| [p[0], p[1], p[2], p[3]])
                .collect()
        } else {
            samples
                .chunks_exact(3)
                .map(|p| [p[0], p[1], p[2], 255])
                .collect()
        };
        Picture {
            width,
            height,
            pixels,
        }
    }

    /// Mean difference of the colors' samples.
    pub fn difference(&self, other: &Picture) -> f64 {
        self.difference_in(other, Area(0, 0, self.width, self.height))
    }

    /// Mean difference of the colors' samples within an area.
    pub fn difference_in(&self, other: &Picture, Area(left, top, right, bottom): Area) -> f64 {
        assert_eq!((self.width, self.height), (other.width, other.height));
        let mut sum = 0;
        for (x, y) in (top..bottom).flat_map(|y| (left..right).map(move |x| (x, y))) {
            let (a, b) = (self.at(x, y), other.at(x, y));
            sum += (0..3).map(|i| u64::from(a[i].abs_diff(b[i]))).sum::<u64>();
        }
        sum as f64 / f64::from((right - left) * (bottom - top) * 3)
    }

    /// The smallest area that holds all pixels of that kind.
    pub fn extent(&self, kind: impl Fn([u8; 4]) -> bool) -> Option<Area> {
        let all = (0..self.height).flat_map(|y| (0..self.width).map(move |x| (x, y)));
        all.filter(|&(x, y)| kind(self.at(x, y)))
            .fold(None, |area, (x, y)| {
                let Area(left, top, right, bottom) = area.unwrap_or(Area(x, y, x, y));
                Some(Area(
                    left.min(x),
                    top.min(y),
                    right.max(x + 1),
                    bottom.max(y + 1),
                ))
            })
    }
}

/// The first four letters of every chunk in a WebP file (RFC 9649, 2.3).
pub fn chunks(webp: impl AsRef<[u8]>) -> Vec<String> {
    let webp = webp.as_ref();
    assert!(
        webp.starts_with(b"RIFF") && &webp[8..12] == b"WEBP",
        "not a WebP file"
    );
    let mut names = Vec::new();
    let mut at = 12;
    while let Some(header) = webp.get(at..at + 8) {
        names.push(String::from_utf8_lossy(&header[..4]).into_owned());
        let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
        at += 8 + length.next_multiple_of(2);
    }
    names
}
