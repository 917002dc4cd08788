//! Metadata that is written beside the pixels into a WebP: an ICC profile, Exif, and XMP.

mod copyright;
pub mod orientation;
pub mod tiff;

pub use copyright::IPTC_NAME;

/// The metadata of a file that is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Whether a profile of RGB is kept, in whose space the pixels then stay. Without one they
    /// become sRGB.
    pub profile: bool,
    /// The parts of Exif and XMP that are kept.
    pub descriptions: Descriptions,
}

/// The part of Exif, XMP and IPTC that is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Descriptions {
    /// Nothing.
    #[default]
    Nothing,
    /// Creator, copyright and license, in Exif and XMP that are written anew.
    Copyright,
    /// Exif and XMP as they are, but for their orientation.
    All,
}

impl Keep {
    /// Nothing: the pixels become sRGB.
    pub const NOTHING: Keep = Keep {
        profile: false,
        descriptions: Descriptions::Nothing,
    };

    /// Everything.
    pub const ALL: Keep = Keep {
        profile: true,
        descriptions: Descriptions::All,
    };

    /// The names that [`Keep::parse`] accepts, for error texts.
    pub const ALLOWED: &str = "strip, copyright, icc or keep";

    /// Reads its exact name.
    pub fn parse(text: &str) -> Option<Keep> {
        match text {
            "strip" => Some(Keep::NOTHING),
            "copyright" => Some(Keep {
                descriptions: Descriptions::Copyright,
                ..Keep::NOTHING
            }),
            "icc" => Some(Keep {
                profile: true,
                ..Keep::NOTHING
            }),
            "keep" => Some(Keep::ALL),
            _ => None,
        }
    }

    /// Most bytes that selecting it holds at a time, of metadata of at most `bytes`.
    pub fn memory(self, bytes: u64) -> u64 {
        /// The metadata that is kept, the one being made of it, and that in the file.
        const COPIES: u64 = 3;
        let copied = match self {
            Keep::NOTHING => 0,
            _ => COPIES * bytes,
        };
        match self.descriptions {
            Descriptions::Copyright if bytes > 0 => copied + copyright::MEMORY,
            _ => copied,
        }
    }
}

/// The descriptions that a file has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Described<'a> {
    /// Exif, from its TIFF header on or with its prefix of JPEG.
    pub exif: Option<&'a [u8]>,
    /// An XMP packet.
    pub xmp: Option<&'a [u8]>,
    /// Image resources of Photoshop, which may have IPTC.
    pub iptc: Option<&'a [u8]>,
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
    pub(super) fn kept(keep: Keep, icc: Option<Vec<u8>>, described: Described<'_>) -> Metadata {
        let Described { exif, xmp, iptc } = described;
        let (exif, xmp) = match keep.descriptions {
            Descriptions::Nothing => (None, None),
            Descriptions::Copyright => (
                exif.and_then(copyright::of_exif),
                copyright::of_xmp(xmp, iptc),
            ),
            Descriptions::All => (exif.and_then(upright_exif), xmp.map(upright_xmp)),
        };
        Metadata {
            icc: icc.filter(|_| keep.profile),
            exif,
            xmp,
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
    fn what_is_kept_has_four_names_and_takes_memory_by_what_is_copied() {
        let keep = |profile, descriptions| Keep {
            profile,
            descriptions,
        };
        let copied = 3 * 1000;
        for (name, expected, memory) in [
            ("strip", keep(false, Descriptions::Nothing), 0),
            ("icc", keep(true, Descriptions::Nothing), copied),
            ("keep", keep(true, Descriptions::All), copied),
            (
                "copyright",
                keep(false, Descriptions::Copyright),
                copied + copyright::MEMORY,
            ),
        ] {
            assert!(Keep::ALLOWED.contains(name));
            assert_eq!(Keep::parse(name), Some(expected), "{name}");
            assert_eq!(expected.memory(1000), memory, "{name}");
            assert_eq!(expected.memory(0), 0, "{name} of a file without metadata");
        }
        assert_eq!(Keep::parse("KEEP"), None);
    }

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
