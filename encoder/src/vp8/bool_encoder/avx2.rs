//! The boolean encoder's loops compiled for machines with AVX2, which also have fast bit counts and
//! shifts (RFC 6386, section 7.3).
#![expect(unsafe_code, reason = "calls into functions that need them")]

use super::{Bool, BoolEncoder, scalar};
use crate::cpu::Avx2;

/// [`scalar::write_all`].
pub fn write_all(_: Avx2, encoder: &mut BoolEncoder, bools: &[Bool]) {
    // SAFETY: an `Avx2` exists only where its `detect` found all of these instructions.
    unsafe { all_region(encoder, bools) }
}

/// [`scalar::write_pairs`].
pub fn write_pairs(_: Avx2, encoders: [&mut BoolEncoder; 2], bools: [&[Bool]; 2]) {
    // SAFETY: as above.
    unsafe { pairs_region(encoders, bools) }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
fn all_region(encoder: &mut BoolEncoder, bools: &[Bool]) {
    scalar::write_all(encoder, bools);
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
fn pairs_region(encoders: [&mut BoolEncoder; 2], bools: [&[Bool]; 2]) {
    scalar::write_pairs(encoders, bools);
}
