//! Writes an entropy-coded image: RFC 9649, sections 3.7.2.3 and 3.8.3.

use super::bit_writer::BitWriter;
use super::color_cache::CacheHits;
use super::entropy_image::EntropyImage;
use super::grouping::Grouping;
use super::huffman::{self, Code};
use super::prefix;
use super::token::TokenImage;
use super::{greedy_parse, histogram};
use crate::EncodeError;
use crate::threads::Workers;

/// Writes a small image, which belongs to a transform or to the prefix codes.
pub fn write_small(
    bits: &mut BitWriter,
    pixels: &[u32],
    width: usize,
    workers: Workers<'_>,
) -> Result<(), EncodeError> {
    let tokens = greedy_parse::parse_greedily(pixels, width, workers)?;
    let image = TokenImage {
        pixels,
        width,
        tokens: &tokens.0,
        cache: &CacheHits::NONE,
    };
    write_cache_bits(bits, 0);
    let codes = Codes::new(&[histogram::count(&image, workers)?]);
    codes.write(bits);
    write_tokens(bits, &image, &codes, None, workers)
}

/// Writes the picture itself, with the groups of codes of `grouping`.
pub fn write(
    bits: &mut BitWriter,
    image: &TokenImage<'_>,
    grouping: &Grouping,
    workers: Workers<'_>,
) -> Result<(), EncodeError> {
    let entropy_image = grouping.image.as_ref();
    write_cache_bits(bits, image.cache.bits());
    bits.put_flag(entropy_image.is_some());
    if let Some(entropy_image) = entropy_image {
        bits.put(entropy_image.tile_bits - 2, 3);
        write_small(bits, &entropy_image.pixels(), entropy_image.width, workers)?;
    }
    let codes = Codes::new(&grouping.histograms);
    codes.write(bits);
    write_tokens(bits, image, &codes, entropy_image, workers)
}

/// Writes the size of the color cache (section 3.6.2.3).
fn write_cache_bits(bits: &mut BitWriter, cache_bits: u32) {
    bits.put_flag(cache_bits > 0);
    if cache_bits > 0 {
        bits.put(cache_bits, 4);
    }
}

/// The prefix codes of all groups.
struct Codes {
    /// Number of symbols in a group.
    symbols: usize,
    /// Code lengths, group after group.
    lengths: Vec<u8>,
    bits: Vec<Code>,
}

impl Codes {
    fn new(histograms: &[Vec<u32>]) -> Codes {
        let symbols = histograms[0].len();
        let mut lengths = vec![0; histograms.len() * symbols];
        let mut bits = vec![Code::default(); histograms.len() * symbols];
        for (group, counts) in histograms.iter().enumerate() {
            for alphabet in histogram::alphabets(symbols) {
                let at = group * symbols + alphabet.start..group * symbols + alphabet.end;
                let code = huffman::cheapest_lengths(&counts[alphabet]);
                bits[at.clone()].copy_from_slice(&huffman::codes(&code));
                lengths[at].copy_from_slice(&code);
            }
        }
        Codes {
            symbols,
            lengths,
            bits,
        }
    }

    fn write(&self, bits: &mut BitWriter) {
        for group in self.lengths.chunks_exact(self.symbols) {
            for alphabet in histogram::alphabets(self.symbols) {
                huffman::write_lengths(bits, &group[alphabet]);
            }
        }
    }

    fn group(&self, index: usize) -> &[Code] {
        &self.bits[index * self.symbols..][..self.symbols]
    }
}

/// Writes two codes at once, at most 30 bits.
#[inline]
fn put_two(bits: &mut BitWriter, first: Code, second: Code) {
    let both = u32::from(first.bits) | u32::from(second.bits) << first.length;
    bits.put(both, u32::from(first.length + second.length));
}

/// Writes the tokens.
fn write_tokens(
    bits: &mut BitWriter,
    image: &TokenImage<'_>,
    codes: &Codes,
    entropy_image: Option<&EntropyImage>,
    workers: Workers<'_>,
) -> Result<(), EncodeError> {
    /// Some milliseconds of work, if all tokens are long runs of literals.
    const TOKENS_PER_CHECK: usize = 1 << 6;
    let group_at = |i: usize| entropy_image.map_or(0, |map| map.group_at(i, image.width));
    // The position in the row where the next tile starts, whose group may differ.
    let mut tile_end = 0;
    let mut group = codes.group(0);
    let mut i = 0;
    for tokens in image.tokens.chunks(TOKENS_PER_CHECK) {
        workers.check()?;
        for &token in tokens {
            let end = i + token.length();
            if token.distance_code() > 0 {
                if i >= tile_end {
                    group = codes.group(group_at(i));
                    tile_end = entropy_image.map_or(usize::MAX, |map| map.tile_end(i, image.width));
                }
                let length = prefix::prefixed(token.length() as u32);
                let code = group[histogram::length(length.symbol)];
                bits.put(u32::from(code.bits), u32::from(code.length));
                bits.put(length.extra, length.extra_bits);
                let distance = prefix::prefixed(token.distance_code());
                let code = group[histogram::distance(distance.symbol)];
                bits.put(u32::from(code.bits), u32::from(code.length));
                bits.put(distance.extra, distance.extra_bits);
                i = end;
                continue;
            }
            while i < end {
                if i >= tile_end {
                    group = codes.group(group_at(i));
                    tile_end = entropy_image.map_or(usize::MAX, |map| map.tile_end(i, image.width));
                }
                for (at, &color) in (i..).zip(&image.pixels[i..end.min(tile_end)]) {
                    if let Some(index) = image.cache.index(at, color) {
                        let code = group[histogram::cached(index)];
                        bits.put(u32::from(code.bits), u32::from(code.length));
                    } else {
                        let [green, red, blue, alpha] =
                            histogram::literal(color).map(|symbol| group[symbol]);
                        put_two(bits, green, red);
                        put_two(bits, blue, alpha);
                    }
                }
                i = end.min(tile_end);
            }
        }
    }
    Ok(())
}
