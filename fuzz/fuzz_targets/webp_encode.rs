//! The encoder over sizes, contents and options. Whatever comes in: no panic, the same bytes with
//! and without vector instructions and for another number of threads, and an independent decoder
//! that gives back the size, the alpha channel and the very samples that the encoder reconstructed.

#![cfg_attr(fuzzing, no_main)]

use fuzz::content::{AnyEffort, Threads};
use fuzz::still::{Still, before_and_after};
use libfuzzer_sys::arbitrary::{self, Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use towebp_encoder::{Encoder, Simd};

fuzz_target!(|input: Input| input.check());

#[derive(Arbitrary, Debug)]
struct Input {
    quality: Quality,
    effort: AnyEffort,
    log2_partitions: Option<Partitions>,
    threads: Threads,
    still: Still,
}

impl Input {
    fn check(&self) {
        let pixels = self.still.pixels();
        let picture = self.still.picture(&pixels);
        let mut scalar = Encoder::lossy(self.quality.0)
            .effort(self.effort.0)
            .simd(Simd::SCALAR);
        if let Some(Partitions(log2)) = self.log2_partitions {
            scalar = scalar.log2_partitions(log2);
        }
        let other = scalar.simd(Simd::detect()).threads(self.threads.0);
        let frame = scalar.assert_decoders_agree(&picture);
        let encoded = other.encode(&picture);
        let file = encoded.expect("a good picture is encoded").file;
        assert!(
            file.windows(frame.len()).any(|part| part == frame),
            "other bytes with {other:?}"
        );
        let is_same = before_and_after(&picture, &pixels, &file).all(|(a, b)| a[3] == b[3]);
        assert!(is_same, "another alpha channel");
    }
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
