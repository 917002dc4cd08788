//! Writes coefficients as booleans: RFC 6386, sections 13.2 and 13.3.

use super::bool_encoder::{Bool, BoolRun};
use super::levels::{NonzeroFlags, for_each_block, unpack_block};
use super::tables::{BANDS, CoefficientProbabilities};
use super::token::{BlockKind, write_level};

/// Writes tokens with one set of probabilities.
pub struct TokenWriter<'a> {
    probabilities: &'a CoefficientProbabilities,
    /// The booleans of each token, by kind, band, context and level, from -4 to 4. They begin with
    /// "not end of block" where it is sent: in contexts 1 and 2, that is after a nonzero
    /// coefficient.
    runs: Box<[[[[BoolRun; 9]; 3]; 8]; 4]>,
}

/// The largest magnitude in the table.
const MAX_TABULATED: i16 = 4;

impl<'a> TokenWriter<'a> {
    /// Tabulates the booleans of small levels.
    pub fn new(probabilities: &'a CoefficientProbabilities) -> TokenWriter<'a> {
        let mut runs = Box::new([[[[BoolRun::EMPTY; 9]; 3]; 8]; 4]);
        for (bands, probabilities) in runs.iter_mut().zip(probabilities) {
            for (contexts, probabilities) in bands.iter_mut().zip(probabilities) {
                for (context, (runs, p)) in contexts.iter_mut().zip(probabilities).enumerate() {
                    for (level, run) in (-MAX_TABULATED..=MAX_TABULATED).zip(runs) {
                        if context > 0 {
                            run.push(Bool::new(true, p[0]));
                        }
                        write_level(level, p, &mut |value, probability| {
                            run.push(Bool::new(value, probability));
                        });
                    }
                }
            }
        }
        TokenWriter {
            probabilities,
            runs,
        }
    }

    /// Appends the blocks of a macroblock to `bools`, and updates the contexts. Takes the blocks
    /// from the front of `packed`, as [`Levels::pack`](super::levels::Levels::pack) wrote them.
    pub fn append_macroblock(
        &self,
        bools: &mut Vec<Bool>,
        packed: &mut &[u8],
        has_y2: bool,
        above: &mut NonzeroFlags,
        left: &mut NonzeroFlags,
    ) {
        for_each_block(has_y2, above, left, |kind, _, context| {
            let (levels, eob) = unpack_block(packed, kind.first());
            self.append_block(bools, kind, &levels, eob, context);
            eob
        });
    }

    /// Appends a block to `bools`. `levels` are in zigzag order and zero from `eob` on. `context`
    /// is the number of neighbors, above and to the left, that have coefficients.
    #[inline(always)]
    pub fn append_block(
        &self,
        bools: &mut Vec<Bool>,
        kind: BlockKind,
        levels: &[i16; 16],
        eob: usize,
        context: usize,
    ) {
        let probabilities = &self.probabilities[kind as usize];
        let bands = &self.runs[kind as usize];
        let first = kind.first();
        let not_eob = probabilities[BANDS[first]][context][0];
        if eob <= first {
            bools.push(Bool::new(false, not_eob));
            return;
        }
        if context == 0 {
            bools.push(Bool::new(true, not_eob));
        }
        let (mut band, mut context) = (BANDS[first], context);
        let sent = levels.iter().zip(&BANDS[1..]).take(eob).skip(first);
        for (&level, &next_band) in sent {
            if let Some(run) = bands[band][context].get((level + MAX_TABULATED) as usize) {
                run.append_to(bools);
            } else {
                let p = &probabilities[band][context];
                if context > 0 {
                    bools.push(Bool::new(true, p[0]));
                }
                write_level(level, p, &mut |value, probability| {
                    bools.push(Bool::new(value, probability));
                });
            }
            (band, context) = (next_band, usize::from(level.unsigned_abs()).min(2));
        }
        if eob < 16 {
            bools.push(Bool::new(false, probabilities[band][context][0]));
        }
    }
}
