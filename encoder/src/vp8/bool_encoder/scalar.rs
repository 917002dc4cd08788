//! The definition of writing many booleans (RFC 6386, section 7.3).

use super::{Bool, BoolEncoder};

/// Writes `bools` one after another.
#[inline(always)]
pub fn write_all(encoder: &mut BoolEncoder, bools: &[Bool]) {
    let BoolEncoder { out, code } = encoder;
    let mut current = *code;
    let (pairs, rest) = bools.as_chunks::<2>();
    for &[first, second] in pairs {
        current = current.push(first).push(second).flush(out);
    }
    for &bool in rest {
        current = current.push(bool).flush(out);
    }
    *code = current;
}

/// Writes two booleans with the first encoder, then two with the second, and so on up to the end of
/// the shorter slice.
#[inline(always)]
pub fn write_pairs([first, second]: [&mut BoolEncoder; 2], bools: [&[Bool]; 2]) {
    let length = bools[0].len().min(bools[1].len());
    let (firsts, first_rest) = bools[0][..length].as_chunks::<2>();
    let (seconds, second_rest) = bools[1][..length].as_chunks::<2>();
    let (mut one, mut two) = (first.code, second.code);
    for (&[a, b], &[c, d]) in firsts.iter().zip(seconds) {
        one = one.push(a);
        two = two.push(c);
        one = one.push(b).flush(&mut first.out);
        two = two.push(d).flush(&mut second.out);
    }
    for (&a, &b) in first_rest.iter().zip(second_rest) {
        one = one.push(a).flush(&mut first.out);
        two = two.push(b).flush(&mut second.out);
    }
    (first.code, second.code) = (one, two);
}
