//! Files that do not change while the server runs.

use super::request::Request;
use super::response::Response;
use std::borrow::Cow;

/// A file that does not change while the server runs.
pub struct Asset {
    media_type: &'static str,
    text: Cow<'static, str>,
    /// The value of `ETag`.
    tag: String,
}

impl Asset {
    /// A file of this media type.
    pub fn new(media_type: &'static str, text: impl Into<Cow<'static, str>>) -> Asset {
        let text = text.into();
        Asset {
            media_type,
            tag: format!("\"{:08x}\"", crc32fast::hash(text.as_bytes())),
            text,
        }
    }

    /// The file, or 304 if it is the one that the client has (RFC 9110, section 13.1.2).
    pub fn answer(&self, request: &Request) -> Response {
        let is_known = request
            .headers("if-none-match")
            .flat_map(|tags| tags.split(','))
            .map(|given| given.trim().trim_start_matches("W/"))
            .any(|given| given == self.tag || given == "*");
        let response = if is_known {
            Response::new(304, self.media_type, "")
        } else {
            Response::new(200, self.media_type, &*self.text)
        };
        // Five minutes, so that clients soon have the files of a new version.
        response
            .header("ETag", &self.tag)
            .header("Cache-Control", "max-age=300")
    }
}
