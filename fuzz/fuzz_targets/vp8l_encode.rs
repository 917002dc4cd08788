//! The lossless encoder over sizes, contents and options. Whatever comes in: no panic, the same
//! bytes with and without vector instructions and for another number of threads, and an independent
//! decoder that gives back every pixel.

#![cfg_attr(fuzzing, no_main)]

use fuzz::content::{AnyEffort, Threads};
use fuzz::still::{Still, before_and_after};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use towebp_encoder::{Encoder, Simd};

fuzz_target!(|input: Input| input.check());

#[derive(Arbitrary, Debug)]
struct Input {
    effort: AnyEffort,
    exact: bool,
    threads: Threads,
    still: Still,
}

impl Input {
    fn check(&self) {
        let pixels = self.still.pixels();
        let picture = self.still.picture(&pixels);
        let scalar = Encoder::lossless()
            .effort(self.effort.0)
            .exact(self.exact)
            .simd(Simd::SCALAR);
        let other = scalar.simd(Simd::detect()).threads(self.threads.0);
        let [file, again] = [scalar, other].map(|encoder| {
            let encoded = encoder.encode(&picture);
            encoded.expect("a good picture is encoded").file
        });
        assert!(file == again, "other bytes with {other:?}");
        // As far as anybody sees it.
        let seen = |pixel: [u8; 4]| {
            if pixel[3] == 0 && !self.exact {
                [0; 4]
            } else {
                pixel
            }
        };
        let is_same = before_and_after(&picture, &pixels, &file).all(|(a, b)| seen(a) == seen(b));
        assert!(is_same, "another picture");
    }
}
