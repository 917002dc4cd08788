//! What of a GIF is handed to its decoder: it would copy an XMP packet or a profile whole, however long.

use super::{Blocks, is_image};
use std::io::{self, Read};
use towebp_encoder::{Cancel, Cancelled};

/// Bytes of the file between two questions: LZW makes up to 2.7 million pixels of them.
const PORTION: usize = 1 << 10;

/// Reads a file without the extensions that nothing is drawn by, up to its trailer or to a byte that begins no block: for browsers, both
/// are the end. It fails once nobody waits.
pub struct Needed<'a> {
    blocks: Blocks<'a>,
    /// What is read before the next block.
    part: &'a [u8],
    cancel: &'a Cancel<'a>,
}

impl<'a> Needed<'a> {
    /// Of a whole file.
    pub fn of(bytes: &'a [u8], cancel: &'a Cancel<'a>) -> Needed<'a> {
        let blocks = Blocks::of(bytes);
        let head = bytes.len() - blocks.rest.len();
        Needed {
            part: &bytes[..head],
            blocks,
            cancel,
        }
    }

    /// The next block; empty at the end.
    fn next(&mut self) -> &'a [u8] {
        if let Some(block) = self.blocks.find(is_needed) {
            return block;
        }
        let rest = std::mem::take(&mut self.blocks.rest);
        match rest.first() {
            Some(b',') => rest, // an image that is cut, which the decoder will find
            Some(b';') => &rest[..1],
            _ => &[],
        }
    }
}

impl Read for Needed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.cancel
            .check()
            .map_err(|Cancelled| io::Error::other("cancelled"))?;
        if self.part.is_empty() {
            self.part = self.next();
        }
        let count = self.part.len().min(buffer.len()).min(PORTION);
        let (read, rest) = self.part.split_at(count);
        buffer[..count].copy_from_slice(read);
        self.part = rest;
        Ok(count)
    }
}

/// Images, what is said of them, and how often an animation is repeated.
fn is_needed(block: &&[u8]) -> bool {
    /// Of an extension with the repetitions and what may stand beside them.
    const MOST: usize = 64;
    is_image(block)
        || block.starts_with(b"!\xf9")
        || block.starts_with(b"!\xff\x0bNETSCAPE2.0") && block.len() <= MOST
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const HEAD: &[u8] = b"GIF89a\x02\0\x02\0\x80\0\0abcdef";
    const IMAGE: &[u8] = b",\0\0\0\0\x02\0\x02\0\0\x02\x02\x84\x51\0";
    const CONTROL: &[u8] = b"!\xf9\x04\0\x07\0\0\0";
    const REPEATED: &[u8] = b"!\xff\x0bNETSCAPE2.0\x03\x01\0\0\0";

    fn read(bytes: &[u8]) -> Vec<u8> {
        let mut read = Vec::new();
        let outcome = Needed::of(bytes, &Cancel::never()).read_to_end(&mut read);
        outcome.expect("everybody waits");
        read
    }

    #[test]
    fn what_is_drawn_is_read_and_nothing_else() {
        let needed = [HEAD, REPEATED, CONTROL, IMAGE, CONTROL, IMAGE, b";"].concat();
        assert_eq!(read(&needed), needed);
        let xmp = [b"!\xff\x0bXMP DataXMP", &[200; 201][..], b"\0"].concat();
        let icc = [b"!\xff\x0bICCRGBG1012", &[9; 10].repeat(1000)[..], b"\0"].concat();
        let comment = b"!\xfe\x03abc\0";
        let more = [
            HEAD, &xmp, REPEATED, &icc, comment, CONTROL, IMAGE, &xmp, CONTROL, comment, IMAGE,
            b";", &needed,
        ];
        assert_eq!(read(&more.concat()), needed);
    }

    #[test]
    fn the_end_is_the_trailer_or_what_begins_no_block() {
        let whole = [HEAD, IMAGE].concat();
        assert_eq!(read(&[&whole[..], b"x", IMAGE].concat()), whole);
        let cut = [&whole[..], &IMAGE[..13]].concat();
        assert_eq!(read(&cut), cut, "the decoder has to see that it is cut");
        assert_eq!(read(&[&whole[..], b"!\xfe\x09abc"].concat()), whole);
        for length in 0..HEAD.len() {
            assert_eq!(read(&HEAD[..length]), HEAD[..length]);
        }
    }

    #[test]
    fn it_checks_once_a_portion_and_fails_once_it_is_cancelled() {
        let checks = AtomicUsize::new(0);
        let question = || checks.fetch_add(1, Ordering::Relaxed) >= 3;
        let image = [&IMAGE[..11], &[&[255; 256][..]; 40].concat(), b"\0"].concat();
        let file = [HEAD, &image].concat();
        let cancel = Cancel::when(&question);
        let mut read = Vec::new();
        assert!(Needed::of(&file, &cancel).read_to_end(&mut read).is_err());
        assert!(read.len() <= 3 * PORTION, "{} bytes", read.len());
    }
}
