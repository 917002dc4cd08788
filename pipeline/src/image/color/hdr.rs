//! High dynamic range (ITU-R BT.2100) to sRGB, as shown on a display whose white is that of paper:
//! 203 cd/m2 (BT.2408).
//!
//! Light below some 90 cd/m2 is kept. Brighter light is rolled off as BT.2390 (5.4.1) prescribes
//! for a display of 203 cd/m2 and a picture of up to 1000 cd/m2, which is what readers assume of a
//! picture without such metadata: paper white becomes a light gray (229); the levels above it are
//! left to brighter light. The brightest of red, green and blue determines the factor by which all
//! three are lowered, so that hues are kept. Light beyond 1000 cd/m2 becomes white, and colors
//! outside of sRGB's gamut are clipped.

use super::space::Space;
use crate::image::pixels::{Layout, to_8_bit};
use moxcms::{CmsError, ColorProfile};

/// `TransferCharacteristics` of PQ (SMPTE ST 2084) and HLG (ARIB STD-B67), by ITU-T H.273.
const PQ: u8 = 16;
const HLG: u8 = 18;

/// Luminance of sRGB's white, in cd/m2.
const WHITE: f64 = 203.0;
/// Luminance of the brightest light that differs from white, in cd/m2.
const PEAK: f64 = 1000.0;
/// Luminance of the largest sample of PQ, in cd/m2.
const PQ_PEAK: f64 = 10_000.0;

/// The number of steps in the table of gains: equal steps of the square root of light, from none to
/// [`PEAK`].
const GAINS: usize = 4096;

/// Whether the transfer characteristics of a space are those of PQ or HLG.
pub fn is_high_dynamic_range(space: &Space) -> bool {
    matches!(
        space,
        Space::Cicp {
            transfer: PQ | HLG,
            ..
        }
    )
}

/// The conversion from a space of high dynamic range to sRGB.
pub struct HdrTransform {
    /// Light for each of the 65536 samples: of PQ the light of the display, in units of [`WHITE`];
    /// of HLG the light of the scene, from 0 to 1.
    light: Vec<f32>,
    /// Whether `light` is that of the scene (HLG), which is still to be converted to that of a
    /// display.
    is_scene_light: bool,
    /// The factor for light whose brightest color has the square root of this index, in steps of
    /// [`GAINS`].
    gains: Vec<f32>,
    /// The matrix from the space's primaries to those of sRGB, for linear light.
    to_srgb: [[f32; 3]; 3],
    /// Samples of sRGB for light from 0 to 1 in 65536 equal steps.
    levels: Vec<u8>,
}

impl HdrTransform {
    /// The transform from `space`; `None` if that has no high dynamic range.
    pub fn new(space: &Space) -> Result<Option<HdrTransform>, CmsError> {
        let light: fn(f64) -> f64 = match space {
            Space::Cicp { transfer: PQ, .. } => |sample| light_of_pq(sample) / WHITE,
            Space::Cicp { transfer: HLG, .. } => scene_of_hlg,
            _ => return Ok(None),
        };
        let profile = space.profile()?.filter(|profile| profile.cicp.is_some());
        let profile = profile.ok_or(CmsError::InvalidCicp)?;
        let matrix = profile.transform_matrix(&ColorProfile::new_srgb());
        let step = |index: u32| f64::from(index) / 65535.0;
        Ok(Some(HdrTransform {
            light: (0..=65535).map(|index| light(step(index)) as f32).collect(),
            is_scene_light: matches!(space, Space::Cicp { transfer: HLG, .. }),
            gains: (0..=GAINS).map(gain).collect(),
            to_srgb: matrix.v.map(|row| row.map(|factor| factor as f32)),
            levels: (0..=65535).map(|index| srgb_level(step(index))).collect(),
        }))
    }

    /// Converts pixels of `layout` from `samples` to `out`, which is as long.
    pub fn convert(&self, layout: Layout, samples: &[u16], out: &mut [u8]) {
        let pixels = samples.chunks_exact(layout.channels());
        for (pixel, out) in pixels.zip(out.chunks_exact_mut(layout.channels())) {
            let color = [pixel[0], pixel[1], pixel[2]];
            out[..3].copy_from_slice(&self.convert_color(color));
            if let [.., alpha] = pixel
                && layout == Layout::Rgba
            {
                out[3] = to_8_bit(*alpha);
            }
        }
    }

