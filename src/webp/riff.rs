//! The WebP container: RFC 9649, section 2.

use super::EncodeError;

/// A lossy picture without alpha: one `VP8 ` chunk (section 2.5).
///
/// # Errors
/// [`EncodeError::TooLarge`] if a size does not fit its 32 bits.
pub fn simple(frame: &[u8]) -> Result<Vec<u8>, EncodeError> {
    assemble(&[(*b"VP8 ", frame)])
}

/// A lossless picture: one `VP8L` chunk (section 2.6).
///
/// # Errors
/// [`EncodeError::TooLarge`] if a size does not fit its 32 bits.
pub fn lossless(data: &[u8]) -> Result<Vec<u8>, EncodeError> {
    assemble(&[(*b"VP8L", data)])
}

/// A lossy picture with alpha: `VP8X`, `ALPH` and `VP8 ` chunks (section 2.7).
///
/// # Errors
/// [`EncodeError::TooLarge`] if a size does not fit its 32 bits.
pub fn with_alpha(
    width: u32,
    height: u32,
    alpha: &[u8],
    frame: &[u8],
) -> Result<Vec<u8>, EncodeError> {
    const HAS_ALPHA: u8 = 1 << 4;
    let mut extended = [0; 10];
    extended[0] = HAS_ALPHA;
    extended[4..7].copy_from_slice(&(width - 1).to_le_bytes()[..3]);
    extended[7..].copy_from_slice(&(height - 1).to_le_bytes()[..3]);
    assemble(&[(*b"VP8X", &extended), (*b"ALPH", alpha), (*b"VP8 ", frame)])
}

/// Chunks behind the file header, each padded to an even length (sections 2.3 and 2.4).
fn assemble(chunks: &[([u8; 4], &[u8])]) -> Result<Vec<u8>, EncodeError> {
    let size_of = |length: usize| u32::try_from(length).map_err(|_| EncodeError::TooLarge);
    let body: usize = chunks
        .iter()
        .map(|(_, data)| 8 + data.len().next_multiple_of(2))
        .sum();
    let mut file = Vec::with_capacity(12 + body);
    file.extend(b"RIFF");
    file.extend(size_of(4 + body)?.to_le_bytes());
    file.extend(b"WEBP");
    for (name, data) in chunks {
        file.extend(name);
        file.extend(size_of(data.len())?.to_le_bytes());
        file.extend_from_slice(data);
        if data.len() % 2 == 1 {
            file.push(0);
        }
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simple_file_byte_for_byte() {
        let file = simple(&[1, 2, 3]).expect("small");
        assert_eq!(file, *b"RIFF\x10\0\0\0WEBPVP8 \x03\0\0\0\x01\x02\x03\0");
    }

    #[test]
    fn an_extended_file_byte_for_byte() {
        let file = with_alpha(0x1234, 1, &[9], &[7, 7]).expect("small");
        let expected = b"RIFF\x2A\0\0\0WEBPVP8X\x0A\0\0\0\x10\0\0\0\x33\x12\0\0\0\0ALPH\x01\0\0\0\x09\0VP8 \x02\0\0\0\x07\x07";
        assert_eq!(file, *expected);
    }
}
