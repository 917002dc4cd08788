//! Metadata that goes with the pixels into a WebP: an ICC profile, Exif, and XMP, which no decoder needs and which is looked for
//! here.

pub mod orientation;

use super::formats::{gif, jpeg, png};
use super::{Format, color};

/// What of a file's metadata stays with its pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// None of it. The pixels become sRGB.
    Nothing,
    /// Exif and XMP. The pixels become sRGB.
    Descriptions,
    /// Exif and XMP, and a profile of RGB, whose space the pixels then stay in.
    All,
}

/// What was kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// An ICC profile of RGB, which the pixels are to be read by; without one they are sRGB.
    pub icc: Option<Vec<u8>>,
    /// Exif, from its TIFF header on. Its orientation is 1, since the pixels were turned.
    pub exif: Option<Vec<u8>>,
    /// An XMP packet, whose orientation is 1, too.
    pub xmp: Option<Vec<u8>>,
}

impl Metadata {
    /// Exif and XMP of a still picture.
    pub(in crate::image) fn descriptions(
        exif: Option<Vec<u8>>,
        bytes: &[u8],
        format: Format,
    ) -> Metadata {
        Metadata {
            icc: None,
            exif: exif.and_then(upright),
            xmp: xmp(bytes, format),
        }
    }

    /// That of an animated GIF: XMP alone, since browsers apply no profile of a GIF.
    pub fn of_animation(gif: &[u8]) -> Metadata {
        Metadata {
            xmp: xmp(gif, Format::Gif),
            ..Metadata::default()
        }
    }
}

/// Exif data with its orientation reset; `None` if it is no Exif.
fn upright(mut exif: Vec<u8>) -> Option<Vec<u8>> {
    if exif.starts_with(orientation::JPEG_PREFIX) {
        exif.drain(..orientation::JPEG_PREFIX.len());
    }
    orientation::reset(&mut exif);
    let is_tiff = exif.starts_with(b"II*\0") || exif.starts_with(b"MM\0*");
    is_tiff.then_some(exif)
}

/// The XMP packet of a file, with its orientation reset. Where each format has it: XMP specification, part 3, 1.1.
fn xmp(bytes: &[u8], format: Format) -> Option<Vec<u8>> {
    let packet = match format {
        Format::Png => xmp_of_png(bytes),
        Format::Jpeg => xmp_of_jpeg(bytes),
        Format::Gif => xmp_of_gif(bytes),
        Format::Bmp => None,
    };
    let mut packet = packet?.to_vec();
    reset_orientation(&mut packet);
    Some(packet)
}

/// Most bytes that [`Metadata`] of this file may have.
pub fn metadata_bytes(bytes: &[u8], format: Format) -> u64 {
    let profile = color::MAX_PROFILE_BYTES as u64;
    match format {
        Format::Png => descriptions_of_png(bytes) + png::profile_bytes(bytes).min(profile),
        Format::Jpeg => jpeg_segments(bytes)
            .map(|(_, data)| data.len() as u64)
            .sum(),
        Format::Gif => xmp_of_gif(bytes).unwrap_or_default().len() as u64,
        Format::Bmp => profile.min(bytes.len() as u64),
    }
}

/// Bytes of what may be Exif or XMP.
pub(in crate::image) fn descriptions_of_png(bytes: &[u8]) -> u64 {
    png::chunks(bytes)
        .filter(|(name, _)| matches!(*name, b"eXIf" | b"iTXt"))
        .map(|(_, data)| data.len() as u64)
        .sum()
}

/// In an `iTXt` chunk, which must not be compressed.
fn xmp_of_png(bytes: &[u8]) -> Option<&[u8]> {
    let mut texts = png::chunks(bytes).filter(|(name, _)| *name == b"iTXt");
    let found = texts.find_map(|(_, data)| data.strip_prefix(b"XML:com.adobe.xmp\0\0\0"))?;
    // A language and a translated keyword, which should be empty.
    let mut parts = found.splitn(3, |&byte| byte == 0);
    parts.nth(2)
}

/// Segments in front of the first scan by marker and data.
fn jpeg_segments(bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    const START_OF_SCAN: u8 = 0xda;
    jpeg::segments(bytes).take_while(|(marker, _)| *marker != START_OF_SCAN)
}

/// In an APP1 segment. Of a packet in several segments the first one, which makes sense without the others.
fn xmp_of_jpeg(bytes: &[u8]) -> Option<&[u8]> {
    let mut segments = jpeg_segments(bytes).filter(|(marker, _)| *marker == 0xe1);
    segments.find_map(|(_, data)| data.strip_prefix(b"http://ns.adobe.com/xap/1.0/\0"))
}

