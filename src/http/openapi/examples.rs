//! An example of each problem, made by the code that makes it for a client: its text is what the
//! server sends.

use crate::admission::{
    ExceededLimit, LimitScope, LimitStatus, QuotaExceeded, RemainingQuota, ReserveError,
};
use crate::fetch::FetchError;
use crate::front::Rejection;
use crate::http::credentials::TokensDiffer;
use crate::http::multipart::FormError;
use crate::http::problem::{Kind, Problem};
use crate::http::request::Request;
use crate::http::{AllowedOrigin, convert, cors, health, pages, routes};
use crate::store::{StoreError, TokenError};
use std::net::Ipv4Addr;
use std::num::NonZeroU64;
use std::time::Duration;
use towebp_pipeline::conversion::{ConversionError, Params, Preset};
use towebp_pipeline::image::{DecodeError, Format, Limits};

/// An example of this kind. A new kind does not compile until it has one.
pub fn example(kind: Kind) -> Problem {
    match kind {
        Kind::InvalidParameter
        | Kind::FixedParameter
        | Kind::RepeatedParameter
        | Kind::ContentTypeMissing
        | Kind::ContentTypeUnsupported
        | Kind::ContentTypeRepeated
        | Kind::ContentEncodingUnsupported
        | Kind::BodyEmpty => of_the_request(kind),
        Kind::WrongFormat
        | Kind::InvalidImage
        | Kind::ImageTooWide
        | Kind::TooManyPixels
        | Kind::TooManyFrames
        | Kind::WatermarkNotPngOrJpeg => of_the_picture(kind),
        Kind::WatermarkUrlInvalid
        | Kind::WatermarkForbidden
        | Kind::WatermarkUnreachable
        | Kind::WatermarkStatus
        | Kind::WatermarkTooLarge
        | Kind::WatermarkTimeout
        | Kind::WatermarkTlsUnavailable => of_the_fetch(kind),
        Kind::BodyCutShort
        | Kind::ContentLengthInvalid
        | Kind::MalformedRequest
        | Kind::RequestTimeout
        | Kind::LengthRequired
        | Kind::BodyTooLarge
        | Kind::TargetTooLong
        | Kind::ExpectationFailed
        | Kind::HeadTooLarge
        | Kind::TransferEncodingUnsupported
        | Kind::TooManyConnections
        | Kind::VersionUnsupported => of_the_connection(kind),
        Kind::MissingCharacters => ConversionError::MissingCharacters(vec!['漢']).into(),
        Kind::MaxBytesUnreachable => ConversionError::MaxBytes {
            allowed: 100,
            least: 4286,
        }
        .into(),
        Kind::TooMuchMemory => ReserveError::TooLarge {
            needed: 1_700_000_000,
            total: 512 << 20,
        }
        .into(),
        Kind::Busy => ReserveError::Busy {
            wait: Duration::from_secs(3),
        }
        .into(),
        Kind::ConversionTimeout => ConversionError::Cancelled.into(),
        Kind::RateLimited => exceeded(ExceededLimit::Rate { times: 60 }),
        Kind::QuotaExceeded => exceeded(ExceededLimit::Month {
            quota: NonZeroU64::MIN.saturating_add(999),
        }),
        Kind::TokenMissing => Problem::token_missing(),
        Kind::TokenInvalid => TokenError::Invalid.into(),
        Kind::TokenExpired => TokenError::Ended.into(),
        Kind::TokensDiffer => TokensDiffer.into(),
        Kind::TokenConvertsOnly => Problem::token_converts_only("shop"),
        Kind::TokenInUrl => token_in_url(),
        Kind::AccountDisabled => convert::account_disabled(),
        Kind::StorageUnavailable => StoreError::Unavailable(String::new()).into(),
        Kind::InternalError => Problem::internal(""),
        Kind::NotReady => health::not_converted(String::new()).into(),
        Kind::NotFound => unanswered("GET", "/shrink"),
        Kind::MethodNotAllowed => unanswered("GET", "/convert"),
        Kind::TooManyAttempts => Problem::too_many_attempts(60),
        Kind::InvalidForm => FormError::BoundaryMissing.into(),
        Kind::CrossSiteForm => pages::cross_site_form(),
        Kind::ClientGone => Problem::client_gone(),
    }
}

/// The query, the type or the length of a request.
fn of_the_request(kind: Kind) -> Problem {
    let with = |pairs: &[(&str, &str)]| Params::parse(pairs.iter().copied());
    let fault = "the example is at fault";
    match kind {
        Kind::InvalidParameter => with(&[("watermark_position", "middle")])
            .expect_err(fault)
            .into(),
        Kind::RepeatedParameter => with(&[("quality", "80"), ("quality", "90")])
            .expect_err(fault)
            .into(),
        Kind::FixedParameter => Preset::parse("!quality=80")
            .and_then(|preset| preset.complete([("quality", "90")].into_iter()))
            .expect_err(fault)
            .into(),
        Kind::ContentTypeMissing => {
            convert::picture_type("", false, convert::FLAGS).expect_err(fault)
        }
        Kind::ContentTypeUnsupported => {
            convert::picture_type("image/webp", false, convert::FLAGS).expect_err(fault)
        }
        Kind::ContentTypeRepeated => {
            let twice = [("Content-Type", "image/png"), ("Content-Type", "image/gif")];
            convert::check_content(&request("POST", "/convert", &twice)).expect_err(fault)
        }
        Kind::ContentEncodingUnsupported => {
            let encoded = [("Content-Encoding", "gzip")];
            convert::check_content(&request("POST", "/convert", &encoded)).expect_err(fault)
        }
        _ => convert::body_empty(convert::FLAGS),
    }
}

