//! The placeholder of a picture (`placeholder=true`): its ThumbHash, some 25 bytes from which pages
//! draw a blurred picture until the file is there (<https://evanw.github.io/thumbhash/>).
//!
//! A ThumbHash has the lowest frequencies of brightness, of yellow against blue, of red against
//! green, and of alpha, by a cosine transform.

use base64ct::{Base64, Encoding};

use crate::image::{Image, Layout, Planes};
use std::f64::consts::PI;

/// Most bytes that [`of_image`] and [`of_planes`] hold at a time.
pub(super) const MEMORY: u64 = 512 << 10;

/// The longest side of the pixels that are transformed.
const MOST: usize = 100;

/// The ThumbHash of a picture, in base64.
pub(super) fn of_image(image: &Image) -> String {
    let (width, height) = (image.width as usize, image.height as usize);
    let channels = image.layout.channels();
    let hash = hash(&Small::of(width, height, |x, y| {
        let pixel = &image.pixels[(y * width + x) * channels..][..channels];
        let alpha = match image.layout {
            Layout::Rgb => 255,
            Layout::Rgba => pixel[3],
        };
        [pixel[0], pixel[1], pixel[2], alpha]
    }));
    Base64::encode_string(&hash)
}

/// The ThumbHash of a picture in planes, in base64.
pub(super) fn of_planes(planes: &Planes) -> String {
    let (width, height) = (planes.width as usize, planes.height as usize);
    let hash = hash(&Small::of(width, height, |x, y| {
        let [red, green, blue] = planes.nearest_rgb(x, y);
        [red, green, blue, 255]
    }));
    Base64::encode_string(&hash)
}

/// A picture of at most [`MOST`] pixels on each side, as red, green, blue and alpha from 0 to 1.
struct Small {
    width: usize,
    height: usize,
    pixels: Vec<[f64; 4]>,
}

impl Small {
    /// Scales a picture down, if it is larger. Each pixel is the mean of at most 2 x 2 pixels that
    /// are spread over its part: that takes as long for pictures of any size.
    fn of(width: usize, height: usize, pixel: impl Fn(usize, usize) -> [u8; 4]) -> Small {
        let longer = width.max(height).max(MOST);
        let scaled = |side: usize| ((side * MOST + longer / 2) / longer).max(1);
        let (columns, rows) = if longer == MOST {
            (width, height)
        } else {
            (scaled(width), scaled(height))
        };
        let mut pixels = Vec::with_capacity(columns * rows);
        for row in 0..rows {
            for column in 0..columns {
                let mut sum = [0_u32; 4];
                let mut count = 0;
                for y in spread(row, rows, height) {
                    for x in spread(column, columns, width) {
                        let [red, green, blue, alpha] = pixel(x, y).map(u32::from);
                        let weighted = [red * alpha, green * alpha, blue * alpha, alpha];
                        for (sum, sample) in sum.iter_mut().zip(weighted) {
                            *sum += sample;
                        }
                        count += 1;
                    }
                }
                let [red, green, blue, alpha] = sum.map(f64::from);
                let color = |sample: f64| sample / (255.0 * alpha.max(1.0));
                let alpha = alpha / f64::from(255 * count);
                pixels.push([color(red), color(green), color(blue), alpha]);
            }
        }
        Small {
            width: columns,
            height: rows,
            pixels,
        }
    }
}

/// At most two places of `length` that are spread over part `index` of `parts`.
fn spread(index: usize, parts: usize, length: usize) -> impl Iterator<Item = usize> {
    const SAMPLES: usize = 2;
    let begin = index * length / parts;
    let end = ((index + 1) * length / parts).max(begin + 1);
    let count = (end - begin).min(SAMPLES);
    (0..count).map(move |sample| begin + (2 * sample + 1) * (end - begin) / (2 * count))
}

