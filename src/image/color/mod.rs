//! Colour spaces: the samples converted to sRGB, which is what WebP means without a profile.

pub mod cmyk;
pub mod hdr;
pub mod sixteen_bit;

use crate::image::color::hdr::is_of_high_range;
use crate::image::color::sixteen_bit::Deep;
use crate::image::source::PORTION_PIXELS;
use crate::image::{Image, Layout};
use moxcms::{
    Chromaticity, CicpColorPrimaries, CicpProfile, CmsError, ColorPrimaries, ColorProfile,
    DataColorSpace, MatrixCoefficients, ToneReprCurve, TransferCharacteristics, TransformOptions,
};
use towebp_encoder::{Cancel, Cancelled};

/// Larger profiles are ignored: real ones have a few KiB, those with tables up to about 2 MiB.
pub(in crate::image) const MAX_PROFILE_BYTES: usize = 4 << 20;

/// Most bytes that are held for each byte of an ICC profile: the profile and a copy, its tables as often as [`is_too_large`] lets tags
/// name them, and the table of the one that is used in numbers of four bytes.
pub(in crate::image) const PROFILE_COPIES: u64 = 10;

/// Pixels that are converted at a time, from a copy: small enough for the cache.
pub(in crate::image) const CHUNK_PIXELS: usize = 4096;

/// What a file says of its colours.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::image) enum Space {
    /// An ICC profile.
    Icc(Vec<u8>),
    /// Code points of ITU-T H.273 for RGB of full range.
    Cicp {
        /// `ColourPrimaries`.
        primaries: u8,
        /// `TransferCharacteristics`.
        transfer: u8,
    },
    /// Numbers of its own.
    Calibrated(Calibrated),
}

