//! Looks up hosts, and rejects those with an address that may not be reached.

use super::address::forbidden;
use super::error::FetchError;
use super::url::{self, Policy};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// Returns the addresses of a host (a name, or an address without brackets) and a port.
pub(super) type Lookup = dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync;

/// Looks up a host with the system's resolver. That cannot be interrupted, which is why each fetch
/// of `single_flight` has a thread of its own.
pub(super) fn system(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok((host, port).to_socket_addrs()?.collect())
}

/// A resolver that checks the URL and the addresses. ureq calls it on every hop, redirects
/// included, and connects to exactly the addresses that it returns: between the check and the
/// connection nobody can change the answer (DNS rebinding).
pub(super) struct GuardedResolver {
    policy: Policy,
    lookup: Arc<Lookup>,
}

impl GuardedResolver {
    pub(super) fn new(policy: Policy, lookup: Arc<Lookup>) -> GuardedResolver {
        GuardedResolver { policy, lookup }
    }
}

impl fmt::Debug for GuardedResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GuardedResolver({:?})", self.policy)
    }
}

impl Resolver for GuardedResolver {
    fn resolve(
        &self,
        uri: &Uri,
        _config: &Config,
        _timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let (host, port) = url::check(uri, self.policy).map_err(into_ureq)?;
        let addresses = (self.lookup)(host, port)?;
        if !self.policy.allow_private {
            check_addresses(host, addresses.iter().map(SocketAddr::ip)).map_err(into_ureq)?;
        }
        let mut checked = self.empty();
        // The list of ureq holds 16, and no host has more.
        for address in addresses.into_iter().take(16) {
            checked.push(address);
        }
        if checked.is_empty() {
            return Err(Error::HostNotFound);
        }
        Ok(checked)
    }
}

/// Rejects the host if any of its addresses is forbidden: public and private ones mixed are an
/// attack or a mistake, and choosing among them would make the outcome depend on the order of DNS
/// records.
fn check_addresses(
    host: &str,
    mut addresses: impl Iterator<Item = IpAddr>,
) -> Result<(), FetchError> {
    let Some((address, reason)) =
        addresses.find_map(|address| Some((address, forbidden(address)?)))
    else {
        return Ok(());
    };
    log::debug!("{host} is rejected: {address} is {reason}");
    Err(FetchError::forbidden(host))
}

fn into_ureq(error: FetchError) -> Error {
    Error::Other(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_forbidden_address_among_good_ones_rejects_the_host() {
        let check = |texts: &[&str]| {
            let addresses = texts.iter().map(|text| text.parse().expect(text));
            check_addresses("example.org", addresses)
        };
        let public = ["8.8.8.8", "2606:4700::1111"];
        assert_eq!(check(&public), Ok(()));
        for private in ["127.0.0.1", "::1", "::ffff:10.0.0.1"] {
            for position in 0..=public.len() {
                let mut mixed = public.to_vec();
                mixed.insert(position, private);
                let answer = check(&mixed);
                assert!(matches!(answer, Err(FetchError::Forbidden(_))), "{mixed:?}");
            }
        }
    }
}