fn hash(picture: &Small) -> Vec<u8> {
    let Small {
        width,
        height,
        ref pixels,
    } = *picture;
    let count = pixels.len() as f64;
    let opacity: f64 = pixels.iter().map(|pixel| pixel[3]).sum();
    let mean = [0, 1, 2].map(|channel| {
        let sum: f64 = pixels.iter().map(|pixel| pixel[channel] * pixel[3]).sum();
        if opacity > 0.0 { sum / opacity } else { 0.0 }
    });
    let has_alpha = opacity < count;
    // Transparent pixels are laid on the mean color.
    let laid = |[red, green, blue, alpha]: [f64; 4]| {
        let over = |sample, mean| mean * (1.0 - alpha) + sample * alpha;
        let [red, green, blue] = [
            over(red, mean[0]),
            over(green, mean[1]),
            over(blue, mean[2]),
        ];
        [
            (red + green + blue) / 3.0,
            f64::midpoint(red, green) - blue,
            red - green,
            alpha,
        ]
    };
    let channels: Vec<[f64; 4]> = pixels.iter().map(|pixel| laid(*pixel)).collect();
    let most = if has_alpha { 5 } else { 7 };
    let longer = width.max(height);
    let frequencies = |side: usize| ((2 * most * side + longer) / (2 * longer)).max(1);
    let (across, down) = (frequencies(width), frequencies(height));
    let transform = |channel: usize, across, down| {
        let samples: Vec<f64> = channels.iter().map(|pixel| pixel[channel]).collect();
        Spectrum::of(&samples, width, across, down)
    };
    let brightness = transform(0, across.max(3), down.max(3));
    let [yellow_blue, red_green] = [1, 2].map(|channel| transform(channel, 3, 3));
    let alpha = has_alpha.then(|| transform(3, 5, 5));

    let is_landscape = width > height;
    let header = level(63.0 * brightness.mean)
        | level(31.5 + 31.5 * yellow_blue.mean) << 6
        | level(31.5 + 31.5 * red_green.mean) << 12
        | level(31.0 * brightness.scale) << 18
        | u32::from(has_alpha) << 23;
    let shorter = if is_landscape { down } else { across };
    let second = shorter as u32
        | level(63.0 * yellow_blue.scale) << 3
        | level(63.0 * red_green.scale) << 9
        | u32::from(is_landscape) << 15;
    let mut hash = header.to_le_bytes()[..3].to_vec();
    hash.extend(&second.to_le_bytes()[..2]);
    if let Some(alpha) = &alpha {
        hash.push((level(15.0 * alpha.mean) | level(15.0 * alpha.scale) << 4) as u8);
    }
    let spectra = [Some(brightness), Some(yellow_blue), Some(red_green), alpha];
    let varying = spectra.into_iter().flatten().flat_map(|spectrum| {
        let scale = spectrum.scale;
        let normal = move |term| {
            if scale > 0.0 {
                0.5 + 0.5 / scale * term
            } else {
                term
            }
        };
        spectrum.terms.into_iter().map(normal)
    });
    let levels: Vec<u8> = varying.map(|term| level(15.0 * term) as u8).collect();
    let pairs = levels.chunks(2);
    hash.extend(pairs.map(|pair| pair[0] | pair.get(1).map_or(0, |second| second << 4)));
    hash
}

/// The nearest whole number.
fn level(value: f64) -> u32 {
    (value + 0.5) as u32
}

/// A channel by frequency.
struct Spectrum {
    mean: f64,
    /// The largest magnitude of a term.
    scale: f64,
    /// The terms but for the mean, row by row, in the triangle of the lower frequencies.
    terms: Vec<f64>,
}

impl Spectrum {
    fn of(samples: &[f64], width: usize, across: usize, down: usize) -> Spectrum {
        let height = samples.len() / width;
        let mut spectrum = Spectrum {
            mean: 0.0,
            scale: 0.0,
            terms: Vec::new(),
        };
        // The sum of each line for each frequency across.
        let lines: Vec<Vec<f64>> = (0..across)
            .map(|column| {
                let factors: Vec<f64> = (0..width).map(|x| cosine(column, x, width)).collect();
                let sum = |line: &[f64]| line.iter().zip(&factors).map(|(a, b)| a * b).sum();
                samples.chunks_exact(width).map(sum).collect()
            })
            .collect();
        for row in 0..down {
            let vertical: Vec<f64> = (0..height).map(|y| cosine(row, y, height)).collect();
            for column in (0..across).take_while(|column| column * down < across * (down - row)) {
                let products = lines[column].iter().zip(&vertical).map(|(a, b)| a * b);
                let sum: f64 = products.sum();
                let term = sum / samples.len() as f64;
                if (column, row) == (0, 0) {
                    spectrum.mean = term;
                } else {
                    spectrum.scale = spectrum.scale.max(term.abs());
                    spectrum.terms.push(term);
                }
            }
        }
        spectrum
    }
}

