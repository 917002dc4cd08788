//! The encoder over sizes, contents and options. Whatever comes in: no panic, the same bytes with and without vector
//! instructions and for another number of threads, and an independent decoder that gives back the size, the alpha
//! channel and the very samples that the encoder reconstructed.

#![no_main]

mod content;

use content::{AnyEffort, Content, Sides, Threads};
use libfuzzer_sys::arbitrary::{self, Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use towebp::webp::{self, Layout, Options, Picture, Simd};

fuzz_target!(|input: Input| input.check());

#[derive(Arbitrary, Debug)]
struct Input {
    quality: Quality,
    effort: AnyEffort,
    log2_partitions: Option<Partitions>,
    threads: Threads,
    sides: Sides,
    has_alpha: bool,
    content: Content,
}

impl Input {
    fn check(&self) {
        let Sides { width, height } = self.sides;
        let layout = if self.has_alpha {
            Layout::Rgba
        } else {
            Layout::Rgb
        };
        let pixels = self.content.pixels(width, height, layout.channels());
        let picture = Picture {
            width,
            height,
            layout,
            pixels: &pixels,
        };
        let scalar = Options {
            effort: self.effort.0,
            log2_partitions: self.log2_partitions.as_ref().map(|log2| log2.0),
            simd: Simd::SCALAR,
            ..Options::with_quality(self.quality.0)
        };
        let other = Options {
            simd: Simd::detect(),
            threads: self.threads.0,
            ..scalar
        };
        let frame = webp::assert_decoders_agree(&picture, &scalar);
        let file = webp::encode(&picture, &other).expect("a good picture is encoded");
        assert!(
            file.windows(frame.len()).any(|part| part == frame),
            "other bytes with {other:?}"
        );
        check_decoded(&picture, &file);
    }
}

/// The size is kept, and alpha to the bit.
fn check_decoded(picture: &Picture<'_>, file: &[u8]) {
    let mut decoder =
        image_webp::WebPDecoder::new(Cursor::new(file)).expect("the container is in order");
    assert_eq!(decoder.dimensions(), (picture.width, picture.height));
    let mut decoded = vec![0; decoder.output_buffer_size().expect("a picture of 64 bits")];
    decoder.read_image(&mut decoded).expect("it decodes");
    let alpha = |pixel: &[u8]| pixel.get(3).copied().unwrap_or(255);
    let channels = if decoder.has_alpha() { 4 } else { 3 };
    let before = picture.pixels.chunks_exact(picture.layout.channels());
    let same = before
        .map(alpha)
        .eq(decoded.chunks_exact(channels).map(alpha));
    assert!(same, "another alpha channel");
}

/// 0 to 100.
#[derive(Debug)]
struct Quality(u8);

impl<'a> Arbitrary<'a> for Quality {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        bytes.int_in_range(0..=100).map(Quality)
    }
}

/// 0 to 3.
#[derive(Debug)]
struct Partitions(u8);

impl<'a> Arbitrary<'a> for Partitions {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        bytes.int_in_range(0..=3).map(Partitions)
    }
}
