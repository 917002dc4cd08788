//! A player of animated PNGs, written from the specification (PNG, third edition) alone: it shares
//! no line with the program, but for the decompression. It expects good files.

use std::collections::BTreeMap;

/// The passes of interlaced pictures: left, top, and the steps across and down (section 8.2).
pub const ADAM7: [[usize; 4]; 7] = [
    [0, 0, 8, 8],
    [4, 0, 8, 8],
    [0, 4, 4, 8],
    [2, 0, 4, 4],
    [0, 2, 2, 4],
    [1, 0, 2, 2],
    [0, 1, 1, 2],
];

/// What a viewer shows: each canvas with its time in milliseconds, and how often all is played.
pub struct Played {
    pub width: usize,
    pub height: usize,
    /// Each canvas for the time that the file says, in microseconds.
    pub canvases: Vec<(Vec<u8>, u64)>,
    pub plays: u32,
}

/// What the header of the file says of samples.
struct Samples {
    depth: usize,
    color: u8,
    is_interlaced: bool,
    palette: Vec<u8>,
    transparency: Option<Vec<u8>>,
}

pub fn play(file: &[u8]) -> Played {
    let chunks = chunks(file);
    let (_, header) = chunks[0];
    let find = |name: &[u8; 4]| chunks.iter().find(|(found, _)| found == name);
    let data = |name: &[u8; 4]| find(name).map(|(_, data)| data.to_vec());
    let place = |name: &[u8; 4]| chunks.iter().position(|(found, _)| found == name);
    let samples = Samples {
        depth: header[8].into(),
        color: header[9],
        is_interlaced: header[12] == 1,
        palette: data(b"PLTE").unwrap_or_default(),
        // It has to stand behind a palette, and in front of the pixels (5.6).
        transparency: data(b"tRNS").filter(|_| {
            let trns = place(b"tRNS");
            (header[9] != 3 || place(b"PLTE") < trns) && trns < place(b"IDAT")
        }),
    };
    let (width, height) = (number(header) as usize, number(&header[4..]) as usize);
    let (_, control) = find(b"acTL").expect("an animation");
    let plays = number(&control[4..]);

    // The control of each frame, with its compressed data.
    let mut frames: Vec<(&[u8], Vec<u8>)> = Vec::new();
    for (name, data) in &chunks {
        match (name, frames.last_mut()) {
            (b"fcTL", _) => frames.push((data, Vec::new())),
            (b"IDAT", Some((_, compressed))) => compressed.extend_from_slice(data),
            (b"fdAT", Some((_, compressed))) => compressed.extend_from_slice(&data[4..]),
            _ => {}
        }
    }
    let mut canvas = vec![[0; 4]; width * height];
    let mut canvases = Vec::new();
    for (index, (control, compressed)) in frames.iter().enumerate() {
        let [columns, rows, left, top] = [4, 8, 12, 16].map(|at| number(&control[at..]) as usize);
        let pixels = samples.decode(compressed, columns, rows);
        let before = canvas.clone();
        let places =
            || (0..rows).flat_map(|y| (0..columns).map(move |x| (top + y) * width + left + x));
        for (place, pixel) in places().zip(pixels) {
            canvas[place] = match control[25] {
                0 => pixel,
                _ => over(pixel, canvas[place]),
            };
        }
        let seen = canvas
            .iter()
            .map(|&pixel| if pixel[3] == 0 { [0; 4] } else { pixel });
        canvases.push((seen.flatten().collect(), time(control)));
        match control[24] {
            0 => {}
            2 if index > 0 => canvas = before,
            _ => places().for_each(|place| canvas[place] = [0; 4]),
        }
    }
    Played {
        width,
        height,
        canvases,
        plays,
    }
}

/// Microseconds. What is to be shown for at most 10 ms, browsers show for 100.
fn time(control: &[u8]) -> u64 {
    let [numerator, denominator] =
        [20, 22].map(|at| u64::from(control[at]) << 8 | u64::from(control[at + 1]));
    let denominator = if denominator == 0 { 100 } else { denominator };
    match numerator * 1_000_000 / denominator {
        ..10_500 => 100_000,
        time => time,
    }
}

/// By the formula for colors from 0 to 1 that are not multiplied by alpha.
fn over(above: [u8; 4], below: [u8; 4]) -> [u8; 4] {
    let [above, below] = [above, below].map(|pixel| pixel.map(|sample| f64::from(sample) / 255.0));
    let alpha = above[3] + below[3] * (1.0 - above[3]);
    if alpha == 0.0 {
        return [0; 4];
    }
    let mut pixel = [0, 1, 2, 3].map(|channel| {
        let sum = above[channel] * above[3] + below[channel] * below[3] * (1.0 - above[3]);
        sum / alpha
    });
    pixel[3] = alpha;
    // A bit more than exactly a half, which binary fractions may be below.
    pixel.map(|value| (value * 255.0 + 0.5 + 1e-9) as u8)
}

