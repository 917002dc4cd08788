//! Looks for the quality by which a picture meets a [`Goal`], in a few encodings.
//!
//! Before each encoding, the [`Model`] predicts from the earlier ones which quality comes nearest.
//! Bytes and scores rise with quality, so that each encoding also bounds the rest from one side.
//! Over 100 photographs and screenshots it takes some two encodings; benches/README.md has the
//! figures.

mod model;
mod player;
mod score;

use super::error::ConversionError;
use super::goal::Goal;
use model::{Curve, Model};
use towebp_encoder::{Activity, Coding, Encoded};

pub(super) use player::Player;
pub(super) use score::{compare, score, scoring_memory};

/// The most encodings of a search, the lossless one for a score that no quality reaches not
/// counted.
pub(super) const MOST_ENCODINGS: usize = 5;

/// The encodings among which a search chooses.
pub(super) trait Candidates {
    /// The picture at a quality, 0 to 100.
    fn encode_at(&mut self, quality: u8) -> Result<Encoded, ConversionError>;

    /// The picture without loss, if its mode allows that.
    fn lossless(&mut self) -> Option<Result<Encoded, ConversionError>>;

    /// How near a file is to the picture: the score of SSIMULACRA2, at most 100.
    fn score(&mut self, encoded: &Encoded) -> Result<f64, ConversionError>;
}

/// The file of a search.
#[derive(Debug)]
pub(super) struct Found {
    pub encoded: Encoded,
    /// The quality of its lossy pixels; `None` if there are none.
    pub quality: Option<u8>,
    /// Its score, if the goal is one.
    pub score: Option<f64>,
    /// The number of encodings.
    pub encodings: u8,
}

/// The properties of a picture that are known before it is encoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// The pixels of the picture, or of a canvas.
    pub pixels: u64,
    /// How busy it is; `None` for animations.
    pub activity: Option<Activity>,
    /// Whether no quality has an effect, since no pixel is coded lossy.
    pub is_lossless: bool,
}

/// Looks for the best file that meets `goal`.
///
/// # Errors
/// [`ConversionError::MaxBytes`] if no file is small enough and that is not accepted; those of the
/// candidates.
pub(super) fn search(
    goal: Goal,
    facts: Facts,
    candidates: &mut impl Candidates,
) -> Result<Found, ConversionError> {
    let mut search = Search::new(goal, facts);
    // The best file that meets the goal, and the file that comes nearest to it.
    let (mut met, mut nearest): (Option<Found>, Option<Found>) = (None, None);
    while let Some(quality) = search.next_quality() {
        let encoded = candidates.encode_at(quality)?;
        let score = match goal {
            Goal::Score(_) => Some(candidates.score(&encoded)?),
            Goal::MaxBytes { .. } => None,
        };
        let is_met = search.learn(quality, &encoded, score);
        let found = Found {
            quality: (encoded.coding != Coding::Lossless).then_some(quality),
            encoded,
            score,
            encodings: search.encodings,
        };
        if is_met {
            met = Some(found);
        } else if search.is_nearest(quality) {
            nearest = Some(found);
        }
    }
    let encodings = search.encodings;
    if let Some(found) = met {
        return Ok(Found { encodings, ..found });
    }
    let nearest = nearest.expect("the first quality was met, or is the nearest one");
    match goal {
        Goal::Score(_) => match candidates.lossless() {
            Some(lossless) => {
                let encoded = lossless?;
                Ok(Found {
                    score: Some(candidates.score(&encoded)?),
                    encoded,
                    quality: None,
                    encodings: encodings + 1,
                })
            }
            None => Ok(nearest),
        },
        Goal::MaxBytes {
            is_best_effort: true,
            ..
        } => Ok(nearest),
        Goal::MaxBytes { bytes, .. } => Err(ConversionError::MaxBytes {
            allowed: bytes,
            least: nearest.encoded.file.len() as u64,
        }),
    }
}

/// The state of a search.
struct Search {
    goal: Goal,
    facts: Facts,
    model: Model,
    encodings: u8,
    /// The qualities that are not ruled out: those from the first up to but without the second.
    from: u8,
    until: u8,
    /// Whether an encoding met the goal. It is the one beside the remaining qualities.
    is_met: bool,
    /// The value of that encoding, on the curve of the goal; `None` if it is lossless.
    value: Option<f64>,
    /// How many encodings came out lossless.
    lossless: u8,
}

impl Search {
    fn new(goal: Goal, facts: Facts) -> Search {
        Search {
            goal,
            facts,
            model: Model::new(facts.activity),
            encodings: 0,
            from: 0,
            until: 101,
            is_met: false,
            value: None,
            lossless: 0,
        }
    }

