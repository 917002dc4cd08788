//! One GET, with ureq.

use super::error::FetchError;
use super::resolver::{GuardedResolver, Lookup};
use super::settings::Settings;
use super::url::Policy;
use super::{freshness, tls};
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::transport::{Connector, RustlsConnector};
use ureq::{Agent, ResponseExt};

/// The network as the client sees it; tests have one of their own.
pub(super) struct Network<F> {
    /// Resolves a host to its addresses.
    pub(super) lookup: Arc<Lookup>,
    /// Makes what connects to addresses; called once for each agent.
    pub(super) connector: F,
}

/// A file that a host has sent.
#[derive(Debug)]
pub(super) struct Download {
    pub(super) bytes: Arc<[u8]>,
    /// How long it may be kept and used again; see [`freshness`].
    pub(super) lifetime: Duration,
}

/// The HTTP client, with two agents of ureq.
pub(super) struct Client {
    max_bytes: u64,
    /// For URLs that start with http.
    any_scheme: Agent,
    /// For URLs that start with https, which no redirect may take back to http.
    https_only: Agent,
}

impl Client {
    /// # Errors
    /// A sentence for the operator: the file of certificates cannot be used.
    pub(super) fn new<C: Connector>(
        network: &Network<impl Fn() -> C>,
        settings: &Settings,
        policy: Policy,
    ) -> Result<Client, String> {
        let tls_config = if policy.tls {
            tls::config(settings.ca_file.as_deref())?
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
                .max_redirects(settings.max_redirects)
                .timeout_global(Some(settings.timeout))
                // The limit of the body does not count these bytes.
                .max_response_header_size(16 << 10)
                // By default ureq takes a proxy from the environment, which would look up hosts
                // unchecked.
                .proxy(None)
                // A pooled connection would skip the resolver.
                .max_idle_connections(0)
                .user_agent(concat!("towebp/", env!("CARGO_PKG_VERSION")))
                .accept("image/png, image/jpeg")
                .build();
            let connector = (network.connector)().chain(RustlsConnector::default());
            let resolver = GuardedResolver::new(policy, Arc::clone(&network.lookup));
            Agent::with_parts(config, connector, resolver)
        };
        Ok(Client {
            max_bytes: settings.max_bytes,
            any_scheme: agent(false),
            https_only: agent(true),
        })
    }

    /// GETs a URL that was checked. `may_go_on` is called after every piece of the body with the
    /// number of bytes read so far; its error ends the download.
    pub(super) fn get(
        &self,
        uri: &Uri,
        may_go_on: &dyn Fn(usize) -> Result<(), FetchError>,
    ) -> Result<Download, FetchError> {
        let host = uri.host().unwrap_or_default();
        let agent = if uri.scheme_str() == Some("https") {
            &self.https_only
        } else {
            &self.any_scheme
        };
        let mut response = agent
            .get(uri)
            .call()
            .map_err(|error| explain(error, host))?;
        if response.status() != 200 {
            return Err(FetchError::Status(response.status().as_u16()));
        }
        let declared = response.body().content_length();
        if declared.is_some_and(|length| length > self.max_bytes) {
            return Err(self.too_large());
        }
        let mut lifetime = freshness::lifetime(response.headers(), SystemTime::now());
        if response.get_uri() != uri {
            // The headers of the redirects, which may allow less, are not known here.
            lifetime = lifetime.min(freshness::DEFAULT);
        }
        let mut body = Vec::new();
        let mut reader = response.body_mut().as_reader();
        let mut piece = [0; 16 << 10];
        loop {
            let count = reader
                .read(&mut piece)
                .map_err(|error| explain(error.into(), host))?;
            if count == 0 {
                let bytes = body.into();
                return Ok(Download { bytes, lifetime });
            }
            body.extend_from_slice(&piece[..count]);
            if body.len() as u64 > self.max_bytes {
                return Err(self.too_large());
            }
            may_go_on(body.len())?;
        }
    }

    fn too_large(&self) -> FetchError {
        FetchError::TooLarge {
            max_bytes: self.max_bytes,
        }
    }
}

/// Turns an error of ureq into one of this module. The texts of ureq may show addresses, and some
/// show URLs, which must not enter a log.
fn explain(error: ureq::Error, host: &str) -> FetchError {
    use ureq::Error;
    if let Error::Io(_) | Error::Rustls(_) = &error {
        log::debug!("fetching from {host}: {error}");
    }
    let reason = match error {
        Error::Other(cause) => match cause.downcast::<FetchError>() {
            Ok(error) => return *error,
            Err(_) => "the connection failed",
        },
        Error::Timeout(_) => return FetchError::Timeout,
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
    FetchError::unreachable(host, reason)
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
        // The text that std gives to failures of getaddrinfo.
        _ if error.to_string().contains("lookup address") => "the name has no address",
        _ => "the connection failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use ureq::Error;

    #[test]
    fn each_failure_has_its_reason_and_shows_no_url_or_address() {
        let private = "http://10.0.0.1/secret";
        let io = |kind: io::ErrorKind| Error::Io(io::Error::new(kind, private));
        let tls = rustls::Error::General(private.to_owned());
        let of = |error| explain(error, "example.org");
        for (error, expected) in [
            (
                Error::BadUri(private.to_owned()),
                "not an http or https URL",
            ),
            (Error::RedirectFailed, "not an http or https URL"),
            (Error::TooManyRedirects, "redirects too often"),
            (Error::HostNotFound, "the name has no address"),
            (
                Error::LargeResponseHeader(2, 1),
                "header of its answer is too long",
            ),
            (Error::TlsRequired, "TLS fails"),
            (Error::Io(io::Error::other(tls)), "TLS fails"),
            (
                io(io::ErrorKind::ConnectionRefused),
                "connection was refused",
            ),
            (io(io::ErrorKind::UnexpectedEof), "ended too early"),
            (io(io::ErrorKind::ConnectionReset), "ended too early"),
            (io(io::ErrorKind::HostUnreachable), "no way to its network"),
            (
                io(io::ErrorKind::NetworkUnreachable),
                "no way to its network",
            ),
            (
                Error::Io(io::Error::other("failed to lookup address information")),
                "the name has no address",
            ),
            (io(io::ErrorKind::Other), "the connection failed"),
            (Error::Other(private.into()), "the connection failed"),
        ] {
            let FetchError::Unreachable(sentence) = of(error) else {
                panic!("{expected}: it is not unreachable");
            };
            assert!(sentence.contains(expected), "{sentence}");
            assert!(sentence.contains("example.org"), "{sentence}");
            assert!(!sentence.contains("10.0.0.1"), "{sentence}");
        }
        let timeout = Error::Timeout(ureq::Timeout::Global);
        assert_eq!(of(timeout), FetchError::Timeout);
        let busy = Error::Other(FetchError::Busy.into());
        assert_eq!(of(busy), FetchError::Busy);
        let downgrade = of(Error::RequireHttpsOnly(private.to_owned()));
        let FetchError::Url(sentence) = downgrade else {
            panic!("{downgrade:?}");
        };
        assert!(sentence.contains("from https to http") && !sentence.contains("10.0.0.1"));
    }
}
