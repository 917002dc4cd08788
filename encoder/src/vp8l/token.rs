//! Tokens: runs of literal pixels, and copies of earlier pixels (RFC 9649, section 3.6.2).

use super::color_cache::CacheHits;
use super::prefix::MAX_LENGTH;

/// A run of literal pixels, or a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(u32);

/// Number of bits for a token's length.
const LENGTH_BITS: u32 = 12;

impl Token {
    /// A run of `length` literals, 1 to [`MAX_LENGTH`].
    #[inline]
    pub fn literals(length: usize) -> Token {
        Token::copy(length, 0)
    }

    /// A copy of `length` pixels, 1 to [`MAX_LENGTH`], with a distance code below 2^20.
    #[inline]
    pub fn copy(length: usize, distance_code: u32) -> Token {
        debug_assert!((1..=MAX_LENGTH).contains(&length) && distance_code < 1 << 20);
        Token((length - 1) as u32 | distance_code << LENGTH_BITS)
    }

    /// Number of pixels.
    #[inline]
    pub fn length(self) -> usize {
        (self.0 & ((1 << LENGTH_BITS) - 1)) as usize + 1
    }

    /// Distance code of a copy; 0 for literals.
    #[inline]
    pub fn distance_code(self) -> u32 {
        self.0 >> LENGTH_BITS
    }
}

/// The tokens of an image, in order.
#[derive(Clone, Debug, Default)]
pub struct Tokens(pub Vec<Token>);

impl Tokens {
    /// Appends one literal.
    #[inline]
    pub fn push_literal(&mut self) {
        match self.0.last_mut() {
            Some(token) if token.distance_code() == 0 && token.length() < MAX_LENGTH => {
                *token = Token::literals(token.length() + 1);
            }
            _ => self.0.push(Token::literals(1)),
        }
    }

    /// Appends a copy, as [`Token::copy`].
    #[inline]
    pub fn push_copy(&mut self, length: usize, distance_code: u32) {
        self.0.push(Token::copy(length, distance_code));
    }
}

/// Returns the number of literals plus the number of copies.
pub fn count_literals_and_copies(tokens: &[Token]) -> usize {
    let written = |token: &Token| match token.distance_code() {
        0 => token.length(),
        _ => 1,
    };
    tokens.iter().map(written).sum()
}

/// An image as tokens.
#[derive(Clone, Copy, Debug)]
pub struct TokenImage<'a> {
    /// Pixels, ARGB.
    pub pixels: &'a [u32],
    /// Number of pixels in a row.
    pub width: usize,
    /// Tokens of the whole image.
    pub tokens: &'a [Token],
    /// Hits of the color cache.
    pub cache: &'a CacheHits,
}
