//! Fetches a watermark's picture from a URL without letting the URL reach what it must not.
//!
//! Every hop, redirects included, goes through [`resolver`]: the URL is held to the rules of [`url`], the addresses
//! of its host to those of [`address`], and ureq connects to the addresses that were checked and to no others. [`flights`] sees that
//! many who want the same picture at the same time fetch it once, [`cache`] that those who come a little later need not.

mod address;
mod cache;
mod client;
mod downloads;
mod flights;
mod freshness;
mod resolver;
mod tls;
mod url;

pub use flights::{Pending, Wake};

use client::{Client, Network};
use flights::Flights;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use ureq::unversioned::transport::{Connector, TcpConnector};
use url::Policy;

/// What may be fetched, and how much of it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether private, local and otherwise special addresses may be reached, and ports other than 80, 443, 8080
    /// and 8443. For intranets and tests.
    pub allow_private: bool,
    /// Most bytes of a body.
    pub max_bytes: u64,
    /// For the whole fetch, redirects and waiting for other fetches included.
    pub timeout: Duration,
    /// Most redirects that are followed.
    pub max_redirects: u32,
    /// More root certificates, PEM.
    pub ca_file: Option<PathBuf>,
    /// Most bytes of pictures that are kept for those who ask again; 0 keeps none.
    pub cache_bytes: usize,
    /// Fetches at a time, each with a thread.
    pub fetches: usize,
    /// Of these for one account.
    pub fetches_per_account: usize,
    /// Fetches that wait for their turn.
    pub queue: usize,
    /// Of these for one account.
    pub queue_per_account: usize,
}

impl Settings {
    /// Most bytes that pictures on their way in take together: four of the largest.
    pub fn downloads_bytes(&self) -> usize {
        usize::try_from(self.max_bytes.saturating_mul(4)).unwrap_or(usize::MAX)
    }
}

impl Default for Settings {
    /// 8 MiB hold any logo, even a photograph; 10 s and 3 redirects are what a picture host needs on a bad day. 16 MiB hold
    /// some hundred logos, and two of the largest pictures. 16 fetches at a time are 160 a second of a host that answers in
    /// 100 ms; four accounts with 4 each can slow them down together, and no single one. 64 in the queue are what these 16
    /// begin within the timeout if each takes 2 s, and 16 of one account leave room for three others.
    fn default() -> Settings {
        Settings {
            allow_private: false,
            max_bytes: 8 << 20,
            timeout: Duration::from_secs(10),
            max_redirects: 3,
            ca_file: None,
            cache_bytes: 16 << 20,
            fetches: 16,
            fetches_per_account: 4,
            queue: 64,
            queue_per_account: 16,
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
    /// Other fetches were under way all of the time, here or at this host, or too many wait for their turn.
    Busy,
    /// Whoever asked waits no more.
    Abandoned,
    /// A fault of this room.
    Failed,
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

/// A picture's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The whole file.
    pub bytes: Arc<[u8]>,
    /// Where it came from.
    pub source: Source,
}

/// What a fetch took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// It was fetched for this caller first.
    Host,
    /// It was on its way for somebody else already.
    Shared,
    /// It had been fetched lately.
    Cache,
}

/// Fetches by one set of settings; made to be shared between threads. A clone fetches together with it.
#[derive(Clone)]
pub struct Fetcher {
    policy: Policy,
    flights: Arc<Flights>,
}

impl Fetcher {
    /// Prepares TLS and the HTTP client.
    ///
    /// # Errors
    /// A sentence for the operator, if the certificates' file cannot be used.
    pub fn new(settings: &Settings) -> Result<Fetcher, String> {
        let network = Network {
            lookup: Arc::new(resolver::system),
            connector: TcpConnector::default,
        };
        Fetcher::on(&network, settings, tls::available())
    }

    fn on<C: Connector>(
        network: &Network<impl Fn() -> C>,
        settings: &Settings,
        tls: bool,
    ) -> Result<Fetcher, String> {
        let policy = Policy {
            allow_private: settings.allow_private,
            tls,
        };
        let client = Client::new(network, settings, policy)?;
        let flights = Flights::new(
            settings,
            Box::new(move |uri, may_go_on| client.get(uri, may_go_on)),
        );
        Ok(Fetcher { policy, flights })
    }

    /// Begins to GET `url` for this account, and does not wait: `wake` is called once the outcome is there, unless it is
    /// there at once. The outcome is [`FetchError::Timeout`] or [`FetchError::Busy`] at [`Pending::deadline`] at the latest.
    ///
    /// # Errors
    /// See [`FetchError`].
    pub fn begin(&self, account: u64, url: &str, wake: Wake) -> Result<Pending, FetchError> {
        let uri = url::parse(url)?;
        url::check(&uri, self.policy)?;
        self.flights.begin(account, uri, wake)
    }

    /// How many fetches are under way, and how many wait for their turn.
    pub fn load(&self) -> (usize, usize) {
        self.flights.load()
    }

    /// GETs `url` and returns the body, for as long as `is_waiting` says that somebody waits for it: it is asked several
    /// times a second.
    ///
    /// # Errors
    /// See [`FetchError`].
    pub fn fetch(&self, url: &str, is_waiting: &dyn Fn() -> bool) -> Result<Fetched, FetchError> {
        let uri = url::parse(url)?;
        url::check(&uri, self.policy)?;
        self.flights.fetch(uri, is_waiting)
    }
}

#[cfg(test)]
mod tests;
