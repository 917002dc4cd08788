//! The mode decision by the kernels' definitions (RFC 6386, sections 11 and 12).

use super::{Situation, decide_with};
use crate::webp::vp8::block::Scalar;
use crate::webp::vp8::macroblock::{Coding, Pixels};
use crate::webp::vp8::rate::BitCost;

/// [`decide`](super::decide) by the kernels' definitions.
pub fn decide(situation: &Situation<'_>, coding: &mut Coding, pixels: &mut Pixels) -> BitCost {
    decide_with(Scalar, situation, coding, pixels)
}
