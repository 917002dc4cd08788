//! The readers of pictures. Whatever comes in, the outcome is a picture of the size that it says,
//! or an error, and the same for a picture of another size; a decoding that is cancelled ends at
//! its next check. So it is for animations, each of whose frames tells what it replaced.

#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use towebp_encoder::Workers;
use towebp_pipeline::conversion::Cancel;
use towebp_pipeline::image::{
    self, DecodeError, Format, Image, Keep, Limits, Luma, Metadata, Resize, Span,
};

/// Small, so that most of the time goes into the readers and not into pixels.
const LIMITS: Limits = Limits {
    max_side: 2000,
    max_pixels: 20_000,
    max_frames: 100,
    max_animation_pixels: 200_000,
};

/// Decodes, and cancels it at the check after `allowed` ones; gives the number of checks, too.
fn decode(
    bytes: &[u8],
    format: Format,
    allowed: usize,
) -> (Result<(Image, Metadata), DecodeError>, usize) {
    let checks = AtomicUsize::new(0);
    let question = || checks.fetch_add(1, Ordering::Relaxed) >= allowed;
    let cancel = Cancel::when(&question);
    let opened = image::open(bytes, format, &LIMITS);
    let decoded = opened.and_then(|opened| {
        let (image, metadata) = opened.decode(Keep::ALL, Workers::new(1, None, &cancel))?;
        let kept = [&metadata.icc, &metadata.exif, &metadata.xmp];
        let kept: usize = kept.into_iter().flatten().map(Vec::len).sum();
        assert!(kept as u64 <= opened.metadata_bytes());
        Ok((image, metadata))
    });
    (decoded, checks.load(Ordering::Relaxed))
}

/// Decodes to a size that `divisor` gives, as [`decode`]; `None` if the header does not tell the
/// size.
fn decode_resized(
    bytes: &[u8],
    format: Format,
    divisor: u8,
    allowed: usize,
) -> (Option<Result<Metadata, DecodeError>>, usize) {
    let checks = AtomicUsize::new(0);
    let question = || checks.fetch_add(1, Ordering::Relaxed) >= allowed;
    let cancel = Cancel::when(&question);
    let Ok(opened) = image::open(bytes, format, &LIMITS) else {
        return (None, 0);
    };
    let Some((width, height)) = opened.upright_size() else {
        return (None, 0);
    };
    let divisor = f64::from(divisor % 40) / 2.0 + 0.5;
    let span = |side: u32| Span {
        start: 0.0,
        length: side.into(),
        size: (f64::from(side) / divisor) as u32 + 1,
    };
    let resize = Resize {
        across: span(width),
        down: span(height),
    };
    let decoded = opened.decode_resized(Keep::ALL, resize, Workers::new(1, None, &cancel));
    let metadata = decoded.map(|(image, metadata)| {
        assert_eq!(
            (image.width, image.height),
            (resize.across.size, resize.down.size)
        );
        let length = u64::from(image.width) * u64::from(image.height);
        assert_eq!(
            image.pixels.len() as u64,
            length * image.layout.channels() as u64
        );
        metadata
    });
    (Some(metadata), checks.load(Ordering::Relaxed))
}

/// Draws all frames, as [`decode`]; gives the last canvas.
fn draw(bytes: &[u8], format: Format, allowed: usize) -> (Result<Vec<u8>, DecodeError>, usize) {
    let checks = AtomicUsize::new(0);
    let question = || checks.fetch_add(1, Ordering::Relaxed) >= allowed;
    let cancel = Cancel::when(&question);
    let opened = image::open(bytes, format, &LIMITS);
    let drawn = opened.and_then(|opened| {
        let Some(animation) = opened.animation().filter(image::Animation::is_animated) else {
            return Ok(Vec::new());
        };
        let footprint = animation.footprint()?;
        let mut frames = animation.frames(Keep::ALL, &cancel)?;
        let mut shown = vec![[0; 4]; footprint.pixel_count() as usize];
        while let Some(frame) = frames.draw()? {
            let canvas = frames.canvas();
            let width = canvas.width as usize;
            assert_eq!(
                (canvas.width, canvas.height),
                (footprint.width, footprint.height)
            );
            // What was replaced, put back.
            let mut undone = canvas.pixels.as_chunks::<4>().0.to_vec();
            let damage = frame.damage;
            assert_eq!(frame.previous.len(), damage.width * damage.height);
            for (y, row) in frame.previous.chunks(damage.width.max(1)).enumerate() {
                let place = (damage.top + y) * width + damage.left;
                undone[place..][..row.len()].copy_from_slice(row);
            }
            assert!(undone == shown, "not what was shown before");
            shown.copy_from_slice(canvas.pixels.as_chunks().0);
        }
        Ok(shown.into_flattened())
    });
    (drawn, checks.load(Ordering::Relaxed))
}

fuzz_target!(|input: (u8, &[u8])| {
    // libFuzzer's hook would end the process at a panic of a decoder, which the product catches.
    // Those of the assertions below still end it.
    static QUIET: Once = Once::new();
    QUIET.call_once(|| std::panic::set_hook(Box::new(|panic| eprintln!("{panic}"))));

    let (allowed, bytes) = input;
    let Some(format) = Format::sniff(bytes) else {
        return;
    };
    let (whole, checks) = decode(bytes, format, usize::MAX);
    match &whole {
        Ok((image, _)) => {
            let pixels = u64::from(image.width) * u64::from(image.height);
            assert!((1..=LIMITS.max_pixels).contains(&pixels));
            assert_eq!(
                image.pixels.len() as u64,
                pixels * image.layout.channels() as u64
            );
        }
        Err(error) => assert!(!matches!(error, DecodeError::Cancelled)),
    }

    let never = Cancel::never();
    let workers = Workers::new(1, None, &never);
    let planes = image::open(bytes, format, &LIMITS)
        .and_then(|opened| opened.decode_planes(Keep::ALL, Luma::AtCentroids, workers));
    if let Ok(Some((planes, metadata))) = planes {
        let (image, same) = whole.as_ref().expect("the same file gives RGB");
        assert_eq!((planes.width, planes.height), (image.width, image.height));
        assert_eq!(&metadata, same);
    }

    let (resized, _) = decode_resized(bytes, format, allowed, usize::MAX);
    match (&whole, resized) {
        // PNGs with Exif tell their size later.
        (_, None) => {}
        (Ok(_), Some(resized)) => {
            resized.expect("it has a picture in its own size");
        }
        (Err(_), Some(resized)) => assert_ne!(resized, Err(DecodeError::Cancelled)),
    }
    let (cancelled, asked) = decode_resized(bytes, format, allowed, usize::from(allowed));
    if asked > usize::from(allowed) {
        assert_eq!(cancelled, Some(Err(DecodeError::Cancelled)));
    }

    let (cancelled, _) = decode(bytes, format, usize::from(allowed));
    if checks > usize::from(allowed) {
        assert_eq!(cancelled, Err(DecodeError::Cancelled));
    } else {
        assert_eq!(cancelled, whole);
    }

    let (drawn, checks) = draw(bytes, format, usize::MAX);
    assert_ne!(drawn, Err(DecodeError::Cancelled));
    let (cancelled, _) = draw(bytes, format, usize::from(allowed));
    if checks > usize::from(allowed) {
        assert_eq!(cancelled, Err(DecodeError::Cancelled));
    } else {
        assert_eq!(cancelled, drawn);
    }
});