/// `cos(pi / length * frequency * (index + 1/2))`, by arithmetic that is the same on all machines:
/// the functions of the standard library may differ.
fn cosine(frequency: usize, index: usize, length: usize) -> f64 {
    // Multiples of pi / (2 * length), of which 4 * length are the circle.
    let quarter = length;
    let turned = frequency * (2 * index + 1) % (4 * quarter);
    let folded = turned.min(4 * quarter - turned);
    let (angle, sign) = if folded > quarter {
        (2 * quarter - folded, -1.0)
    } else {
        (folded, 1.0)
    };
    let square = (PI / 2.0 * angle as f64 / quarter as f64).powi(2);
    // The series up to the 20th power, from its end.
    let mut sum = 1.0;
    for power in (1..=10).rev() {
        let divisor = f64::from(2 * power * (2 * power - 1));
        sum = 1.0 - square / divisor * sum;
    }
    sign * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(width: u32, height: u32, layout: Layout) -> Image {
        let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        let pixels = places.flat_map(|(x, y)| {
            let samples = [
                (x * x + 3 * y) % 256,
                (x * y) % 256,
                (5 * x + y * y) % 256,
                255 - (x * y * 3 + y) % 200,
            ];
            samples
                .map(|sample| sample as u8)
                .into_iter()
                .take(layout.channels())
        });
        Image {
            width,
            height,
            layout,
            pixels: pixels.collect(),
        }
    }

    /// The vectors are those of the package `thumbhash` 0.1.1 of its author, for the same pixels.
    #[test]
    fn hashes_are_those_of_the_reference() {
        for (width, height, layout, expected) in [
            (1, 1, Layout::Rgb, "AAgCBwAAAAAAAAAAAAAAAAAAAAAAAAAA"),
            (75, 100, Layout::Rgb, "3wcCDQISUVJEByNDZ3JER1RE4Pxa"),
            (100, 40, Layout::Rgb, "3gcGE4IxIERBJkR1NYCzqvo="),
            (100, 30, Layout::Rgb, "ngcGEoRBIDVCNkV1JZCjyfo="),
            (64, 64, Layout::Rgba, "3heCDQIJAjMgQlIkRpIw9K3nvvveua/a7A=="),
            (30, 90, Layout::Rgba, "3ReGCgIJISEEQzZVUfC9Zt/Ov7uu+cw="),
        ] {
            let found = of_image(&image(width, height, layout));
            assert_eq!(found, expected, "{width} x {height}, {layout:?}");
        }
        let clear = Image {
            width: 2,
            height: 1,
            layout: Layout::Rgba,
            pixels: vec![0; 8],
        };
        assert_eq!(of_image(&clear), "AAiCA4AAAAAAAAAAAAAAAAAAAAAAAAA=");
    }

    #[test]
    fn a_large_picture_has_the_hash_of_itself_in_small() {
        let of = |width: usize, height: usize| {
            hash(&Small::of(width, height, |x, y| {
                let (x, y) = (x as f64 / width as f64, y as f64 / height as f64);
                let samples = [x * y, (x * 5.0).sin().abs(), y * y * x, 1.0 - x * y / 2.0];
                samples.map(|sample| (sample * 255.0) as u8)
            }))
        };
        for (large, small) in of(1600, 1200).into_iter().zip(of(100, 75)).skip(6) {
            for shift in [0, 4] {
                let apart = (large >> shift & 15).abs_diff(small >> shift & 15);
                assert!(apart <= 1, "{large:x} {small:x}");
            }
        }
    }

    #[test]
    fn planes_have_nearly_the_hash_of_their_pixels() {
        let gray = Planes {
            width: 32,
            height: 16,
            luma: (0..512).map(|at| 16 + (at % 32 * 7) as u8).collect(),
            chroma: [vec![128; 128], vec![128; 128]],
        };
        let mut pixels = Vec::new();
        gray.write_rgb(crate::image::Rectangle::whole(32, 16), &mut pixels);
        let image = Image {
            width: 32,
            height: 16,
            layout: Layout::Rgb,
            pixels,
        };
        assert_eq!(of_planes(&gray), of_image(&image));
    }
}
