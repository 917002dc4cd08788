//! The color space that a file names.

use super::profile::is_too_large;
use moxcms::{
    Chromaticity, CicpColorPrimaries, CicpProfile, CmsError, ColorPrimaries, ColorProfile,
    MatrixCoefficients, ToneReprCurve, TransferCharacteristics,
};

/// The color space that a file names.
#[derive(Clone, Debug, PartialEq)]
pub enum Space {
    /// An ICC profile.
    Icc(Vec<u8>),
    /// Code points of ITU-T H.273 for RGB of full range.
    Cicp {
        /// `ColourPrimaries`.
        primaries: u8,
        /// `TransferCharacteristics`.
        transfer: u8,
    },
    /// Primaries and exponents of its own.
    Calibrated(Calibrated),
}

impl Space {
    /// The space as a profile of the color library; `None` if it is an ICC profile that is too
    /// large.
    pub fn profile(&self) -> Result<Option<ColorProfile>, CmsError> {
        Ok(Some(match self {
            Space::Icc(bytes) if is_too_large(bytes) => return Ok(None),
            Space::Icc(bytes) => ColorProfile::new_from_slice(bytes)?,
            Space::Cicp {
                primaries,
                transfer,
            } => ColorProfile::new_from_cicp(CicpProfile {
                color_primaries: CicpColorPrimaries::try_from(*primaries)?,
                transfer_characteristics: TransferCharacteristics::try_from(*transfer)?,
                matrix_coefficients: MatrixCoefficients::Identity,
                full_range: true,
            }),
            Space::Calibrated(calibrated) => calibrated.profile(),
        }))
    }
}

/// A color space given by exponents and chromaticities; where one of them is missing, sRGB's
/// applies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibrated {
    /// The exponents for red, green and blue: light is the sample, from 0 to 1, to this power.
    exponents: Option<[f64; 3]>,
    /// x and y (CIE 1931) of white, red, green and blue.
    chromaticities: Option<[[f64; 2]; 4]>,
}

impl Calibrated {
    /// The space of these exponents and chromaticities; `None` if that is sRGB, or if no display
    /// can have it, as when a writer left the fields empty.
    pub fn space(
        exponents: Option<[f64; 3]>,
        chromaticities: Option<[[f64; 2]; 4]>,
    ) -> Option<Space> {
        let calibrated = Calibrated {
            exponents: exponents.filter(|exponents| !exponents.iter().all(is_srgb_exponent)),
            chromaticities: chromaticities.filter(|points| !are_srgb_chromaticities(points)),
        };
        let differs = calibrated.exponents.is_some() || calibrated.chromaticities.is_some();
        (differs && calibrated.is_sound()).then_some(Space::Calibrated(calibrated))
    }

    fn is_sound(&self) -> bool {
        let exponents = self.exponents.unwrap_or([2.2; 3]);
        let points = self.chromaticities.unwrap_or(SRGB_CHROMATICITIES);
        let [white, red, green, blue] = points;
        let area =
            (green[0] - red[0]) * (blue[1] - red[1]) - (blue[0] - red[0]) * (green[1] - red[1]);
        exponents
            .iter()
            .all(|exponent| (0.1..=10.0).contains(exponent))
            && points
                .as_flattened()
                .iter()
                .all(|value| (-1.0..=2.0).contains(value))
            && white[1] > 0.01
            && area.abs() > 0.001
    }

    fn profile(&self) -> ColorProfile {
        let mut profile = ColorProfile::new_srgb();
        if let Some(points) = self.chromaticities {
            let [white, red, green, blue] =
                points.map(|[x, y]| Chromaticity::new(x as f32, y as f32));
            profile.update_rgb_colorimetry(white.to_xyyb(), ColorPrimaries { red, green, blue });
        }
        if let Some(exponents) = self.exponents {
            profile.cicp = None;
            let [red, green, blue] =
                exponents.map(|exponent| Some(ToneReprCurve::Parametric(vec![exponent as f32])));
            (profile.red_trc, profile.green_trc, profile.blue_trc) = (red, green, blue);
        }
        profile
    }
}

/// Whether the exponent is 2.2, which PNG (third edition, 11.3.2.5) recommends to writers of sRGB
/// for readers without color management: nearly all files with 2.2 mean sRGB's curve.
fn is_srgb_exponent(exponent: &f64) -> bool {
    (exponent * 0.45455 - 1.0).abs() < 0.001
}

fn are_srgb_chromaticities(points: &[[f64; 2]; 4]) -> bool {
    let values = points
        .as_flattened()
        .iter()
        .zip(SRGB_CHROMATICITIES.as_flattened());
    values
        .into_iter()
        .all(|(value, srgb)| (value - srgb).abs() < 0.0005)
}

/// x and y (CIE 1931) of sRGB's white (D65), red, green and blue (IEC 61966-2-1).
pub const SRGB_CHROMATICITIES: [[f64; 2]; 4] =
    [[0.3127, 0.329], [0.64, 0.33], [0.3, 0.6], [0.15, 0.06]];

#[cfg(test)]
mod tests {
    use super::*;

    /// White, red, green and blue of Adobe RGB (1998).
    const WIDE: [[f64; 2]; 4] = [[0.3127, 0.329], [0.64, 0.33], [0.21, 0.71], [0.15, 0.06]];

    #[test]
    fn exponents_and_chromaticities_that_no_display_has_make_no_space() {
        let is_space = |exponents, points| Calibrated::space(exponents, points).is_some();
        assert!(is_space(None, Some(WIDE)));
        assert!(!is_space(None, Some(SRGB_CHROMATICITIES)), "it is sRGB");
        for (exponent, is_sound) in [
            (0.09, false),
            (0.1, true),
            (1.8, true),
            (10.0, true),
            (10.1, false),
        ] {
            assert_eq!(is_space(Some([exponent; 3]), None), is_sound, "{exponent}");
            assert_eq!(is_space(Some([2.2, 2.2, exponent]), Some(WIDE)), is_sound);
        }
        let with = |place: usize, point| {
            let mut points = WIDE;
            points[place] = point;
            is_space(None, Some(points))
        };
        assert!(with(0, [0.3, 0.011]) && !with(0, [0.3, 0.01]));
        assert!(with(1, [2.0, 0.3]) && !with(1, [2.1, 0.3]));
        assert!(with(3, [0.1, -1.0]) && !with(3, [0.1, -1.1]));
        // Green on the line from blue to red, just beside it, and at red.
        assert!(!with(2, [0.395, 0.195]) && with(2, [0.39, 0.2]));
        assert!(!with(2, WIDE[1]) && !with(3, WIDE[1]));
    }
}
