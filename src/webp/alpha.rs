//! The alpha plane: RFC 9649, section 2.7.1.2 (the `ALPH` chunk), lossless.

use super::EncodeError;

/// The `ALPH` chunk's data for `alpha`, `width * height` values in raster order: as a lossless bitstream, or raw
/// where that is smaller.
///
/// # Errors
/// [`EncodeError::Dimensions`] if the lossless encoder refuses the size.
pub fn encode(alpha: &[u8], width: u32, height: u32) -> Result<Vec<u8>, EncodeError> {
    /// Compression methods, in the lowest two bits of the chunk's first byte.
    const RAW: u8 = 0;
    const LOSSLESS: u8 = 1;
    let stream = lossless_stream(alpha, width, height)?;
    let (method, data) = if stream.len() < alpha.len() {
        (LOSSLESS, stream.as_slice())
    } else {
        (RAW, alpha)
    };
    let mut chunk = Vec::with_capacity(1 + data.len());
    chunk.push(method);
    chunk.extend_from_slice(data);
    Ok(chunk)
}

/// A VP8L stream whose green is `alpha`, without the header that tells what the frame tells already.
fn lossless_stream(alpha: &[u8], width: u32, height: u32) -> Result<Vec<u8>, EncodeError> {
    /// File header (12) and chunk header (8).
    const CONTAINER: usize = 20;
    /// Signature (8 bits), sides (14 each), alpha flag (1), version (3): RFC 9649, section 3.4.
    const STREAM_HEADER: usize = 5;
    let mut file = Vec::new();
    image_webp::WebPEncoder::new(&mut file)
        .encode(alpha, width, height, image_webp::ColorType::L8)
        .map_err(|_| EncodeError::Dimensions)?;
    let size = file
        .get(16..CONTAINER)
        .and_then(|bytes| bytes.try_into().ok())
        .map(u32::from_le_bytes);
    let size = size.expect("the lossless encoder writes a RIFF file with one chunk") as usize;
    file.truncate(CONTAINER + size);
    file.drain(..CONTAINER + STREAM_HEADER);
    Ok(file)
}
