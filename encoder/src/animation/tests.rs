//! Animations as an independent decoder plays them.

use super::incremental::LONGEST;
use super::player::{Playback, merged, play};
use super::*;
use crate::cancel::tests::Checks;
use crate::testing::Random;
use crate::{Cancel, Coding, ColorType, CpuBudget, Effort, EncodeError, Encoder, Mode, Picture};
use image_webp::{LoopCount, WebPDecoder};
use std::io::Cursor;
use std::num::NonZeroUsize;

fn encode(width: u32, height: u32, loops: u16, playback: &Playback, mode: Mode) -> Vec<u8> {
    let encoder = Encoder::lossy(90).mode(mode);
    let mut animation =
        IncrementalAnimation::new(encoder, (width, height), loops).expect("good sides");
    let mut before = vec![0; playback[0].0.len()];
    for (canvas, milliseconds) in playback {
        animation
            .add(canvas, whole(&before, width), *milliseconds)
            .expect("a canvas of that size");
        before.clone_from(canvas);
    }
    animation.finish().expect("a small file").file
}

/// Damage of a whole canvas of `width` columns.
fn whole(canvas: &[u8], width: u32) -> Damage {
    let (pixels, width) = (canvas.as_chunks().0.to_vec(), width as usize);
    Damage {
        rect: Rect {
            left: 0,
            top: 0,
            width,
            height: pixels.len() / width,
        },
        before: pixels,
    }
}

/// A canvas of 24 x 18: grays `0` to `9`, `.` transparent, `h` half transparent.
fn canvas(shape: impl Fn(u32, u32) -> char) -> Vec<u8> {
    let pixel = |letter: char| match letter {
        '.' => [0; 4],
        'h' => [200, 100, 50, 128],
        digit => {
            let gray = digit.to_digit(10).expect("a digit") as u8 * 25;
            [gray, gray / 2, 255 - gray, 255]
        }
    };
    let places = (0..18).flat_map(|y| (0..24).map(move |x| (x, y)));
    places.flat_map(|(x, y)| pixel(shape(x, y))).collect()
}

/// Canvases that need every way to draw and to leave a frame.
fn playback() -> Playback {
    let square = |at: u32, inside: char, outside: char| {
        canvas(move |x, y| {
            let is_inside = (at..at + 7).contains(&x) && (3..9).contains(&y);
            if is_inside { inside } else { outside }
        })
    };
    let stripes = |letter: char| canvas(move |x, _| if x % 5 == 0 { letter } else { '.' });
    vec![
        (square(2, '1', '4'), 100),
        (square(3, '1', '4'), 50),
        (square(3, '1', '4'), 50),
        (square(11, '.', '4'), 70),
        (square(1, '5', '.'), 80),
        (square(9, '6', '.'), 80),
        (square(9, 'h', '.'), 80),
        (square(10, 'h', '.'), 80),
        (canvas(|_, _| '.'), 10),
        (stripes('3'), 10),
        (stripes('h'), 10),
        (
            canvas(|x, y| if x == 23 && y == 17 { '9' } else { '.' }),
            1000,
        ),
    ]
}

#[test]
fn every_state_of_the_canvas_is_shown_for_its_time() {
    let playback = playback();
    let played = play(&encode(24, 18, 0, &playback, Mode::Lossless));
    let expected = merged(&playback);
    assert_eq!(played.len(), expected.len(), "states are shown once each");
    for (number, (played, expected)) in played.iter().zip(&expected).enumerate() {
        assert_eq!(played.1, expected.1, "time of state {number}");
        assert!(played.0 == expected.0, "state {number} looks otherwise");
    }
}

