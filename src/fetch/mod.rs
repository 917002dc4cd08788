//! Fetches a watermark's picture from a URL, without letting the URL reach what it must not.
//!
//! Every hop, redirects included, goes through [`resolver`]: the URL must obey the rules of
//! [`url`], and the addresses of its host those of [`address`]. ureq connects to the addresses that
//! were checked, and to no others. With [`single_flight`], callers who want the same picture at the
//! same time share one fetch; [`cache`] keeps it for those who come a little later.

mod address;
mod cache;
mod client;
mod download_budget;
mod error;
mod freshness;
mod resolver;
mod settings;
mod single_flight;
mod tls;
mod url;

pub use error::FetchError;
pub use settings::Settings;
pub use single_flight::{Fetched, Pending, Source, Wake};
pub use tls::config as tls_config;

use client::{Client, Network};
use single_flight::SingleFlight;
use std::sync::Arc;
use ureq::unversioned::transport::{Connector, TcpConnector};
use url::Policy;

/// Fetches pictures by one set of settings. A clone shares the limits, the queue and the cache.
#[derive(Clone)]
pub struct Fetcher {
    policy: Policy,
    single_flight: Arc<SingleFlight>,
}

impl Fetcher {
    /// Prepares TLS and the HTTP client.
    ///
    /// # Errors
    /// A sentence for the operator: the file of certificates cannot be used.
    pub fn new(settings: &Settings) -> Result<Fetcher, String> {
        let network = Network {
            lookup: Arc::new(resolver::system),
            connector: TcpConnector::default,
        };
        Fetcher::on(&network, settings, crate::tls::available())
    }

    /// Takes the network as a parameter, so that tests can replace it.
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
        let single_flight = SingleFlight::new(
            settings,
            Box::new(move |uri, may_go_on| client.get(uri, may_go_on)),
        );
        Ok(Fetcher {
            policy,
            single_flight,
        })
    }

    /// Begins to GET `url` for this account and returns at once. `wake` is called from another
    /// thread when the outcome is known, unless it is known on return. At [`Pending::deadline`] at
    /// the latest the outcome is [`FetchError::Timeout`] or [`FetchError::Busy`].
    ///
    /// # Errors
    /// [`FetchError::Url`], [`FetchError::TlsUnavailable`] or [`FetchError::Busy`]; nothing was
    /// begun.
    pub fn begin(&self, account: u64, url: &str, wake: Wake) -> Result<Pending, FetchError> {
        let uri = url::parse(url)?;
        url::check(&uri, self.policy)?;
        self.single_flight.begin(account, uri, wake)
    }

    /// The number of fetches under way, and the number of callers in the queue.
    pub fn load(&self) -> (usize, usize) {
        self.single_flight.load()
    }

    /// GETs `url` and blocks until the body is here. `is_waiting` is called several times a second;
    /// the fetch is left with [`FetchError::Abandoned`] when it returns false.
    ///
    /// # Errors
    /// See [`FetchError`].
    pub fn fetch(&self, url: &str, is_waiting: &dyn Fn() -> bool) -> Result<Fetched, FetchError> {
        let uri = url::parse(url)?;
        url::check(&uri, self.policy)?;
        self.single_flight.fetch(uri, is_waiting)
    }
}

#[cfg(test)]
mod tests;
