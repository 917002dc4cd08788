//! A client who leaves ends the conversion at the next question, at whatever stage that is.

use super::{Client, convert, files};
use crate::beside_others;
use crate::support::picture::Picture;
use towebp::conversion::ConversionError;
use towebp::image::Limits;

/// Cancels after every number of checks, and returns how many there are.
#[track_caller]
fn leave_at_every_question(name: &str, file: &[u8], watermark: Option<&[u8]>) -> usize {
    let client = Client::patient();
    convert(file, &Limits::default(), watermark, &client)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let questions = client.asked();
    for checks in 0..questions {
        let client = Client::patient_for(checks);
        let outcome = convert(file, &Limits::default(), watermark, &client);
        assert_eq!(
            outcome.map(|_| ()),
            Err(ConversionError::Cancelled),
            "{name}, cancelled after {checks} of {questions} checks"
        );
        assert_eq!(
            client.asked(),
            checks + 1,
            "{name}: asked again after a yes"
        );
    }
    questions
}

#[test]
fn every_format_is_asked_about_row_by_row_or_portion_by_portion() {
    let _turn = beside_others();
    let (width, height) = (64, 120);
    for (name, file) in files(width, height) {
        let questions = leave_at_every_question(name, &file, None);
        let portion = match name {
            "JPEG" | "progressive JPEG" => file.len() / 1024,
            "GIF" => file.len() / 1024 + height as usize,
            "BMP with run lengths" => 0,
            _ => height as usize, // PNG, BMP
        };
        // The text asks for each glyph, the encoder for each row of macroblocks.
        assert!(questions > portion + 8, "{name}: {questions} questions");
    }
}

#[test]
fn bitmaps_are_asked_about_row_by_row() {
    let _turn = beside_others();
    let picture = Picture::flat(40, 300, [9, 90, 200]).bmp();
    let small = Picture::flat(40, 30, [9, 90, 200]).bmp();
    let [more, fewer] = [&picture, &small].map(|file| leave_at_every_question("BMP", file, None));
    assert!(
        more >= fewer + 270,
        "{more} questions for 300 rows, {fewer} for 30"
    );
}

#[test]
fn a_watermark_that_is_scaled_down_is_asked_about_row_by_row() {
    let _turn = beside_others();
    let png = Picture::flat(40, 30, [0, 0, 0]).png();
    let alone = leave_at_every_question("a PNG", &png, None);
    for (name, watermark) in files(50, 200) {
        if name.contains("PNG") {
            let both = leave_at_every_question(name, &png, Some(&watermark));
            // Read, and scaled from: upright, one is 200 by 50 pixels.
            assert!(
                both >= alone + 250,
                "{name}: {both} questions, {alone} without"
            );
        }
    }
}