#[test]
fn random_canvases_are_shown_as_they_are() {
    let mut random = Random::new(1);
    for round in 0..60 {
        let mut letters: Vec<char> = vec!['.'; 24 * 18];
        let mut playback = Playback::new();
        for _ in 0..6 {
            let (left, top) = (random.below(24), random.below(18));
            let (width, height) = (1 + random.below(24 - left), 1 + random.below(18 - top));
            let letter = ['.', 'h', '1', '5', '9'][random.index(5)];
            let gaps = 1 + random.below(3);
            for y in top..top + height {
                for x in (left..left + width).filter(|x| (x + y) % gaps == 0) {
                    letters[(y * 24 + x) as usize] = letter;
                }
            }
            playback.push((
                canvas(|x, y| letters[(y * 24 + x) as usize]),
                1 + random.below(500),
            ));
        }
        let played = play(&encode(24, 18, 1, &playback, Mode::Lossless));
        assert!(played == merged(&playback), "round {round}");
    }
}

#[test]
fn lossy_frames_look_alike_and_keep_alpha() {
    let playback = playback();
    let played = play(&encode(24, 18, 0, &playback, Mode::Lossy));
    for (number, ((played, _), (expected, _))) in played.iter().zip(&merged(&playback)).enumerate()
    {
        for (played, expected) in played.chunks(4).zip(expected.chunks(4)) {
            assert_eq!(played[3], expected[3], "alpha of state {number}");
            let error = (0..3).map(|i| played[i].abs_diff(expected[i])).max();
            assert!(
                error < Some(110),
                "state {number}: {played:?} for {expected:?}"
            );
        }
    }
}

#[test]
fn plays_as_often_as_asked_and_only_what_fits_is_taken() {
    let playback = vec![(canvas(|_, _| '5'), 10), (canvas(|_, _| '6'), 10)];
    for (loops, expected) in [
        (0, LoopCount::Forever),
        (3, LoopCount::Times(3.try_into().expect("not 0"))),
    ] {
        let file = encode(24, 18, loops, &playback, Mode::Auto);
        let decoder = WebPDecoder::new(Cursor::new(&file)).expect("a WebP file");
        assert_eq!(decoder.loop_count(), expected);
        assert!(!decoder.has_alpha(), "all is opaque");
    }
    let encoder = Encoder::lossy(90);
    let mut animation = IncrementalAnimation::new(encoder, (24, 18), 0).expect("good sides");
    let canvas = [0; 24 * 18 * 4];
    let all = whole(&canvas, 24);
    let outside = |left, top| Damage {
        rect: Rect {
            left,
            top,
            ..all.rect
        },
        ..all.clone()
    };
    let few = whole(&canvas[..24 * 17 * 4], 24);
    let less = Damage {
        rect: all.rect,
        ..few
    };
    for (canvas, damage) in [
        (&canvas[..4], all.clone()),
        (&canvas, outside(1, 0)),
        (&canvas, outside(0, 1)),
        (&canvas, less),
    ] {
        let outcome = animation.add(canvas, damage, 10);
        assert_eq!(outcome, Err(EncodeError::PixelCount));
    }
    assert_eq!(animation.finish(), Err(EncodeError::NoFrames));
    let none = IncrementalAnimation::new(encoder, (0, 18), 0).map(|_| ());
    assert_eq!(none, Err(EncodeError::Dimensions));
}

#[test]
fn times_that_a_frame_cannot_hold_go_into_several() {
    let same = canvas(|_, _| '5');
    let playback = vec![(same.clone(), LONGEST), (same.clone(), 5), (same, u32::MAX)];
    let times: Vec<u32> = play(&encode(24, 18, 0, &playback, Mode::Lossless))
        .iter()
        .map(|(_, time)| *time)
        .collect();
    assert_eq!(times, [LONGEST, 5, LONGEST]);
}

/// Canvases of several small changes each, of noise and of flat colors.
fn busy_playback() -> Vec<Vec<u8>> {
    let mut canvas = vec![[200, 210, 220, 255]; 160 * 120];
    (0..40usize)
        .map(|number| {
            let (left, top) = (number * 37 % 120, number * 53 % 90);
            for place in 0..30 * 25 {
                let noise = (place * place * 31 + number * 97) as u8;
                let sample = if number % 3 == 0 {
                    noise
                } else {
                    (number * 40) as u8
                };
                canvas[(top + place / 30) * 160 + left + place % 30] = [sample, noise / 2, 90, 255];
            }
            canvas.as_flattened().to_vec()
        })
        .collect()
}

