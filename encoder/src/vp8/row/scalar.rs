//! The decision on a row with the scalar kernels (RFC 6386, sections 5, 11 and 12).

use super::{MacroblockRow, PictureContext, Span, decide_with};
use crate::vp8::block::Scalar;
use crate::vp8::macroblock::AboveContext;
use crate::vp8::mode_decision::ModeSearch;
use crate::vp8::token_counts::TokenCounts;

/// [`decide`](super::decide) with the scalar kernels.
pub fn decide(
    picture: &PictureContext<'_>,
    search: ModeSearch,
    span: Span,
    above_context: impl Fn(usize) -> Option<AboveContext>,
    publish: impl Fn(usize, AboveContext),
    counts: &mut TokenCounts,
) -> MacroblockRow {
    decide_with(
        Scalar,
        picture,
        search,
        span,
        above_context,
        publish,
        counts,
    )
}
