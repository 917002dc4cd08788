//! The addresses in settings.

use std::net::SocketAddr;

/// One `--listen`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A new socket at this address.
    At(SocketAddr),
    /// The socket that the process has as standard input.
    StandardInput,
}

/// Parses `stdin`, or an [`address`].
///
/// # Errors
/// A sentence with the allowed form.
pub fn listen(text: &str) -> Result<Listen, String> {
    match text {
        "stdin" => Ok(Listen::StandardInput),
        _ => address(text).map(Listen::At),
    }
}

/// Parses `127.0.0.1:8080` or `[::1]:8080`.
///
/// # Errors
/// A sentence with the allowed form.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix("localhost:");
    let text = port.map_or(text.to_owned(), |port| format!("127.0.0.1:{port}"));
    text.parse()
        .map_err(|_| "expected ADDRESS:PORT, such as 127.0.0.1:8080 or [::1]:8080".to_owned())
}

/// Parses `https://webp.example.org`, and removes a slash at the end.
///
/// # Errors
/// A sentence with the allowed form.
pub fn public_url(text: &str) -> Result<String, String> {
    let url = text.trim_end_matches('/');
    let host = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
    match host {
        Some(host) if !host.is_empty() && host.bytes().all(is_allowed) => {
            Ok(url.to_ascii_lowercase())
        }
        _ => Err(
            "expected scheme and host without a path, such as https://webp.example.org".to_owned(),
        ),
    }
}
