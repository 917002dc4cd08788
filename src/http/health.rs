//! `GET /healthz` and `GET /readyz`: whether the server is alive, and whether it can do its work.
//!
//! The event loop answers `/healthz`. A worker that has nothing else to do answers `/readyz`, so
//! that it waits for nobody: it converts a tiny picture and has the store commit.

use super::problem::{Kind, Problem};
use super::readiness::NotReady;
use super::response::Response;
use super::state::AppState;
use crate::store::StoreError;
use std::time::Instant;
use towebp_pipeline::conversion::{self, Cancel, ConversionError, Fonts, Job, Params};
use towebp_pipeline::image::{Format, Limits};

/// Seconds until a new check is useful: as long as a result is reused.
const RETRY_AFTER: u64 = 1;

/// 200 with `ok`.
pub fn alive() -> Response {
    Response::new(200, "text/plain; charset=utf-8", "ok").header("Cache-Control", "no-store")
}

/// 200 with `ready`.
///
/// # Errors
/// 503 with the reason.
pub fn ready(state: &AppState) -> Result<Response, Problem> {
    let outcome = state.readiness.outcome(Instant::now(), || {
        check(convert(), || state.store.check_writable())
    });
    match outcome {
        Ok(()) => Ok(Response::new(200, "text/plain; charset=utf-8", "ready")
            .header("Cache-Control", "no-store")),
        Err(not_ready) => Err(not_ready.into()),
    }
}

impl From<NotReady> for Problem {
    fn from(NotReady { reason, cause }: NotReady) -> Problem {
        Problem {
            cause,
            ..Problem::new(Kind::NotReady, reason).with_retry_after(RETRY_AFTER)
        }
    }
}

fn check(
    converted: Result<Vec<u8>, ConversionError>,
    write: impl FnOnce() -> Result<(), StoreError>,
) -> Result<(), NotReady> {
    match converted {
        Ok(webp) if webp.starts_with(b"RIFF") => {}
        Ok(_) => return Err(not_converted("the outcome is no WebP file".to_owned())),
        Err(error) => return Err(not_converted(error.to_string())),
    }
    write().map_err(|error| NotReady {
        reason: "The store cannot be written, so conversions cannot be recorded.",
        cause: match error {
            StoreError::Unavailable(_) => None,
            StoreError::Failed(cause) => Some(cause),
        },
    })
}

/// The service cannot convert; the cause is for the log.
pub fn not_converted(cause: String) -> NotReady {
    NotReady {
        reason: "A tiny picture could not be converted.",
        cause: Some(cause),
    }
}

/// A BMP of 2 by 2 pixels: the file's header, the picture's header, and two rows of two pixels and
/// two bytes of padding.
pub(super) const PICTURE: &[u8] = b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0\
    \x28\0\0\0\x02\0\0\0\x02\0\0\0\x01\0\x18\0\0\0\0\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
    \xff\x00\x00\x00\xff\x00\0\0\x00\x00\xff\xff\xff\xff\0\0";

fn convert() -> Result<Vec<u8>, ConversionError> {
    let params = Params::parse(std::iter::empty()).expect("no parameter is needed");
    conversion::run(&Job {
        bytes: PICTURE,
        format: Format::Bmp,
        params: &params,
        watermark_picture: None,
        fonts: Fonts::bundled(),
        // The defaults, whatever the operator allows.
        limits: &Limits::default(),
        threads: 1,
        cpu_budget: None,
        cancel: &Cancel::never(),
    })
    .map(|converted| converted.webp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_is_converted() {
        check(convert(), || Ok(())).expect("the picture is valid");
    }

    #[test]
    fn what_fails_is_a_503_that_names_the_part_and_not_the_inside() {
        let full = || Err(StoreError::Unavailable("/srv/data: disk full".to_owned()));
        let damaged = || Err(StoreError::Failed("/srv/data: damaged".to_owned()));
        let broken = Err(ConversionError::Internal("a fault".to_owned()));
        let cases = [
            (check(convert(), full), "store", None),
            (check(convert(), damaged), "store", Some("damaged")),
            (
                check(Ok(b"GIF".to_vec()), || Ok(())),
                "converted",
                Some("no WebP"),
            ),
            (check(broken, || Ok(())), "converted", Some("a fault")),
        ];
        for (outcome, part, cause) in cases {
            let NotReady {
                reason,
                cause: told,
            } = outcome.expect_err(part);
            assert!(
                reason.contains(part) && !reason.contains("/srv"),
                "{reason}"
            );
            match cause {
                None => assert_eq!(told, None, "the log has it already"),
                Some(cause) => assert!(told.is_some_and(|told| told.contains(cause)), "{cause}"),
            }
            assert_eq!(Kind::NotReady.row().status, 503);
        }
    }
}
