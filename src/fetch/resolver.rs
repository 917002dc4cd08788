//! Looks up hosts and refuses those that lie on addresses which may not be reached.

use super::FetchError;
use super::address::forbidden;
use super::url::{self, Policy};
use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// The system's resolver behind the checks. ureq asks it on every hop, redirects included, and dials exactly the
/// addresses that it returns: between the check and the connection nobody can change the answer (DNS rebinding).
#[derive(Debug)]
pub(super) struct GuardedResolver {
    policy: Policy,
    system: DefaultResolver,
}

impl GuardedResolver {
    pub(super) fn new(policy: Policy) -> GuardedResolver {
        GuardedResolver {
            policy,
            system: DefaultResolver::default(),
        }
    }
}

impl Resolver for GuardedResolver {
    /// One forbidden address refuses the host: public and private answers mixed are an attack or a mistake,
    /// and picking among them would make the outcome depend on the order of DNS records.
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        url::check(uri, self.policy).map_err(refused)?;
        let addresses = self.system.resolve(uri, config, timeout)?;
        if self.policy.allow_private {
            return Ok(addresses);
        }
        let host = uri.host().unwrap_or_default();
        for address in &addresses {
            if let Some(reason) = forbidden(address.ip()) {
                log::debug!("{host} is refused: {} is {reason}", address.ip());
                return Err(refused(FetchError::Forbidden(format!(
                    "{host} is at a private, local or otherwise special address, which this server does not fetch from."
                ))));
            }
        }
        Ok(addresses)
    }
}

fn refused(why: FetchError) -> Error {
    Error::Other(Box::new(why))
}
