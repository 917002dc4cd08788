//! Tests of [`super::rows`]: two threads give what one gives, whatever the file has.

use super::rows::{self, LowerPart, LumaRange};
use super::tests::{restarted, segment};
use super::{Decoder, Header};
use crate::image::error::DecodeError;
use crate::image::limits::Limits;
use crate::image::planes::Planes;
use crate::image::testing::with_a_core_needed_elsewhere;
use std::sync::atomic::{AtomicUsize, Ordering};
use towebp_encoder::testing::Random;
use towebp_encoder::{Cancel, Workers};

const PHOTOGRAPHS: [&[u8]; 2] = [
    include_bytes!("../../../../testdata/astronaut.jpg"),
    include_bytes!("../../../../testdata/rocket.jpg"),
];

/// Decodes, from row `row` of MCUs on by a helper if there is one.
fn decode(file: &[u8], row: usize, workers: Workers<'_>) -> Result<Planes, DecodeError> {
    let header = Header::read(file)?;
    let decoder = Decoder::new(file, &header, &Limits::default(), workers.cancel())?;
    let size = (decoder.width, decoder.height);
    let scan = decoder.scan;
    let lower = scan.and_then(|scan| LowerPart::from_row(row, &header, scan));
    let mut inner = decoder.inner;
    rows::decode(
        &mut inner,
        size,
        LumaRange::Limited,
        lower.as_ref(),
        workers,
    )
}

fn assert_same(file: &[u8], row: usize, what: &str) {
    let never = Cancel::never();
    let [one, two] = [1, 2].map(|threads| decode(file, row, Workers::new(threads, None, &never)));
    assert!(
        one == two,
        "{what}, row {row}: {:?} and {:?}",
        one.err(),
        two.err()
    );
}

/// The rows of MCUs that a helper itself decodes.
fn rows_of_helper(file: &[u8], rows: usize) -> usize {
    let header = Header::read(file).expect("a valid header");
    let never = Cancel::never();
    let decoder = Decoder::new(file, &header, &Limits::default(), &never).expect("a valid file");
    let scan = decoder.scan.expect("there is one scan");
    let works = |row: &usize| {
        let lower = LowerPart::from_row(*row, &header, scan).expect("a row of the picture");
        lower.can_be_decoded(&never)
    };
    (1..rows).filter(works).count()
}

#[test]
fn a_photograph_is_the_same_from_every_row_on() {
    for (file, rows) in PHOTOGRAPHS.into_iter().zip([32, 27]) {
        assert_eq!(
            rows_of_helper(file, rows),
            rows - 1,
            "the helper decodes from any row"
        );
        for row in 1..rows {
            assert_same(file, row, "a photograph");
        }
    }
}

#[test]
fn restart_markers_are_places_to_begin() {
    // Rows of 5 MCUs, and markers every 1, 5 and 10 MCUs.
    for (interval, rows) in [(1, 1..7), (5, 1..7), (10, 2..7)] {
        let file = restarted((5 * 16, 7 * 16 - 3), interval);
        for row in rows.step_by((interval / 5).max(1)) {
            assert_same(&file, row, "restart markers");
        }
    }
    let file = restarted((5 * 16, 7 * 16), 5);
    assert_eq!(rows_of_helper(&file, 7), 6);
}

#[test]
fn damaged_files_have_the_same_outcome() {
    let file = PHOTOGRAPHS[1];
    let begin = Header::read(file).expect("a valid header").scan_begin;
    let mut random = Random::new(1);
    for _ in 0..150 {
        let mut damaged = file.to_vec();
        let place = begin + random.index(file.len() - begin);
        match random.index(4) {
            0 => damaged[place] ^= 1 << random.index(8),
            1 => damaged[place] = [0, 0xff][random.index(2)],
            2 => drop(damaged.drain(place..(place + random.index(40)).min(file.len()))),
            _ => drop(damaged.splice(place..place, segment(0xfe, b"words"))),
        }
        assert_same(&damaged, 1 + random.index(26), "damaged");
    }
    for length in (begin..file.len()).step_by(997) {
        assert_same(&file[..length], 13, "cut");
    }
}

#[test]
fn a_core_that_is_needed_elsewhere_is_given_back() {
    let never = Cancel::never();
    let file = PHOTOGRAPHS[0];
    let expected = decode(file, 3, Workers::new(1, None, &never));
    with_a_core_needed_elsewhere(60, |workers| {
        assert!(decode(file, 3, workers) == expected);
    });
}

#[test]
fn it_ends_whenever_it_is_cancelled() {
    for allowed in (0..400).step_by(7) {
        let asked = AtomicUsize::new(0);
        let question = || asked.fetch_add(1, Ordering::Relaxed) >= allowed;
        let cancel = Cancel::when(&question);
        let decoded = decode(PHOTOGRAPHS[0], 18, Workers::new(2, None, &cancel));
        assert!(
            cancel.is_set() == decoded.is_err(),
            "after {allowed} checks"
        );
    }
}
