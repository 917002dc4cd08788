//! The functions of `scalar.rs` compiled as regions that may use AVX2 (RFC 9649, section 3.5.1).
#![expect(unsafe_code, reason = "calls into functions that need AVX2")]

use super::{Costs, Rows, scalar};
use crate::cpu::Avx2;

/// [`scalar::residual`].
pub fn residual(_: Avx2, mode: u8, rows: &Rows<'_>, out: &mut [u8]) {
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
    fn region(mode: u8, rows: &Rows<'_>, out: &mut [u8]) {
        scalar::residual(mode, rows, out);
    }
    // SAFETY: an `Avx2` exists only where its `detect` found all of these instructions.
    unsafe { region(mode, rows, out) }
}

/// [`scalar::add_costs`].
pub fn add_costs(_: Avx2, rows: &Rows<'_>, block: usize, scratch: &mut [u8], costs: &mut [Costs]) {
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
    fn region(rows: &Rows<'_>, block: usize, scratch: &mut [u8], costs: &mut [Costs]) {
        scalar::add_costs(rows, block, scratch, costs);
    }
    // SAFETY: as above.
    unsafe { region(rows, block, scratch, costs) }
}
