//! Damaged files: cut short anywhere, and with any bit changed.

use super::{Canceller, SMALL, convert, files};
use crate::counting::peak_of_thread;
use towebp_pipeline::conversion::ConversionError;

/// The most bytes that a conversion of a small file may hold, which are the decoders' own buffers,
/// most of all that of `png` for a profile.
const MOST: usize = 12 << 20;

/// Asserts that the file gives a picture or an error that says what is wrong; returns whether it is
/// a picture.
#[track_caller]
fn is_picture_or_error(file: &[u8], what: impl Fn() -> String) -> bool {
    let (outcome, held) = peak_of_thread(|| convert(file, &SMALL, None, &Canceller::never()));
    assert!(held <= MOST, "{}: {held} bytes", what());
    match outcome {
        Ok(conversion) => {
            let pixels = u64::from(conversion.width) * u64::from(conversion.height);
            assert!(pixels <= SMALL.max_pixels, "{}", what());
            assert!(conversion.webp.starts_with(b"RIFF"), "{}", what());
            true
        }
        Err(ConversionError::Picture(error)) => {
            assert!(error.to_string().len() > 20, "{}: {error}", what());
            false
        }
        Err(other) => panic!("{}: {other:?}", what()),
    }
}

#[test]
fn files_that_are_cut_short_are_refused() {
    for (name, file) in files(9, 7) {
        assert!(is_picture_or_error(&file, || name.to_owned()), "{name}");
        let good: Vec<usize> = (0..file.len())
            .filter(|&length| {
                is_picture_or_error(&file[..length], || format!("{name}, {length} bytes"))
            })
            .collect();
        // A GIF's last pixel comes before its last few bytes; only a text of the end is missing
        // then. So it is with run lengths: the last row before the mark of the end.
        let spare = match name {
            "GIF" => 4,
            "BMP with run lengths" => 2,
            _ => 0,
        };
        assert!(
            good.iter().all(|&length| length + spare >= file.len()),
            "{name}: of {} bytes {good:?} were enough",
            file.len()
        );
    }
}

#[test]
fn any_bit_may_be_wrong() {
    for (name, mut file) in files(9, 7) {
        let mut pictures = 0;
        for bit in 0..file.len() * 8 {
            file[bit / 8] ^= 1 << (bit % 8);
            pictures += usize::from(is_picture_or_error(&file, || {
                format!("{name}, bit {bit} changed")
            }));
            file[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(pictures < file.len() * 8, "{name}: nothing was noticed");
    }
}

#[test]
fn any_byte_may_be_the_largest_or_none() {
    for (name, file) in files(9, 7) {
        for at in 0..file.len() {
            for byte in [0, 0xff] {
                let mut file = file.clone();
                file[at] = byte;
                is_picture_or_error(&file, || format!("{name}, byte {at} is {byte}"));
            }
            let without = [&file[..at], &file[at + 1..]].concat();
            is_picture_or_error(&without, || format!("{name} without byte {at}"));
        }
    }
}
