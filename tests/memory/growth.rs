//! The file of an animation grows beyond the input only as far as it is allowed to.

use crate::counting::peak_of_process;
use crate::is_alone;
use crate::support::animation::{growing_gif, growing_png};
use std::cell::Cell;
use towebp_pipeline::conversion::{Cancel, ConversionError, Fonts, Params, Plan, Resources};
use towebp_pipeline::image::{self, Format, Limits};

/// Converts an animation that may take `most` bytes beside its estimate. Returns the outcome, the
/// most bytes that it held, the estimate, and what it was granted.
fn convert(
    file: &[u8],
    query: &[(&str, &str)],
    most: u64,
) -> (Result<usize, ConversionError>, u64, u64, u64) {
    let params = Params::parse(query.iter().copied()).expect("valid parameters");
    let format = Format::sniff(file).expect("a GIF or a PNG");
    let resources = Resources {
        fonts: Fonts::bundled(),
        threads: 4,
        cpu_budget: None,
    };
    let granted = Cell::new(0);
    let limits = Limits::default();
    let ((outcome, estimated), held) = peak_of_process(|| {
        let opened = image::open(file, format, &limits).expect("a valid animation");
        let plan = Plan::new(&opened, &params, None, resources).expect("within the limits");
        let may_hold = |bytes| {
            let more = bytes - plan.memory();
            if more <= most {
                granted.set(granted.get().max(more));
            }
            more <= most
        };
        let converted = plan.run_within(&Cancel::never(), &may_hold);
        (
            converted.map(|converted| converted.webp.len()),
            plan.memory(),
        )
    });
    (outcome, held, estimated, granted.get())
}

const LARGE: &[(&str, &str)] = &[("mode", "lossy"), ("quality", "100"), ("effort", "low")];

#[test]
fn files_that_grow_hold_no_more_than_was_estimated_and_granted() {
    if !is_alone() {
        return;
    }
    let enlarged: &[(&str, &str)] = &[
        ("width", "240"),
        ("enlarge", "true"),
        ("mode", "lossless"),
        ("effort", "low"),
    ];
    let searched: &[(&str, &str)] = &[("mode", "lossy"), ("effort", "low"), ("max_bytes", "2M")];
    let png = growing_png(300, 300, 60);
    let gif = growing_gif(300, 300, 60);
    let small = growing_png(40, 40, 150);
    for (name, file, query) in [
        ("png", &png, LARGE),
        ("gif", &gif, LARGE),
        ("enlarged png", &small, enlarged),
        ("searched png", &png, searched),
    ] {
        let (outcome, held, estimated, granted) = convert(file, query, u64::MAX);
        let length = outcome.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(
            length > 2 * file.len(),
            "{name}: {} bytes became {length}",
            file.len()
        );
        println!(
            "{name}: {} bytes, {length}, held {held} of {estimated} + {granted}",
            file.len()
        );
        assert!(
            held <= estimated + granted,
            "{name}: {held} bytes of {estimated} and {granted}"
        );
        assert!(granted > 0, "{name}: it grows");
        // What is granted is not much more than what is needed. A search tries larger files than
        // the one that it finds.
        assert!(
            query == searched || granted < 4 * length as u64,
            "{name}: {granted} bytes for {length}"
        );
    }
}

#[test]
fn a_file_that_may_not_grow_ends_the_conversion() {
    if !is_alone() {
        return;
    }
    let file = growing_png(300, 300, 60);
    for most in [0, 1 << 20, 5 << 20] {
        let (outcome, held, estimated, granted) = convert(&file, LARGE, most);
        assert_eq!(outcome, Err(ConversionError::GrowthDenied), "{most}");
        assert!(
            granted <= most && granted >= most / 2,
            "{granted} of {most}"
        );
        assert!(
            held <= estimated + granted,
            "{held} bytes of {estimated} and {granted}"
        );
    }
}
