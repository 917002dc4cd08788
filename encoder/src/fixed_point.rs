//! Powers of two and logarithms in integers: the same on every machine, unlike those of floating
//! point are not.

/// `65536 * 2^(i / 256)`.
static POWERS: [u32; 256] = {
    // 2 to the power of 1/2, 1/4 ... 1/256, times 2^32, rounded.
    const ROOTS: [u64; 8] = [
        6_074_001_000,
        5_107_605_667,
        4_683_661_020,
        4_485_121_659,
        4_389_018_471,
        4_341_736_340,
        4_318_288_439,
        4_306_612_044,
    ];
    let mut powers = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut power = 1u64 << 32;
        let mut bit = 0;
        while bit < 8 {
            if i >> (7 - bit) & 1 != 0 {
                power = ((power as u128 * ROOTS[bit] as u128) >> 32) as u64;
            }
            bit += 1;
        }
        powers[i] = ((power + (1 << 15)) >> 16) as u32;
        i += 1;
    }
    powers
};

/// `256 log2(1 + i / 256)`, rounded.
static LOGARITHMS: [u8; 256] = {
    let mut logarithms = [0; 256];
    let mut power = 0;
    let mut i = 0;
    while i < 256 {
        // The number of powers up to 1 + (i + 1/2) / 256, less one.
        while power < 256 && POWERS[power] <= 65536 + 256 * i as u32 + 128 {
            power += 1;
        }
        logarithms[i] = (power - 1) as u8;
        i += 1;
    }
    logarithms
};

/// Returns `65536 * 2^(exponent / 65536)`, to within 0.3 %. Exponents beyond ±8 octaves count as
/// ±8 octaves.
#[inline]
pub fn exp2(exponent: i32) -> u32 {
    let exponent = exponent.clamp(-8 << 16, 8 << 16);
    let power = POWERS[(exponent >> 8 & 255) as usize];
    match exponent >> 16 {
        whole @ ..0 => power >> -whole,
        whole => power << whole,
    }
}

/// Returns `256 log2(n)` to within 1/128 of an octave; `n` is at least 1.
#[inline]
pub fn log2_times_256(n: u32) -> u32 {
    let whole = n.ilog2();
    let mantissa = ((u64::from(n) << 8) >> whole) as usize - 256;
    whole * 256 + u32::from(LOGARITHMS[mantissa])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_those_of_two() {
        for exponent in (-8 << 16..=8 << 16).step_by(999) {
            let exact = 65536.0 * (f64::from(exponent) / 65536.0).exp2();
            let ratio = f64::from(exp2(exponent)) / exact;
            assert!((ratio - 1.0).abs() < 0.007, "{exponent}: {ratio}");
        }
        assert_eq!(exp2(0), 65536);
        assert_eq!(exp2(1 << 16), 131_072);
        assert_eq!((exp2(i32::MIN), exp2(i32::MAX)), (256, 1 << 24));
    }

    #[test]
    fn logarithms_are_those_to_base_two() {
        for n in (1..5000).chain((5000..4_000_000_000).step_by(999_983)) {
            let exact = 256.0 * f64::from(n).log2();
            let ours = f64::from(log2_times_256(n));
            assert!((ours - exact).abs() <= 2.0, "{n}: {ours} for {exact}");
        }
    }
}
