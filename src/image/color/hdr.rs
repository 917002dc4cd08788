//! High dynamic range (ITU-R BT.2100) to sRGB, as on a screen whose white is the white of paper: 203 cd/m2 (BT.2408).
//!
//! Below some 90 cd/m2 light stays as it is. Above, it is rolled off as BT.2390 (5.4.1) has it for a display of 203 cd/m2 and a
//! picture of up to 1000, which is what readers assume where nothing is said: paper white becomes a light grey (229), and what
//! is brighter has the rest. The brightest of red, green and blue says by how much all three are lowered, so that
//! hues stay. What is brighter still is white, and what is outside of sRGB's gamut is cut off.

use crate::image::Layout;
use crate::image::color::Space;
use moxcms::{CmsError, ColorProfile};

/// `TransferCharacteristics` of PQ (SMPTE ST 2084) and HLG (ARIB STD-B67), by ITU-T H.273.
const PQ: u8 = 16;
const HLG: u8 = 18;

/// cd/m2 of sRGB's white.
const WHITE: f64 = 203.0;
/// cd/m2 of the brightest that is told apart.
const PEAK: f64 = 1000.0;
/// cd/m2 of the largest sample of PQ.
const PQ_PEAK: f64 = 10_000.0;

/// Of light, from none to the peak, in steps of its square root.
const GAINS: usize = 4096;

/// Whether a space's transfer characteristics are PQ's or HLG's.
pub(in crate::image) fn is_of_high_range(space: &Space) -> bool {
    matches!(
        space,
        Space::Cicp {
            transfer: PQ | HLG,
            ..
        }
    )
}

/// From one space of high dynamic range to sRGB.
pub(in crate::image) struct Hdr {
    /// Of each sample, in units of white: what the display shows, or of HLG what the scene has, from 0 to 1.
    light: Vec<f32>,
    is_of_scene: bool,
    /// What light is multiplied with where its brightest colour is so bright.
    gains: Vec<f32>,
    /// Between the primaries, of light.
    to_srgb: [[f32; 3]; 3],
    /// Samples of sRGB, of light in 65536 steps.
    levels: Vec<u8>,
}

impl Hdr {
    /// `None` if the space has not this range.
    pub(in crate::image) fn of(space: &Space) -> Result<Option<Hdr>, CmsError> {
        let light: fn(f64) -> f64 = match space {
            Space::Cicp { transfer: PQ, .. } => |sample| light_of_pq(sample) / WHITE,
            Space::Cicp { transfer: HLG, .. } => scene_of_hlg,
            _ => return Ok(None),
        };
        let profile = space.profile()?.filter(|profile| profile.cicp.is_some());
        let profile = profile.ok_or(CmsError::InvalidCicp)?;
        let matrix = profile.transform_matrix(&ColorProfile::new_srgb());
        let step = |index: u32| f64::from(index) / 65535.0;
        Ok(Some(Hdr {
            light: (0..=65535).map(|index| light(step(index)) as f32).collect(),
            is_of_scene: matches!(space, Space::Cicp { transfer: HLG, .. }),
            gains: (0..=GAINS).map(gain).collect(),
            to_srgb: matrix.v.map(|row| row.map(|factor| factor as f32)),
            levels: (0..=65535).map(|index| srgb_level(step(index))).collect(),
        }))
    }

    /// Converts pixels of this layout; `out` has as many samples.
    pub(in crate::image) fn convert(&self, layout: Layout, samples: &[u16], out: &mut [u8]) {
        let pixels = samples.chunks_exact(layout.channels());
        for (pixel, out) in pixels.zip(out.chunks_exact_mut(layout.channels())) {
            let colour = [pixel[0], pixel[1], pixel[2]];
            out[..3].copy_from_slice(&self.colour(colour));
            if let [.., alpha] = pixel
                && layout == Layout::Rgba
            {
                out[3] = crate::image::color::sixteen_bit::to_8_bit(*alpha);
            }
        }
    }

