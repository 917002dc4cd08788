//! The outline of a GIF (GIF 89a, appendix B), walked once: its extensions and images, without
//! their pixels.

use crate::image::error::DecodeError;

/// The blocks of a GIF, without the pixels.
#[derive(Debug, Default)]
pub struct Outline<'a> {
    /// The parts of the file that the decoder is given. It would copy an XMP packet or a profile
    /// whole, so that extensions which do not affect the pixels are left out. The parts end with
    /// the trailer or with a byte that begins no block: both are the end for browsers.
    pub parts: Vec<&'a [u8]>,
    /// The images, each from its descriptor to the end of its data; at most one more than an
    /// animation may have frames.
    pub images: Vec<&'a [u8]>,
    /// An image behind them that the file ends within.
    pub cut_image: Option<&'a [u8]>,
    /// The repetitions by the extension ANIMEXTS, the older of the two names that browsers know; 0
    /// is for ever. The decoder does not know it.
    pub repetitions: Option<u16>,
    /// The XMP packet.
    pub xmp: Option<&'a [u8]>,
}

impl<'a> Outline<'a> {
    /// More parts are not accepted: they are separated by extensions that do not affect the pixels,
    /// of which writers put one or two in front of an image.
    const MAX_PARTS: usize = 1 << 16;

