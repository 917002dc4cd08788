//! Corrects luma where the chroma that a decoder interpolates is wrong, so that the luminance is
//! right.
//!
//! Luma is defined on samples with gamma, and a decoder clamps what lies outside of RGB. A black
//! pixel with its neighbors' red chroma becomes dark red, and a red pixel with too little chroma is
//! pale; the brightness of both is wrong. Where the interpolated chroma is far off, luma is moved
//! so that the pixel is as bright as in the source.
//!
//! The aim is that of libwebp's sharp YUV, but this takes a fraction of its time, and leaves pixels
//! alone that are nearly right: over six photographs of Kodak, bytes at equal SSIMULACRA2 and
//! PSNR-Y change by -0.1 and 0.0 %. Synthetic pictures gain: on four screenshots, together with the
//! sharpened chroma, -6.8 % bytes at equal SSIMULACRA2. On small red, blue and yellow text over
//! saturated backgrounds, SSIMULACRA2 at quality 75 is 58 instead of -6, where libwebp has -11, and
//! with sharp YUV 54 in 12 % more bytes. PSNR-Y falls there by its nature (30 instead of 35 dB),
//! because luma pays.
//!
//! Tried and left out (SSIMULACRA2 and PSNR-Y at quality 75 on such text, by a prototype with a
//! tolerance of 2):
//! - keeping luma itself instead of luminance, that is, undoing the clamping alone: SSIMULACRA2
//!   rises by 2 instead of 60;
//! - a gamma of 2.2 or 2.4 instead of 2: 5 or 8 better, but 1.0 or 1.8 dB less PSNR-Y, and tables
//!   instead of a square root;
//! - SSIMULACRA2's own weights, 0.30, 0.62 and 0.08: 4 better, no better on screenshots, PSNR-Y
//!   lower on both;
//! - luma below black and above white, which decoders clamp: 1 better, 1 % more bytes;
//! - a third round: 2 better; one round of 1.5 times the step: 5 better, but 1.5 dB less PSNR-Y,
//!   because it overshoots wherever nothing is clamped.

#![allow(
    clippy::needless_range_loop,
    clippy::manual_clamp,
    reason = "loops over several arrays at once, which become vector instructions"
)]

/// Number of pixels that are corrected together: the width of a macroblock.
pub const GROUP: usize = 16;

/// Chroma samples in the size of a vector: one to the left, the eight of a group, and one to the
/// right. The remaining entries are not used.
pub type Samples = [u8; 16];

/// Red, green and blue of a group of pixels in a row.
pub type GroupColors = [[f32; GROUP]; 3];

/// Luma is corrected where the spread of a chroma sample exceeds this. Half of it finds nothing
/// more.
const MAX_SPREAD: u8 = 48;
/// Luma is corrected where neighboring chroma samples differ by more than this.
const MAX_CHROMA_STEP: u8 = 24;
/// The largest error of luma that is not corrected. 0 would gain 0.2 % on photographs, if every
/// pixel were considered.
const TOLERANCE: f32 = 1.0;
/// Number of corrections. More than one is needed because clamping weakens the effect of a change.
const ROUNDS: usize = 2;

/// Marks the samples of a row of chroma where color changes so abruptly that luma must be
/// corrected: by their `spread`, and by Cb and Cr of three rows, of which the second is the row
/// itself. `highest` and `lowest` are scratch, two entries longer than the row.
#[inline(always)]
pub fn mark_abrupt(
    marks: &mut [bool],
    spread: &[u8],
    chroma: &[[&[u8]; 3]; 2],
    [highest, lowest]: [&mut [u8]; 2],
) {
    // Plain loops here and below: the compiler does not give closures the vector instructions of
    // their caller.
    let count = marks.len();
    let spread = &spread[..count];
    let (highest, lowest) = (&mut highest[..count + 2], &mut lowest[..count + 2]);
    for i in 0..count {
        marks[i] = spread[i] > MAX_SPREAD;
    }
    for [above, own, below] in chroma {
        let (above, own, below) = (&above[..count], &own[..count], &below[..count]);
        for i in 0..count {
            highest[i + 1] = above[i].max(own[i]).max(below[i]);
            lowest[i + 1] = above[i].min(own[i]).min(below[i]);
        }
        for column in [&mut *highest, &mut *lowest] {
            column[0] = column[1];
            column[count + 1] = column[count];
        }
        for i in 0..count {
            let high = highest[i].max(highest[i + 1]).max(highest[i + 2]);
            let low = lowest[i].min(lowest[i + 1]).min(lowest[i + 2]);
            marks[i] |= high - low > MAX_CHROMA_STEP;
        }
    }
}

/// Corrects `luma` of a group of pixels with these colors. A decoder interpolates their chroma
/// between `near`, the chroma row of the pixels, and `far`, the next one above or below.
#[inline(always)]
pub fn correct(
    luma: &mut [u8; GROUP],
    colors: &GroupColors,
    near: [&Samples; 2],
    far: [&Samples; 2],
) {
    let [u, v] = [interpolate(near[0], far[0]), interpolate(near[1], far[1])];
    let [red, green, blue] = colors;
    let mut y = [0.0; GROUP];
    for i in 0..GROUP {
        let wanted = brightness([red[i], green[i], blue[i]]);
        y[i] = f32::from(luma[i]) - 16.0;
        for _ in 0..ROUNDS {
            let missing = wanted - brightness(decoded(y[i], u[i], v[i]));
            let excess = missing - missing.max(-TOLERANCE).min(TOLERANCE);
            y[i] = (y[i] + excess).max(0.0).min(219.0);
        }
    }
    for i in 0..GROUP {
        luma[i] = (y[i] + 16.5) as u8;
    }
}