impl Space {
    /// As the library has it; `None` if it is too large.
    pub(in crate::image) fn profile(&self) -> Result<Option<ColorProfile>, CmsError> {
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

/// A space by its numbers; what is missing is as in sRGB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::image) struct Calibrated {
    /// Of red, green and blue: light is the sample, 0 to 1, to this power.
    exponents: Option<[f64; 3]>,
    /// x and y (CIE 1931) of white, red, green and blue.
    chromaticities: Option<[[f64; 2]; 4]>,
}

impl Calibrated {
    /// A space of these exponents and chromaticities; `None` if that is sRGB, or nothing that a display could be, as
    /// where writers had nothing to say.
    pub(in crate::image) fn space(
        exponents: Option<[f64; 3]>,
        chromaticities: Option<[[f64; 2]; 4]>,
    ) -> Option<Space> {
        let calibrated = Calibrated {
            exponents: exponents.filter(|exponents| !exponents.iter().all(is_srgbs)),
            chromaticities: chromaticities.filter(|points| !are_srgbs(points)),
        };
        let says_something = calibrated.exponents.is_some() || calibrated.chromaticities.is_some();
        (says_something && calibrated.is_sound()).then_some(Space::Calibrated(calibrated))
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

/// Whether it is the exponent 2.2 that PNG (third edition, 11.3.2.5) tells writers of sRGB to give for readers that know no
/// more: nearly all files that say 2.2 mean sRGB's curve.
fn is_srgbs(exponent: &f64) -> bool {
    (exponent * 0.45455 - 1.0).abs() < 0.001
}

fn are_srgbs(points: &[[f64; 2]; 4]) -> bool {
    let values = points
        .as_flattened()
        .iter()
        .zip(SRGB_CHROMATICITIES.as_flattened());
    values
        .into_iter()
        .all(|(value, srgbs)| (value - srgbs).abs() < 0.0005)
}

/// White (D65), red, green, blue: IEC 61966-2-1.
pub(in crate::image) const SRGB_CHROMATICITIES: [[f64; 2]; 4] =
    [[0.3127, 0.329], [0.64, 0.33], [0.3, 0.6], [0.15, 0.06]];

/// Whether a profile is larger than any of use, or its tags are together: the library copies the data of each, and several may name the
/// same (ICC.1, 7.3).
pub(in crate::image) fn is_too_large(profile: &[u8]) -> bool {
    /// The three intents of a device often share a table.
    const MOST_TIMES: u64 = 3;
    let number = |bytes: &[u8]| {
        bytes
            .first_chunk()
            .map_or(0, |four| u32::from_be_bytes(*four))
    };
    let count = profile.get(128..).map_or(0, number);
    let tags = profile.get(132..).unwrap_or_default().as_chunks::<12>().0;
    let sizes = tags
        .iter()
        .take(count as usize)
        .map(|tag| u64::from(number(&tag[8..])));
    profile.len() > MAX_PROFILE_BYTES || sizes.sum::<u64>() > MOST_TIMES * profile.len() as u64
}

/// Whether a profile can be kept with RGB samples: it is within bounds, whole, and one of RGB.
pub(in crate::image) fn is_of_rgb(profile: &[u8]) -> bool {
    let is_sound = |profile: ColorProfile| {
        let to_srgb = profile.create_transform_8bit(
            moxcms::Layout::Rgb,
            &ColorProfile::new_srgb(),
            moxcms::Layout::Rgb,
            TransformOptions::default(),
        );
        profile.color_space == DataColorSpace::Rgb && to_srgb.is_ok()
    };
    !is_too_large(profile) && ColorProfile::new_from_slice(profile).is_ok_and(is_sound)
}

/// Whether a profile is that of sRGB, up to rounding.
pub(in crate::image) fn is_srgb(profile: &[u8]) -> bool {
    let is_srgbs = |profile: ColorProfile| {
        profile.color_space == DataColorSpace::Rgb
            && is_nearly_identity(&profile, &ColorProfile::new_srgb()).is_ok_and(|is| is)
    };
    !is_too_large(profile) && ColorProfile::new_from_slice(profile).is_ok_and(is_srgbs)
}

/// Converts the samples from `space` to sRGB. A profile that is too large, damaged, of a kind that does not fit the
/// picture (`grey`: its samples were grey in the file), or sRGB itself changes nothing.
pub(in crate::image) fn convert_to_srgb(
    image: &mut Image,
    space: &Space,
    grey: bool,
    cancel: &Cancel<'_>,
) -> Result<(), Cancelled> {
    match try_convert(image, space, grey, cancel) {
        Err(Stop::Cancelled) => Err(Cancelled),
        Err(Stop::Space(error)) => {
            log::debug!("a colour space is ignored: {error}");
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// Why a picture is not converted.
enum Stop {
    Space(CmsError),
    Cancelled,
}

impl From<CmsError> for Stop {
    fn from(error: CmsError) -> Stop {
        Stop::Space(error)
    }
}

impl From<Cancelled> for Stop {
    fn from(Cancelled: Cancelled) -> Stop {
        Stop::Cancelled
    }
}

fn try_convert(
    image: &mut Image,
    space: &Space,
    grey: bool,
    cancel: &Cancel<'_>,
) -> Result<(), Stop> {
    if is_of_high_range(space) {
        if let Some(mut deep) = Deep::of(space, image.layout, grey) {
            deep.convert_image(image, cancel)?;
        }
        return Ok(());
    }
    let Some(profile) = space.profile()? else {
        return Ok(());
    };
    match profile.color_space {
        DataColorSpace::Rgb => convert_rgb(image, &profile, cancel),
        DataColorSpace::Gray if grey => convert_grey(image, &profile, cancel),
        _ => Ok(()),
    }
}

fn convert_rgb(image: &mut Image, profile: &ColorProfile, cancel: &Cancel<'_>) -> Result<(), Stop> {
    let (layout, channels) = match image.layout {
        Layout::Rgb => (moxcms::Layout::Rgb, 3),
        Layout::Rgba => (moxcms::Layout::Rgba, 4),
    };
    let srgb = ColorProfile::new_srgb();
    let options = TransformOptions::default();
    if is_nearly_identity(profile, &srgb)? {
        return Ok(());
    }
    let transform = profile.create_transform_8bit(layout, &srgb, layout, options)?;
    let mut source = vec![0; CHUNK_PIXELS * channels];
    for chunk in image.pixels.chunks_mut(CHUNK_PIXELS * channels) {
        cancel.check()?;
        let source = &mut source[..chunk.len()];
        source.copy_from_slice(chunk);
        transform.transform(source, chunk)?;
    }
    Ok(())
}

/// Whether the profile is sRGB under whatever name: a few colours come out as they went in, up to rounding.
pub(in crate::image) fn is_nearly_identity(
    profile: &ColorProfile,
    srgb: &ColorProfile,
) -> Result<bool, CmsError> {
    let probes: Vec<u8> = [0, 16, 64, 128, 200, 255]
        .into_iter()
        .flat_map(|v| {
            [
                [v, v, v],
                [v, 0, 0],
                [0, v, 0],
                [0, 0, v],
                [255, v, 128],
                [v, 128, 255],
            ]
        })
        .flatten()
        .collect();
    let mut converted = vec![0; probes.len()];
    profile
        .create_transform_8bit(
            moxcms::Layout::Rgb,
            srgb,
            moxcms::Layout::Rgb,
            TransformOptions::default(),
        )?
        .transform(&probes, &mut converted)?;
    Ok(probes
        .iter()
        .zip(&converted)
        .all(|(before, after)| before.abs_diff(*after) <= 1))
}

/// Grey has 256 values: their sRGB greys are looked up.
fn convert_grey(
    image: &mut Image,
    profile: &ColorProfile,
    cancel: &Cancel<'_>,
) -> Result<(), Stop> {
    let levels: Vec<u8> = (0..=255).collect();
    let mut table = vec![0; levels.len() * 3];
    profile
        .create_transform_8bit(
            moxcms::Layout::Gray,
            &ColorProfile::new_srgb(),
            moxcms::Layout::Rgb,
            TransformOptions::default(),
        )?
        .transform(&levels, &mut table)?;
    let channels = image.layout.channels();
    for portion in image.pixels.chunks_mut(PORTION_PIXELS * channels) {
        cancel.check()?;
        for pixel in portion.chunks_exact_mut(channels) {
            let level = usize::from(pixel[0]);
            pixel[..3].copy_from_slice(&table[level * 3..][..3]);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_are_named_again_and_again_are_too_large() {
        let profile = |tags: &[u32]| {
            let mut profile = vec![0; 128];
            profile.extend((tags.len() as u32).to_be_bytes());
            profile.extend(tags.iter().flat_map(|size| {
                let places = [[0; 4], [0, 0, 1, 0], size.to_be_bytes()];
                places.into_iter().flatten()
            }));
            profile.resize(2000, 0);
            profile
        };
        assert!(!is_too_large(&profile(&[2000; 3])));
        assert!(is_too_large(&profile(&[2000, 2000, 2000, 1])));
        assert!(is_too_large(&profile(&[u32::MAX; 2])));
        assert!(!is_too_large(&[]));
        assert!(!is_too_large(&vec![0; MAX_PROFILE_BYTES]));
        assert!(is_too_large(&vec![0; MAX_PROFILE_BYTES + 1]));
    }

    fn converted(profile: &[u8], layout: Layout, pixels: &[u8], grey: bool) -> Vec<u8> {
        let width = (pixels.len() / layout.channels()) as u32;
        let mut image = Image {
            width,
            height: 1,
            layout,
            pixels: pixels.to_vec(),
        };
        let space = Space::Icc(profile.to_vec());
        convert_to_srgb(&mut image, &space, grey, &Cancel::never()).expect("it is not cancelled");
        image.pixels
    }

    fn display_p3() -> Vec<u8> {
        ColorProfile::new_display_p3()
            .encode()
            .expect("a valid profile")
    }

    #[test]
    fn a_wider_space_becomes_srgb() {
        // By the matrices of both standards (200, 100, 50) of Display P3 is sRGB (214.9, 92.6, 31.0).
        let pixels = converted(
            &display_p3(),
            Layout::Rgb,
            &[200, 100, 50, 128, 128, 128],
            false,
        );
        for (got, expected) in pixels.iter().zip([215, 93, 31, 128, 128, 128]) {
            assert!(got.abs_diff(expected) <= 1, "{pixels:?}");
        }
    }

    #[test]
    fn alpha_is_left_alone() {
        let pixels = converted(
            &display_p3(),
            Layout::Rgba,
            &[200, 100, 50, 7, 200, 100, 50, 255],
            false,
        );
        assert_eq!((pixels[3], pixels[7]), (7, 255));
        assert_ne!(pixels[..3], [200, 100, 50]);
    }

    #[test]
    fn every_pixel_is_converted_in_pictures_of_several_chunks() {
        let pixels = converted(
            &display_p3(),
            Layout::Rgb,
            &[200, 100, 50].repeat(2 * CHUNK_PIXELS + 5),
            false,
        );
        assert_eq!(pixels, pixels[..3].repeat(2 * CHUNK_PIXELS + 5));
    }

    #[test]
    fn srgb_changes_nothing() {
        let profile = ColorProfile::new_srgb().encode().expect("a valid profile");
        let samples: Vec<u8> = (0..=254).collect();
        assert_eq!(converted(&profile, Layout::Rgb, &samples, false), samples);
    }

    #[test]
    fn grey_profiles_convert_grey_pictures_alone() {
        let profile = ColorProfile::new_gray_with_gamma(1.0)
            .encode()
            .expect("a valid profile");
        // Linear 55/255 is sRGB 0.5029.
        let pixels = converted(&profile, Layout::Rgba, &[55, 55, 55, 9], true);
        assert!(
            pixels[0].abs_diff(128) <= 1 && pixels[..3] == [pixels[0]; 3] && pixels[3] == 9,
            "{pixels:?}"
        );
        assert_eq!(
            converted(&profile, Layout::Rgb, &[1, 2, 3], false),
            [1, 2, 3]
        );
    }

    #[test]
    fn damaged_and_oversized_profiles_are_ignored() {
        let valid = display_p3();
        let samples = [200, 100, 50];
        assert_eq!(converted(b"", Layout::Rgb, &samples, false), samples);
        assert_eq!(
            converted(&valid[..100], Layout::Rgb, &samples, false),
            samples
        );
        let mut oversized = valid;
        oversized.resize(MAX_PROFILE_BYTES + 1, 0);
        assert_eq!(converted(&oversized, Layout::Rgb, &samples, false), samples);
    }
}
