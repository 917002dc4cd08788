//! What an image is written as: runs of pixels one by one, and copies of pixels before them (RFC 9649, section 3.6.2).

use super::color_cache;
use super::lz77::PIXELS_A_QUESTION;
use super::prefix::MAX_LENGTH;
use crate::EncodeError;
use crate::threads::Workers;

/// Literal pixels, or a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(u32);

/// Bits of a token for its length.
const LENGTH_BITS: u32 = 12;

impl Token {
    /// `length` pixels by themselves, 1 to [`MAX_LENGTH`].
    #[inline]
    pub fn literals(length: usize) -> Token {
        Token::copy(length, 0)
    }

    /// A copy of `length` pixels, 1 to [`MAX_LENGTH`], from as far back as `distance_code` says, below 2^20.
    #[inline]
    pub fn copy(length: usize, distance_code: u32) -> Token {
        debug_assert!((1..=MAX_LENGTH).contains(&length) && distance_code < 1 << 20);
        Token((length - 1) as u32 | distance_code << LENGTH_BITS)
    }

    /// How many pixels it covers.
    #[inline]
    pub fn length(self) -> usize {
        (self.0 & ((1 << LENGTH_BITS) - 1)) as usize + 1
    }

    /// Where a copy is from; 0 for literals.
    #[inline]
    pub fn distance_code(self) -> u32 {
        self.0 >> LENGTH_BITS
    }
}

/// Tokens in the order of the image.
#[derive(Clone, Debug, Default)]
pub struct Tokens(pub Vec<Token>);

impl Tokens {
    /// One more pixel by itself.
    #[inline]
    pub fn push_literal(&mut self) {
        match self.0.last_mut() {
            Some(token) if token.distance_code() == 0 && token.length() < MAX_LENGTH => {
                *token = Token::literals(token.length() + 1);
            }
            _ => self.0.push(Token::literals(1)),
        }
    }

    /// A copy, as [`Token::copy`].
    #[inline]
    pub fn push_copy(&mut self, length: usize, distance_code: u32) {
        self.0.push(Token::copy(length, distance_code));
    }
}

/// How many literals and copies `tokens` are.
pub fn written(tokens: &[Token]) -> usize {
    let written = |token: &Token| match token.distance_code() {
        0 => token.length(),
        _ => 1,
    };
    tokens.iter().map(written).sum()
}

/// Which pixels of an image a decoder finds in its colour cache. It does not depend on the tokens: copied pixels go
/// into the cache as others do.
#[derive(Clone, Debug)]
pub struct CacheHits {
    /// log2 of the cache's entries; 0 is no cache.
    bits: u32,
    /// A bit for each pixel.
    words: Vec<u64>,
}

impl CacheHits {
    /// No cache.
    pub const NONE: CacheHits = CacheHits {
        bits: 0,
        words: Vec::new(),
    };

    /// Those of a cache of 2^`bits` entries, 0 to 11.
    pub fn new(pixels: &[u32], bits: u32, workers: Workers<'_>) -> Result<CacheHits, EncodeError> {
        if bits == 0 {
            return Ok(CacheHits::NONE);
        }
        let mut cache = color_cache::ColorCache::new(bits);
        let mut words = Vec::with_capacity(pixels.len().div_ceil(64));
        // What the cache holds at the start, at the index of that colour.
        let mut before = 0;
        for part in pixels.chunks(PIXELS_A_QUESTION) {
            workers.check()?;
            for pixels in part.chunks(64) {
                let mut word = 0;
                for (i, &pixel) in pixels.iter().enumerate() {
                    let is_hit = pixel == before || cache.find(pixel).is_some();
                    word |= u64::from(is_hit) << i;
                    before = pixel;
                }
                words.push(word);
            }
        }
        Ok(CacheHits { bits, words })
    }

    /// log2 of the cache's entries; 0 is no cache.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Where pixel `i`, of that `color`, is in the cache, if it is.
    #[inline]
    pub fn index(&self, i: usize, color: u32) -> Option<usize> {
        let word = self.words.get(i / 64)?;
        (word >> (i % 64) & 1 == 1).then(|| color_cache::index(color, self.bits))
    }
}

/// An image as tokens.
#[derive(Clone, Copy, Debug)]
pub struct TokenImage<'a> {
    /// What the tokens stand for, ARGB.
    pub pixels: &'a [u32],
    /// Pixels of a row.
    pub width: usize,
    /// All of it.
    pub tokens: &'a [Token],
    /// The colour cache.
    pub cache: &'a CacheHits,
}
