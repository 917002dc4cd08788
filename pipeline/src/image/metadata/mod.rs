//! Metadata that is written beside the pixels into a WebP: an ICC profile, Exif, and XMP.

pub mod orientation;

/// The metadata of a file that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// None. The pixels become sRGB.
    Nothing,
    /// Exif and XMP. The pixels become sRGB.
    Descriptions,
    /// Exif, XMP, and a profile of RGB, in whose space the pixels then stay.
    All,
}

/// The metadata that was kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// An ICC profile of RGB, in whose space the pixels are; without one they are sRGB.
    pub icc: Option<Vec<u8>>,
    /// Exif, from its TIFF header on. Its orientation is 1, since the pixels were oriented.
    pub exif: Option<Vec<u8>>,
    /// An XMP packet, whose orientation is 1, too.
    pub xmp: Option<Vec<u8>>,
}

impl Metadata {
    /// The part of a file's metadata that `keep` selects.
    pub(super) fn kept(
        keep: Keep,
        icc: Option<Vec<u8>>,
        exif: Option<&[u8]>,
        xmp: Option<&[u8]>,
    ) -> Metadata {
        match keep {
            Keep::Nothing => Metadata::default(),
            Keep::Descriptions | Keep::All => Metadata {
                icc: icc.filter(|_| keep == Keep::All),
                exif: exif.and_then(upright_exif),
                xmp: xmp.map(upright_xmp),
            },
        }
    }
}

/// Exif data with its orientation reset; `None` if it is not Exif.
fn upright_exif(exif: &[u8]) -> Option<Vec<u8>> {
    let mut exif = exif
        .strip_prefix(orientation::JPEG_PREFIX)
        .unwrap_or(exif)
        .to_vec();
    orientation::reset(&mut exif);
    let is_tiff = exif.starts_with(b"II*\0") || exif.starts_with(b"MM\0*");
    is_tiff.then_some(exif)
}

/// An XMP packet with its orientation reset.
fn upright_xmp(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    reset_orientation(&mut packet);
    packet
}

/// Sets each `tiff:Orientation`, an attribute or an element, to 1.
fn reset_orientation(packet: &mut [u8]) {
    const NAME: &[u8] = b"tiff:Orientation";
    let mut from = 0;
    while let Some(found) = packet[from..].windows(NAME.len()).position(|at| at == NAME) {
        from += found + NAME.len();
        let is_between = |byte: &u8| byte.is_ascii_whitespace() || b"=\"'>".contains(byte);
        let value = packet[from..].iter().position(|byte| !is_between(byte));
        if let Some(value) = value.filter(|value| *value > 0)
            && let Some(digit @ b'1'..=b'8') = packet.get_mut(from + value)
        {
            *digit = b'1';
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orientations_are_reset_in_attributes_and_elements() {
        for (before, after) in [
            (
                r#"tiff:Orientation="6" a="6""#,
                r#"tiff:Orientation="1" a="6""#,
            ),
            ("tiff:Orientation = '8'", "tiff:Orientation = '1'"),
            (
                "<tiff:Orientation>3</tiff:Orientation>",
                "<tiff:Orientation>1</tiff:Orientation>",
            ),
            ("tiff:Orientation", "tiff:Orientation"),
            ("tiff:Orientation6", "tiff:Orientation6"),
            ("exif:Orientation='6'", "exif:Orientation='6'"),
        ] {
            let mut packet = before.as_bytes().to_vec();
            reset_orientation(&mut packet);
            assert_eq!(String::from_utf8_lossy(&packet), after);
        }
    }

    #[test]
    fn exif_loses_only_its_prefix_and_its_orientation() {
        let exif = |orientation| {
            let mut exif = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
            exif.extend([orientation, 0, 0, 0, 0, 0, 0]);
            exif
        };
        assert_eq!(upright_exif(&exif(6)), Some(exif(1)));
        assert_eq!(
            upright_exif(&[b"Exif\0\0", &exif(3)[..]].concat()),
            Some(exif(1))
        );
        assert_eq!(upright_exif(b"Exif\0\0nonsense"), None);
        assert_eq!(upright_exif(b"II*\0"), Some(b"II*\0".to_vec()));
    }
}
