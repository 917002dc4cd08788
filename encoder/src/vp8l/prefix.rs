//! Prefix coding of lengths and distances, as a symbol and extra bits: RFC 9649, section 3.6.2.2.

/// Number of length symbols, for lengths up to [`MAX_LENGTH`].
pub const LENGTH_SYMBOLS: usize = 24;
/// Number of distance symbols, for distance codes up to 2^20.
pub const DISTANCE_SYMBOLS: usize = 40;
/// Longest copy, in pixels.
pub const MAX_LENGTH: usize = 4096;

/// A value in prefix coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefixed {
    /// The symbol, which a prefix code encodes.
    pub symbol: u32,
    /// Number of extra bits.
    pub extra_bits: u32,
    /// The extra bits.
    pub extra: u32,
}

/// Prefix-codes `value`, which is at least 1.
#[inline]
pub const fn prefixed(value: u32) -> Prefixed {
    let rest = value - 1;
    if rest < 4 {
        return Prefixed {
            symbol: rest,
            extra_bits: 0,
            extra: 0,
        };
    }
    let highest = rest.ilog2();
    let extra_bits = highest - 1;
    Prefixed {
        symbol: 2 * highest + (rest >> extra_bits & 1),
        extra_bits,
        extra: rest & ((1 << extra_bits) - 1),
    }
}

/// Returns the symbol of a length.
#[inline]
pub fn length_symbol(length: usize) -> u32 {
    static SYMBOLS: [u8; MAX_LENGTH + 1] = {
        let mut symbols = [0; MAX_LENGTH + 1];
        let mut length = 1;
        while length <= MAX_LENGTH {
            symbols[length] = prefixed(length as u32).symbol as u8;
            length += 1;
        }
        symbols
    };
    u32::from(SYMBOLS[length])
}

/// Returns the least value of `symbol`.
pub const fn first_value(symbol: u32) -> u32 {
    if symbol < 4 {
        return symbol + 1;
    }
    ((2 + (symbol & 1)) << extra_bits(symbol)) + 1
}

/// Returns the number of extra bits of `symbol`.
pub const fn extra_bits(symbol: u32) -> u32 {
    if symbol < 4 { 0 } else { (symbol - 2) >> 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_the_rfc() {
        // The table of section 3.6.2.2: value range, prefix code, extra bits.
        for (values, symbol, extra_bits) in [
            (1..=1, 0, 0),
            (2..=2, 1, 0),
            (3..=3, 2, 0),
            (4..=4, 3, 0),
            (5..=6, 4, 1),
            (7..=8, 5, 1),
            (9..=12, 6, 2),
            (13..=16, 7, 2),
            (3073..=4096, 23, 10),
            (524_289..=786_432, 38, 18),
            (786_433..=1_048_576, 39, 18),
        ] {
            assert_eq!(first_value(symbol), *values.start());
            for (extra, value) in (0..).zip(values) {
                let expected = Prefixed {
                    symbol,
                    extra_bits,
                    extra,
                };
                assert_eq!(prefixed(value), expected, "{value}");
            }
        }
    }
}