fn encode_busy(encoder: Encoder<'_>) -> Result<Vec<u8>, EncodeError> {
    let mut animation = IncrementalAnimation::new(encoder, (160, 120), 0)?;
    let mut before = vec![0; 160 * 120 * 4];
    for canvas in busy_playback() {
        animation.add(&canvas, whole(&before, 160), 40)?;
        before = canvas;
    }
    animation.finish().map(|encoded| encoded.file)
}

#[test]
fn the_file_is_the_same_for_tight_and_for_whole_damage() {
    let encoder = Encoder::lossy(90);
    let mut animation = IncrementalAnimation::new(encoder, (24, 18), 1).expect("good sides");
    let mut before = vec![0; 24 * 18 * 4];
    for (canvas, milliseconds) in playback() {
        let all = whole(&before, 24);
        let differs = |at: &usize| all.before[*at] != canvas.as_chunks().0[*at];
        let places: Vec<usize> = (0..24 * 18).filter(differs).collect();
        let columns = || places.iter().map(|at| at % 24);
        let rows = || places.iter().map(|at| at / 24);
        let left = columns().min().unwrap_or(7);
        let top = rows().min().unwrap_or(5);
        let rect = Rect {
            left,
            top,
            width: columns().max().map_or(0, |last| last + 1 - left),
            height: rows().max().map_or(0, |last| last + 1 - top),
        };
        let rows = all.before.chunks(24).skip(top).take(rect.height);
        let pixels = rows.flat_map(|row| &row[left..left + rect.width]);
        let damage = Damage {
            rect,
            before: pixels.copied().collect(),
        };
        let outcome = animation.add(&canvas, damage, milliseconds);
        outcome.expect("a canvas of that size");
        before = canvas;
    }
    let file = animation.finish().expect("a small file").file;
    assert!(file == encode(24, 18, 1, &playback(), Mode::Lossy));
}

#[test]
fn the_file_is_the_same_for_every_number_of_threads() {
    for (mode, effort) in [
        (Mode::Auto, Effort::Medium),
        (Mode::Auto, Effort::High),
        (Mode::Lossy, Effort::Medium),
        (Mode::Lossless, Effort::Medium),
    ] {
        let encoder = Encoder::lossy(75).mode(mode).effort(effort);
        let by = |threads: usize| encode_busy(encoder.threads(threads));
        let alone = by(1).expect("a small file");
        for threads in [2, 3, 8] {
            assert!(
                by(threads).as_ref() == Ok(&alone),
                "{mode:?}, {effort:?}, {threads} threads"
            );
        }
    }
}

/// Checks for cancellation are counted, of which each pass of a search has some.
#[test]
fn lossless_codings_that_are_far_too_large_take_no_thorough_search() {
    let mut random = Random::new(1);
    // So small that both codings are tried.
    let canvas = square(64, |x, y| {
        let shade = random.byte() / 16;
        [x, y, x.midpoint(y)].map(|sample| (sample * 3) as u8 + shade)
    });
    let checks = |mode: Mode, effort: Effort| {
        let checks = Checks::new(usize::MAX);
        let is_unwanted = || checks.are_used_up();
        let cancel = Cancel::when(&is_unwanted);
        let encoder = Encoder::lossy(85).mode(mode).effort(effort);
        let mut animation =
            IncrementalAnimation::new(encoder.cancel(&cancel), (64, 64), 0).expect("good sides");
        animation
            .add(&canvas, whole(&[0; 64 * 64 * 4], 64), 40)
            .expect("a canvas of that size");
        let coding = animation.finish().expect("a small file").coding;
        assert_eq!(coding, Coding::Lossy);
        checks.calls.into_inner()
    };
    let medium = checks(Mode::Auto, Effort::Medium);
    for effort in [Effort::High, Effort::Max] {
        let (auto, lossy) = (checks(Mode::Auto, effort), checks(Mode::Lossy, effort));
        assert!(
            auto <= medium + lossy,
            "{effort:?}: {auto} checks; {medium} with medium effort and {lossy} lossy"
        );
    }
}

