//! Counts of the symbols of the five alphabets of RFC 9649, section 3.7.2.

use super::entropy;
use super::prefix::{self, DISTANCE_SYMBOLS, LENGTH_SYMBOLS};
use super::token::{Token, TokenImage};
use crate::EncodeError;
use crate::checks::Checks;
use crate::threads::Workers;
use std::ops::Range;

/// Start of each alphabet in a table of all symbols. Green is last, because only its size varies.
const RED: usize = 0;
const BLUE: usize = 256;
const ALPHA: usize = 512;
const DISTANCE: usize = 768;
const GREEN: usize = DISTANCE + DISTANCE_SYMBOLS;
const LENGTH: usize = GREEN + 256;
const CACHE: usize = LENGTH + LENGTH_SYMBOLS;

/// Returns the number of symbols of all alphabets with a color cache of `2^cache_bits` entries; 0
/// is no cache.
pub fn symbol_count(cache_bits: u32) -> usize {
    CACHE + if cache_bits == 0 { 0 } else { 1 << cache_bits }
}

/// Returns the range of each alphabet in a table of `symbols` symbols, in bitstream order.
pub fn alphabets(symbols: usize) -> [Range<usize>; 5] {
    [
        GREEN..symbols,
        RED..BLUE,
        BLUE..ALPHA,
        ALPHA..DISTANCE,
        DISTANCE..GREEN,
    ]
}

/// Returns the symbols of a literal pixel, in bitstream order.
#[inline]
pub fn literal(color: u32) -> [usize; 4] {
    let [blue, green, red, alpha] = color.to_le_bytes().map(usize::from);
    [GREEN + green, RED + red, BLUE + blue, ALPHA + alpha]
}

/// Returns the symbol of a pixel at `index` of the color cache.
#[inline]
pub fn cached(index: usize) -> usize {
    CACHE + index
}

/// Returns the table index of a length symbol.
#[inline]
pub fn length(symbol: u32) -> usize {
    LENGTH + symbol as usize
}

/// Returns the table index of a distance symbol.
#[inline]
pub fn distance(symbol: u32) -> usize {
    DISTANCE + symbol as usize
}

/// Calls `count` with the position and the symbols of each literal, cache hit and copy of `image`.
#[inline]
pub fn for_each_symbol(
    image: &TokenImage<'_>,
    workers: Workers<'_>,
    mut count: impl FnMut(usize, &[usize]),
) -> Result<(), EncodeError> {
    let mut i = 0;
    let mut checks = Checks::new(workers);
    for &token in image.tokens {
        checks.at(i)?;
        if token.distance_code() == 0 {
            for (at, &color) in (i..).zip(&image.pixels[i..i + token.length()]) {
                match image.cache.index(at, color) {
                    Some(index) => count(at, &[cached(index)]),
                    None => count(at, &literal(color)),
                }
            }
        } else {
            count(i, &copy(token));
        }
        i += token.length();
    }
    Ok(())
}

/// Returns the symbols of a copy, in bitstream order.
#[inline]
fn copy(token: Token) -> [usize; 2] {
    [
        length(prefix::prefixed(token.length() as u32).symbol),
        distance(prefix::prefixed(token.distance_code()).symbol),
    ]
}

/// Counts the symbols of a whole image.
pub fn count(image: &TokenImage<'_>, workers: Workers<'_>) -> Result<Vec<u32>, EncodeError> {
    let mut counts = vec![0; symbol_count(image.cache.bits())];
    for_each_symbol(image, workers, |_, symbols| {
        for symbol in symbols {
            counts[*symbol] += 1;
        }
    })?;
    Ok(counts)
}

/// Returns the cost of symbols with these counts, in 1 / [`entropy::BIT`] bits, codes included.
pub fn cost(counts: &[u32]) -> u64 {
    alphabets(counts.len())
        .map(|alphabet| entropy::cost(counts[alphabet].iter().copied()))
        .iter()
        .sum()
}

/// Returns the cost of the code lengths of the color cache's symbols in one group of codes, in the
/// same unit.
pub fn cache_code_cost(counts: &[u32]) -> u64 {
    let used = counts[CACHE..].iter().filter(|count| **count > 0).count();
    used as u64 * entropy::CODE_LENGTH
}

/// Returns [`cost`] plus the extra bits of lengths and distances.
pub fn total_cost(counts: &[u32]) -> u64 {
    cost(counts) + extra_cost(counts)
}

fn extra_cost(counts: &[u32]) -> u64 {
    let of = |first: usize, symbols: usize| -> u64 {
        (0..)
            .zip(&counts[first..first + symbols])
            .map(|(symbol, count)| u64::from(prefix::extra_bits(symbol)) * u64::from(*count))
            .sum()
    };
    (of(LENGTH, LENGTH_SYMBOLS) + of(DISTANCE, DISTANCE_SYMBOLS)) * entropy::BIT
}
