//! Fetches a watermark's picture from a URL without letting the URL reach what it must not.

use std::path::PathBuf;
use std::time::Duration;

/// What may be fetched, and how much of it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether private, local and otherwise special addresses may be reached.
    pub allow_private: bool,
    /// Most bytes of a body.
    pub max_bytes: u64,
    /// For the whole fetch, redirects included.
    pub timeout: Duration,
    /// Most redirects that are followed.
    pub max_redirects: u32,
    /// More root certificates, PEM.
    pub ca_file: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { allow_private: false, max_bytes: 8 << 20, timeout: Duration::from_secs(10), max_redirects: 3, ca_file: None }
    }
}

/// Why nothing was fetched. `code` is stable and machine-readable, `detail` a sentence for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchError {
    /// Not an absolute http or https URL, or with a port, user or host that is not allowed.
    Url(String),
    /// The host resolves to an address that may not be reached.
    Forbidden(String),
    /// The host does not resolve, does not answer, or TLS fails.
    Unreachable(String),
    /// The server answered with something other than 200.
    Status(u16),
    /// Over [`Settings::max_bytes`].
    TooLarge { max_bytes: u64 },
    /// Over [`Settings::timeout`].
    Timeout,
    /// https is not to be had on this machine's CPU.
    TlsUnavailable,
}

/// Fetches by one set of settings; cheap to share between threads.
pub struct Fetcher {}

impl Fetcher {
    /// Prepares TLS and the HTTP client.
    ///
    /// # Errors
    /// A sentence for the operator, if the certificates' file cannot be used.
    pub fn new(_settings: Settings) -> Result<Fetcher, String> {
        todo!()
    }

    /// GETs `url` and returns the body.
    ///
    /// # Errors
    /// See [`FetchError`].
    pub fn fetch(&self, _url: &str) -> Result<Vec<u8>, FetchError> {
        todo!()
    }
}
