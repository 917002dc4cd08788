//! Keeps a decoder's panic from ending more than the picture at hand.

use super::error::DecodeError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use towebp_encoder::Cancel;

/// Reads headers by `read`, whose panic gives [`DecodeError::Invalid`].
pub fn read_guarded<T>(read: impl FnOnce() -> Result<T, DecodeError>) -> Result<T, DecodeError> {
    // Nothing that a panic leaves behind is used: `read` owns what it builds.
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(DecodeError::Invalid("the decoder failed on it".to_owned())))
}

/// Decodes by `decode`, whose panic gives [`DecodeError::Invalid`]. Once `cancel` is set the
/// outcome is [`DecodeError::Cancelled`], whatever a decoder made of a file that seemed to break
/// off.
pub fn decode_guarded<T>(
    cancel: &Cancel<'_>,
    decode: impl FnOnce() -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    let decoded = read_guarded(decode);
    if cancel.is_set() {
        return Err(DecodeError::Cancelled);
    }
    decoded
}