    fn convert_color(&self, samples: [u16; 3]) -> [u8; 3] {
        let mut light = samples.map(|sample| self.light[usize::from(sample)]);
        if self.is_scene_light {
            let factor = display_factor(light);
            light = light.map(|light| light * factor);
        }
        let brightest = light.into_iter().fold(0.0, f32::max);
        let peak_share = brightest * (WHITE / PEAK) as f32;
        let gain = if peak_share > 1.0 {
            1.0 / brightest
        } else {
            self.gains[(peak_share.sqrt() * GAINS as f32).round() as usize]
        };
        self.to_srgb.map(|row| {
            let sum: f32 = row
                .iter()
                .zip(light)
                .map(|(factor, light)| factor * light)
                .sum();
            self.levels[((sum * gain).clamp(0.0, 1.0) * 65535.0).round() as usize]
        })
    }
}

/// The light of a sample of PQ, from 0 to 1, in cd/m2 (BT.2100, table 4).
fn light_of_pq(sample: f64) -> f64 {
    let power = sample.powf(32.0 / 2523.0);
    let ratio = (power - 0.835_937_5).max(0.0) / (18.851_562_5 - 18.6875 * power);
    PQ_PEAK * ratio.powf(8192.0 / 1305.0)
}

/// The inverse of [`light_of_pq`].
fn pq_of_light(light: f64) -> f64 {
    let power = (light / PQ_PEAK).powf(1305.0 / 8192.0);
    ((0.835_937_5 + 18.851_562_5 * power) / (1.0 + 18.6875 * power)).powf(2523.0 / 32.0)
}

/// The light of the scene for a sample of HLG; both are from 0 to 1 (BT.2100, table 5).
fn scene_of_hlg(sample: f64) -> f64 {
    const A: f64 = 0.178_832_77;
    const B: f64 = 0.284_668_92;
    const C: f64 = 0.559_910_73;
    if sample <= 0.5 {
        sample * sample / 3.0
    } else {
        (((sample - C) / A).exp() + B) / 12.0
    }
}

/// The factor from light of the scene to light of a display of 1000 cd/m2, in units of [`WHITE`]
/// (BT.2100, table 5).
fn display_factor([red, green, blue]: [f32; 3]) -> f32 {
    let luminance = 0.2627 * red + 0.678 * green + 0.0593 * blue;
    (PEAK / WHITE) as f32 * luminance.powf(0.2)
}

/// The factor by which BT.2390, 5.4.1, lowers light of this index of the table of gains; black
/// stays black.
fn gain(index: usize) -> f32 {
    let light = PEAK * (index as f64 / GAINS as f64).powi(2);
    let peak = pq_of_light(PEAK);
    let white = pq_of_light(WHITE) / peak;
    let knee = 1.5 * white - 0.5;
    let sample = pq_of_light(light) / peak;
    if sample <= knee {
        return 1.0;
    }
    let t = (sample - knee) / (1.0 - knee);
    let (t2, t3) = (t * t, t * t * t);
    let rolled = (2.0 * t3 - 3.0 * t2 + 1.0) * knee
        + (t3 - 2.0 * t2 + t) * (1.0 - knee)
        + (3.0 * t2 - 2.0 * t3) * white;
    (light_of_pq(rolled * peak) / light) as f32
}

