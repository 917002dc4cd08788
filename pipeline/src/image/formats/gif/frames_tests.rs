//! Animations: each canvas as a browser shows it.

use super::*;
use crate::image::animation::AnimationFrame;
use crate::image::pixels::Image;
use crate::image::rectangle::Rectangle;
use crate::image::testing::LIMITS;
use ::gif::{DisposalMethod, Encoder, Frame, Repeat};

/// Colors of the indices 0 to 3, of which 3 is transparent.
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

fn time(frame: Result<Option<AnimationFrame>, DecodeError>) -> Result<Option<u32>, DecodeError> {
    frame.map(|frame| frame.map(|frame| frame.milliseconds))
}

/// Each canvas: one digit per pixel, the index of its color, `.` where it is transparent.
fn canvases(file: &[u8]) -> Vec<String> {
    let cancel = Cancel::never();
    let header = Header::read(file, &LIMITS).expect("a GIF");
    let mut frames = header.frames(&LIMITS, &cancel).expect("a GIF");
    let mut canvases = Vec::new();
    let mut before = Vec::new();
    while let Some(frame) = frames.draw().expect("a whole frame") {
        assert_undoes(&frame, frames.canvas(), &mut before);
        let letter = |pixel: &[u8; 4]| match pixel {
            [.., 0] => '.',
            [red, ..] => char::from(b'0' + red / 10 - 1),
        };
        let width = frames.canvas().width as usize;
        let rows = frames.canvas().pixels.as_chunks::<4>().0.chunks(width);
        let rows: Vec<String> = rows.map(|row| row.iter().map(letter).collect()).collect();
        canvases.push(rows.join(" "));
    }
    canvases
}

/// Asserts that the previous pixels, put back into the damage rectangle, restore the canvas
/// `before` the frame.
fn assert_undoes(frame: &AnimationFrame, canvas: &Image, before: &mut Vec<[u8; 4]>) {
    let width = canvas.width as usize;
    let canvas = canvas.pixels.as_chunks::<4>().0;
    before.resize(canvas.len(), [0; 4]); // a canvas is transparent before its first frame
    let Rectangle { left, top, .. } = frame.damage;
    let mut undone = canvas.to_vec();
    let (right, bottom) = (left + frame.damage.width, top + frame.damage.height);
    assert!(right <= width && bottom * width <= canvas.len(), "outside");
    let rows = frame.previous.chunks(frame.damage.width.max(1));
    assert_eq!(
        frame.previous.len(),
        frame.damage.width * frame.damage.height
    );
    for (y, row) in (top..).zip(rows) {
        undone[y * width + left..][..row.len()].copy_from_slice(row);
    }
    assert_eq!(undone, *before);
    *before = canvas.to_vec();
}

#[test]
fn frames_are_disposed_of_as_they_ask() {
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
        assert_eq!(canvases(&gif(2, 1, None, &frames)), expected, "{dispose:?}");
    }
}

#[test]
fn transparent_pixels_leave_the_canvas_unchanged() {
    let frames = [
        frame([0, 0, 2, 2], &[0, 3, 1, 1], DisposalMethod::Keep),
        frame([0, 0, 2, 2], &[3, 2, 3, 0], DisposalMethod::Keep),
    ];
    assert_eq!(canvases(&gif(2, 2, None, &frames)), ["0. 11", "02 10"]);
}

#[test]
fn frames_beyond_the_canvas_are_clipped_when_drawn_and_when_cleared() {
    let frames = [
        frame([1, 1, 2, 2], &[1, 2, 2, 2], DisposalMethod::Background),
        frame([5, 5, 1, 1], &[1], DisposalMethod::Background),
        frame([0, 0, 1, 1], &[0], DisposalMethod::Keep),
    ];
    assert_eq!(
        canvases(&gif(2, 2, None, &frames)),
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
        let header = Header::read(&file, &LIMITS).expect("a GIF");
        let mut frames = header.frames(&LIMITS, &cancel).expect("a GIF");
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
        let header = Header::read(&file, &LIMITS).expect("a GIF");
        let mut frames = header.frames(&LIMITS, &cancel).expect("a GIF");
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
        let header = Header::read(&file, &LIMITS).expect("a GIF");
        let mut frames = header.frames(&LIMITS, &cancel).expect("a GIF");
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
        let header = Header::read(&two[..length], &LIMITS).expect("a GIF");
        let mut frames = header.frames(&LIMITS, &cancel).expect("a GIF");
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
    let is_animated =
        |bytes: &[u8]| Header::read(bytes, &LIMITS).is_ok_and(|header| header.is_animated());
    assert!(!is_animated(&still) && is_animated(&animated));
    for length in 0..animated.len() - 1 {
        assert!(!is_animated(&animated[..length]), "{length} bytes");
    }
}

#[test]
fn each_frame_counts_as_the_canvas_or_as_its_own_pixels_if_they_are_more() {
    let frames = [
        frame([0, 0, 3, 5], &[1; 15], DisposalMethod::Keep),
        frame([0, 0, 1, 1], &[1], DisposalMethod::Keep),
    ];
    let file = gif(2, 2, None, &frames);
    let check = |max_animation_pixels| {
        let limits = Limits {
            max_animation_pixels,
            ..LIMITS
        };
        let header = Header::read(&file, &limits)?;
        header.animation_footprint(&header.footprint(&limits)?, &limits)
    };
    let memory = check(15 + 4).expect("within the limits").decoder;
    let header = Header::read(&file, &LIMITS).expect("within the limits");
    let indices = 15;
    assert_eq!(memory, TABLES + indices + header.outline.held_bytes());
    let error = check(15 + 3).err();
    assert_eq!(
        error,
        Some(DecodeError::AnimationTooLarge { max_pixels: 18 })
    );
}

#[test]
fn a_repeated_frame_is_shown_without_being_decoded() {
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
        assert_eq!(canvases(&file), expected, "{dispose:?}");
        let cancel = Cancel::never();
        let header = Header::read(&file, &LIMITS).expect("a GIF");
        let mut frames = header.frames(&LIMITS, &cancel).expect("a GIF");
        let damage = (0..5).map(|_| frames.draw().expect("whole").expect("five frames").damage);
        let is_empty: Vec<usize> = (0..5)
            .zip(damage)
            .filter(|(_, damage)| *damage == Rectangle::EMPTY)
            .map(|(i, _)| i)
            .collect();
        assert_eq!(is_empty, unchanged, "{dispose:?}");
    }
    // The same data with another disposal, or with another transparent index.
    let frames = [shape(Keep), shape(Background), dot()];
    assert_eq!(canvases(&gif(3, 1, None, &frames)), [".1.", ".1.", "..2"]);
    let colors = |transparent| Frame {
        transparent,
        ..frame([0, 0, 2, 1], &[0, 1], Background)
    };
    let frames = [colors(Some(0)), colors(Some(1)), colors(None)];
    assert_eq!(canvases(&gif(2, 1, None, &frames)), [".1", "0.", "01"]);
    // On an empty canvas only the first frame is moved to the corner.
    let frames = [0, 1].map(|_| frame([1, 0, 2, 1], &[1, 2], Keep));
    assert_eq!(canvases(&gif(0, 0, None, &frames)), ["12", "11"]);
}