#[test]
fn a_cancelled_animation_ends_and_releases_its_cores() {
    let encode_for = |allowed: usize, threads: usize| {
        let checks = Checks::new(allowed);
        let is_unwanted = || checks.are_used_up();
        let budget = CpuBudget::new(NonZeroUsize::new(2).expect("not zero"));
        let cancel = Cancel::when(&is_unwanted);
        let encoder = Encoder::auto(75).threads(threads).cpu_budget(&budget);
        let outcome = encode_busy(encoder.cancel(&cancel));
        assert_eq!(budget.lent(), 0, "cores are still lent");
        (outcome.map(|_| ()), checks.calls.into_inner())
    };
    let (outcome, calls) = encode_for(usize::MAX, 1);
    assert_eq!(outcome, Ok(()));
    for threads in [1, 3] {
        for allowed in (0..calls).step_by(97) {
            let (outcome, calls) = encode_for(allowed, threads);
            let what = format!("{threads} threads, cancelled after {allowed} checks");
            assert_eq!(outcome, Err(EncodeError::Cancelled), "{what}");
            // Each thread may be about to check in each of the passes that it works in.
            assert!(calls <= allowed + 4 * threads, "{what}: {calls} checks");
        }
    }
}

#[test]
fn frames_wait_for_one_another_only_as_long_as_they_are_no_more_than_a_canvas() {
    let mut animation =
        IncrementalAnimation::new(Encoder::lossy(75), (160, 120), 0).expect("good sides");
    let mut before = vec![0; 160 * 120 * 4];
    for canvas in busy_playback() {
        animation
            .add(&canvas, whole(&before, 160), 40)
            .expect("a canvas of that size");
        before = canvas;
        assert!(animation.pending_area() <= 160 * 120);
    }
}

/// An opaque canvas of so many pixels a side.
fn square(side: usize, mut pixel: impl FnMut(usize, usize) -> [u8; 3]) -> Vec<u8> {
    let places = (0..side).flat_map(|y| (0..side).map(move |x| (x, y)));
    let opaque = |[red, green, blue]: [u8; 3]| [red, green, blue, 255];
    places.flat_map(|(x, y)| opaque(pixel(x, y))).collect()
}

/// A quarter more of the canvas in each frame, with 256 colors of its own: two ramps across each
/// other.
fn ramps_in_quarters() -> Vec<Vec<u8>> {
    let pixel = |shown: usize, x: usize, y: usize| {
        let quarter = x / 16 + y / 16 * 2;
        let ramps = [x % 16 * 17, y % 16 * 17, quarter * 80];
        if quarter <= shown {
            ramps.map(|sample| sample as u8)
        } else {
            [255; 3]
        }
    };
    let frames = 0..4;
    frames
        .map(|shown| square(32, |x, y| pixel(shown, x, y)))
        .collect()
}

/// A bar of 120 colors and some blocks of another color in each frame, on white.
fn bars_and_blocks() -> Vec<Vec<u8>> {
    let pixel = |frame: usize, x: usize, y: usize| {
        let ramp = (y * 2 + x * 8) as u8;
        let is_block = (x * 7 / 3 + y * 5 / 4 + frame * 3).is_multiple_of(5);
        match (frame % 2, y) {
            (0, 0..4) if x < 30 => [ramp, ramp, 255],
            (1, 0..4) if x < 30 => [255, ramp, ramp],
            (_, 12..24) if (8..40).contains(&x) && is_block => [200 * (frame % 2) as u8, 0, 90],
            _ => [255; 3],
        }
    };
    let frames = 0..4;
    frames
        .map(|frame| square(48, |x, y| pixel(frame, x, y)))
        .collect()
}