impl Samples {
    fn channels(&self) -> usize {
        BTreeMap::from([(0, 1), (2, 3), (3, 1), (4, 2), (6, 4)])[&self.color]
    }

    fn decode(&self, compressed: &[u8], width: usize, height: usize) -> Vec<[u8; 4]> {
        let data = fdeflate::decompress_to_vec(compressed).expect("zlib");
        let mut rest = data.as_slice();
        let mut pixels = vec![[0; 4]; width * height];
        let passes: &[[usize; 4]] = if self.is_interlaced {
            &ADAM7
        } else {
            &[[0, 0, 1, 1]]
        };
        for &[left, top, across, down] in passes {
            let columns = width.saturating_sub(left).div_ceil(across);
            let rows = height.saturating_sub(top).div_ceil(down);
            if columns == 0 || rows == 0 {
                continue;
            }
            let length = (columns * self.channels() * self.depth).div_ceil(8);
            let mut above = vec![0; length];
            for row in 0..rows {
                let (filtered, behind) = rest.split_at(1 + length);
                rest = behind;
                let bytes = self.unfilter(filtered, &above);
                for column in 0..columns {
                    let place = (top + row * down) * width + left + column * across;
                    pixels[place] = self.pixel(&bytes, column);
                }
                above = bytes;
            }
        }
        assert!(rest.is_empty(), "{} bytes more than rows", rest.len());
        pixels
    }

    fn unfilter(&self, filtered: &[u8], above: &[u8]) -> Vec<u8> {
        let step = (self.channels() * self.depth).div_ceil(8);
        let mut bytes = filtered[1..].to_vec();
        for at in 0..bytes.len() {
            let [left, corner] = match at.checked_sub(step) {
                Some(before) => [bytes[before], above[before]].map(i32::from),
                None => [0, 0],
            };
            let up = i32::from(above[at]);
            let predicted = match filtered[0] {
                0 => 0,
                1 => left,
                2 => up,
                3 => i32::midpoint(left, up),
                4 => {
                    let estimate = left + up - corner;
                    // The first of those that are nearest.
                    [left, up, corner]
                        .into_iter()
                        .min_by_key(|value| (estimate - value).abs())
                        .expect("there are three")
                }
                other => panic!("filter {other}"),
            };
            bytes[at] = bytes[at].wrapping_add(predicted as u8);
        }
        bytes
    }

    /// The pixel of a row, its samples rounded to 8 bits.
    fn pixel(&self, row: &[u8], column: usize) -> [u8; 4] {
        let channels = self.channels();
        let stored: Vec<u32> = (0..channels)
            .map(|channel| self.stored(row, column * channels + channel))
            .collect();
        if self.color == 3 {
            let index = stored[0] as usize;
            let color = &self.palette[3 * index..][..3];
            let alpha = self.transparency.as_ref();
            let alpha = alpha.and_then(|alphas| alphas.get(index)).copied();
            return [color[0], color[1], color[2], alpha.unwrap_or(255)];
        }
        let most = (1u32 << self.depth) - 1;
        let byte = |sample: u32| ((sample * 255 * 2 + most) / (2 * most)) as u8;
        // A color that no sample can have is none.
        let mask = if self.depth == 16 { 0xffff } else { 0xff };
        let is_the_transparent_one = self.transparency.as_ref().is_some_and(|color| {
            let color = color
                .chunks(2)
                .map(|two| (u32::from(two[0]) << 8 | u32::from(two[1])) & mask);
            color.eq(stored.iter().copied())
        });
        let opaque = if is_the_transparent_one { 0 } else { 255 };
        let bytes: Vec<u8> = stored.iter().map(|&sample| byte(sample)).collect();
        match bytes[..] {
            [gray] => [gray, gray, gray, opaque],
            [gray, alpha] => [gray, gray, gray, alpha],
            [red, green, blue] => [red, green, blue, opaque],
            _ => [bytes[0], bytes[1], bytes[2], bytes[3]],
        }
    }

    fn stored(&self, row: &[u8], index: usize) -> u32 {
        match self.depth {
            16 => u32::from(row[2 * index]) << 8 | u32::from(row[2 * index + 1]),
            8 => row[index].into(),
            depth => {
                let bit = index * depth;
                let shift = 8 - depth - bit % 8;
                u32::from(row[bit / 8]) >> shift & ((1 << depth) - 1)
            }
        }
    }
}

/// Names and data.
pub fn chunks(file: &[u8]) -> Vec<([u8; 4], &[u8])> {
    let mut chunks = Vec::new();
    let mut rest = &file[8..];
    while !rest.is_empty() {
        let length = number(rest) as usize;
        let name = [rest[4], rest[5], rest[6], rest[7]];
        chunks.push((name, &rest[8..][..length]));
        rest = &rest[12 + length..];
    }
    chunks
}

fn number(bytes: &[u8]) -> u32 {
    bytes[..4]
        .iter()
        .fold(0, |number, &byte| number << 8 | u32::from(byte))
}
