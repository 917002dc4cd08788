//! `POST /convert`: the order of the checks, and one conversion.

use super::error::{Kind, Problem};
use super::request::{Body, Request};
use super::response::Response;
use super::ticket::Ticket;
use super::{Rooms, usage};
use crate::conversion::{self, Cancel, Conversion, ConversionError, Job, Params, Timing};
use crate::image::Format;
use crate::store::{AccountId, TokenCheck, TokenError, UsageEntry, WatermarkKind};
use std::fmt::Write;
use std::time::{Duration, Instant, SystemTime};

/// Converts the body. [`admit`] has checked the head before the body was read at all; then come whether it could be
/// recorded (503), the account's allowance (429), the body (400, 413) and the watermark's picture, which is here or is not
/// to be had. The usage entry is on disk before anything is delivered.
///
/// # Errors
/// See the table in [`super::error`].
pub fn answer(
    rooms: &Rooms,
    request: &Request,
    ticket: Ticket,
    body: &mut Body<'_>,
) -> Result<Response, Problem> {
    // Admission has looked at memory alone, and the token may have been replaced while the request came in and waited.
    let account = rooms.store.authenticate(token(request)?)?;
    if request.gone.is_set() {
        return Err(Problem::client_gone());
    }
    rooms.store.check_available()?;
    let taken = rooms.limiters.allowance.take(&rooms.store, account)?;
    let mut response = convert(rooms, request, body, ticket).unwrap_or_else(Response::from);
    response.headers.extend_from_slice(taken.headers());
    Ok(response)
}

/// Decides by the head, and by what is in memory, whether the body is worth being sent: the method has been checked (405),
/// and the token (401), the parameters and the `Content-Type` (400) are. What was found out goes on to [`answer`]. It is
/// called by the event loop, so it waits for nothing; an account that is not known in memory passes, and [`answer`] asks
/// the disk.
///
/// # Errors
/// See the table in [`super::error`].
pub fn admit(rooms: &Rooms, request: &Request) -> Result<Ticket, Problem> {
    let account = match rooms.store.check_token(token(request)?) {
        TokenCheck::Valid(account) | TokenCheck::Unknown(account) => account,
        TokenCheck::Invalid => return Err(TokenError::Invalid.into()),
    };
    let checked = check(request, account)?;
    rooms.store.check_available()?;
    rooms.limiters.allowance.look(&rooms.store, account)?;
    let (fetcher, metrics) = (rooms.fetcher.clone(), rooms.metrics.clone());
    Ok(Ticket::new(checked, fetcher, metrics))
}

fn convert(
    rooms: &Rooms,
    request: &Request,
    body: &mut Body<'_>,
    ticket: Ticket,
) -> Result<Response, Problem> {
    let (checked, watermark_picture) = ticket.into_parts();
    let Checked {
        account,
        params,
        download,
        format,
    } = checked;
    let bytes = body.read(rooms.settings.max_body)?;
    if bytes.is_empty() {
        return Err(Problem::new(
            Kind::BodyEmpty,
            format!("Send the picture's bytes as the body: {FLAGS}."),
        ));
    }
    let watermark_picture = watermark_picture?;
    let job = Job {
        bytes: &bytes,
        format,
        params: &params,
        watermark_picture: watermark_picture.as_deref(),
        fonts: &rooms.fonts,
        limits: &rooms.limits,
        threads: rooms.cpu_budget.total(),
        cpu_budget: Some(&rooms.cpu_budget),
        cancel: &Cancel::never(),
    };
    let needed = conversion::memory(&job)? + job.watermark_picture.map_or(0, <[u8]>::len) as u64;
    let mut reserved = rooms.reserve(request, account, needed)?;
    let started = Instant::now();
    let deadline = started + rooms.settings.conversion_timeout;
    let own_core = rooms.cpu_budget.occupy();
    let is_unwanted = || request.gone.is_set() || Instant::now() >= deadline;
    let converted = conversion::run(&Job {
        cancel: &Cancel::when(&is_unwanted),
        ..job
    });
    let converted = match converted {
        Err(ConversionError::Cancelled) if request.gone.is_set() => {
            return Err(Problem::client_gone());
        }
        converted => converted?,
    };
    drop(own_core);

    let entry = usage_entry(&params, format, bytes.len(), &converted, started.elapsed());
    rooms.store.record_usage(account, &entry)?;
    rooms.metrics.converted(format.name(), converted.timing);
    reserved.finish(converted.webp.len() as u64);
    Ok(Response {
        memory: Some(Box::new(reserved)),
        ..success(converted, download)
    })
}

/// What the head of a request says.
pub struct Checked {
    pub account: AccountId,
    pub params: Params,
    download: Option<String>,
    format: Format,
}

fn token(request: &Request) -> Result<&str, Problem> {
    request.token()?.ok_or_else(Problem::token_missing)
}

/// Checks all else that the head shows.
///
/// # Errors
/// See the table in [`super::error`].
fn check(request: &Request, account: AccountId) -> Result<Checked, Problem> {
    request.check_query()?;
    // Nobody's fault but the caller's if the token came twice, even the same one.
    request.parameter("token")?;
    let params = Params::parse(
        request
            .query
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str())),
    )?;
    Ok(Checked {
        account,
        params,
        download: request.parameter("download")?.map(content_disposition),
        format: content_type(request)?,
    })
}

/// What to tell those who send no usable `Content-Type` or body.
const FLAGS: &str = "for example -H 'Content-Type: image/png' --data-binary @picture.png";

