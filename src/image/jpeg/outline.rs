//! What the decoder does not tell of a JPEG, or not by name: its kind, and where it ends (ITU-T T.81, B.1.1 and B.2.2).

use crate::image::{Cancelled, DecodeError, Patience};

/// Bytes that are looked through for their end between two questions.
const END_PORTION: usize = 1 << 20;

/// The end of image.
#[derive(Clone, Copy)]
pub struct End {
    /// Where it stands in the file.
    pub at: usize,
    /// Restart markers before it.
    pub restarts: usize,
}

/// What the decoder does not tell, or not by name.
pub struct Outline<'a> {
    /// Marker and precision of the first frame header.
    frame: Option<(u8, u8)>,
    /// Where the first scan begins in the file.
    begin: usize,
    /// From there on.
    scans: &'a [u8],
}

impl Outline<'_> {
    /// Reads the segments up to the first scan.
    pub fn of(bytes: &[u8]) -> Outline<'_> {
        let mut frame = None;
        let mut rest = bytes.get(2..).unwrap_or_default(); // after the start of image
        while let &[prefix, marker, ref segment @ ..] = rest {
            let length = match (marker, segment) {
                _ if prefix != 0xff || marker == 0xff => 1, // a stray byte, or a fill byte
                (0xda, _) => break,                         // start of scan
                (_, &[high, low, first, ..]) => {
                    // Among these, C4, C8 and CC are tables and a reserved marker.
                    if matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc) {
                        frame = frame.or(Some((marker, first)));
                    }
                    2 + usize::from(u16::from_be_bytes([high, low]))
                }
                _ => break,
            };
            rest = rest.get(length..).unwrap_or_default();
        }
        Outline {
            frame,
            begin: bytes.len() - rest.len(),
            scans: rest,
        }
    }

    /// Refuses by name what T.81, table B.1, has and hardly any program reads.
    pub fn check_kind(&self) -> Result<(), DecodeError> {
        let kind = match self.frame {
            Some((0xc3, _)) => "it is coded without loss",
            Some((0xc5..=0xc7, _)) => "it is coded in a hierarchy",
            Some((0xc9..=0xcf, _)) => "its entropy coding is arithmetic",
            Some((_, precision)) if precision != 8 => "its samples do not have 8 bits",
            _ => return Ok(()),
        };
        Err(DecodeError::Invalid(format!(
            "the JPEG is of a rare kind: {kind}"
        )))
    }

    /// The end of image, if it is there.
    pub fn end(&self, patience: &Patience<'_>) -> Result<Option<End>, Cancelled> {
        let mut rest = self.scans;
        let mut restarts = 0;
        while !rest.is_empty() {
            patience.check()?;
            let portion = &rest[..rest.len().min(END_PORTION)];
            let Some(found) = portion.chunks(64).position(|chunk| chunk.contains(&0xff)) else {
                rest = &rest[portion.len()..];
                continue;
            };
            let Some(at) = rest.iter().skip(found * 64).position(|&byte| byte == 0xff) else {
                break;
            };
            rest = &rest[found * 64 + at..];
            // Among entropy-coded bytes FF is followed by 00 or is part of a restart marker (T.81, B.1.1.5).
            let length = match *rest {
                [_, 0xd9, ..] => {
                    let at = self.begin + self.scans.len() - rest.len();
                    return Ok(Some(End { at, restarts }));
                }
                [_, 0, ..] => 2,
                [_, 0xd0..=0xd7, ..] => {
                    restarts += 1;
                    2
                }
                [_, 0xff, ..] => 1,
                [_, _, high, low, ..] => 2 + usize::from(u16::from_be_bytes([high, low])),
                _ => break,
            };
            rest = rest.get(length..).unwrap_or_default();
        }
        Ok(None)
    }
}
