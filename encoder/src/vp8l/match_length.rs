//! The length of a match between two positions (RFC 9649, section 3.6.2.2).

/// Returns the number of equal pixels from `a` and from `b` on, at most `limit`. `a` is before `b`.
#[inline]
pub fn match_length(pixels: &[u32], a: usize, b: usize, limit: usize) -> usize {
    const AT_ONCE: usize = 8;
    let ahead = &pixels[b..b + limit];
    let back = &pixels[a..a + limit];
    let mut length = 0;
    for (ahead, back) in ahead.chunks_exact(AT_ONCE).zip(back.chunks_exact(AT_ONCE)) {
        if ahead != back {
            break;
        }
        length += AT_ONCE;
    }
    let rest = ahead[length..].iter().zip(&back[length..]);
    length + rest.take_while(|(ahead, back)| ahead == back).count()
}
