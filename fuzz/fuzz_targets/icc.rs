//! ICC profiles, as the readers hand them over. Whatever the profile holds: no panic, and alpha
//! stays as it was; gray pixels stay gray under gray profiles.

#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use towebp_pipeline::image::{Image, Layout, convert_to_srgb};

fuzz_target!(|input: (bool, bool, &[u8])| {
    let (gray, alpha, profile) = input;
    let layout = if alpha { Layout::Rgba } else { Layout::Rgb };
    let levels = [0u8, 1, 17, 128, 200, 254, 255];
    let pixels = levels.into_iter().flat_map(|level| {
        let pixel = if gray {
            [level, level, level, level]
        } else {
            [level, 255 - level, 90, level]
        };
        pixel.into_iter().take(layout.channels())
    });
    let mut image = Image {
        width: levels.len() as u32,
        height: 1,
        layout,
        pixels: pixels.collect(),
    };
    convert_to_srgb(&mut image, profile, gray);
    for (pixel, level) in image.pixels.chunks_exact(layout.channels()).zip(levels) {
        assert!(!alpha || pixel[3] == level, "alpha has changed");
    }
});
