//! Creator, copyright and license alone (`metadata=copyright`): Exif and XMP that are written anew
//! from these fields, so that nothing else of a file is in them.

mod iptc;
mod xmp;

pub use iptc::NAME as IPTC_NAME;

use super::orientation::JPEG_PREFIX;
use super::tiff::{ASCII, Tiff};
use xmp::{CREATOR, CREDIT, Properties, RIGHTS};

/// Most bytes that reading and writing these fields hold at a time.
pub const MEMORY: u64 = 256 << 10;

/// The Exif tags that are kept, in the order of their numbers: Artist and Copyright.
const TAGS: [u16; 2] = [0x013b, 0x8298];

/// Exif with the fields of `exif` that are kept, little-endian; `None` if it has none.
pub fn of_exif(exif: &[u8]) -> Option<Vec<u8>> {
    /// The bytes of a text beyond which it is left out.
    const MOST: usize = 4 << 10;
    let tiff = Tiff::new(exif.strip_prefix(JPEG_PREFIX).unwrap_or(exif))?;
    let texts = TAGS.map(|tag| {
        let text = tiff.text(tag)?;
        let end = text.iter().rposition(|byte| !b"\0 ".contains(byte))?;
        (end < MOST).then_some((tag, &text[..=end]))
    });
    let texts: Vec<_> = texts.into_iter().flatten().collect();
    if texts.is_empty() {
        return None;
    }
    let mut written = b"II*\0\x08\0\0\0".to_vec();
    written.extend((texts.len() as u16).to_le_bytes());
    let mut values = Vec::new();
    let begin = written.len() + 12 * texts.len() + 4;
    for (tag, text) in texts {
        written.extend([tag.to_le_bytes(), ASCII.to_le_bytes()].concat());
        written.extend((text.len() as u32 + 1).to_le_bytes());
        if text.len() < 4 {
            let mut value = [0; 4];
            value[..text.len()].copy_from_slice(text);
            written.extend(value);
        } else {
            written.extend(((begin + values.len()) as u32).to_le_bytes());
            values.extend_from_slice(text);
            values.push(0);
            values.resize(values.len().next_multiple_of(2), 0);
        }
    }
    written.extend([0; 4]);
    written.extend(values);
    Some(written)
}

/// An XMP packet with the properties of `xmp` that are kept, and with those of the image resources
/// `iptc` that it lacks; `None` if neither has any.
pub fn of_xmp(xmp: Option<&[u8]>, iptc: Option<&[u8]>) -> Option<Vec<u8>> {
    /// The data sets By-line, Credit and Copyright Notice of record 2.
    const DATA_SETS: [(u8, usize); 3] = [(80, CREATOR), (110, CREDIT), (116, RIGHTS)];
    let mut properties = xmp.map(Properties::read).unwrap_or_default();
    let lacking = DATA_SETS.map(|(number, property)| (number, property, !properties.has(property)));
    let sets = iptc.map(|iptc| iptc::read(iptc, &DATA_SETS.map(|(number, _)| number)));
    for (number, text) in sets.unwrap_or_default() {
        let set = lacking.iter().find(|(set, ..)| *set == number);
        if let Some(&(_, property, true)) = set {
            properties.add_text(property, text);
        }
    }
    properties.packet()
}

#[cfg(test)]
mod tests;
