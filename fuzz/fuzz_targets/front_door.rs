//! The readers of request heads and chunked bodies. Whatever comes in, they do not panic, they read
//! it in one piece as they do byte by byte, and what they pass on contains nothing that could
//! divide it anew.

#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use towebp::front::{Chunked, Framing, HeadLimits, Rejection, read_head};

const LIMITS: HeadLimits = HeadLimits {
    bytes: 1 << 10,
    headers: 16,
};

fuzz_target!(|bytes: &[u8]| {
    let whole = read_head(bytes, LIMITS);
    let grown = (0..=bytes.len())
        .map(|length| read_head(&bytes[..length], LIMITS))
        .find(|read| *read != Ok(None))
        .unwrap_or(Ok(None));
    assert_eq!(whole, grown, "portions make a difference");
    let Ok(Some((head, length))) = whole else {
        return;
    };
    assert!(head.target.bytes().all(|byte| byte.is_ascii_graphic()));
    for (name, value) in &head.headers {
        assert!(
            name.bytes()
                .all(|byte| byte.is_ascii_graphic() && byte != b':')
        );
        assert!(
            value
                .bytes()
                .all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte))
        );
    }
    if head.framing == Framing::Chunked {
        let body = &bytes[length..];
        assert_eq!(decode(body.chunks(usize::MAX)), decode(body.chunks(1)));
    }
});

/// The data, how many bytes belong to the body, and whether the body is complete.
fn decode<'b>(
    portions: impl Iterator<Item = &'b [u8]>,
) -> Result<(Vec<u8>, usize, bool), Rejection> {
    let (mut decoder, mut data, mut used) = (Chunked::START, Vec::new(), 0);
    for portion in portions {
        used += decoder.read(portion, |bytes| data.extend_from_slice(bytes))?;
    }
    Ok((data, used, decoder.is_complete()))
}
