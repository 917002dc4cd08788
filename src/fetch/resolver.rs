//! Looks up hosts and refuses those that lie on addresses which may not be reached.

use super::FetchError;
use super::address::forbidden;
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

/// Gives the addresses of a host (a name, or an address without brackets) and a port.
pub(super) type Lookup = dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync;

/// What the system says. It cannot be told to stop: this is why [`super::flights`] have threads of their own.
pub(super) fn system(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok((host, port).to_socket_addrs()?.collect())
}

/// A lookup behind the checks. ureq asks it on every hop, redirects included, and dials exactly the addresses that it
/// returns: between the check and the connection nobody can change the answer (DNS rebinding).
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
        let (host, port) = url::check(uri, self.policy).map_err(refused)?;
        let addresses = (self.lookup)(host, port)?;
        if !self.policy.allow_private {
            check_addresses(host, addresses.iter().map(SocketAddr::ip)).map_err(refused)?;
        }
        let mut checked = self.empty();
        // No host has more; ureq's list has no room for more.
        for address in addresses.into_iter().take(16) {
            checked.push(address);
        }
        if checked.is_empty() {
            return Err(Error::HostNotFound);
        }
        Ok(checked)
    }
}

/// One forbidden address refuses the host: public and private answers mixed are an attack or a mistake, and picking
/// among them would make the outcome depend on the order of DNS records.
fn check_addresses(
    host: &str,
    mut addresses: impl Iterator<Item = IpAddr>,
) -> Result<(), FetchError> {
    let Some((address, reason)) =
        addresses.find_map(|address| Some((address, forbidden(address)?)))
    else {
        return Ok(());
    };
    log::debug!("{host} is refused: {address} is {reason}");
    Err(FetchError::Forbidden(format!(
        "{host} is at a private, local or otherwise special address, which this server does not fetch from."
    )))
}

fn refused(why: FetchError) -> Error {
    Error::Other(Box::new(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_forbidden_address_among_good_ones_refuses_the_host() {
        let judge = |texts: &[&str]| {
            let addresses = texts.iter().map(|text| text.parse().expect(text));
            check_addresses("example.org", addresses)
        };
        let public = ["8.8.8.8", "2606:4700::1111"];
        assert_eq!(judge(&public), Ok(()));
        for private in ["127.0.0.1", "::1", "::ffff:10.0.0.1"] {
            for position in 0..=public.len() {
                let mut mixed = public.to_vec();
                mixed.insert(position, private);
                let answer = judge(&mixed);
                assert!(matches!(answer, Err(FetchError::Forbidden(_))), "{mixed:?}");
            }
        }
    }
}
