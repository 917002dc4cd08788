//! Files that do not change while the server runs.

use super::problem::Problem;
use super::request::Request;
use super::response::Response;
use crate::dashboard::{self, paths};
use std::borrow::Cow;
use std::sync::LazyLock;
use towebp_pipeline::conversion::Fonts;

/// Bytes of a zlib stream before and after the compressed data (RFC 1950, section 2.2).
const ZLIB_HEADER: usize = 2;
const ZLIB_TRAILER: usize = 4;

/// The header of a gzip file without a name or a time, of an unknown system, compressed as well as
/// can be (RFC 1952, section 2.3).
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255];

/// Answers with the file of the pages at the path of the request.
///
/// # Errors
/// 400, if the query is not UTF-8.
pub fn answer(request: &Request) -> Result<Response, Problem> {
    static FILES: LazyLock<Vec<(&str, Asset)>> = LazyLock::new(|| {
        dashboard::assets()
            .map(|(row, zlib)| (row.path, Asset::compressed(row.media_type, zlib)))
            .collect()
    });
    // Megabytes, which no memory is taken for before a browser wants to convert.
    static MODULE: LazyLock<Asset> = LazyLock::new(|| {
        let zlib = dashboard::MODULE.expect("its path is a route if it is there");
        Asset::compressed("application/wasm", zlib)
    });
    static FONTS: LazyLock<Asset> =
        LazyLock::new(|| Asset::plain("application/octet-stream", Fonts::bundled_file()));
    request.query().check()?;
    let [module, fonts] = dashboard::MODULE_PATHS;
    if request.path == module {
        return Ok(MODULE.answer(request));
    }
    if request.path == fonts {
        return Ok(FONTS.answer(request));
    }
    let file = FILES.iter().find(|(path, _)| *path == request.path);
    let (path, asset) = file.expect("the route is that of an asset");
    let mut response = asset.answer(request);
    // A worker has the policy of its own script.
    if *path == paths::BROWSER_WORKER {
        response.headers.retain(|(name, _)| *name != POLICY);
        response = response.header(POLICY, WORKER_POLICY);
    }
    Ok(response)
}

const POLICY: &str = "Content-Security-Policy";

/// Lets the worker load its other scripts, and run the module that the page gives it.
const WORKER_POLICY: &str =
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; frame-ancestors 'none'";

/// A file that does not change while the server runs.
pub struct Asset {
    media_type: &'static str,
    bytes: Cow<'static, [u8]>,
    /// The value of `ETag`.
    tag: String,
    /// The compressed file and its own `ETag`, since its bytes differ.
    gzip: Option<(Vec<u8>, String)>,
}

impl Asset {
    /// A file of this media type.
    pub fn new(media_type: &'static str, text: impl Into<Cow<'static, str>>) -> Asset {
        let bytes = match text.into() {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        };
        Asset::plain(media_type, bytes)
    }

    /// A file of this media type that is no text.
    fn plain(media_type: &'static str, bytes: impl Into<Cow<'static, [u8]>>) -> Asset {
        let bytes = bytes.into();
        Asset {
            media_type,
            tag: format!("\"{:08x}\"", crc32fast::hash(&bytes)),
            bytes,
            gzip: None,
        }
    }

    /// A file that the build script compressed by zlib, for clients with and without gzip support.
    /// Every client gets the same file, so its length reveals no secret.
    pub fn compressed(media_type: &'static str, zlib: &[u8]) -> Asset {
        let bytes = fdeflate::decompress_to_vec(zlib).expect("the build script compressed it");
        let checksum = crc32fast::hash(&bytes);
        let deflated = &zlib[ZLIB_HEADER..zlib.len() - ZLIB_TRAILER];
        let gzip = [
            &GZIP_HEADER[..],
            deflated,
            &checksum.to_le_bytes(),
            &(bytes.len() as u32).to_le_bytes(),
        ];
        Asset {
            gzip: Some((gzip.concat(), format!("\"{checksum:08x}-gzip\""))),
            ..Asset::plain(media_type, bytes)
        }
    }

    /// The file, or 304 if it is the one that the client has (RFC 9110, section 13.1.2).
    pub fn answer(&self, request: &Request) -> Response {
        let gzip = self.gzip.as_ref().filter(|_| takes_gzip(request));
        let (bytes, tag) = match gzip {
            Some((bytes, tag)) => (&bytes[..], tag),
            None => (&self.bytes[..], &self.tag),
        };
        let is_known = request
            .headers("if-none-match")
            .flat_map(|tags| tags.split(','))
            .map(|given| given.trim().trim_start_matches("W/"))
            .any(|given| given == tag || given == "*");
        let mut response = if is_known {
            Response::new(304, self.media_type, "")
        } else {
            Response::new(200, self.media_type, bytes)
        };
        if self.gzip.is_some() {
            response = response.header("Vary", "Accept-Encoding");
        }
        if gzip.is_some() && !is_known {
            response = response.header("Content-Encoding", "gzip");
        }
        // Five minutes, so that clients soon have the files of a new version.
        response
            .header("ETag", tag)
            .header("Cache-Control", "max-age=300")
    }
}

/// The text that the build script compressed by zlib.
#[cfg(test)]
pub fn inflated(zlib: &[u8]) -> String {
    let text = fdeflate::decompress_to_vec(zlib).expect("the build script compressed it");
    String::from_utf8(text).expect("the build script compressed a text")
}

/// Whether `Accept-Encoding` names gzip, and not as unwanted (RFC 9110, section 12.5.3).
fn takes_gzip(request: &Request) -> bool {
    let codings = request.headers("accept-encoding");
    codings.flat_map(|list| list.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let weight = parts.next().map_or(Some(1.0), |part| {
            let weight = part.strip_prefix("q=")?;
            weight.parse::<f32>().ok()
        });
        name.eq_ignore_ascii_case("gzip") && weight > Some(0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn gzip_is_sent_to_those_who_take_it() {
        for (given, takes) in [
            ("gzip, deflate, br, zstd", true),
            ("br, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("gzip; q=0.0", false),
            ("gzip;q=x", false),
            ("br", false),
            ("", false),
        ] {
            let headers = [("Accept-Encoding", given)];
            let client = Ipv4Addr::LOCALHOST.into();
            let request = Request::new("GET", "/style.css", client, headers.into_iter());
            assert_eq!(takes_gzip(&request), takes, "{given}");
        }
    }
}
