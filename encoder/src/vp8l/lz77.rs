//! Copies found by a single look at each place: RFC 9649, section 3.6.2.2.

use super::distance::{DistanceCodes, MAX_DISTANCE};
use super::prefix::MAX_LENGTH;
use super::token::Tokens;
use crate::EncodeError;
use crate::threads::Workers;

/// Pixels between two questions to the caller: a millisecond, about.
pub const PIXELS_A_QUESTION: usize = 1 << 15;

/// How many of the pixels from `a` and from `b` on are alike, `limit` at most. `a` lies before `b`.
#[inline]
pub fn match_length(pixels: &[u32], a: usize, b: usize, limit: usize) -> usize {
    const AT_ONCE: usize = 8;
    let ahead = &pixels[b..b + limit];
    let back = &pixels[a..a + limit];
    let mut length = 0;
    for (ahead, back) in ahead.chunks_exact(AT_ONCE).zip(back.chunks_exact(AT_ONCE)) {
        if ahead != back {
            break;
        }
        length += AT_ONCE;
    }
    let rest = ahead[length..].iter().zip(&back[length..]);
    length + rest.take_while(|(ahead, back)| ahead == back).count()
}

/// Tokens from left to right, always the longest copy of those that are looked at: from the row above, the pixel
/// before, and where the same three pixels were last.
pub fn quick(pixels: &[u32], width: usize, workers: Workers<'_>) -> Result<Tokens, EncodeError> {
    const LEAST_HASH_BITS: u32 = 8;
    const MOST_HASH_BITS: u32 = 15;
    /// Shorter ones from far away take more bits than their pixels do.
    const LEAST: usize = 3;
    let codes = DistanceCodes::new(width);
    // As many places as a small image has pixels, about.
    let hash_bits = pixels.len().max(1).ilog2();
    let hash_bits = hash_bits.clamp(LEAST_HASH_BITS, MOST_HASH_BITS);
    let mut last = vec![Last::default(); 1 << hash_bits];
    let mut tokens = Tokens::default();
    let mut i = 0;
    let mut asked = 0;
    while i < pixels.len() {
        if i >= asked {
            workers.check()?;
            asked = i + PIXELS_A_QUESTION;
        }
        let limit = (pixels.len() - i).min(MAX_LENGTH);
        if limit < LEAST {
            tokens.push_literal();
            i += 1;
            continue;
        }
        let (mut length, mut distance) = (0, 0);
        let mut consider = |from: usize| {
            if pixels[from] != pixels[i]
                || pixels[from + length.min(limit - 1)] != pixels[i + length.min(limit - 1)]
            {
                return;
            }
            let found = match_length(pixels, from, i, limit);
            if found > length {
                (length, distance) = (found, i - from);
            }
        };
        if i >= width {
            consider(i - width);
        }
        if i > 0 && width > 1 {
            consider(i - 1);
        }
        let here = Last::at(pixels, i);
        let found = std::mem::replace(&mut last[here.slot(hash_bits)], here);
        if found.mixed == here.mixed && found.end > 0 && i - found.begin() <= MAX_DISTANCE {
            consider(found.begin());
        }
        if length < LEAST {
            tokens.push_literal();
            i += 1;
            continue;
        }
        tokens.push_copy(length, codes.code(distance));
        // The first pixels of a copy, and its last: what comes next is found from there.
        let end = i + length;
        let inside = (i + 1..end.min(i + 4)).chain(end.saturating_sub(2).max(i + 4)..end);
        for at in inside {
            if at + LEAST <= pixels.len() {
                let here = Last::at(pixels, at);
                last[here.slot(hash_bits)] = here;
            }
        }
        i = end;
    }
    Ok(tokens)
}

/// Where three pixels were last.
#[derive(Clone, Copy, Default)]
struct Last {
    /// All three, mixed: others are all but never the same, and so pixels far back are looked at only where they are alike.
    mixed: u32,
    /// The position behind the first of them, 0 for none.
    end: u32,
}

impl Last {
    #[inline]
    fn at(pixels: &[u32], i: usize) -> Last {
        let mixed = pixels[i].wrapping_mul(0x9E37_79B1)
            ^ pixels[i + 1].wrapping_mul(0x85EB_CA77).rotate_left(11)
            ^ pixels[i + 2].wrapping_mul(0xC2B2_AE3D).rotate_left(19);
        Last {
            mixed,
            end: i as u32 + 1,
        }
    }

    #[inline]
    fn slot(self, hash_bits: u32) -> usize {
        (self.mixed.wrapping_mul(0x27D4_EB2F) >> (32 - hash_bits)) as usize
    }

    #[inline]
    fn begin(self) -> usize {
        self.end as usize - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vp8l::token::Token;

    #[test]
    fn lengths_of_what_is_alike() {
        let pixels: Vec<u32> = (0..100).map(|i| i % 30).collect();
        for limit in 0..=70 {
            assert_eq!(match_length(&pixels, 0, 30, limit), limit);
            assert_eq!(match_length(&pixels, 1, 30, limit), 0);
        }
        let mut broken = pixels.clone();
        for at in 30..60 {
            broken[at] = 99;
            assert_eq!(match_length(&broken, 0, 30, 40), at - 30);
            broken[at] = pixels[at];
        }
    }

    #[test]
    fn rows_runs_and_repetitions_become_copies() {
        let quick = |pixels: &[u32], width| {
            let tokens = quick(pixels, width, Workers::unlimited(1));
            tokens.expect("nothing cancels it").0
        };
        // A run: distance code 2 is the pixel to the left.
        let expected = [Token::literals(1), Token::copy(8, 2)];
        assert_eq!(quick(&[5; 9], 9), expected);
        // The row above: 1.
        let expected = [Token::literals(5), Token::copy(5, 1)];
        assert_eq!(quick(&[1, 2, 3, 4, 5, 1, 2, 3, 4, 5], 5), expected);
        // Ten pixels back in wide rows: 10 and the 120 codes for what is near.
        let word = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
        let expected = [Token::literals(10), Token::copy(10, 130)];
        assert_eq!(quick(&[word, word].concat(), 1000), expected);
    }
}
