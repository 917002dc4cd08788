//! Made-up animated PNGs: every color type and depth, every disposal and blending, frames anywhere
//! on the canvas, data in several chunks, a default image that is a frame or none.

use super::player::ADAM7;
use crate::support::hostile::{chunk, png};
use towebp_encoder::testing::Random;

/// The color types, each with its depths (PNG, third edition, 11.2.1) and channels.
const COLORS: [(u8, &[u8], usize); 5] = [
    (0, &[1, 2, 4, 8, 16], 1),
    (2, &[8, 16], 3),
    (3, &[1, 2, 4, 8], 1),
    (4, &[8, 16], 2),
    (6, &[8, 16], 4),
];

pub struct MadeUp {
    random: Random,
    width: u32,
    height: u32,
    depth: u8,
    color: u8,
    channels: usize,
    is_interlaced: bool,
    sequence: u32,
}

impl MadeUp {
    /// The animation of this seed, of 2 to 9 frames. The first ones are of each color type and
    /// depth in turn.
    pub fn file(seed: u64) -> Vec<u8> {
        let mut random = Random::new(seed);
        let kinds: Vec<(u8, u8, usize)> = COLORS
            .iter()
            .flat_map(|&(color, depths, channels)| {
                depths.iter().map(move |&depth| (color, depth, channels))
            })
            .collect();
        let (color, depth, channels) = kinds[seed as usize % kinds.len()];
        let made_up = MadeUp {
            width: 1 + random.below(40),
            height: 1 + random.below(40),
            is_interlaced: random.below(4) == 0,
            depth,
            color,
            channels,
            sequence: 0,
            random,
        };
        made_up.write()
    }

    fn write(mut self) -> Vec<u8> {
        let frames = 2 + self.random.below(8);
        let plays = [0, 1, 7, 65535][self.random.index(4)];
        let (width, height) = (self.width, self.height);
        let size = [width.to_be_bytes(), height.to_be_bytes()].concat();
        let kinds = [self.depth, self.color, 0, 0, u8::from(self.is_interlaced)];
        let control = [frames, plays].map(u32::to_be_bytes).concat();
        let mut chunks = vec![chunk(*b"IHDR", &[size, kinds.to_vec()].concat())];
        chunks.push(chunk(*b"acTL", &control));
        chunks.extend(self.palette());
        let has_default_image_of_its_own = self.random.below(4) == 0;
        for frame in 0..frames {
            let is_first = frame == 0;
            if is_first && has_default_image_of_its_own {
                chunks.extend(self.data(width, height, *b"IDAT"));
            }
            let is_default_image = is_first && !has_default_image_of_its_own;
            let [left, columns] = self.side(width, is_default_image);
            let [top, rows] = self.side(height, is_default_image);
            chunks.push(self.control([columns, rows, left, top]));
            let name = if is_default_image { *b"IDAT" } else { *b"fdAT" };
            chunks.extend(self.data(columns, rows, name));
        }
        png(&chunks)
    }

    /// A place on a side, and a length.
    fn side(&mut self, whole: u32, is_whole: bool) -> [u32; 2] {
        if is_whole || self.random.below(3) == 0 {
            return [0, whole];
        }
        let offset = self.random.below(whole);
        [offset, 1 + self.random.below(whole - offset)]
    }

    fn palette(&mut self) -> Vec<Vec<u8>> {
        let has_transparency = self.color & 4 == 0 && self.random.below(2) == 0;
        let mut chunks = Vec::new();
        let mut alphas = 2 * self.channels;
        if self.color == 3 {
            let colors = 1 << self.depth;
            let palette: Vec<u8> = (0..3 * colors).map(|_| self.random.byte()).collect();
            chunks.push(chunk(*b"PLTE", &palette));
            alphas = 1 + self.random.index(colors);
        }
        if has_transparency {
            let most = ((1u32 << self.depth) - 1) as u16;
            let bytes: Vec<u8> = match self.color {
                3 => (0..alphas).map(|_| self.sample()).collect(),
                // One of the levels that occur often.
                _ => [0, most][self.random.index(2)]
                    .to_be_bytes()
                    .repeat(self.channels),
            };
            chunks.push(chunk(*b"tRNS", &bytes));
        }
        chunks
    }

    fn control(&mut self, place: [u32; 4]) -> Vec<u8> {
        let mut data = self.next_sequence().to_vec();
        data.extend(place.map(u32::to_be_bytes).as_flattened());
        let delays: [(u16, u16); 8] = [
            (0, 0),
            (1, 0),
            (7, 100),
            (1, 30),
            (1001, 30000),
            (3, 1000),
            (2, 1),
            (1, 60),
        ];
        let (numerator, denominator) = delays[self.random.index(8)];
        data.extend(numerator.to_be_bytes());
        data.extend(denominator.to_be_bytes());
        data.extend([self.random.below(3) as u8, self.random.below(2) as u8]);
        chunk(*b"fcTL", &data)
    }

    fn next_sequence(&mut self) -> [u8; 4] {
        self.sequence += 1;
        (self.sequence - 1).to_be_bytes()
    }

    /// The data of a picture in one chunk or several, of which some are empty, with a text between
    /// them where that may be.
    fn data(&mut self, width: u32, height: u32, name: [u8; 4]) -> Vec<Vec<u8>> {
        let rows = self.rows(width as usize, height as usize);
        let compressed = fdeflate::compress_to_vec(&rows);
        let mut rest = compressed.as_slice();
        let mut chunks = Vec::new();
        while !rest.is_empty() {
            let length = match self.random.below(3) {
                0 => self.random.index(rest.len().min(40)),
                _ => rest.len(),
            };
            let (part, behind) = rest.split_at(length);
            rest = behind;
            if name == *b"IDAT" {
                chunks.push(chunk(name, part));
                continue;
            }
            let numbered = [&self.next_sequence(), part].concat();
            chunks.push(chunk(name, &numbered));
            if self.random.below(8) == 0 {
                chunks.push(chunk(*b"tEXt", b"Comment\0between"));
            }
        }
        chunks
    }

    /// Filtered rows, or those of seven passes. What they show is any picture.
    fn rows(&mut self, width: usize, height: usize) -> Vec<u8> {
        let passes: &[[usize; 4]] = if self.is_interlaced {
            &ADAM7
        } else {
            &[[0, 0, 1, 1]]
        };
        let mut bytes = Vec::new();
        for &[left, top, across, down] in passes {
            let columns = width.saturating_sub(left).div_ceil(across);
            let rows = height.saturating_sub(top).div_ceil(down);
            if columns == 0 {
                continue;
            }
            let bits = columns * self.channels * usize::from(self.depth);
            for _ in 0..rows {
                bytes.push(self.random.below(5) as u8);
                for _ in 0..bits.div_ceil(8) {
                    bytes.push(self.sample());
                }
            }
        }
        bytes
    }

    /// A byte that is often an extreme one, so that there are opaque and transparent pixels.
    fn sample(&mut self) -> u8 {
        match self.random.below(4) {
            0 => 0,
            1 => 255,
            _ => self.random.byte(),
        }
    }
}