fn of_the_picture(kind: Kind) -> Problem {
    let limits = Limits::default();
    let cut_short = || DecodeError::Invalid("it ends too early".to_owned());
    let error = match kind {
        Kind::WrongFormat => DecodeError::WrongFormat {
            declared: Format::Png,
            found: Some(Format::Jpeg),
        },
        Kind::ImageTooWide => DecodeError::TooWide {
            width: 20000,
            height: 100,
            max_side: limits.max_side,
        },
        Kind::TooManyPixels => DecodeError::TooManyPixels {
            width: 16000,
            height: 9000,
            max_pixels: limits.max_pixels,
        },
        Kind::TooManyFrames => DecodeError::TooManyFrames {
            max_frames: limits.max_frames,
        },
        Kind::WatermarkNotPngOrJpeg => {
            return ConversionError::WatermarkPicture(cut_short()).into();
        }
        _ => cut_short(),
    };
    ConversionError::Picture(error).into()
}

fn of_the_fetch(kind: Kind) -> Problem {
    let host = "logos.example.org";
    let error = match kind {
        Kind::WatermarkUrlInvalid => FetchError::no_url(),
        Kind::WatermarkForbidden => FetchError::forbidden(host),
        Kind::WatermarkUnreachable => FetchError::unreachable(host, "the name has no address"),
        Kind::WatermarkStatus => FetchError::Status(404),
        Kind::WatermarkTooLarge => FetchError::TooLarge {
            max_bytes: crate::fetch::Settings::default().max_bytes,
        },
        Kind::WatermarkTlsUnavailable => FetchError::TlsUnavailable,
        _ => FetchError::Timeout,
    };
    error.into()
}

fn of_the_connection(kind: Kind) -> Problem {
    let front = crate::front::Settings::default();
    let rejection = match kind {
        Kind::BodyCutShort => Rejection::BodyIncomplete { received: 1000 },
        Kind::ContentLengthInvalid => Rejection::Framing("Content-Length is given more than once"),
        Kind::RequestTimeout => Rejection::BodyTimeout,
        Kind::LengthRequired => Rejection::LengthRequired,
        Kind::BodyTooLarge => Rejection::BodyTooLarge { limit: 32 << 20 },
        Kind::TargetTooLong => Rejection::TargetTooLong {
            limit: front.head_bytes,
        },
        Kind::ExpectationFailed => Rejection::ExpectationUnsupported,
        Kind::HeadTooLarge => Rejection::HeadTooLarge {
            limit: front.head_bytes,
        },
        Kind::TransferEncodingUnsupported => Rejection::TransferCodingUnsupported,
        Kind::TooManyConnections => Rejection::TooManyConnections,
        Kind::VersionUnsupported => Rejection::VersionUnsupported,
        _ => Rejection::Malformed("Host is missing"),
    };
    rejection.into()
}

fn exceeded(limit: ExceededLimit) -> Problem {
    let (name, quota, window, wait) = match limit {
        ExceededLimit::Rate { times } => ("rate", u64::from(times), 60, 1),
        ExceededLimit::Month { quota } | ExceededLimit::MonthInProgress { quota } => {
            ("month", quota.get(), 2_592_000, 835_200)
        }
    };
    let retry_after = Duration::from_secs(wait);
    QuotaExceeded {
        scope: LimitScope::Account,
        limit,
        retry_after,
        limits: vec![LimitStatus {
            name,
            quota,
            window: Duration::from_secs(window),
            remaining: Some(RemainingQuota {
                conversions: 0,
                resets_in: retry_after,
            }),
        }],
    }
    .into()
}

fn token_in_url() -> Problem {
    let page = [("Origin", "https://app.example.org")];
    let request = request("POST", "/convert?token=twp_", &page);
    cors::check(&[AllowedOrigin::Any], &request).expect_err("the token is in the URL")
}

fn unanswered(method: &str, path: &str) -> Problem {
    match routes::Route::check(routes::by_path(path), &request(method, path, &[])) {
        Err(problem) => problem,
        Ok(_) => unreachable!("{method} {path} is answered"),
    }
}

fn request(method: &str, target: &str, headers: &[(&str, &str)]) -> Request {
    let client = Ipv4Addr::LOCALHOST.into();
    Request::new(method, target, client, headers.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_of_their_kind_and_say_when_to_come_back() {
        for &kind in Kind::ALL {
            let problem = example(kind);
            assert_eq!(problem.kind, kind);
            let status = kind.row().status;
            let must_wait = matches!(status, 429 | 503);
            assert_eq!(problem.retry_after.is_some(), must_wait, "{kind:?}");
            assert_eq!(problem.allow.is_some(), status == 405, "{kind:?}");
        }
    }
}
