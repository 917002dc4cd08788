//! Animated PNGs, exact against a player of the tests' own: made-up ones, and those of a folder
//! that `TOWEBP_APNG_FOLDER` names.

mod made_up;
mod player;

use crate::support::hostile::{chunk, ihdr, png};
use image_webp::{LoopCount, WebPDecoder};
use made_up::MadeUp;
use player::Played;
use std::io::Cursor;
use std::panic::catch_unwind;
use std::path::PathBuf;
use std::{fs, iter};
use towebp_encoder::player::{Playback, merged, play};
use towebp_encoder::testing::Random;
use towebp_pipeline::conversion::{self, Cancel, Conversion, ConversionError, Fonts, Job, Params};
use towebp_pipeline::image::{DecodeError, Format, Limits};

fn convert(
    file: &[u8],
    query: &[(&str, &str)],
    limits: &Limits,
    threads: usize,
) -> Result<Conversion, ConversionError> {
    let params = Params::parse(query.iter().copied()).expect("valid parameters");
    conversion::run(&Job {
        bytes: file,
        format: Format::Png,
        params: &params,
        watermark_picture: None,
        fonts: Fonts::bundled(),
        limits,
        threads,
        cpu_budget: None,
        cancel: &Cancel::never(),
    })
}

fn convert_all(file: &[u8], query: &[(&str, &str)]) -> Vec<u8> {
    let converted = convert(file, query, &Limits::DEFAULT, 2);
    converted.unwrap_or_else(|error| panic!("{error}")).webp
}

/// The reason why a file is not converted.
fn fault(file: &[u8]) -> String {
    match convert(file, &[], &Limits::DEFAULT, 1) {
        Err(ConversionError::Picture(DecodeError::Invalid(reason))) => reason,
        other => panic!("not an invalid picture: {other:?}"),
    }
}

/// Asserts that a WebP without loss shows what the player shows.
fn assert_exact(name: &str, expected: &Played, webp: &[u8]) {
    let decoder = WebPDecoder::new(Cursor::new(webp)).expect("a WebP file");
    let (width, height) = decoder.dimensions();
    assert_eq!(
        (width as usize, height as usize),
        (expected.width, expected.height),
        "{name}"
    );
    let loops = match decoder.loop_count() {
        LoopCount::Forever => 0,
        LoopCount::Times(times) => times.get().into(),
    };
    assert_eq!(loops, expected.plays.min(65535), "{name}: plays");
    assert!(decoder.is_animated(), "{name}");
    let played = merged(&play(webp));
    // Canvases that look alike are one that is shown longer.
    let mut states: Vec<(&[u8], u64)> = Vec::new();
    for (canvas, time) in &expected.canvases {
        match states.last_mut() {
            Some((last, sum)) if last == canvas => *sum += time,
            _ => states.push((canvas, *time)),
        }
    }
    assert_eq!(played.len(), states.len(), "{name}: states");
    let (mut exact, mut shown) = (0, 0);
    for (index, ((canvas, milliseconds), (expected, time))) in played.iter().zip(states).enumerate()
    {
        assert!(canvas == expected, "{name}: state {index} looks otherwise");
        exact += time;
        shown += u64::from(*milliseconds) * 1000;
        // Half a millisecond, and what remains of fractions of a microsecond.
        let apart = exact.abs_diff(shown);
        assert!(apart <= 600, "{name}: state {index} ends {apart} µs off");
    }
}

#[test]
fn made_up_animations_are_exact_without_loss() {
    for seed in 0..100 {
        let file = MadeUp::file(seed);
        let webp = convert_all(&file, &[("mode", "lossless"), ("effort", "low")]);
        assert_exact(&format!("seed {seed}"), &player::play(&file), &webp);
    }
}

#[test]
fn with_loss_times_and_alpha_stay_and_threads_do_not_matter() {
    for seed in 100..120 {
        let file = MadeUp::file(seed);
        let one = convert(&file, &[], &Limits::DEFAULT, 1)
            .expect("a good file")
            .webp;
        assert!(one == convert_all(&file, &[]), "seed {seed}: other bytes");
        let total = |playback: &Playback| -> u64 {
            playback.iter().map(|(_, time)| u64::from(*time)).sum()
        };
        let expected = player::play(&file);
        let played = play(&one);
        let exact: u64 = expected.canvases.iter().map(|(_, time)| time).sum();
        assert!(exact.abs_diff(total(&played) * 1000) <= 600, "seed {seed}");
    }
}

