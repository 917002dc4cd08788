//! JPEGs of plain blocks, since no JPEG encoder is among the dependencies: DC coefficients alone
//! (ITU-T T.81), which take as much memory to decode as any other.

use super::picture::Picture;

/// How a file is laid out.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// One scan, chroma at half size.
    Sequential,
    /// SOF2, chroma at half size: the decoder keeps all coefficients.
    Progressive,
    /// SOF2, chroma at full size.
    ProgressiveFull,
}

/// The picture's colors at the corners of its blocks, each over the whole block.
pub fn jpeg(picture: &Picture, kind: Kind) -> Vec<u8> {
    let factor = match kind {
        Kind::Sequential | Kind::Progressive => 2,
        Kind::ProgressiveFull => 1,
    };
    let (start_of_frame, last_coefficient) = match kind {
        Kind::Sequential => (0xc0, 63),
        Kind::Progressive | Kind::ProgressiveFull => (0xc2, 0),
    };
    let mut file = vec![0xff, 0xd8];
    // All quantizers 8: a DC coefficient is then the sample itself, less 128.
    segment(&mut file, 0xdb, &[&[0][..], &[8; 64]].concat());
    let [height, width] = [picture.height, picture.width].map(|side| (side as u16).to_be_bytes());
    let mut frame = vec![8, height[0], height[1], width[0], width[1], 3];
    frame.extend([1, factor << 4 | factor, 0, 2, 0x11, 0, 3, 0x11, 0]);
    segment(&mut file, start_of_frame, &frame);
    // DC: the categories 0 to 11 as codes of 4 bits. AC: end of block as the one code, of 1 bit.
    let dc: Vec<u8> = [0, 0, 0, 0, 12]
        .into_iter()
        .chain([0; 12])
        .chain(0..12)
        .collect();
    segment(&mut file, 0xc4, &dc);
    let ac: Vec<u8> = [0x10, 1].into_iter().chain([0; 16]).collect();
    segment(&mut file, 0xc4, &ac);
    segment(
        &mut file,
        0xda,
        &[3, 1, 0, 2, 0, 3, 0, 0, last_coefficient, 0],
    );
    let has_ac = last_coefficient > 0;
    file.extend(scan(picture, u32::from(factor), has_ac));
    file.extend([0xff, 0xd9]);
    file
}

fn segment(file: &mut Vec<u8>, marker: u8, data: &[u8]) {
    file.extend([0xff, marker]);
    file.extend((data.len() as u16 + 2).to_be_bytes());
    file.extend(data);
}

fn scan(picture: &Picture, factor: u32, has_ac: bool) -> Vec<u8> {
    let mut bits = Bits::default();
    let mut before = [128; 3];
    let side = 8 * factor;
    let mut block = |component: usize, sample: u8| {
        let difference = i32::from(sample) - before[component];
        before[component] = i32::from(sample);
        let category = 32 - difference.unsigned_abs().leading_zeros();
        bits.push(category, 4);
        // Negative ones less one, in their category's bits (F.1.2.1).
        let value = if difference < 0 {
            difference - 1
        } else {
            difference
        };
        bits.push(value as u32 & ((1 << category) - 1), category);
        if has_ac {
            bits.push(0, 1);
        }
    };
    let at = |x: u32, y: u32| picture.at(x.min(picture.width - 1), y.min(picture.height - 1));
    for y in (0..picture.height).step_by(side as usize) {
        for x in (0..picture.width).step_by(side as usize) {
            for block_y in 0..factor {
                for block_x in 0..factor {
                    block(0, at(x + 8 * block_x, y + 8 * block_y)[1]);
                }
            }
            let [red, green, blue, _] = at(x, y).map(i32::from);
            block(1, (128 + (blue - green) / 2).clamp(0, 255) as u8);
            block(2, (128 + (red - green) / 2).clamp(0, 255) as u8);
        }
    }
    bits.finish()
}

#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    waiting: u64,
    count: u32,
}

impl Bits {
    fn push(&mut self, value: u32, count: u32) {
        self.waiting = self.waiting << count | u64::from(value);
        self.count += count;
        while self.count >= 8 {
            self.count -= 8;
            let byte = (self.waiting >> self.count) as u8;
            self.bytes.push(byte);
            if byte == 0xff {
                self.bytes.push(0);
            }
        }
    }

    /// Filled up with ones.
    fn finish(mut self) -> Vec<u8> {
        self.push(0x7f, 7);
        self.bytes
    }
}
