//! The decision pass of the efforts `high` and `max`: several passes, each of which knows what the
//! one before did to the picture. RFC 6386 leaves all of it to the encoder.
//!
//! After each pass but the last, the picture is decoded as it will be seen, loop filter included,
//! and compared with the source. The comparison gives the next pass
//! - the picture to aim at, which lies a little beyond the source where the pass fell short of it
//!   ([`feedback`]),
//! - lambdas by macroblock, lower where errors show, and weights of the errors of blocks
//!   ([`visibility`]), averaged with those of the pass before,
//! - the coefficient costs.
//!
//! All three are free: the file has no bits for them.
//!
//! Segments stay. Clustering macroblocks again before the last pass, by activity and by what the
//! passes showed, costs 0.3 to 0.6 % at equal SSIMULACRA2 and 0.3 to 1.9 % by Butteraugli. Of
//! constants by picture, each of eight tried would save 0.2 to 0.8 % if the best of three values
//! were known beforehand.

mod feedback;
mod visibility;

pub use visibility::DAMAGE_BYTES;

use super::loop_filter::{FilterParameters, decoder};
use super::mode_decision::ModeSearch;
use super::row::MacroblockRow;
use super::token_counts::TokenCounts;
use super::wavefront::{self, DecisionPass};
use crate::EncodeError;
use crate::threads::Workers;
use crate::ycbcr::Planes;

/// Passes before the last. On photographs at effort `high`, a second one saves 0.2 % at equal
/// SSIMULACRA2; a third one costs 0.2 % by the mean of judges.
const PASSES: usize = 2;

/// Decides on all macroblocks. `last` holds the options of the last pass, `search` those of the
/// passes before it. They show where the last one will err: searching further there saves nothing.
///
/// Of what `high` gains over one pass with its own search, the lambdas by macroblock make 0.4 % of
/// bytes by the mean of judges (`benches/peers`), the target beyond the source 0.3 %, and weights
/// of blocks 0.5 %.
pub fn decide(
    last: &DecisionPass<'_>,
    search: ModeSearch,
    reconstruction: Option<&mut Planes>,
) -> Result<(Vec<MacroblockRow>, TokenCounts), EncodeError> {
    let DecisionPass {
        source,
        segmentation,
        constants,
        workers,
        ..
    } = *last;
    let filter = FilterParameters::choose(segmentation, constants);
    let mut target = copy(source, workers)?;
    let mut expected_counts = None;
    let mut visibilities = Vec::new();
    let mut shown = Planes::new(source.width as usize, source.height as usize);
    for _ in 0..PASSES {
        let pass = DecisionPass {
            source: &target,
            search,
            expected_counts: expected_counts.as_ref(),
            visibilities: &visibilities,
            keep_levels: false,
            ..*last
        };
        let (rows, counts) = wavefront::decide(&pass, Some(&mut shown))?;
        filter_rows(&mut shown, &rows, &filter, workers)?;
        feedback::add(source, &shown, &mut target, workers)?;
        let seen = visibility::visibilities(source, &shown, segmentation, constants, workers)?;
        visibilities = visibility::average(&visibilities, seen);
        expected_counts = Some(counts);
    }
    drop(shown);
    let pass = DecisionPass {
        source: &target,
        expected_counts: expected_counts.as_ref(),
        visibilities: &visibilities,
        ..*last
    };
    wavefront::decide(&pass, reconstruction)
}

fn copy(planes: &Planes, workers: Workers<'_>) -> Result<Planes, EncodeError> {
    let [u, v] = &planes.chroma;
    Ok(Planes {
        luma: workers.copy(&planes.luma)?,
        chroma: [workers.copy(u)?, workers.copy(v)?],
        ..*planes
    })
}

/// Filters `planes`, the reconstruction of the decisions `rows`, as decoders do.
fn filter_rows(
    planes: &mut Planes,
    rows: &[MacroblockRow],
    filter: &FilterParameters,
    workers: Workers<'_>,
) -> Result<(), EncodeError> {
    for (mb_y, row) in rows.iter().enumerate() {
        workers.check()?;
        // Filtering a row changes three rows of pixels above it, and none below.
        decoder::filter_row(planes, mb_y, &row.records, filter);
    }
    Ok(())
}
