//! Why a picture could not be fetched.

use thiserror::Error;

/// The reason why nothing was fetched. Its `Display` is a sentence for the client that gave the
/// URL; it reveals nothing about the network of the server.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FetchError {
    /// It is not an absolute http or https URL, or has a port, a user or a host that is not
    /// allowed; a sentence.
    #[error("{0}")]
    Url(String),
    /// The host resolves to an address that may not be reached; a sentence.
    #[error("{0}")]
    Forbidden(String),
    /// The host does not resolve, does not answer, does not speak HTTP, redirects too often, or TLS
    /// fails; a sentence.
    #[error("{0}")]
    Unreachable(String),
    /// The server answered with something other than 200.
    #[error("The URL's server answered with status {0}: only 200 is taken.")]
    Status(u16),
    /// The file is larger than the limit.
    #[error("The file behind the URL is larger than {max_bytes} bytes.")]
    TooLarge {
        /// The limit in bytes.
        max_bytes: u64,
    },
    /// The fetch took longer than the time limit.
    #[error("The URL's server took too long.")]
    Timeout,
    /// The URL needs TLS, for which this CPU lacks instructions.
    #[error("This server's CPU cannot do TLS: give a URL that starts with http://.")]
    TlsUnavailable,
    /// The fetch did not begin within the time limit because of others, or the queue was full.
    #[error(
        "Too many pictures are being fetched, from this host or in all: try again in a few seconds."
    )]
    Busy,
    /// The caller does not wait any more.
    #[error("Nobody waits for the picture any more.")]
    Abandoned,
    /// A bug: the fetch panicked.
    #[error("The picture could not be fetched.")]
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
