//! The mode decision as one region of code that may use AVX2 (RFC 6386, sections 11 and 12).
#![expect(unsafe_code, reason = "a call into a function that needs AVX2")]

use super::{Situation, decide_with};
use crate::webp::cpu::Avx2;
use crate::webp::vp8::macroblock::{Coding, Pixels};
use crate::webp::vp8::rate::BitCost;

/// [`decide`](super::decide) with AVX2.
pub fn decide(
    avx2: Avx2,
    situation: &Situation<'_>,
    coding: &mut Coding,
    pixels: &mut Pixels,
) -> BitCost {
    // SAFETY: an `Avx2` exists only where its `detect` found all of these instructions.
    unsafe { region(avx2, situation, coding, pixels) }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
fn region(
    avx2: Avx2,
    situation: &Situation<'_>,
    coding: &mut Coding,
    pixels: &mut Pixels,
) -> BitCost {
    decide_with(avx2, situation, coding, pixels)
}
