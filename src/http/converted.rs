//! The response to a successful conversion.

use super::response::Response;
use crate::store::UsageEntry;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::time::Duration;
use towebp_pipeline::conversion::{Coding, Conversion, FoundQuality, Timing};
use towebp_pipeline::image::Format;

/// The file that a successful request gets.
pub struct Sent {
    /// Its bytes.
    pub body: Vec<u8>,
    media_type: &'static str,
    /// The ending of its name.
    ending: &'static str,
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
    /// Whether it is a WebP as it came.
    is_unchanged: bool,
    /// How the pixels of a WebP are coded.
    coding: Option<Coding>,
    /// The result of a search over quality, if there was one.
    pub found: Option<FoundQuality>,
    /// The time of each stage.
    pub timing: Timing,
    /// The placeholder of the picture, if the request has one.
    placeholder: Option<String>,
}

impl Sent {
    /// The WebP, or the input in its place.
    pub fn choose(converted: Conversion, input: Vec<u8>, format: Format) -> Sent {
        let Conversion {
            webp,
            width,
            height,
            coding,
            found,
            timing,
            placeholder,
            prefers_original,
        } = converted;
        let webp = Sent {
            body: webp,
            media_type: "image/webp",
            ending: "webp",
            width,
            height,
            is_unchanged: false,
            coding: Some(coding),
            found,
            timing,
            placeholder,
        };
        if !prefers_original {
            return webp;
        }
        Sent {
            body: input,
            media_type: format.media_type(),
            ending: format.ending(),
            is_unchanged: format == Format::Webp,
            coding: None,
            found: None,
            ..webp
        }
    }
}

/// The response with a converted picture.
pub fn success(sent: Sent, entry: &UsageEntry, download: Option<&str>) -> Response {
    let disposition = download.map(|name| content_disposition(name, sent.ending));
    let score = sent.found.and_then(|found| found.score);
    Response::new(200, sent.media_type, sent.body)
        .header("Cache-Control", "private, no-store")
        .header("Image-Width", &sent.width.to_string())
        .header("Image-Height", &sent.height.to_string())
        .header("X-Original-Bytes", &entry.input_bytes.to_string())
        .header_if("X-Saved-Percent", entry.saved_percent())
        .header_if("X-Webp-Mode", sent.coding.map(Coding::name))
        .header_if("X-Webp-Unchanged", sent.is_unchanged.then_some(true))
        .header("Server-Timing", &server_timing(sent.timing))
        .header_if("X-Webp-Quality", sent.found.and_then(|found| found.quality))
        .header_if("X-Webp-Score", score.map(|score| format!("{score:.2}")))
        .header_if("X-Towebp-Thumbhash", sent.placeholder)
        .header_if("Content-Disposition", disposition)
}

/// The stages' times in milliseconds with one decimal, in the form of the W3C's Server Timing.
fn server_timing(timing: Timing) -> String {
    let milliseconds = |duration: Duration| duration.as_secs_f64() * 1000.0;
    format!(
        "decode;dur={:.1}, watermark;dur={:.1}, encode;dur={:.1}",
        milliseconds(timing.decode),
        milliseconds(timing.watermark),
        milliseconds(timing.encode)
    )
}

/// All but letters, digits and these three is escaped in `filename*` (RFC 8187, section 3.2.1).
const ESCAPED_IN_A_HEADER: AsciiSet = NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b'-');

/// The `Content-Disposition` of `download=NAME`: it makes the browser save the picture as
/// `NAME.webp`, or with the ending of the original (RFC 6266). Letters, digits and a few marks are
/// kept, and everything else becomes `_`; a name that is not plain ASCII is also given in UTF-8
/// (RFC 8187).
fn content_disposition(name: &str, ending: &str) -> String {
    let name = name.strip_suffix(".webp").unwrap_or(name);
    let kept = |c: char| c.is_alphanumeric() || " ._-()".contains(c);
    let cleaned = name
        .chars()
        .take(100)
        .map(|c| if kept(c) { c } else { '_' });
    let cleaned: String = cleaned.collect();
    let cleaned = match cleaned.trim_matches([' ', '.']) {
        "" => "picture",
        cleaned => cleaned,
    };
    let name = format!("{cleaned}.{ending}");
    let ascii = name.replace(|c: char| !c.is_ascii(), "_");
    let mut disposition = format!("attachment; filename=\"{ascii}\"");
    if !name.is_ascii() {
        disposition.push_str("; filename*=UTF-8''");
        disposition.extend(utf8_percent_encode(&name, &ESCAPED_IN_A_HEADER));
    }
    disposition
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn download_names_are_safe_in_a_header_and_in_a_folder() {
        assert_eq!(
            content_disposition("cat", "webp"),
            "attachment; filename=\"cat.webp\""
        );
        assert_eq!(
            content_disposition("cat.webp", "webp"),
            "attachment; filename=\"cat.webp\""
        );
        assert_eq!(
            content_disposition("../../etc/x\"\r\nA: b", "webp"),
            "attachment; filename=\"_.._etc_x___A_ b.webp\""
        );
        assert_eq!(
            content_disposition("", "webp"),
            "attachment; filename=\"picture.webp\""
        );
        assert_eq!(
            content_disposition("...", "webp"),
            "attachment; filename=\"picture.webp\""
        );
        assert_eq!(
            content_disposition("Käse", "webp"),
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
}
