//! Where a JPEG ends, which the decoder does not tell (ITU-T T.81, B.1.1 and B.2.2).

use crate::image::{Cancelled, Patience};
use std::mem;

/// Bytes that are looked through between two questions: restart markers one after the other take a tenth of a millisecond.
const PORTION: usize = 1 << 16;

/// The end of image.
#[derive(Clone, Copy)]
pub struct End {
    /// Where it stands in the file.
    pub at: usize,
    /// Restart markers before it.
    pub restarts: usize,
}

/// The end of image, if it is there. The first scan's data is what follows the first `begin` bytes.
pub fn find(bytes: &[u8], begin: usize, patience: &Patience<'_>) -> Result<Option<End>, Cancelled> {
    let mut rest = &bytes[begin..];
    let mut restarts = 0;
    let mut asked = None;
    while !rest.is_empty() {
        let portion = Some(rest.len() / PORTION);
        if mem::replace(&mut asked, portion) != portion {
            patience.check()?;
        }
        let near = &rest[..rest.len().min(PORTION)];
        let Some(found) = near.chunks(64).position(|chunk| chunk.contains(&0xff)) else {
            rest = &rest[near.len()..];
            continue;
        };
        let Some(at) = rest.iter().skip(found * 64).position(|&byte| byte == 0xff) else {
            break;
        };
        rest = &rest[found * 64 + at..];
        // Among entropy-coded bytes FF is followed by 00 or is part of a restart marker (T.81, B.1.1.5).
        let length = match *rest {
            [_, 0xd9, ..] => {
                let at = bytes.len() - rest.len();
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
