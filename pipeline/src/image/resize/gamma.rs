//! The transfer curve of sRGB (IEC 61966-2-1), as tables: light is added up, and samples are not
//! proportional to it.
//!
//! The tables are computed with the four basic operations alone, whose results are the same on
//! every machine, unlike a platform's `pow`.

use std::sync::LazyLock;

/// The light of each of the 256 levels, from 0 to 1.
pub(super) static LIGHT: LazyLock<[f32; 256]> =
    LazyLock::new(|| std::array::from_fn(|level| light(level as f64 / 255.0) as f32));

/// The nearest of the 256 levels, indexed by light in units of 1/[`STEPS`].
static LEVELS: LazyLock<Box<[u8; STEPS + 1]>> = LazyLock::new(|| {
    let mut levels = Box::new([255; STEPS + 1]);
    let mut from = 0;
    for level in 0..=254u8 {
        // Where the level above begins.
        let end = light((f64::from(level) + 0.5) / 255.0) * STEPS as f64;
        let end = (end + 0.5) as usize;
        levels[from..end].fill(level);
        from = end;
    }
    levels
});

/// Even the narrowest level, at black, is twenty steps.
pub(super) const STEPS: usize = 65_535;

/// The nearest levels of light.
#[derive(Clone, Copy)]
pub(super) struct Levels(&'static [u8; STEPS + 1]);

impl Levels {
    /// The table, which is made when it is first needed.
    pub(super) fn get() -> Levels {
        Levels(&LEVELS)
    }

    /// The nearest level of some light; of less than none 0, of more than all 255.
    #[inline(always)]
    pub(super) fn nearest(self, light: f32) -> u8 {
        // The conversion saturates, and gives 0 for NaN.
        self.at((light * STEPS as f32 + 0.5) as u16)
    }

    /// The nearest level of some light in steps.
    #[inline(always)]
    pub(super) fn at(self, step: u16) -> u8 {
        self.0[usize::from(step)]
    }
}

/// The light of a sample, both from 0 to 1.
fn light(sample: f64) -> f64 {
    if sample <= 0.04045 {
        return sample / 12.92;
    }
    let base = (sample + 0.055) / 1.055;
    // `x` to the power of 2.4 is the fifth root of `x` to the power of 12.
    let square = base * base;
    let fourth = square * square;
    fifth_root(fourth * fourth * fourth)
}

/// The fifth root of a number from 0 to 1, by Newton's method from above.
fn fifth_root(number: f64) -> f64 {
    let mut root = 1.0;
    loop {
        let square = root * root;
        let next = (4.0 * root + number / (square * square)) / 5.0;
        if next >= root {
            return root;
        }
        root = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn light_is_that_of_the_standard() {
        for (level, &light) in LIGHT.iter().enumerate() {
            let sample = level as f64 / 255.0;
            let expected = match sample {
                0.0..=0.04045 => sample / 12.92,
                _ => ((sample + 0.055) / 1.055).powf(2.4),
            };
            assert!((f64::from(light) - expected).abs() < 1e-7, "of {level}");
        }
    }

    #[test]
    fn every_level_comes_back_and_the_middle_of_light_is_188() {
        let levels = Levels::get();
        for level in 0..=255u8 {
            assert_eq!(levels.nearest(LIGHT[usize::from(level)]), level);
        }
        assert_eq!(levels.nearest(0.5), 188);
        let beyond = [-1.0, 2.0, f32::NAN].map(|light| levels.nearest(light));
        assert_eq!(beyond, [0, 255, 0]);
    }
}
