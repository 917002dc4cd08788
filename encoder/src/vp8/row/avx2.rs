//! The decision on a row as one region of code that may use AVX2 (RFC 6386, sections 5, 11 and 12).
#![expect(unsafe_code, reason = "a call into a function that needs AVX2")]

use super::{MacroblockRow, PictureContext, Span, decide_with};
use crate::cpu::Avx2;
use crate::vp8::macroblock::AboveContext;
use crate::vp8::mode_decision::ModeSearch;
use crate::vp8::token_counts::TokenCounts;

/// [`decide`](super::decide) with AVX2 kernels.
pub fn decide(
    avx2: Avx2,
    picture: &PictureContext<'_>,
    search: ModeSearch,
    span: Span,
    above_context: impl Fn(usize) -> Option<AboveContext>,
    publish: impl Fn(usize, AboveContext),
    counts: &mut TokenCounts,
) -> MacroblockRow {
    // SAFETY: an `Avx2` exists only where its `detect` found all of these instructions.
    unsafe { region(avx2, picture, search, span, above_context, publish, counts) }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
fn region(
    avx2: Avx2,
    picture: &PictureContext<'_>,
    search: ModeSearch,
    span: Span,
    above_context: impl Fn(usize) -> Option<AboveContext>,
    publish: impl Fn(usize, AboveContext),
    counts: &mut TokenCounts,
) -> MacroblockRow {
    decide_with(avx2, picture, search, span, above_context, publish, counts)
}
