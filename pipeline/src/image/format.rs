//! The input formats: their names, their media types, and how their files begin.

use std::fmt;

/// The input formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Portable Network Graphics.
    Png,
    /// JPEG (JFIF, Exif or bare).
    Jpeg,
    /// GIF 87a or 89a.
    Gif,
    /// Windows or OS/2 bitmap.
    Bmp,
    /// WebP, which is an input only where that is asked for: the specification has the first four.
    Webp,
    /// TIFF 6.0, which is an input only where that is asked for, too.
    Tiff,
}

/// The formats that are inputs beside those of the specification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcceptedFormats {
    /// Whether WebP is one.
    pub webp: bool,
    /// Whether TIFF is one.
    pub tiff: bool,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 6] = [
        Format::Png,
        Format::Jpeg,
        Format::Gif,
        Format::Bmp,
        Format::Webp,
        Format::Tiff,
    ];

    /// The media types that [`Format::from_media_type`] reads.
    pub const MEDIA_TYPES: [(&str, Format); 10] = [
        ("image/png", Format::Png),
        // Registered for animated ones (PNG, third edition).
        ("image/apng", Format::Png),
        ("image/jpeg", Format::Jpeg),
        ("image/jpg", Format::Jpeg),
        ("image/gif", Format::Gif),
        ("image/bmp", Format::Bmp),
        // Older names, still given by the shared MIME database and some browsers.
        ("image/x-ms-bmp", Format::Bmp),
        ("image/x-bmp", Format::Bmp),
        ("image/webp", Format::Webp),
        ("image/tiff", Format::Tiff),
    ];

    /// The short lower-case name: `png`, `jpeg`, `gif`, `bmp`, `webp`, `tiff`.
    pub fn name(self) -> &'static str {
        match self {
            Format::Png => "png",
            Format::Jpeg => "jpeg",
            Format::Gif => "gif",
            Format::Bmp => "bmp",
            Format::Webp => "webp",
            Format::Tiff => "tiff",
        }
    }

    /// The ending of file names: `png`, `jpg`, `gif`, `bmp`, `webp`, `tif`.
    pub fn ending(self) -> &'static str {
        match self {
            Format::Jpeg => "jpg",
            Format::Tiff => "tif",
            other => other.name(),
        }
    }

    /// The media type: `image/` and the name.
    pub fn media_type(self) -> &'static str {
        match self {
            Format::Png => "image/png",
            Format::Jpeg => "image/jpeg",
            Format::Gif => "image/gif",
            Format::Bmp => "image/bmp",
            Format::Webp => "image/webp",
            Format::Tiff => "image/tiff",
        }
    }

    /// Reads a media type such as `image/jpg; charset=x`: case-insensitive, parameters ignored.
    pub fn from_media_type(text: &str) -> Option<Format> {
        let essence = text.split(';').next().unwrap_or_default().trim();
        let mut types = Format::MEDIA_TYPES.into_iter();
        let found = types.find(|(name, _)| name.eq_ignore_ascii_case(essence));
        found.map(|(_, format)| format)
    }

    /// Whether the format is converted, with these formats among the inputs.
    pub fn is_accepted(self, accepted: AcceptedFormats) -> bool {
        match self {
            Format::Webp => accepted.webp,
            Format::Tiff => accepted.tiff,
            Format::Png | Format::Jpeg | Format::Gif | Format::Bmp => true,
        }
    }

    /// The format that the first bytes of a file look like.
    pub fn sniff(bytes: &[u8]) -> Option<Format> {
        // PNG 5.2; JPEG B.1.1.3: the start-of-image marker and the first byte of the next marker;
        // GIF 17; the bitmap file header's bfType; RFC 9649, 2.4; TIFF 6.0, section 2, and BigTIFF.
        if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
            Some(Format::Png)
        } else if bytes.starts_with(b"\xff\xd8\xff") {
            Some(Format::Jpeg)
        } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
            Some(Format::Gif)
        } else if bytes.starts_with(b"BM") {
            Some(Format::Bmp)
        } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
            Some(Format::Webp)
        } else if matches!(
            bytes.get(..4),
            Some(b"II*\0" | b"MM\0*" | b"II+\0" | b"MM\0+")
        ) {
            Some(Format::Tiff)
        } else {
            None
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Format::Png => "PNG",
            Format::Jpeg => "JPEG",
            Format::Gif => "GIF",
            Format::Bmp => "BMP",
            Format::Webp => "WebP",
            Format::Tiff => "TIFF",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_are_read_as_http_writes_them() {
        for (text, format) in [
            ("image/png", Some(Format::Png)),
            ("image/apng", Some(Format::Png)),
            ("image/jpeg", Some(Format::Jpeg)),
            ("image/jpg", Some(Format::Jpeg)),
            ("image/gif", Some(Format::Gif)),
            ("image/bmp", Some(Format::Bmp)),
            ("image/x-ms-bmp", Some(Format::Bmp)),
            ("Image/X-BMP; charset=x", Some(Format::Bmp)),
            ("image/x-windows-bmp", None),
            ("IMAGE/JPG; charset=x", Some(Format::Jpeg)),
            (" image/PNG ;q=1", Some(Format::Png)),
            ("image/webp", Some(Format::Webp)),
            ("image/tiff", Some(Format::Tiff)),
            ("image/pngx", None),
            ("application/x-www-form-urlencoded", None),
            ("", None),
        ] {
            assert_eq!(Format::from_media_type(text), format, "{text:?}");
        }
    }

    #[test]
    fn files_are_known_by_their_first_bytes() {
        for (bytes, format) in [
            (&b"\x89PNG\r\n\x1a\nrest"[..], Some(Format::Png)),
            (b"\xff\xd8\xff\xe0", Some(Format::Jpeg)),
            (b"GIF87a", Some(Format::Gif)),
            (b"GIF89a", Some(Format::Gif)),
            (b"BM", Some(Format::Bmp)),
            (b"GIF88a", None),
            (b"\x89PNG\n\x1a\n", None),
            (b"RIFF\0\0\0\0WEBP", Some(Format::Webp)),
            (b"RIFF\0\0\0\0WAVE", None),
            (b"II*\0", Some(Format::Tiff)),
            (b"MM\0*", Some(Format::Tiff)),
            (b"II\0*", None),
            (b"", None),
        ] {
            assert_eq!(Format::sniff(bytes), format, "{bytes:?}");
        }
    }
}