/// A disk, and on it one more drawing of 32 x 32 pixels in each frame: flat colors of its own with
/// black outlines.
fn drawings_on_a_disk() -> Vec<Vec<u8>> {
    let mut canvas = square(100, |x, y| {
        let distance = x.abs_diff(50).pow(2) + y.abs_diff(50).pow(2);
        if distance < 44 * 44 {
            [30, 144, 255]
        } else {
            [135, 206, 235]
        }
    });
    let mut frames = vec![canvas.clone()];
    for (number, (left, top)) in [(4, 10), (34, 30), (62, 50), (10, 60)]
        .into_iter()
        .enumerate()
    {
        let color = |cell: usize| {
            let mixed = (cell * 7 + number * 11 + 3) % 8;
            [mixed & 1, mixed >> 1 & 1, mixed >> 2].map(|bit| (bit * 200 + number * 10) as u8)
        };
        for at in 0..32 * 32 {
            let (x, y): (usize, usize) = (at % 32, at / 32);
            // Mirrored, in cells whose rows are shifted, half of them dithered.
            let mirrored = x.min(31 - x);
            let cell = (mirrored + y / 6 * 3) / 7 + y / 6 * 3;
            let is_outline = (mirrored + y / 6 * 3).is_multiple_of(7) || y.is_multiple_of(6);
            let pixel = match (is_outline, cell % 2, (x + y) % 2) {
                (true, ..) => [0; 3],
                (_, 0, 0) => color(cell + 1),
                _ => color(cell),
            };
            canvas[((top + y) * 100 + left + x) * 4..][..3].copy_from_slice(&pixel);
        }
        frames.push(canvas.clone());
    }
    frames
}

/// Few flat frames of few pixels, each with colors of its own: palettes and prefix codes are most
/// of their bytes. libwebp 1.2.4 (`img2webp -lossless -m 4 -q 75`) takes 342, 688 and 1148 bytes.
#[test]
fn few_small_frames_take_few_bytes() {
    for (name, canvases, side, most) in [
        ("ramps", ramps_in_quarters(), 32, 310),
        ("bars", bars_and_blocks(), 48, 600),
        ("drawings", drawings_on_a_disk(), 100, 1000),
    ] {
        let playback: Playback = canvases.into_iter().map(|canvas| (canvas, 100)).collect();
        for mode in [Mode::Lossless, Mode::Auto] {
            let file = encode(side, side, 0, &playback, mode);
            let bytes = file.len();
            assert!(bytes <= most, "{name}, {mode:?}: {bytes} bytes of {most}");
            assert!(
                play(&file) == playback,
                "{name}, {mode:?}: it looks otherwise"
            );
        }
    }
}

#[test]
fn whole_canvases_give_the_file_of_known_damage() {
    for mode in [Mode::Lossless, Mode::Lossy, Mode::Auto] {
        let encoder = Encoder::lossy(90).mode(mode);
        let mut animation = AnimationEncoder::new(encoder, (24, 18), 1).expect("good sides");
        for (canvas, milliseconds) in playback() {
            let canvas = Picture::new(24, 18, ColorType::Rgba8, &canvas).expect("good");
            let outcome = animation.add(&canvas, milliseconds);
            outcome.expect("a canvas of that size");
        }
        let file = animation.finish().expect("a small file").file;
        assert!(file == encode(24, 18, 1, &playback(), mode), "{mode:?}");
    }
    let gray = Picture::new(24, 17, ColorType::L8, &[1; 24 * 17]).expect("good");
    let animation = AnimationEncoder::new(Encoder::lossless(), (24, 18), 0);
    let outcome = animation.expect("good sides").add(&gray, 40);
    assert_eq!(outcome, Err(EncodeError::PixelCount), "another size");
}

#[test]
fn gray_canvases_are_shown_as_they_are() {
    let canvas = |number: u8| -> Vec<u8> { (0..99).map(|at| at / 40 * number).collect() };
    let mut animation = AnimationEncoder::new(Encoder::lossless(), (11, 9), 0).expect("good");
    for number in 0..5 {
        let pixels = canvas(number);
        let gray = Picture::new(11, 9, ColorType::L8, &pixels).expect("good");
        animation.add(&gray, 40).expect("a canvas of that size");
    }
    let played = play(&animation.finish().expect("a small file").file);
    for (number, (shown, _)) in (0..5).zip(&played) {
        let rgba = canvas(number).into_iter();
        let rgba: Vec<u8> = rgba.flat_map(|gray| [gray, gray, gray, 255]).collect();
        assert!(*shown == rgba, "canvas {number}");
    }
    assert_eq!(played.len(), 5);
}
