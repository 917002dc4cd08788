//! Estimated costs of symbols: the entropy of their counts plus the code lengths that a decoder
//! needs (RFC 9649, section 3.7.2.1). In integers, so that every machine decides the same.

/// The cost of one bit.
pub const BIT: u64 = 1 << BIT_SHIFT;
/// Base-2 logarithm of [`BIT`].
pub const BIT_SHIFT: u32 = 8;

/// Cost of a symbol's code length, measured on the encoder's output.
pub const CODE_LENGTH: u64 = 3 * BIT;

/// Numbers below this one have a table entry.
const TABLE: usize = 4096;
/// Fractional bits of a logarithm.
const FRACTION: u32 = 16;

/// `log2(n)` by `n`, with 16 fractional bits; 0 for 0.
static LOG2: [u32; TABLE] = {
    let mut table = [0; TABLE];
    let mut n = 2;
    while n < TABLE {
        table[n] = log2_of(n as u32);
        n += 1;
    }
    table
};

/// Computes `log2(n)` bit by bit: squaring a number doubles its logarithm.
const fn log2_of(n: u32) -> u32 {
    let whole = n.ilog2();
    // In [1, 2), with 31 fractional bits.
    let mut rest = (n as u64) << (31 - whole);
    let mut log = whole;
    let mut bit = 0;
    while bit < FRACTION {
        rest = (rest * rest) >> 31;
        log <<= 1;
        if rest >= 1 << 32 {
            log |= 1;
            rest >>= 1;
        }
        bit += 1;
    }
    log
}

/// Returns `log2(n)` with 16 fractional bits; 0 for 0.
#[inline]
pub fn log2(n: u32) -> u32 {
    if let Some(log) = LOG2.get(n as usize) {
        return *log;
    }
    // Looks up the twelve leading bits, and interpolates linearly between two entries.
    let shift = n.ilog2() - 11;
    let index = (n >> shift) as usize;
    let low = LOG2[index];
    let high = LOG2.get(index + 1).copied().unwrap_or(12 << FRACTION);
    let rest = u64::from(n & ((1 << shift) - 1));
    low + (shift << FRACTION) + ((u64::from(high - low) * rest) >> shift) as u32
}

/// Returns `n log2(n)` with 16 fractional bits.
#[inline]
fn n_log2(n: u32) -> u64 {
    u64::from(n) * u64::from(log2(n))
}

/// Returns the bits, in 1 / [`BIT`], that symbols with these counts take with a code of their own,
/// including the code's lengths.
pub fn cost(counts: impl Iterator<Item = u32>) -> u64 {
    let mut tally = Tally::default();
    counts.for_each(|count| tally.add(count));
    tally.cost()
}

/// Sums for [`cost`].
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    total: u32,
    n_log2: u64,
    used: u32,
    most: u32,
    /// Number of runs of unused symbols.
    gaps: u32,
    follows_gap: bool,
}

impl Tally {
    #[inline]
    fn add(&mut self, count: u32) {
        if count == 0 {
            self.gaps += u32::from(!self.follows_gap);
            self.follows_gap = true;
            return;
        }
        self.follows_gap = false;
        self.used += 1;
        self.total += count;
        self.most = self.most.max(count);
        self.n_log2 += n_log2(count);
    }

    fn cost(self) -> u64 {
        // Measured on the encoder's output: a run of zeros takes some five bits, and the code of
        // the code lengths forty.
        const GAP: u64 = 5 * BIT;
        const CODE: u64 = 40 * BIT;
        const SIMPLE: u64 = 11 * BIT;
        let total = u64::from(self.total);
        match self.used {
            0 => 4 * BIT,
            1 => SIMPLE,
            2 => SIMPLE + 8 * BIT + total * BIT,
            used => {
                let entropy = (n_log2(self.total) - self.n_log2) >> (FRACTION - BIT_SHIFT);
                // At most one symbol has a code of one bit; the others have two or more.
                let least = (2 * total - u64::from(self.most)) * BIT;
                let header = CODE + u64::from(used) * CODE_LENGTH + u64::from(self.gaps) * GAP;
                entropy.max(least) + header
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_right() {
        assert_eq!(
            [0, 1, 2, 4, 1 << 28].map(log2),
            [0, 0, 1 << 16, 2 << 16, 28 << 16]
        );
        for n in (2..10_000).chain([123_456, 10_000_019, u32::MAX]) {
            let error = f64::from(log2(n)) / 65536.0 - f64::from(n).log2();
            assert!(error.abs() < 5e-5, "log2({n}) is {error} off");
        }
    }

    #[test]
    fn four_equal_symbols_take_two_bits_each() {
        let each = |n: u32| cost([n; 4].into_iter());
        assert_eq!(each(1100) - each(100), 4 * 1000 * 2 * BIT);
        assert_eq!(
            cost([1000].into_iter()),
            cost([1].into_iter()),
            "one takes none"
        );
    }
}
