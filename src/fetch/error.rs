//! Why a picture could not be fetched.

use std::fmt;

/// The reason why nothing was fetched. Its `Display` is a sentence for the client that gave the
/// URL; it reveals nothing about the network of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchError {
    /// It is not an absolute http or https URL, or has a port, a user or a host that is not
    /// allowed; a sentence.
    Url(String),
    /// The host resolves to an address that may not be reached; a sentence.
    Forbidden(String),
    /// The host does not resolve, does not answer, does not speak HTTP, redirects too often, or TLS
    /// fails; a sentence.
    Unreachable(String),
    /// The server answered with something other than 200.
    Status(u16),
    /// The file is larger than the limit.
    TooLarge {
        /// The limit in bytes.
        max_bytes: u64,
    },
    /// The fetch took longer than the time limit.
    Timeout,
    /// The URL needs TLS, for which this CPU lacks instructions.
    TlsUnavailable,
    /// The fetch did not begin within the time limit because of others, or the queue was full.
    Busy,
    /// The caller does not wait any more.
    Abandoned,
    /// A bug: the fetch panicked.
    Failed,
}

impl FetchError {
    /// The text is no URL.
    pub fn no_url() -> FetchError {
        FetchError::Url("This is not a URL: write it as https://example.org/logo.png.".into())
    }

    /// The host has an address that may not be reached.
    pub fn forbidden(host: &str) -> FetchError {
        FetchError::Forbidden(format!(
            "{host} is at a private, local or otherwise special address, which this server does not fetch from."
        ))
    }

    /// The host did not answer by HTTP; the reason begins in lower case and has no full stop.
    pub fn unreachable(host: &str, reason: &str) -> FetchError {
        FetchError::Unreachable(format!("Nothing could be fetched from {host}: {reason}."))
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FetchError::Url(detail)
            | FetchError::Forbidden(detail)
            | FetchError::Unreachable(detail) => f.write_str(detail),
            FetchError::Status(status) => {
                write!(
                    f,
                    "The URL's server answered with status {status}: only 200 is taken."
                )
            }
            FetchError::TooLarge { max_bytes } => {
                write!(
                    f,
                    "The file behind the URL is larger than {max_bytes} bytes."
                )
            }
            FetchError::Timeout => f.write_str("The URL's server took too long."),
            FetchError::TlsUnavailable => {
                f.write_str("This server's CPU cannot do TLS: give a URL that starts with http://.")
            }
            FetchError::Busy => f.write_str(
                "Too many pictures are being fetched, from this host or in all: try again in a few seconds.",
            ),
            FetchError::Abandoned => f.write_str("Nobody waits for the picture any more."),
            FetchError::Failed => f.write_str("The picture could not be fetched."),
        }
    }
}

impl std::error::Error for FetchError {}
