//! The lossless encoder over sizes, contents and options. Whatever comes in: no panic, the same bytes with and without vector
//! instructions and for another number of threads, and an independent decoder that gives back every pixel.

#![no_main]

mod content;

use content::{AnyEffort, Content, Sides, Threads};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use towebp::webp::{self, Layout, Mode, Options, Picture, Simd};

fuzz_target!(|input: Input| input.check());

#[derive(Arbitrary, Debug)]
struct Input {
    effort: AnyEffort,
    exact: bool,
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
            mode: Mode::Lossless,
            effort: self.effort.0,
            exact: self.exact,
            simd: Simd::SCALAR,
            ..Options::with_quality(100)
        };
        let other = Options {
            simd: Simd::detect(),
            threads: self.threads.0,
            ..scalar
        };
        let file = webp::encode(&picture, &scalar).expect("a good picture is encoded");
        let again = webp::encode(&picture, &other).expect("a good picture is encoded");
        assert!(file == again, "other bytes with {other:?}");
        check_decoded(&picture, &file, self.exact);
    }
}

/// Every pixel is what it was, as far as anybody sees it.
fn check_decoded(picture: &Picture<'_>, file: &[u8], exact: bool) {
    let mut decoder =
        image_webp::WebPDecoder::new(Cursor::new(file)).expect("the container is in order");
    assert_eq!(decoder.dimensions(), (picture.width, picture.height));
    let mut decoded = vec![0; decoder.output_buffer_size().expect("a picture of 64 bits")];
    decoder.read_image(&mut decoded).expect("it decodes");
    let seen = |pixel: &[u8]| match *pixel {
        [_, _, _, 0] if !exact => [0; 4],
        [red, green, blue, alpha] => [red, green, blue, alpha],
        [red, green, blue] => [red, green, blue, 255],
        _ => unreachable!("three or four channels"),
    };
    let channels = if decoder.has_alpha() { 4 } else { 3 };
    let before = picture.pixels.chunks_exact(picture.layout.channels());
    let after = decoded.chunks_exact(channels);
    assert!(before.map(seen).eq(after.map(seen)), "another picture");
}
