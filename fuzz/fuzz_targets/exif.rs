//! The orientation in Exif data, applied to a picture whose pixels all differ. Whatever the data
//! holds: the same pixels, each once.

#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use towebp_pipeline::image::{Image, Layout, orient};

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (width, height, exif) = input;
    let (width, height) = (u32::from(width % 70) + 1, u32::from(height % 70) + 1);
    let pixels = (0..width * height).flat_map(|i| [i as u8, (i >> 8) as u8, 7]);
    let before = Image {
        width,
        height,
        layout: Layout::Rgb,
        pixels: pixels.collect(),
    };
    let after = orient(before.clone(), exif);
    assert!(
        (after.width, after.height) == (width, height)
            || (after.width, after.height) == (height, width)
    );
    let sorted = |image: &Image| {
        let mut pixels = image.pixels.as_chunks::<3>().0.to_vec();
        pixels.sort_unstable();
        pixels
    };
    assert_eq!(sorted(&after), sorted(&before));
});
