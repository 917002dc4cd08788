//! Fetches a watermark's picture from a URL without letting the URL reach what it must not.
//!
//! Every hop, redirects included, goes through [`resolver`]: the URL is held to the rules of [`url`], the addresses
//! of its host to those of [`address`], and ureq connects to the addresses that were checked and to no others.

mod address;
mod resolver;
mod tls;
mod url;

use resolver::GuardedResolver;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use ureq::unversioned::transport::{Connector, RustlsConnector, TcpConnector};
use ureq::{Agent, config::Config};
use url::Policy;

/// What may be fetched, and how much of it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether private, local and otherwise special addresses may be reached, and ports other than 80, 443, 8080
    /// and 8443. For intranets and tests.
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
    /// 8 MiB hold any logo, even a photograph; 10 s and 3 redirects are what a picture host needs on a bad day.
    fn default() -> Settings {
        Settings {
            allow_private: false,
            max_bytes: 8 << 20,
            timeout: Duration::from_secs(10),
            max_redirects: 3,
            ca_file: None,
        }
    }
}

/// Why nothing was fetched. Its `Display` is a sentence for the caller, which tells nothing of the inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchError {
    /// Not an absolute http or https URL, or with a port, user or host that is not allowed; a sentence.
    Url(String),
    /// The host resolves to an address that may not be reached; a sentence.
    Forbidden(String),
    /// The host does not resolve, does not answer or not in HTTP, redirects too often, or TLS fails; a sentence.
    Unreachable(String),
    /// The server answered with something other than 200.
    Status(u16),
    /// Over [`Settings::max_bytes`].
    TooLarge {
        /// The limit.
        max_bytes: u64,
    },
    /// Over [`Settings::timeout`].
    Timeout,
    /// https is not to be had on this machine's CPU.
    TlsUnavailable,
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
        }
    }
}

impl std::error::Error for FetchError {}

/// Fetches by one set of settings; cheap to share between threads.
pub struct Fetcher {
    max_bytes: u64,
    policy: Policy,
    /// For URLs that start with http.
    any_scheme: Agent,
    /// For URLs that start with https, which no redirect may take back to http.
    https_only: Agent,
}

impl Fetcher {
    /// Prepares TLS and the HTTP client.
    ///
    /// # Errors
    /// A sentence for the operator, if the certificates' file cannot be used.
    pub fn new(settings: Settings) -> Result<Fetcher, String> {
        Fetcher::with_tls(settings, tls::available())
    }

    fn with_tls(settings: Settings, tls: bool) -> Result<Fetcher, String> {
        let Settings {
            allow_private,
            max_bytes,
            timeout,
            max_redirects,
            ca_file,
        } = settings;
        let policy = Policy { allow_private, tls };
        let tls_config = if tls {
            tls::config(ca_file.as_deref())?
        } else {
            log::warn!(
                "this CPU lacks instructions that TLS needs here: watermark pictures come by http only"
            );
            ureq::tls::TlsConfig::default()
        };
        let agent = |https_only: bool| {
            let config = Config::builder()
                .https_only(https_only)
                .tls_config(tls_config.clone())
                .http_status_as_error(false)
                .max_redirects(max_redirects)
                .timeout_global(Some(timeout))
                // Bounds what a server can make us hold before the body's own limit counts.
                .max_response_header_size(16 << 10)
                // The default takes a proxy from the environment, which would look up hosts itself, unchecked.
                .proxy(None)
                // A pooled connection would skip the resolver.
                .max_idle_connections(0)
                .user_agent(concat!("towebp/", env!("CARGO_PKG_VERSION")))
                .accept("image/png, image/jpeg")
                .build();
            let connector = ().chain(TcpConnector::default()).chain(RustlsConnector::default());
            Agent::with_parts(config, connector, GuardedResolver::new(policy))
        };
        Ok(Fetcher {
            max_bytes,
            policy,
            any_scheme: agent(false),
            https_only: agent(true),
        })
    }

    /// GETs `url` and returns the body.
    ///
    /// # Errors
    /// See [`FetchError`].
    pub fn fetch(&self, url: &str) -> Result<Vec<u8>, FetchError> {
        let uri = url::parse(url)?;
        url::check(&uri, self.policy)?;
        let host = uri.host().unwrap_or_default().to_string();
        let agent = if uri.scheme_str() == Some("https") {
            &self.https_only
        } else {
            &self.any_scheme
        };
        let mut response = agent
            .get(uri)
            .call()
            .map_err(|error| self.explain(error, &host))?;
        if response.status() != 200 {
            return Err(FetchError::Status(response.status().as_u16()));
        }
        if response
            .body()
            .content_length()
            .is_some_and(|length| length > self.max_bytes)
        {
            return Err(FetchError::TooLarge {
                max_bytes: self.max_bytes,
            });
        }
        // ureq's limit is the first length that is too large: it refuses to look for the end once it is used up.
        let limit = self.max_bytes.saturating_add(1);
        response
            .body_mut()
            .with_config()
            .limit(limit)
            .read_to_vec()
            .map_err(|error| self.explain(error, &host))
    }

    /// ureq's errors in this room's words. Its own texts may show addresses; some show URLs, which no log may hold.
    fn explain(&self, error: ureq::Error, host: &str) -> FetchError {
        use ureq::Error;
        if let Error::Io(_) | Error::Rustls(_) = &error {
            log::debug!("fetching from {host}: {error}");
        }
        let reason = match error {
            Error::Other(cause) => match cause.downcast::<FetchError>() {
                Ok(refused) => return *refused,
                Err(_) => "the connection failed",
            },
            Error::Timeout(_) => return FetchError::Timeout,
            Error::BodyExceedsLimit(_) => {
                return FetchError::TooLarge {
                    max_bytes: self.max_bytes,
                };
            }
            Error::RequireHttpsOnly(_) => {
                return FetchError::Url(format!(
                    "{host} redirects from https to http, which is not followed."
                ));
            }
            Error::BadUri(_) | Error::RedirectFailed => {
                "it redirects to something that is not an http or https URL"
            }
            Error::TooManyRedirects => "it redirects too often",
            Error::HostNotFound => "the name has no address",
            Error::LargeResponseHeader(..) => "the header of its answer is too long",
            Error::Rustls(_) | Error::Tls(_) | Error::TlsRequired => {
                "TLS fails, or its certificate is not trusted"
            }
            Error::Protocol(_) | Error::Http(_) => "its answer is not proper HTTP",
            Error::Io(cause) => explain_io(&cause),
            _ => "the connection failed",
        };
        FetchError::Unreachable(format!("Nothing could be fetched from {host}: {reason}."))
    }
}

fn explain_io(error: &std::io::Error) -> &'static str {
    use std::io::ErrorKind;
    let cause = error
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<rustls::Error>());
    if cause.is_some() {
        return "TLS fails, or its certificate is not trusted";
    }
    match error.kind() {
        ErrorKind::ConnectionRefused => "the connection was refused",
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => {
            "the connection ended too early"
        }
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
            "there is no way to its network"
        }
        // What std makes of getaddrinfo's failures.
        _ if error.to_string().contains("lookup address") => "the name has no address",
        _ => "the connection failed",
    }
}

#[cfg(test)]
mod tests;