/// Returns red, green and blue of a pixel as decoders compute them from Y', Cb and Cr without
/// offsets.
#[inline(always)]
fn decoded(y: f32, u: f32, v: f32) -> [f32; 3] {
    let scaled = 1.164 * y;
    [
        within(scaled + 1.596 * v),
        within(scaled - 0.391 * u - 0.813 * v),
        within(scaled + 2.018 * u),
    ]
}

#[inline(always)]
fn within(sample: f32) -> f32 {
    sample.max(0.0).min(255.0)
}

/// Returns the luma, without offset, of the gray with the same luminance: by BT.709, with a gamma
/// of 2.
#[inline(always)]
fn brightness([red, green, blue]: [f32; 3]) -> f32 {
    let luminance = 0.2126 * (red * red) + 0.7152 * (green * green) + 0.0722 * (blue * blue);
    (219.0 / 255.0) * luminance.sqrt()
}

/// Interpolates Cb or Cr of a group of pixels as libwebp's decoder does. The result has no offset.
#[inline(always)]
fn interpolate(near: &Samples, far: &Samples) -> [f32; GROUP] {
    let mut column = [0; 16];
    for i in 0..16 {
        column[i] = 3 * i16::from(near[i]) + i16::from(far[i]);
    }
    let mut pixels = [0.0; GROUP];
    for i in 0..GROUP / 2 {
        let own = 3 * column[i + 1] + 8;
        pixels[2 * i] = f32::from(((own + column[i]) >> 4) - 128);
        pixels[2 * i + 1] = f32::from(((own + column[i + 2]) >> 4) - 128);
    }
    pixels
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Corrects a row of one color whose chroma is `u` and `v` throughout.
    fn corrected(color: [u8; 3], luma: u8, u: u8, v: u8) -> u8 {
        let mut row = [luma; GROUP];
        let (u, v) = ([u; 16], [v; 16]);
        let colors = color.map(|sample| [f32::from(sample); GROUP]);
        correct(&mut row, &colors, [&u, &v], [&u, &v]);
        assert!(row.iter().all(|&y| y == row[0]), "{row:?}");
        row[0]
    }

    #[test]
    fn right_chroma_leaves_luma_alone() {
        for (color, [y, u, v]) in [
            ([0, 0, 0], [16, 128, 128]),
            ([255, 255, 255], [235, 128, 128]),
            ([255, 0, 0], [82, 90, 240]),
            ([0, 255, 0], [145, 54, 34]),
            ([0, 0, 255], [41, 240, 110]),
        ] {
            assert_eq!(corrected(color, y, u, v), y, "Y of {color:?}");
        }
    }

    #[test]
    fn wrong_chroma_keeps_the_brightness() {
        // Red, green, gray and white pixels with half or none of their neighbors' chroma.
        for (color, [y, u, v]) in [
            ([255, 0, 0], [82, 109, 184]),
            ([255, 0, 0], [82, 128, 128]),
            ([0, 255, 0], [145, 90, 80]),
            ([128, 128, 128], [126, 109, 184]),
            ([255, 255, 255], [235, 109, 184]),
        ] {
            let error = |luma: u8| {
                let [y, u, v] =
                    [(luma, 16.0), (u, 128.0), (v, 128.0)].map(|(s, o)| f32::from(s) - o);
                let wanted = brightness(color.map(f32::from));
                (brightness(decoded(y, u, v)) - wanted).abs()
            };
            let luma = corrected(color, y, u, v);
            let (before, after) = (error(y), error(luma));
            assert!(
                after <= before && (after < 3.0 || luma == 235),
                "{color:?} with U {u} and V {v}: {after} instead of {before}, Y {luma} instead of {y}"
            );
        }
    }

    /// Returns the marked samples of a row.
    fn marked(spread: &[u8], chroma: &[[Vec<u8>; 3]; 2]) -> Vec<usize> {
        let mut marks = vec![true; spread.len()];
        let rows = chroma
            .each_ref()
            .map(|rows| rows.each_ref().map(Vec::as_slice));
        let mut scratch = [vec![9; spread.len() + 2], vec![9; spread.len() + 2]];
        let [highest, lowest] = &mut scratch;
        mark_abrupt(&mut marks, spread, &rows, [highest, lowest]);
        (0..marks.len()).filter(|&i| marks[i]).collect()
    }

    #[test]
    fn only_abrupt_changes_are_marked() {
        const COUNT: usize = 40;
        let flat: [[Vec<u8>; 3]; 2] =
            std::array::from_fn(|_| std::array::from_fn(|_| vec![128; COUNT]));
        assert!(marked(&[0; COUNT], &flat).is_empty(), "nothing changes");
        assert!(
            marked(&[MAX_SPREAD; COUNT], &flat).is_empty(),
            "little changes"
        );
        for at in 0..COUNT {
            let mut spread = [0; COUNT];
            spread[at] = MAX_SPREAD + 1;
            assert_eq!(marked(&spread, &flat), [at], "inside sample {at}");
        }
        for (plane, row, at) in (0..6 * COUNT).map(|i| (i / 3 / COUNT, i / COUNT % 3, i % COUNT)) {
            for (change, around) in [(MAX_CHROMA_STEP, 0), (MAX_CHROMA_STEP + 1, 1)] {
                let mut chroma = flat.clone();
                chroma[plane][row][at] = 128 + change;
                let expected: Vec<usize> = if around == 0 {
                    Vec::new()
                } else {
                    (at.saturating_sub(1)..COUNT.min(at + 2)).collect()
                };
                let marks = marked(&[0; COUNT], &chroma);
                assert_eq!(marks, expected, "{change} in {plane} {row} {at}");
            }
        }
    }
}
