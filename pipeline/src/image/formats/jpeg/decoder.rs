//! The options, limits and errors that all ways of decoding a JPEG have in common.

use crate::image::error::DecodeError;
use crate::image::reader::CancellableReader;
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// The library's decoder, of a file in memory.
pub type LibraryDecoder<'a> = JpegDecoder<CancellableReader<'a>>;

/// Bytes of the file between two checks whether the picture is still wanted. They are so few
/// because eight blocks of a picture may take one bit, and 32767 blocks of a progressive scan four.
pub const BYTES_PER_CHECK: usize = 1 << 10;

/// The decoder's options. Its own bounds are as wide as the format's, since
/// [`Limits`](crate::image::Limits) give the clearer error text.
pub fn options() -> DecoderOptions {
    DecoderOptions::default()
        .set_strict_mode(true)
        .set_max_width(usize::from(u16::MAX))
        .set_max_height(usize::from(u16::MAX))
        .jpeg_set_out_colorspace(ColorSpace::RGB)
}

/// Bytes that the decoder reads in place of the end-of-image marker: ones, of which no code
/// consists (T.81, C), then that marker. Where a scan ends too early, the decoder would make up
/// zeros, but reports the ones as an error; behind a whole scan they are more of its padding.
pub const PADDING_AND_END: &[u8] = &{
    let mut bytes = [0xff; 1026];
    let mut at = 1;
    while at < 1024 {
        bytes[at] = 0; // an FF followed by 00 is no marker
        at += 2;
    }
    bytes[1025] = 0xd9;
    bytes
};

pub fn ambiguous() -> DecodeError {
    DecodeError::Invalid("the JPEG's headers are ambiguous".to_owned())
}

pub fn ends_too_early() -> DecodeError {
    DecodeError::Invalid("the JPEG data ends too early".to_owned())
}

pub fn invalid(error: &DecodeErrors) -> DecodeError {
    let reason = match error {
        DecodeErrors::ExhaustedData | DecodeErrors::IoErrors(_) => return ends_too_early(),
        DecodeErrors::ZeroError => "its width or height is 0".to_owned(),
        // These two would print themselves in quotes.
        DecodeErrors::Format(reason) => reason.clone(),
        DecodeErrors::FormatStatic(reason) => (*reason).to_owned(),
        other => other.to_string(),
    };
    let reason = reason.trim_end_matches(['.', '\n']);
    DecodeError::Invalid(format!(
        "the JPEG data is damaged or of a rare kind ({reason})"
    ))
}
