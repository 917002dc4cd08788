//! Conversions that cannot be done: parameters, pictures, memory and time.

use super::{Kind, Problem};
use crate::admission::ReserveError;
use towebp_pipeline::conversion::{ConversionError, ParamError};
use towebp_pipeline::image::{DecodeError, Format};

/// The most seconds of a `Retry-After`; the front's limit is the same. Requests ahead have ended by
/// then or were rejected.
const MAX_RETRY_AFTER: u64 = 60;

/// Seconds until a picture that took too long may be sent again: it held a core for as long as
/// anything may, so not at once.
const RETRY_AFTER_TIMEOUT: u64 = 60;

impl From<ParamError> for Problem {
    fn from(error: ParamError) -> Problem {
        let kind = match error.code {
            "repeated_parameter" => Kind::RepeatedParameter,
            "fixed_parameter" => Kind::FixedParameter,
            _ => Kind::InvalidParameter,
        };
        Problem::new(kind, error.detail)
    }
}

impl From<ConversionError> for Problem {
    fn from(error: ConversionError) -> Problem {
        match Kind::of_code(error.code()) {
            Kind::ConversionTimeout => return conversion_timeout(),
            Kind::InternalError => {}
            kind => return Problem::new(kind, detail(&error)),
        }
        match error {
            ConversionError::Memory { needed } => {
                Problem::internal(format!("conversion: {needed} bytes were not reserved"))
            }
            ConversionError::Internal(cause) => Problem::internal(format!("conversion: {cause}")),
            other => Problem::internal(format!("conversion: {other}")),
        }
    }
}

impl From<ReserveError> for Problem {
    fn from(error: ReserveError) -> Problem {
        match error {
            ReserveError::TooLarge { needed, total } => Problem::new(
                Kind::TooMuchMemory,
                format!(
                    "This needs {needed} bytes of memory at a time; this server has {total} for all conversions. Send a \
                     smaller picture, or start it with a larger --memory."
                ),
            ),
            ReserveError::Busy { wait } => Problem::new(
                Kind::Busy,
                "The pictures that are being converted take all workers or all memory; try again later.",
            )
            .with_retry_after(wait.as_secs().saturating_add(1).min(MAX_RETRY_AFTER)),
        }
    }
}

fn conversion_timeout() -> Problem {
    Problem::new(
        Kind::ConversionTimeout,
        "The conversion took longer than this server allows. Send a smaller picture, or the same when the \
         server is less busy.",
    )
    .with_retry_after(RETRY_AFTER_TIMEOUT)
}

/// The details; those of a wrong format are in the terms of HTTP.
fn detail(error: &ConversionError) -> String {
    match error {
        ConversionError::Picture(DecodeError::WrongFormat { declared, found }) => {
            wrong_format(*declared, *found)
        }
        error => error.detail(),
    }
}

fn wrong_format(declared: Format, found: Option<Format>) -> String {
    let declared = declared.name();
    match found.map(Format::name) {
        Some("webp") => format!(
            "Content-Type says image/{declared}, but the body looks like image/webp, which servers convert that \
             run with --accept webp; send -H 'Content-Type: image/webp' to those."
        ),
        Some(found) => format!(
            "Content-Type says image/{declared}, but the body looks like image/{found}; send -H 'Content-Type: \
             image/{found}'."
        ),
        None => format!(
            "Content-Type says image/{declared}, but the body does not look like it, nor like another format that is \
             read here (image/png, image/jpeg, image/gif, image/bmp)."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_client_sent_is_400_and_what_the_server_broke_is_500_or_503() {
        let status = |error: ConversionError| Problem::from(error).kind.row().status;
        let invalid = || DecodeError::Invalid("cut short".to_owned());
        assert_eq!(status(ConversionError::Picture(invalid())), 400);
        assert_eq!(status(ConversionError::WatermarkPicture(invalid())), 400);
        assert_eq!(status(ConversionError::MissingCharacters(vec!['☃'])), 400);
        assert_eq!(status(ConversionError::Internal("a bug".to_owned())), 500);
        assert_eq!(status(ConversionError::Cancelled), 503);
    }

    #[test]
    fn missing_characters_are_named() {
        let problem = Problem::from(ConversionError::MissingCharacters(vec!['☃', '\u{1F600}']));
        assert!(
            problem.detail.contains("☃ (U+2603)") && problem.detail.contains("U+1F600"),
            "{}",
            problem.detail
        );
    }
}