/// In an application extension: the packet as it is, then bytes that lead readers who take it for sub-blocks to its end.
fn xmp_of_gif(bytes: &[u8]) -> Option<&[u8]> {
    const TRAILER: usize = 258;
    let mut packets =
        gif::Blocks::of(bytes).filter_map(|block| block.strip_prefix(b"!\xff\x0bXMP DataXMP"));
    let data = packets.next()?;
    let packet = data.len().checked_sub(TRAILER)?;
    (data[packet] == 1).then_some(&data[..packet])
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

    fn png_with(chunks: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
        let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
        for (name, data) in chunks {
            file.extend((data.len() as u32).to_be_bytes());
            file.extend([&name[..], data, &[0; 4]].concat());
        }
        file
    }

    fn segment(marker: u8, data: &[u8]) -> Vec<u8> {
        let length = (data.len() as u16 + 2).to_be_bytes();
        [&[0xff, marker], &length[..], data].concat()
    }

    /// A GIF of these blocks, with a table of four colours.
    fn gif_with(blocks: &[u8]) -> Vec<u8> {
        let screen = [2, 0, 2, 0, 0x81, 0, 0];
        [b"GIF89a", &screen[..], &[7; 12], blocks, b";"].concat()
    }

    fn gif_xmp(packet: &[u8]) -> Vec<u8> {
        let mut block = [b"!\xff\x0bXMP DataXMP", packet, &[1]].concat();
        block.extend((0..=255).rev());
        block.push(0);
        block
    }

    #[test]
    fn a_packet_is_found_in_each_format() {
        let text = b"XML:com.adobe.xmp\0\0\0en\0word\0<x/>";
        let png = png_with(&[
            (b"IHDR", &[0; 13]),
            (b"iTXt", b"Comment\0\0\0\0\0x"),
            (b"iTXt", text),
        ]);
        assert_eq!(xmp(&png, Format::Png).as_deref(), Some(&b"<x/>"[..]));

        let packet = segment(0xe1, b"http://ns.adobe.com/xap/1.0/\0<x/>");
        let exif = segment(0xe1, b"Exif\0\0MM");
        let scan = segment(0xda, &[1, 1, 0, 0, 63, 0]);
        let jpeg = [b"\xff\xd8", &exif[..], &[0xff], &packet, &scan].concat();
        assert_eq!(xmp(&jpeg, Format::Jpeg).as_deref(), Some(&b"<x/>"[..]));
        let behind = [b"\xff\xd8", &exif[..], &scan, &packet].concat();
        assert_eq!(
            xmp(&behind, Format::Jpeg),
            None,
            "a scan is no place for it"
        );

        let long = [b"<".repeat(1000), b"/>".to_vec()].concat();
        let frame = b",\0\0\0\0\x01\0\x01\0\x80abcdef\x02\x02\x44\x01\0";
        let pause = b"!\xf9\x04\0\0\0\0\0";
        let gif = gif_with(&[&frame[..], pause, &gif_xmp(&long)].concat());
        assert_eq!(xmp(&gif, Format::Gif), Some(long));
        assert_eq!(xmp(&gif_with(frame), Format::Gif), None);
    }

    #[test]
    fn files_that_are_cut_anywhere_have_a_whole_packet_or_none() {
        let packet = b"<x:xmpmeta/>";
        let text = [b"XML:com.adobe.xmp\0\0\0\0\0", &packet[..]].concat();
        let png = png_with(&[(b"IHDR", &[0; 13]), (b"iTXt", &text)]);
        let app1 = [b"http://ns.adobe.com/xap/1.0/\0", &packet[..]].concat();
        let jpeg = [b"\xff\xd8", &segment(0xe1, &app1)[..]].concat();
        let gif = gif_with(&gif_xmp(packet));
        for (file, format) in [(png, Format::Png), (jpeg, Format::Jpeg), (gif, Format::Gif)] {
            for length in 0..file.len() {
                let found = xmp(&file[..length], format);
                assert!(
                    found.as_deref().is_none_or(|found| found == packet),
                    "{format} of {length} bytes: {found:?}"
                );
                metadata_bytes(&file[..length], format);
            }
            assert_eq!(xmp(&file, format).as_deref(), Some(&packet[..]));
            assert!(metadata_bytes(&file, format) >= packet.len() as u64);
        }
    }

    #[test]
    fn orientations_are_reset_wherever_they_stand() {
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
    fn exif_loses_its_prefix_and_its_orientation_and_nothing_else() {
        let exif = |orientation| {
            let mut exif = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
            exif.extend([orientation, 0, 0, 0, 0, 0, 0]);
            exif
        };
        assert_eq!(upright(exif(6)), Some(exif(1)));
        assert_eq!(upright([b"Exif\0\0", &exif(3)[..]].concat()), Some(exif(1)));
        assert_eq!(upright(b"Exif\0\0nonsense".to_vec()), None);
        assert_eq!(upright(b"II*\0".to_vec()), Some(b"II*\0".to_vec()));
    }
}
