//! The encoder over sizes, contents and options. Whatever comes in: no panic, the same bytes with and without vector
//! instructions and for another number of threads, and an independent decoder that gives back the size, the alpha
//! channel and the very samples that the encoder reconstructed.

#![no_main]

mod content;
mod still;

use content::{AnyEffort, Threads};
use libfuzzer_sys::arbitrary::{self, Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use still::{Still, before_and_after};
use towebp_encoder::{self as webp, Options, Simd};

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
        let scalar = Options {
            effort: self.effort.0,
            log2_partitions: self.log2_partitions.as_ref().map(|log2| log2.0),
            simd: Simd::SCALAR,
            ..Options::lossy(self.quality.0)
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
        let is_same = before_and_after(&picture, &file).all(|(a, b)| a[3] == b[3]);
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
