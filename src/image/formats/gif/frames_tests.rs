//! Animations: each screen as a browser shows it.

use super::*;
use crate::image::tests::LIMITS;
use ::gif::Encoder;

/// Colours of the indices 0 to 3, of which 3 is transparent.
const PALETTE: [u8; 12] = [10, 10, 10, 20, 20, 20, 30, 30, 30, 40, 40, 40];

fn frame(place: [u16; 4], indices: &'static [u8], dispose: DisposalMethod) -> Frame<'static> {
    let [left, top, width, height] = place;
    Frame {
        left,
        top,
        width,
        height,
        dispose,
        delay: 7,
        transparent: Some(3),
        buffer: indices.into(),
        ..Frame::default()
    }
}

fn gif(width: u16, height: u16, repeat: Option<Repeat>, frames: &[Frame<'_>]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, width, height, &PALETTE).expect("a valid palette");
    if let Some(repeat) = repeat {
        encoder.set_repeat(repeat).expect("it is written");
    }
    for frame in frames {
        encoder.write_frame(frame).expect("a valid frame");
    }
    drop(encoder);
    file
}

fn time(drawn: Result<Option<Drawn>, DecodeError>) -> Result<Option<u32>, DecodeError> {
    drawn.map(|drawn| drawn.map(|drawn| drawn.milliseconds))
}

/// Each screen: one digit a pixel, the index of its colour, `.` where it is transparent.
fn screens(file: &[u8]) -> Vec<String> {
    let cancel = Cancel::never();
    let mut frames = Frames::open(file, &LIMITS, &cancel).expect("a GIF");
    let mut screens = Vec::new();
    let mut before = Vec::new();
    while let Some(drawn) = frames.draw().expect("a whole frame") {
        assert_undoes(&drawn, frames.screen(), &mut before);
        let letter = |pixel: &[u8; 4]| match pixel {
            [.., 0] => '.',
            [red, ..] => char::from(b'0' + red / 10 - 1),
        };
        let width = frames.screen().width as usize;
        let rows = frames.screen().pixels.as_chunks::<4>().0.chunks(width);
        let rows: Vec<String> = rows.map(|row| row.iter().map(letter).collect()).collect();
        screens.push(rows.join(" "));
    }
    screens
}

/// What was covered, put back in its place, has to make of the screen what it was `before`.
fn assert_undoes(drawn: &Drawn, screen: &Image, before: &mut Vec<[u8; 4]>) {
    let width = screen.width as usize;
    let screen = screen.pixels.as_chunks::<4>().0;
    before.resize(screen.len(), [0; 4]); // the first finds nothing
    let Place { left, top, .. } = drawn.place;
    let mut undone = screen.to_vec();
    let (right, bottom) = (left + drawn.place.width, top + drawn.place.height);
    assert!(right <= width && bottom * width <= screen.len(), "outside");
    let rows = drawn.covered.chunks(drawn.place.width.max(1));
    assert_eq!(drawn.covered.len(), drawn.place.width * drawn.place.height);
    for (y, row) in (top..).zip(rows) {
        undone[y * width + left..][..row.len()].copy_from_slice(row);
    }
    assert_eq!(undone, *before);
    *before = screen.to_vec();
}

#[test]
fn frames_are_left_as_they_ask() {
    use DisposalMethod::{Any, Background, Keep, Previous};
    let dot = |left, dispose| frame([left, 0, 1, 1], &[2], dispose);
    for (dispose, expected) in [
        (Any, ["00", "20", "22"]),
        (Keep, ["00", "20", "22"]),
        (Background, ["00", "20", ".2"]),
        (Previous, ["00", "20", "02"]),
    ] {
        let frames = [
            frame([0, 0, 2, 1], &[0, 0], Keep),
            dot(0, dispose),
            dot(1, Keep),
        ];
        assert_eq!(screens(&gif(2, 1, None, &frames)), expected, "{dispose:?}");
    }
}

#[test]
fn transparent_pixels_leave_what_is_there() {
    let frames = [
        frame([0, 0, 2, 2], &[0, 3, 1, 1], DisposalMethod::Keep),
        frame([0, 0, 2, 2], &[3, 2, 3, 0], DisposalMethod::Keep),
    ];
    assert_eq!(screens(&gif(2, 2, None, &frames)), ["0. 11", "02 10"]);
}

#[test]
fn what_leaves_the_screen_is_cut_when_drawn_and_when_cleared() {
    let frames = [
        frame([1, 1, 2, 2], &[1, 2, 2, 2], DisposalMethod::Background),
        frame([5, 5, 1, 1], &[1], DisposalMethod::Background),
        frame([0, 0, 1, 1], &[0], DisposalMethod::Keep),
    ];
    assert_eq!(
        screens(&gif(2, 2, None, &frames)),
        [".. .1", ".. ..", "0. .."]
    );
}

#[test]
fn times_and_repetitions_are_those_of_browsers() {
    for (delay, milliseconds) in [(0, 100), (1, 100), (2, 20), (7, 70), (u16::MAX, 655_350)] {
        let frame = Frame {
            delay,
            ..frame([0, 0, 1, 1], &[0], DisposalMethod::Keep)
        };
        let file = gif(1, 1, None, &[frame]);
        let cancel = Cancel::never();
        let mut frames = Frames::open(&file, &LIMITS, &cancel).expect("a GIF");
        assert_eq!(time(frames.draw()), Ok(Some(milliseconds)), "delay {delay}");
        assert_eq!(frames.draw(), Ok(None));
    }
    for (repeat, loops) in [
        (None, 1),
        (Some(Repeat::Infinite), 0),
        (Some(Repeat::Finite(1)), 2),
        (Some(Repeat::Finite(u16::MAX)), u16::MAX),
    ] {
        let file = gif(
            1,
            1,
            repeat,
            &[frame([0, 0, 1, 1], &[0], DisposalMethod::Keep)],
        );
        let cancel = Cancel::never();
        let mut frames = Frames::open(&file, &LIMITS, &cancel).expect("a GIF");
        frames.draw().expect("a whole frame");
        assert_eq!(frames.loops(), loops, "{repeat:?}");
    }
}

#[test]
fn the_older_extension_of_repetitions_is_known() {
    let still = frame([0, 0, 1, 1], &[0], DisposalMethod::Keep);
    for (times, loops) in [(0u16, 0), (1, 2), (700, 701), (u16::MAX, u16::MAX)] {
        let mut file = Vec::new();
        let mut encoder = Encoder::new(&mut file, 1, 1, &PALETTE).expect("a valid palette");
        let [low, high] = times.to_le_bytes();
        encoder
            .write_raw_extension(
                ::gif::AnyExtension(0xff),
                &[b"ANIMEXTS1.0", &[1, low, high]],
            )
            .expect("it is written");
        encoder.write_frame(&still).expect("a valid frame");
        drop(encoder);
        let cancel = Cancel::never();
        let mut frames = Frames::open(&file, &LIMITS, &cancel).expect("a GIF");
        frames.draw().expect("a whole frame");
        assert_eq!(frames.loops(), loops, "{times}");
    }
}

#[test]
fn a_file_may_end_between_frames_but_not_within_one() {
    let dot = || frame([0, 0, 2, 1], &[1, 2], DisposalMethod::Keep);
    let one = gif(2, 1, None, &[dot()]);
    let two = gif(2, 1, None, &[dot(), dot()]);
    for length in one.len() - 1..two.len() {
        let cancel = Cancel::never();
        let mut frames = Frames::open(&two[..length], &LIMITS, &cancel).expect("a GIF");
        frames.draw().expect("the first frame is whole");
        // Its descriptor of 10 bytes follows an extension of 8.
        let is_within = length >= one.len() - 1 + 18;
        let outcome = frames.draw();
        if length == two.len() - 1 {
            assert_eq!(time(outcome), Ok(Some(70)), "only the trailer is missing");
            assert_eq!(frames.draw(), Ok(None));
        } else if !is_within {
            assert_eq!(outcome, Ok(None), "{length} bytes");
        }
    }
}

#[test]
fn several_frames_are_seen_in_the_outline() {
    let dot = || frame([0, 0, 1, 1], &[1], DisposalMethod::Keep);
    let still = gif(1, 1, Some(Repeat::Infinite), &[dot()]);
    let animated = gif(1, 1, Some(Repeat::Infinite), &[dot(), dot()]);
    assert!(!is_animated(&still) && is_animated(&animated));
    for length in 0..animated.len() - 1 {
        assert!(!is_animated(&animated[..length]), "{length} bytes");
    }
}

#[test]
fn a_repeated_frame_is_not_decoded_but_shown_as_if() {
    use DisposalMethod::{Any, Background, Keep, Previous};
    let ground = || frame([0, 0, 3, 1], &[0, 0, 0], Keep);
    let shape = |dispose| frame([0, 0, 2, 1], &[3, 1], dispose);
    let dot = || frame([2, 0, 1, 1], &[2], Keep);
    for (dispose, expected, unchanged) in [
        (Any, ["000", "010", "010", "010", "012"], [2, 3].as_slice()),
        (Keep, ["000", "010", "010", "010", "012"], &[2, 3]),
        (Previous, ["000", "010", "010", "010", "002"], &[2, 3]),
        // The second is drawn on what the first has cleared.
        (Background, ["000", "010", ".10", ".10", "..2"], &[3]),
    ] {
        let frames = [
            ground(),
            shape(dispose),
            shape(dispose),
            shape(dispose),
            dot(),
        ];
        let file = gif(3, 1, None, &frames);
        assert_eq!(screens(&file), expected, "{dispose:?}");
        let cancel = Cancel::never();
        let mut frames = Frames::open(&file, &LIMITS, &cancel).expect("a GIF");
        let places = (0..5).map(|_| frames.draw().expect("whole").expect("five frames").place);
        let is_empty: Vec<usize> = (0..5)
            .zip(places)
            .filter(|(_, place)| place.is_empty())
            .map(|(i, _)| i)
            .collect();
        assert_eq!(is_empty, unchanged, "{dispose:?}");
    }
    // The same data, but left otherwise or with another index transparent.
    let frames = [shape(Keep), shape(Background), dot()];
    assert_eq!(screens(&gif(3, 1, None, &frames)), [".1.", ".1.", "..2"]);
    let colours = |transparent| Frame {
        transparent,
        ..frame([0, 0, 2, 1], &[0, 1], Background)
    };
    let frames = [colours(Some(0)), colours(Some(1)), colours(None)];
    assert_eq!(screens(&gif(2, 1, None, &frames)), [".1", "0.", "01"]);
    // On an empty screen the first one alone is brought to the corner.
    let frames = [0, 1].map(|_| frame([1, 0, 2, 1], &[1, 2], Keep));
    assert_eq!(screens(&gif(0, 0, None, &frames)), ["12", "11"]);
}
