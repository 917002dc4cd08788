//! The inputs that fuzzing has found to be worth keeping, through the same targets once more. None
//! of them makes a target panic; what each target holds is written in its own file.

#[path = "../../fuzz/fuzz_targets/animation.rs"]
mod animation;
#[path = "../../fuzz/fuzz_targets/color.rs"]
mod color;
#[path = "../../fuzz/fuzz_targets/decode.rs"]
mod decode;
#[path = "../../fuzz/fuzz_targets/front_door.rs"]
mod front_door;
#[path = "../../fuzz/fuzz_targets/metadata.rs"]
mod metadata;
#[path = "../../fuzz/fuzz_targets/multipart.rs"]
mod multipart;
#[path = "../../fuzz/fuzz_targets/parameters.rs"]
mod parameters;
#[path = "../../fuzz/fuzz_targets/vp8l_encode.rs"]
mod vp8l_encode;
#[path = "../../fuzz/fuzz_targets/webp_encode.rs"]
mod webp_encode;

use std::fs;
use std::panic::catch_unwind;

/// In place of the one of libFuzzer, whose C++ no test compiles: a target becomes a function. An
/// input that is not plain bytes is made of them as libFuzzer's macro makes it.
#[macro_export]
macro_rules! fuzz_target {
    (|$input:ident: &[u8]| $body:block) => {
        pub fn run($input: &[u8]) $body
    };
    (|$input:ident: $kind:ty| $body:expr) => {
        pub fn run(bytes: &[u8]) {
            let bytes = ::arbitrary::Unstructured::new(bytes);
            if let Ok($input) = <$kind as ::arbitrary::Arbitrary>::arbitrary_take_rest(bytes) {
                $body
            }
        }
    };
}

/// The inputs of `fuzz/corpora`, as `scripts/fuzz` packs them.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let path = format!("{}/fuzz/corpora/{target}.zlib", env!("CARGO_MANIFEST_DIR"));
    let packed = fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let stream = fdeflate::decompress_to_vec(&packed).expect("it is a stream of zlib");
    let mut rest = &stream[..];
    let mut inputs = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk() {
        let (input, after) = after.split_at(u32::from_le_bytes(*length) as usize);
        inputs.push(input.to_vec());
        rest = after;
    }
    inputs
}

fn replay(target: &str, run: fn(&[u8])) {
    let inputs = corpus(target);
    assert!(inputs.len() > 100, "{target} has {} inputs", inputs.len());
    for input in &inputs {
        let outcome = catch_unwind(|| run(input));
        assert!(outcome.is_ok(), "{target} fails for {input:?}");
    }
}

/// Tests that replay the corpora of these targets.
macro_rules! replayed {
    ($($target:ident)*) => {
        $(
            #[test]
            fn $target() {
                replay(stringify!($target), $target::run);
            }
        )*
    };
}

replayed! {
    animation
    color
    decode
    front_door
    metadata
    multipart
    parameters
    vp8l_encode
    webp_encode
}
