//! The definition of writing many booleans (RFC 6386, section 7.3).

use super::{Bool, BoolEncoder};

/// Writes `bools` one after another.
#[inline(always)]
pub fn write_all(encoder: &mut BoolEncoder, bools: &[Bool]) {
    let BoolEncoder { out, code } = encoder;
    let mut current = *code;
    for &bool in bools {
        current = current.push(bool, out);
    }
    *code = current;
}

/// Writes a boolean with the first encoder, then one with the second, and so on up to the end of
/// the shorter slice.
#[inline(always)]
pub fn write_pairs([first, second]: [&mut BoolEncoder; 2], bools: [&[Bool]; 2]) {
    let (mut one, mut two) = (first.code, second.code);
    for (&a, &b) in bools[0].iter().zip(bools[1]) {
        one = one.push(a, &mut first.out);
        two = two.push(b, &mut second.out);
    }
    (first.code, second.code) = (one, two);
}