/// The sample of sRGB for linear light from 0 to 1 (IEC 61966-2-1).
fn srgb_level(light: f64) -> u8 {
    let sample = if light <= 0.003_130_8 {
        12.92 * light
    } else {
        1.055 * light.powf(1.0 / 2.4) - 0.055
    };
    (sample * 255.0).round() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hdr(primaries: u8, transfer: u8) -> HdrTransform {
        let space = Space::Cicp {
            primaries,
            transfer,
        };
        HdrTransform::new(&space)
            .ok()
            .flatten()
            .expect("it has this range")
    }

    /// The 16-bit sample for a value from 0 to 1.
    fn sample(value: f64) -> u16 {
        (value * 65535.0).round() as u16
    }

    fn gray(hdr: &HdrTransform, value: f64) -> u8 {
        let [red, green, blue] = hdr.convert_color([sample(value); 3]);
        assert!(
            red.abs_diff(green) <= 1 && blue.abs_diff(green) <= 1,
            "{value} is {red}, {green}, {blue}"
        );
        green
    }

    #[test]
    fn sample_values_of_the_reports_give_their_luminance() {
        // BT.2408, table 1: of PQ, 38 % are 26 cd/m2 and 58 % are 203 cd/m2; of HLG, these are 38 %
        // and 75 % on a display of 1000 cd/m2.
        for (sample, light) in [
            (0.0, 0.0),
            (0.38, 26.0),
            (0.58, 203.0),
            (0.75, 983.0),
            (1.0, 1e4),
        ] {
            let got = light_of_pq(sample);
            assert!((got - light).abs() <= light * 0.01, "{sample}: {got}");
        }
        for (sample, light) in [(0.0, 0.0), (0.38, 26.0), (0.75, 203.0), (1.0, 1000.0)] {
            let scene = scene_of_hlg(sample) as f32;
            let got = f64::from(scene * display_factor([scene; 3])) * WHITE;
            assert!((got - light).abs() <= light * 0.02, "{sample}: {got}");
        }
    }

    #[test]
    fn paper_white_is_light_gray_and_brighter_light_is_still_told_apart() {
        for (hdr, paper) in [(hdr(9, PQ), 0.5807), (hdr(9, HLG), 0.75)] {
            assert_eq!(gray(&hdr, 0.0), 0);
            assert!(
                gray(&hdr, paper).abs_diff(229) <= 1,
                "{}",
                gray(&hdr, paper)
            );
            let brighter: Vec<u8> = (0..=100)
                .map(|step| gray(&hdr, f64::from(step) / 100.0))
                .collect();
            assert!(brighter.is_sorted(), "{brighter:?}");
            assert_eq!(brighter[100], 255);
        }
        // 400 and 1000 cd/m2.
        let pq = hdr(9, PQ);
        let [bright, brightest] = [0.6526, 0.7518].map(|sample| gray(&pq, sample));
        assert!(
            229 < bright && bright < 252 && brightest == 255,
            "{bright}, {brightest}"
        );
    }

    #[test]
    fn darker_light_is_kept() {
        let pq = hdr(9, PQ);
        for light in [0.5, 1.0, 5.0, 20.0, 50.0, 90.0] {
            let level = srgb_level(light / WHITE);
            let got = gray(&pq, pq_of_light(light));
            assert!(got.abs_diff(level) <= 1, "{light} cd/m2: {got} for {level}");
        }
    }

    #[test]
    fn hues_are_kept_where_light_is_rolled_off() {
        // With sRGB's own primaries, 1000, 500 and 100 cd/m2 become white's 203 cd/m2, a half and a
        // tenth of it.
        let color = [1000.0, 500.0, 100.0].map(|light| sample(pq_of_light(light)));
        let expected = [1.0, 0.5, 0.1].map(srgb_level);
        for (got, expected) in hdr(1, PQ).convert_color(color).into_iter().zip(expected) {
            assert!(got.abs_diff(expected) <= 1, "{got} for {expected}");
        }
        // Ten times as bright as the brightest light that differs from white.
        let color = [10_000.0, 5000.0, 1000.0].map(|light| sample(pq_of_light(light)));
        for (got, expected) in hdr(1, PQ).convert_color(color).into_iter().zip(expected) {
            assert!(got.abs_diff(expected) <= 1, "{got} for {expected}");
        }
    }

    #[test]
    fn only_high_dynamic_range_with_known_primaries_is_converted() {
        let new = |primaries, transfer| {
            HdrTransform::new(&Space::Cicp {
                primaries,
                transfer,
            })
        };
        assert!(matches!(new(9, 14), Ok(None)));
        assert!(matches!(new(9, PQ), Ok(Some(_))));
        assert!(new(2, PQ).is_err() && new(200, HLG).is_err());
    }
}
