//! Support for the tests of the readers.

use super::decoded::Decoded;
use super::error::DecodeError;
use super::footprint::Footprint;
use super::limits::Limits;
use super::pixels::{Image, Layout};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use towebp_encoder::{Cancel, CpuBudget, Workers};

/// The bounds that the readers' tests decode within.
pub const LIMITS: Limits = Limits {
    max_side: 1000,
    max_pixels: 10_000,
    ..Limits::DEFAULT
};

/// Asserts that `read` rejects a file that is cut off after any of `lengths` bytes.
pub fn assert_parts_are_rejected(
    read: fn(&[u8], &Limits, &Cancel<'_>) -> Result<Decoded, DecodeError>,
    file: &[u8],
    lengths: Range<usize>,
) {
    for length in lengths {
        assert!(
            read(&file[..length], &LIMITS, &Cancel::never()).is_err(),
            "{length} of {} bytes were enough",
            file.len()
        );
    }
}

/// The reason for which `read` rejects this file as damaged or not supported.
pub fn rejection(
    read: fn(&[u8], &Limits, &Cancel<'_>) -> Result<Decoded, DecodeError>,
    file: &[u8],
) -> String {
    match read(file, &LIMITS, &Cancel::never()) {
        Err(DecodeError::Invalid(reason)) => reason,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it was read"),
    }
}

/// Asserts that a picture has the size that its header promised, and no alpha channel unless one
/// was promised.
pub fn assert_as_promised(promised: &Footprint, image: &Image) {
    let size = (promised.width, promised.height);
    let image = image.clone().drop_opaque_alpha(&Cancel::never());
    let image = image.expect("not cancelled");
    assert_eq!(
        (image.width, image.height),
        size,
        "promised was {promised:?}"
    );
    let is_opaque = image.layout == Layout::Rgb;
    assert!(is_opaque || promised.layout == Layout::Rgba, "it has alpha");
}

/// Calls `decode` so many `times` with two workers, one of whose cores is taken back and released
/// all the time.
pub fn with_a_core_needed_elsewhere(times: usize, mut decode: impl FnMut(Workers<'_>)) {
    let never = Cancel::never();
    let budget = CpuBudget::new(NonZeroUsize::new(2).expect("not zero"));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _own = budget.occupy();
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                drop(budget.occupy());
                thread::yield_now();
            }
        });
        for _ in 0..times {
            decode(Workers::new(2, Some(&budget), &never));
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
