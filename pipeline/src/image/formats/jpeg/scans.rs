//! The scans of a JPEG and its end (ITU-T T.81, B.1.1 and B.2.2), which the decoder does not
//! report.

use super::segments::{Parts, damaged, has_too_many_tables};
use crate::image::error::DecodeError;
use std::mem;
use towebp_encoder::Cancel;

/// Bytes that are searched between two checks of the [`Cancel`]. If they are all restart markers,
/// that takes a tenth of a millisecond.
const BYTES_PER_CHECK: usize = 1 << 16;

/// A comment without text. It replaces a segment that the decoder must not see, since any segment
/// ends a scan.
const EMPTY_COMMENT: &[u8] = &[0xff, 0xfe, 0, 2];

/// The bytes between the first scan header and the end-of-image marker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scans<'a> {
    /// The bytes without the application segments between scans, which the decoder would copy.
    pub parts: Parts<'a>,
    /// The number of restart markers.
    pub restarts: usize,
}

/// Finds the scans and the end-of-image marker; `None` if that is missing. The first scan's data
/// begins at `begin`.
///
/// # Errors
/// [`DecodeError::Invalid`] if there are more segments than any writer has use for.
pub fn find<'a>(
    bytes: &'a [u8],
    begin: usize,
    cancel: &Cancel<'_>,
) -> Result<Option<Scans<'a>>, DecodeError> {
    let mut scans = Scans::default();
    // The offset of the part that the decoder needs, and of the fill bytes that may precede a
    // marker.
    let (mut part, mut fill) = (begin, None);
    let mut rest = &bytes[begin..];
    let mut checked = None;
    while !rest.is_empty() {
        let portion = Some(rest.len() / BYTES_PER_CHECK);
        if mem::replace(&mut checked, portion) != portion {
            cancel.check()?;
        }
        let near = &rest[..rest.len().min(BYTES_PER_CHECK)];
        let Some(found) = near.chunks(64).position(|chunk| chunk.contains(&0xff)) else {
            rest = &rest[near.len()..];
            continue;
        };
        let Some(at) = rest.iter().skip(found * 64).position(|&byte| byte == 0xff) else {
            break;
        };
        rest = &rest[found * 64 + at..];
        let at = bytes.len() - rest.len();
        let filled = fill.take().filter(|(_, next)| *next == at);
        let first = filled.map_or(at, |(first, _)| first);
        // Among entropy-coded bytes FF is followed by 00 or is part of a restart marker (T.81,
        // B.1.1.5).
        let length = match *rest {
            [_, 0xd9, ..] => {
                scans.parts.push(&bytes[part..first]).ok_or_else(damaged)?;
                return Ok(Some(scans));
            }
            [_, 0, ..] => 2,
            [_, 0xd0..=0xd7, ..] => {
                scans.restarts += 1;
                2
            }
            [_, 0xff, ..] => {
                fill = Some((first, at + 1));
                1
            }
            [_, marker, high, low, ref behind @ ..] => {
                let length = usize::from(u16::from_be_bytes([high, low]));
                let data = length
                    .checked_sub(2)
                    .and_then(|length| behind.get(..length));
                if has_too_many_tables(marker, data.unwrap_or_default()) {
                    return Err(damaged());
                }
                if matches!(marker, 0xe0..=0xef | 0xfe) {
                    let is_alone = part < first || part == begin;
                    scans.parts.push(&bytes[part..first]).ok_or_else(damaged)?;
                    if is_alone {
                        scans.parts.push(EMPTY_COMMENT).ok_or_else(damaged)?;
                    }
                    part = (at + 2 + length).min(bytes.len());
                }
                2 + length
            }
            _ => break,
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::formats::jpeg::tests::segment;

    fn scans(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
        let found = find(bytes, 2, &Cancel::never()).expect("few segments");
        found.map(|scans| (scans.parts.as_slice().concat(), scans.restarts))
    }

    #[test]
    fn the_end_is_behind_all_segments() {
        let head = &[7, 7][..];
        let data = &[1, 0xff, 0, 2, 0xff, 0xd3, 3][..];
        let tables = segment(0xdb, &[0xff, 0xd9, 5]);
        let file = [head, data, &tables, data, &[0xff, 0xff, 0xd9, 9, 9]].concat();
        let kept = [data, &tables, data].concat();
        assert_eq!(scans(&file), Some((kept, 2)));
        for length in 2..file.len() - 3 {
            assert_eq!(scans(&file[..length]), None, "{length} bytes");
        }
    }

    #[test]
    fn application_segments_between_scans_become_one_empty_comment() {
        let data = &[1, 0xff, 0][..];
        let exif = segment(0xe1, b"Exif\0\0MM\0*");
        let comment = segment(0xfe, b"words");
        let end = [0xff, 0xd9];
        let file = [
            &[7, 7][..],
            data,
            &[0xff, 0xff],
            &exif,
            &[0xff],
            &comment,
            data,
        ]
        .concat();
        let kept = [data, EMPTY_COMMENT, data].concat();
        assert_eq!(scans(&[&file[..], &end].concat()), Some((kept, 0)));
        let at_once = [&[7, 7][..], &exif, &exif, data, &end].concat();
        assert_eq!(scans(&at_once), Some(([EMPTY_COMMENT, data].concat(), 0)));
        let last = [&[7, 7][..], data, &exif, &end].concat();
        assert_eq!(scans(&last), Some(([data, EMPTY_COMMENT].concat(), 0)));
        let beyond = [&[7, 7][..], data, &[0xff, 0xe1, 0xff, 0xff], &end].concat();
        assert_eq!(scans(&beyond), None);
    }

    #[test]
    fn too_many_segments_are_rejected() {
        let pair = [segment(0xe1, &[]), vec![3]].concat();
        let file = |pairs: usize| [&[7, 7][..], &pair.repeat(pairs), &[0xff, 0xd9]].concat();
        let is_rejected = |pairs| find(&file(pairs), 2, &Cancel::never()).is_err();
        assert!(!is_rejected(500));
        assert!(is_rejected(600));
        let tables = [&[7, 7][..], &segment(0xc4, &[0; 3000]), &[0xff, 0xd9]].concat();
        assert!(find(&tables, 2, &Cancel::never()).is_err());
    }
}