    fn colour(&self, samples: [u16; 3]) -> [u8; 3] {
        let mut light = samples.map(|sample| self.light[usize::from(sample)]);
        if self.is_of_scene {
            let shown = shown_of_scene(light);
            light = light.map(|light| light * shown);
        }
        let brightest = light.into_iter().fold(0.0, f32::max);
        let of_peak = brightest * (WHITE / PEAK) as f32;
        let gain = if of_peak > 1.0 {
            1.0 / brightest
        } else {
            self.gains[(of_peak.sqrt() * GAINS as f32).round() as usize]
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

/// cd/m2 (BT.2100, table 4).
fn light_of_pq(sample: f64) -> f64 {
    let power = sample.powf(32.0 / 2523.0);
    let ratio = (power - 0.835_937_5).max(0.0) / (18.851_562_5 - 18.6875 * power);
    PQ_PEAK * ratio.powf(8192.0 / 1305.0)
}

fn pq_of_light(light: f64) -> f64 {
    let power = (light / PQ_PEAK).powf(1305.0 / 8192.0);
    ((0.835_937_5 + 18.851_562_5 * power) / (1.0 + 18.6875 * power)).powf(2523.0 / 32.0)
}

/// From 0 to 1 (BT.2100, table 5).
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

/// What light of the scene is multiplied with to be that of a display of 1000 cd/m2, in units of white (BT.2100, table 5).
fn shown_of_scene([red, green, blue]: [f32; 3]) -> f32 {
    let luminance = 0.2627 * red + 0.678 * green + 0.0593 * blue;
    (PEAK / WHITE) as f32 * luminance.powf(0.2)
}

/// BT.2390, 5.4.1, from black to black.
fn gain(index: usize) -> f32 {
    let light = PEAK * (index as f64 / GAINS as f64).powi(2);
    let peak = pq_of_light(PEAK);
    let most = pq_of_light(WHITE) / peak;
    let knee = 1.5 * most - 0.5;
    let sample = pq_of_light(light) / peak;
    if sample <= knee {
        return 1.0;
    }
    let t = (sample - knee) / (1.0 - knee);
    let (t2, t3) = (t * t, t * t * t);
    let rolled = (2.0 * t3 - 3.0 * t2 + 1.0) * knee
        + (t3 - 2.0 * t2 + t) * (1.0 - knee)
        + (3.0 * t2 - 2.0 * t3) * most;
    (light_of_pq(rolled * peak) / light) as f32
}

/// IEC 61966-2-1.
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

    fn hdr(primaries: u8, transfer: u8) -> Hdr {
        let space = Space::Cicp {
            primaries,
            transfer,
        };
        Hdr::of(&space).ok().flatten().expect("it is of this range")
    }

    /// Of 65535.
    fn sample(of_one: f64) -> u16 {
        (of_one * 65535.0).round() as u16
    }

    fn grey(hdr: &Hdr, of_one: f64) -> u8 {
        let [red, green, blue] = hdr.colour([sample(of_one); 3]);
        assert!(
            red.abs_diff(green) <= 1 && blue.abs_diff(green) <= 1,
            "{of_one} is {red}, {green}, {blue}"
        );
        green
    }

    #[test]
    fn samples_of_the_reports_are_their_light() {
        // BT.2408, table 1: of PQ, 38 % are 26 cd/m2, 58 % are 203; of HLG, 38 % and 75 % on a display of 1000 cd/m2.
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
            let got = f64::from(scene * shown_of_scene([scene; 3])) * WHITE;
            assert!((got - light).abs() <= light * 0.02, "{sample}: {got}");
        }
    }

    #[test]
    fn paper_is_light_grey_and_what_is_brighter_is_still_told_apart() {
        for (hdr, paper) in [(hdr(9, PQ), 0.5807), (hdr(9, HLG), 0.75)] {
            assert_eq!(grey(&hdr, 0.0), 0);
            assert!(
                grey(&hdr, paper).abs_diff(229) <= 1,
                "{}",
                grey(&hdr, paper)
            );
            let brighter: Vec<u8> = (0..=100)
                .map(|step| grey(&hdr, f64::from(step) / 100.0))
                .collect();
            assert!(brighter.is_sorted(), "{brighter:?}");
            assert_eq!(brighter[100], 255);
        }
        // 400 and 1000 cd/m2.
        let pq = hdr(9, PQ);
        let [bright, brightest] = [0.6526, 0.7518].map(|sample| grey(&pq, sample));
        assert!(
            229 < bright && bright < 252 && brightest == 255,
            "{bright}, {brightest}"
        );
    }

    #[test]
    fn what_is_darker_stays_as_it_is() {
        let pq = hdr(9, PQ);
        for light in [0.5, 1.0, 5.0, 20.0, 50.0, 90.0] {
            let level = srgb_level(light / WHITE);
            let got = grey(&pq, pq_of_light(light));
            assert!(got.abs_diff(level) <= 1, "{light} cd/m2: {got} for {level}");
        }
    }

    #[test]
    fn hues_stay_where_they_are_rolled_off() {
        // sRGB's own primaries: 1000, 500 and 100 cd/m2 become white's 203, and the same parts of it.
        let colour = [1000.0, 500.0, 100.0].map(|light| sample(pq_of_light(light)));
        let expected = [1.0, 0.5, 0.1].map(srgb_level);
        for (got, expected) in hdr(1, PQ).colour(colour).into_iter().zip(expected) {
            assert!(got.abs_diff(expected) <= 1, "{got} for {expected}");
        }
        // Ten times as bright as what is told apart.
        let colour = [10_000.0, 5000.0, 1000.0].map(|light| sample(pq_of_light(light)));
        for (got, expected) in hdr(1, PQ).colour(colour).into_iter().zip(expected) {
            assert!(got.abs_diff(expected) <= 1, "{got} for {expected}");
        }
    }

    #[test]
    fn only_this_range_with_known_primaries_is_taken() {
        let of = |primaries, transfer| {
            Hdr::of(&Space::Cicp {
                primaries,
                transfer,
            })
        };
        assert!(matches!(of(9, 14), Ok(None)));
        assert!(matches!(of(9, PQ), Ok(Some(_))));
        assert!(of(2, PQ).is_err() && of(200, HLG).is_err());
    }
}
