//! An example of each problem, made by the code that makes it for a client, so that the server
//! sends the same text.

use crate::admission::{
    ExceededLimit, LimitScope, LimitStatus, QuotaExceeded, RemainingQuota, ReserveError,
};
use crate::fetch::FetchError;
use crate::front::{self, Rejection};
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

/// Why an example cannot be made.
const FAULT: &str = "the example is at fault";

/// An example of this kind. A new kind does not compile until it has one.
#[expect(clippy::too_many_lines, reason = "one arm for each kind")]
pub fn example(kind: Kind) -> Problem {
    let host = "logos.example.org";
    let (front, limits) = (front::Settings::default(), Limits::default());
    let cut_short = || DecodeError::Invalid("it ends too early".to_owned());
    let params = |pairs: &[(&str, &str)]| Params::parse(pairs.iter().copied()).expect_err(FAULT);
    let content_type = |name| {
        convert::picture_type(name, convert::Accepted::default(), convert::FLAGS).expect_err(FAULT)
    };
    let content = |headers: &[(&str, &str)]| {
        convert::check_content(&request("POST", "/convert", headers)).expect_err(FAULT)
    };
    match kind {
        Kind::InvalidParameter => params(&[("watermark_position", "middle")]).into(),
        Kind::RepeatedParameter => params(&[("quality", "80"), ("quality", "90")]).into(),
        Kind::FixedParameter => Preset::parse("!quality=80")
            .and_then(|preset| preset.complete([("quality", "90")].into_iter()))
            .expect_err(FAULT)
            .into(),
        Kind::ContentTypeMissing => content_type(""),
        Kind::ContentTypeUnsupported => content_type("image/webp"),
        Kind::ContentTypeRepeated => {
            content(&[("Content-Type", "image/png"), ("Content-Type", "image/gif")])
        }
        Kind::ContentEncodingUnsupported => content(&[("Content-Encoding", "gzip")]),
        Kind::BodyEmpty => convert::body_empty(convert::FLAGS),
        Kind::WrongFormat => picture(DecodeError::WrongFormat {
            declared: Format::Png,
            found: Some(Format::Jpeg),
        }),
        Kind::InvalidImage => picture(cut_short()),
        Kind::ImageTooWide => picture(DecodeError::TooWide {
            width: 20000,
            height: 100,
            max_side: limits.max_side,
        }),
        Kind::TooManyPixels => picture(DecodeError::TooManyPixels {
            width: 16000,
            height: 9000,
            max_pixels: limits.max_pixels,
        }),
        Kind::TooManyFrames => picture(DecodeError::TooManyFrames {
            max_frames: limits.max_frames,
        }),
        Kind::WatermarkNotPngOrJpeg => ConversionError::WatermarkPicture(cut_short()).into(),
        Kind::WatermarkUrlInvalid => FetchError::no_url().into(),
        Kind::WatermarkForbidden => FetchError::forbidden(host).into(),
        Kind::WatermarkUnreachable => {
            FetchError::unreachable(host, "the name has no address").into()
        }
        Kind::WatermarkStatus => FetchError::Status(404).into(),
        Kind::WatermarkTooLarge => FetchError::TooLarge {
            max_bytes: crate::fetch::Settings::default().max_bytes,
        }
        .into(),
        Kind::WatermarkTimeout => FetchError::Timeout.into(),
        Kind::WatermarkTlsUnavailable => FetchError::TlsUnavailable.into(),
        Kind::BodyCutShort => Rejection::BodyIncomplete { received: 1000 }.into(),
        Kind::ContentLengthInvalid => {
            Rejection::Framing("Content-Length is given more than once").into()
        }
        Kind::MalformedRequest => Rejection::Malformed("Host is missing").into(),
        Kind::RequestTimeout => Rejection::BodyTimeout.into(),
        Kind::LengthRequired => Rejection::LengthRequired.into(),
        Kind::BodyTooLarge => Rejection::BodyTooLarge { limit: 32 << 20 }.into(),
        Kind::TargetTooLong => Rejection::TargetTooLong {
            limit: front.head_bytes,
        }
        .into(),
        Kind::ExpectationFailed => Rejection::ExpectationUnsupported.into(),
        Kind::HeadTooLarge => Rejection::HeadTooLarge {
            limit: front.head_bytes,
        }
        .into(),
        Kind::TransferEncodingUnsupported => Rejection::TransferCodingUnsupported.into(),
        Kind::TooManyConnections => Rejection::TooManyConnections.into(),
        Kind::VersionUnsupported => Rejection::VersionUnsupported.into(),
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

fn picture(error: DecodeError) -> Problem {
    ConversionError::Picture(error).into()
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
