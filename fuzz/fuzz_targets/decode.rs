//! The readers of pictures. Whatever comes in: a picture of the size that it says, or an error, for a patient caller; and for
//! one who leaves, an end at the next question.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::cell::Cell;
use std::sync::Once;
use towebp::image::{self, DecodeError, Format, Keep, Limits, Cancel};

/// Small, so that most of the time goes into the readers and not into pixels.
const LIMITS: Limits = Limits {
    max_side: 2000,
    max_pixels: 20_000,
    ..Limits::DEFAULT
};

fuzz_target!(|input: (u8, &[u8])| {
    // libFuzzer's hook would end the process at a panic of a decoder, which the product catches. Those of the assertions
    // below still end it.
    static QUIET: Once = Once::new();
    QUIET.call_once(|| std::panic::set_hook(Box::new(|panic| eprintln!("{panic}"))));

    let (cancel, bytes) = input;
    let Some(format) = Format::sniff(bytes) else {
        return;
    };
    let asked = Cell::new(0);
    let count = || {
        asked.set(asked.get() + 1);
        true
    };
    let patient = image::decode_keeping(Keep::All, bytes, format, &LIMITS, &Cancel::when(&count));
    match &patient {
        Ok((image, metadata)) => {
            let kept = [&metadata.icc, &metadata.exif, &metadata.xmp];
            let kept: usize = kept.into_iter().flatten().map(Vec::len).sum();
            assert!(kept as u64 <= image::metadata_bytes(bytes, format));
            let pixels = u64::from(image.width) * u64::from(image.height);
            assert!((1..=LIMITS.max_pixels).contains(&pixels));
            assert_eq!(
                image.pixels.len() as u64,
                pixels * image.layout.channels() as u64
            );
        }
        Err(error) => assert!(!matches!(error, DecodeError::Cancelled)),
    }

    let endless = Cancel::never();
    if let Ok(Some((planes, metadata))) =
        image::decode_planes(Keep::All, bytes, format, &LIMITS, &endless)
    {
        let (image, same) = patient.as_ref().expect("the same file gives RGB");
        assert_eq!((planes.width, planes.height), (image.width, image.height));
        assert_eq!(&metadata, same);
    }

    let questions = asked.get();
    let left = Cell::new(usize::from(cancel));
    let leave = || {
        let waits = left.get() > 0;
        left.set(left.get().saturating_sub(1));
        waits
    };
    let impatient =
        image::decode_keeping(Keep::All, bytes, format, &LIMITS, &Cancel::when(&leave));
    if questions > usize::from(cancel) {
        assert_eq!(impatient, Err(DecodeError::Cancelled));
    } else {
        assert_eq!(impatient, patient);
    }
});
