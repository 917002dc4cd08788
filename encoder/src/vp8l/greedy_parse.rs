//! The greedy parse, which compares few earlier positions at each pixel: RFC 9649, section 3.6.2.2.

use super::distance::{DistanceCodes, MAX_DISTANCE};
use super::match_length::match_length;
use super::prefix::MAX_LENGTH;
use super::token::Tokens;
use crate::EncodeError;
use crate::checks::Checks;
use crate::threads::Workers;

/// Parses from left to right, and always takes the longest of three copies: from the row above,
/// from the pixel before, and from the last position with the same three pixels.
pub fn parse_greedily(
    pixels: &[u32],
    width: usize,
    workers: Workers<'_>,
) -> Result<Tokens, EncodeError> {
    const MIN_HASH_BITS: u32 = 8;
    const MAX_HASH_BITS: u32 = 15;
    /// Shorter copies from far away take more bits than their pixels.
    const MIN_LENGTH: usize = 3;
    let codes = DistanceCodes::new(width);
    // About as many slots as a small image has pixels.
    let hash_bits = pixels.len().max(1).ilog2();
    let hash_bits = hash_bits.clamp(MIN_HASH_BITS, MAX_HASH_BITS);
    let mut last = vec![Occurrence::default(); 1 << hash_bits];
    let mut tokens = Tokens::default();
    let mut i = 0;
    let mut checks = Checks::new(workers);
    while i < pixels.len() {
        checks.at(i)?;
        let limit = (pixels.len() - i).min(MAX_LENGTH);
        if limit < MIN_LENGTH {
            tokens.push_literal();
            i += 1;
            continue;
        }
        let (mut length, mut distance) = (0, 0);
        let mut try_match = |from: usize| {
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
            try_match(i - width);
        }
        if i > 0 && width > 1 {
            try_match(i - 1);
        }
        let here = Occurrence::at(pixels, i);
        let found = std::mem::replace(&mut last[here.slot(hash_bits)], here);
        if found.hash == here.hash && found.end > 0 && i - found.begin() <= MAX_DISTANCE {
            try_match(found.begin());
        }
        if length < MIN_LENGTH {
            tokens.push_literal();
            i += 1;
            continue;
        }
        tokens.push_copy(length, codes.code(distance));
        // Only the first and the last pixels of a copy are recorded; what follows is found from
        // there.
        let end = i + length;
        let inside = (i + 1..end.min(i + 4)).chain(end.saturating_sub(2).max(i + 4)..end);
        for at in inside {
            if at + MIN_LENGTH <= pixels.len() {
                let here = Occurrence::at(pixels, at);
                last[here.slot(hash_bits)] = here;
            }
        }
        i = end;
    }
    Ok(tokens)
}

/// The last position of three pixels.
#[derive(Clone, Copy, Default)]
struct Occurrence {
    /// Hash of the three pixels. Other pixels almost never have the same hash, so pixels far back
    /// are read only where they match.
    hash: u32,
    /// One past the position of the first pixel; 0 is none.
    end: u32,
}

impl Occurrence {
    #[inline]
    fn at(pixels: &[u32], i: usize) -> Occurrence {
        let hash = pixels[i].wrapping_mul(0x9E37_79B1)
            ^ pixels[i + 1].wrapping_mul(0x85EB_CA77).rotate_left(11)
            ^ pixels[i + 2].wrapping_mul(0xC2B2_AE3D).rotate_left(19);
        Occurrence {
            hash,
            end: i as u32 + 1,
        }
    }

    #[inline]
    fn slot(self, hash_bits: u32) -> usize {
        (self.hash.wrapping_mul(0x27D4_EB2F) >> (32 - hash_bits)) as usize
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
    fn match_lengths() {
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
        let parse = |pixels: &[u32], width| {
            let tokens = parse_greedily(pixels, width, Workers::unlimited(1));
            tokens.expect("nothing cancels it").0
        };
        // A run: distance code 2 is the pixel to the left.
        let expected = [Token::literals(1), Token::copy(8, 2)];
        assert_eq!(parse(&[5; 9], 9), expected);
        // Distance code 1 is the row above.
        let expected = [Token::literals(5), Token::copy(5, 1)];
        assert_eq!(parse(&[1, 2, 3, 4, 5, 1, 2, 3, 4, 5], 5), expected);
        // A distance of ten pixels, in wide rows, has the code 10 + 120.
        let word = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
        let expected = [Token::literals(10), Token::copy(10, 130)];
        assert_eq!(parse(&[word, word].concat(), 1000), expected);
    }
}
