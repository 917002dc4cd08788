//! The decisions on a row by the kernels' definitions (RFC 6386, sections 5, 11 and 12).

use super::{Context, Row, Span, decide_with};
use crate::vp8::block::Scalar;
use crate::vp8::macroblock::Bottom;
use crate::vp8::mode_decision::Search;
use crate::vp8::token_counts::TokenCounts;

/// [`decide`](super::decide) by the kernels' definitions.
pub fn decide(
    context: &Context<'_>,
    search: Search,
    span: Span,
    above: impl Fn(usize) -> Option<Bottom>,
    publish: impl Fn(usize, Bottom),
    counts: &mut TokenCounts,
) -> Row {
    decide_with(Scalar, context, search, span, above, publish, counts)
}