/// The chunks of a file, one of whose bytes is another; checksums are right.
fn mutated(file: &[u8], random: &mut Random) -> Vec<u8> {
    let mut chunks: Vec<([u8; 4], Vec<u8>)> = player::chunks(file)
        .into_iter()
        .map(|(name, data)| (name, data.to_vec()))
        .collect();
    chunks.pop(); // the end
    let index = random.index(chunks.len());
    match random.below(6) {
        0 if index > 0 => drop(chunks.remove(index)),
        1 => chunks.insert(index, chunks[random.index(chunks.len())].clone()),
        2 if index > 1 => chunks.swap(index, index - 1),
        _ => {
            let (name, data) = &mut chunks[index];
            // A color that no sample can have is read in different ways.
            if !data.is_empty() && name != b"tRNS" {
                let place = random.index(data.len());
                data[place] = [0, 1, data[place] ^ 1, random.byte()][random.index(4)];
            }
        }
    }
    let chunks: Vec<Vec<u8>> = chunks
        .iter()
        .map(|(name, data)| chunk(*name, data))
        .collect();
    png(&chunks)
}

/// What is accepted of files with a fault is what the player shows of it, too.
#[test]
fn files_with_a_fault_are_refused_or_exact() {
    let limits = Limits {
        max_pixels: 10_000,
        max_animation_pixels: 100_000,
        ..Limits::DEFAULT
    };
    let query = [("mode", "lossless"), ("effort", "low")];
    let mut random = Random::new(17);
    let (mut refused, mut exact) = (0, 0);
    for seed in 0..1500 {
        let file = mutated(&MadeUp::file(seed % 60), &mut random);
        let Ok(converted) = convert(&file, &query, &limits, 1) else {
            refused += 1;
            continue;
        };
        let is_animated = converted.webp.windows(4).any(|name| name == b"ANIM");
        // It goes by good files: data beyond the rows, for one, is none.
        if is_animated && let Ok(played) = catch_unwind(|| player::play(&file)) {
            assert_exact(&format!("mutation {seed}"), &played, &converted.webp);
            exact += 1;
        }
    }
    assert!(
        refused > 200 && exact > 200,
        "{refused} refused, {exact} exact"
    );
}

/// The control of a frame (PNG, third edition, 11.3.6.2).
fn control(sequence: u32, place: [u32; 4], ends: [u8; 2]) -> Vec<u8> {
    let [width, height, left, top] = place;
    let numbers = [sequence, width, height, left, top].map(u32::to_be_bytes);
    chunk(
        *b"fcTL",
        &[numbers.as_flattened(), &[0, 5, 0, 100], &ends].concat(),
    )
}

fn animation(frames: u32, plays: u32) -> Vec<u8> {
    chunk(*b"acTL", &[frames, plays].map(u32::to_be_bytes).concat())
}

/// Rows of one color, compressed.
fn filled(width: u32, height: u32, color: [u8; 3]) -> Vec<u8> {
    let row = [&[0][..], &color.repeat(width as usize)].concat();
    fdeflate::compress_to_vec(&row.repeat(height as usize))
}

fn frame_data(sequence: u32, data: &[u8]) -> Vec<u8> {
    chunk(*b"fdAT", &[&sequence.to_be_bytes(), data].concat())
}

const RED: [u8; 3] = [200, 0, 0];
const BLUE: [u8; 3] = [0, 0, 200];

/// Two frames of 4 x 2 pixels: a red one, and a blue dot. Its chunks can be replaced.
fn two_frames() -> Vec<Vec<u8>> {
    vec![
        ihdr(4, 2, false),
        animation(2, 3),
        control(0, [4, 2, 0, 0], [0, 0]),
        chunk(*b"IDAT", &filled(4, 2, RED)),
        control(1, [1, 1, 3, 1], [0, 0]),
        frame_data(2, &filled(1, 1, BLUE)),
    ]
}

fn with(index: usize, chunks: &[Vec<u8>]) -> Vec<u8> {
    let mut all = two_frames();
    all.splice(index..=index, chunks.iter().cloned());
    png(&all)
}