    /// Walks the blocks of a file, and keeps those of at most `max_frames` frames and one more.
    ///
    /// # Errors
    /// [`DecodeError::Invalid`] if there are more extensions than any writer has use for.
    pub fn walk(bytes: &'a [u8], max_frames: u32) -> Result<Outline<'a>, DecodeError> {
        let mut outline = Outline::default();
        let mut rest = behind_head(bytes).unwrap_or_default();
        // The range of needed blocks that follow each other without a gap; it begins with the head.
        let mut needed = 0..bytes.len() - rest.len();
        let mut is_within_limit = true;
        let mut found_xmp = false;
        while let Some(behind) = behind_block(rest) {
            let begin = bytes.len() - rest.len();
            let (block, behind) = rest.split_at(rest.len() - behind.len());
            rest = behind;
            if is_image(block) {
                is_within_limit = outline.images.len() as u64 <= u64::from(max_frames);
                if is_within_limit {
                    outline.images.push(block);
                }
            } else if let Some(data) = block.strip_prefix(XMP).filter(|_| !found_xmp) {
                found_xmp = true;
                outline.xmp = xmp_packet(data);
            } else if outline.images.is_empty() && outline.repetitions.is_none() {
                outline.repetitions = repetitions(block);
            }
            if is_within_limit && is_needed(block) {
                if begin != needed.end {
                    outline.push(&bytes[needed])?;
                    needed = begin..begin;
                }
                needed.end = begin + block.len();
            }
        }
        outline.push(&bytes[needed])?;
        if is_within_limit {
            match rest.first() {
                Some(b',') => {
                    outline.cut_image = Some(rest);
                    outline.push(rest)?; // the decoder has to find that it is cut
                }
                Some(b';') => outline.push(&rest[..1])?,
                _ => {}
            }
        }
        Ok(outline)
    }

    /// Whether there is more than one whole image.
    pub fn is_animated(&self) -> bool {
        self.images.len() > 1
    }

    /// Width and height of all frames by their descriptors, including an image that is cut.
    pub fn frame_sizes(&self) -> impl Iterator<Item = (u32, u32)> {
        let images = self.images.iter().chain(&self.cut_image);
        images.map_while(|image| {
            let [.., width, height] = descriptor(image)?;
            Some((u32::from(width), u32::from(height)))
        })
    }

    /// The bytes that the outline holds, and that a reader of its parts does.
    pub fn held_bytes(&self) -> u64 {
        /// Bytes of a part in a list, and of a part with its offset in the reader's.
        const PART: usize = 16 + 24;
        (self.parts.capacity() * PART + self.images.capacity() * 16) as u64
    }

    fn push(&mut self, part: &'a [u8]) -> Result<(), DecodeError> {
        if self.parts.len() == Outline::MAX_PARTS {
            let reason = "the GIF has more extensions than any writer has use for";
            return Err(DecodeError::Invalid(reason.to_owned()));
        }
        self.parts.push(part);
        Ok(())
    }
}

/// The beginning of the application extension with an XMP packet (XMP specification, part 3,
/// 1.1.2).
const XMP: &[u8] = b"!\xff\x0bXMP DataXMP";

/// Left, top, width and height by the descriptor of an image (GIF 89a, 20), whose data need not be
/// whole.
pub fn descriptor(image: &[u8]) -> Option<[u16; 4]> {
    let &[b',', ref sides @ ..] = image else {
        return None;
    };
    let sides = sides.first_chunk::<8>()?.as_chunks::<2>().0;
    Some([0, 1, 2, 3].map(|side| u16::from_le_bytes(sides[side])))
}

fn is_image(block: &[u8]) -> bool {
    block.starts_with(b",")
}

/// Whether the decoder needs a block: an image, its graphic control extension, or the number of
/// repetitions.
fn is_needed(block: &[u8]) -> bool {
    /// Most bytes of the extension with the repetitions, and of data that may stand beside them.
    const MAX_REPETITIONS: usize = 64;
    is_image(block)
        || block.starts_with(b"!\xf9")
        || block.starts_with(b"!\xff\x0bNETSCAPE2.0") && block.len() <= MAX_REPETITIONS
}

/// The repetitions by the extension ANIMEXTS.
fn repetitions(block: &[u8]) -> Option<u16> {
    match block.strip_prefix(b"!\xff\x0bANIMEXTS1.0\x03\x01")? {
        [low, high, ..] => Some(u16::from_le_bytes([*low, *high])),
        _ => None,
    }
}

/// The XMP packet in the data of its extension. It stands there as it is, not in sub-blocks; the
/// bytes behind it lead readers that take it for sub-blocks to its end.
fn xmp_packet(data: &[u8]) -> Option<&[u8]> {
    const TRAILER: usize = 258;
    let length = data.len().checked_sub(TRAILER)?;
    (data[length] == 1).then_some(&data[..length])
}

/// The bytes behind the logical screen descriptor and its color table.
fn behind_head(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(13 + table_bytes(*bytes.get(10)?)..)
}

/// The bytes behind the extension or the image that `bytes` begin with; `None` if they begin with
/// neither, or if it is not whole.
fn behind_block(bytes: &[u8]) -> Option<&[u8]> {
    let head = match bytes.first()? {
        // The size of the codes follows the descriptor and its table.
        b',' => 11 + table_bytes(*bytes.get(9)?),
        b'!' => 2,
        _ => return None,
    };
    let mut rest = bytes.get(head..)?;
    while let (&length @ 1.., behind) = rest.split_first()? {
        rest = behind.get(usize::from(length)..)?;
    }
    rest.get(1..)
}

/// The bytes of a color table, by the flags before it.
fn table_bytes(flags: u8) -> usize {
    if flags & 0x80 == 0 {
        0
    } else {
        3 << ((flags & 7) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] = b"GIF89a\x02\0\x02\0\x80\0\0abcdef";
    const IMAGE: &[u8] = b",\0\0\0\0\x02\0\x02\0\0\x02\x02\x84\x51\0";
    const CONTROL: &[u8] = b"!\xf9\x04\0\x07\0\0\0";
    const REPEATED: &[u8] = b"!\xff\x0bNETSCAPE2.0\x03\x01\0\0\0";

    fn needed(bytes: &[u8]) -> Vec<u8> {
        let outline = Outline::walk(bytes, 1000).expect("few extensions");
        outline.parts.concat()
    }

    #[test]
    fn blocks_that_affect_pixels_are_needed_and_no_others() {
        let all_needed = [HEAD, REPEATED, CONTROL, IMAGE, CONTROL, IMAGE, b";"].concat();
        assert_eq!(needed(&all_needed), all_needed);
        let xmp = [b"!\xff\x0bXMP DataXMP", &[200; 201][..], b"\0"].concat();
        let icc = [b"!\xff\x0bICCRGBG1012", &[9; 10].repeat(1000)[..], b"\0"].concat();
        let comment = b"!\xfe\x03abc\0";
        let more = [
            HEAD,
            &xmp,
            REPEATED,
            &icc,
            comment,
            CONTROL,
            IMAGE,
            &xmp,
            CONTROL,
            comment,
            IMAGE,
            b";",
            &all_needed,
        ];
        assert_eq!(needed(&more.concat()), all_needed);
    }

    #[test]
    fn the_end_is_the_trailer_or_a_byte_that_begins_no_block() {
        let whole = [HEAD, IMAGE].concat();
        assert_eq!(needed(&[&whole[..], b"x", IMAGE].concat()), whole);
        let cut = [&whole[..], &IMAGE[..13]].concat();
        assert_eq!(needed(&cut), cut, "the decoder has to see that it is cut");
        assert_eq!(needed(&[&whole[..], b"!\xfe\x09abc"].concat()), whole);
        for length in 0..HEAD.len() {
            assert_eq!(needed(&HEAD[..length]), HEAD[..length]);
        }
    }

    #[test]
    fn images_are_counted_up_to_one_more_than_allowed() {
        let file = [HEAD, &[CONTROL, IMAGE].concat().repeat(5), b";"].concat();
        let outline = |max_frames| Outline::walk(&file, max_frames).expect("few extensions");
        assert_eq!(outline(5).images, [IMAGE; 5]);
        assert_eq!(outline(4).images, [IMAGE; 5]);
        assert_eq!(outline(3).images, [IMAGE; 4]);
        assert_eq!(outline(5).parts.concat(), file);
    }

    #[test]
    fn too_many_parts_are_rejected() {
        let file = |count| [HEAD, &[CONTROL, b"!\xfe\0"].concat().repeat(count), IMAGE].concat();
        assert!(Outline::walk(&file(60_000), 10).is_ok());
        assert!(Outline::walk(&file(70_000), 10).is_err());
    }
}
