//! ICC profiles (ICC.1): which ones are used, and which are sRGB's own.

use moxcms::{CmsError, ColorProfile, DataColorSpace, TransformOptions};

/// Larger profiles are ignored: real ones have a few KiB, those with tables up to about 2 MiB.
pub const MAX_PROFILE_BYTES: usize = 4 << 20;

/// Most bytes that a profile of `length` bytes holds in the conversion of samples of so many
/// components: [`BYTES_PER_PROFILE_BYTE`] for each byte, and tables whose size does not depend on
/// it, if there is one.
pub fn profile_bytes(length: usize, components: usize) -> u64 {
    // The library makes a table of 17 colors of each of four inks, twice as numbers of four bytes,
    // and of 33 of each of three primaries.
    let tables = match (length, components) {
        (0, _) => 0,
        (_, 4) => 4 << 20,
        _ => 3 << 19,
    };
    BYTES_PER_PROFILE_BYTE * length as u64 + tables
}

/// Most bytes that are held for each byte of an ICC profile: the profile and a copy, its tables as
/// often as [`is_too_large`] lets tags name them, and the table of the tag that is used as numbers
/// of four bytes.
pub const BYTES_PER_PROFILE_BYTE: u64 = 10;

/// Whether a profile is larger than any that is of use, or the data of its tags together is. The
/// library copies the data of each tag, and several tags may name the same data (ICC.1, 7.3).
pub fn is_too_large(profile: &[u8]) -> bool {
    /// Tags may name data of at most so many times the profile's size: the three intents of a
    /// device often share a table.
    const MAX_SHARING: u64 = 3;
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
    profile.len() > MAX_PROFILE_BYTES || sizes.sum::<u64>() > MAX_SHARING * profile.len() as u64
}

/// Whether a profile can be kept with RGB samples: it is within bounds, whole, and one of RGB.
pub fn is_rgb(profile: &[u8]) -> bool {
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

/// Whether a profile is sRGB, up to rounding.
pub fn is_srgb(profile: &[u8]) -> bool {
    let is_srgb = |profile: ColorProfile| {
        profile.color_space == DataColorSpace::Rgb
            && is_nearly_identity(&profile, &ColorProfile::new_srgb()).is_ok_and(|is| is)
    };
    !is_too_large(profile) && ColorProfile::new_from_slice(profile).is_ok_and(is_srgb)
}

/// Whether the profile is sRGB under any name: a few colors come out as they went in, up to
/// rounding.
pub fn is_nearly_identity(profile: &ColorProfile, srgb: &ColorProfile) -> Result<bool, CmsError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_many_tags_name_is_too_large() {
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
}