#[test]
fn the_first_picture_is_the_default_image() {
    let lossless = [("mode", "lossless")];
    let first = [("mode", "lossless"), ("animation", "first")];
    let still = png(&[ihdr(4, 2, false), chunk(*b"IDAT", &filled(4, 2, RED))]);
    let still = convert_all(&still, &lossless);
    let animated = png(&two_frames());
    assert_exact(
        "two frames",
        &player::play(&animated),
        &convert_all(&animated, &lossless),
    );
    assert_eq!(convert_all(&animated, &first), still);
    // Whether it is a frame or none.
    let mut chunks = two_frames();
    chunks.splice(
        1..4,
        [
            animation(1, 1),
            chunk(*b"IDAT", &filled(4, 2, RED)),
            control(0, [4, 2, 0, 0], [0, 0]),
            frame_data(1, &filled(4, 2, BLUE)),
        ],
    );
    chunks.truncate(5);
    let hidden = png(&chunks);
    assert_eq!(convert_all(&hidden, &first), still);
    assert_exact(
        "a hidden one",
        &player::play(&hidden),
        &convert_all(&hidden, &lossless),
    );
    // A single frame in its place is no animation.
    let mut chunks = two_frames();
    chunks[1] = animation(1, 0);
    chunks.truncate(4);
    assert_eq!(convert_all(&png(&chunks), &lossless), still);
    // An animation is only what says so in front of the default image.
    let mut chunks = two_frames();
    let control = chunks.remove(1);
    assert_eq!(convert_all(&png(&chunks), &lossless), still);
    chunks.insert(3, control);
    assert_eq!(convert_all(&png(&chunks), &lossless), still);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a row for each way to break a file")]
fn broken_animations_say_so_and_give_their_default_image() {
    let first = [("mode", "lossless"), ("animation", "first")];
    let still = png(&[ihdr(4, 2, false), chunk(*b"IDAT", &filled(4, 2, RED))]);
    let still = convert_all(&still, &[("mode", "lossless")]);
    let damaged = |mut chunk: Vec<u8>| {
        let middle = chunk.len() / 2;
        chunk[middle] ^= 1;
        chunk
    };
    let data = frame_data(2, &filled(1, 1, BLUE));
    let dot = |ends| control(1, [1, 1, 3, 1], ends);
    for (name, file, reason) in [
        (
            "no frame",
            with(1, &[animation(0, 0)]),
            "announces no frame",
        ),
        (
            "a frame too few",
            with(1, &[animation(3, 0)]),
            "another number of frames",
        ),
        (
            "a frame too many",
            with(
                5,
                &[
                    data.clone(),
                    control(3, [1, 1, 0, 0], [0, 0]),
                    frame_data(4, &filled(1, 1, BLUE)),
                ],
            ),
            "another number of frames",
        ),
        (
            "two animations",
            with(1, &[animation(2, 0), animation(2, 0)]),
            "two acTL",
        ),
        (
            "acTL damaged",
            with(1, &[damaged(animation(2, 0))]),
            "acTL chunk is damaged",
        ),
        (
            "acTL short",
            with(1, &[chunk(*b"acTL", &[0, 0, 0, 2])]),
            "acTL chunk is damaged",
        ),
        (
            "a small first frame",
            with(2, &[control(0, [3, 2, 0, 0], [0, 0])]),
            "as large as",
        ),
        (
            "a moved first frame",
            with(2, &[control(0, [4, 2, 1, 0], [0, 0])]),
            "outside",
        ),
        (
            "two before IDAT",
            with(2, &[control(0, [4, 2, 0, 0], [0, 0]), dot([0, 0])]),
            "two frames",
        ),
        (
            "out of order",
            with(4, &[control(2, [1, 1, 3, 1], [0, 0])]),
            "out of order",
        ),
        (
            "outside",
            with(4, &[control(1, [2, 1, 3, 1], [0, 0])]),
            "outside",
        ),
        (
            "far outside",
            with(4, &[control(1, [2, 1, u32::MAX, 1], [0, 0])]),
            "outside",
        ),
        (
            "empty",
            with(4, &[control(1, [0, 1, 0, 0], [0, 0])]),
            "empty",
        ),
        ("disposal", with(4, &[dot([3, 0])]), "unknown disposal"),
        ("blending", with(4, &[dot([0, 2])]), "unknown blending"),
        (
            "fcTL damaged",
            with(4, &[damaged(dot([0, 0]))]),
            "fcTL chunk is damaged",
        ),
        (
            "fcTL short",
            with(4, &[chunk(*b"fcTL", &[0, 0, 0, 1])]),
            "fcTL chunk is damaged",
        ),
        ("no fcTL", with(4, &[]), "in front of its fcTL"),
        ("no data", with(5, &[]), "no data"),
        (
            "fdAT short",
            with(5, &[chunk(*b"fdAT", &[0, 0])]),
            "fdAT chunk is damaged",
        ),
        (
            "data out of order",
            with(5, &[frame_data(3, &filled(1, 1, BLUE))]),
            "out of order",
        ),
        (
            "data twice",
            with(5, &[data.clone(), data.clone()]),
            "out of order",
        ),
        (
            "data damaged",
            with(5, &[damaged(data.clone())]),
            "checksum",
        ),
        (
            "data short",
            with(5, &[frame_data(2, &filled(1, 1, BLUE)[..9])]),
            "damaged",
        ),
        (
            "too few rows",
            with(5, &[frame_data(2, &fdeflate::compress_to_vec(&[0, 1]))]),
            "damaged",
        ),
        (
            "IDAT in two parts",
            with(5, &[chunk(*b"IDAT", &[])]),
            "two parts",
        ),
        ("cut", png(&two_frames())[..200].to_vec(), "ends too early"),
    ] {
        let given = fault(&file);
        assert!(given.contains("animation is damaged"), "{name}: {given}");
        assert!(given.contains(reason), "{name}: {given}");
        assert!(given.contains("animation=first"), "{name}: {given}");
        assert_eq!(convert_all(&file, &first), still, "{name}");
    }
}

#[test]
fn limits_hold_before_anything_is_decoded() {
    let limits = Limits {
        max_frames: 3,
        max_animation_pixels: 8 * 3,
        ..Limits::DEFAULT
    };
    let error = |file: &[u8]| match convert(file, &[], &limits, 1) {
        Err(ConversionError::Picture(error)) => error,
        other => panic!("{other:?}"),
    };
    // What is announced counts.
    let max_frames = limits.max_frames;
    for announced in [4, u32::MAX] {
        let file = with(1, &[animation(announced, 0)]);
        assert_eq!(error(&file), DecodeError::TooManyFrames { max_frames });
    }
    let frames = |count: u32| {
        let frame = |index| {
            let sequence = 1 + 2 * index;
            [
                control(sequence, [1, 1, 0, 0], [0, 0]),
                frame_data(sequence + 1, &filled(1, 1, BLUE)),
            ]
        };
        let mut chunks = two_frames();
        chunks[1] = animation(count, 0);
        chunks.truncate(4);
        chunks.extend((0..count - 1).flat_map(frame));
        png(&chunks)
    };
    assert!(convert(&frames(3), &[], &limits, 1).is_ok());
    let limits = Limits {
        max_animation_pixels: 8 * 3 - 1,
        ..limits
    };
    let max_pixels = limits.max_animation_pixels;
    match convert(&frames(3), &[], &limits, 1) {
        Err(ConversionError::Picture(error)) => {
            assert_eq!(error, DecodeError::AnimationTooLarge { max_pixels });
        }
        other => panic!("{other:?}"),
    }
    let first = convert(&frames(3), &[("animation", "first")], &limits, 1);
    assert!(first.is_ok());
}

#[test]
fn plays_and_long_times_are_what_webp_can_say() {
    for (plays, expected) in [
        (0, 0),
        (1, 1),
        (65535, 65535),
        (65536, 65535),
        (u32::MAX, 65535),
    ] {
        let webp = convert_all(&with(1, &[animation(2, plays)]), &[]);
        let decoder = WebPDecoder::new(Cursor::new(&webp)).expect("a WebP file");
        let loops = match decoder.loop_count() {
            LoopCount::Forever => 0,
            LoopCount::Times(times) => u32::from(times.get()),
        };
        assert_eq!(loops, expected);
    }
}

/// The public files of a folder, whole animations all.
#[test]
fn public_animations_are_exact_without_loss() {
    let Some(folder) = std::env::var_os("TOWEBP_APNG_FOLDER").map(PathBuf::from) else {
        eprintln!("SKIPPED: public animated PNGs. TOWEBP_APNG_FOLDER is to name their folder.");
        return;
    };
    let entries = fs::read_dir(&folder).expect("TOWEBP_APNG_FOLDER is a folder");
    let mut count = 0;
    for path in entries.map(|entry| entry.expect("it can be listed").path()) {
        let file = fs::read(&path).expect("it can be read");
        let is_animated = file.windows(4).any(|name| name == b"acTL");
        let name = path.display().to_string();
        if !is_animated || !iter::once(&path).all(|path| path.is_file()) {
            continue;
        }
        match convert(
            &file,
            &[("mode", "lossless"), ("effort", "low")],
            &Limits::DEFAULT,
            2,
        ) {
            Ok(converted) if converted.webp[12..].starts_with(b"VP8X") => {
                assert_exact(&name, &player::play(&file), &converted.webp);
                count += 1;
            }
            Ok(_) => eprintln!("{name}: a still picture"),
            Err(error) => eprintln!("{name}: {error}"),
        }
    }
    assert!(count > 0, "{} has no animated PNG", folder.display());
}