fn content_type(request: &Request) -> Result<Format, Problem> {
    let media_type = request.media_type();
    if let Some(format) = Format::from_media_type(media_type) {
        return Ok(format);
    }
    if media_type.is_empty() {
        let detail = format!("Say what the picture is, {FLAGS}.");
        return Err(Problem::new(Kind::ContentTypeMissing, detail));
    }
    if media_type.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        let detail = format!(
            "Content-Type says that the body is a form, which is curl's default. Say what the picture is, {FLAGS}."
        );
        return Err(Problem::new(Kind::ContentTypeMissing, detail));
    }
    let given: String = media_type.chars().take(100).collect();
    let detail = format!(
        "Content-Type is {given}; allowed are image/png, image/jpeg, image/jpg, image/gif and image/bmp, {FLAGS}."
    );
    Err(Problem::new(Kind::ContentTypeUnsupported, detail))
}

fn usage_entry(
    params: &Params,
    format: Format,
    input_bytes: usize,
    converted: &Conversion,
    spent: Duration,
) -> UsageEntry {
    UsageEntry {
        time: SystemTime::now(),
        format: format.name().to_owned(),
        input_bytes: input_bytes as u64,
        output_bytes: converted.webp.len() as u64,
        width: converted.width,
        height: converted.height,
        quality: params.quality,
        watermark: match (&params.text, &params.picture_url) {
            (None, None) => WatermarkKind::None,
            (Some(_), None) => WatermarkKind::Text,
            (None, Some(_)) => WatermarkKind::Image,
            (Some(_), Some(_)) => WatermarkKind::Both,
        },
        milliseconds: usage::milliseconds(spent),
    }
}

fn success(converted: Conversion, download: Option<String>) -> Response {
    let response = Response::new(200, "image/webp", converted.webp)
        .header("Cache-Control", "private, no-store")
        .header("Image-Width", &converted.width.to_string())
        .header("Image-Height", &converted.height.to_string())
        .header("X-Webp-Mode", converted.coding.name())
        .header("Server-Timing", &server_timing(converted.timing));
    match download {
        Some(disposition) => response.header("Content-Disposition", &disposition),
        None => response,
    }
}

/// Milliseconds with one decimal, as the W3C's Server Timing has them.
fn server_timing(timing: Timing) -> String {
    let milliseconds = |duration: Duration| duration.as_secs_f64() * 1000.0;
    format!(
        "decode;dur={:.1}, watermark;dur={:.1}, encode;dur={:.1}",
        milliseconds(timing.decode),
        milliseconds(timing.watermark),
        milliseconds(timing.encode)
    )
}

/// `download=NAME` asks the browser to save the answer as `NAME.webp` (RFC 6266). Letters, digits and a few marks
/// pass, everything else becomes `_`; a name that is not plain ASCII is also given in UTF-8 (RFC 8187).
fn content_disposition(name: &str) -> String {
    let name = name.strip_suffix(".webp").unwrap_or(name);
    let cleaned: String = name
        .chars()
        .take(100)
        .map(|c| {
            if c.is_alphanumeric() || " ._-()".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect();
    let cleaned = cleaned.trim_matches([' ', '.']);
    let name = format!(
        "{}.webp",
        if cleaned.is_empty() {
            "picture"
        } else {
            cleaned
        }
    );
    let ascii: String = name
        .chars()
        .map(|c| if c.is_ascii() { c } else { '_' })
        .collect();
    let mut disposition = format!("attachment; filename=\"{ascii}\"");
    if !name.is_ascii() {
        disposition.push_str("; filename*=UTF-8''");
        for byte in name.bytes() {
            if byte.is_ascii_alphanumeric() || b"._-".contains(&byte) {
                disposition.push(byte as char);
            } else {
                write!(disposition, "%{byte:02X}").expect("a String takes everything");
            }
        }
    }
    disposition
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn download_names_are_safe_in_a_header_and_in_a_folder() {
        assert_eq!(
            content_disposition("cat"),
            "attachment; filename=\"cat.webp\""
        );
        assert_eq!(
            content_disposition("cat.webp"),
            "attachment; filename=\"cat.webp\""
        );
        assert_eq!(
            content_disposition("../../etc/x\"\r\nA: b"),
            "attachment; filename=\"_.._etc_x___A_ b.webp\""
        );
        assert_eq!(
            content_disposition(""),
            "attachment; filename=\"picture.webp\""
        );
        assert_eq!(
            content_disposition("..."),
            "attachment; filename=\"picture.webp\""
        );
        assert_eq!(
            content_disposition("Käse"),
            "attachment; filename=\"K_se.webp\"; filename*=UTF-8''K%C3%A4se.webp"
        );
    }

    #[test]
    fn server_timing_is_in_milliseconds() {
        let timing = Timing {
            decode: Duration::from_micros(12_340),
            watermark: Duration::ZERO,
            encode: Duration::from_secs(2),
        };
        assert_eq!(
            server_timing(timing),
            "decode;dur=12.3, watermark;dur=0.0, encode;dur=2000.0"
        );
    }

    #[test]
    fn curls_default_type_is_told_the_right_flag() {
        for headers in [
            &[("Content-Type", "application/x-www-form-urlencoded")][..],
            &[],
            &[("Content-Type", "")],
        ] {
            let request = Request::new(
                "POST",
                "/convert",
                Ipv4Addr::LOCALHOST.into(),
                headers.iter().copied(),
            );
            let problem = content_type(&request).expect_err("no picture type");
            assert_eq!(problem.kind, Kind::ContentTypeMissing);
            let flag = "-H 'Content-Type: image/png' --data-binary @picture.png";
            assert!(problem.detail.contains(flag), "{}", problem.detail);
        }
    }
}