    /// The quality to try next; `None` once the search is over.
    fn next_quality(&self) -> Option<u8> {
        let tried = usize::from(self.encodings);
        if self.from >= self.until || tried == MOST_ENCODINGS {
            return None;
        }
        let (first, last) = (self.from, self.until - 1);
        if self.facts.is_lossless {
            return (tried == 0).then_some(last);
        }
        if self.is_met && self.is_good_enough() {
            return None;
        }
        if matches!(self.goal, Goal::Score(_)) && tried > 0 && self.lossless == self.encodings {
            // Lossy coding took no fewer bytes. Somewhat worse, it may.
            return Some(first.max(self.until.saturating_sub(BELOW_LOSSLESS)));
        }
        let is_last_chance = tried + 1 == MOST_ENCODINGS && !self.is_met;
        let values = self.model.curve(self.curve());
        let limit = self.limit();
        let mut qualities = first..=last;
        let (found, farthest) = match self.goal {
            Goal::MaxBytes { .. } => {
                let fits = |quality: &u8| values[usize::from(*quality)] <= limit - BYTES_MARGIN;
                (qualities.rfind(fits), first)
            }
            Goal::Score(_) => {
                let reaches = |quality: &u8| values[usize::from(*quality)] >= limit + SCORE_MARGIN;
                (qualities.find(reaches), last)
            }
        };
        let step = if self.is_met {
            0
        } else {
            (self.until - self.from) / steps(tried)
        };
        match (found, self.goal) {
            _ if is_last_chance => Some(farthest),
            // All remaining ones are expected not to meet the goal.
            (None, _) if self.is_met => None,
            (None, _) => Some(farthest),
            (Some(quality), Goal::MaxBytes { .. }) => Some(quality.min(last - step)),
            (Some(quality), Goal::Score(_)) => Some(quality.max(first + step)),
        }
    }

    /// Takes an encoding in, and returns whether it meets the goal.
    fn learn(&mut self, quality: u8, encoded: &Encoded, score: Option<f64>) -> bool {
        self.encodings += 1;
        let bytes = encoded.file.len() as u64;
        let is_lossless = encoded.coding == Coding::Lossless;
        let log2_bits = (bytes as f64 * 8.0 / self.facts.pixels.max(1) as f64).log2();
        if is_lossless {
            self.lossless += 1;
        } else {
            self.model.observe(Curve::Bits, quality, log2_bits);
            if let Some(score) = score {
                self.model.observe(Curve::Score, quality, score);
            }
        }
        let (is_met, below) = match self.goal {
            // A file of lower quality that is larger is no better choice.
            Goal::MaxBytes { bytes: most, .. } => (bytes <= most, bytes > most),
            Goal::Score(least) => {
                let is_met = score.is_some_and(|score| score >= f64::from(least));
                (is_met, is_met)
            }
        };
        if below {
            self.until = quality;
        } else {
            self.from = quality + 1;
        }
        if is_met {
            self.is_met = true;
            self.value = match self.goal {
                _ if is_lossless => None,
                Goal::MaxBytes { .. } => Some(log2_bits),
                Goal::Score(_) => score,
            };
        }
        is_met
    }

    /// Whether an encoding that does not meet the goal is the nearest one so far: all others are
    /// farther on the same side.
    fn is_nearest(&self, quality: u8) -> bool {
        match self.goal {
            Goal::MaxBytes { .. } => quality == self.until,
            Goal::Score(_) => quality + 1 == self.from,
        }
    }

    /// Whether the encoding that met the goal is so close to the limit that another one would
    /// hardly be better.
    fn is_good_enough(&self) -> bool {
        let Some(value) = self.value else {
            return match self.goal {
                // Nothing looks better.
                Goal::MaxBytes { .. } => true,
                Goal::Score(_) => self.lossless > 1,
            };
        };
        match self.goal {
            Goal::MaxBytes { .. } => self.limit() - value <= BYTES_TOLERANCE,
            Goal::Score(_) => {
                let values = self.model.curve(Curve::Score);
                let worse = values[usize::from(self.until.saturating_sub(SCORE_STEPS))];
                value - self.limit() <= SCORE_TOLERANCE || worse < self.limit()
            }
        }
    }

    fn curve(&self) -> Curve {
        match self.goal {
            Goal::MaxBytes { .. } => Curve::Bits,
            Goal::Score(_) => Curve::Score,
        }
    }

    /// The limit on the curve of the goal.
    fn limit(&self) -> f64 {
        match self.goal {
            Goal::MaxBytes { bytes, .. } => {
                (bytes as f64 * 8.0 / self.facts.pixels.max(1) as f64).log2()
            }
            Goal::Score(least) => f64::from(least),
        }
    }
}

/// The part of the remaining qualities that is passed over at least, after so many encodings of
/// which none met the goal, as a divisor. Where a curve is far from the model, that keeps the
/// search from creeping up to the limit. Once the goal is met, the search only comes closer:
/// passing over qualities then, too, took 2.15 encodings for a target instead of 2.11, and 2.16 for
/// bytes instead of 2.07, and came less close (means over 84 small pictures).
fn steps(tried: usize) -> u8 {
    match tried {
        0 | 1 => u8::MAX,
        2 => 4,
        _ => 3,
    }
}

// The constants are a compromise between the number of encodings and how near they come to the
// limit, found on recorded curves of the pictures that the model is made of, in six parts of which
// each was left out of its own model.

/// The part of an octave by which bytes are to be below the limit, as expected.
const BYTES_MARGIN: f64 = 0.015;
/// The part of an octave below the limit that is not worth another encoding: 4 %.
const BYTES_TOLERANCE: f64 = 0.06;
/// The points by which scores are to be above the limit, as expected.
const SCORE_MARGIN: f64 = 0.3;
/// The points above the limit that are not worth another encoding.
const SCORE_TOLERANCE: f64 = 0.6;
/// The search ends if a quality that is lower by so much is expected to miss the limit.
const SCORE_STEPS: u8 = 2;
/// The step down from a quality whose lossy file is larger than the lossless one.
const BELOW_LOSSLESS: u8 = 12;

#[cfg(test)]
mod tests;
