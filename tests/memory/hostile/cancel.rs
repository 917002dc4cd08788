//! A conversion that is cancelled ends at the next check, at whatever stage that is.

use super::{Canceller, convert, files};
use crate::support::picture::Picture;
use towebp_pipeline::conversion::ConversionError;
use towebp_pipeline::image::Limits;

/// Cancels after every number of checks, and returns how many there are.
#[track_caller]
fn cancel_at_every_check(name: &str, file: &[u8], watermark: Option<&[u8]>) -> usize {
    let canceller = Canceller::never();
    convert(file, &Limits::default(), watermark, &canceller)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let checks = canceller.checks();
    for passed in 0..checks {
        let canceller = Canceller::after(passed);
        let outcome = convert(file, &Limits::default(), watermark, &canceller);
        assert_eq!(
            outcome.map(|_| ()),
            Err(ConversionError::Cancelled),
            "{name}, cancelled after {passed} of {checks} checks"
        );
        assert_eq!(
            canceller.checks(),
            passed + 1,
            "{name}: checked again after it was cancelled"
        );
    }
    checks
}

#[test]
fn every_format_checks_for_cancellation_row_by_row_or_portion_by_portion() {
    let (width, height) = (64, 120);
    for (name, file) in files(width, height) {
        let checks = cancel_at_every_check(name, &file, None);
        let portion = match name {
            "JPEG" | "progressive JPEG" => file.len() / 1024,
            "lossy WebP" => file.len() / 4096,
            "GIF" => file.len() / 1024 + height as usize,
            "BMP with run lengths" => 0,
            _ => height as usize, // PNG, BMP
        };
        // The text checks at each glyph, the encoder at each row of macroblocks.
        assert!(checks > portion + 8, "{name}: {checks} checks");
    }
}

#[test]
fn bitmaps_check_for_cancellation_row_by_row() {
    let picture = Picture::flat(40, 300, [9, 90, 200]).bmp();
    let small = Picture::flat(40, 30, [9, 90, 200]).bmp();
    let [more, fewer] = [&picture, &small].map(|file| cancel_at_every_check("BMP", file, None));
    assert!(
        more >= fewer + 270,
        "{more} checks for 300 rows, {fewer} for 30"
    );
}

#[test]
fn a_watermark_that_is_scaled_down_checks_for_cancellation_row_by_row() {
    let png = Picture::flat(40, 30, [0, 0, 0]).png();
    let alone = cancel_at_every_check("a PNG", &png, None);
    for (name, watermark) in files(50, 200) {
        if name.contains("PNG") {
            let both = cancel_at_every_check(name, &png, Some(&watermark));
            // Read, and scaled from: upright, one is 200 by 50 pixels.
            assert!(
                both >= alone + 250,
                "{name}: {both} checks, {alone} without"
            );
        }
    }
}
