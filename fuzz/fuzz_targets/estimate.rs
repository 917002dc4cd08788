//! The estimate of memory. Whatever file comes in, and however it is to be converted: no more bytes
//! are held than were estimated, nor more than a few while they are.

#![cfg_attr(fuzzing, no_main)]

#[path = "../../tests/support/counting.rs"]
#[allow(dead_code, reason = "all threads are counted together")]
mod counting;

use counting::peak_of_process;
use libfuzzer_sys::arbitrary::{self, Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use std::num::NonZeroUsize;
use std::sync::Once;
use towebp_pipeline::conversion::{self, Cancel, CpuBudget, Fonts, Job, Params};
use towebp_pipeline::image::{Format, Limits};

/// Small, so that most of the time goes into the readers and not into pixels.
const LIMITS: Limits = Limits {
    max_side: 4000,
    max_pixels: 200_000,
    max_frames: 20,
    max_animation_pixels: 1_000_000,
};

/// The most bytes that an estimate may hold itself.
const ESTIMATING: u64 = 256 << 10;

fuzz_target!(|input: Input| {
    // As in `decode`: the product catches panics of decoders.
    static QUIET: Once = Once::new();
    QUIET.call_once(|| std::panic::set_hook(Box::new(|panic| eprintln!("{panic}"))));
    input.check();
});

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    /// Which of the parameters below are given.
    parameters: u32,
    threads: Threads,
    /// The picture is its own watermark, too.
    is_marked: bool,
    file: &'a [u8],
}

/// At most one of each name counts.
const PARAMETERS: &[(&str, &str)] = &[
    ("mode", "lossless"),
    ("mode", "lossy"),
    ("mode", "auto"),
    ("effort", "low"),
    ("effort", "high"),
    ("effort", "max"),
    ("quality", "0"),
    ("quality", "100"),
    ("metadata", "keep"),
    ("animation", "first"),
    ("alpha_quality", "20"),
    ("near_lossless", "30"),
    ("watermark", "towebp"),
    ("watermark_size", "200"),
    ("watermark_scale", "100"),
    ("watermark_rotate", "33"),
    ("watermark_tile", "true"),
    ("watermark_outline", "shadow"),
    ("width", "7"),
    ("width", "150"),
    ("width", "900"),
    ("height", "3"),
    ("height", "200"),
    ("fit", "cover"),
    ("fit", "fill"),
    ("gravity", "bottom-right"),
    ("enlarge", "true"),
    ("dpr", "1.7"),
    ("max_bytes", "300"),
    ("best_effort", "true"),
    ("target", "70"),
    ("watermark_size", "auto"),
];

impl Input<'_> {
    fn check(&self) {
        let Some(format) = Format::sniff(self.file) else {
            return;
        };
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for (bit, pair) in PARAMETERS.iter().enumerate() {
            let is_new = pairs.iter().all(|(name, _)| *name != pair.0);
            if self.parameters >> bit & 1 == 1 && is_new {
                pairs.push(*pair);
            }
        }
        let Ok(params) = Params::parse(pairs.into_iter()) else {
            return;
        };
        let cpu_budget = CpuBudget::new(NonZeroUsize::new(self.threads.0).expect("not zero"));
        let job = Job {
            bytes: self.file,
            format,
            params: &params,
            watermark_picture: self.is_marked.then_some(self.file),
            fonts: Fonts::bundled(),
            limits: &LIMITS,
            threads: self.threads.0,
            cpu_budget: Some(&cpu_budget),
            cancel: &Cancel::never(),
        };
        let (estimated, held) = peak_of_process(|| conversion::memory(&job));
        assert!(held <= ESTIMATING, "{held} bytes to estimate");
        if let Ok(estimated) = estimated {
            let (_, held) = peak_of_process(|| conversion::run(&job));
            assert!(
                held <= estimated,
                "{held} bytes, estimated were {estimated}"
            );
        }
    }
}

/// 1 to 4.
#[derive(Debug)]
struct Threads(usize);

impl<'a> Arbitrary<'a> for Threads {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        bytes.int_in_range(1..=4).map(Threads)
    }
}
