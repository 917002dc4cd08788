//! The decisions on a row as one region of code that may use AVX2 (RFC 6386, sections 5, 11 and 12).
#![expect(unsafe_code, reason = "a call into a function that needs AVX2")]

use super::{Context, Row, Span, decide_with};
use crate::cpu::Avx2;
use crate::vp8::macroblock::Bottom;
use crate::vp8::mode_decision::Search;
use crate::vp8::token_counts::TokenCounts;

/// [`decide`](super::decide) with AVX2.
pub fn decide(
    avx2: Avx2,
    context: &Context<'_>,
    search: Search,
    span: Span,
    above: impl Fn(usize) -> Option<Bottom>,
    publish: impl Fn(usize, Bottom),
    counts: &mut TokenCounts,
) -> Row {
    // SAFETY: an `Avx2` exists only where its `detect` found all of these instructions.
    unsafe { region(avx2, context, search, span, above, publish, counts) }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
fn region(
    avx2: Avx2,
    context: &Context<'_>,
    search: Search,
    span: Span,
    above: impl Fn(usize) -> Option<Bottom>,
    publish: impl Fn(usize, Bottom),
    counts: &mut TokenCounts,
) -> Row {
    decide_with(avx2, context, search, span, above, publish, counts)
}
