//! From two rows of pixels to two rows of luma and one of chroma.

/// A row of chroma at half size, and how much it hides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChromaRow {
    /// U and V, padded to whole macroblocks.
    pub planes: [Vec<u8>; 2],
    /// How far apart in colour the four pixels of each sample are: the range of red less green or of blue less green, whichever
    /// is wider, at most 255. 0 in the padding.
    pub spread: Vec<u8>,
}

impl ChromaRow {
    /// Zeroed, `stride` samples long.
    pub fn new(stride: usize) -> ChromaRow {
        ChromaRow {
            planes: [vec![0; stride], vec![0; stride]],
            spread: vec![0; stride],
        }
    }
}

/// The weights of red, green and blue in Y, U and V, times 65536.
const Y_WEIGHTS: [i32; 3] = [16_839, 33_059, 6_420];
const U_WEIGHTS: [i32; 3] = [-9_719, -19_081, 28_800];
const V_WEIGHTS: [i32; 3] = [28_800, -24_116, -4_684];
/// Y of black, and U and V of grey.
const Y_OFFSET: i32 = 16;
const CHROMA_OFFSET: i32 = 128;

/// Converts a row of pixels to luma, the last of which fills what is left of `luma`.
#[inline(always)]
pub fn luma_row<const CHANNELS: usize>(pixels: &[u8], luma: &mut [u8]) {
    let width = pixels.len() / CHANNELS;
    for (y, pixel) in luma.iter_mut().zip(pixels.chunks_exact(CHANNELS)) {
        let sum = Y_WEIGHTS[0] * i32::from(pixel[0])
            + Y_WEIGHTS[1] * i32::from(pixel[1])
            + Y_WEIGHTS[2] * i32::from(pixel[2]);
        *y = ((sum + (1 << 15)) >> 16) as u8 + Y_OFFSET as u8;
    }
    let last = luma[width - 1];
    luma[width..].fill(last);
}

/// Converts the means of 2x2 pixels to chroma, the last of which fills what is left of the row.
#[inline(always)]
pub fn chroma_row<const CHANNELS: usize>(rows: [&[u8]; 2], chroma: &mut ChromaRow) {
    let pixels = rows[0].len() / CHANNELS;
    let width = pixels.div_ceil(2);
    let ChromaRow {
        planes: [u, v],
        spread,
    } = chroma;
    for x in 0..width {
        let left = 2 * x * CHANNELS;
        let right = (2 * x + 1).min(pixels - 1) * CHANNELS;
        let four = |c: usize| {
            [
                rows[0][left + c],
                rows[0][right + c],
                rows[1][left + c],
                rows[1][right + c],
            ]
            .map(i32::from)
        };
        let [red, green, blue] = [four(0), four(1), four(2)];
        let sums = [red, green, blue].map(|samples| samples.iter().sum::<i32>());
        let weigh = |weights: [i32; 3]| {
            let sum = weights[0] * sums[0] + weights[1] * sums[1] + weights[2] * sums[2];
            (((sum + (1 << 17)) >> 18) + CHROMA_OFFSET).clamp(0, 255) as u8
        };
        u[x] = weigh(U_WEIGHTS);
        v[x] = weigh(V_WEIGHTS);
        spread[x] = range_less(red, green).max(range_less(blue, green)).min(255) as u8;
    }
    for plane in [u, v] {
        let last = plane[width - 1];
        plane[width..].fill(last);
    }
}

/// The largest less the smallest of `a - b`.
#[inline(always)]
fn range_less(a: [i32; 4], b: [i32; 4]) -> i32 {
    let [d, e, f, g] = std::array::from_fn(|i| a[i] - b[i]);
    d.max(e).max(f.max(g)) - d.min(e).min(f.min(g))
}
